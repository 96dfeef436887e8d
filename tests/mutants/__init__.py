"""Small models and mutants of them, for tests that run untrusted models through the packages: models.MODELS,
mutate.mutant, and calls.py, which runs them through the Python package."""
