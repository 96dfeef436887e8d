"""Decoders with random weights: the shapes of language models, written as ONNX in the two forms that exporters give them."""
