"""The build backend of bindings/python: scikit-build-core's, called in the root of the repository."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
if not (ROOT / "pyproject.toml").is_file() or not (ROOT / "CMakeLists.txt").is_file():
    raise RuntimeError(f"heddle is built from its whole repository, and {ROOT} is not that: run pip in a clone, or in an "
                       "archive of sources made from one")
os.chdir(ROOT)  # installers run a backend in a process of its own, and hand it absolute paths

from scikit_build_core.build import *  # noqa: E402,F403 pylint: disable=wildcard-import,wrong-import-position
