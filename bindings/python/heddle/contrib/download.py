"""What tutorials take from `tvm.contrib.download`: files from the web, kept in a folder."""
from __future__ import annotations

import os
import pathlib
import tempfile
import time
import urllib.error
import urllib.request

__all__ = ["download", "download_testdata"]

_SECONDS = 60  # without a byte


def download(url: str, path: str | os.PathLike[str], overwrite: bool = False, size_compare: bool = False,
             retries: int = 3) -> None:
    """Fetches a URL (http, https or file) into path; a file that is there stays, unless overwrite, or size_compare
    and the other has another size. The file is whole or not there. OSError where it fails `retries` times."""
    target = pathlib.Path(path)
    if target.is_file() and not overwrite and not size_compare:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in range(max(retries, 1) - 1, -1, -1):
        try:
            return _fetch(url, target, target.stat().st_size if size_compare and not overwrite and target.is_file() else -1)
        except OSError as error:
            if left == 0 or (isinstance(error, urllib.error.HTTPError) and error.code < 500):
                raise
            time.sleep(0.5)


def _fetch(url: str, target: pathlib.Path, size: int) -> None:
    handle, part = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    try:
        with os.fdopen(handle, "wb") as file, urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            told = answer.headers.get("Content-Length")
            if told is not None and int(told) == size:
                return
            while block := answer.read(1 << 16):
                file.write(block)
            if told is not None and file.tell() != int(told):
                raise OSError(f"{url}: {file.tell()} of {told} bytes came")
        os.chmod(part, 0o644)
        os.replace(part, target)
    finally:
        pathlib.Path(part).unlink(missing_ok=True)


def download_testdata(url: str, relpath: str, module: str | list[str] | tuple[str, ...] | None = None,
                      overwrite: bool = False) -> str:
    """The path of a file from the web in the folder ~/.tvm_test_data, or the one that TEST_DATA_ROOT_PATH names:
    relpath, below `module` where that is given. Errors as of download."""
    root = pathlib.Path(os.environ.get("TEST_DATA_ROOT_PATH") or pathlib.Path.home() / ".tvm_test_data")
    below = [] if module is None else [module] if isinstance(module, str) else list(module)
    target = root.joinpath(*below, relpath)
    download(url, target, overwrite=overwrite)
    return str(target)
