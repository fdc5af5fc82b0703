#!/bin/sh
# Two COBS libraries encode the same packet differently.
#
# Expected: one encoding for each packet, as of any framing. COBS has no RFC; its paper (Cheshire and Baker, Consistent Overhead Byte
# Stuffing, 1999) appends a zero to each packet, and its code FF stands for 254 octets without a zero behind them, so that a packet of 254
# octets without a zero takes the codes FF and 01. Published tables of examples leave the 01 out.
# Versions: cobs 1.2.1 (PyPI), cobs 0.2.1 (npm).
# Behavior: that of PyPI leaves the last 01 out, and writes 255 octets; that of npm writes 256. Each decodes both to the
# same packet, but a buffer or a size of frame that is computed by one does not fit the other.
# Output seen: "255 256".
. "$(dirname "$0")/lib.sh"
node_packages cobs@0.2.1
python_packages cobs==1.2.1
cat >encode.py <<'END'
from cobs import cobs
short, long = cobs.encode(b"\1" * 254), b"\xff" + b"\1" * 254 + b"\1"
assert cobs.decode(short) == cobs.decode(long) == b"\1" * 254
print(len(short))
END
python=$(python/bin/python encode.py)
node=$(node -e 'const { encode, decode } = require("cobs"), packet = Buffer.alloc(254, 1), long = encode(packet);
[long, long.subarray(0, 255)].forEach((one) => { if (!decode(one).equals(packet)) throw new Error() }); console.log(long.length)')
expect "octets of 254 octets without zero, cobs 1.2.1 of PyPI and 0.2.1 of npm" "$python $node" "255 256"
