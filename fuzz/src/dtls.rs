//! A flow of DTLS records: types, epochs, sequence numbers, nonces and connection IDs that change as those of real endpoints do, and also
//! in other ways.

use arbitrary::Arbitrary;
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Endpoint, Instant, Integrity, Mode, ProfileId, ProfileSet,
};
use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;

use crate::ROOM;

/// Channel, and the version of IP.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct DtlsSetup {
    large: bool,
    elide: bool,
    six: bool,
    optimistic: bool,
    window: u8,
    repetitions: u8,
}

/// Records of one kind.
#[derive(Arbitrary, Clone, Debug)]
pub struct RecordStep {
    first: u8,
    is_1_0: bool,
    epoch: u8,
    /// Step of the sequence number.
    step: i16,
    /// A nonce with this difference; random octets for `None`.
    difference: Option<u64>,
    cid: u8,
    octets: u8,
    repeat: u8,
    ttl: u8,
    ip_id: u16,
    has_checksum: bool,
    /// Another record stands behind the first one.
    has_more: bool,
    is_lost: bool,
    wait: u16,
    /// Octets that arrive in front of the packet.
    forged: Vec<u8>,
}

impl RecordStep {
    fn record(&self, number: u64) -> Vec<u8> {
        let content = [20, 21, 22, 23, 23, 23, 24, 25];
        let kind = if self.first & 0xE0 == 0x20 { self.first } else { content[usize::from(self.first) % 8] };
        let octets: Vec<u8> = (0..self.octets).map(|i| i.wrapping_mul(self.first) ^ number as u8).collect();
        let cid = vec![0xC1; usize::from(self.cid % 24)];
        let count = u64::from(self.epoch % 4) << 48 | number & 0xFFFF_FFFF_FFFF;
        if kind & 0xE0 == 0x20 {
            let cid: &[u8] = if kind & 0x10 != 0 { &cid } else { &[] };
            let encrypted = (number as u16).to_be_bytes();
            let encrypted = if kind & 8 != 0 { &encrypted[..] } else { &encrypted[..1] };
            let length = (octets.len() as u16).to_be_bytes();
            let length: &[u8] = if kind & 4 != 0 { &length } else { &[] };
            return [&[kind][..], cid, encrypted, length, &octets].concat();
        }
        let nonce = self.difference.map(|more| count.wrapping_add(more).to_be_bytes());
        let fragment = [nonce.as_ref().map_or(&[][..], |nonce| &nonce[..]), &octets].concat();
        let cid: &[u8] = if kind == 25 { &cid } else { &[] };
        let version = 253 | u8::from(self.is_1_0) << 1;
        let length = (fragment.len() as u16).to_be_bytes();
        [&[kind, 254, version][..], &count.to_be_bytes(), cid, &length, &fragment].concat()
    }

    fn packet(&self, six: bool, number: u64) -> Vec<u8> {
        let mut datagram = self.record(number);
        if self.has_more {
            datagram.extend(self.record(number + 1));
        }
        let len = (8 + datagram.len() as u16).to_be_bytes();
        let addresses = if six { [[0xFD; 16], [0xFE; 16]].concat() } else { vec![10, 0, 0, 1, 10, 0, 0, 2] };
        let mut udp = [&[0xC0, 0, 0x16, 0x34][..], &len, &[0, 0], &datagram].concat();
        if six || self.has_checksum {
            let sum = Sum::ZERO.octets(&addresses).word(17).octets(&len).octets(&udp).checksum();
            udp[6..8].copy_from_slice(&(if sum == 0 { 0xFFFF } else { sum }).to_be_bytes());
        }
        if six {
            return [&[0x60, 0, 0, 0][..], &len, &[17, self.ttl], &addresses, &udp].concat();
        }
        let total = (20 + udp.len() as u16).to_be_bytes();
        let id = self.ip_id.wrapping_add(number as u16).to_be_bytes();
        let mut ip = [&[0x45, 0][..], &total, &id, &[0x40, 0, self.ttl, 17, 0, 0], &addresses].concat();
        let sum = Ipv4::checksum_of(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        [ip, udp].concat()
    }
}

/// Packets are restored bit for bit; behind losses and forged packets the ends go on.
pub fn round_trip(setup: &DtlsSetup, steps: &[RecordStep]) {
    let profiles = ProfileSet::v1().with(ProfileId::Dtls).expect("it is no variant");
    let cids = if setup.large { CidSpace::Large } else { CidSpace::Small };
    let integrity = if setup.elide { Integrity::Mic } else { Integrity::None };
    let channel =
        Channel::new(cids, 3, profiles).expect("every space has CID 3").with_integrity_below(integrity);
    let config = CompressorConfig {
        window: 1 + setup.window % 16,
        repetitions: 1 + setup.repetitions % 8,
        ..CompressorConfig::new(channel)
    };
    let mode = if setup.optimistic { Mode::Optimistic } else { Mode::Unidirectional };
    let far = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
    let [mut near, mut far] = [0; 2].map(|_| {
        Endpoint::new(
            Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(2))),
            Decompressor::new(far, DecompressorMemory::owned(channel.sizes().blocks(2))),
        )
    });
    let (mut rohc, mut back) = ([0; ROOM], [0; ROOM]);
    let (mut now, mut number, mut is_clean) = (Instant::ZERO, 0_u64, true);
    for step in steps.iter().take(48) {
        for _ in 0..=step.repeat % 16 {
            now = Instant::from_nanos(now.as_nanos() + u64::from(step.wait) * 1_000_000);
            number = number.wrapping_add_signed(step.step.into()) & 0xFFFF_FFFF_FFFF;
            let sent = step.packet(setup.six, number);
            let Ok(compressed) = near.send(now, &sent, &mut rohc) else { continue };
            let len = compressed.len;
            if !step.forged.is_empty() {
                is_clean = false;
                let _ = far.receive(now, &step.forged, &mut back);
            }
            if step.is_lost {
                is_clean = false;
                continue;
            }
            match far.receive(now, &rohc[..len], &mut back) {
                Ok(done) => assert!(!is_clean || back[..done.len] == *sent, "{step:?}"),
                Err(error) => assert!(!is_clean, "{error}: {step:?}"),
            }
            while let Some(len) = far.poll_feedback(&mut rohc) {
                let _ = near.receive(now, &rohc[..len], &mut back);
            }
        }
    }
}
