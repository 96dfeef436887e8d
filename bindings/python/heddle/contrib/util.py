"""heddle.contrib.utils under the name that TVM had for it up to v0.7."""
from .utils import TempDirectory, tempdir

__all__ = ["TempDirectory", "tempdir"]
