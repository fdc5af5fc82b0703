"""Published evaluations: figures are those of the command."""

import json
import signal
import threading

import pytest
from helpers import command

import thinair_lab


@pytest.fixture(scope="module")
def sizes() -> thinair_lab.Evaluation:
    return thinair_lab.paper("coap-sizes", quick=True)


def test_figures_are_those_of_the_command(sizes: thinair_lab.Evaluation) -> None:
    expected = command("paper", "run", "coap-sizes", "--quick", "--json", variable="THINAIR_LAB")
    assert json.loads(sizes.to_json()) == expected
    for row, same in zip(sizes.rows(), expected["rows"], strict=True):
        assert (row["id"], row["ours"], row["theirs"], row["met"]) == (same["id"], same["ours"], same["theirs"], same["met"])
        assert {key[5:]: value for key, value in row.items() if key.startswith("peer.") and value is not None} == same["peers"]
        assert (row["bar_min"], row["bar_max"]) == ((same["bar"]["min"], same["bar"]["max"]) if same["bar"] else (None, None))
    assert sizes.missed == [] and "coap-sizes" in repr(sizes) and "leshan" in sizes.left_out[0]


def test_tables_are_frames(sizes: thinair_lab.Evaluation) -> None:
    assert len(sizes.tables) > 1
    for name, table in sizes.tables.items():
        assert name and len(table) > 0 and table.rows(1)[0]
    numbers = [value for table in sizes.tables.values() for row in table.rows() for value in row.values()]
    assert {type(value) for value in numbers} >= {str, float}
    assert "Claim" in str(sizes) and "<pre>" in sizes._repr_html_()


def test_a_seed_determines_the_figures() -> None:
    first, same, other = (thinair_lab.paper("coap-lossy", quick=True, seed=seed, jobs=seed).to_json() for seed in [2, 2, 3])
    assert first == same != other


def test_all_evaluations_are_listed() -> None:
    assert list(thinair_lab.papers()) == sorted(thinair_lab.papers()) and "coap-lossy" in thinair_lab.papers()
    with pytest.raises(ValueError, match="no evaluation is named coap; there are coap-delay, "):
        thinair_lab.paper("coap")


def test_an_interrupt_ends_an_evaluation() -> None:
    """It ends before a quick one, which begins with the interrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ended = []

    def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        thinair_lab.paper("coap-sizes", quick=True)
        ended.append("the quick one")

    thread = threading.Timer(0.2, interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        thinair_lab.paper("coap-lossy")
    ended.append("the interrupted one")
    thread.join()
    assert ended == ["the interrupted one", "the quick one"]
