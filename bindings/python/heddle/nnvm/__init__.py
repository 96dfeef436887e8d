"""What deploy scripts of TVM v0.3 to v0.5 take from `nnvm`: `nnvm.compiler`, parameters as bytes."""
from . import compiler

__all__ = ["compiler"]
