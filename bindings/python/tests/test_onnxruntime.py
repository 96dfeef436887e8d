"""heddle.onnxruntime beside ONNX Runtime itself: the same calls, the same results, the same classes of exceptions."""
import pathlib
import subprocess
import sys
import threading
import time
import warnings

import heddle.onnxruntime as ours
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

theirs = pytest.importorskip("onnxruntime")
theirs.set_default_logger_severity(4)
BOTH = pytest.mark.parametrize("ort", [ours, theirs], ids=["heddle", "onnxruntime"])
F = TensorProto.FLOAT
X, Y = np.ones((2, 3), np.float32), np.arange(3, dtype=np.float32)


def model(nodes, inputs, outputs, weights=(), imports=(("", 17),), **more):
    values = [[helper.make_tensor_value_info(*one) for one in many] for many in (inputs, outputs)]
    graph = helper.make_graph(nodes, "the_graph", *values, [numpy_helper.from_array(value, name) for name, value in weights],
                              doc_string="of a test")
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid(*one) for one in imports], ir_version=8, **more)
    return proto


def total(**more):
    return model([helper.make_node("Add", ["x", "y"], ["z"]), helper.make_node("Neg", ["z"], ["n"])],
                 [("x", F, ["rows", 3]), ("y", F, [3])], [("z", F, ["rows", 3]), ("n", F, ["rows", 3])], **more)


DATA = total(producer_name="maker", doc_string="words", model_version=7, domain="org.example").SerializeToString()


def outcome(ort, call):
    """What a call gives: values, or the class of its exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return [np.asarray(one).tolist() for one in call(ort)]
        except Exception as error:  # pylint: disable=broad-exception-caught
            return type(error).__name__


RUNS = {
    "all": lambda s: s.run(None, {"x": X, "y": Y}),
    "an empty list is all": lambda s: s.run([], {"x": X, "y": Y}),
    "one": lambda s: s.run(["n"], {"x": X, "y": Y}),
    "other order, and twice": lambda s: s.run(["n", "z", "n"], {"y": Y, "x": X}),
    "lists": lambda s: s.run(None, {"x": X.tolist(), "y": Y.tolist()}),
    "columns first": lambda s: s.run(None, {"x": np.asfortranarray(X), "y": Y[::-1]}),
    "no rows": lambda s: s.run(None, {"x": X[:0], "y": Y}),
    "missing": lambda s: s.run(None, {"x": X}),
    "nothing": lambda s: s.run(None, {}),
    "one too many": lambda s: s.run(None, {"x": X, "y": Y, "q": Y}),
    "no such output": lambda s: s.run(["q"], {"x": X, "y": Y}),
    "a str for the outputs": lambda s: s.run("n", {"x": X, "y": Y}),
    "a list for the inputs": lambda s: s.run(None, [X, Y]),
    "float64": lambda s: s.run(None, {"x": X.astype(np.float64), "y": Y}),
    "int32": lambda s: s.run(None, {"x": X, "y": Y.astype(np.int32)}),
    "another size": lambda s: s.run(None, {"x": X[:, :2], "y": Y}),
    "another rank": lambda s: s.run(None, {"x": X[0], "y": Y}),
    "a number": lambda s: s.run(None, {"x": 3.0, "y": Y}),
}


@pytest.mark.parametrize("case", RUNS)
def test_runs(case):
    mine, other = (outcome(ort, lambda ort: RUNS[case](ort.InferenceSession(DATA))) for ort in (ours, theirs))
    assert mine == other


def one_node(op, imports=(("", 17),), kind=F, **attributes):
    return model([helper.make_node(op, ["x"], ["z"], **attributes)], [("x", F, [3])], [("z", kind, [3])], imports=imports)


LOADS = {
    "bytes": DATA, "empty": b"", "garbage": b"hello world", "not a model": 3, "a ModelProto": total(), "no file": "nowhere.onnx",
    "nobody's operator": one_node("Nope").SerializeToString(),
    "nobody's domain": one_node("Nope", domain="a.b").SerializeToString(),
    "nobody's attribute": one_node("Relu", nope=3).SerializeToString(),
    "an opset to come": one_node("Relu", imports=(("", 99),)).SerializeToString(),
}


@pytest.mark.parametrize("case", LOADS)
def test_loads(case):
    def load(ort):
        return [ort.InferenceSession(LOADS[case]).get_inputs()[0].name == "x"]
    assert outcome(ours, load) == outcome(theirs, load)


def test_files(tmp_path):
    good, bad = tmp_path / "good.onnx", tmp_path / "bad.onnx"
    good.write_bytes(DATA)
    bad.write_bytes(DATA[:-20] + b"\xff" * 20)
    for form in (good, str(good), bad, str(bad)):
        def run(ort, form=form):
            return ort.InferenceSession(form).run(None, {"x": X, "y": Y})
        assert outcome(ours, run) == outcome(theirs, run)


def test_failures_in_a_run():
    info = TensorProto.INT64
    for op, inputs, feed in (("Gather", [("x", F, [3]), ("i", info, ["k"])], {"x": Y, "i": np.array([5])}),
                             ("Reshape", [("x", F, [3]), ("i", info, [2])], {"x": Y, "i": np.array([5, 7])}),
                             ("Add", [("x", F, ["a"]), ("i", F, ["b"])], {"x": Y, "i": Y[:2]})):
        data = model([helper.make_node(op, ["x", "i"], ["z"])], inputs, [("z", F, None)]).SerializeToString()

        def run(ort, data=data, feed=feed):
            return ort.InferenceSession(data).run(None, feed)
        assert outcome(ours, run) == outcome(theirs, run)
    with pytest.raises(ours.capi.onnxruntime_pybind11_state.InvalidArgument) as caught:
        ours.InferenceSession(DATA).run(None, {"x": X[:, :2], "y": Y})
    assert "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT" in str(caught.value) and "Got: 2 Expected: 3" in str(caught.value)


def test_what_a_model_is():
    mine, other = ours.InferenceSession(DATA), theirs.InferenceSession(DATA)
    for of in (lambda s: s.get_inputs(), lambda s: s.get_outputs(), lambda s: s.get_overridable_initializers()):
        assert [(one.name, one.shape, one.type) for one in of(mine)] == [(one.name, one.shape, one.type) for one in of(other)]
    assert str(mine.get_inputs()[0]) == str(other.get_inputs()[0])
    for name in ("producer_name", "graph_name", "domain", "description", "graph_description", "version", "custom_metadata_map"):
        assert getattr(mine.get_modelmeta(), name) == getattr(other.get_modelmeta(), name), name
    assert mine.get_providers() == other.get_providers() and mine.get_provider_options() == other.get_provider_options()


def test_metadata_map(tmp_path):
    proto = total()
    helper.set_model_props(proto, {"classes": "a,b", "stride": "32"})
    path = tmp_path / "m.onnx"
    onnx.save(proto, str(path))
    for ort in ours, theirs:
        assert ort.InferenceSession(path).get_modelmeta().custom_metadata_map == {"classes": "a,b", "stride": "32"}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "int64", "uint32",
                                   "uint64", "bool"])
def test_types(dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    data = model([helper.make_node("Identity", ["x"], ["z"])], [("x", kind, [2, "n"])], [("z", kind, [2, "n"])]).SerializeToString()
    x = np.array([[0, 1], [1, 0]], dtype)
    for make in (lambda ort: x, lambda ort: x.tolist()):
        assert outcome(ours, lambda ort, make=make: ort.InferenceSession(data).run(None, {"x": make(ort)})) == outcome(
            theirs, lambda ort, make=make: ort.InferenceSession(data).run(None, {"x": make(ort)}))
    mine, other = ours.InferenceSession(data).get_inputs()[0], theirs.InferenceSession(data).get_inputs()[0]
    assert (mine.type, mine.shape) == (other.type, other.shape)
    for of in (lambda v: v.data_type(), lambda v: v.element_type(), lambda v: v.shape(), lambda v: v.tensor_size_in_bytes(),
               lambda v: v.numpy().tolist(), lambda v: v.is_tensor(), lambda v: v.has_value(), lambda v: v.device_name()):
        assert of(ours.OrtValue.ortvalue_from_numpy(x)) == of(theirs.OrtValue.ortvalue_from_numpy(x))


@BOTH
def test_overridable(ort):
    proto = model([helper.make_node("Add", ["x", "w"], ["z"])], [("x", F, [3]), ("w", F, [3])], [("z", F, [3])], [("w", Y)])
    session = ort.InferenceSession(proto.SerializeToString())
    assert [one.name for one in session.get_inputs()] == ["x"]
    assert [one.name for one in session.get_overridable_initializers()] == ["w"]
    assert session.run(None, {"x": Y})[0].tolist() == [0, 2, 4]
    assert session.run(None, {"x": Y, "w": 2 * Y})[0].tolist() == [0, 3, 6]
    assert session.run(None, {"x": Y})[0].tolist() == [0, 2, 4]


@BOTH
def test_io_binding(ort):
    session = ort.InferenceSession(DATA)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    value = ort.OrtValue.ortvalue_from_numpy(Y.copy())
    binding.bind_ortvalue_input("y", value)
    out = np.zeros((2, 3), np.float32)
    binding.bind_output("n", "cpu", 0, np.float32, out.shape, out.ctypes.data)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    assert (out == -(X + Y)).all()
    assert [one.tolist() for one in binding.copy_outputs_to_cpu()] == [out.tolist(), (X + Y).tolist()]
    value.update_inplace(3 * Y)
    session.run_with_iobinding(binding)
    assert (out == -(X + 3 * Y)).all() and (binding.get_outputs()[1].numpy() == X + 3 * Y).all()
    x = np.ascontiguousarray(2 * X)
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    target = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    binding.bind_ortvalue_output("z", target)
    session.run_with_iobinding(binding)
    assert (target.numpy() == 2 * X + 3 * Y).all()
    binding.clear_binding_outputs()
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    assert [one.shape() for one in binding.get_outputs()] == [[2, 3]]
    for wrong in (lambda: binding.bind_cpu_input("q", X),):
        with pytest.raises(RuntimeError):
            wrong()
    fresh = session.io_binding()
    fresh.bind_cpu_input("x", X)
    fresh.bind_output("z")
    with pytest.raises(RuntimeError):
        session.run_with_iobinding(fresh)


@BOTH
def test_ort_values(ort):
    session = ort.InferenceSession(DATA)
    feed = {"x": ort.OrtValue.ortvalue_from_numpy(X), "y": ort.OrtValue.ortvalue_from_numpy(Y)}
    (n,) = session.run_with_ort_values(["n"], feed)
    assert (n.numpy() == -(X + Y)).all() and n.shape() == [2, 3] and np.from_dlpack(n).shape == (2, 3)
    shared = np.zeros(3, np.float32)
    value = ort.OrtValue.ortvalue_from_numpy(shared)
    shared[:] = 5
    assert value.numpy().tolist() == [5, 5, 5] and value.data_ptr() == shared.ctypes.data


@BOTH
def test_run_async(ort):
    done, got = threading.Event(), []

    def callback(results, user_data, error):
        got.append((results, user_data, error))
        done.set()

    session = ort.InferenceSession(DATA)
    session.run_async(["z"], {"x": X, "y": Y}, callback, "mine")
    assert done.wait(30)
    results, user_data, error = got[0]
    assert (results[0] == X + Y).all() and user_data == "mine" and not error


def slow():
    body = helper.make_graph([helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Neg", ["v"], ["w"])], "body",
                             [helper.make_tensor_value_info("i", TensorProto.INT64, []),
                              helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("v", F, [3])],
                             [helper.make_tensor_value_info("d", TensorProto.BOOL, []), helper.make_tensor_value_info("w", F, [3])])
    return model([helper.make_node("Loop", ["n", "", "x"], ["z"], body=body)], [("x", F, [3]), ("n", TensorProto.INT64, [])],
                 [("z", F, [3])]).SerializeToString()


@BOTH
def test_terminate(ort):
    state, options = ort.capi.onnxruntime_pybind11_state, ort.RunOptions()
    session = ort.InferenceSession(slow())
    options.terminate = True
    with pytest.raises(state.Fail, match="terminate flag"):
        session.run(None, {"x": Y, "n": np.array(3)}, options)
    options.terminate = False
    assert session.run(None, {"x": Y, "n": np.array(2)}, options)[0].tolist() == Y.tolist()
    threading.Timer(0.3, setattr, (options, "terminate", True)).start()
    start = time.monotonic()
    with pytest.raises(state.Fail, match="terminate flag"):
        session.run(None, {"x": Y, "n": np.array(2**40)}, options)
    assert time.monotonic() - start < 20


@BOTH
def test_options(ort, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_free_dimension_override_by_name("rows", 2)
    options.enable_profiling = True
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    session = ort.InferenceSession(DATA, options, providers=["CPUExecutionProvider"])
    assert session.get_session_options().intra_op_num_threads == 1 and session.get_inputs()[0].shape == [2, 3]
    assert (session.run(["z"], {"x": X, "y": Y})[0] == X + Y).all()
    assert pathlib.Path(session.end_profiling()).stat().st_size > 2
    for wrong, kind in ((lambda: setattr(options, "nope", 1), AttributeError), (lambda: options.get_session_config_entry("q"), RuntimeError),
                        (lambda: setattr(options, "intra_op_num_threads", "two"), TypeError)):
        with pytest.raises(kind):
            wrong()


def test_defaults_of_options_are_theirs():
    for kind in ("SessionOptions", "RunOptions"):
        mine, other = getattr(ours, kind)(), getattr(theirs, kind)()
        for name in [n for n in dir(other) if not n.startswith("_") and not callable(getattr(other, n))]:
            value = getattr(other, name)
            assert getattr(mine, name) == (int(value) if hasattr(value, "name") else value), name


@BOTH
def test_providers(ort):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        session = ort.InferenceSession(DATA, providers=["NobodysExecutionProvider", ("CPUExecutionProvider", {}), "CPUExecutionProvider"])
        assert session.get_providers() == ["CPUExecutionProvider"]
        words = [str(one.message) for one in seen]
        assert any("'NobodysExecutionProvider' is not in available provider names" in one for one in words)
        assert any("Duplicate provider 'CPUExecutionProvider'" in one for one in words)
        assert ort.InferenceSession(DATA, providers="CPUExecutionProvider").get_providers() == ["CPUExecutionProvider"]
    assert "CPUExecutionProvider" in ort.get_available_providers() and ort.get_device() in ("CPU", "GPU")
    session.set_providers(["CPUExecutionProvider"])
    assert (session.run(["z"], {"x": X, "y": Y})[0] == X + Y).all()


def test_providers_are_devices():
    session = ours.InferenceSession(DATA, providers=[("SimExecutionProvider", {"device_id": 1}), "CPUExecutionProvider"])
    assert session.get_providers() == ["SimExecutionProvider", "CPUExecutionProvider"] and session.model.devices == ("sim:1", "cpu:0")
    assert (session.run(["z"], {"x": X, "y": Y})[0] == X + Y).all()
    own = ours.InferenceSession(DATA, providers=["HeddleExecutionProvider"], provider_options=[{"devices": "sim:2"}])
    assert own.model.devices == ("sim:2", "cpu:0")
    binding = own.io_binding()
    binding.bind_ortvalue_input("x", ours.OrtValue.ortvalue_from_numpy(X, "sim", 2))
    binding.bind_cpu_input("y", Y)
    binding.bind_output("z", "sim", 2)
    own.run_with_iobinding(binding)
    assert (binding.copy_outputs_to_cpu()[0] == X + Y).all() and binding.get_outputs()[0].device_name() == "sim"


@BOTH
def test_weights_outside_of_bytes(ort, tmp_path):
    proto = model([helper.make_node("Add", ["x", "w"], ["z"])], [("x", F, [300])], [("z", F, [300])],
                  [("w", np.ones(300, np.float32))])
    onnx.save_model(proto, str(tmp_path / "m.onnx"), save_as_external_data=True, location="w.bin", size_threshold=0)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(tmp_path))
    session = ort.InferenceSession((tmp_path / "m.onnx").read_bytes(), options)
    assert session.run(None, {"x": np.zeros(300, np.float32)})[0].sum() == 300


SCRIPT = """
import numpy as np
import {0} as ort
options = ort.SessionOptions()
options.log_severity_level = 3
options.intra_op_num_threads = 1
session = ort.InferenceSession("m.onnx", options, providers=["CPUExecutionProvider"])
names = [one.name for one in session.get_inputs()]
feed = {{one.name: np.ones([n if isinstance(n, int) else 2 for n in one.shape], np.float32) for one in session.get_inputs()}}
for one in session.run([one.name for one in session.get_outputs()], feed):
    print(one.dtype, one.tolist())
try:
    session.run(None, {{names[0]: np.ones((2, 3))}} | {{names[1]: feed[names[1]]}})
except ort.capi.onnxruntime_pybind11_state.InvalidArgument as error:
    print("refused", str(error)[:40])
"""


def test_a_script_with_one_line_changed(tmp_path):
    (tmp_path / "m.onnx").write_bytes(DATA)
    printed = [subprocess.run([sys.executable, "-c", SCRIPT.format(name)], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                              check=True).stdout for name in ("heddle.onnxruntime", "onnxruntime")]
    assert printed[0] == printed[1] and "refused" in printed[0]
