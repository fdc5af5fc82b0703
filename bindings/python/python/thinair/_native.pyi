"""Native part of the package: see `thinair` for the public names."""

from collections.abc import Callable, Sequence
from typing import final

from thinair._types import Buffer, Octets, Time

__all__ = ["Compressor", "DecompressError", "Decompressor", "Endpoint", "Results", "analyze", "join", "merge"]

class DecompressError(ValueError):
    """A ROHC packet that cannot be decompressed.

    Later packets may be decompressed nevertheless, when the channel has recovered.
    """

    reason: str
    """Stable name of the reason, such as ``crc`` or ``no_context``."""

@final
class Compressor:
    """Compressor of one channel of ROHC: IP packets to ROHC packets.

    Give it every packet of the channel in order. `scheme` names the profiles and the CIDs: ``rohc-v1``, ``rohc-v2``,
    ``coap`` or ``tcp``, or an identifier such as ``coap/o/large-127``. The mode follows the feedback of the other end.
    """

    def __new__(cls, scheme: str = "coap") -> Compressor: ...
    def compress(self, packet: Octets, time: Time) -> bytes:
        """Compress one IP packet.

        An integer `time` counts nanoseconds; a float, a Decimal and other numbers are seconds. Only differences between
        times matter. A time before that of an earlier call counts as that one.

        Raises ValueError if the octets are no IP packet.
        """

    def receive_feedback(self, packet: Octets, time: Time) -> None:
        """Handle feedback of the other end, as `Decompressor.poll_feedback` returns it.

        Raises ValueError if it is damaged or invalid; it is ignored then.
        """

@final
class Decompressor:
    """Decompressor of one channel of ROHC: ROHC packets to IP packets.

    `scheme` is that of the compressor. Its mode is the one that feedback requests: ``coap/u`` sends none,
    ``coap/o`` (the default) asks for refreshes, ``coap/r`` acknowledges updates.
    """

    def __new__(cls, scheme: str = "coap") -> Decompressor: ...
    def decompress(self, packet: Octets, time: Time) -> bytes | None:
        """Restore the IP packet, bit for bit. `time` is that of arrival, as for `Compressor.compress`.

        Returns None if the packet delivers nothing: it only updates the context, or holds only feedback.

        Raises DecompressError if the packet is dropped; its `reason` is a stable name.
        """

    def poll_feedback(self) -> bytes | None:
        """Return the next feedback for the compressor, or None. Call it after each packet until it returns None."""

@final
class Endpoint:
    """Both directions of one side of a link: a compressor, a decompressor, and feedback between them.

    Give every packet that arrives to `receive`, and send every packet through `send`, which puts waiting feedback in front.
    CoAP responses are compressed relative to their requests.
    """

    def __new__(cls, scheme: str = "coap") -> Endpoint: ...
    def send(self, packet: Octets, time: Time) -> bytes:
        """Compress one IP packet, as `Compressor.compress`."""

    def receive(self, packet: Octets, time: Time) -> bytes | None:
        """Take feedback from a ROHC packet and restore its IP packet, as `Decompressor.decompress`."""

    def poll_feedback(self) -> bytes | None:
        """Return feedback that waits, as a packet of its own, for a side that has nothing else to send; or None."""

@final
class Results:
    def json(self) -> str: ...
    def totals(self) -> str: ...
    def inputs(self) -> str: ...
    def faults(self) -> str: ...
    def recommendation(self) -> str: ...
    def schemes(self) -> list[str]: ...
    def state(self) -> tuple[list[str], int, int, tuple[int, int], str]: ...
    @staticmethod
    def from_state(state: tuple[list[str], int, int, tuple[int, int], str]) -> Results: ...
    def __len__(self) -> int: ...
    def arrow_schema(self) -> object: ...
    def arrow_array(self) -> tuple[object, object]: ...
    def arrow_stream(self) -> object: ...

def analyze(
    inputs: Sequence[tuple[str, Buffer | None]],
    schemes: Sequence[str] | None,
    partitions: int,
    shard: tuple[int, int],
    most_flows: int,
    progress: Callable[[int, int], object] | None,
) -> Results: ...
def join(parts: Sequence[Results]) -> Results: ...
def merge(parts: Sequence[Results]) -> Results: ...
