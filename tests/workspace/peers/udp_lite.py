"""UDP-Lite of the kernel, with whole and partial checksums. RFC 3828."""

import socket

from media import Impossible

IPPROTO_UDPLITE = 136
# linux/udp.h; Python has no name for it.
UDPLITE_SEND_CSCOV = 10


class Lite:
    """A connected socket."""

    def __init__(self, sender, source, destination):
        try:
            self.socket = socket.socket(sender.family, socket.SOCK_DGRAM, IPPROTO_UDPLITE)
        except OSError as error:
            raise Impossible(f"UDP-Lite: {error}") from None
        self.socket.bind((sender.here, source))
        self.socket.connect((sender.there, destination))

    def coverage(self, octets):
        """Octets that the checksum covers, header included; 0 for the whole packet."""
        self.socket.setsockopt(IPPROTO_UDPLITE, UDPLITE_SEND_CSCOV, octets)

    def send(self, octets):
        self.socket.send(octets)


def payload(number):
    """Between 20 and 83 octets."""
    return bytes((number + place) % 251 for place in range(20 + 9 * number % 64))


def coverages(values):
    """Packets whose coverage is the next one of `values` every ten packets."""

    def scenario(sender):
        lite = Lite(sender, 5061, 5062)
        for number in range(120):
            lite.coverage(values[number // 10 % len(values)])
            lite.send(payload(number))
            sender.pause(0.005)
        return "the UDP-Lite of Linux"

    return scenario


SCENARIOS = {
    "udp-lite-whole-ipv4": (4, coverages([0])),
    "udp-lite-8-ipv4": (4, coverages([8])),
    "udp-lite-20-ipv6": (6, coverages([20])),
    "udp-lite-varying-ipv4": (4, coverages([0, 8, 0, 20, 12])),
    "udp-lite-varying-ipv6": (6, coverages([8, 0, 20, 0])),
}
