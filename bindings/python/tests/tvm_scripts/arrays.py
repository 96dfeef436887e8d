"""NDArrays, devices and params blobs."""
import os
import sys

import numpy as np
import tvm
from tvm import nd

folder = sys.argv[1]
dev = tvm.cpu(0)
assert dev.exist and str(dev) == "cpu(0)" and dev == tvm.device("cpu") == tvm.runtime.device("llvm", 0)
assert tvm.opencl(1).device_type == 4 and tvm.cl(0) == tvm.opencl(0) and tvm.vulkan(0).device_type == 7
assert tvm.cuda(0).device_type == tvm.gpu(0).device_type == 2 and tvm.rocm(2).device_id == 2
dev.sync()

x = np.arange(6, dtype="float32").reshape(2, 3)
a = tvm.nd.array(x, dev)
assert a.shape == (2, 3) and a.dtype == "float32" and a.device == dev and isinstance(a, tvm.nd.NDArray)
assert "NDArray shape=(2, 3), cpu(0)" in repr(a)
np.testing.assert_array_equal(a.numpy(), x)
np.testing.assert_array_equal(a.asnumpy(), x)
b = nd.empty((2, 3), "int32", device=dev)
assert b.dtype == "int32"
b.copyfrom(x)
np.testing.assert_array_equal(b.numpy(), x.astype("int32"))
c = nd.empty((2, 3))
assert a.copyto(c) is c
np.testing.assert_array_equal(c.numpy(), x)
d = a.copyto(tvm.cpu(0))
np.testing.assert_array_equal(d.numpy(), x)
a[:] = x * 2
np.testing.assert_array_equal(a.numpy(), x * 2)
np.testing.assert_array_equal(d.numpy(), x)
try:
    c.copyfrom(np.zeros(5))
    raise AssertionError("another shape was taken")
except ValueError:
    pass

blob = tvm.runtime.save_param_dict({"w": a, "b": tvm.nd.array(np.arange(3))})
back = tvm.runtime.load_param_dict(blob)
assert sorted(back) == ["b", "w"]
np.testing.assert_array_equal(back["w"].numpy(), x * 2)
assert back["b"].dtype == "int64"
assert isinstance(tvm.relay.save_param_dict(back), (bytes, bytearray))
assert sorted(tvm.relay.load_param_dict(bytearray(blob))) == ["b", "w"]
assert tvm.runtime.num_threads() >= 1
print("ok")
