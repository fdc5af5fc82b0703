//! A flow takes the CID of another one, and its first packets are lost: the decompressor has the static chain of the other flow.

use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Instant, Mode, ProfileSet, packet,
};
use thinair_wire::checksum;
use thinair_wire::header::protocol;

use crate::common::SplitMix64;
use crate::common::source::{ChecksumUse, PacketSource, SourceKind};

/// Packets of the new flow.
const PACKETS: usize = 400;

/// Packets that arrive until it is as it was, at the latest: the first refresh comes a second after it has begun.
const RECOVERED: usize = 60;

/// Flows in a cell of the test.
const RUNS: usize = 18;

/// Gives a packet other addresses, and the checksums that follow from them.
fn readdress(packet: &mut [u8], addresses: [u16; 2]) {
    let six = packet[0] >> 4 == 6;
    let (header, next, places) = if six { (40, packet[6], [22, 38]) } else { (20, packet[9], [14, 18]) };
    let sum_at = match next {
        protocol::UDP | protocol::UDP_LITE => Some(header + 6),
        protocol::TCP => Some(header + 16),
        _ => None,
    };
    for (at, address) in places.into_iter().zip(addresses) {
        let old = u16::from_be_bytes([packet[at], packet[at + 1]]);
        packet[at..at + 2].copy_from_slice(&address.to_be_bytes());
        for sum_at in sum_at.into_iter().chain((!six).then_some(10)) {
            let sum = u16::from_be_bytes([packet[sum_at], packet[sum_at + 1]]);
            if sum != 0 {
                let sum = checksum::update(sum, old, address);
                packet[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
            }
        }
    }
}

/// A flow of some profile, and the mode of the channel.
#[derive(Clone, Copy, Debug)]
struct Setup {
    kind: SourceKind,
    checksum: ChecksumUse,
    profiles: ProfileSet,
    six: bool,
    mode: Mode,
}

/// Fates of the packets of the new flow.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    wrong: usize,
    undelivered: usize,
}

impl Setup {
    fn run(self, lost: usize, seed: u64) -> Outcome {
        let channel = Channel::new(CidSpace::Small, 0, self.profiles).unwrap();
        let config = CompressorConfig::new(channel);
        let mut compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4)));
        let config = DecompressorConfig { mode: self.mode, ..DecompressorConfig::new(channel) };
        let mut decompressor =
            Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(4)));
        let (mut rohc, mut back, mut element) = ([0; 400], [0; 400], [0; 32]);
        let (mut random, mut now, mut outcome) =
            (SplitMix64(seed), Instant::from_millis(1_000), Outcome::default());
        for is_new in [false, true] {
            let mut source = PacketSource::new(self.kind, self.six, self.checksum, 160, random.next());
            let addresses = [random.next() as u16, random.next() as u16];
            for number in 0..PACKETS {
                let (_, mut sent) = source.next(&mut random).remove(0);
                readdress(&mut sent, addresses);
                now = Instant::from_nanos(now.as_nanos() + 20_000_000);
                let len = compressor.compress(now, &sent, &mut rohc).unwrap().len;
                if is_new && number < lost {
                    continue;
                }
                match decompressor.decompress(now, &rohc[..len], &mut back) {
                    Ok(done) if back[..done.len] == sent => {}
                    _ if number >= lost + RECOVERED => {
                        panic!("packet {number} is not right: {self:?} {lost} {seed}")
                    }
                    Ok(_) => outcome.wrong += 1,
                    Err(_) => outcome.undelivered += 1,
                }
                while let Some(len) = decompressor.poll_feedback(&mut element) {
                    for data in packet::parts(&element[..len]).unwrap().feedback {
                        compressor.receive_feedback(now, data).unwrap();
                    }
                }
            }
        }
        outcome
    }

    /// True if a checksum covers addresses and SN.
    fn is_proved(self) -> bool {
        self.checksum == ChecksumUse::Carried
            && (self.kind == SourceKind::Rtp || self.kind.is_tcp() || self.kind.is_coap())
    }
}

#[test]
fn a_decompressor_with_the_static_chain_of_another_flow_notices() {
    for (kind, profiles) in [
        (SourceKind::Udp, ProfileSet::v1()),
        (SourceKind::UdpLite, ProfileSet::v1()),
        (SourceKind::Rtp, ProfileSet::v1()),
        (SourceKind::Esp, ProfileSet::v1()),
        (SourceKind::Ip, ProfileSet::v1()),
        (SourceKind::Udp, ProfileSet::v2()),
        (SourceKind::Rtp, ProfileSet::v2()),
        (SourceKind::Ip, ProfileSet::v2()),
        (SourceKind::TcpData, SourceKind::TcpData.profiles()),
        (SourceKind::CoapGet, ProfileSet::default()),
    ] {
        for &checksum in kind.checksums() {
            for six in [false, true] {
                for mode in [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable] {
                    let setup = Setup { kind, checksum, profiles, six, mode };
                    let mut all = Outcome::default();
                    for (lost, seed) in
                        [4, 8, 16].into_iter().flat_map(|lost| (0..RUNS / 3).map(move |seed| (lost, seed)))
                    {
                        let one = setup.run(lost, seed as u64);
                        (all.wrong, all.undelivered) =
                            (all.wrong + one.wrong, all.undelivered + one.undelivered);
                    }
                    println!("{setup:?}: {} wrong, {} not delivered", all.wrong, all.undelivered);
                    // CRC-3 accepts one wrong header in eight.
                    let most = if setup.is_proved() { 0 } else { RUNS * RECOVERED / 8 };
                    assert!(all.wrong <= most, "{setup:?}: {all:?}");
                }
            }
        }
    }
}
