"""Both ends of a channel: packets come back bit for bit, and feedback goes both ways."""

import decimal
import struct

import pytest
from helpers import packets
from hypothesis import given, settings
from hypothesis import strategies as st

import thinair

SECOND = 10**9


def udp4(number: int, port: int, payload: bytes) -> bytes:
    """An IPv4 packet of UDP without UDP checksum."""
    total = 28 + len(payload)
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, total, number, 0, 64, 17, 0, b"\x0a\0\0\x01", b"\x0a\0\0\x02")
    words = sum(struct.unpack(">10H", header))
    while words >> 16:
        words = (words & 0xFFFF) + (words >> 16)
    header = header[:10] + struct.pack(">H", words ^ 0xFFFF) + header[12:]
    return header + struct.pack(">HHHH", port, 5000, 8 + len(payload), 0) + payload


@pytest.mark.parametrize("scheme", ["rohc-v1/u", "rohc-v2/o", "coap/o", "tcp/r", "coap/o/large-127"])
@pytest.mark.parametrize("capture", ["coap_udp6_get_con.pcap", "rtp_udp4_pcmu.pcap", "http11_tcp4_get_each.pcap"])
def test_packets_of_captures_come_back(scheme: str, capture: str) -> None:
    compressor, decompressor = thinair.Compressor(scheme), thinair.Decompressor(scheme)
    octets = 0
    for time, packet in packets(capture):
        compressed = compressor.compress(packet, time)
        assert decompressor.decompress(compressed, time) == packet
        octets += len(compressed)
        while (feedback := decompressor.poll_feedback()) is not None:
            compressor.receive_feedback(feedback, time)
    assert octets < sum(len(packet) for _, packet in packets(capture))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=40), st.integers(0, 2 * SECOND)), max_size=60),
    st.sampled_from(["rohc-v1", "rohc-v2", "coap", "tcp"]),
    st.sampled_from("uor"),
)
def test_any_flows_come_back(sent: list[tuple[int, bytes, int]], scheme: str, mode: str) -> None:
    scheme = f"{scheme}/{mode}"
    a, b = thinair.Endpoint(scheme), thinair.Endpoint(scheme)
    time = 0
    for number, (port, payload, pause) in enumerate(sent):
        time += pause
        packet = udp4(number, 4000 + port, payload)
        assert b.receive(a.send(packet, time), time) == packet
        assert a.receive(b.send(packet, time), time) == packet


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=100), max_size=20))
def test_any_octets_are_delivered_or_refused(received: list[bytes]) -> None:
    decompressor = thinair.Decompressor("tcp/o")
    for octets in received:
        try:
            delivered = decompressor.decompress(octets, 0)
            assert delivered is None or isinstance(delivered, bytes)
        except thinair.DecompressError as error:
            assert error.reason


def test_feedback_changes_the_mode() -> None:
    """In O-mode no packet refreshes the context; in U-mode some do, and are larger."""

    def largest(scheme: str) -> int:
        a, b = thinair.Endpoint(scheme), thinair.Endpoint(scheme)
        sizes = []
        for number in range(2_000):
            compressed = a.send(udp4(number, 4000, b"\0"), number * SECOND)
            b.receive(compressed, number * SECOND)
            sizes.append(len(compressed))
            if (feedback := b.poll_feedback()) is not None:
                assert a.receive(feedback, number * SECOND) is None
        return max(sizes[100:])

    assert largest("rohc-v1/o") < largest("rohc-v1/u")


def test_a_lost_context_is_asked_for() -> None:
    compressor, decompressor = thinair.Compressor("rohc-v1/o"), thinair.Decompressor("rohc-v1/o")
    for number in range(20):
        compressed = compressor.compress(udp4(number, 4000, b"x"), number * SECOND)
    with pytest.raises(thinair.DecompressError, match="no context") as raised:
        decompressor.decompress(compressed, 20 * SECOND)
    assert raised.value.reason == "no_context"
    feedback = decompressor.poll_feedback()
    assert feedback is not None and decompressor.poll_feedback() is None
    compressor.receive_feedback(feedback, 20 * SECOND)
    packet = udp4(20, 4000, b"x")
    assert decompressor.decompress(compressor.compress(packet, 21 * SECOND), 21 * SECOND) == packet


def test_times_are_integer_nanoseconds_or_seconds() -> None:
    """The pauses between packets decide when a context is refreshed."""

    def sizes(times: list[int | float | decimal.Decimal]) -> list[int]:
        compressor = thinair.Compressor("rohc-v1/u")
        return [len(compressor.compress(udp4(number, 4000, b"x"), time)) for number, time in enumerate(times)]

    nanoseconds = sizes([number * SECOND for number in range(100)])
    assert nanoseconds == sizes([float(number) for number in range(100)])
    assert nanoseconds == sizes([decimal.Decimal(number) for number in range(100)])
    assert nanoseconds != sizes(list(range(100)))


@pytest.mark.parametrize("time", [-1, 2**64, -0.5, float("nan"), float("inf"), 1e11])
def test_impossible_times_are_refused(time: float) -> None:
    with pytest.raises(ValueError, match="invalid time"):
        thinair.Compressor().compress(udp4(0, 1, b""), time)


def test_octets_come_from_buffers_and_packets() -> None:
    class Packet:
        def __bytes__(self) -> bytes:
            return udp4(0, 1, b"x")

    plain = udp4(0, 1, b"x")
    expected = thinair.Compressor().compress(plain, 0)
    same: list[bytearray | memoryview | Packet] = [bytearray(plain), memoryview(plain), Packet()]
    for packet in same:
        assert thinair.Compressor().compress(packet, 0) == expected
    for wrong in [7, "text", None]:
        with pytest.raises(TypeError):
            thinair.Compressor().compress(wrong, 0)  # type: ignore[arg-type]


def test_packets_of_scapy_are_taken() -> None:
    inet = pytest.importorskip("scapy.layers.inet", reason="scapy is missing")
    packet = inet.IP(src="10.0.0.1", dst="10.0.0.2") / inet.UDP(sport=4000, dport=5683) / b"hello"
    compressor, decompressor = thinair.Compressor(), thinair.Decompressor()
    restored = decompressor.decompress(compressor.compress(packet, packet.time), packet.time)
    assert restored == bytes(packet) and inet.IP(restored)[inet.UDP].dport == 5683


def test_errors_of_the_caller_are_value_errors() -> None:
    with pytest.raises(ValueError, match="the packet cannot be compressed"):
        thinair.Compressor().compress(b"\0", 0)
    with pytest.raises(ValueError, match="schc"):
        thinair.Compressor("schc")
    with pytest.raises(ValueError):
        thinair.Compressor().receive_feedback(b"", 0)
    assert issubclass(thinair.DecompressError, ValueError)
    assert thinair.DecompressError.__module__ == thinair.Compressor.__module__ == thinair.Flows.__module__ == "thinair"
