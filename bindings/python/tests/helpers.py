"""Paths, the commands that results are compared with, and examples of pages, for the tests of both packages."""

import doctest
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
CAPTURES = ROOT / "captures"


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples name captures relative to the repository."""
    monkeypatch.chdir(ROOT)


def command(*arguments: str, variable: str = "THINAIR") -> Any:
    """What `thinair ARGUMENTS`, or another command in a variable of the environment, prints as JSON."""
    program = os.environ.get(variable)
    if program is None:
        pytest.skip(f"{variable} does not name the command")
    # The packages have no captures beside those of the repository.
    environment = {name: value for name, value in os.environ.items() if name != "THINAIR_VECTORS"}
    done = subprocess.run([program, *arguments], capture_output=True, check=False, cwd=ROOT, env=environment)
    return json.loads(done.stdout)


def packets(name: str) -> list[tuple[int, bytes]]:
    """Times in nanoseconds and IP packets of a capture of this repository: pcap, little-endian, raw IP or Ethernet."""
    octets = (CAPTURES / name).read_bytes()
    unit = {b"\xd4\xc3\xb2\xa1": 1_000, b"\x4d\x3c\xb2\xa1": 1}[octets[:4]]
    skipped = {1: 14, 101: 0}[octets[20]]
    found, at = [], 24
    while at < len(octets):
        seconds, part, length, _ = struct.unpack_from("<4I", octets, at)
        found.append((seconds * 10**9 + part * unit, octets[at + 16 + skipped : at + 16 + length]))
        at += 16 + length
    return found


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Prints skips as `scripts/skips` reads them."""
    if report.skipped and isinstance(report.longrepr, tuple):
        print(f"\n---- {report.nodeid} stdout ----\nskipped: {report.longrepr[2].removeprefix('Skipped: ')}")


def blocks(page: str) -> str:
    """Blocks of Python of a page, in order, on the lines where they stand."""
    lines, inside = [], False
    for line in (ROOT / page).read_text().splitlines():
        is_fence = line.startswith("```")
        lines.append(line if inside and not is_fence else "")
        inside = line == "```python" if is_fence else inside
    return "\n".join(lines) + "\n"


def run_examples(page: str) -> None:
    """Types in the blocks of a page. A session must print what it shows."""
    program = blocks(page)
    assert program.strip(), page
    if ">>> " in program:
        test = doctest.DocTestParser().get_doctest(program, {}, page, page, 0)
        assert test.examples and doctest.DocTestRunner().run(test).failed == 0
    else:
        exec(compile(program, page, "exec"), {})


def run_notebook(path: str) -> str:
    """Runs a notebook from its first cell to its last one. Returns all that it shows."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is missing")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is missing")
    pytest.importorskip("ipykernel", reason="ipykernel is missing")
    notebook = nbformat.read(ROOT / path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    return "".join(str(output) for cell in notebook.cells for output in cell.get("outputs", []))


def notebook_code(path: str) -> str:
    """The program of a notebook."""
    cells = json.loads((ROOT / path).read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def check_types(package: str, config: str, tests: Path, programs: list[str]) -> None:
    """mypy accepts a package, its tests, and programs."""
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", sys.prefix + "/mypy", "--config-file", str(ROOT / config)]
    modules = sorted(str(path) for path in tests.glob("*.py"))
    texts = [doctest.script_from_examples(text) if ">>> " in text else text for text in programs]
    path = {"MYPYPATH": str(ROOT / "bindings/python/tests"), **os.environ}
    for what in [["-p", package], modules, *(["-c", text] for text in texts)]:
        done = subprocess.run([*mypy, *what], capture_output=True, text=True, check=False, env=path)
        assert done.returncode == 0, done.stdout + done.stderr


def check_stubs(module: str, config: str) -> None:
    """The stub of a native module has its names and signatures."""
    arguments = [sys.executable, "-m", "mypy.stubtest", module, "--mypy-config-file", str(ROOT / config)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
