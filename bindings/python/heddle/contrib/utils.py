"""What deploy scripts take from `tvm.contrib.utils`: folders that go by themselves."""
from __future__ import annotations

import os
import tempfile as _tempfile

__all__ = ["TempDirectory", "tempdir"]


class TempDirectory:
    """A folder that is removed with `remove`, at the end of a `with`, or with the object. Attribute: `temp_dir`."""

    def __init__(self, custom_path: str | None = None):
        self._folder = None
        if custom_path:
            os.makedirs(custom_path, exist_ok=True)
            self.temp_dir = custom_path
        else:
            self._folder = _tempfile.TemporaryDirectory(prefix="heddle_")
            self.temp_dir = self._folder.name
        self.path = self.temp_dir

    def relpath(self, name: str) -> str:
        """The path of a file in it."""
        return os.path.join(self.temp_dir, name)

    def __truediv__(self, name: str) -> str:
        return self.relpath(name)

    def listdir(self) -> list[str]:
        """The names of the files in it."""
        return os.listdir(self.temp_dir)

    def remove(self) -> None:
        """Removes it and what is in it; a folder that the caller named stays."""
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> "TempDirectory":
        return self

    def __exit__(self, *unused: object) -> None:
        self.remove()


def tempdir(custom_path: str | None = None, keep_for_debug: bool = False) -> TempDirectory:
    """A new folder; custom_path: that one, which stays. keep_for_debug: it is not removed."""
    if keep_for_debug and not custom_path:
        custom_path = _tempfile.mkdtemp(prefix="heddle_")
    return TempDirectory(custom_path)
