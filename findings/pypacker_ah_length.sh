#!/bin/sh
# UDP behind an Authentication Header of IPv6 has the ports of its payload.
#
# Expected: the length of an Authentication Header counts words of four octets, minus two, RFC 4302, section 2.2; those of other extension
# headers count eight octets, minus one.
# Version: pypacker 5.4 (PyPI).
# Behavior: it takes the length of an Authentication Header for one of the other kind: one of 24 octets, the length field of which is 4, for
# one of 40. Sixteen octets of what follows belong to it, and the header of UDP is read from the payload. A short packet raises an error.
# Output seen: "40 octets of AH, port 26728" (the destination port was 5683, the payload is "hhhh...").
. "$(dirname "$0")/lib.sh"
python_packages pypacker==5.4
cat >read.py <<'END'
import socket
import struct

from pypacker.layer3 import ip6

header = struct.pack("!BBHII", 17, 4, 0, 0x100, 1) + bytes(12)
datagram = struct.pack("!4H", 49152, 5683, 58, 0x1234) + b"h" * 50
ends = [socket.inet_pton(socket.AF_INET6, end) for end in ("2001:db8::1", "2001:db8::2")]
packet = ip6.IP6(struct.pack("!IHBB", 6 << 28, len(header + datagram), 51, 64) + b"".join(ends) + header + datagram)
print(f"{len(packet.opts[0])} octets of AH, port {packet.upper_layer.dport}")
END
expect "pypacker 5.4, UDP behind an Authentication Header" "$(python/bin/python read.py)" "40 octets of AH, port 26728"
