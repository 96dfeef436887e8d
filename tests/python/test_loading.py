"""Which plugins a process loads: those whose devices are asked for, by the system's own list of mapped files.

labels: ctypes
timeout: 120
"""
import ctypes
import json

import capi
from tool_case import DIGITS, good, heddle


def loaded():
    with open("/proc/self/maps", encoding="ascii") as maps:
        return {line.rsplit("libheddle_plugin_", 1)[1].split(".so")[0] for line in maps if "libheddle_plugin_" in line}


def find(ctx, name):
    device = ctypes.c_void_p()
    capi.call("heddle_context_find_device", ctx.p, name, ctypes.byref(device))


def test_a_plugin_is_loaded_when_its_devices_are_asked_for():
    assert not loaded()
    ctx = capi.Context()
    assert not loaded()
    find(ctx, b"cpu")
    assert loaded() == {"cpu"}
    find(ctx, b"sim:1")
    assert loaded() == {"cpu", "sim"}
    capi.LIB.heddle_context_device_count.restype = ctypes.c_size_t
    assert capi.LIB.heddle_context_device_count(ctx.p) >= 3
    assert loaded() >= {"cpu", "sim", "null"}
    ctx.close()


def test_the_order_of_devices_does_not_depend_on_what_was_asked_for_first():
    def names(first):
        ctx = capi.Context(opencl__driver="off")
        if first is not None:
            find(ctx, first)
        count = capi.LIB.heddle_context_device_count(ctx.p)
        capi.LIB.heddle_context_device.restype = ctypes.c_void_p
        capi.LIB.heddle_device_name.restype = ctypes.c_char_p
        listed = [capi.LIB.heddle_device_name(ctypes.c_void_p(capi.LIB.heddle_context_device(ctx.p, ctypes.c_size_t(i))))
                  for i in range(count)]
        ctx.close()
        return listed

    assert names(None) == names(b"sim:1") == names(b"cpu")


def test_the_log_says_what_is_left_alone():
    said = heddle("run", DIGITS, "--random", "--device", "cpu", "--set", "log=info").err
    assert "libheddle_plugin_sim.so: its devices have not been requested" in said
    assert "libheddle_plugin_cpu.so: nobody" not in said
    plugins = json.loads(good("devices", "--all", "--json"))["plugins"]
    assert {p["name"] for p in plugins} >= {"cpu", "sim"}
