#!/bin/sh
# 6LoWPAN: a library reads other ports, groups and addresses than were sent, and sends to other groups.
#
# Expected: RFC 6282. With P = 11, an octet has four bits of each UDP port (section 4.3.1). With M = 1, DAC = 0, DAM = 00, the 16 octets of a
# multicast destination are in line; DAM = 11 is ff02::00XX in one octet (section 3.1.1). With SAC = 1, SAM = 10, the 64 bits behind the
# prefix of the context are 0000:00ff:fe00:XXXX (same). TF = 00 has 2 bits of ECN, 6 of DSCP, 20 of flow label (section 3.2.1).
# Version: smoltcp 0.14.0 (crates.io), module wire.
# Behavior: the bits of the source port are added to the destination port. A multicast address without a short form, such as the
# unicast-prefix-based ones of RFC 3306, is sent in line with DAM = 11: receivers, smoltcp as well, read ff02::ff, and 15 octets of header as
# payload. ff:fe00 is left out behind the prefix of a context. ECN 2 is read as 128, and the upper four bits of a flow label are dropped.
# Short forms of multicast addresses, and ports of which one is F0B0, are right.
# Guess before the first run, from version 0.12: the same errors.
# Output seen: "f0b2 f0d1" for ports F0B2 and F0B1; "28 octets, DAM 3, read as 13 octets to ff02::ff" for ff3e:30:2001:db8::8000:1, and for
# ff05::fb what was sent; "2001:db8::7" for 2001:db8::ff:fe00:7; "128 bcde" for ECN 2 and flow label abcde.
. "$(dirname "$0")/lib.sh"
cat >main.rs <<'END'
use smoltcp::wire::{
    IpProtocol, Ipv6Address, SixlowpanAddressContext, SixlowpanIphcPacket as Packet, SixlowpanIphcRepr as Header,
    SixlowpanNextHeader, SixlowpanUdpNhcPacket,
};

fn round_trip(group: &str) -> String {
    let (src_addr, dst_addr): (Ipv6Address, Ipv6Address) = ("fe80::1:2:3:4".parse().unwrap(), group.parse().unwrap());
    let next_header = SixlowpanNextHeader::Uncompressed(IpProtocol::Udp);
    let header = Header {
        src_addr, ll_src_addr: None, dst_addr, ll_dst_addr: None, next_header, hop_limit: 63, ecn: None, dscp: None, flow_label: None,
    };
    let mut frame = vec![0; header.buffer_len()];
    header.emit(&mut Packet::new_unchecked(&mut frame[..]));
    let packet = Packet::new_checked(&frame[..]).unwrap();
    let read = Header::parse(&packet, None, None, &[]).unwrap();
    let header_len = frame.len() - packet.payload().len();
    format!("{} octets, DAM {}, read as {header_len} octets to {}", frame.len(), frame[1] & 3, read.dst_addr)
}

/// The source address of a frame with SAC = 1, SAM = 10 and context 1, 2001:db8::/64.
fn short_of_context() -> Ipv6Address {
    let mut frame = vec![0x7b, 0xe0, 0x10, 17, 0, 7];
    frame.resize(22, 0);
    let contexts = [[0; 8], [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0]].map(SixlowpanAddressContext);
    Header::parse(&Packet::new_checked(&frame[..]).unwrap(), None, None, &contexts).unwrap().src_addr
}

fn main() {
    let udp = SixlowpanUdpNhcPacket::new_checked([0xf3, 0x21, 0, 0]).unwrap();
    println!("{:x} {:x}", udp.src_port(), udp.dst_port());
    println!("{}; {}", round_trip("ff3e:30:2001:db8::8000:1"), round_trip("ff05::fb"));
    println!("{}", short_of_context());
    // TF = 00, both addresses in line.
    let mut frame = vec![0x60, 0, 0x80, 0x0a, 0xbc, 0xde, 17, 64];
    frame.resize(48, 0);
    let packet = Packet::new_checked(&frame[..]).unwrap();
    println!("{} {:x}", packet.ecn_field().unwrap(), packet.flow_label_field().unwrap());
}
END
rust_program lowpan \
	'smoltcp = { version = "=0.14.0", default-features = false, features = ["std", "medium-ieee802154", "proto-sixlowpan", "socket-udp"] }'
./lowpan >seen
line() { sed -n "$1p" seen; }
expect "smoltcp 0.14.0, ports F0B2 and F0B1" "$(line 1)" "f0b2 f0d1"
expect "smoltcp 0.14.0, ff3e:30:2001:db8::8000:1 and ff05::fb" "$(line 2)" \
	"28 octets, DAM 3, read as 13 octets to ff02::ff; 16 octets, DAM 2, read as 16 octets to ff05::fb"
expect "smoltcp 0.14.0, source 2001:db8::ff:fe00:7" "$(line 3)" "2001:db8::7"
expect "smoltcp 0.14.0, ECN 2 and flow label abcde" "$(line 4)" "128 bcde"
