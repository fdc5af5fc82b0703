"""Examples: those of docstrings, pages and notebooks print what they show, and types are right."""

import doctest
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import blocks, check_stubs, check_types, notebook_code, run_examples, run_notebook

import thinair

CONFIG = "bindings/python/pyproject.toml"
PAGES = ["README.md", "bindings/python/README.md"]
NOTEBOOK = "docs/notebooks/fleet.ipynb"


@pytest.mark.parametrize("module", ["thinair", "thinair._analyze"])
def test_docstrings(module: str) -> None:
    result = doctest.testmod(sys.modules[module])
    assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize("page", PAGES)
def test_pages(page: str) -> None:
    run_examples(page)


def test_the_example_of_the_readme_has_all_octets() -> None:
    """Feedback counts, too: a scheme with less beside more of it would look better than it is."""
    pytest.importorskip("pandas", reason="pandas is missing")
    printed: list[Any] = []
    exec(compile(blocks("README.md"), "README.md", "exec"), {"print": printed.append})
    schemes = thinair.analyze("captures/coap_udp6_get_con.pcap").totals["schemes"]
    sent = sum(scheme["bytes_out"] + scheme["feedback_bytes"] for scheme in schemes)
    assert printed[-1].to_numpy().sum() == sent > sum(scheme["bytes_out"] for scheme in schemes)


def test_notebook() -> None:
    shown = run_notebook(NOTEBOOK)
    assert "coap in O-mode" in shown and "image/png" in shown


def test_types() -> None:
    check_types("thinair", CONFIG, Path(__file__).parent, [*(blocks(page) for page in PAGES), notebook_code(NOTEBOOK)])


def test_stubs() -> None:
    check_stubs("thinair._native", CONFIG)


def test_names_are_of_the_package() -> None:
    assert {getattr(thinair, name).__module__.split(".")[0] for name in thinair.__all__} == {"thinair"}
