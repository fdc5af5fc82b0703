#!/bin/sh
# Packets of a second interface have the time scale of the first.
#
# Expected: if_tsresol belongs to an interface of a pcapng file, and an Enhanced Packet Block names its interface: each timestamp is read
# with the resolution of that interface (draft-ietf-opsawg-pcapng, sections 4.2 and 4.3).
# Version: dpkt 1.9.8 (PyPI).
# Behavior: the reader takes the resolution of the first interface for all. A file of two interfaces, one in microseconds and one in
# nanoseconds, as joined captures have them, gets packets in the year 55,840; there is no error.
# Output seen: "1700000000 1700000000000" for two packets of one second.
. "$(dirname "$0")/lib.sh"
python_packages dpkt==1.9.8
cat >read.py <<'END'
import io
import dpkt
import struct

def block(kind, body):
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length

def interface(*options):
    pad = lambda value: value + bytes(-len(value) % 4)
    listed = b"".join(struct.pack("<HH", code, len(value)) + pad(value) for code, value in options)
    return block(1, struct.pack("<HHI", 1, 0, 65535) + listed + bytes(4))

def packet(number, time):
    frame = bytes(12) + b"\x88\xb5" + bytes(46)
    return block(6, struct.pack("<5I", number, time >> 32, time & 0xFFFFFFFF, len(frame), len(frame)) + frame)

SECTION = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
SECONDS = 1_700_000_000
file = SECTION + interface() + interface((9, b"\x09")) + packet(0, SECONDS * 10**6) + packet(1, SECONDS * 10**9)
print(*(int(time) for time, _ in dpkt.pcapng.Reader(io.BytesIO(file))))
END
expect "dpkt 1.9.8, times of interfaces 0 and 1" "$(python/bin/python read.py)" "1700000000 1700000000000"
