"""The notebook of examples/python runs from first to last cell, in a kernel of this Python, and shows what it promises.

labels: slow
timeout: 600
"""

import os
import pathlib
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "tests" / "python"))
from tool_case import environment  # noqa: E402 pylint: disable=wrong-import-position

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
PATH = SOURCE / "examples" / "python" / "digits.ipynb"


def test_no_outputs_are_kept():
    for cell in nbformat.read(PATH, as_version=4).cells:
        assert cell.cell_type != "code" or (cell.outputs == [] and cell.execution_count is None)


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """By their source, the text that each shows, and the kinds of what it shows."""
    home = str(tmp_path_factory.mktemp("home"))
    env = environment(POCL_DEVICES="pthread", JUPYTER_PLATFORM_DIRS="1", HOME=home, IPYTHONDIR=home, JUPYTER_RUNTIME_DIR=home)
    notebook = nbformat.read(PATH, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=500, kernel_name="python3",
                                     resources={"metadata": {"path": str(PATH.parent)}})
    os.environ["JUPYTER_RUNTIME_DIR"] = home
    client.execute(env=env)
    shown = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            data = {}
            for output in cell.outputs:
                assert output.output_type != "error"
                assert output.get("name") != "stderr", output.text
                if output.output_type == "stream":  # in any number of pieces
                    data["text/plain"] = data.get("text/plain", "") + output.text
                else:
                    data.update(output.data)
            shown[cell.source] = data
    return shown


def of(cells, word):
    found = [data for source, data in cells.items() if word in source]
    assert len(found) == 1
    return found[0]


def test_it_reads_the_digits(cells):
    assert of(cells, "right\")")["text/plain"].startswith("355 of 360 right")


def test_the_plan_is_a_picture(cells):
    data = next(data for source, data in cells.items() if source == "model.plan")
    picture = data.get("image/svg+xml") or data["text/html"]
    for name in "wide1", "fine1", "cpu:0", "sim:0":
        assert name in picture, name


def test_it_says_where_the_time_goes(cells):
    profile = of(cells, "model.profile")["text/plain"]
    assert "wide1" in profile and "sim:0" in profile
    assert "ms" in of(cells, "print(model.benchmark")["text/plain"]


def test_it_compares_devices(cells):
    lines = of(cells, "places = ")["text/plain"].splitlines()
    assert len(lines) == 4 and all("apart" in line or "is not here" in line for line in lines)
    assert "apart" in lines[0] and "apart" in lines[1]
