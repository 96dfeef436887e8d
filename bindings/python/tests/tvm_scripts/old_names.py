"""As scripts of v0.6 and before: tvm.module.load, graph_runtime, contexts, asnumpy."""
import os
import sys

import numpy as np
import tvm
from tvm.contrib import graph_runtime

folder = sys.argv[1]
ctx = tvm.context("llvm", 0)
assert ctx.device_type == 1 and ctx.device_id == 0 and ctx.exist
lib = tvm.module.load(os.path.join(folder, "deploy.so"))
m = graph_runtime.create(open(os.path.join(folder, "deploy.json")).read(), lib, ctx)
params = tvm.relay.load_param_dict(open(os.path.join(folder, "deploy.params"), "rb").read())
m.set_input("data", tvm.nd.array(np.load(os.path.join(folder, "data.npy"))))
m.set_input(**params)
m.run()
np.testing.assert_allclose(m.get_output(0, tvm.nd.empty((1, 10))).asnumpy(),
                           np.load(os.path.join(folder, "expected.npy")), rtol=1e-4, atol=1e-5)
fcreate = tvm.get_global_func("tvm.graph_runtime.create")
inner = fcreate(open(os.path.join(folder, "deploy.json")).read(), lib, ctx.device_type, ctx.device_id)
assert inner["get_num_inputs"]() == 7
print("ok")
