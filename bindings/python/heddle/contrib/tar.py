"""What deploy scripts take from `tvm.contrib.tar`: the archives that export_library("lib.tar") writes."""
from __future__ import annotations

import os
import tarfile

from ..errors import FormatError

__all__ = ["tar", "untar"]


def tar(output: str | os.PathLike, files: str | os.PathLike | list[str | os.PathLike]) -> None:
    """Writes files, each under its last name, into an archive."""
    with tarfile.open(output, "w") as archive:
        for path in [files] if isinstance(files, (str, os.PathLike)) else files:
            archive.add(path, arcname=os.path.basename(path))


def untar(tar_file: str | os.PathLike, directory: str | os.PathLike) -> list[str]:
    """Takes the plain files out of an archive, each under its last name, so that none lands elsewhere; gives their paths.
    FormatError, a ValueError: it is no archive."""
    found = []
    try:
        with tarfile.open(tar_file) as archive:
            for member in archive:
                source = archive.extractfile(member) if member.isfile() else None
                if source is None:
                    continue
                found.append(os.path.join(os.fspath(directory), os.path.basename(member.name)))
                with open(found[-1], "wb") as target:
                    target.write(source.read())
    except tarfile.TarError as error:
        raise FormatError(f"{os.fspath(tar_file)}: this is no tar archive: {error}") from None
    return found
