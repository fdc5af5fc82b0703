#!/bin/sh
# The payload of an RTP packet begins with its header extension.
#
# Expected: with X set, a header extension of 4 octets and a number of words follows the CSRCs, and the payload begins behind it; with
# P set, the last octet counts octets at the end that are not part of the payload, RFC 3550, sections 5.1 and 5.3.1.
# Version: dpkt 1.9.8 (PyPI).
# Behavior: both flags are read, and neither the extension nor the padding is taken from the data: eight octets in front of the
# first payload are the extension (RFC 8285), four behind the second one are padding. Sizes of payloads counted so are too large.
# Output seen: "1 bede000110aa0000 5041594c4f4144 | 1 5041594c4f4144 00000004" (X, extension, payload | P, payload, padding; all in data).
. "$(dirname "$0")/lib.sh"
python_packages dpkt==1.9.8
cat >read.py <<'END'
import dpkt
extended = dpkt.rtp.RTP(bytes.fromhex("90600001 00000064 deadbeef bede0001 10aa0000") + b"PAYLOAD")
padded = dpkt.rtp.RTP(bytes.fromhex("a0600001 00000064 deadbeef") + b"PAYLOAD" + b"\0\0\0\4")
print(extended.x, extended.data[:-7].hex(), extended.data[-7:].hex(), "|", padded.p, padded.data[:7].hex(), padded.data[7:].hex())
END
expect "dpkt 1.9.8, data behind X and P" "$(python/bin/python read.py)" "1 bede000110aa0000 5041594c4f4144 | 1 5041594c4f4144 00000004"
