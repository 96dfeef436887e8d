"""Heddle: one model graph across several kinds of processor at once."""
