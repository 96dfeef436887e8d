"""The conformance kit passes examples/plugin-npu, with all of its cases.

labels: slow
timeout: 1800
"""

import os

import pytest
from installed import project, tool
from tool_case import SOURCE

if os.environ.get("HEDDLE_SANITIZE"):
    pytest.skip("the library is built with a sanitizer, whose run time a plain program lacks", allow_module_level=True)


def test_the_kit_passes_it(tmp_path):
    plugins = project(SOURCE / "examples" / "plugin-npu", tmp_path / "source")
    report = tool("check-plugin", plugins / "libheddle_plugin_npu.so", "--no-store", "--timeout", "60", plugins=plugins,
                  cwd=tmp_path)
    assert " 0 failed" in report
    for case in ("query/partition", "query/list", "numerics/run:MaxPool", "timing/spans"):
        assert f"pass  {case}\n" in report, report
