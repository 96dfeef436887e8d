"""Regions of shared memory of heddle.kserve, without its package: what is registered, read, written and refused.

timeout: 60
"""
import contextvars
import os
import uuid

import numpy as np
import pytest

from heddle._shared_memory import ALLOWED, Regions, SharedMemoryError, wanted


@pytest.fixture
def key():
    """An object of 4,096 bytes, whose byte i is i % 251."""
    name = f"heddle-{uuid.uuid4()}"
    with open(f"/dev/shm/{name}", "wb") as file:
        file.write(bytes(i % 251 for i in range(4096)))
    yield "/" + name
    if os.path.exists(f"/dev/shm/{name}"):
        os.unlink(f"/dev/shm/{name}")


@pytest.fixture
def regions():
    made = Regions()
    yield made
    made.unregister()


def content(key):
    with open("/dev/shm" + key, "rb") as file:
        return file.read()


def refused(words, call, *args):
    with pytest.raises(SharedMemoryError) as caught:
        call(*args)
    assert all(word in str(caught.value) for word in words), caught.value


def test_bytes_go_in_and_out(regions, key):
    regions.register("a", key, 100, 1000)
    regions.register("b", key.lstrip("/"), 0, 4096)
    assert regions.read("x", "a", 10, 5) == bytes(i % 251 for i in range(105, 115))
    assert regions.read("x", "a", 1000, 0) == content(key)[100:1100] and regions.read("x", "a", 0, 1000) == b""
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    before = content(key)
    assert regions.write("y", "a", 988, 12, array.T) == 12  # not contiguous
    assert content(key) == before[:112] + np.ascontiguousarray(array.T).tobytes() + before[124:]
    assert regions.write("y", "b", 3, 4093, b"end") == 3 and content(key)[-3:] == b"end" and len(content(key)) == 4096
    assert [tuple(region) for region in regions.status()] == [("a", key, 100, 1000), ("b", key.lstrip("/"), 0, 4096)]
    assert [region.name for region in regions.status("b")] == ["b"]
    regions.unregister("a")
    regions.unregister("a")
    refused(["no region 'a'"], regions.status, "a")
    refused(["x", "no region 'a'"], regions.read, "x", "a", 1, 0)
    regions.unregister()
    assert regions.status() == []


@pytest.mark.parametrize("size, offset", [(1, 1000), (1001, 0), (1000, 1), (2**61, 0), (1, 2**61)])
def test_what_lies_outside(regions, key, size, offset):
    regions.register("a", key, 100, 1000)
    before = content(key)
    refused(["outside", "'a'", "1000"], regions.read, "x", "a", size, offset)
    refused(["outside", "'a'", "1000"], regions.write, "y", "a", size, offset, b"1")
    assert content(key) == before


def test_an_output_that_is_too_large(regions, key):
    regions.register("a", key, 0, 4096)
    before = content(key)
    refused(["output 'y'", "16 bytes", "15"], regions.write, "output 'y'", "a", 15, 0, np.zeros(4, np.float32))
    assert content(key) == before


def test_an_object_that_shrinks(regions, key):
    """A mapping would end the process (SIGBUS)."""
    regions.register("a", key, 0, 4096)
    os.truncate("/dev/shm" + key, 64)
    refused(["smaller"], regions.read, "x", "a", 65, 0)
    refused(["smaller"], regions.write, "y", "a", 4, 64, b"1234")
    assert len(content(key)) == 64 and regions.read("x", "a", 64, 0) == content(key)
    os.unlink("/dev/shm" + key)
    assert len(regions.read("x", "a", 64, 0)) == 64  # the object lives while it is registered


@pytest.mark.parametrize("key", ["", "/", ".", "..", "/..", "../etc/passwd", "/../../etc/passwd", "a/b", "a\0b", None, 3, "/absent-" + "x" * 300])
def test_keys_that_name_no_memory(regions, key):
    refused(["region 'a'"], regions.register, "a", key, 0, 1)
    assert regions.status() == []


def test_what_is_no_memory(regions, key):
    link = key + "-link"
    os.symlink("/etc/passwd", "/dev/shm" + link)
    os.mkfifo("/dev/shm" + key + "-pipe")
    os.mkdir("/dev/shm" + key + "-folder")
    try:
        for other in link, key + "-pipe", key + "-folder", key + "-absent":
            refused(["region 'a'", other], regions.register, "a", other, 0, 1)
    finally:
        os.unlink("/dev/shm" + link)
        os.unlink("/dev/shm" + key + "-pipe")
        os.rmdir("/dev/shm" + key + "-folder")


@pytest.mark.parametrize("offset, size", [(0, 0), (-1, 4), (0, -4), (0, 4097), (4096, 1), (1, 4096), (2**62, 1), (0, 2**70), (0.5, 4),
                                          (0, True), (None, 4), (0, None), ("0", 4)])
def test_sizes_that_do_not_fit(regions, key, offset, size):
    files = len(os.listdir("/proc/self/fd"))
    with pytest.raises(SharedMemoryError):
        regions.register("a", key, offset, size)
    assert regions.status() == [] and len(os.listdir("/proc/self/fd")) == files


def test_names_are_taken_once_and_bounded(regions, key):
    files = len(os.listdir("/proc/self/fd"))
    regions.register("a", key, 0, 1)
    refused(["'a'", "already"], regions.register, "a", key, 0, 1)
    refused(["name"], regions.register, "", key, 0, 1)
    with pytest.raises(SharedMemoryError, match="1024"):
        for i in range(1100):
            regions.register(str(i), key, 0, 1)
    regions.unregister()
    assert len(os.listdir("/proc/self/fd")) == files


def test_clients_of_other_machines(regions, key):
    regions.register("a", key, 0, 16)

    def remote():
        ALLOWED.set(False)
        for call, *words in ((regions.register, "b", key, 0, 1), (regions.unregister,), (regions.status,), (regions.read, "x", "a", 1, 0),
                             (regions.write, "y", "a", 1, 0, b"1")):
            refused(["machine"], call, *words)
    contextvars.copy_context().run(remote)
    assert len(regions.status()) == 1


def test_parameters():
    assert wanted(None) is None and wanted({}) is None and wanted({"binary_data_size": 4}) is None
    assert wanted({"shared_memory_region": "a", "shared_memory_byte_size": 4}) == ("a", 4, 0)
    assert wanted({"shared_memory_region": "a", "shared_memory_byte_size": 4, "shared_memory_offset": 8}) == ("a", 4, 8)
    for bad in ({"shared_memory_region": 3, "shared_memory_byte_size": 4}, {"shared_memory_region": "a"},
                {"shared_memory_region": "a", "shared_memory_byte_size": -1},
                {"shared_memory_region": "a", "shared_memory_byte_size": 4, "shared_memory_offset": 1.5}):
        refused([], wanted, bad)
