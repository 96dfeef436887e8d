"""The debug executor's test of TVM: a graph whose library is a module of Python functions."""
import json
import sys

import numpy as np
import tvm
from tvm.contrib import graph_executor
from tvm.contrib.debugger import debug_executor

node0 = {"op": "null", "name": "x", "inputs": []}
node1 = {"op": "tvm_op", "name": "add", "inputs": [[0, 0, 0]],
         "attrs": {"func_name": "myadd", "flatten_data": "1", "num_inputs": "1", "num_outputs": "1"}}
attrs = {"shape": ["list_shape", [[4], [4]]], "dltype": ["list_str", ["float32", "float32"]],
         "storage_id": ["list_int", [0, 1]]}
graph = json.dumps({"nodes": [node0, node1], "arg_nodes": [0], "node_row_ptr": [0, 1, 2], "heads": [[1, 0, 0]],
                    "attrs": attrs})
calls = []


def myadd(*args):
    calls.append(args[0].shape)
    args[1].copyfrom(args[0].numpy() + 1)


mlib_proxy = tvm.support.FrontendTestModule()
mlib_proxy["myadd"] = myadd
a = np.arange(4, dtype="float32")
for create in graph_executor.create, debug_executor.create:
    mod = create(graph, mlib_proxy, tvm.cpu(0))
    mod.set_input(x=a)
    mod.run()
    np.testing.assert_equal(mod.get_output(0, tvm.nd.empty((4,))).numpy(), a + 1)
assert set(calls) == {(4,)}, calls
out = tvm.nd.empty((4,))
mlib_proxy["myadd"](tvm.nd.array(a), out)
np.testing.assert_equal(out.numpy(), a + 1)


def broken(*args):
    raise KeyError("of the script")


mlib_proxy.add_function("myadd", broken)
try:
    graph_executor.create(graph, mlib_proxy, tvm.cpu(0)).run(x=a)
    sys.exit("nothing was raised")
except KeyError as error:
    assert "of the script" in str(error)
print("ok")
