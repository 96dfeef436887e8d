"""The blocks of code of the pages for Python run as they stand, from first to last, in a folder with a model.onnx.

labels: ctypes
timeout: 300
"""

import pathlib
import re
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "tests" / "python"))
from tool_case import environment  # noqa: E402 pylint: disable=wrong-import-position


def model(path):
    """x [batch, 8] to y [batch, 4], a product and a Relu."""
    rng = np.random.default_rng(3)
    weights = [numpy_helper.from_array(rng.standard_normal(shape, np.float32), name)
               for name, shape in (("w", (8, 4)), ("b", (4,)))]
    graph = helper.make_graph([helper.make_node("Gemm", ["x", "w", "b"], ["h"], "product"),
                               helper.make_node("Relu", ["h"], ["y"], "relu")], "net",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.mark.parametrize("page, needs", [("python", "numpy"), ("coming-from-onnxruntime", "onnxruntime")])
def test_the_blocks_run(page, needs, tmp_path):
    pytest.importorskip(needs)
    blocks = re.findall(r"^```python\n(.*?)^```$", (SOURCE / "docs" / f"{page}.md").read_text(), re.M | re.S)
    assert len(blocks) >= 4
    model(tmp_path / "model.onnx")
    (tmp_path / "page.py").write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, "page.py"], capture_output=True, text=True, timeout=250, cwd=tmp_path,
                          stdin=subprocess.DEVNULL, env=environment())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", ["python", "coming-from-onnxruntime"])
def test_files_that_it_names_are_there(page):
    text = (SOURCE / "docs" / f"{page}.md").read_text()
    names = set(re.findall(r"`((?:scripts|docs|examples|include)/[\w./-]*)`", text))
    assert names and not [n for n in names if not (SOURCE / n).exists()]


@pytest.mark.parametrize("page", ["python", "coming-from-onnxruntime"])
def test_names_that_it_uses_exist(page):
    import heddle  # pylint: disable=import-outside-toplevel
    text = (SOURCE / "docs" / f"{page}.md").read_text()
    names = set(re.findall(r"\bheddle\.([A-Za-z_]\w*)", text)) - {"h"}
    assert len(names) > 5 and not [n for n in names if not hasattr(heddle, n)]
    for word, kind in ("model", heddle.Model), ("executor", heddle.model.Executor), ("tensor", heddle.Tensor), (
            "errors", heddle.errors):
        names = set(re.findall(rf"\b{word}\.([A-Za-z_]\w*)", text)) - {"onnx"}
        assert not [n for n in names if not hasattr(kind, n)], (word, names)
