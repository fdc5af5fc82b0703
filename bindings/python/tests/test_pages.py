"""Examples: those of docstrings, pages and notebooks print what they show, and types are right."""

import doctest
import sys
from pathlib import Path

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


def test_notebook() -> None:
    shown = run_notebook(NOTEBOOK)
    assert "coap in O-mode" in shown and "image/png" in shown


def test_types() -> None:
    check_types("thinair", CONFIG, Path(__file__).parent, [*(blocks(page) for page in PAGES), notebook_code(NOTEBOOK)])


def test_stubs() -> None:
    check_stubs("thinair._native", CONFIG)


def test_names_are_of_the_package() -> None:
    assert {getattr(thinair, name).__module__.split(".")[0] for name in thinair.__all__} == {"thinair"}
