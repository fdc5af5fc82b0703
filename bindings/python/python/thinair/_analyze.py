"""Analysis of captures."""

import os
from collections.abc import Callable, Iterable, Sequence

from thinair import _native
from thinair._flows import Flows
from thinair._types import Buffer, Captures

_BUFFERS = (bytes, bytearray, memoryview)


def analyze(
    captures: Captures,
    *,
    schemes: Sequence[str] | None = None,
    partitions: int = 1,
    shard: tuple[int, int] | None = None,
    most_flows: int = 10_000,
    progress: Callable[[int, int], object] | None = None,
) -> Flows:
    """Return what each scheme makes of the packets of captures, flow by flow.

    Each packet is compressed, decompressed, and compared with the original, as `thinair analyze` does. The interpreter
    lock is released meanwhile: other threads go on, and Ctrl-C ends the call.

    Args:
        captures: Captures (pcap, pcapng, also .gz and .zst), each a link of its own: a path, the octets of a file, or
            several of them.
        schemes: Schemes to compare: ``rohc-v1``, ``rohc-v2``, ``coap``, ``tcp``, ``schc``, ``6lowpan``; with a mode, as in
            ``coap/o``, and with CIDs, as in ``coap/o/large-127``. Without a mode: U-mode and O-mode. Without CIDs: 16 small
            ones. Default: all but ``rohc-v2`` that can differ on these captures.
        partitions: Parallel channels of each link, 1 to 1,024. Each has contexts of its own, and packets between two
            hosts share one, so this number changes results.
        shard: Number of a shard, from 0, and number of shards, at most `partitions`: only a part of the partitions is
            carried. `merge` makes of all shards what one run would have returned.
        most_flows: Flows with all sums, the largest by octets. Others have their octets only, and no value in the other
            columns.
        progress: Called with the octets read and the octets to read, up to twenty times a second. An exception of it ends
            the analysis.

    Raises:
        OSError: A file cannot be read; `filename` is its path.
        ValueError: A file is no capture, or a scheme is not known. A capture that is cut off is no error: its packets up
            to there are counted, and `Flows.inputs` has the reason.

    >>> flows = analyze("captures/coap_udp6_get_con.pcap", schemes=["coap"])
    >>> flows.totals["packets"], flows.totals["flows"], len(flows)
    (600, 2, 4)
    """
    names = None if schemes is None else list(schemes)
    return Flows(_native.analyze(_inputs(captures), names, partitions, shard or (0, 1), most_flows, progress))


def merge(parts: Iterable[Flows]) -> Flows:
    """Return what one run would have returned, in every bit, of all its shards, in any order.

    Raises ValueError if they do not fit together: another capture or setting, or a shard that is missing or there twice.

    >>> shards = [analyze("captures/coap_udp6_get_con.pcap", partitions=4, shard=(i, 3)) for i in range(3)]
    >>> merge(shards) == analyze("captures/coap_udp6_get_con.pcap", partitions=4)
    True
    """
    return Flows(_native.merge([part._native for part in parts]))


def _inputs(captures: Captures) -> list[tuple[str, Buffer | None]]:
    """Name of each capture, and its octets unless the name is its path."""
    several = [captures] if isinstance(captures, (str, os.PathLike, *_BUFFERS)) else captures
    return [
        (f"<octets {number}>", capture) if isinstance(capture, _BUFFERS) else (os.fspath(capture), None)
        for number, capture in enumerate(several)
    ]
