#!/bin/sh
# One datagram in 65,535 is sent with a checksum that says there is none.
#
# Expected: where the sum of a datagram is zero, ffff is sent, as zero stands for no checksum: RFC 768 for IPv4; RFC 8200, section 8.1, for
# IPv6, where a receiver drops a datagram with zero.
# Version: dpkt 1.9.8, impacket 0.12.0 (PyPI), udp-packet 2.0.0 (npm).
# Behavior: impacket and udp-packet send 0000 over IPv4. dpkt sends ffff over IPv4 and 0000 over IPv6. Checksums of other payloads are right.
# Output seen: "dpkt IPv4 ffff, IPv6 0000; impacket IPv4 0000", "udp-packet IPv4 0000".
. "$(dirname "$0")/lib.sh"
python_packages dpkt==1.9.8 impacket==0.12.0
node_packages udp-packet@2.0.0
cat >send.py <<'END'
import socket
import struct

import dpkt
from impacket import ImpactPacket

PORTS = 49152, 5683


def payload(*ends):
    """Two octets with which all 16-bit words of pseudo-header and datagram add up to ffff."""
    words = b"".join(ends) + struct.pack("!6H", 17, 10, *PORTS, 10, 0)
    total = sum(struct.unpack(f"!{len(words) // 2}H", words))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", 0xFFFF - total)


def of_dpkt(data):
    return dpkt.udp.UDP(sport=PORTS[0], dport=PORTS[1], ulen=10, data=data)


texts = "192.0.2.1", "192.0.2.2"
four = [socket.inet_aton(text) for text in texts]
six = [socket.inet_pton(socket.AF_INET6, text) for text in ("2001:db8::1", "2001:db8::2")]
dpkt4 = bytes(dpkt.ip.IP(p=17, src=four[0], dst=four[1], data=of_dpkt(payload(*four))))[26:28]
dpkt6 = bytes(dpkt.ip6.IP6(nxt=17, plen=10, src=six[0], dst=six[1], data=of_dpkt(payload(*six))))[46:48]
packet, datagram = ImpactPacket.IP(), ImpactPacket.UDP()
packet.set_ip_src(texts[0])
packet.set_ip_dst(texts[1])
datagram.set_uh_sport(PORTS[0])
datagram.set_uh_dport(PORTS[1])
datagram.contains(ImpactPacket.Data(payload(*four)))
packet.contains(datagram)
impacket4 = bytes(packet.get_packet())[26:28]
print(f"dpkt IPv4 {dpkt4.hex()}, IPv6 {dpkt6.hex()}; impacket IPv4 {impacket4.hex()}")
END
expect "dpkt 1.9.8, impacket 0.12.0, checksum for a sum of zero" "$(python/bin/python send.py)" \
	"dpkt IPv4 ffff, IPv6 0000; impacket IPv4 0000"
cat >send.js <<'END'
const udp = require("udp-packet");
const datagram = udp.encode({
  sourcePort: 49152, destinationPort: 5683, sourceIp: "192.0.2.1", destinationIp: "192.0.2.2", data: Buffer.from("a5a2", "hex"),
});
console.log("udp-packet IPv4", datagram.toString("hex", 6, 8));
END
expect "udp-packet 2.0.0, checksum for a sum of zero" "$(node send.js)" "udp-packet IPv4 0000"
