"""A model on the plugin rocm over HIP on CUDA, which here goes to the double of CUDA's driver and to that of NVRTC: what
scripts/gpu-test does with a real GPU.
timeout: 300"""

import json

import numpy as np
import pytest

from gpu_doubles import CUDA, ENV, FAKES, NVRTC, PLUGINS, REAL
from tool_case import DIGITS, good

SHIM = FAKES / "hip_on_cuda" / "libamdhip64.so"


def test_digits(tmp_path):
    if REAL:
        pytest.skip("this is for the doubles")
    if not all(path.exists() for path in (SHIM, CUDA, NVRTC, PLUGINS / "libheddle_plugin_rocm.so")):
        pytest.skip("HIP on CUDA or the double of CUDA's driver is not built")
    np.save(tmp_path / "image.npy", np.load(DIGITS.parent / "images.npy")[:1].astype(np.float32))
    env = {**ENV, "HEDDLE_ROCM_DRIVER": str(SHIM), "HEDDLE_ROCM_HIPRTC": str(SHIM),
           "FAKE_GPU_REPORT": str(tmp_path / "report.json")}
    good("run", DIGITS, "--params", DIGITS.with_suffix(".params"), "--input", f"image={tmp_path / 'image.npy'}",
         "--device", "cpu,rocm:0,rocm:1", "--place", "wide*=rocm:0", "--place", "fine*=rocm:1", "--place", "mix*=rocm:0",
         "--output-dir", tmp_path, **env)
    np.testing.assert_allclose(np.load(tmp_path / "output_0.npy"), np.load(DIGITS.parent / "expected.npy")[:1], rtol=1e-4,
                               atol=1e-5)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["driver"] == "cuda" and report["kernels"] > 0 and report["misuse"] == 0, report
    left = {kind: n for kind, n in report["live"].items() if kind != "contexts"}  # HIP keeps a device's for good
    assert not any(left.values()), left
