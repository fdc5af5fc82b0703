"""Plans and their runs."""

import html
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, Union, final

from thinair import Frame
from thinair._frame import optional
from thinair_lab import _native
from thinair_lab._plan import to_toml

Plan: TypeAlias = Union["Lab", str, "os.PathLike[str]", Mapping[str, Any]]
"""A plan: its path, its text in TOML (a `str` with a line break), or a dictionary with its keys."""

Progress: TypeAlias = Callable[[int, int], object]
"""A function that is called with the steps that are done, and all steps."""


@final
class Lab:
    """An experiment: a plan of ``thinair-lab lab``, valid and ready to run.

    `plan` is the path of a TOML file, its text (a `str` with a line break), or a dictionary with the same keys.

    Raises ValueError if the plan is wrong, with the line or the key; OSError if the file cannot be read.

    >>> lab = Lab({"link": {"preset": "gprs"}, "sweep": {"clients.congestion": ["rfc7252", "fasor"]}})
    >>> lab.cells
    ['clients.congestion=rfc7252', 'clients.congestion=fasor']
    """

    __module__ = "thinair_lab"
    __slots__ = ("_native", "_source")

    def __init__(self, plan: "str | os.PathLike[str] | Mapping[str, Any]") -> None:
        if isinstance(plan, Mapping):
            self._source = (to_toml(plan), False)
        elif isinstance(plan, str) and "\n" in plan:
            self._source = (plan, True)
        else:
            self._source = (Path(plan).read_text(encoding="utf-8"), True)
        self._native = _native.Plan(*self._source)

    @property
    def title(self) -> str:
        """Title; may be empty."""
        return self._native.title

    @property
    def seed(self) -> int:
        """Seed of the plan."""
        return self._native.seed

    @property
    def count(self) -> int:
        """Runs of each cell."""
        return self._native.count

    @property
    def cells(self) -> list[str]:
        """Names of the cells: the values of the keys that are swept. One empty name if there are none."""
        return self._native.cells

    def run(
        self, seed: int | None = None, *, runs: int | None = None, jobs: int | None = None, progress: Progress | None = None
    ) -> "Runs":
        """Run every cell in virtual time.

        Results depend on plan and seed alone, not on the machine or the number of threads. The interpreter lock is released
        meanwhile. Ctrl-C ends the call at once; runs that have begun end in the background.

        Args:
            seed: Seed of everything random, 0 to 2^63 - 1. Default: that of the plan.
            runs: Runs of each cell, 1 to 1,000,000. Default: those of the plan.
            jobs: Threads. Default: one for each processor.
            progress: Called with the runs that are done and all runs, up to twenty times a second. An exception of it ends
                the runs.
        """
        return sweep(self, [self.seed if seed is None else seed], runs=runs, jobs=jobs, progress=progress)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled_lab, self._source

    def __repr__(self) -> str:
        return f"<thinair_lab.Lab: {_many(len(self.cells), 'cell')}, {_many(self.count, 'run')} each>"

    def _repr_html_(self) -> str:
        cells = "".join(f"<li>{html.escape(cell or 'the plan')}</li>" for cell in self.cells[:20])
        more = f"<p>and {len(self.cells) - 20:,} cells more</p>" if len(self.cells) > 20 else ""
        title = f"<p><b>{html.escape(self.title)}</b></p>" if self.title else ""
        return f"{title}<p>{html.escape(repr(self)[1:-1])}</p><ul>{cells}</ul>{more}"


@final
class Runs(Frame):
    """Results of runs: a table with a row for each run, in the order of seeds, cells and runs.

    Columns: ``seed`` and number of the ``run``; a column for each key that is swept, such as ``link.down.loss``; and the
    figures, which lack a value if nothing was measured: ``fct_ms``, ``crtt_ms``, ``worst_ms``, ``rtr_percent``,
    ``goodput_per_s``, ``transmissions``, ``given_up``, ``octets``, ``download_ms``, as in `docs/lab.md`.
    """

    __module__ = "thinair_lab"
    __slots__ = ("_native", "_cached")

    def __init__(self, native: _native.Runs) -> None:
        self._native = native
        self._cached: _native.Frame | None = None

    def _frame(self) -> _native.Frame:
        if self._cached is None:
            self._cached = self._native.frame()
        return self._cached

    @property
    def title(self) -> str:
        """Title of the plan."""
        return self._native.title

    @property
    def seeds(self) -> list[int]:
        """Seeds, in their order."""
        return self._native.seeds()

    @property
    def cells(self) -> Frame:
        """A row for each cell: the swept keys, the number of ``runs``, and of each figure the mean, and half of its interval
        of 95 % (``crtt_ms_half``; no value for a single run)."""
        return Frame(self._native.cells())

    def to_json(self) -> str:
        """The JSON document ``thinair.lab/1``, as of ``thinair-lab lab run --json``."""
        return self._native.json()

    def to_lines(self) -> list[str]:
        """A line of ``thinair.lab.run/1`` for each run, as of ``thinair-lab lab run --out``."""
        return self._native.lines()

    @classmethod
    def from_lines(cls, lines: Iterable[str], *, title: str = "") -> "Runs":
        """Results of such lines. Raises ValueError for other lines."""
        return cls(_native.Runs.from_lines(title, list(lines)))

    def plot(self, figure: str = "crtt_ms") -> Any:
        """A chart of the means of a figure, with intervals of 95 %, as a figure of matplotlib: over the first key with
        numbers, a line for each value of the other keys; bars if no key has numbers."""
        pyplot = optional("matplotlib.pyplot", "plot")

        rows = self.cells.rows()
        keys = list(rows[0])[: list(rows[0]).index("runs")] if rows else []
        over = next((key for key in keys if all(type(row[key]) in (int, float) for row in rows)), None)
        lines: dict[str, list[tuple[Any, float, float]]] = {}
        for row in rows:
            if row[figure] is not None:
                others = [str(row[key]) for key in keys if key != over]
                name, place = (", ".join(others), row[over]) if over else ("", ", ".join(others))
                lines.setdefault(name, []).append((place, row[figure], row[f"{figure}_half"] or 0.0))
        chart, axes = pyplot.subplots(layout="constrained")
        for name, points in lines.items():
            places, means, halves = zip(*(sorted(points) if over else points), strict=True)
            if over:
                axes.errorbar(places, means, yerr=halves, label=name or figure, capsize=3)
            else:
                axes.bar(places, means, yerr=halves, capsize=3)
        axes.set(xlabel=over or ", ".join(keys), ylabel=figure, title=self.title)
        if over and len(lines) > 1:
            axes.legend(title=", ".join(key for key in keys if key != over))
        pyplot.close(chart)  # Else a notebook shows it twice.
        return chart

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled_runs, (self.title, self.to_lines())

    def __len__(self) -> int:
        return len(self._native)

    def __eq__(self, other: object) -> bool:
        """True if both have equal lines, in equal order."""
        return isinstance(other, Runs) and self.to_lines() == other.to_lines()

    def __hash__(self) -> int:
        return hash(tuple(self.to_lines()))

    def __repr__(self) -> str:
        runs, cells, seeds = _many(len(self), "run"), _many(len(self.cells), "cell"), _many(len(self.seeds), "seed")
        return f"<thinair_lab.Runs: {runs} of {cells}, {seeds}>"


def sweep(
    plan: Plan,
    seeds: Iterable[int],
    *,
    runs: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Runs:
    """Run a plan with each of the seeds, on threads. Arguments are those of `Lab` and `Lab.run`.

    The results are those of one run after the other, whatever the number of threads. `thinair_lab.dask.sweep` does it on
    processes, or on a cluster.

    >>> plan = {"link": {"preset": "gprs"}, "requests": {"count": 3}, "runs": {"count": 1}}
    >>> runs = sweep(plan, seeds=range(3))
    >>> [row["seed"] for row in runs.rows()]
    [0, 1, 2]
    """
    lab = as_lab(plan)
    return Runs(lab._native.run(distinct(seeds), count(lab, runs), None, jobs, progress))


def join(parts: Iterable[Runs]) -> Runs:
    """Return the runs of all parts, in their order.

    Raises ValueError if a run is in two parts, or they have different plans.
    """
    return Runs(_native.join([part._native for part in parts]))


def as_lab(plan: Plan) -> Lab:
    return plan if isinstance(plan, Lab) else Lab(plan)


def count(lab: Lab, runs: int | None) -> int:
    """Runs of each cell, within limits."""
    wanted = lab.count if runs is None else runs
    if not 1 <= wanted <= 1_000_000:
        raise ValueError(f"invalid runs {wanted}: not within 1 and 1000000")
    return wanted


def distinct(seeds: Iterable[int]) -> list[int]:
    """The seeds, of which none is there twice, within limits."""
    listed = list(seeds)
    for seed in listed:
        if not 0 <= seed < 2**63:
            raise ValueError(f"invalid seed {seed}: not within 0 and 2^63 - 1")
    if len(set(listed)) < len(listed):
        twice = next(seed for at, seed in enumerate(listed) if seed in listed[:at])
        raise ValueError(f"seed {twice} is given twice")
    return listed


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _unpickled_lab(text: str, has_lines: bool) -> Lab:
    lab = Lab.__new__(Lab)
    lab._source = (text, has_lines)
    lab._native = _native.Plan(text, has_lines)
    return lab


def _unpickled_runs(title: str, lines: list[str]) -> Runs:
    return Runs.from_lines(lines, title=title)
