#![no_main]
//! 6LoWPAN: a compressed packet is restored bit for bit, and so is a packet of any frame.

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_fuzz::{PacketFlow, PacketStep, ROOM};
use thinair_lowpan::{
    CompressedPacket, Contexts, LinkAddress, Links, LowpanContext, LowpanSettings, UdpChecksum, compress,
    decompress,
};

#[derive(Arbitrary, Debug)]
struct LowpanInput {
    contexts: Vec<(u8, [u8; 16], u8)>,
    elided: bool,
    source: LowpanLink,
    destination: LowpanLink,
    content: LowpanContent,
}

#[derive(Arbitrary, Debug)]
enum LowpanLink {
    None,
    Short(u16),
    Extended([u8; 8]),
}

#[derive(Arbitrary, Debug)]
enum LowpanContent {
    /// Payload of a frame.
    Frame { octets: Vec<u8>, room: u16 },
    /// Packet of any octets, with an IPv6 version and a matching length.
    Packet(Vec<u8>),
    /// Valid packets, apart from octets that the steps break.
    Flow { flow: PacketFlow, steps: Vec<PacketStep> },
}

impl LowpanLink {
    fn address(&self) -> LinkAddress {
        match *self {
            Self::None => LinkAddress::None,
            Self::Short(address) => LinkAddress::Short(address),
            Self::Extended(address) => LinkAddress::Extended(address),
        }
    }
}

fuzz_target!(|input: LowpanInput| {
    let contexts = input.contexts.iter().fold(Contexts::NONE, |all, (id, address, length)| {
        let context = LowpanContext::new(*address, length % 129).expect("a prefix has 0 to 128 bits");
        all.with(id % 16, context).expect("there are 16 contexts")
    });
    let udp_checksum = if input.elided { UdpChecksum::Elided } else { UdpChecksum::InLine };
    let settings = LowpanSettings { contexts, udp_checksum };
    let links = Links { source: input.source.address(), destination: input.destination.address() };
    match input.content {
        LowpanContent::Frame { octets, room } => {
            let mut out = vec![0; usize::from(room)];
            if let Ok(done) = decompress(&settings, links, &octets, &mut out) {
                assert!(done.header_in <= octets.len() && done.header_out <= done.len);
                comes_back(&settings, links, &out[..done.len]);
            }
        }
        LowpanContent::Packet(mut packet) => {
            if packet.len() >= 40 {
                packet[0] = 0x60 | packet[0] & 0xF;
                let length = (packet.len() - 40) as u16;
                packet[4..6].copy_from_slice(&length.to_be_bytes());
            }
            comes_back(&settings, links, &packet);
        }
        LowpanContent::Flow { mut flow, steps } => {
            for step in steps.iter().take(20) {
                step.changes.iter().for_each(|change| flow.apply(change));
                let payload = &step.payload[..step.payload.len().min(ROOM / 4)];
                comes_back(&settings, links, &flow.packet(payload, &step.changes));
            }
        }
    }
});

fn comes_back(settings: &LowpanSettings, links: Links, packet: &[u8]) {
    let mut frame = vec![0; packet.len() + 1];
    let Ok(compressed) = compress(settings, links, packet, &mut frame) else {
        assert!(packet.len() < 40 || packet[0] >> 4 != 6, "only what is no IPv6 packet is refused");
        return;
    };
    let CompressedPacket { header_in, header_out, len } = compressed;
    let mut back = vec![0; packet.len()];
    let done = decompress(settings, links, &frame[..len], &mut back).expect("it was compressed");
    assert_eq!(back[..done.len], *packet);
    assert_eq!((done.header_in, done.header_out), (header_out, header_in));
}
