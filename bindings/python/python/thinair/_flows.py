"""Results of an analysis."""

import html
import json
from typing import Any, final

from thinair import _native
from thinair._frame import Frame, html_table, optional


@final
class Flows(Frame):
    """Results of an analysis: a table with a row for each flow and scheme, and sums over all flows.

    It implements the Arrow PyCapsule interface: ``pyarrow.table(flows)``, ``polars.DataFrame(flows)`` and
    ``pandas.DataFrame.from_arrow(flows)`` take it, and DuckDB by its name. `len` is the number of rows.

    Columns: ``input`` and ``path`` of the capture; number of the ``flow``, ``src``, ``dst``, ``protocol``; ``side`` of the link
    that sends it (a or b), ROHC ``profile`` of most packets; ``id`` of the scheme, its ``scheme`` and ``mode``; ``packets``, and
    octets: ``bytes_in`` and ``header_bytes_in`` as captured, ``bytes_out``, ``header_bytes_out`` and ``first_packet_bytes`` as sent;
    ``feedback_packets`` and ``feedback_bytes`` in the other direction; packets that the scheme cannot compress
    (``not_applicable``) and that were not restored bit for bit (``roundtrip_mismatches``); ``saved_ratio``, the part of
    ``bytes_in`` that is saved, feedback included.
    """

    __module__ = "thinair"
    __slots__ = ("_native",)

    def __init__(self, native: _native.Results) -> None:
        self._native = native

    def _frame(self) -> _native.Frame:
        return self._native.frame()

    @property
    def totals(self) -> dict[str, Any]:
        """Sums over all captures: packets, flows, octets, and ``schemes``, a list. Keys as in `to_json`."""
        return _object(self._native.totals())

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """The captures: records, packets, what was skipped and why, and ``ended_by`` if one is cut off."""
        return _objects(self._native.inputs())

    @property
    def faults(self) -> list[dict[str, Any]]:
        """The first packets that were not restored bit for bit: capture, number of the record, scheme and cause."""
        return _objects(self._native.faults())

    @property
    def recommendation(self) -> dict[str, Any] | None:
        """Recommended scheme and settings; None if nothing is saved."""
        recommendation: dict[str, Any] | None = json.loads(self._native.recommendation())
        return recommendation

    @property
    def bill(self) -> Frame:
        """Octets of all frames by cause, largest first: a table with a row for each cause and protocol.

        Columns: ``cause``, ``protocol``, ``packets``, ``bytes``, ``share`` of all octets, ``remedy``, and ``saves_bytes``, what the remedy
        saves on these captures where it was tried. Each octet counts once: the sum of ``bytes`` is that of all frames.
        """
        return Frame(self._native.bill())

    def to_json(self) -> str:
        """The JSON document ``thinair.analyze/1``, as of ``thinair analyze --json``."""
        return self._native.json()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._native.state(),)

    def __eq__(self, other: object) -> bool:
        """True if both have equal documents, `to_json`."""
        return isinstance(other, Flows) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        totals = self.totals
        return f"<thinair.Flows: {totals['packets']} packets, {totals['flows']} flows, {len(totals['schemes'])} schemes>"

    def _summary(self) -> list[tuple[str, int, str]]:
        """Name, octets and saving of the uncompressed packets and of each scheme."""
        totals = self.totals
        rows = [("before", int(totals["bytes_in"]), "")]
        for name, scheme in zip(self._native.schemes(), totals["schemes"], strict=True):
            saved = f"{100 * scheme['saved_ratio']:.1f} %"
            rows.append((name, int(scheme["bytes_out"] + scheme["feedback_bytes"]), saved))
        return rows

    def _repr_html_(self) -> str:
        rows = [[name, f"{octets:,}", saved] for name, octets, saved in self._summary()]
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{html_table(['scheme', 'octets', 'saved'], rows)}"

    def plot(self) -> Any:
        """A chart of octets by scheme, as a figure of matplotlib."""
        pyplot = optional("matplotlib.pyplot", "plot")

        names, octets, _ = zip(*self._summary(), strict=True)
        figure, axes = pyplot.subplots(layout="constrained")
        axes.barh(names, octets)
        axes.invert_yaxis()
        axes.set_xlabel("octets, feedback included")
        pyplot.close(figure)  # Else a notebook shows it twice.
        return figure


def _unpickled(state: Any) -> Flows:
    return Flows(_native.Results.from_state(state))


def _object(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text)
    return value


def _objects(text: str) -> list[dict[str, Any]]:
    value: list[dict[str, Any]] = json.loads(text)
    return value
