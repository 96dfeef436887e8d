"""A session with a program that is started for it, and ends with it: TVM's minRPC servers, such as posix_popen_server."""
from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import subprocess
import tempfile
from typing import Any, Sequence

from ._connection import Connection, RPCConnectionError
from .session import RPCSession


class PopenSession(RPCSession):
    """Starts a program and talks TVM's RPC with it over descriptors, whose numbers are its last two words. binary is its path,
    its words, or the bytes of an executable, which is written to a private file. The program ends with the session: it has five
    seconds, and is then killed."""

    def __init__(self, binary: str | os.PathLike[str] | bytes | Sequence[str]):
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        ours, its = socket.socketpair()
        try:
            with its:
                words = [*self._words(binary), str(its.fileno()), str(its.fileno())]
                try:
                    self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=[its.fileno()])
                except OSError as failed:
                    raise RPCConnectionError(f"cannot start {words[0]}: {failed}") from failed
            super().__init__(Connection(words[0], 0, "", 0, None, None, ready=ours))
        except BaseException:
            ours.close()
            self._end()
            raise

    def _words(self, binary: Any) -> list[str]:
        if isinstance(binary, (bytes, bytearray)):
            self._folder = tempfile.TemporaryDirectory(prefix="heddle-popen-")
            path = pathlib.Path(self._folder.name) / "server"
            path.write_bytes(binary)
            path.chmod(0o700)
            return [str(path)]
        if isinstance(binary, (str, os.PathLike)):
            return [os.fspath(binary)]
        return [os.fspath(word) for word in binary]

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            if process.poll() is None:
                process.kill()
                process.wait()
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    def close(self) -> None:
        """Ends the session and its program."""
        super().close()
        self._end()

    def __del__(self) -> None:
        if getattr(self, "connection", None) is not None:
            self.connection.close()
        if hasattr(self, "_process"):
            self._end()
        super().__del__()
