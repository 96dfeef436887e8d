"""A session for this machine: the methods of a remote one, without a server."""
from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
from typing import Any

from .. import runtime


class LocalSession:
    """A session whose devices are this machine's: files go into a folder of its own, which goes with the session."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="heddle_session_")

    def _path(self, name: str | os.PathLike) -> pathlib.Path:
        return pathlib.Path(self._folder.name) / pathlib.Path(name).name

    def upload(self, data: str | os.PathLike | bytes | bytearray, target: str | None = None) -> None:
        """Puts a file (its path), or bytes under the name target, into the session's folder."""
        if isinstance(data, (bytes, bytearray)):
            if not target:
                raise ValueError("target: bytes need a name")
            self._path(target).write_bytes(data)
        else:
            shutil.copyfile(data, self._path(target or data))

    def download(self, path: str) -> bytearray:
        """The bytes of a file of the session."""
        return bytearray(self._path(path).read_bytes())

    def remove(self, path: str) -> None:
        """Removes a file of the session."""
        self._path(path).unlink(missing_ok=True)

    def load_module(self, path: str) -> runtime.Module:
        """The module of a library that was uploaded."""
        return runtime.load_module(str(self._path(path)))

    def listdir(self, path: str) -> str:
        """The session's files, each with a comma after it."""
        return "".join(f"{name}," for name in sorted(os.listdir(self._folder.name)))

    def system_lib(self) -> runtime.Module:
        """The module of what is linked into this process."""
        return runtime.system_lib()

    def get_function(self, name: str) -> Any:
        """A registered function."""
        return runtime.get_global_func(name)

    def device(self, dev_type: str | int, dev_id: int = 0) -> runtime.Device:
        """A device by the name or number of its type."""
        return runtime.device(dev_type, dev_id)

    context = device

    def cpu(self, dev_id: int = 0) -> runtime.Device:
        return self.device("cpu", dev_id)

    def cuda(self, dev_id: int = 0) -> runtime.Device:
        return self.device("cuda", dev_id)

    gpu = cuda

    def cl(self, dev_id: int = 0) -> runtime.Device:
        return self.device("opencl", dev_id)

    opencl = cl

    def vulkan(self, dev_id: int = 0) -> runtime.Device:
        return self.device("vulkan", dev_id)

    def rocm(self, dev_id: int = 0) -> runtime.Device:
        return self.device("rocm", dev_id)

    def metal(self, dev_id: int = 0) -> runtime.Device:
        return self.device("metal", dev_id)

    def ext_dev(self, dev_id: int = 0) -> runtime.Device:
        return self.device("ext_dev", dev_id)

    def hexagon(self, dev_id: int = 0) -> runtime.Device:
        return self.device("hexagon", dev_id)

    def webgpu(self, dev_id: int = 0) -> runtime.Device:
        return self.device("webgpu", dev_id)
