"""The command-line tool of the wheel: the script "heddle" becomes the program that lies beside the package's libraries."""

import os
import pathlib
import sys


def path() -> str:
    """Where the tool is: in the wheel, or in the build tree that the package was made in."""
    here = pathlib.Path(__file__).resolve().parent
    # PACKAGE/bin in a wheel; BUILD/python/heddle beside BUILD/bin in a build tree.
    for folder in (here, pathlib.Path(__file__).parent.absolute().parents[1]):
        tool = folder / "bin" / "heddle"
        if tool.is_file():
            return str(tool)
    raise FileNotFoundError(f"the tool heddle is not in {here / 'bin'}; the package is not installed whole")


def main() -> None:
    """Ends this program and goes on as the tool, with the same words, environment and open files."""
    try:
        tool = path()
        os.execv(tool, [sys.argv[0], *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"heddle: {error}")


if __name__ == "__main__":
    main()
