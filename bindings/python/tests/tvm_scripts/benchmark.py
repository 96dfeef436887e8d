"""All forms of benchmark and time_evaluator."""
import os
import sys

import numpy as np
import tvm
from tvm.contrib import graph_executor

folder = sys.argv[1]
x = np.load(os.path.join(folder, "data.npy"))
lib = tvm.runtime.load_module(os.path.join(folder, "model.so"))
dev = tvm.cpu(0)
m = graph_executor.GraphModule(lib["default"](dev))
m.set_input("data", x)

res = m.benchmark(dev)
assert len(res.results) == 5 and isinstance(res.results[0], float)
for value, by in ((res.mean, np.mean), (res.median, np.median), (res.std, np.std), (res.min, np.min), (res.max, np.max)):
    assert np.isclose(value, by(res.results))
text = str(res)
assert text.startswith("Execution time summary:\n") and "mean (ms)" in text and "std (ms)" in text
assert "BenchmarkResult(min=" in repr(res)

assert len(m.benchmark(dev, "run", 3, 2).results) == 3
assert len(m.benchmark(dev, func_name="run", repeat=2, number=1, min_repeat_ms=1).results) == 2
assert len(m.benchmark(dev, repeat=2, number=1, limit_zero_time_iterations=10, cooldown_interval_ms=1,
                       repeats_to_cooldown=2).results) == 2
assert len(m.benchmark(dev, repeat=2, number=1, data=tvm.nd.array(x)).results) == 2
assert len(m.benchmark(dev, repeat=3, number=1, end_to_end=True, data=tvm.nd.array(x)).results) == 3
assert len(m.benchmark(dev, repeat=3, number=1, end_to_end=True, cooldown_interval_ms=1, data=x).results) == 3
try:
    m.benchmark(dev, end_to_end=True, nope=x)
    raise AssertionError("nope")
except RuntimeError as e:
    assert "nope" in str(e)

ftimer = m.module.time_evaluator("run", dev, number=1, repeat=10)
prof_res = np.array(ftimer().results) * 1000  # milliseconds
assert prof_res.shape == (10,) and (prof_res > 0).all()
assert ftimer().mean > 0
ftimer = m.module.time_evaluator("run", dev, number=1, repeat=2, min_repeat_ms=2)
assert len(ftimer().results) == 2
ftimer = m.module.time_evaluator("run", dev, 1, 2, 0, 100, 0, 1, 1 << 20, "")
assert len(ftimer().results) == 2

# of a function of a library, with its arguments
f = tvm.runtime.load_module(os.path.join(folder, "library.so"))
a, b = tvm.nd.array(np.arange(8, dtype="float32")), tvm.nd.empty((8,))
assert f.time_evaluator("addone", dev, number=3)(a, b).mean > 0
np.testing.assert_array_equal(b.numpy(), np.arange(8) + 1)
assert f.time_evaluator(f.entry_name, dev, number=3)(a, b).mean > 0

# outputs of a whole run
got = m["run_from_inputs"](dev.device_type, dev.device_id, "data", tvm.nd.array(x))
assert len(got) == 1
tvm.testing.assert_allclose(got[0].numpy(), np.load(os.path.join(folder, "expected.npy")), rtol=1e-4, atol=1e-5)
print("ok")
