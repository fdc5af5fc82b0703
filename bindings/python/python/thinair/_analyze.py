"""Analysis of captures."""

import glob
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, final

from thinair import _native
from thinair._flows import Flows
from thinair._types import Buffer, Captures

MOST_FLOWS = 10_000
"""Flows with all sums, unless another number is given."""

_BUFFERS = (bytes, bytearray, memoryview)

_CAPTURE = re.compile(r"\.(pcap|pcapng|cap)(\.gz|\.zst)?$", re.IGNORECASE)


def analyze(
    captures: Captures,
    *,
    schemes: Sequence[str] | None = None,
    partitions: int | None = None,
    shard: tuple[int, int] | None = None,
    survey: "Survey | None" = None,
    most_flows: int | None = None,
    tariff: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Flows:
    """Return what each scheme makes of the packets of captures, flow by flow.

    Each packet is compressed, decompressed, and compared with the original, as `thinair analyze` does. The interpreter
    lock is released meanwhile: other threads go on, and Ctrl-C ends the call.

    Args:
        captures: Captures (pcap, pcapng, also .gz and .zst), each a link of its own: a path, a pattern such as
            ``captures/*.pcap``, a folder, which stands for the captures in it, the octets of a file, or several of them.
        schemes: Schemes to compare: ``rohc-v1``, ``rohc-v2``, ``coap``, ``dtls``, ``tcp``, ``schc``, ``6lowpan``; with a mode, as in
            ``coap/o``, and with CIDs, as in ``coap/o/large-127``. Without a mode: U-mode and O-mode. Without CIDs: 16 small
            ones. Default: all but ``rohc-v2`` that can differ on these captures.
        partitions: Parallel channels of each link, 1 to 1,024. Each has contexts of its own, and packets between two
            hosts share one, so this number changes results. Default: 1.
        shard: Number of a shard, from 0, and number of shards, at most `partitions`: only a part of the partitions is
            carried. `merge` makes of all shards what one run would have returned.
        survey: What `survey` returned for these captures: they are read once instead of twice, and packets of other shards
            are skipped. Schemes, partitions and flows are those of the survey.
        most_flows: Flows with all sums, the largest by octets. Others have their octets only, and no value in the other
            columns. Default: 10,000.
        tariff: File with the price list of the link (docs/tariffs.md): `Flows.totals` has prices, and what packing would save.
        progress: Called with the octets read and the octets to read, up to twenty times a second. An exception of it ends
            the analysis.

    Raises:
        OSError: A file cannot be read; `filename` is its path.
        ValueError: A file is no capture, a scheme is not known, or another argument is wrong. A capture that is cut off is no error: its packets up
            to there are counted, and `Flows.inputs` has the reason in ``ended_by``. So it has for files that are no captures among
            others that are.

    >>> flows = analyze("captures/coap_udp6_get_con.pcap", schemes=["coap"])
    >>> flows.totals["packets"], flows.totals["flows"], len(flows)
    (600, 2, 4)
    """
    surveyed = None if survey is None else survey._native
    given = {"schemes": schemes, "partitions": partitions, "most_flows": most_flows}
    if surveyed and (named := [name for name, value in given.items() if value is not None]):
        raise ValueError(f"{', '.join(named)} of a survey cannot be changed: give them to thinair.survey")
    several = inputs(captures)
    partitions, most_flows = _or(partitions, 1), _or(most_flows, MOST_FLOWS)
    return Flows(
        _native.analyze(
            several, _names(schemes), partitions, shard or (0, 1), most_flows, surveyed, progress, len(several) > 1, prices(tariff)
        )
    )


@final
class Survey:
    """What all shards of a run need to know of the captures: rules of SCHC, contexts of 6LoWPAN, and the flows.

    It can be pickled, and has about 4 octets for each flow. It is `survey` that returns it.
    """

    __module__ = "thinair"
    __slots__ = ("_native",)

    def __init__(self, native: _native.Surveyed) -> None:
        self._native = native

    @property
    def schemes(self) -> list[str]:
        """Identifiers of the schemes: those given, or all that can differ on the captures."""
        return self._native.schemes()

    @property
    def partitions(self) -> int:
        """Parallel channels of each link."""
        return self._native.partitions

    @property
    def most_flows(self) -> int:
        """Flows with all sums."""
        return self._native.most_flows

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._native.state(),)

    def __repr__(self) -> str:
        return f"<thinair.Survey: {', '.join(self.schemes)}; {self.partitions} partitions>"


def survey(
    captures: Captures,
    *,
    schemes: Sequence[str] | None = None,
    partitions: int = 1,
    most_flows: int = 10_000,
    progress: Callable[[int, int], object] | None = None,
) -> Survey:
    """Survey captures once, for all shards of a run. Arguments and errors are those of `analyze`.

    >>> captures = "captures/coap_udp6_get_con.pcap"
    >>> once = survey(captures, partitions=4)
    >>> merge([analyze(captures, survey=once, shard=(i, 3)) for i in range(3)]) == analyze(captures, partitions=4)
    True
    """
    several = inputs(captures)
    return Survey(_native.survey(several, _names(schemes), partitions, most_flows, progress, len(several) > 1))


def merge(parts: Iterable[Flows]) -> Flows:
    """Return what one run would have returned, in every bit, of all its shards, in any order.

    Raises ValueError if they do not fit together: another capture or setting, or a shard that is missing or there twice.

    >>> shards = [analyze("captures/coap_udp6_get_con.pcap", partitions=4, shard=(i, 3)) for i in range(3)]
    >>> merge(shards) == analyze("captures/coap_udp6_get_con.pcap", partitions=4)
    True
    """
    return Flows(_native.merge([part._native for part in parts]))


def inputs(captures: Captures) -> list[tuple[str, Buffer | None]]:
    """Name of each capture, and its octets unless the name is its path."""
    named: list[tuple[str, Buffer | None]] = []
    for number, capture in enumerate([captures] if isinstance(captures, (str, os.PathLike, *_BUFFERS)) else captures):
        if isinstance(capture, _BUFFERS):
            named.append((f"<octets {number}>", capture))
        else:
            named += [(path, None) for path in files(os.fspath(capture))]
    return named


def files(path: str) -> list[str]:
    """Files of a folder or pattern, in the order of their names; another path stands for itself."""
    if os.path.isdir(path):
        found = [os.path.join(path, name) for name in sorted(os.listdir(path)) if _CAPTURE.search(name)]
        if not found:
            raise FileNotFoundError(f"no capture (.pcap, .pcapng, .cap, also .gz and .zst) in {path}")
        return found
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    found = sorted(glob.glob(path))
    if not found:
        raise FileNotFoundError(f"no file matches {path}")
    return found


def prices(tariff: str | os.PathLike[str] | None) -> tuple[str, str] | None:
    """Path and text of a price list."""
    if tariff is None:
        return None
    with open(tariff, encoding="utf-8") as file:
        return os.fspath(tariff), file.read()


def _names(schemes: Sequence[str] | None) -> list[str] | None:
    return None if schemes is None else list(schemes)


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _unpickled(state: Any) -> Survey:
    return Survey(_native.Surveyed.from_state(state))
