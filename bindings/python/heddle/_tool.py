"""The command-line tool of the package: the script "heddle" becomes the program that lies beside the libraries."""

import os
import pathlib
import sys

from . import _core


def path() -> str:
    """Where the tool is. FileNotFoundError where the package is not whole."""
    here = pathlib.Path(_core.__file__).parent
    for folder in here, here.parents[1]:  # in a wheel, and in a build tree, which has python/heddle beside bin
        tool = folder / "bin" / "heddle"
        if tool.is_file():
            return str(tool)
    raise FileNotFoundError(f"the tool is not in {here / 'bin'}: the package heddle is not installed whole")


def main() -> None:
    """Ends this program and goes on as the tool, with the same words, environment and open files."""
    os.environ.setdefault("HEDDLE_PYTHON", sys.executable)  # of commands that need this package: --against
    try:
        os.execv(path(), ["heddle", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"heddle: {error}")


if __name__ == "__main__":
    main()
