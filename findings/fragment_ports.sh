#!/bin/sh
# Later fragments of a datagram have ports.
#
# Expected: only the first fragment has the header of UDP; what follows the header of a fragment whose offset is not 0 is payload, RFC 791,
# section 3.2, and RFC 8200, section 4.5. dpkt and scapy give octets for those.
# Versions: pypacker 5.4, impacket 0.12.0 (PyPI).
# Behavior: pypacker reads a UDP header from the payload of every fragment of IPv4 and IPv6, impacket of IPv4. A table of flows, or a filter
# by port, gets ports that are octets of text, and a flow for each fragment.
# Guess before the first run: octets from all, as from dpkt.
# Output seen: "pypacker IPv4 26729, IPv6 26729; impacket IPv4 26729" (hex 6869, "hi") for a fragment of "hihihi...".
. "$(dirname "$0")/lib.sh"
python_packages pypacker==5.4 impacket==0.12.0
cat >read.py <<'END'
import socket
import struct

from impacket import ImpactDecoder
from pypacker.layer3 import ip, ip6

PAYLOAD = b"hi" * 16
OFFSET = 1480 // 8
four = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(PAYLOAD), 1, OFFSET, 64, 17, 0) + bytes([192, 0, 2, 1, 192, 0, 2, 2]) + PAYLOAD
ends = [socket.inet_pton(socket.AF_INET6, end) for end in ("2001:db8::1", "2001:db8::2")]
fragment = struct.pack("!BBHI", 17, 0, OFFSET << 3, 1) + PAYLOAD
six = struct.pack("!IHBB", 6 << 28, len(fragment), 44, 64) + b"".join(ends) + fragment
ports = ip.IP(four).upper_layer.dport, ip6.IP6(six).upper_layer.dport, ImpactDecoder.IPDecoder().decode(four).child().get_uh_dport()
print("pypacker IPv4 %d, IPv6 %d; impacket IPv4 %d" % ports)
END
expect "pypacker 5.4, impacket 0.12.0, destination port of a later fragment" "$(python/bin/python read.py)" \
	"pypacker IPv4 26729, IPv6 26729; impacket IPv4 26729"
