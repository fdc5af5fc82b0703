"""Tables in frames of others, in notebooks and in charts."""

import pytest

import thinair_lab

PLAN = {"title": "a title", "requests": {"count": 3}, "runs": {"count": 2}}
SWEEP = {"sweep": {"link.both.loss": [0, 2.5], "download.active": [False, True], "clients.transport": ["udp", "tcp"]}}


@pytest.fixture(scope="module")
def runs() -> thinair_lab.Runs:
    return thinair_lab.Lab({**PLAN, **SWEEP, "download": {"octets": 1000}}).run()


def test_columns_have_types(runs: thinair_lab.Runs) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is missing")
    table = pyarrow.table(runs)
    types = {field.name: str(field.type) for field in table.schema}
    assert types | {
        "seed": "uint64", "run": "uint64", "link.both.loss": "double", "download.active": "bool", "clients.transport": "string",
        "crtt_ms": "double",
    } == types
    assert table.to_pylist() == runs.rows()
    assert pyarrow.RecordBatchReader.from_stream(runs).read_all() == table


def test_pandas_and_polars_have_equal_frames(runs: thinair_lab.Runs) -> None:
    pytest.importorskip("pandas", reason="pandas is missing")
    pytest.importorskip("polars", reason="polars is missing")
    for frame in [runs, runs.cells]:
        assert frame.to_pandas().to_dict("records")[3]["clients.transport"] == frame.to_polars().row(3, named=True)["clients.transport"]
        assert list(frame.to_pandas().columns) == frame.to_polars().columns == list(frame.rows(1)[0])


def test_a_notebook_shows_tables(runs: thinair_lab.Runs) -> None:
    assert repr(runs) == "<thinair_lab.Runs: 16 runs of 8 cells, 1 seed>"
    assert runs._repr_html_().count("<tr>") == 17 and runs.cells._repr_html_().count("<tr>") == 9
    lab = thinair_lab.Lab({**PLAN, **SWEEP})
    assert lab._repr_html_().count("<li>") == 8 and "a title" in lab._repr_html_()
    assert repr(lab) == "<thinair_lab.Lab: 8 cells, 2 runs each>"
    more = thinair_lab.Lab(PLAN).run(runs=30)
    assert more._repr_html_().count("<tr>") == 21 and "10 rows more" in more._repr_html_()


def test_a_chart_has_a_line_for_each_value_of_other_keys(runs: thinair_lab.Runs) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is missing")
    matplotlib.use("agg")
    (axes,) = runs.plot("crtt_ms").axes
    assert axes.get_xlabel() == "link.both.loss" and axes.get_ylabel() == "crtt_ms" and axes.get_title() == "a title"
    lines = {container.get_label(): container[0] for container in axes.containers}
    assert list(lines) == ["False, udp", "False, tcp", "True, udp", "True, tcp"]
    means = [row["crtt_ms"] for row in runs.cells.rows() if (row["download.active"], row["clients.transport"]) == (True, "tcp")]
    assert list(lines["True, tcp"].get_ydata()) == means and list(lines["True, tcp"].get_xdata()) == [0, 2.5]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(lines)


def test_a_chart_without_numbers_has_bars() -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is missing")
    matplotlib.use("agg")
    runs = thinair_lab.Lab({**PLAN, "sweep": {"clients.transport": ["udp", "tcp"]}}).run()
    (axes,) = runs.plot("octets").axes
    assert [patch.get_height() for patch in axes.patches] == [row["octets"] for row in runs.cells.rows()]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["udp", "tcp"]
