#!/bin/sh
# 6LoWPAN: a packet of Expedited Forwarding arrives with another Traffic Class.
#
# Expected: IPHC has ECN in front of DSCP, the other way round than the Traffic Class, so that a receiver rotates them (RFC 6282,
# section 3.2.1). With TF = 00 or 10, the octet 2e is ECN 0, DSCP 46: Traffic Class b8.
# Version: scapy 2.6.1 (PyPI), layer sixlowpan.
# Behavior: the octet of the frame becomes the Traffic Class of the IPv6 header as it is, 2e: DSCP 11, ECN 2. Only 0 is right.
# Output seen: "2e 2e 00" for DSCP 46 with TF = 00 and with TF = 10, and for 0 with TF = 10.
. "$(dirname "$0")/lib.sh"
python_packages scapy==2.6.1
cat >read.py <<'END'
from scapy.layers.inet6 import IPv6
from scapy.layers.sixlowpan import LoWPAN_IPHC

def traffic_class(tf, inline):
    """That of a frame with Next Header (17) and Hop Limit (64) inline, and both addresses in full."""
    addresses = bytes.fromhex("20010db8000000000000000000000001" "20010db8000000000000000000000002")
    datagram = bytes.fromhex("16331633000c962c") + b"time"
    frame = bytes([0x60 | tf << 3, 0]) + inline + bytes([17, 64]) + addresses + datagram
    return f"{LoWPAN_IPHC(frame)[IPv6].tc:02x}"

print(traffic_class(0, bytes([46, 0, 0, 5])), traffic_class(2, bytes([46])), traffic_class(2, bytes([0])))
END
expect "scapy 2.6.1, Traffic Class of DSCP 46, 46 and 0" "$(python/bin/python read.py 2>/dev/null)" "2e 2e 00"
