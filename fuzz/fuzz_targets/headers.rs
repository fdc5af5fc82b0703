#![no_main]
//! Every header value: writing a parsed header gives its octets, to the last bit.

use libfuzzer_sys::fuzz_target;
use thinair_wire::header::chain::HeaderChain;
use thinair_wire::header::extension::Extensions;
use thinair_wire::header::{ah, coap, esp, ipv4, ipv6, rtp, tcp, udp, udp_lite};

/// Parses a header, writes it, and compares. `$len` is its length in octets.
macro_rules! same {
    ($octets:expr, $header:ty, |$value:ident| $len:expr) => {
        if let Ok($value) = <$header>::read($octets) {
            let len: usize = $len;
            let mut out = vec![0; len];
            assert_eq!($value.write(&mut out, 0), Ok(len));
            assert_eq!(out, $octets[..len]);
        }
    };
}

fuzz_target!(|input: &[u8]| {
    let Some((&which, octets)) = input.split_first() else { return };
    match which % 12 {
        0 => same!(octets, ipv4::Ipv4<'_>, |header| header.len()),
        1 => same!(octets, ipv6::Ipv6, |_header| ipv6::Ipv6::LEN),
        2 => same!(octets, udp::Udp, |_header| udp::Udp::LEN),
        3 => same!(octets, udp_lite::UdpLite, |_header| udp_lite::UdpLite::LEN),
        4 => same!(octets, esp::Esp, |_header| esp::Esp::LEN),
        5 => same!(octets, ah::Ah<'_>, |header| header.len()),
        6 => same!(octets, rtp::Rtp<'_>, |header| header.len()),
        7 => {
            same!(octets, tcp::Tcp<'_>, |header| header.len());
            if let Ok(header) = tcp::Tcp::read(octets) {
                tcp_options(&header);
            }
        }
        8 => {
            same!(octets, coap::Coap<'_>, |header| header.len());
            if let Ok(message) = coap::Coap::read(octets) {
                coap_options(&message);
            }
        }
        9 => extensions(octets),
        _ => chain(octets),
    }
});

/// Concatenated options equal the parsed octets.
fn tcp_options(header: &tcp::Tcp<'_>) {
    let mut walk = header.walk();
    let mut all = Vec::new();
    for (kind, octets) in walk.by_ref() {
        assert_eq!(octets.first(), Some(&kind));
        all.extend_from_slice(octets);
    }
    let rest = match walk.end().expect("the walk has ended") {
        tcp::TcpOptionsEnd::Exhausted => &[],
        tcp::TcpOptionsEnd::EndOfOptionList { padding } => {
            all.push(tcp::kind::EOL);
            padding
        }
        tcp::TcpOptionsEnd::Malformed { offset } => &header.options[offset..],
    };
    all.extend_from_slice(rest);
    assert_eq!(all, header.options);
}

/// Options that are written from number and value equal the parsed octets.
fn coap_options(message: &coap::Coap<'_>) {
    let mut walk = message.options();
    let (mut all, mut number) = (Vec::new(), 0);
    for option in walk.by_ref() {
        let mut out = vec![0; option.octets.len()];
        let mut writer = thinair_wire::coder::Writer::new(&mut out, 0);
        let mut value = option.value;
        coap::option(&mut writer, &mut (u32::from(option.number) - number), &mut value).expect("it was read");
        assert_eq!(writer.finish(), Ok(option.octets.len()));
        assert_eq!(out, option.octets);
        number = u32::from(option.number);
        all.extend_from_slice(&out);
    }
    assert_eq!(all.len(), walk.offset());
    match walk.end().expect("the walk has ended") {
        coap::CoapOptionsEnd::Payload(payload) => {
            assert!(!payload.is_empty());
            all.push(coap::PAYLOAD_MARKER);
            all.extend_from_slice(payload);
        }
        coap::CoapOptionsEnd::NoPayload => {}
        coap::CoapOptionsEnd::MarkerWithoutPayload => all.push(coap::PAYLOAD_MARKER),
        coap::CoapOptionsEnd::Malformed { offset } => all.extend_from_slice(&message.rest[offset..]),
    }
    assert_eq!(all, message.rest);
}

fn extensions(octets: &[u8]) {
    let Some((&first, octets)) = octets.split_first() else { return };
    let mut walk = Extensions::new(first, octets);
    let all: usize = walk.by_ref().map(|(_, header)| header.len()).sum();
    assert_eq!(walk.rest(), &octets[all..]);
}

/// The parts of a chain are contiguous in the packet.
fn chain(octets: &[u8]) {
    let Ok(chain) = HeaderChain::parse(octets) else { return };
    let mut end = 0;
    for ip in chain.ips() {
        assert_eq!(ip.offset, end);
        assert_eq!(ip.walk().take(ip.extension_count).count(), ip.extension_count);
        let at = ip.offset + ip.fixed_len();
        assert_eq!(ip.extensions, &octets[at..at + ip.extensions.len()]);
        end = ip.end();
        assert!(end <= octets.len());
    }
    assert_eq!(chain.ip_end(), end);
    if let Some(header) = chain.udp() {
        assert_eq!(udp::Udp::read(&octets[end..]), Ok(header));
    }
}
