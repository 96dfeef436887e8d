"""A library with the model inside."""
import os
import sys

import numpy as np
import tvm
from tvm import runtime
from tvm.contrib import graph_executor

folder = sys.argv[1]
x = np.load(os.path.join(folder, "data.npy"))
expected = np.load(os.path.join(folder, "expected.npy"))
lib: tvm.runtime.Module = tvm.runtime.load_module(os.path.join(folder, "model.so"))
dev = tvm.device("cpu", 0)
gmod = graph_executor.GraphModule(lib["default"](dev))
assert isinstance(gmod.module, runtime.Module)
gmod.set_input("data", x)
gmod.run()
tvm.testing.assert_allclose(gmod.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)

# the inner module's functions, fetched once
set_input, run, get_output = gmod["set_input"], gmod.module["run"], gmod["get_output"]
set_input("data", tvm.nd.array(x * 0))
run()
assert abs(get_output(0).numpy() - expected).max() > 1e-3
set_input("data", tvm.nd.array(x))
run()
tvm.testing.assert_allclose(get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)

# graph and parameters out of it, and an executor of the pieces
params = lib["get_graph_params"]()
again = graph_executor.create(lib["get_graph_json"](), lib, dev)
again.set_input(**params)
again.run(data=x)
tvm.testing.assert_allclose(again.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)
bare = graph_executor.GraphModule(lib["remove_params"]()["default"](dev))
assert len(bare.get_input_info()[0]) == 7
bare.load_params(runtime.save_param_dict(params))
assert list(bare.get_input_info()[0]) == ["data"]

raw = lib["remove_params"]()["default"](dev)
raw["set_input"]("data", tvm.nd.array(x))
raw["load_params"](bytearray(runtime.save_param_dict(params)))
raw["run"]()
tvm.testing.assert_allclose(raw["get_output"](0).numpy(), expected, rtol=1e-4, atol=1e-5)
dbg = lib["debug_create"]("default", dev)
dbg["set_input"]("data", tvm.nd.array(x))
dbg["run"]()
tvm.testing.assert_allclose(dbg["get_output"](0).numpy(), expected, rtol=1e-4, atol=1e-5)

# two models in one library, and a function beside them
two = tvm.runtime.load_module(os.path.join(folder, "two.so"))
assert two.type_key == "GraphExecutorFactory"
for name, factor in (("model_a", 2), ("model_b", 3)):
    made = two.get_function(name, query_imports=True)(dev)
    m = graph_executor.GraphModule(made)
    m.set_input("x", np.arange(4, dtype="float32"))
    m.run()
    np.testing.assert_array_equal(m.get_output(0).numpy(), np.arange(4) * factor)
assert two.get_function("extra_answer", True)() == 43
print("ok")
