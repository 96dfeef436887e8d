"""GPUs of other plugins than cuda and rocm, where a driver of OpenCL or Vulkan lists one: digits and random graphs on each.
Drivers for the host's cores are no GPUs. Skipped where there is none, which is most machines that build. labels: ctypes
timeout: 600
"""
import json

import pytest
from tool_case import heddle

import capi  # noqa: F401
from test_random_opencl import check_digits, sweep


def gpus():
    done = heddle("devices", "--all", "--json")
    listed = json.loads(done.out)["devices"] if done.status == 0 else []
    return [d["name"] for d in listed if d["plugin"] in ("opencl", "vulkan") and "host_cores" not in d["caps"]]


GPUS = gpus()


@pytest.mark.skipif(not GPUS, reason="no driver of OpenCL or Vulkan lists a GPU")
@pytest.mark.parametrize("name", GPUS)
def test_gpu(name):
    check_digits(name)
    check_digits(f"cpu and {name}")
    sweep(3300, 3310, ["cpu", name], {})
