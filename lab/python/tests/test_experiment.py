"""Experiments: results are those of the command, whatever the number of threads, and errors name what is wrong."""

import json
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from helpers import command
from hypothesis import given, settings
from hypothesis import strategies as st

import thinair_lab
from thinair_lab._plan import to_toml

PLAN: dict[str, Any] = {
    "title": "loss",
    "link": {"preset": "gprs", "down": {"jitter": "0ms"}},
    "requests": {"count": 5, "interval": "200ms"},
    "runs": {"count": 3, "seed": 7},
    "sweep": {"link.down.loss": [0, 10], "clients.congestion": ["rfc7252", "fasor"], "rohc.mode": ["off", "o"]},
}

LONG = {"requests": {"count": 500}, "runs": {"count": 1_000_000}}


def test_results_are_those_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(to_toml(PLAN))
    out = tmp_path / "out.jsonl"
    path = str(tmp_path / "plan.toml")
    expected = command("lab", "run", path, "--json", "--out", str(out), variable="THINAIR_LAB")

    runs = thinair_lab.Lab(path).run()

    assert json.loads(runs.to_json()) == expected
    assert sorted(runs.to_lines()) == sorted(out.read_text().splitlines())
    assert len(runs) == 24 and runs.title == "loss" and runs.seeds == [7]


def test_a_plan_is_a_path_a_text_or_a_dictionary(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(to_toml(PLAN))
    expected = thinair_lab.Lab(PLAN).run()
    same: list[Path | str] = [tmp_path / "plan.toml", str(tmp_path / "plan.toml"), to_toml(PLAN)]
    for plan in same:
        assert thinair_lab.Lab(plan).run() == expected
    lab = pickle.loads(pickle.dumps(thinair_lab.Lab(PLAN)))
    assert (lab.title, lab.seed, lab.count, lab.cells[1]) == (
        "loss", 7, 3, "link.down.loss=0,clients.congestion=rfc7252,rohc.mode=o",
    )


def test_rows_are_in_the_order_of_seeds_cells_and_runs() -> None:
    runs = thinair_lab.sweep(PLAN, [9, 2], jobs=2)
    places = [(row["seed"], row["link.down.loss"], row["clients.congestion"], row["rohc.mode"], row["run"]) for row in runs.rows()]
    assert places == [
        (seed, loss, control, mode, run)
        for seed in [9, 2] for loss in [0, 10] for control in ["rfc7252", "fasor"] for mode in ["off", "o"] for run in range(3)
    ]
    assert runs == thinair_lab.join([thinair_lab.Lab(PLAN).run(seed) for seed in [9, 2]])


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=4, unique=True), st.integers(1, 5), st.integers(1, 2))
def test_threads_change_nothing(seeds: list[int], jobs: int, runs: int) -> None:
    assert thinair_lab.sweep(PLAN, seeds, jobs=jobs, runs=runs) == thinair_lab.sweep(PLAN, seeds, jobs=1, runs=runs)


def test_the_mean_of_a_cell_is_that_of_its_runs() -> None:
    runs = thinair_lab.sweep(PLAN, [1, 2])
    first, *_, last = runs.cells.rows()
    cell = {"link.down.loss": 10, "clients.congestion": "fasor", "rohc.mode": "o"}
    own = [row["crtt_ms"] for row in runs.rows() if row | cell == row]
    assert last["runs"] == len(own) == 6 and last["crtt_ms"] == pytest.approx(sum(own) / 6)
    assert last["crtt_ms_half"] > 0 and first["download_ms"] is None


def test_results_are_pickled_and_read_from_lines() -> None:
    runs = thinair_lab.sweep(PLAN, [1, 2])
    same = pickle.loads(pickle.dumps(runs))
    assert (same, hash(same), same.title) == (runs, hash(runs), "loss")
    assert thinair_lab.Runs.from_lines(runs.to_lines()) == runs != thinair_lab.sweep(PLAN, [2, 1])
    with pytest.raises(ValueError, match="line 2 is no result of a run"):
        thinair_lab.Runs.from_lines([*runs.to_lines()[:1], "{}"])


def test_parts_that_do_not_fit_are_refused() -> None:
    runs = thinair_lab.Lab(PLAN).run()
    other = thinair_lab.Lab({**PLAN, "requests": {"count": 4}}).run(seed=8)
    for parts, reason in [([], "no part"), ([runs, runs], "two parts"), ([runs, other], "another plan")]:
        with pytest.raises(ValueError, match=reason):
            thinair_lab.join(parts)


@pytest.mark.parametrize(
    ("plan", "error", "reason"),
    [
        ("[link]\npreset = 'lte'\n", ValueError, r"^line 2: "),
        ("[link]\nwhat = 1\n", ValueError, r"^line 2: unknown field `what`"),
        ({"link": {"preset": "lte"}}, ValueError, r"^link.preset "),
        ({"sweep": {"runs.count": [1]}}, ValueError, r"^sweep: runs.count cannot be swept"),
        ({"link": {"preset": b"gprs"}}, TypeError, r"^link.preset is bytes"),
        ("missing.toml", FileNotFoundError, "missing.toml"),
    ],
)
def test_errors_of_plans_have_their_place(plan: Any, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        thinair_lab.Lab(plan)


def test_errors_of_arguments_have_the_value() -> None:
    with pytest.raises(ValueError, match="invalid seed -1"):
        thinair_lab.Lab(PLAN).run(seed=-1)
    with pytest.raises(ValueError, match="seed 3 is given twice"):
        thinair_lab.sweep(PLAN, [3, 4, 3])
    with pytest.raises(ValueError, match="invalid runs 0"):
        thinair_lab.sweep(PLAN, [3], runs=0)


def test_dictionaries_of_any_texts_are_plans() -> None:
    title = 'a "quoted" \\ title,\n\x7f\x00 ΩΩ 😀'
    assert thinair_lab.Lab({"title": title, "requests": {"count": 1}, "runs": {"count": 1}}).title == title


def test_progress_goes_from_none_to_all() -> None:
    calls: list[tuple[int, int]] = []
    thinair_lab.Lab(PLAN).run(runs=30, progress=lambda done, of: calls.append((done, of)))
    assert calls[-1] == (240, 240) and calls == sorted(calls)


def test_an_exception_of_progress_ends_the_runs() -> None:
    class Enough(Exception):
        pass

    def stop(_done: int, _of: int) -> None:
        raise Enough

    with pytest.raises(Enough):
        thinair_lab.Lab(LONG).run(progress=stop)


def test_an_interrupt_ends_the_runs() -> None:
    """It ends before a number of runs that takes longer than a look at signals, and far less than the runs it ends."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ended = []

    def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        thinair_lab.sweep({"requests": {"count": 500}, "runs": {"count": 1}}, range(200), jobs=1)
        ended.append("the shorter one")

    thread = threading.Timer(0.2, interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        thinair_lab.Lab(LONG).run()
    ended.append("the interrupted one")
    thread.join()
    assert ended == ["the interrupted one", "the shorter one"]


def test_an_interrupt_ends_the_process() -> None:
    """A process that is interrupted ends: no thread that works on keeps it."""
    program = f"import thinair_lab; print(1, flush=True); thinair_lab.Lab({LONG}).run()"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "1\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and "KeyboardInterrupt" in errors


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
    thinair_lab.Lab(PLAN).run(runs=100)
    after = count
    ended.set()
    thread.join()
    assert after - before > 100
