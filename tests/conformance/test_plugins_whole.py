"""Every plugin of the tree passes all of the kit.
labels: slow soak
timeout: 3600"""

import pytest
from check_case import check
from check_plugins import plugin


@pytest.mark.parametrize("name", ["null", "cpu", "sim", "opencl", "vulkan", "cuda", "rocm"])
def test_passes(name, tmp_path):
    file, env = plugin(name)
    r = check(tmp_path, file, "--device", "all", **env)
    assert r.status == 0 and r.state("fail") == [], r
    assert len(r.state("pass")) >= 20, r
