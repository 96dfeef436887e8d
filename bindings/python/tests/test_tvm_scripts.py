"""Scripts as a user of TVM v0.14 has them, run with nothing but their import lines changed: on libraries, graphs and
parameters as TVM writes them, with numpy's results.
timeout: 300
"""
import importlib
import os
import pathlib
import re
import subprocess
import sys

import pytest

import tvm_script
from tvm_models import ROOT, legacy, write_files, write_heterogeneous

SCRIPTS = sorted((pathlib.Path(__file__).parent / "tvm_scripts").glob("*.py"))

pytestmark = [pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with"),
              pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("tvm"))


@pytest.mark.parametrize("script", [s for s in SCRIPTS if s.stem != "heterogeneous"], ids=lambda s: s.stem)
def test_script(script, folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", sys.argv)
    tvm_script.run(script, folder)
    assert capsys.readouterr().out.splitlines()[-1].startswith("ok")


def test_the_command_in_the_docs_makes_the_same_change():
    text = (ROOT / "docs" / "coming-from-tvm.md").read_text()
    words, = re.findall(r"sed -i -E '([^']+)' deploy.py", text)
    for script in SCRIPTS:
        done = subprocess.run(["sed", "-E", words, str(script)], capture_output=True, text=True, check=True)
        assert done.stdout == tvm_script.changed(script) and "import heddle as tvm" in done.stdout


def test_heterogeneous(tmp_path):
    """A program of its own, since OpenCL is to be PoCL's there."""
    import pocl
    pocl.need()
    script = pathlib.Path(__file__).parent / "tvm_scripts" / "heterogeneous.py"
    env = {**os.environ, **pocl.ENV}
    if "ASAN_OPTIONS" in env:
        env["ASAN_OPTIONS"] += ":detect_leaks=0"
    done = subprocess.run([sys.executable, tvm_script.__file__, str(script), str(write_heterogeneous(tmp_path))],
                          capture_output=True, text=True, timeout=240, env=env)
    assert done.returncode == 0 and done.stdout.strip() == "ok", done.stdout + done.stderr


def test_every_name_of_tvms_is_there():
    import heddle
    from heddle import _tvm_names
    for name in _tvm_names.NAMES:
        assert getattr(heddle, name) is not None
    for name, words in (("tir", "compiled with TVM"), ("no_such_name", "no attribute 'no_such_name'")):
        with pytest.raises(AttributeError, match=words):
            getattr(heddle, name)
    for module in ("contrib.graph_runtime", "contrib.util", "contrib.debugger.debug_runtime", "graph_runtime",
                   "_ffi.registry", "_ffi.base", "_ffi.runtime_ctypes", "contrib.cuda_graph.cuda_graph_executor"):
        found = importlib.import_module(f"heddle.{module}")
        assert all(getattr(found, name) is not None for name in found.__all__)
    with pytest.raises(AttributeError, match="TVM"):
        heddle.relay.build
    with pytest.raises(AttributeError, match="no_such_mark"):
        heddle.testing.no_such_mark
    with pytest.raises(AttributeError, match="heddle.contrib"):
        heddle.contrib.no_such_module
    assert heddle.contrib.debugger.debug_executor.create is heddle.debug_executor.create


def test_names_that_scripts_reach_without_importing_them():
    """In a process of its own: here other tests have imported them."""
    names = ("_ffi.registry.get_global_func", "_ffi.base.string_types", "_ffi.runtime_ctypes.Device", "runtime.profiling.Report",
             "contrib.debugger.debug_executor.create", "contrib.download.download", "error.InternalError", "support.libinfo")
    for name in names:
        subprocess.run([sys.executable, "-c", f"import heddle as tvm; tvm.{name}"], check=True, timeout=60)


def test_a_download_is_whole_or_not_there(tmp_path):
    from heddle.contrib import download
    (tmp_path / "a").write_bytes(b"12345")
    target, url = tmp_path / "deep" / "b", (tmp_path / "a").as_uri()
    with pytest.raises(OSError):
        download.download((tmp_path / "none").as_uri(), target, retries=1)
    assert list(target.parent.iterdir()) == []
    download.download(url, str(target))
    (tmp_path / "a").write_bytes(b"678")
    download.download(url, target)
    assert target.read_bytes() == b"12345"
    download.download(url, target, size_compare=True)
    assert target.read_bytes() == b"678" and list(target.parent.iterdir()) == [target]
    (tmp_path / "a").write_bytes(b"9ab")
    download.download(url, target, size_compare=True)
    assert target.read_bytes() == b"678"
    download.download(url, target, overwrite=True)
    assert target.read_bytes() == b"9ab"
