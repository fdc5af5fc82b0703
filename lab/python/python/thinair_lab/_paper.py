"""Published evaluations, run again."""

import html
import json
from typing import Any, final

from thinair import Frame
from thinair_lab import _native
from thinair_lab._experiment import Progress


@final
class Evaluation(Frame):
    """Results of a published evaluation: a table with a row for each figure.

    Columns: ``id``, ``what`` it is, its ``unit``; the published figure (``theirs``), ``ours``, and those of others
    (``peer.schc``, for example); the bar that ours must meet, ``bar_min`` and ``bar_max``, and whether it is ``met``.
    """

    __module__ = "thinair_lab"
    __slots__ = ("_native", "_cached")

    def __init__(self, native: _native.Evaluation) -> None:
        self._native = native
        self._cached: _native.Frame | None = None

    def _frame(self) -> _native.Frame:
        if self._cached is None:
            self._cached = self._native.frame()
        return self._cached

    @property
    def tables(self) -> dict[str, Frame]:
        """Its tables, by the headings above them."""
        return {name: Frame(table) for name, table in self._native.tables()}

    @property
    def missed(self) -> list[dict[str, Any]]:
        """Rows whose bar is not met."""
        return [row for row in self.rows() if not row["met"]]

    @property
    def left_out(self) -> list[str]:
        """Measurements that were left out, and the reasons: those in real time, for example."""
        return self._native.left_out()

    def to_json(self) -> str:
        """The JSON document ``thinair.paper/1``, as of ``thinair-lab paper run --json``."""
        return self._native.json()

    def __len__(self) -> int:
        return len(self._native)

    def __str__(self) -> str:
        """Claim, method, results and differences as text, as ``thinair-lab paper run`` prints them."""
        return self._native.text()

    def __repr__(self) -> str:
        name = json.loads(self.to_json())["paper"]
        return f"<thinair_lab.Evaluation: {name}, {len(self)} figures, {len(self.missed)} bars missed>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self)[1:-1])}</p><pre>{html.escape(str(self))}</pre>"


def papers() -> dict[str, str]:
    """Names of the evaluations, and their titles.

    >>> papers()["coap-sizes"]
    'Octets on the wire of CoAP over UDP and IP'
    """
    return dict(_native.evaluations())


def paper(
    name: str, *, quick: bool = False, seed: int = 1, jobs: int | None = None, progress: Progress | None = None
) -> Evaluation:
    """Repeat a published evaluation, in virtual time.

    Args:
        name: One of `papers`.
        quick: Fewer packets and seeds: seconds in place of minutes.
        seed: Seed of everything random.
        jobs: Threads. Default: one for each processor.
        progress: Called with the steps that are done and all steps, up to twenty times a second. An exception of it ends
            the evaluation.

    Raises ValueError for an unknown name. Ctrl-C ends the call at once; a step that has begun ends in the background.
    """
    if not 0 <= seed < 2**63:
        raise ValueError(f"invalid seed {seed}: not within 0 and 2^63 - 1")
    return Evaluation(_native.evaluate(name, quick, seed, jobs, progress))
