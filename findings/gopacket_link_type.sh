#!/bin/sh
# A capture of all interfaces of a Linux host has another link type when it is read.
#
# Expected: a link type of pcap has 16 bits at least (draft-ietf-opsawg-pcap, section 4). "tcpdump -i any" of today writes 276,
# LINKTYPE_LINUX_SLL2.
# Version: github.com/google/gopacket v1.1.19, packages pcapgo and layers.
# Behavior: the type LinkType of the package layers has 8 bits, and the reader drops the others without an error: 276 is read as 20, and a
# program that chooses its decoder by the link type has no sign of it.
# Output seen: "<nil> 20".
. "$(dirname "$0")/lib.sh"
cat >main.go <<'END'
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/google/gopacket/pcapgo"
)

func main() {
	var file bytes.Buffer
	for _, word := range []uint32{0xa1b2c3d4, 0x00040002, 0, 0, 65535, 276} {
		binary.Write(&file, binary.LittleEndian, word)
	}
	reader, err := pcapgo.NewReader(&file)
	fmt.Println(err, uint32(reader.LinkType()))
}
END
go_program read github.com/google/gopacket v1.1.19
expect "gopacket 1.1.19, error and link type of a file of 276" "$(./read)" "<nil> 20"
