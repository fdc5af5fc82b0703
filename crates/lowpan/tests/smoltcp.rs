//! Output read by smoltcp 0.12: another implementation of RFC 6282.
//!
//! It supports contexts of 64 bits, and no stateful multicast. The test omits its errors: context 0 when it is
//! implicit, which it rejects; the 16-bit stateful form, where it has zeros for `ff:fe00`; a short source port
//! other than 0xF0B0, whose bits it adds to the destination port.

#![allow(clippy::unwrap_used)]

mod common;

use common::{address, datagram, ipv6, packet, sent, settings};
use smoltcp::wire::{
    Ieee802154Address, Ipv6Address, SixlowpanAddressContext, SixlowpanIphcPacket, SixlowpanIphcRepr,
    SixlowpanNextHeader, SixlowpanUdpNhcPacket,
};
use thinair_lowpan::{LinkAddress, Links};
use thinair_wire::header::ipv6::Ipv6;

const EUI: [u8; 8] = [0x02, 0x12, 0x4B, 0, 0, 0, 0, 0x01];
const LINKS: Links = Links { source: LinkAddress::Extended(EUI), destination: LinkAddress::Short(0xABCD) };

#[test]
fn smoltcp_reads_the_same_header() {
    let s = settings(&[(1, "2001:db8::/64"), (2, "fd00:1:2:3::/64")]);
    let contexts = [&[0; 8], &address("2001:db8::")[..8], &address("fd00:1:2:3::")[..8]]
        .map(|prefix| SixlowpanAddressContext(prefix.try_into().unwrap()));
    let sources = [
        "fe80::12:4b00:0:1",
        "fe80::ff:fe00:7",
        "fe80::1",
        "2001:db8::1",
        "fd00:1:2:3:12:4b00:0:1",
        "::",
        "9::9",
    ];
    let destinations = [
        "fe80::ff:fe00:abcd",
        "fe80::ff:fe00:7",
        "fe80::1",
        "fd00:1:2:3::1",
        "2001:db8::ff:fe00:abcd",
        "9::9",
        "ff02::1",
        "ff05::1:2",
        "ff02::1:ff12:3456",
        "ff3e::1:0:0:1",
    ];
    let ports = [(0x1234, 0x1633), (0x1234, 0xF012), (0xF012, 0x1633), (0xF0B0, 0xF0BF)];
    let mut checked = 0;
    for source in sources {
        for destination in destinations {
            for hop_limit in [1, 64, 255, 7] {
                for (source_port, destination_port) in ports {
                    let ip = Ipv6 { hop_limit, ..ipv6(source, destination) };
                    let datagram = datagram(&ip, source_port, destination_port, b"data");
                    let frame = sent(&s, LINKS, &packet(ip, 17, &datagram));

                    let iphc = SixlowpanIphcPacket::new_checked(&frame[..]).unwrap();
                    let (from, to) =
                        (Ieee802154Address::Extended(EUI), Ieee802154Address::Short([0xAB, 0xCD]));
                    let repr = SixlowpanIphcRepr::parse(&iphc, Some(from), Some(to), &contexts).unwrap();
                    assert_eq!(repr.src_addr, Ipv6Address::from(ip.source), "{source} {destination}");
                    assert_eq!(repr.dst_addr, Ipv6Address::from(ip.destination), "{source} {destination}");
                    assert_eq!(repr.hop_limit, hop_limit);
                    assert_eq!(repr.next_header, SixlowpanNextHeader::Compressed);

                    let udp = SixlowpanUdpNhcPacket::new_checked(iphc.payload()).unwrap();
                    assert_eq!((udp.src_port(), udp.dst_port()), (source_port, destination_port));
                    assert_eq!(udp.checksum().unwrap().to_be_bytes(), datagram[6..8]);
                    assert_eq!(udp.payload(), b"data");
                    checked += 1;
                }
            }
        }
    }
    assert_eq!(checked, sources.len() * destinations.len() * 4 * 4);
}
