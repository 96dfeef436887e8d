"""MaxPool and AveragePool of every type on vulkan against cpu: windows that reach over the pads or are larger than the operand,
NaN and infinities, places of maxima in both orders.

labels: ctypes vulkan
timeout: 120
"""
import json

import lavapipe

lavapipe.in_process()

import capi  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnx_cases  # noqa: E402
import pytest  # noqa: E402

FORMS = [((2, 3, 9), {"kernel_shape": [4], "strides": [2], "pads": [2, 1]}),
         ((1, 2, 6, 7), {"kernel_shape": [3, 2], "dilations": [2, 1], "pads": [1, 0, 1, 1]}),
         ((1, 2, 4, 5, 3), {"kernel_shape": [2, 2, 2], "ceil_mode": 1, "strides": [2, 2, 2]}),
         ((1, 1, 3, 3), {"kernel_shape": [9, 9], "pads": [8, 8, 8, 8]})]
REALS = [np.float32, np.float64, np.float16]


@pytest.fixture(scope="module")
def ctx():
    made = capi.Context(log="off")
    yield made
    made.close()


def run(ctx, device, op, x, names, attrs):
    node = onnx.helper.make_node(op, ["x"], names, **attrs)
    types = [onnx.helper.np_dtype_to_tensor_dtype(x.dtype), onnx.TensorProto.INT64]
    outputs = [onnx.helper.make_tensor_value_info(n, t, None) for n, t in zip(names, types)]
    graph, _ = onnx_cases.graph(onnx.helper.make_model(onnx.helper.make_graph([node], op, [], outputs)), 22, {"x": x})
    model = capi.Model(ctx, capi.Graph(json.dumps(graph)), devices=device)
    executor = capi.Executor(model)
    executor.set_input("x", x)
    executor.run()
    results = [np.array(executor.output(k)) for k in range(len(names))]
    executor.close()
    model.close()
    return results


@pytest.mark.parametrize("dtype", REALS + [np.int8, np.uint8])
def test_pools(ctx, dtype):
    random = np.random.default_rng(1)
    for shape, attrs in FORMS:
        x = (random.standard_normal(shape) * 50).astype(dtype)
        if dtype in REALS:
            for mean in ({"count_include_pad": 0}, {"count_include_pad": 1}):
                want, got = (run(ctx, d, "AveragePool", x, ["y"], {**attrs, **mean})[0] for d in ("cpu:0", "vulkan:0"))
                np.testing.assert_allclose(got, want, rtol=0, atol=200 * np.finfo(dtype).eps)
            x.flat[[1, 4]] = np.nan
            x.flat[6] = -np.inf
        for names, order in ((["y"], {}), (["y", "places"], {}), (["y", "places"], {"storage_order": 1})):
            want, got = (run(ctx, d, "MaxPool", x, names, {**attrs, **order}) for d in ("cpu:0", "vulkan:0"))
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)
