"""Every variant of the vulkan plugin's shaders is valid SPIR-V for the devices that it is made for, by spirv-val."""
import shutil
import subprocess

import pytest
from tool_case import BUILD


def test_all_variants_are_valid():
    files = sorted((BUILD / "vulkan_shaders").glob("*.spv"))
    if not files:
        pytest.skip("the plugin vulkan is not built")
    if shutil.which("spirv-val") is None:
        pytest.skip("spirv-val (spirv-tools) is not installed")
    wrong = []
    for file in files:
        done = subprocess.run(["spirv-val", "--target-env", "vulkan1.1", file], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            wrong.append(f"{file.name}: {done.stdout}{done.stderr}")
    assert not wrong
