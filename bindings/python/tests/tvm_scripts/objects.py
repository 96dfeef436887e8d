"""A library as objects, alone and in an archive: they are linked when they are loaded."""
import os
import sys

import numpy as np
import tvm
from tvm.contrib import cc, tar, utils

folder = sys.argv[1]
temp = utils.tempdir()
tar.tar(temp.relpath("lib.tar"), [os.path.join(folder, "lib0.o")])
cc.create_shared(temp.relpath("own.so"), [os.path.join(folder, "lib0.o")])
for path in (temp.relpath("lib.tar"), temp.relpath("own.so"), os.path.join(folder, "lib0.o")):
    lib = tvm.runtime.load_module(path)
    a, b = tvm.nd.array(np.arange(8, dtype="float32")), tvm.nd.empty((8,))
    lib["addone"](a, b)
    np.testing.assert_array_equal(b.numpy(), np.arange(8) + 1)
assert os.path.exists(temp.relpath("lib.tar.so"))
print("ok")
