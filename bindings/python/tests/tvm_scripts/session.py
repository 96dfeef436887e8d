"""A session of rpc for the machine itself; CUDA graphs, which are no executor of their own here."""
import os
import sys

import numpy as np
import tvm
from tvm import rpc
from tvm.contrib import utils
from tvm.contrib.cuda_graph import cuda_graph_executor
from tvm.contrib import graph_executor

folder = sys.argv[1]
x = np.load(os.path.join(folder, "data.npy"))
expected = np.load(os.path.join(folder, "expected.npy"))
remote = rpc.LocalSession()
remote.upload(os.path.join(folder, "model.so"))
rlib = remote.load_module("model.so")
for kind in ("cl", "opencl", "cuda", "vulkan", "rocm", "metal", "ext_dev", "hexagon", "webgpu"):
    assert getattr(remote, kind)(1) == getattr(tvm, kind)(1)
m = graph_executor.GraphModule(rlib["default"](remote.cpu(0)))
m.set_input("data", tvm.nd.array(x, remote.cpu(0)))
m.run()
tvm.testing.assert_allclose(m.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)

temp = utils.tempdir()
path = temp.relpath("deploy.params")
open(path, "wb").write(open(os.path.join(folder, "deploy.params"), "rb").read())
g = cuda_graph_executor.create(open(os.path.join(folder, "deploy.json")).read(),
                               tvm.runtime.load_module(os.path.join(folder, "deploy.so")), tvm.cpu(0))
g.load_params(open(path, "rb").read())
g.run(data=x)
tvm.testing.assert_allclose(g.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)
g.set_input("data", x)
g.capture_cuda_graph()
g.set_input("data", x * 0)
g.run_cuda_graph()
assert abs(g.get_output(0).numpy() - expected).max() > 1e-3
g = cuda_graph_executor.GraphModuleCudaGraph(rlib["cuda_graph_create"](remote.cpu(0)))
g.run(data=x)
tvm.testing.assert_allclose(g.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)
try:
    rpc.connect("localhost", 9090)
    raise AssertionError("it was taken")
except tvm.TVMError:
    pass
try:
    tvm.te
    raise AssertionError("there is a compiler")
except AttributeError as e:
    assert "compiled with TVM" in str(e)
print("ok")
