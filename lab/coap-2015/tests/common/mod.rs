//! Messages of CoAP in packets, and two ends of a link.

#![allow(unreachable_pub, missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use thinair_coap_2015::{Coap2015Compressed, Coap2015Compressor, Coap2015Decompressor};
use thinair_rohc::packet::parts;
use thinair_rohc::{
    Channel, CompressorConfig, CompressorMemory, DecompressorConfig, DecompressorMemory, Instant, Mode,
};
use thinair_wire::checksum::Sum;

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// True once in `n`.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// One kind of message between two ports.
#[derive(Clone, Debug)]
pub struct Message {
    pub message_type: u8,
    pub code: u8,
    pub message_id: u16,
    pub token: Vec<u8>,
    pub options: Vec<u8>,
    /// Octets behind the options, Payload Marker included.
    pub rest: Vec<u8>,
}

impl Message {
    /// The request of the evaluation: CON, GET, Uri-Path `time`, no token.
    pub fn get() -> Self {
        let (token, options, rest) = (vec![], b"\xb4time".to_vec(), vec![]);
        Self { message_type: 0, code: 0x01, message_id: 58_468, token, options, rest }
    }

    /// The response: ACK, 2.05, Content-Format without value, Max-Age 1, 15 octets of payload.
    pub fn content() -> Self {
        let options = b"\xc0\x21\x01".to_vec();
        Self { message_type: 2, code: 0x45, options, rest: b"\xffOct 14 19:45:32".to_vec(), ..Self::get() }
    }

    /// Octets of the next message.
    pub fn next(&mut self) -> Vec<u8> {
        let mut message = vec![1 << 6 | self.message_type << 4 | self.token.len() as u8, self.code];
        message.extend_from_slice(&self.message_id.to_be_bytes());
        self.message_id = self.message_id.wrapping_add(1);
        [&message[..], &self.token, &self.options, &self.rest].concat()
    }
}

/// Behavior of an IP-ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    Counts,
    Swapped,
    Random,
}

/// Packets from one host and port to another.
#[derive(Clone, Debug)]
pub struct Flow {
    six: bool,
    pub tos: u8,
    pub ttl: u8,
    id: u16,
    pub id_kind: IdKind,
    /// UDP checksums are carried.
    pub checksum: bool,
}

impl Flow {
    pub fn new(six: bool) -> Self {
        Self { six, tos: 0, ttl: 64, id: 0x1FF0, id_kind: IdKind::Counts, checksum: true }
    }

    /// The next packet.
    pub fn carry(&mut self, message: &[u8], random: &mut Random) -> Vec<u8> {
        let len = 8 + message.len() as u16;
        let mut packet = Vec::new();
        if self.six {
            packet.extend([
                0x60 | self.tos >> 4,
                self.tos << 4,
                0x12,
                0x34,
                (len >> 8) as u8,
                len as u8,
                17,
                self.ttl,
            ]);
            packet.extend(b"\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02");
        } else {
            self.id =
                if self.id_kind == IdKind::Random { random.next() as u16 } else { self.id.wrapping_add(1) };
            let id = if self.id_kind == IdKind::Swapped { self.id.swap_bytes() } else { self.id };
            packet.extend([0x45, self.tos]);
            packet.extend((20 + len).to_be_bytes());
            packet.extend(id.to_be_bytes());
            packet.extend([0, 0, self.ttl, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            let sum = Sum::ZERO.octets(&packet).checksum();
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let udp = packet.len();
        packet.extend(b"\xC0\0\x16\x33");
        packet.extend(len.to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(message);
        if self.checksum {
            let addresses = if self.six { &packet[8..40] } else { &packet[12..20] };
            let sum = Sum::ZERO.octets(addresses).word(17).word(len).octets(&packet[udp..]).checksum();
            let sum = if sum == 0 { u16::MAX } else { sum };
            packet[udp + 6..udp + 8].copy_from_slice(&sum.to_be_bytes());
        }
        packet
    }
}

/// Two ends of a link, of which one sends.
pub struct Link {
    pub near: Coap2015Compressor<'static>,
    pub far: Coap2015Decompressor<'static>,
    pub now: Instant,
    pub rohc: Vec<u8>,
    pub back: Vec<u8>,
}

impl Link {
    /// Creates a link with memory for the options of `most` flows.
    pub fn new(channel: Channel, mode: Mode, most: usize, change: impl Fn(&mut CompressorConfig)) -> Self {
        let mut config = CompressorConfig::new(channel);
        change(&mut config);
        let near = Coap2015Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(8)), most);
        let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        let far = Coap2015Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(8)));
        Self { near, far, now: Instant::ZERO, rohc: vec![0; 4_000], back: vec![0; 4_000] }
    }

    /// Compresses a packet 20 ms after the last one, into `rohc`.
    pub fn send(&mut self, packet: &[u8]) -> Coap2015Compressed {
        self.now = self.now + Duration::from_millis(20);
        self.near.compress(self.now, packet, &mut self.rohc).unwrap()
    }

    /// Decompresses a packet that was sent, compares the result, and carries feedback back.
    pub fn receive(&mut self, packet: &[u8], sent: &Coap2015Compressed) {
        let compressed = &sent.compressed;
        let rohc = &self.rohc[..compressed.len];
        let done = self.far.decompress(self.now, rohc, &mut self.back);
        let done = done.unwrap_or_else(|error| panic!("{error}: {sent:?} {rohc:02x?} of {packet:02x?}"));
        assert_eq!(&self.back[..done.len], packet, "{sent:?} {rohc:02x?}");
        assert_eq!((done.profile, done.format), (compressed.profile, compressed.format));
        assert_eq!((done.header_in, done.header_out), (compressed.header_out, compressed.header_in));
        self.feed_back();
    }

    /// Decompresses a packet unless it is lost. What comes out is what was sent.
    pub fn receive_or_drop(&mut self, packet: &[u8], sent: &Coap2015Compressed, is_lost: bool) {
        if is_lost {
            return;
        }
        let done = self.far.decompress(self.now, &self.rohc[..sent.compressed.len], &mut self.back);
        if let Ok(done) = done
            && done.len > 0
        {
            assert_eq!(&self.back[..done.len], packet, "{sent:?}");
        }
        self.feed_back();
    }

    fn feed_back(&mut self) {
        let mut feedback = [0; 64];
        while let Some(len) = self.far.poll_feedback(&mut feedback) {
            for data in parts(&feedback[..len]).unwrap().feedback {
                let _ = self.near.receive_feedback(self.now, data);
            }
        }
    }

    /// Carries a packet, and its feedback in the other direction.
    pub fn carry(&mut self, packet: &[u8]) -> Coap2015Compressed {
        let sent = self.send(packet);
        self.receive(packet, &sent);
        sent
    }
}
