"""Types of arguments."""

import os
from collections.abc import Iterable
from typing import Protocol, SupportsFloat, SupportsIndex, TypeAlias, Union


class SupportsBytes(Protocol):
    """A packet of scapy or dpkt, for example."""

    def __bytes__(self) -> bytes: ...


Buffer: TypeAlias = Union[bytes, bytearray, memoryview]
"""Octets in memory."""

Octets: TypeAlias = Union[Buffer, SupportsBytes]
"""Octets of a packet."""

Time: TypeAlias = Union[SupportsIndex, SupportsFloat]
"""A time: an integer counts nanoseconds, any other number seconds."""

Capture: TypeAlias = Union[str, "os.PathLike[str]", Buffer]
"""A capture: its path, the octets of the file, or a folder or pattern of several."""

Captures: TypeAlias = Union[Capture, Iterable[Capture]]
"""One capture, or several."""
