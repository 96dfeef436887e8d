"""Random graphs over cpu, two devices of cuda, one of rocm and a sim, the GPUs being doubles. labels: slow timeout: 1800
"""
import gpu_doubles
import pytest

gpu_doubles.in_process()

import capi  # noqa: E402
import random_graphs  # noqa: E402
from reference import sizes  # noqa: E402
from test_random_opencl import check_digits, sweep  # noqa: E402

DEVICES = ["cpu", "cuda:0", "cuda:1", "rocm:0", "sim:0"]


@pytest.fixture(scope="module", autouse=True)
def gpus():
    gpu_doubles.need("cuda")
    if gpu_doubles.REAL:  # where rocm may have no device
        DEVICES[:] = ["cpu", "sim:0", *gpu_doubles.those_there("cuda:0", "cuda:1", "rocm:0")]
    else:
        gpu_doubles.need("rocm")


def test_seeds():
    crossed, edges, operators = sweep(3000, 3005, DEVICES, {"sim__delay_us": 0})
    assert operators == random_graphs.OPERATORS
    assert crossed >= 0.3 * edges


VARIANTS = [
    dict(cuda__pools=0),
    dict(cuda__peer=0, rocm__peer=0),
    dict(flags=capi.SLOTS),
    dict(flags=capi.NO_CAPTURE),
    dict(cuda__capture=0, rocm__capture=0, layers="check"),
    dict(layers="check"),
    dict(max_streams=1),
    dict(cuda__max_streams=4, max_streams=4),
    dict(cuda__fuse=0, rocm__fuse=0),
    dict(sim__coherent=0, cuda__unified=0),
]


@pytest.mark.parametrize("variant", VARIANTS[: sizes.count(len(VARIANTS))], ids=lambda v: ",".join(f"{k.replace('__', '.')}={x}" for k, x in v.items()))
def test_variant(variant):
    """On the seeds of before, whose kernels are compiled."""
    settings, seed = dict(variant), 3000 + VARIANTS.index(variant) % 5
    flags, streams = settings.pop("flags", 0), settings.pop("max_streams", 0)
    sweep(seed, seed + 1, DEVICES, settings, flags, streams)


def test_gpus_alone():
    """Plans without a host device."""
    sweep(3000, 3002, ["cuda:0"], {})
    sweep(3000, 3003, ["cuda:0", "cuda:1"], {})
    if "rocm:0" in DEVICES:
        sweep(3000, 3001, ["rocm:0", "rocm:1"], {})
        sweep(3002, 3003, ["cuda:0", "rocm:0"], {})


@pytest.mark.parametrize("where", ["cuda:0", "rocm:0", "cpu and cuda:0", "cuda:0 and cuda:1", "cuda:1 and rocm:0"])
def test_digits(where):
    if not set(where.split(" and ")) <= set(DEVICES):
        pytest.skip(f"not all of {where} are here")
    check_digits(where)
