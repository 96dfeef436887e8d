"""An operator that Heddle does not have, added by one entry in one file of operators/: it runs on the devices here, alone, in
chains and in expressions, in the types of its entry.

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
        said = call(build / "bin" / "heddle", "check-plugin", plugin(build, name), "--only", "numerics/run:heddle.Bent",
                    "--timeout", "60", env={**os.environ, **lavapipe.environment()})
        assert "pass  numerics/run:heddle.Bent" in said, said


def child(names):
    import numpy as np
    import pocl

    pocl.in_process()
    lavapipe.in_process()
    import capi
    import fused

    def bent(x, slope):
        return slope * (np.sqrt(x.astype(np.float64) ** 2 + 1) - 1) + x

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
        print(f"{name}: {' '.join(done)}")
    ctx.close()


if __name__ == "__main__":
    child(sys.argv[1:])
