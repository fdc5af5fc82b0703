#!/bin/sh
# 6LoWPAN: every UDP checksum that was elided is shown as ffff, and as wrong.
#
# Expected: a receiver computes the checksum that the compressor has elided, RFC 6282, section 4.3.2, so that a dissector shows that one,
# or none.
# Version: tshark 4.0.17-0+deb12u3 (Debian 12), with validation of UDP checksums.
# Behavior: the UDP header behind IPHC has the checksum ffff for any payload, and is marked as "incorrect". A filter for damaged datagrams
# finds all of them. Ports, lengths and addresses are right.
# Output seen: "0xffff 0xe12d | 0xffff 0xa033" (shown, computed) for two payloads.
. "$(dirname "$0")/lib.sh"
version=4.0.17-0+deb12u3
needed=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances tshark |
	grep '^[a-z]' | grep -vxE 'tshark|lib(wireshark16|wiretap13|wsutil14|wireshark-data|c6|gcc-s1|stdc\+\+6|c-bin|crypt1)|(wireshark-|debconf|dpkg|tar|cdebconf|perl|gcc-|coreutils|passwd|adduser).*')
# shellcheck disable=SC2086
debian_packages "tshark=$version" "libwireshark16=$version" "libwiretap13=$version" "libwsutil14=$version" $needed
cat >write.py <<'END'
import struct
addresses = bytes.fromhex("20010db8000000000000000000000001" "20010db8000000000000000000000002")
with open("frames.pcap", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 230))
    for payload in b"time", b"other data":
        # Data frame of short addresses; TF, NH and HLIM compressed; UDP with both ports in 4 bits and without checksum.
        frame = bytes.fromhex("4188 01 cdab 0200 0100 7e00") + addresses + bytes.fromhex("f712") + payload
        file.write(struct.pack("<4I", 1700000000, 0, len(frame), len(frame)) + frame)
END
python3 write.py
seen=$(HOME=$folder LD_LIBRARY_PATH=$(echo root/usr/lib/*-linux-gnu):$(echo root/lib/*-linux-gnu) \
	root/usr/bin/tshark -r frames.pcap -o udp.check_checksum:TRUE -T fields -E separator=/s -e udp.checksum -e udp.checksum_calculated 2>/dev/null |
	paste -sd '|' | sed 's/|/ | /')
expect "tshark 4.0.17, UDP checksums shown and computed" "$seen" "0xffff 0xe12d | 0xffff 0xa033"
