"""Sweeps by many workers: processes of this machine, or a cluster of Dask.

Results are those of `thinair_lab.sweep` in every bit. Extra ``thinair-lab[dask]`` brings Dask; a pool of processes needs nothing.
"""

from collections.abc import Callable, Iterable
from typing import Any

from thinair import _workers
from thinair_lab._experiment import Lab, Plan, Runs, as_lab, count, distinct, join

_TASKS = 32
"""Tasks unless another number is given: some for each of a few workers. A task costs a millisecond."""


class SweepError(RuntimeError):
    """Runs that failed in every try: `failed` has the seed, the cell and the number of each, and its last exception."""

    def __init__(self, failed: list[tuple[int, str, int, Exception]]) -> None:
        lines = [
            f"seed {seed}, {cell or 'the plan'}, run {run}: {type(error).__name__}: {error}" for seed, cell, run, error in failed
        ]
        super().__init__("\n".join(lines))
        self.failed = failed


def sweep(
    plan: Plan,
    seeds: Iterable[int],
    *,
    runs: int | None = None,
    tasks: int = _TASKS,
    retries: int = 2,
    client: Any = None,
    partial: Callable[[Runs], object] | None = None,
) -> Runs:
    """Return what `thinair_lab.sweep` returns, by many workers.

    The runs are divided into tasks. Those of a task that failed, since its worker died for example, are tried again one by one.
    An exception, also of `partial`, and Ctrl-C cancel what is not done.

    Args:
        plan: Plan, as of `Lab`. A path is read here, not by workers.
        seeds: Seeds, each once. Results are in their order.
        runs: Runs of each cell, as of `Lab.run`.
        tasks: Number of tasks: about four for each worker.
        retries: Further tries of a run that failed.
        client: A `distributed.Client` or an `Executor`; the caller closes it. Default: a pool of processes.
        partial: Called with the results of tasks as they end, in any order.

    Raises:
        SweepError: Some runs failed in every try.
    """
    lab, listed = as_lab(plan), distinct(seeds)
    of_cell = count(lab, runs)
    of_seed = len(lab.cells) * of_cell
    done: dict[int, Runs] = {}

    def ended(first: int, part: Runs) -> None:
        done[first] = part
        if partial:
            partial(part)

    def task(first: int, end: int) -> _workers.Call[Runs]:
        """The runs from `first` on, of those of all seeds."""
        own = listed[first // of_seed : -(-end // of_seed)]
        skipped = first // of_seed * of_seed
        return _part, (lab, own, of_cell, (first - skipped, end - skipped))

    total = len(listed) * of_seed
    step = max(1, -(-total // max(1, tasks)))
    ranges = {first: min(first + step, total) for first in range(0, total, step)}
    failed = _workers.run(client, 1, {first: task(first, end) for first, end in ranges.items()}, ended)
    alone = {run: task(run, run + 1) for first in failed for run in range(first, ranges[first])}
    failed = _workers.run(client, retries, alone, ended) if retries else {run: failed[run // step * step] for run in alone}
    if failed:
        raise SweepError([(listed[run // of_seed], lab.cells[run % of_seed // of_cell], run % of_cell, error) for run, error in sorted(failed.items())])
    return join(done[first] for first in sorted(done))


def _part(lab: Lab, seeds: list[int], runs: int, part: tuple[int, int]) -> Runs:
    """A task: part of the runs of a plan with these seeds, on one thread."""
    return Runs(lab._native.run(seeds, runs, part, 1, None))
