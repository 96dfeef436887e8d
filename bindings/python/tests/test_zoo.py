"""Models that scripts/zoo exported, kept as graphs with weights by seed (tests/zoo): Heddle gives what ONNX Runtime does.

timeout: 300
"""
import gzip
import pathlib
import sys

import heddle
import numpy as np
import onnx
import onnxruntime
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "bench" / "zoo"))
from inputs import feed_of, filled  # noqa: E402  pylint: disable=wrong-import-position

KEPT = sorted((ROOT / "tests" / "zoo").glob("*.onnx.gz"))


def test_models_are_kept():
    assert len(KEPT) >= 30 and sum(path.stat().st_size for path in KEPT) <= 2 << 20


def close(got, want, name):
    """Relative to the greatest number: a network's rounding is that of its sums."""
    assert got.shape == want.shape, (name, got.shape, want.shape)
    if want.dtype.kind in "OUb":
        assert np.array_equal(got, want)
        return
    assert got.dtype == want.dtype
    g, w = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(w)
    assert np.array_equal(np.isfinite(g), finite)
    if finite.any():
        bound = 0.06 if any(word in name for word in ("qdq", "qoperator", "dynamic")) else 0.02 if "float16" in name else 2e-3
        assert np.abs(g - w)[finite].max() <= bound * max(np.abs(w)[finite].max(), 1e-6)


@pytest.mark.parametrize("path", KEPT, ids=[path.name.removesuffix(".onnx.gz") for path in KEPT])
def test_model(path):
    model = filled(onnx.ModelProto.FromString(gzip.decompress(path.read_bytes())))
    feed = feed_of(model)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")  # no sums that stop at 16 bits where the CPU lacks VNNI
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    want = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feed)
    got = heddle.load(model, devices="cpu").run(None, feed)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        if isinstance(w, list):
            assert [list(one) for one in g] == [list(one) for one in w]
        else:
            close(np.asarray(g), np.asarray(w), path.name)
