"""Examples: those of docstrings and pages print what they show, and types are right."""

import doctest
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import thinair

CONFIG = str(ROOT / "bindings/python/pyproject.toml")
PAGES = ["README.md", "docs/python.md", "bindings/python/README.md"]


def blocks(page: str) -> str:
    """Blocks of Python of a page, in order, on the lines where they stand."""
    lines, inside = [], False
    for line in (ROOT / page).read_text().splitlines():
        is_fence = line.startswith("```")
        lines.append(line if inside and not is_fence else "")
        inside = line == "```python" if is_fence else inside
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("module", ["thinair", "thinair._analyze", "thinair._flows"])
def test_docstrings(module: str) -> None:
    result = doctest.testmod(sys.modules[module])
    assert result.failed == 0


@pytest.mark.parametrize("page", PAGES)
def test_pages(page: str, tmp_path: Path) -> None:
    program = blocks(page)
    assert program.strip(), page
    if ">>> " in program:
        test = doctest.DocTestParser().get_doctest(program, {}, page, page, 0)
        assert test.examples and doctest.DocTestRunner().run(test).failed == 0
    else:
        exec(compile(program, page, "exec"), {})


def test_notebook() -> None:
    """The notebook runs from its first cell to its last one."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is missing")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is missing")
    pytest.importorskip("ipykernel", reason="ipykernel is missing")
    notebook = nbformat.read(ROOT / "docs/notebooks/fleet.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    shown = "".join(str(output) for cell in notebook.cells for output in cell.get("outputs", []))
    assert "coap in O-mode" in shown


def test_types() -> None:
    """mypy accepts the package, its tests, and the programs of pages."""
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", sys.prefix + "/mypy", "--config-file", CONFIG]
    tests = sorted(str(path) for path in Path(__file__).parent.glob("*.py"))
    programs = [doctest.script_from_examples(text) if ">>> " in (text := blocks(page)) else text for page in PAGES]
    for what in [["-p", "thinair"], tests, ["-c", "\n".join(programs)]]:
        done = subprocess.run([*mypy, *what], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_stubs() -> None:
    """The stub of the native part has its names and signatures."""
    arguments = [sys.executable, "-m", "mypy.stubtest", "thinair._native", "--mypy-config-file", CONFIG]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
