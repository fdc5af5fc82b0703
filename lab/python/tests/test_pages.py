"""Examples: those of docstrings, pages and notebooks print what they show, and types are right."""

import doctest
import sys
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from helpers import blocks, check_stubs, check_types, notebook_code, run_examples, run_notebook

import thinair_lab

CONFIG = "lab/python/pyproject.toml"
PAGES = ["docs/python.md", "docs/scale.md", "lab/python/README.md"]
NOTEBOOK = "docs/notebooks/sweep.ipynb"


@pytest.mark.parametrize("module", ["thinair_lab", "thinair_lab._experiment", "thinair_lab._paper"])
def test_docstrings(module: str) -> None:
    result = doctest.testmod(sys.modules[module])
    assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize("page", PAGES)
def test_pages(page: str) -> None:
    run_examples(page)


def test_notebook() -> None:
    shown = run_notebook(NOTEBOOK)
    assert "fasor: " in shown and "image/png" in shown and "Traceback" not in shown


def test_types() -> None:
    check_types("thinair_lab", CONFIG, Path(__file__).parent, [*(blocks(page) for page in PAGES), notebook_code(NOTEBOOK)])


def test_stubs() -> None:
    check_stubs("thinair_lab._native", CONFIG)


def test_names_are_of_the_package() -> None:
    assert {getattr(thinair_lab, name).__module__.split(".")[0] for name in thinair_lab.__all__} == {"thinair_lab"}


def test_both_packages_have_one_version() -> None:
    assert version("thinair") == version("thinair-lab") and f"thinair=={version('thinair')}" in (requires("thinair-lab") or [])
