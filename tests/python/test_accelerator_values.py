"""Random numbers, training, types of 8 bits and less, and operands of several types give on opencl and vulkan what they give on
cpu. HEDDLE_TYPES=all tries all cases and every pair of types, also on opencl; else an eighth on vulkan.

labels: kernels slow
timeout: 1800
"""
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import lavapipe
import pocl
import type_cases
from type_cases import EVERY, NARROW, PLAIN, number

DEVICES = {"opencl": pocl, "vulkan": lavapipe}
REALS = [PLAIN[t] for t in ("float", "double", "float16", "bfloat16")]
AWKWARD = np.array([0, -0.0, 1, -1, 2.5, 3.5, -0.3, 6, 7.4, -8, 15.9, 57344, 61440, 448, 464, 480, -240, 1e9, -1e30, 2.0**-9, 2.0**-10,
                    1.5 * 2.0**-10, 2.0**-17, 2.0**-127, 1.5 * 2.0**-127, 2.0**127, np.inf, -np.inf, np.nan, 0.1, 2.0**-126])


def case(op, operands, results, constants=(), opset=25, **attributes):
    """(model, inputs): operands and results by name, the latter with ONNX's numbers of types."""
    node = helper.make_node(op, list(operands), list(results), name=f"node of {op}", **attributes)
    given = {k: v for k, v in operands.items() if k}
    values = [helper.make_tensor_value_info(k, number(v.dtype), v.shape) for k, v in given.items() if k not in constants]
    outputs = [helper.make_tensor_value_info(k, t, None) for k, t in results.items()]
    graph = helper.make_graph([node], "g", values, outputs, [numpy_helper.from_array(given[k], k) for k in constants])
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=max(10, helper.find_min_ir_version_for(opsets)))
    return model.SerializeToString(), {k: v for k, v in given.items() if k not in constants}


def cast(x, to):
    with np.errstate(all="ignore"):
        return type_cases.cast(np.asarray(x), to)


def random_cases():
    rng = np.random.default_rng(1)
    for to in REALS:
        for op in ("RandomNormal", "RandomUniform"):
            more = {"mean": 1.5, "scale": 3.0} if op == "RandomNormal" else {"low": -2.0, "high": 3.0}
            yield op, *case(op, {}, {"y": number(to)}, shape=[5, 203], dtype=number(to), seed=3.0, **more)
            yield op + "Like", *case(op + "Like", {"x": np.zeros((7, 9), np.int16)}, {"y": number(to)}, dtype=number(to), **more)
        p = cast(np.concatenate([rng.uniform(0, 1, 500), [0, 1, -1, 2, np.nan, 2.0**-31, 2.0**-33]]), to)
        for result in (PLAIN["bool"], np.int16, np.int32, PLAIN["double"]):
            yield "Bernoulli", *case("Bernoulli", {"x": p}, {"y": number(result)}, dtype=number(result), seed=7.0)
        logits = cast(rng.normal(0, 2, (3, 11)), to)
        for result in (np.int32, np.int64):
            yield "Multinomial", *case("Multinomial", {"x": logits}, {"y": number(result)}, sample_size=70, dtype=number(result), seed=5.0)
        x = cast(rng.normal(0, 2, (31, 13)), to)
        for ratio in (np.float32(0.3), np.float64(0.25), np.float16(1.0), np.float32(np.nan), None):
            operands = {"x": x, "r" if ratio is not None else "": np.asarray(ratio if ratio is not None else 0), "t": np.asarray(True)}
            yield "Dropout", *case("Dropout", operands, {"y": number(to), "m": TensorProto.BOOL}, ("t",), opset=22, seed=11)


def batch_cases():
    rng = np.random.default_rng(2)
    for to in REALS:
        for of_scale, of_mean in ((to, to), (np.float32, np.float64)):
            x = cast(rng.normal(3, 2, (4, 5, 6, 7)), to)
            each = {k: cast(v, t) for k, v, t in (("s", rng.normal(1, 1, 5), of_scale), ("b", rng.normal(0, 1, 5), of_scale),
                                                  ("m", rng.normal(3, 1, 5), of_mean), ("v", rng.uniform(1, 2, 5), of_mean))}
            results = {"y": number(to), "rm": number(of_mean), "rv": number(of_mean)}
            yield "training", *case("BatchNormalization", {"x": x, **each}, results, opset=15, training_mode=1)
            yield "inference", *case("BatchNormalization", {"x": x, **each}, {"y": number(to)}, opset=15)
    x = cast(rng.normal(3, 2, (40, 3, 900)), np.float32)
    each = {k: np.ones(3, np.float32) for k in "sbmv"}
    yield "large", *case("BatchNormalization", {"x": x, **each}, {"y": 1, "rm": 1, "rv": 1}, opset=15, training_mode=1, momentum=0.25)


def narrow_cases():
    every = list(PLAIN.values()) + list(NARROW.values())
    for a, narrow in enumerate(NARROW.values()):
        for b, other in enumerate(every):
            if not EVERY and other in PLAIN.values() and (a + b) % 3 != 0:
                continue
            codes = np.arange(256, dtype=np.uint8)
            whole = narrow in (NARROW["int4"], NARROW["uint4"], NARROW["int2"], NARROW["uint2"])
            x = np.arange(-8, 8).astype(np.int8).astype(narrow) if whole else codes.view(narrow) if np.dtype(narrow).name != "float4_e2m1fn" else np.arange(16, dtype=np.uint8).view(narrow)
            if np.dtype(other).kind in "iu" and not whole:  # what no int64 holds has no one value
                size = np.abs(x.astype(np.float64))
                x = x[np.isfinite(size) & (size < 2.0**62)]
            yield f"from {np.dtype(narrow).name} to {np.dtype(other).name}", *case("Cast", {"x": x}, {"y": number(other)}, to=number(other))
            if other in NARROW.values():
                continue
            y = cast(np.concatenate([AWKWARD, -AWKWARD]), other) if other in REALS else np.arange(-40, 300).astype(other)
            with np.errstate(all="ignore"):
                y = np.concatenate([y, np.asarray([-2**31 + 1, 2**31 - 1, 2**24 + 1, 70000], np.float64).astype(other)]) if np.dtype(other).itemsize >= 4 else y
            for more in ({}, {"saturate": 0}, {"round_mode": "down"}, {"round_mode": "nearest"}):
                if more and other is not np.float32 and not EVERY:
                    continue
                yield f"{np.dtype(other).name} to {np.dtype(narrow).name} {more}", *case("Cast", {"x": y}, {"y": number(narrow)}, to=number(narrow), **more)


def quantised_cases():
    rng = np.random.default_rng(3)
    real = cast(rng.normal(0, 20, (6, 8)), np.float32)
    for name, narrow in [*NARROW.items(), ("int8", np.int8), ("uint16", np.uint16)]:
        for of_x, of_scale, precision in ((np.float32, np.float32, 0), (np.float16, np.float32, 0), (np.float32, np.float16, 0),
                                          (np.float64, np.float32, 11), (PLAIN["bfloat16"], PLAIN["bfloat16"], 1), (np.int32, np.float32, 0)):
            more = {"precision": precision} if precision else {}
            scale = cast(rng.uniform(0.5, 3, 8), of_scale)
            if name == "float8e8m0":
                continue
            zero = np.zeros(8, np.int8).astype(narrow) if name.startswith("float") else np.ones(8, np.int8).astype(narrow)
            yield f"quantize to {name} {of_x}", *case("QuantizeLinear", {"x": cast(real, of_x), "s": scale, "z": zero}, {"y": number(narrow)}, axis=1, **more)
            codes = cast(rng.integers(0, 2, (6, 8)).astype(np.float32), narrow)
            named = {"output_dtype": precision} if precision else {}
            out = precision or number(of_scale)
            yield f"dequantize {name} {of_scale} {out}", *case("DequantizeLinear", {"x": codes, "s": scale, "z": zero}, {"y": out}, axis=1, **named)


def attention_cases():
    rng = np.random.default_rng(4)
    q, k, v = (rng.normal(0, 1, (2, 3, 4, 8)) for _ in range(3))
    mask = rng.integers(-3, 3, (4, 4))
    for of_q, of_v, of_mask in ((np.float32, np.float64, np.int32), (np.float64, np.float32, np.float16), (np.float16, np.float64, np.int64),
                                (np.float32, np.float32, np.int8), (np.float32, np.float16, np.uint8), (PLAIN["bfloat16"], np.float64, np.bool_),
                                (np.float64, np.float64, np.uint64)):
        operands = {"q": cast(q, of_q), "k": cast(k, of_q), "v": cast(v, of_v), "m": cast(mask, of_mask)}
        yield f"attention {of_q} {of_v} {of_mask}", *case("Attention", operands, {"y": number(of_q)}, opset=23)
    for of_q, of_state in ((np.float32, np.float64), (np.float64, np.float16)):
        operands = {"q": cast(q.reshape(2, 4, 24), of_q), "k": cast(k.reshape(2, 4, 24), of_q), "v": cast(v.reshape(2, 4, 24), of_q),
                    "s": cast(rng.normal(0, 1, (2, 3, 8, 8)), of_state)}
        yield f"linear {of_q} {of_state}", *case("LinearAttention", operands, {"y": number(of_q), "z": number(of_state)}, opset=27,
                                                 q_num_heads=3, kv_num_heads=3, update_rule="linear")
    x = cast(rng.normal(0, 1, (1, 1, 4, 5)), np.float32)
    for of_x, of_roi in ((np.float32, np.float64), (np.float32, np.float16), (np.float16, np.float64), (np.float16, np.float16)):
        operands = {"x": cast(x, of_x), "roi": cast(np.array([0, 0, 0.25, 0.5, 1, 1, 0.75, 1]), of_roi), "": np.zeros(0), "sizes": np.array([1, 1, 3, 3])}
        yield f"resize {of_x} {of_roi}", *case("Resize", operands, {"y": number(of_x)}, ("roi", "sizes"), opset=19, mode="linear",
                                               coordinate_transformation_mode="tf_crop_and_resize")


def ml_cases():
    """Trees, support vector machines and labels: ai.onnx.ml, which the reader makes of domain "heddle"."""
    rng = np.random.default_rng(5)
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]

    def made(op, x, results, version=3, **attributes):
        node = helper.make_node(op, ["x"], list(results), domain="ai.onnx.ml", name=f"node of {op}", **attributes)
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", number(x.dtype), x.shape)],
                                  [helper.make_tensor_value_info(k, t, None) for k, t in results.items()])
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString(), {"x": x}

    for aggregate, mode in zip(("SUM", "AVERAGE", "MIN", "MAX", "SUM", "SUM"), modes):
        for of_x in (np.float32, np.float64):
            x = np.round(rng.normal(0, 2, (37, 4))).astype(of_x)
            x[3, 1] = np.nan
            nodes = 15 * 3
            inner = [k % 15 < 7 for k in range(nodes)]
            leaves = [k for k in range(nodes) if not inner[k]]
            yield f"trees {aggregate} {mode} {of_x}", *made(
                "TreeEnsembleRegressor", x, {"y": 1}, nodes_treeids=[k // 15 for k in range(nodes)], nodes_nodeids=[k % 15 for k in range(nodes)],
                nodes_featureids=rng.integers(0, 4, nodes).tolist(), nodes_values=np.round(rng.normal(0, 2, nodes)).tolist(),
                nodes_modes=[mode if i else "LEAF" for i in inner], nodes_truenodeids=[2 * (k % 15) + 1 if i else 0 for k, i in enumerate(inner)],
                nodes_falsenodeids=[2 * (k % 15) + 2 if i else 0 for k, i in enumerate(inner)],
                nodes_missing_value_tracks_true=[k % 2 for k in range(nodes)], target_treeids=[k // 15 for k in leaves],
                target_nodeids=[k % 15 for k in leaves], target_ids=[k % 3 for k in leaves], target_weights=rng.normal(0, 1, len(leaves)).tolist(),
                n_targets=3, aggregate_function=aggregate)
    for kind in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        vectors = rng.normal(0, 1, (9, 4))
        yield f"svm {kind}", *made(
            "SVMClassifier", rng.normal(0, 1, (11, 4)).astype(np.float32), {"l": TensorProto.INT64, "y": 1}, kernel_type=kind,
            kernel_params=[0.5, 0.3, 3.0], classlabels_ints=[4, 7, 9], vectors_per_class=[3, 3, 3], support_vectors=vectors.reshape(-1).tolist(),
            coefficients=rng.normal(0, 1, 18).tolist(), rho=[0.1, -0.2, 0.3], prob_a=[-1.0, -1.5, -0.7], prob_b=[0.1, 0.0, -0.2])
    for post in ("PROBIT", "SOFTMAX_ZERO"):
        yield f"post {post}", *made("LinearRegressor", rng.uniform(0.01, 0.99, (50, 1)).astype(np.float32), {"y": 1}, version=1, coefficients=[1.0],
                                    intercepts=[0.0], targets=1, post_transform=post)
    yield "labels of int64", *made("LabelEncoder", rng.integers(0, 9, 40), {"y": 1}, version=2, keys_int64s=[1, 3, 8], values_floats=[0.5, 1.5, -1.0])
    yield "labels of float32", *made("LabelEncoder", np.array([1, 2.5, np.nan, 7], np.float32), {"y": TensorProto.INT64}, version=2,
                                     keys_floats=[2.5, float("nan"), -1.0], values_int64s=[4, 5, 6])


def layer_cases():
    """What a layer's normalisation keeps, in each type that stash_type names. As float64 it has the digits of its operand's type."""
    rng = np.random.default_rng(6)
    for of_x in REALS:
        for kept in REALS:
            if kept is np.float64 and of_x is not np.float64:
                continue
            operands = {"x": cast(rng.normal(3, 2, (4, 5, 33)), of_x), "s": cast(rng.normal(1, 1, 33), of_x), "b": cast(rng.normal(0, 1, 33), of_x)}
            results = {"y": number(of_x), "mean": number(kept), "less": number(kept)}
            yield f"layer {of_x} {kept}", *case("LayerNormalization", operands, results, opset=17, stash_type=number(kept))


CASES = {"ml": ml_cases, "layer": layer_cases, "random": random_cases, "batch": batch_cases, "narrow": narrow_cases, "quantised": quantised_cases, "attention": attention_cases}
# Of the type: bits of the results that may differ, where operators are not exact.
ROUGH = {np.dtype(np.float32): 2e-6, np.dtype(np.float64): 1e-12, np.dtype(np.float16): 2e-3, np.dtype(ml_dtypes.bfloat16): 1e-2}


def differs(a, b, exact):
    """Why two results differ, or nothing."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{b.dtype}{b.shape} for {a.dtype}{a.shape}"
    narrow = a.dtype.name in {np.dtype(t).name for t in NARROW.values()}
    if narrow or a.dtype.kind in "iub":
        bad = a.view(np.uint8) != b.view(np.uint8) if narrow else a != b
        return f"{bad.sum()} of {bad.size}: {a[bad][:4]} {b[bad][:4]}" if bad.any() else ""
    a, b, bound = a.astype(np.float64), b.astype(np.float64), 0 if exact else ROUGH[a.dtype]
    with np.errstate(all="ignore"):
        bad = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= bound * np.maximum(1, np.abs(a))))
    return f"{bad.sum()} of {bad.size}: {a[bad][:4]} {b[bad][:4]}" if bad.any() else ""


def compare(device, kinds):
    import heddle
    context, failed, runs = heddle.Context({"log": "off"}), [], 0
    for kind in kinds:
        for k, (label, model, inputs) in enumerate(CASES[kind]()):
            if not EVERY and k % 8 != 0:
                continue
            want = heddle.load(model, devices="cpu", context=context).run(None, inputs)
            runs += 1
            try:
                have = heddle.load(model, devices=device, context=context).run(None, inputs)
            except heddle.Error as e:
                failed.append(f"{kind}: {label}: {e}"[:300])
                continue
            found = [differs(np.asarray(a), np.asarray(b), kind == "narrow") for a, b in zip(want, have)]
            failed += [f"{kind}: {label}: {x}" for x in found if x]
    print(f"{runs} runs on {device}, {len(failed)} failed")
    print("\n".join(failed))
    return len(failed) > 0 or runs == 0


@pytest.mark.parametrize("plugin", DEVICES)
def test_values(plugin):
    if plugin == "opencl" and not EVERY:
        pytest.skip("HEDDLE_TYPES=all tries opencl too")
    if not type_cases.BINDING.exists():
        pytest.skip("the Python binding is not built")
    DEVICES[plugin].need()
    done = subprocess.run([sys.executable, os.path.abspath(__file__), f"{plugin}:0"], text=True, capture_output=True, timeout=1700,
                          env={**os.environ, **type_cases.CHILD, **DEVICES[plugin].ENV})
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


if __name__ == "__main__":
    sys.exit(compare(sys.argv[1], sys.argv[2:] or CASES))
