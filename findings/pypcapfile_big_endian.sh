#!/bin/sh
# A capture of a big-endian host has no packet.
#
# Expected: the magic number gives the byte order of a pcap file, and a reader swaps the fields of its records accordingly
# (draft-ietf-opsawg-pcap, section 4).
# Version: pypcapfile 0.12.0 (PyPI).
# Behavior: the header is read in its byte order, the records are not: the file with one record has none, without an exception. The same
# record in a little-endian file is read.
# Output seen: "little 1, big 0".
. "$(dirname "$0")/lib.sh"
python_packages pypcapfile==0.12.0
cat >read.py <<'END'
import struct
from pcapfile import savefile
frame = bytes(12) + b"\x08\0" + bytes.fromhex("45000020000000004011b6cbc0000201c0000202c0011633000c0000") + b"time"
counts = []
for order in "<>":
    file = struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + struct.pack(order + "IIII", 1700000000, 5, len(frame), len(frame)) + frame
    with open("one.pcap", "wb") as written:
        written.write(file)
    with open("one.pcap", "rb") as read:
        counts.append(len(savefile.load_savefile(read).packets))
print(f"little {counts[0]}, big {counts[1]}")
END
expect "pypcapfile 0.12.0, packets by byte order" "$(python/bin/python read.py)" "little 1, big 0"
