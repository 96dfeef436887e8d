"""Keys, signatures and encryption of files of models (docs/signing.md).

    heddle.signing.create_key("release")                       # release, and release.pub
    heddle.pack("net.heddle", "net.onnx", sign="release", sequence=7)
    model = heddle.load("net.heddle", trust="release.pub")

UnsupportedError in builds without libsodium; DeniedError for a signature or a key that is not good.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple, Union

from . import _functions

Path = Union[str, "os.PathLike[str]"]

_SIGNED, _DETACHED, _ENCRYPTED = 1, 2, 4

__all__ = ["Signature", "create_key", "decrypt", "public_key", "read_signature", "set_key_callback", "sign", "verify"]


class Signature(NamedTuple):
    """What a file says of its signature (key_id "": it is not signed) and its encryption (encryption_key_id "")."""
    key_id: str
    sequence: int
    detached: bool          # in FILE.sig
    encryption_key_id: str
    bytes: int              # of the file, without a signature behind it


def _signature(row: tuple[int, str, int, str, int]) -> Signature:
    flags, key_id, sequence, encryption_key_id, count = row
    return Signature(key_id, sequence, bool(flags & _DETACHED), encryption_key_id, count)


def _optional(path: Path | None) -> str | None:
    return None if path is None else os.fspath(path)


def create_key(path: Path, *, encryption: bool = False) -> None:
    """Writes a key that signs to a new file, and its public half, a trust file, to PATH.pub; or a key that encrypts."""
    _functions.key_create(os.fspath(path), 2 if encryption else 1)


def public_key(path: Path) -> str:
    """The public half of a key, as a line of a trust file."""
    return _functions.key_public(os.fspath(path))


def sign(path: Path, key: Path | None = None, *, encrypt: Path | None = None, sequence: int = 0, output: Path | None = None,
         detached: bool | None = None) -> None:
    """Signs a file with a secret key, and encrypts it with another; output None: the file itself. detached: whether the
    signature goes to FILE.sig or behind the file; None: behind libraries, packed graphs and encrypted files."""
    _functions.sign(os.fspath(path), _optional(output), _optional(key), _optional(encrypt), sequence,
                    0 if detached is None else 1 if detached else 2)


def read_signature(path: Path) -> Signature:
    """What a file says; nothing is verified."""
    return _signature(_functions.signature(os.fspath(path)))


def verify(path: Path, trust: Path | None = None) -> Signature:
    """The same, verified by a trust file; None: that of HEDDLE_TRUST. DeniedError says what is wrong."""
    return _signature(_functions.verify(os.fspath(path), _optional(trust)))


def decrypt(path: Path, output: Path, key: Path | None = None) -> None:
    """Writes the content of an encrypted file."""
    _functions.decrypt(os.fspath(path), os.fspath(output), _optional(key))


def set_key_callback(function: Callable[[str], bytes | None] | None) -> None:
    """Sets what is asked for the keys of encrypted files in this process: function(id) gives 32 bytes, or None."""
    _functions.key_callback(function)
