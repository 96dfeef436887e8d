"""Every variant of the vulkan plugin's shaders is valid SPIR-V for the devices that it is made for, by spirv-val."""
import os
import shutil
import subprocess

import pytest
from tool_case import BUILD


@pytest.mark.parametrize("version", ["vulkan1.1", "vulkan1.3"])
def test_all_variants_are_valid(version):
    """For 1.3 an eighth of them, and with HEDDLE_KERNELS=all, which scripts/soak sets, all."""
    files = sorted((BUILD / "vulkan_shaders").glob("*.spv"))
    if not files:
        pytest.skip("the plugin vulkan is not built")
    if shutil.which("spirv-val") is None:
        pytest.skip("spirv-val (spirv-tools) is not installed")
    if version == "vulkan1.3" and os.environ.get("HEDDLE_KERNELS") != "all":
        files = files[::8]
    wrong = []
    for file in files:
        done = subprocess.run(["spirv-val", "--target-env", version, file], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            wrong.append(f"{file.name}: {done.stdout}{done.stderr}")
    assert not wrong
