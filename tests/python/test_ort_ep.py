"""libheddle_ort_ep, Heddle as an execution provider of the real ONNX Runtime: mixed graphs, threads, options, and errors.
Expected outputs are numpy's and those of ONNX Runtime's own provider. test_ort_ep_cases.py runs ONNX's own cases.

labels: slow
timeout: 300
"""
import json
import os
import subprocess
import sys
import threading

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tool_case import BUILD

LIBRARY = BUILD / "lib" / "libheddle_ort_ep.so"
NAME = "HeddleExecutionProvider"
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.skipif(not LIBRARY.exists(), reason="the execution provider is not built"),
              pytest.mark.skipif(bool(os.environ.get("HEDDLE_SANITIZE")), reason="onnxruntime is not built with sanitizers")]


@pytest.fixture(scope="module")
def devices():
    onnxruntime.set_default_logger_severity(4)
    onnxruntime.register_execution_provider_library("heddle", str(LIBRARY))
    yield [d for d in onnxruntime.get_ep_devices() if d.ep_name == NAME]
    onnxruntime.unregister_execution_provider_library("heddle")


def session_of(devices, model, **options):
    chosen = onnxruntime.SessionOptions()
    chosen.add_provider_for_devices(devices[:1], options)
    chosen.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    made = onnxruntime.InferenceSession(model if isinstance(model, bytes) else model.SerializeToString(), sess_options=chosen)
    made.disable_fallback()
    return made


def reference(model, inputs):
    plain = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return plain.run(None, inputs)


def model_of(nodes, inputs, outputs, constants=(), opset=17, domains=()):
    values = [[helper.make_tensor_value_info(n, t, s) for n, t, s in some] for some in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *values, [numpy_helper.from_array(a, n) for n, a in constants])
    sets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    return helper.make_model(graph, opset_imports=sets, ir_version=8)


def close(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, a.shape, b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def claimed(session):
    """The operators that the provider was given."""
    return [node.op_type for part in session.get_provider_graph_assignment_info() if part.ep_name == NAME
            for node in part.get_nodes()]


def mixed():
    """A graph with an operator of another domain, and with strings, which stay in ONNX Runtime."""
    weights = np.random.default_rng(1).standard_normal((64, 32)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("QuickGelu", ["b"], ["s"], domain="com.microsoft"),
             helper.make_node("Identity", ["t"], ["u"]),
             helper.make_node("Add", ["s", "b"], ["c"]), helper.make_node("Softmax", ["c"], ["y"], axis=-1)]
    return model_of(nodes, [("x", TensorProto.FLOAT, ["n", 64]), ("t", TensorProto.STRING, [2])],
                    [("y", TensorProto.FLOAT, ["n", 32]), ("u", TensorProto.STRING, [2])], [("w", weights)],
                    domains=["com.microsoft"])


@pytest.mark.parametrize("device", ["", "cpu", "sim", "sim:0,cpu"])
def test_lengths_that_change(devices, device):
    session = session_of(devices, mixed(), **({"device": device} if device else {}))
    assert session.get_providers()[0] == NAME and "MatMul" in claimed(session) and "Softmax" in claimed(session)
    assert "Identity" not in claimed(session)
    for n in 3, 7, 1, 3:
        x = np.random.default_rng(n).standard_normal((n, 64)).astype(np.float32)
        inputs = {"x": x, "t": np.array(["a", "b"], dtype=object)}
        got, want = session.run(None, inputs), reference(mixed(), inputs)
        close(got[:1], want[:1])
        assert list(got[1]) == ["a", "b"]


def test_parts_do_not_enter_a_path_twice(devices):
    """x -> Neg -> (left to ONNX Runtime) -> Add, and Neg -> Add beside: Neg and Add may not be one node."""
    then = helper.make_graph([helper.make_node("Abs", ["n"], ["p"])], "then", [], [helper.make_tensor_value_info("p", 1, [4])])
    other = helper.make_graph([helper.make_node("Exp", ["n"], ["q"])], "else", [], [helper.make_tensor_value_info("q", 1, [4])])
    model = model_of([helper.make_node("Neg", ["x"], ["n"]), helper.make_node("If", ["c"], ["i"], then_branch=then, else_branch=other),
                      helper.make_node("Add", ["n", "i"], ["y"])],
                     [("x", TensorProto.FLOAT, [4]), ("c", TensorProto.BOOL, [])], [("y", TensorProto.FLOAT, [4])])
    session = session_of(devices, model)
    assert sorted(claimed(session)) == ["Add", "Neg"]
    for c in True, False:
        inputs = {"x": np.arange(4, dtype=np.float32), "c": np.array(c)}
        close(session.run(None, inputs), reference(model, inputs))


def test_threads_share_a_session(devices):
    session, wrong = session_of(devices, mixed()), []
    text = np.array(["a", "b"], dtype=object)

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(10):
            x = rng.standard_normal((1 + seed, 64)).astype(np.float32)
            a = np.maximum(x @ numpy_helper.to_array(mixed().graph.initializer[0]), 0).astype(np.float64)
            z = a / (1 + np.exp(-1.702 * a)) + a
            e = np.exp(z - z.max(-1, keepdims=True))
            if not np.allclose(session.run(["y"], {"x": x, "t": text})[0], e / e.sum(-1, keepdims=True), atol=1e-5):
                wrong.append(seed)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_large_weights_are_constants(devices):
    """A Conv whose weights are larger than what is tried alone, and a Resize whose scales must be known."""
    rng = np.random.default_rng(0)
    model = model_of([helper.make_node("Conv", ["x", "w"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
                      helper.make_node("Resize", ["a", "", "k"], ["y"], mode="nearest")],
                     [("x", TensorProto.FLOAT, [1, 16, 8, 8])], [("y", TensorProto.FLOAT, None)],
                     [("w", rng.standard_normal((32, 16, 3, 3)).astype(np.float32)), ("k", np.array([1, 1, 2, 2], np.float32))])
    session = session_of(devices, model)
    assert sorted(claimed(session)) == ["Conv", "Resize"]
    inputs = {"x": rng.standard_normal((1, 16, 8, 8)).astype(np.float32)}
    close(session.run(None, inputs), reference(model, inputs))


@pytest.mark.parametrize("options, text", [({"devise": "cpu"}, "has no option 'devise'"), ({"device": "nosuch:0"}, "nosuch")])
def test_options_are_checked(devices, options, text):
    with pytest.raises(Exception, match=text):
        session = session_of(devices, mixed(), **options)
        session.run(None, {"x": np.zeros((1, 64), np.float32), "t": np.array(["a", "b"], dtype=object)})


def test_the_python_package_registers_it():
    """In a process of its own: the library stays registered there."""
    code = ("import json, onnxruntime, numpy\nfrom heddle import execution_provider as e\n"
            "d = e.register(); assert [x.ep_name for x in e.register()] == [x.ep_name for x in d]\n"
            "print(json.dumps([e.path(), [x.ep_name for x in d]]))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    assert done.returncode == 0, done.stderr
    found, names = json.loads(done.stdout)
    assert os.path.samefile(found, LIBRARY) and names == [NAME]
