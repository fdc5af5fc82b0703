#!/bin/sh
# Packets of Simple Packet Blocks are empty, or are left out.
#
# Expected: a Simple Packet Block has as many octets of a packet as the packet had, or SnapLen of the first interface if that is less
# (draft-ietf-opsawg-pcapng, section 4.4); a SnapLen of 0 is no limit (section 4.2). python-pcapng 2.1.1 reads both blocks of this file.
# Versions: scapy 2.6.1, dpkt 1.9.8 (PyPI).
# Behavior: scapy takes a SnapLen of 0 for a limit, so that each such packet has no octet; with any other SnapLen it is right. dpkt does not
# deliver packets of these blocks. There is no error in either.
# Guess before the first run: scapy 0 and 60, dpkt 60 and 60.
# Output seen: "scapy 0 60, dpkt 60" for a Simple and an Enhanced Packet Block of 60 octets each.
. "$(dirname "$0")/lib.sh"
python_packages scapy==2.6.1 dpkt==1.9.8
cat >read.py <<'END'
import io
import struct

import dpkt
from scapy.utils import RawPcapNgReader


def block(kind, body):
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


frame = bytes(12) + b"\x88\xb5" + bytes(46)
section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
interface = block(1, struct.pack("<HHI", 1, 0, 0))
file = section + interface + block(3, struct.pack("<I", 60) + frame) + block(6, struct.pack("<5I", 0, 0, 5, 60, 60) + frame)
of_scapy = (str(len(octets)) for octets, _ in RawPcapNgReader(io.BytesIO(file)))
of_dpkt = (str(len(octets)) for _, octets in dpkt.pcapng.Reader(io.BytesIO(file)))
print(f"scapy {' '.join(of_scapy)}, dpkt {' '.join(of_dpkt)}")
END
expect "scapy 2.6.1, dpkt 1.9.8, octets of a Simple and an Enhanced Packet Block" "$(python/bin/python read.py 2>/dev/null)" \
	"scapy 0 60, dpkt 60"
