"""Graph, library and parameters in three files."""
import os
import sys

import numpy as np
import tvm
from tvm.contrib import graph_executor

folder = sys.argv[1]
loaded_json = open(os.path.join(folder, "deploy.json")).read()
loaded_lib = tvm.runtime.load_module(os.path.join(folder, "deploy.so"))
loaded_params = bytearray(open(os.path.join(folder, "deploy.params"), "rb").read())

dev = tvm.cpu(0)
module = graph_executor.create(loaded_json, loaded_lib, dev)
module.load_params(loaded_params)
module.set_input("data", tvm.nd.array(np.load(os.path.join(folder, "data.npy")), dev))
module.run()
output = module.get_output(0).numpy()
tvm.testing.assert_allclose(output, np.load(os.path.join(folder, "expected.npy")), rtol=1e-4, atol=1e-5)

# the output into an array of the caller's; inputs with run; by number; asnumpy
out = tvm.nd.empty((1, 10), "float32", dev)
assert module.get_output(0, out) is out
tvm.testing.assert_allclose(out.asnumpy(), output)
module.run(data=tvm.nd.array(np.zeros((1, 784), "float32")))
zeros = module.get_output(0, tvm.nd.empty(out.shape)).asnumpy()
assert abs(zeros - output).max() > 1e-3
module.set_input(0, np.load(os.path.join(folder, "data.npy")))
module.run()
tvm.testing.assert_allclose(module.get_output(0).asnumpy(), output)
print("ok", output.argmax())
