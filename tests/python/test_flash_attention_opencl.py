"""Attention in one pass over tiles of keys, on PoCL, against its description in float64: sizes beside those of tiles, shared
heads, masks, caches, lengths, softcap, halves, and numbers that are none. The operator stays whole because of an attribute
or operand that the optimiser does not take apart.
timeout: 600
labels: slow ctypes
"""
import ml_dtypes
import numpy as np
import pytest
from onnx import helper

import pocl

pocl.in_process()

import capi  # noqa: E402
import onnx_files as files  # noqa: E402

NUMBERS = {np.dtype(np.float32): 1, np.dtype(np.float16): 10, np.dtype(np.bool_): 9, np.dtype(np.int64): 7, np.dtype(ml_dtypes.bfloat16): 16}
NEAR = {"float32": 2e-5, "float16": 3e-3, "bfloat16": 3e-2}


@pytest.fixture(scope="module")
def place():
    pocl.need()
    ctx = capi.Context()
    yield ctx, "opencl:0"
    ctx.close()


def run(place, tmp_path, x, **attrs):
    names = [n if n in x else "" for n in ("q", "k", "v", "m", "pk", "pv", "n")]
    while names[-1] == "":
        names.pop()
    node = helper.make_node("Attention", names, ["y"], **attrs)
    infos = [helper.make_tensor_value_info(n, NUMBERS[a.dtype], a.shape) for n, a in x.items()]
    proto = helper.make_model(helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", NUMBERS[x["q"].dtype], None)]),
                              opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
    made = []
    try:
        made.append(capi.Model.load(place[0], files.save(tmp_path, proto), devices=place[1]))
        made.append(capi.Executor(made[0]))
        for n, a in x.items():
            made[1].set_input(n, a)
        made[1].run()
        return np.array(made[1].outputs()[0]).astype(np.float64)
    finally:
        for thing in reversed(made):
            thing.close()


def wanted(x, softcap=0.0, is_causal=0):
    q, k, v = (x[n].astype(np.float64) for n in "qkv")
    past = 0
    if "pk" in x:
        past = x["pk"].shape[2]
        k, v = np.concatenate([x["pk"].astype(np.float64), k], 2), np.concatenate([x["pv"].astype(np.float64), v], 2)
    b, h, s, d = q.shape
    k, v = (np.repeat(t, h // t.shape[1], 1) for t in (k, v))
    total = k.shape[2]
    score = q @ k.swapaxes(-1, -2) / np.sqrt(d)
    if softcap:
        score = softcap * np.tanh(score / softcap)
    valid = x["n"] if "n" in x else np.full(b, total)
    at = np.arange(s)[None] + (valid[:, None] - s if "n" in x else past)
    j = np.arange(total)
    hidden = np.broadcast_to(j >= valid[:, None, None], (b, s, total)).copy()
    hidden |= (j > at[..., None]) & bool(is_causal)
    hidden = np.broadcast_to(hidden[:, None], score.shape).copy()
    if "m" in x:
        m = x["m"]
        if m.dtype == bool:
            hidden |= ~np.broadcast_to(m, score.shape)
        else:
            score = score + m.astype(np.float64)
    score[hidden] = -np.inf
    most = score.max(-1, keepdims=True)
    part = np.where(score == -np.inf, 0, np.exp(score - np.where(most == -np.inf, 0, most)))
    whole = part.sum(-1, keepdims=True)
    part = np.divide(part, whole, out=np.zeros_like(part), where=whole != 0)
    return np.einsum("bhsj,bhjsd->bhsd", part, np.where(part[..., None].transpose(0, 1, 3, 2, 4) == 0, 0, v[:, :, :, None]))


def operands(seed, b, h, kv, s, t, d, wide, dtype=np.float32, past=0):
    rng = np.random.default_rng(seed)
    shapes = {"q": (b, h, s, d), "k": (b, kv, t, d), "v": (b, kv, t, wide)}
    if past:
        shapes |= {"pk": (b, kv, past, d), "pv": (b, kv, past, wide)}
    return {n: rng.standard_normal(shape).astype(dtype) for n, shape in shapes.items()}


def check(place, tmp_path, x, **attrs):
    got, want = run(place, tmp_path, x, **attrs), wanted(x, **attrs)
    near = NEAR[x["q"].dtype.name]
    np.testing.assert_allclose(got, want, rtol=near, atol=near)


CAP = {"softcap": 3.0}


def test_sizes(place, tmp_path):
    for b, h, kv, s, t, d, wide in ((1, 2, 2, 33, 65, 16, 16), (2, 6, 2, 3, 130, 20, 12), (1, 3, 1, 1, 7, 5, 1), (1, 2, 1, 40, 64, 48, 64),
                                    (1, 1, 1, 9, 70, 17, 130)):
        check(place, tmp_path, operands(s, b, h, kv, s, t, d, wide), **CAP)
        check(place, tmp_path, operands(s + 1, b, h, kv, s, t, d, wide), is_causal=1, **CAP)


def test_masks_and_caches(place, tmp_path):
    rng = np.random.default_rng(3)
    for past in (0, 70):
        x = operands(5, 2, 4, 2, 11, 11, 16, 16, past=past)
        total = past + 11
        for shape in ((total,), (11, total), (4, 1, total), (2, 1, 11, total), (2, 4, 1, 1)):
            check(place, tmp_path, x | {"m": rng.standard_normal(shape).astype(np.float32)}, **CAP)
        for attrs in ({}, {"is_causal": 1}):
            mask = rng.random((11, total)) < 0.6
            mask[3] = False  # a query without keys: zeros
            check(place, tmp_path, x | {"m": mask}, **attrs, **CAP)
    x = operands(6, 3, 2, 1, 4, 100, 16, 16) | {"n": np.array([100, 65, 2])}
    check(place, tmp_path, x, **CAP)
    check(place, tmp_path, x, is_causal=1, **CAP)


@pytest.mark.parametrize("dtype", (np.float16, ml_dtypes.bfloat16))
def test_halves(place, tmp_path, dtype):
    check(place, tmp_path, operands(7, 1, 4, 2, 12, 90, 16, 16, dtype), is_causal=1, **CAP)


def test_numbers_that_are_none(place, tmp_path):
    x = operands(8, 1, 1, 1, 10, 80, 16, 16)
    x["v"][0, 0, 70] = np.nan  # seen by none
    x["v"][0, 0, 3, 5] = np.inf
    mask = np.ones((10, 80), np.bool_)
    mask[:, 70] = False
    mask[:5, 3] = False
    check(place, tmp_path, x | {"m": mask}, **CAP)
    x = operands(9, 1, 1, 1, 4, 80, 16, 16)
    x["k"][0, 0, 66] = np.nan  # of which every query has NaN
    assert np.isnan(run(place, tmp_path, x, **CAP)).all()
    x = operands(10, 1, 1, 1, 2, 70, 16, 16)
    x["m"] = np.zeros((2, 70), np.float32)
    x["m"][0] = -1e30  # small, and no mask
    check(place, tmp_path, x, **CAP)
