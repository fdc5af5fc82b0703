"""The table in frames of others, in notebooks and in charts."""

import sys

import pytest

import thinair

COAP = "captures/coap_udp6_get_con.pcap"


@pytest.fixture(scope="module")
def flows() -> thinair.Flows:
    return thinair.analyze(COAP, schemes=["coap", "schc"])


def test_pyarrow_takes_a_batch_and_a_stream(flows: thinair.Flows) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is missing")
    batch = pyarrow.record_batch(flows)
    assert batch.num_rows == len(flows) == 6
    assert pyarrow.schema(flows) == batch.schema
    assert pyarrow.RecordBatchReader.from_stream(flows).read_all() == pyarrow.Table.from_batches([batch])
    batch.validate(full=True)
    for scheme, total in zip(["coap/u", "coap/o", "schc"], flows.totals["schemes"], strict=True):
        rows = [row for row in batch.to_pylist() if row["id"] == scheme]
        for key in ["bytes_out", "header_bytes_out", "first_packet_bytes", "feedback_packets", "feedback_bytes"]:
            assert sum(row[key] for row in rows) == total[key]
        assert {row["path"] for row in rows} == {COAP}


def test_the_table_outlives_its_results() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is missing")
    table = pyarrow.table(thinair.analyze(COAP, schemes=["schc"]))
    assert table.column("mode").null_count == table.num_rows == 2


def test_capsules_that_nobody_takes_are_freed(flows: thinair.Flows) -> None:
    for _ in range(100):
        flows.__arrow_c_schema__()
        flows.__arrow_c_array__()
        flows.__arrow_c_stream__()


def test_pandas_and_polars_have_equal_frames(flows: thinair.Flows) -> None:
    pytest.importorskip("pandas", reason="pandas is missing")
    pytest.importorskip("pyarrow", reason="pyarrow is missing")
    pytest.importorskip("polars", reason="polars is missing")
    pandas, polars = flows.to_pandas(), flows.to_polars()
    assert list(pandas.columns) == polars.columns and len(pandas) == len(polars) == len(flows)
    for octets in [pandas.groupby("id")["bytes_out"].sum().to_dict(), dict(polars[["id", "bytes_out"]].group_by("id").sum().rows())]:
        assert octets["schc"] == flows.totals["schemes"][2]["bytes_out"]


def test_duckdb_takes_a_table_by_its_name(flows: thinair.Flows) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is missing")
    found = duckdb.connect().execute("select id, sum(bytes_out) from flows group by id order by id").fetchall()
    octets = {scheme["mode"] and f"{scheme['scheme']}/{scheme['mode']}" or scheme["scheme"]: scheme["bytes_out"] for scheme in flows.totals["schemes"]}
    assert dict(found) == octets and list(octets) == ["coap/u", "coap/o", "schc"]


def test_rows_need_no_other_package(flows: thinair.Flows) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is missing")
    assert flows.rows() == pyarrow.table(flows).to_pylist() and flows.rows(2) == flows.rows()[:2]
    assert isinstance(flows, thinair.Frame)


def test_a_package_that_is_missing_is_named_with_its_cure(flows: thinair.Flows, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ["pandas", "polars", "matplotlib.pyplot"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=r"pandas is missing: pip install 'thinair\[pandas\]'"):
        flows.to_pandas()
    with pytest.raises(ModuleNotFoundError, match=r"polars is missing: pip install 'thinair\[polars\]'"):
        flows.to_polars()
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'thinair\[plot\]'"):
        flows.plot()


def test_a_notebook_shows_a_table(flows: thinair.Flows) -> None:
    page = flows._repr_html_()
    assert page.count("<tr>") == 5 and "coap/o" in page and f"{flows.totals['bytes_in']:,}" in page
    assert repr(flows) == "<thinair.Flows: 600 packets, 2 flows, 3 schemes>"


def test_a_chart_has_a_bar_for_each_scheme(flows: thinair.Flows) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is missing")
    matplotlib.use("agg")
    (axes,) = flows.plot().axes
    octets = [scheme["bytes_out"] + scheme["feedback_bytes"] for scheme in flows.totals["schemes"]]
    assert [patch.get_width() for patch in axes.patches] == [flows.totals["bytes_in"], *octets]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["before", "coap/u", "coap/o", "schc"]
    assert axes.get_xlabel() == "octets, feedback included" and axes.yaxis_inverted()
