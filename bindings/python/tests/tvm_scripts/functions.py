"""Functions of libraries and of Python, registered and found by name."""
import os
import sys

import numpy as np
import tvm

folder = sys.argv[1]
lib = tvm.runtime.load_module(os.path.join(folder, "library.so"))
a, b = tvm.nd.array(np.arange(8, dtype="float32")), tvm.nd.empty((8,))
lib["addone"](a, b)
np.testing.assert_array_equal(b.asnumpy(), np.arange(8) + 1)
addone = lib.get_function("addone")
addone(b, a)
np.testing.assert_array_equal(a.asnumpy(), np.arange(8) + 2)
lib(a, b)  # the entry
lib.entry_func(a, b)
np.testing.assert_array_equal(b.asnumpy(), np.arange(8) + 3)
assert lib["extra_answer"]() == 43


@tvm.register_func("heddle.tests.step", override=True)
def step(n):
    return n * 10


assert tvm.get_global_func("heddle.tests.step")(4) == 40
assert lib["apply_twice"](3) == 300  # compiled code calls Python
tvm.register_func("heddle.tests.make", lambda k: lambda n: n + k, override=True)
assert tvm.get_global_func("heddle.tests.make")(5)(2) == 7  # a closure comes back
assert tvm.get_global_func("heddle.tests.none", allow_missing=True) is None
try:
    tvm.get_global_func("heddle.tests.none")
    raise AssertionError("found")
except ValueError as e:
    assert "heddle.tests.none" in str(e)


@tvm.register_func("heddle.tests.fails", override=True)
def fails(x):
    raise KeyError("no luck")


try:
    tvm.get_global_func("heddle.tests.fails")(tvm.nd.array(np.ones(2)))
    raise AssertionError("it did not fail")
except Exception as e:
    assert "no luck" in str(e)


def check(x, text, dev):
    assert isinstance(x, tvm.nd.NDArray) and x.shape == (2,) and text == "words" and dev.device_type == 1
    return x


f = tvm.convert(check)
assert isinstance(f, tvm.runtime.PackedFunc)
np.testing.assert_array_equal(f(tvm.nd.array(np.ones(2)), "words", tvm.cpu(0)).numpy(), np.ones(2))
print("ok")
