"""Runs that read and write the caller's memory."""
import os
import sys

import numpy as np
import tvm
from tvm.contrib import graph_executor

folder = sys.argv[1]
x = np.load(os.path.join(folder, "data.npy"))
expected = np.load(os.path.join(folder, "expected.npy"))
lib = tvm.runtime.load_module(os.path.join(folder, "model.so"))
dev = tvm.cpu(0)
m = graph_executor.GraphModule(lib["default"](dev))

data, out = tvm.nd.array(x, dev), tvm.nd.empty((1, 10), "float32", dev)
m.set_input_zero_copy("data", data)
m.set_output_zero_copy(0, out)
m.run()
tvm.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
data.copyfrom(x * 0)  # seen by the next run
m.run()
assert abs(out.numpy() - expected).max() > 1e-3
data.copyfrom(x)
m.set_output_zero_copy("tvmgen_default_fused_nn_softmax:0", out)
m.run()
tvm.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
tvm.testing.assert_allclose(m.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)

# through DLPack, and several by name
m.set_input_zero_copy(data=tvm.nd.from_dlpack(data.to_dlpack()), nope=data)
m.run()
tvm.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
m.set_input_zero_copy("data", tvm.nd.array(x).to_dlpack())
m.run()
tvm.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
for wrong in (tvm.nd.array(x[:, :4]), tvm.nd.array(x.astype("float64"))):
    try:
        m.set_input_zero_copy("data", wrong)
    except tvm.TVMError:
        continue
    raise AssertionError("a tensor that does not fit was taken")
print("ok")
