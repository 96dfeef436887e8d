"""TVM's names of exceptions (`tvm.error`) for Heddle's: what a runtime raises there is heddle.Error or one of its kinds here,
and most are a ValueError, KeyError, NotImplementedError or OSError too.

TVM raises its InternalError for any check that fails, so that here it is another name of heddle.Error.
"""
from __future__ import annotations

from .errors import Error

__all__ = ["InternalError", "RPCError", "RPCSessionTimeoutError", "TVMError"]

TVMError = Error
InternalError = Error


class RPCError(Error):
    """A session of heddle.rpc failed, or its server reported an error."""


class RPCSessionTimeoutError(RPCError):
    """A session of heddle.rpc took longer than it may."""
