"""Analysis: the results are those of the command, and errors name what is wrong."""

import errno
import json
import pickle
import signal
import threading
import time
from pathlib import Path

import pytest
from helpers import CAPTURES, command

import thinair

SCHEMES = ["rohc-v1", "coap", "tcp", "schc", "6lowpan"]
COAP = "captures/coap_udp6_get_con.pcap"


@pytest.mark.parametrize(
    "captures",
    [
        [COAP],
        ["captures/rtp_udp4_opus_dtx.pcap", "captures/bulk_tcp6_snap128.pcap"],
        ["captures/esp4_tunnel.pcap", "captures/udplite6_coverage_varying.pcap", "captures/coap_udp4_oscore_observe.pcap"],
    ],
)
def test_results_are_those_of_the_command(captures: list[str]) -> None:
    expected = command("analyze", *captures, "--json", "--schemes", ",".join(SCHEMES))

    flows = thinair.analyze(captures, schemes=SCHEMES)

    assert json.loads(flows.to_json()) == expected
    assert flows.totals == expected["totals"]
    assert flows.inputs == expected["inputs"]
    assert flows.recommendation == expected["recommendation"]
    assert flows.faults == []
    assert len(flows) == len(expected["flows"]) * len(expected["totals"]["schemes"])


def test_a_price_list_prices_packets_and_travels_with_results(tmp_path: Path) -> None:
    tariff = "docs/tariffs/skylo-monogoto.toml"
    flows = thinair.analyze(COAP, schemes=["coap"], tariff=tariff)
    assert flows.totals == command("analyze", COAP, "--json", "--schemes", "coap", "--tariff", tariff)["totals"]
    assert flows.totals["tariff"]["currency"] == "octet"
    assert pickle.loads(pickle.dumps(flows)) == flows
    shards = [thinair.analyze(COAP, schemes=["coap"], tariff=tariff, shard=(number, 2), partitions=2) for number in range(2)]
    assert thinair.merge(shards) == thinair.analyze(COAP, schemes=["coap"], tariff=tariff, partitions=2)
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(Path(tariff).read_text().replace("step = 1", "step = 0"))
    with pytest.raises(ValueError, match=r"wrong.toml, line 7: invalid step 0"):
        thinair.analyze(COAP, tariff=wrong)


def test_the_bill_is_that_of_the_command() -> None:
    flows = thinair.analyze(COAP, schemes=["coap/o"])
    expected = command("analyze", COAP, "--json", "--schemes", "coap", "--mode", "o")["bill"]
    assert flows.bill.rows() == expected
    assert pickle.loads(pickle.dumps(flows)).bill.rows() == expected
    both = thinair.analyze([COAP, COAP], schemes=["coap/o"])
    assert sum(row["bytes"] for row in both.bill.rows()) == 2 * sum(row["bytes"] for row in expected)


def test_a_default_comparison_has_the_schemes_that_apply() -> None:
    schemes = {scheme["scheme"] for scheme in thinair.analyze(COAP).totals["schemes"]}
    assert schemes == {"rohc-v1", "coap", "schc", "6lowpan"}


def test_identifiers_of_schemes_choose_mode_and_cids() -> None:
    flows = thinair.analyze(COAP, schemes=["coap/o/large-127", "coap/r", "coap/r"])
    found = [(scheme["mode"], scheme.get("contexts")) for scheme in flows.totals["schemes"]]
    assert found == [("o", {"cid": "large", "max_cid": 127}), ("r", None)]


def test_octets_and_paths_are_equal() -> None:
    octets = (CAPTURES / "coap_udp6_get_con.pcap").read_bytes()
    totals = thinair.analyze(COAP).totals
    same: list[Path | bytes | bytearray | memoryview] = [Path(COAP), octets, bytearray(octets), memoryview(octets)]
    for capture in same:
        assert thinair.analyze(capture).totals == totals


def test_flows_beyond_the_largest_are_counted() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is missing")
    rows = pyarrow.table(thinair.analyze(COAP, schemes=["coap/o"], most_flows=1)).to_pylist()
    every = pyarrow.table(thinair.analyze(COAP, schemes=["coap/o"])).to_pylist()
    assert [row["header_bytes_out"] is None for row in rows] == [False, True]
    for key in ["bytes_in", "bytes_out", "feedback_bytes", "packets", "saved_ratio"]:
        assert sorted(row[key] for row in rows) == sorted(row[key] for row in every)


def test_a_capture_that_is_cut_off_is_counted_up_to_there() -> None:
    octets = (CAPTURES / "coap_udp6_get_con.pcap").read_bytes()
    flows = thinair.analyze([octets[:-3], octets], schemes=["coap/o"])
    assert flows.totals["packets"] == 1199
    assert "truncated file" in flows.inputs[0]["ended_by"] and flows.inputs[1]["ended_by"] is None


@pytest.mark.parametrize(
    ("capture", "error", "number"),
    [("missing.pcap", FileNotFoundError, errno.ENOENT), ("missing/one.pcap", FileNotFoundError, errno.ENOENT)],
)
def test_files_that_cannot_be_read_are_named(capture: str, error: type[OSError], number: int) -> None:
    with pytest.raises(error) as raised:
        thinair.analyze([COAP, capture])
    assert (raised.value.errno, raised.value.filename) == (number, capture)
    assert "os error" not in str(raised.value)


def test_files_that_are_no_captures_are_named() -> None:
    cases: list[str | list[str | bytes]] = ["README.md", ["README.md"], ["README.md", b""]]
    for captures in cases:
        with pytest.raises(ValueError, match=r"^README\.md: not a capture file"):
            thinair.analyze(captures)


def test_files_that_are_no_captures_are_left_out_of_several() -> None:
    alone = thinair.analyze(COAP, schemes=["coap/o", "schc"])
    cases: list[list[str | bytes]] = [["README.md", COAP, b""], [b"", COAP, "README.md"]]
    for captures in cases:
        flows = thinair.analyze(captures, schemes=["coap/o", "schc"])
        assert flows.totals == alone.totals
        reasons = [one["ended_by"] for one in flows.inputs]
        assert reasons[1] is None and all("not a capture file" in reason for reason in (reasons[0], reasons[2]))
        once = thinair.survey(captures, schemes=["coap/o", "schc"], partitions=3)
        shards = [thinair.analyze(captures, survey=once, shard=(number, 2)) for number in range(2)]
        assert thinair.merge(shards) == thinair.analyze(captures, schemes=["coap/o", "schc"], partitions=3)


def test_folders_and_patterns_are_the_captures_in_them(tmp_path: Path) -> None:
    for name in ["b.pcap", "a.PCAP", "c.pcapng", "notes.txt"]:
        (tmp_path / name).write_bytes((CAPTURES / "coap_udp4_observe.pcap").read_bytes())
    names = [str(tmp_path / name) for name in ["a.PCAP", "b.pcap", "c.pcapng"]]
    found: list[str | Path | list[Path]] = [tmp_path, str(tmp_path), str(tmp_path / "*.[pP]*"), [tmp_path]]
    for captures in found:
        flows = thinair.analyze(captures, schemes=["coap/o"])
        assert [one["path"] for one in flows.inputs] == names
    (tmp_path / "empty").mkdir()
    missing: list[str | Path] = [tmp_path / "empty", str(tmp_path / "*.gz")]
    for nothing in missing:
        with pytest.raises(FileNotFoundError, match=r"^no (capture|file) "):
            thinair.analyze(nothing)


@pytest.mark.parametrize("scheme", ["rohc", "coap/x", "schc/o", "coap/o/small-16"])
def test_unknown_schemes_are_named(scheme: str) -> None:
    with pytest.raises(ValueError, match=f"scheme `{scheme}`"):
        thinair.analyze(COAP, schemes=[scheme])


def test_progress_goes_from_none_to_all() -> None:
    calls: list[tuple[int, int]] = []
    thinair.analyze(COAP, progress=lambda read, total: calls.append((read, total)))
    total = 2 * (CAPTURES / "coap_udp6_get_con.pcap").stat().st_size
    assert calls[0] == (0, total) and calls[-1] == (total, total)
    assert calls == sorted(calls)


def test_an_exception_of_progress_ends_the_analysis() -> None:
    class Enough(Exception):
        pass

    def stop(_read: int, _total: int) -> None:
        raise Enough

    with pytest.raises(Enough):
        thinair.analyze(COAP, progress=stop)


def test_an_interrupt_ends_the_analysis() -> None:
    """It ends before an analysis of a fortieth of the captures, which begins with the interrupt."""
    ended = []

    # A shell that starts tests in the background has them ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        thinair.analyze([COAP] * 100)
        ended.append("the shorter one")

    thread = threading.Timer(0.2, interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        thinair.analyze([COAP] * 4_000)
    ended.append("the interrupted one")
    thread.join()
    assert ended == ["the interrupted one", "the shorter one"]


def test_other_threads_go_on() -> None:
    count, ended = 0, threading.Event()

    def go_on() -> None:
        nonlocal count
        while not ended.is_set():
            count += 1
            time.sleep(0)

    thread = threading.Thread(target=go_on)
    thread.start()
    before = count
    thinair.analyze([COAP] * 40)
    after = count
    ended.set()
    thread.join()
    assert after - before > 100
