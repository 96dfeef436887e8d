"""Calls by the thousand with errors among them, and what they leave behind: references, objects, memory."""
import ctypes
import gc
import os
import resource
import sys

import numpy as np

import heddle
from heddle import errors


def memory():
    """Bytes that the process has in memory now; 0 under a sanitizer, which keeps what was freed."""
    if os.environ.get("HEDDLE_SANITIZE"):
        return 0
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def one_round(x, read_only, device, path):
    """Each kind of call once, those that fail too. 20 calls into the library or more."""
    t = heddle.as_tensor(x)
    t.numpy(), t.shape, t.strides, t.dtype, t.device, t.device_name, repr(t), memoryview(t)
    heddle.as_tensor(x[::-1, ::2]), heddle.as_tensor(x, "float64"), heddle.as_tensor([[1, 2]], "float32")
    heddle.as_tensor(read_only).numpy()
    np.from_dlpack(t), heddle.from_dlpack(x), heddle.from_dlpack(t.__dlpack__(max_version=(1, 0))), t.__dlpack__()
    t.__dlpack__(max_version=(1, 0), copy=True)
    new = heddle.empty((4, 8), "float32")
    new.copy_from(x)
    device.copy_from(new)
    device.copy_to(new)
    device.numpy()
    for call, kind in ((lambda: heddle.as_tensor(object()), TypeError), (lambda: heddle.as_tensor("x"), TypeError),
                       (lambda: heddle.empty((-1,)), errors.InvalidError), (lambda: heddle.empty((1,), "nix"), TypeError),
                       (lambda: heddle.empty((2,), device=(12, 99)), errors.NoDeviceError),
                       (lambda: new.copy_from(np.zeros(3)), errors.InvalidError),
                       (lambda: heddle.as_tensor(read_only).copy_from(read_only), errors.InvalidError),
                       (lambda: heddle.as_tensor(x, "int32"), TypeError), (lambda: memoryview(device), BufferError),
                       (lambda: t.__dlpack__(dl_device=(2, 0)), BufferError), (lambda: t.__dlpack__(x=1), TypeError),
                       (lambda: heddle.load_npy(path), errors.FileError), (lambda: heddle.from_dlpack(3), TypeError),
                       (lambda: heddle.as_tensor(np.array(["a"])), TypeError),
                       (lambda: heddle.Context().setting(3), TypeError), (lambda: heddle.Context({1: 2}), TypeError)):
        try:
            call()
        except kind:
            continue
        raise AssertionError("a call that must fail did not")


def rounds_leave_nothing(n, slack):
    """n rounds; warm-up first. slack: bytes that the process may have grown by."""
    x = np.arange(32, dtype="float32").reshape(4, 8)
    read_only = x.copy()
    read_only.flags.writeable = False
    device = heddle.empty((4, 8), "float32", "sim:0")
    watched = [x, read_only, device, heddle.Tensor, heddle.Device, np.dtype("float32"), errors.InvalidError, errors.NoDeviceError]
    for _ in range(200):
        one_round(x, read_only, device, "/nothing/here.npy")
    gc.collect()
    before, counts, objects = memory(), [sys.getrefcount(w) for w in watched], len(gc.get_objects())
    for _ in range(n):
        one_round(x, read_only, device, "/nothing/here.npy")
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    assert [sys.getrefcount(w) for w in watched] == counts
    assert abs(len(gc.get_objects()) - objects) < 50
    grown = memory() - before
    assert grown <= slack, f"{n} rounds left {grown} bytes"
    return grown
