"""ONNX files for tests: models in a line or two, the tool run on them, and ONNX Runtime as the reference.
The tool runs in a process of its own, so ONNX Runtime and libheddle never meet in one."""
import numpy as np
import onnx
import pytest
import tool_case
from onnx import helper, numpy_helper

if not (tool_case.BUILD / "onnx" / "onnx.pb-c.c").exists():
    pytest.skip("the reader of ONNX models is not built", allow_module_level=True)

DEVICE = ("--device", "cpu")


def value(name, array):
    """Describes a value as the array is, or as (numpy type, shape)."""
    dtype, shape = array if isinstance(array, tuple) else (array.dtype, array.shape)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


def model(nodes, inputs, outputs, tensors=None, opset=17, ir=8):
    """inputs: arrays or (type, shape) by name; outputs: names, or (type, shape) by name; tensors: arrays by name."""
    if not isinstance(outputs, dict):
        outputs = {name: (np.float32, None) for name in outputs}
    graph = helper.make_graph(list(nodes), "test", [value(n, a) for n, a in inputs.items()],
                              [value(n, a) for n, a in outputs.items()],
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in (tensors or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def words_for(folder, inputs):
    words = []
    for i, (name, array) in enumerate(inputs.items()):
        np.save(folder / f"input_{i}.npy", array)
        words += ["--input", f"{name}={folder / f'input_{i}.npy'}"]
    return words


def outputs_of(folder):
    return [np.load(folder / f"output_{i}.npy") for i in range(len(list(folder.glob("output_*.npy"))))]


def run(path, inputs, *more, env=None):
    """The outputs of a model's file, by the tool."""
    folder = path.parent / f"{path.stem}-run"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("output_*.npy"):
        old.unlink()
    words = words_for(folder, inputs)
    tool_case.good("run", path, *DEVICE, *words, "--output-dir", folder, *more, **(env or {}))
    return outputs_of(folder)


def save(folder, proto, name="model"):
    path = folder / f"{name}.onnx"
    onnx.save(proto, path)
    return path


def expected(proto, inputs):
    """ONNX Runtime's outputs, without its own optimisations."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")  # no sums that stop at 16 bits where the CPU lacks VNNI
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def same(got, want, rtol=1e-4, atol=1e-5):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.dtype == w.dtype and g.shape == w.shape, (g.dtype, g.shape, w.dtype, w.shape)
        if w.dtype.kind == "f":
            np.testing.assert_allclose(g, w, rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(g, w)
