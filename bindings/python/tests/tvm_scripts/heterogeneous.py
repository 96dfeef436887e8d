"""One graph on OpenCL and cpu."""
import os
import sys

import numpy as np
import tvm
from tvm.contrib import graph_executor

folder = sys.argv[1]
graph = open(os.path.join(folder, "hetero.json")).read()
lib = tvm.runtime.load_module(os.path.join(folder, "hetero.so"))
params = open(os.path.join(folder, "hetero.params"), "rb").read()
inputs = {f[len("hetero_input_"):-4]: np.load(os.path.join(folder, f)) for f in os.listdir(folder)
          if f.startswith("hetero_input_")}
expected = np.load(os.path.join(folder, "hetero_output.npy"))
dev = tvm.opencl(0)
assert dev.exist, "there is no OpenCL"
for devices in ([tvm.cpu(0), dev], [dev, tvm.cpu(0)]):
    m = graph_executor.create(graph, lib, devices)
    m.load_params(params)
    m.set_input(**inputs)
    m.run()
    tvm.testing.assert_allclose(m.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)

# arrays on the device, in and out
name, value = list(inputs.items())[0]
on_device = tvm.nd.array(value, dev)
assert on_device.device == dev
tvm.testing.assert_allclose(on_device.numpy(), value)
m.set_input(name, tvm.nd.array(value * 0))
m.set_input(name, on_device)
out = tvm.nd.empty(expected.shape, "float32", dev)
m.run()
m.get_output(0, out)
tvm.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
m.set_input_zero_copy(name, on_device)  # its data is a handle, no address
m.set_output_zero_copy(0, out)
for factor in (0, 1):
    on_device.copyfrom(value * factor)
    m.run()
    assert (abs(out.numpy() - expected).max() < 1e-4) == bool(factor)
assert len(m.benchmark(dev, repeat=2, number=1, end_to_end=True, **{name: value}).results) == 2
dev.sync()
try:
    graph_executor.create(graph, lib, tvm.cpu(0))
    raise AssertionError("a device was missing")
except tvm.TVMError as e:
    assert "opencl" in str(e).lower()
print("ok")
