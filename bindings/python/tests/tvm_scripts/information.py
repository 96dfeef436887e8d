"""What an executor says of its inputs and outputs, and all ways to set inputs."""
import os
import sys

import numpy as np
import tvm
from tvm.contrib import graph_executor

folder = sys.argv[1]
x = np.load(os.path.join(folder, "data.npy"))
expected = np.load(os.path.join(folder, "expected.npy"))
lib = tvm.runtime.load_module(os.path.join(folder, "deploy.so"))
m = graph_executor.create(open(os.path.join(folder, "deploy.json")).read(), lib, [tvm.cpu(0)])
assert len(m.get_input_info()[0]) == 7  # before load_params all count
m.load_params(open(os.path.join(folder, "deploy.params"), "rb").read())
shapes, dtypes = m.get_input_info()
assert dict(shapes) == {"data": (1, 784)} and dict(dtypes) == {"data": "float32"}
shapes, dtypes = m.get_output_info()
assert dict(shapes) == {"tvmgen_default_fused_nn_softmax": (1, 10)}
assert dict(dtypes) == {"tvmgen_default_fused_nn_softmax": "float32"}
assert m.get_num_inputs() == 7 and m.get_num_outputs() == 1
assert [m.get_input_index(n) for n in ("data", "w0", "nope")] == [0, 1, -1]

for form in (x, x.astype("float64"), x.tolist(), tvm.nd.array(x)):
    for key in ("data", 0):
        m.set_input(key, tvm.nd.array(x * 0))
        m.set_input(key, form)
        m.run()
        tvm.testing.assert_allclose(m.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)
m.set_input(data=x, not_an_input=x)  # passed over
tvm.testing.assert_allclose(m.get_input("data").numpy(), x)
held = tvm.nd.empty((1, 784))
assert m.get_input(0, held) is held and m.get_input("data", out=held) is held
tvm.testing.assert_allclose(held.numpy(), x)
assert m.get_input("nope") is None


def raises(kinds, f, *args, **kwargs):
    try:
        f(*args, **kwargs)
    except kinds as e:
        return str(e)
    raise AssertionError(f"{f} with {args}")


assert "Could not find 'nope' in graph's inputs" in raises(RuntimeError, m.set_input, "nope", x)
raises(ValueError, m.set_input, "data", x[:, :5])
raises(tvm.TVMError, m.get_input, 99)
raises(tvm.error.InternalError, m.get_output, 9)
raises(tvm.TVMError, m.get_output, -1)
raises(tvm.TVMError, m.get_output, "nope")
raises(tvm.TVMError, m.get_output, 0, tvm.nd.empty((10,)))
raises(tvm.TVMError, m.get_output, 0, tvm.nd.empty((1, 10), "float64"))
raises(AttributeError, m.__getitem__, "foo")
raises(ValueError, graph_executor.create, open(os.path.join(folder, "deploy.json")).read(), lib, "cpu")
raises(ValueError, graph_executor.get_device, lib, [tvm.cpu(0), 3])
raises(tvm.TVMError, graph_executor.create, open(os.path.join(folder, "deploy.json")).read(), lib, tvm.cuda(77))
raises(tvm.TVMError, graph_executor.create, "{", lib, tvm.cpu())
devices, remote, numbers = graph_executor.get_device(lib, [tvm.cpu(0), tvm.opencl(1)])
assert remote == 0 and numbers == [1, 0, 4, 1] and len(devices) == 2
print("ok")
