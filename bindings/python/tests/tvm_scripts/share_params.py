"""One copy of the parameters for executors in threads."""
import os
import sys
import threading

import numpy as np
import tvm
from tvm.contrib import graph_executor

folder = sys.argv[1]
x = np.load(os.path.join(folder, "data.npy"))
expected = np.load(os.path.join(folder, "expected.npy"))
graph = open(os.path.join(folder, "deploy.json")).read()
lib = tvm.runtime.load_module(os.path.join(folder, "deploy.so"))
blob = open(os.path.join(folder, "deploy.params"), "rb").read()

owner = graph_executor.create(graph, lib, tvm.cpu())
owner.load_params(blob)
failures = []


def work():
    try:
        mine = graph_executor.create(graph, lib, tvm.cpu())
        mine.share_params(owner, blob)
        mine.set_input("data", x)
        for _ in range(20):
            mine.run()
            tvm.testing.assert_allclose(mine.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)
    except Exception as e:  # reported below
        failures.append(e)


threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert not failures, failures

# the owner may go
others = [graph_executor.create(graph, lib, tvm.cpu()) for _ in range(3)]
for m in others:
    m.share_params(owner, blob)
del owner
for m in others:
    m.run(data=x)
    tvm.testing.assert_allclose(m.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)

# an array of a parameter that was taken before is its memory in all of them
owner = graph_executor.create(graph, lib, tvm.cpu())
owner.load_params(blob)
w2, b2 = owner.get_input("w2"), owner.get_input("b2")
other = graph_executor.create(graph, lib, tvm.cpu())
other.share_params(owner, blob)
w2.copyfrom(np.zeros((10, 12), "float32"))
b2.copyfrom(np.zeros(10, "float32"))
for m in (owner, other):
    m.run(data=x)
    tvm.testing.assert_allclose(m.get_output(0).numpy(), np.full((1, 10), 0.1, "float32"), rtol=1e-5)
print("ok")
