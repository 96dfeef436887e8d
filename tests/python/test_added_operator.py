"""An operator that Heddle does not have, added by one entry in one file of operators/: it runs on the devices here, alone, in
chains and in expressions, in the types of its entry. Another one, of ONNX's domain, is read from a model too: its result's type and
dimensions are known to the reader, Transposes move past it, and it is refused in models of an opset before its own.

labels: slow soak
timeout: 900
"""
import os
import pathlib
import shutil
import subprocess
import sys

import lavapipe

SOURCE = pathlib.Path(__file__).resolve().parents[2]
ENTRY = """OPERATOR(OWN, Bent, REAL, elementwise, elementwise, unary, MAP, 8, 1, 1)
  SINCE(OWN, Bent, 1, 1, 1, 1, 1, 1, 0, TENSOR, general, "slope:float")
  SCALAR(Bent, REAL, 1, 8, alpha * (S_SQRT(a * a + S_NUM(1.0)) - S_NUM(1.0)) + a)
  SCALAR_ATTRIBUTES(Bent, slope, 0.5, none, 0.0)
OPERATOR(ONNX, Bend, REAL, elementwise, elementwise, unary, MAP, 8, 1, 1)
  SINCE(ONNX, Bend, 18, LAST, 1, 1, 1, 1, 0, TENSOR, general, "slope:float")
  SCALAR(Bend, REAL, 1, 8, alpha * (S_SQRT(a * a + S_NUM(1.0)) - S_NUM(1.0)) + a)
  SCALAR_ATTRIBUTES(Bend, slope, 0.5, none, 0.0)
"""
DEVICES = {"cpu": "cpu", "sim": "sim:0", "opencl": "opencl:0", "vulkan": "vulkan:0"}


def plugin(build, name):
    return build / "lib" / "heddle" / "plugins" / f"libheddle_plugin_{name}.so"


def test_one_entry_is_enough(tmp_path):
    operators, build = tmp_path / "operators", tmp_path / "build"
    operators.mkdir()
    for path in (SOURCE / "operators").glob("*.def"):
        shutil.copy(path, operators)
    with open(operators / "own.def", "a") as f:
        f.write(ENTRY)

    def call(*words, **more):
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)
        assert done.returncode == 0, (words, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout

    call("cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", f"-DHEDDLE_OPERATORS_DIR={operators}")
    here = [name for name in DEVICES if plugin(pathlib.Path(os.environ["HEDDLE_BUILD"]), name).exists()]
    if "vulkan" in here and not lavapipe.there():
        here.remove("vulkan")
    call("cmake", "--build", build, "--target", "heddle", "heddle_tool", "heddle_check", *[f"heddle_plugin_{name}" for name in here])
    folders = [str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    text = call(sys.executable, __file__, *here, env={
        **{k: v for k, v in os.environ.items() if k != "HEDDLE_PLUGIN_PATH"}, "HEDDLE_BUILD": str(build),
        "PYTHONPATH": os.pathsep.join(folders)})
    print(text)
    assert all(f"{name}: float32 float16 float64" in text for name in here)
    for name in here:
        for op in "heddle.Bent", "Bend":
            said = call(build / "bin" / "heddle", "check-plugin", plugin(build, name), "--only", f"numerics/run:{op}",
                        "--timeout", "60", env={**os.environ, **lavapipe.environment()})
            assert f"pass  numerics/run:{op}" in said, said


def bent(x, slope):
    import numpy as np
    return slope * (np.sqrt(x.astype(np.float64) ** 2 + 1) - 1) + x


def check_model(ctx, devices, folder):
    """Read from ONNX, with Transposes around it, and before an operator that asks for the type of its operand."""
    import capi
    import numpy as np
    import onnx
    from onnx import helper

    def load(nodes, opset, dtype=np.float64):
        info = [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [2, 3]),
                helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)]
        model = helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:]), ir_version=8,
                                  opset_imports=[helper.make_opsetid("", opset)])
        onnx.save(model, folder / "bend.onnx")
        return capi.Model.load(ctx, folder / "bend.onnx", devices=devices)

    node = helper.make_node
    x = np.linspace(-3, 3, 6).reshape(2, 3)
    made = load([node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Bend", ["t"], ["b"], slope=0.25), node("Exp", ["b"], ["e"]),
                 node("Transpose", ["e"], ["y"], perm=[1, 0])], 18, np.float32)
    executor = capi.Executor(made)
    executor.set_input("x", x.astype(np.float32))
    executor.run()
    assert np.allclose(executor.outputs()[0], np.exp(bent(x, 0.25)), rtol=1e-5)
    assert "t" not in [r["label"] for r in made.explain_json()["regions"]]  # of the first Transpose
    executor.close(), made.close()
    made = load([node("Bend", ["x"], ["b"]), node("Mean", ["b", "x"], ["y"])], 18)  # Mean asks for the type of its first operand
    made.close()
    try:
        load([node("Bend", ["x"], ["y"])], 17)
    except capi.HeddleError as e:
        assert "is not known in opset 17" in str(e)
    else:
        raise AssertionError("Bend of opset 17 is read")


def child(names):
    import pathlib
    import tempfile

    import numpy as np
    import pocl

    pocl.in_process()
    lavapipe.in_process()
    import capi
    import fused

    ctx = capi.Context(cpu__onednn="off")
    for name in names:
        done = []
        for dtype, most in ((np.float32, 1e-6), (np.float16, 1e-3), (np.float64, 1e-12)):
            x = np.linspace(-4, 4, 33).astype(dtype)
            for attrs in {}, {"slope": 0.25}:
                b = fused.Builder()
                (y,), _ = fused.run(ctx, b, [b.add("Bent", [b.null("x", x)], "heddle", **attrs)], {"x": x}, DEVICES[name])
                want = bent(x, attrs.get("slope", 0.5))
                assert y.dtype == dtype and np.all(np.abs(y - want) <= most * (1 + np.abs(want))), (name, dtype, y - want)
            done.append(np.dtype(dtype).name)
        x = np.linspace(-4, 4, 33).astype(np.float32)
        b = fused.Builder()
        head = b.add("FusedElementwise", [b.null("x", x)], "heddle", expression="Neg(Bent(x0, slope=0.25))")
        (y,), _ = fused.run(ctx, b, [head], {"x": x}, DEVICES[name])
        fused.close(name, y, -bent(x, 0.25))
        b = fused.Builder()
        head = b.add("Neg", [b.add("Bent", [b.null("x", x)], "heddle", slope=0.25)])
        (y,), plan = fused.run(ctx, b, [head], {"x": x}, DEVICES[name])
        fused.close(name, y, -bent(x, 0.25))
        assert name == "sim" or len([s for s in plan["steps"] if s["kind"] == "op"]) == 1, plan  # sim fuses nothing
        with tempfile.TemporaryDirectory() as folder:
            check_model(ctx, DEVICES[name] + ",cpu", pathlib.Path(folder))
        print(f"{name}: {' '.join(done)}")
    ctx.close()


if __name__ == "__main__":
    child(sys.argv[1:])
