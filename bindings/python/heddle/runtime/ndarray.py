"""heddle.ndarray by TVM's name for it."""

from ..ndarray import *  # noqa: F401,F403
from ..ndarray import __all__  # noqa: F401
