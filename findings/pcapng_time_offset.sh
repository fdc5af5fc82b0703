#!/bin/sh
# The offset of a capture's timestamps is left out.
#
# Expected: if_tsoffset of an interface is a number of seconds that is added to each of its timestamps
# (draft-ietf-opsawg-pcapng, section 4.2), so that a device can count from its own start. tshark and dpkt add it.
# Versions: python-pcapng 2.1.1, scapy 2.6.1 (PyPI).
# Behavior: both read timestamps without it: a capture that counts from 0, with the start of the capture in if_tsoffset, is of 1970.
# There is no error, and python-pcapng lists the option.
# Output seen: "5 5" for the 5th second behind 1,700,000,000.
. "$(dirname "$0")/lib.sh"
python_packages python-pcapng==2.1.1 scapy==2.6.1
cat >read.py <<'END'
import io
from pcapng import FileScanner
from pcapng.blocks import EnhancedPacket
from scapy.utils import RawPcapNgReader
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
file = SECTION + interface((14, struct.pack("<q", SECONDS))) + packet(0, 5 * 10**6)
times = [block.timestamp for block in FileScanner(io.BytesIO(file)) if isinstance(block, EnhancedPacket)]
_, metadata = next(RawPcapNgReader(io.BytesIO(file)))
print(int(times[0]), (metadata.tshigh << 32 | metadata.tslow) // metadata.tsresol)
END
expect "python-pcapng 2.1.1 and scapy 2.6.1, time with if_tsoffset" "$(python/bin/python read.py 2>/dev/null)" "5 5"
