"""As the tutorials and TVM's own tests have it: test data, marks for pytest, streams, short names of dtypes."""
import os
import pathlib
import sys

import numpy as np
import tvm  # the runtime
import tvm as whole
import tvm.testing
from tvm.contrib.download import download_testdata
import tvm.contrib.graph_executor as runtime

folder = sys.argv[1]
os.environ["TEST_DATA_ROOT_PATH"] = os.path.join(folder, "testdata")
path = download_testdata(pathlib.Path(folder, "data.npy").as_uri(), "input.npy", module="data")
assert path == os.path.join(folder, "testdata", "data", "input.npy")
x = np.load(path)


@tvm.testing.uses_gpu
@tvm.testing.requires_llvm
def test_deploy():
    target, dev = tvm.testing.enabled_targets()[0]
    assert target == "llvm" and dev == tvm.cpu() and tvm.testing.device_enabled("llvm -mcpu=core-avx2")
    stream = dev.create_raw_stream()
    dev.set_raw_stream(stream)
    m = runtime.GraphModule(tvm.runtime.load_module(os.path.join(folder, "model.so"))["default"](dev))
    m.set_input("data", tvm.nd.array(x.astype("float32"), dev))
    m.run()
    dev.sync(stream)
    dev.free_raw_stream(stream)
    out = m.get_output(0, tvm.nd.empty((1, 10), "float"))
    tvm.testing.assert_allclose(out.numpy(), np.load(os.path.join(folder, "expected.npy")), rtol=1e-4, atol=1e-5)
    return int(np.argmax(out.numpy()[0]))


@tvm.testing.requires_rpc
def test_remote():
    tvm.rpc.connect("localhost", 9090)


assert test_deploy() in range(10)
assert [mark.args for mark in test_deploy.pytestmark + test_remote.pytestmark] == [(False,), (False,), (True,)]
assert tvm.nd.empty((2,), "int").dtype == "int32" and tvm.DataType("float") == "float32"
assert tvm.support.libinfo()["USE_PROFILER"] == "ON"
assert whole is tvm
print("ok")
