"""Many workers: their results are those of one machine, and failures are tried again and named."""

import multiprocessing
import os
import signal
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thinair_lab
import thinair_lab.dask

PLAN: dict[str, Any] = {
    "link": {"preset": "gprs"},
    "requests": {"count": 5},
    "runs": {"count": 3},
    "sweep": {"link.down.loss": [0, 10]},
}


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 99), min_size=1, max_size=5, unique=True), st.integers(1, 60), st.integers(1, 4))
def test_results_are_those_of_one_machine(seeds: list[int], tasks: int, runs: int) -> None:
    with ThreadPoolExecutor() as pool:
        found = thinair_lab.dask.sweep(PLAN, seeds, tasks=tasks, runs=runs, client=pool)
    assert found == thinair_lab.sweep(PLAN, seeds, runs=runs)
    assert found.seeds == seeds


def test_a_pool_of_processes_needs_no_dask() -> None:
    parts: list[thinair_lab.Runs] = []
    found = thinair_lab.dask.sweep(PLAN, range(10), tasks=7, partial=parts.append)
    assert found == thinair_lab.sweep(PLAN, range(10))
    assert len(parts) == 7 and sorted(line for part in parts for line in part.to_lines()) == sorted(found.to_lines())


def test_a_process_may_be_killed() -> None:
    """Another one takes its place, and its runs are tried again."""
    killed: list[int] = []

    def kill(_part: thinair_lab.Runs) -> None:
        if not killed:
            process = multiprocessing.active_children()[0]
            killed.append(process.pid or 0)
            process.kill()

    found = thinair_lab.dask.sweep(PLAN, range(200), tasks=100, partial=kill)
    assert found == thinair_lab.sweep(PLAN, range(200))
    killed.clear()
    with pytest.raises(thinair_lab.dask.SweepError, match="WorkerError: process .* died, exit code -9"):
        thinair_lab.dask.sweep(PLAN, range(200), tasks=100, partial=kill, retries=0)


def test_a_worker_of_dask_may_be_killed() -> None:
    distributed = pytest.importorskip("distributed", reason="distributed (Dask) is missing")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    killed: list[int] = []
    with cluster, distributed.Client(cluster) as client:
        workers = sorted(client.run(os.getpid).values())

        def kill(_part: thinair_lab.Runs) -> None:
            if not killed:
                killed.append(workers[0])
                os.kill(workers[0], signal.SIGKILL)

        found = thinair_lab.dask.sweep(PLAN, range(200), tasks=100, client=client, partial=kill)
        assert killed[0] not in client.run(os.getpid).values()
    assert found == thinair_lab.sweep(PLAN, range(200))


class Unsteady(Executor):
    """Fails the first tries of all tasks with these runs of their seeds."""

    def __init__(self, run: int, failures: int) -> None:
        self.run, self.failures = run, failures
        self.parts: list[tuple[int, int]] = []

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> "Future[Any]":
        future: "Future[Any]" = Future()
        first, end = arguments[3]
        self.parts.append((first, end))
        if first <= self.run < end and self.failures > 0:
            self.failures -= 1
            future.set_exception(ConnectionError("the worker is gone"))
        else:
            future.set_result(function(*arguments))
        return future


def test_runs_of_a_task_that_fails_are_tried_again_one_by_one() -> None:
    client = Unsteady(run=3, failures=2)
    assert thinair_lab.dask.sweep(PLAN, [5], tasks=3, client=client) == thinair_lab.Lab(PLAN).run(5)
    assert client.parts == [(0, 2), (2, 4), (4, 6), (2, 3), (3, 4), (3, 4)]


@pytest.mark.parametrize(("retries", "named"), [(2, [4]), (0, [4, 5])])
def test_runs_that_fail_for_good_are_named(retries: int, named: list[int]) -> None:
    message = "seed 7, link.down.loss=10, run 1: ConnectionError: the worker is gone"
    with pytest.raises(thinair_lab.dask.SweepError, match=message) as raised:
        thinair_lab.dask.sweep(PLAN, [7], tasks=3, retries=retries, client=Unsteady(run=4, failures=9))
    assert [(seed, cell, run) for seed, cell, run, _ in raised.value.failed] == [
        (7, "link.down.loss=10", run - 3) for run in named
    ]


def test_an_interrupt_cancels_all_tasks() -> None:
    """It ends before some runs, which begin with the interrupt, and leaves no process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ended = []

    def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        thinair_lab.sweep(PLAN, range(2_000), jobs=1)
        ended.append("the shorter one")

    thread = threading.Thread(target=interrupt)

    def ended_one(_part: thinair_lab.Runs) -> None:
        if thread.ident is None:
            thread.start()

    with pytest.raises(KeyboardInterrupt):
        thinair_lab.dask.sweep({**PLAN, "requests": {"count": 500}}, range(100_000), tasks=3_000, partial=ended_one)
    ended.append("the interrupted one")
    thread.join()
    assert ended == ["the interrupted one", "the shorter one"]
    assert multiprocessing.active_children() == []
