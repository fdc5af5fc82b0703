"""CoAP messages octet by octet (RFC 7252, section 3), for the findings: no CoAP library is between them and a server.

`ask` sends a datagram and returns the answer as text: type, code, and the octets behind the Message ID.
"""

import socket
import time

TYPES = ("CON", "NON", "ACK", "RST")


def message(kind: int, code: int, message_id: int, options: list[tuple[int, bytes]] = [], payload: bytes = b"", token: bytes = b"\x77") -> bytes:
    """A message; `options` are in ascending order of their numbers."""
    octets = bytes([0x40 | kind << 4 | len(token), code]) + message_id.to_bytes(2, "big") + token
    number = 0
    for next_number, value in options:
        delta, delta_octets = _extended(next_number - number)
        length, length_octets = _extended(len(value))
        octets += bytes([delta << 4 | length]) + delta_octets + length_octets + value
        number = next_number
    return octets + (b"\xff" + payload if payload else b"")


def _extended(value: int) -> tuple[int, bytes]:
    if value < 13:
        return value, b""
    if value < 269:
        return 13, bytes([value - 13])
    return 14, (value - 269).to_bytes(2, "big")


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ask(port: int, octets: bytes, seconds: float = 2.0) -> str:
    """The first answer, as `ACK 2.05 77c0`; `none` if there is none within the time."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(seconds)
        one.sendto(octets, ("127.0.0.1", port))
        try:
            answer, peer = one.recvfrom(2048)
        except OSError:
            return "none"
        if answer[0] >> 4 & 3 == 0:
            one.sendto(bytes([0x60, 0]) + answer[2:4], peer)
        return f"{TYPES[answer[0] >> 4 & 3]} {answer[1] >> 5}.{answer[1] & 31:02} {answer[4:].hex()}".strip()


def ready(port: int, path: bytes) -> None:
    """Waits until a server answers a GET: a minute at most."""
    for _ in range(120):
        if ask(port, message(0, 1, 1, [(11, path)]), 0.5) != "none":
            return
        time.sleep(0.1)
    raise SystemExit("the server does not answer")
