//! Two ends of a link without loss, of which one sends: every packet has to come back.

use std::collections::BTreeMap;
use std::time::Duration;

use thinair_rohc::{
    Channel, CidSpace, Compressed, Compressor, CompressorConfig, CompressorMemory, Decompressor,
    DecompressorConfig, DecompressorMemory, Endpoint, Format, Instant, Mode, ProfileId, ProfileSet, Refresh,
    RtpDetection,
};
use thinair_wire::header::chain::HeaderChain;

use super::{SplitMix64, any_flow};

pub struct Link {
    pub near: Endpoint<'static>,
    pub far: Endpoint<'static>,
    pub now: Instant,
    pub rohc: Vec<u8>,
    pub back: Vec<u8>,
}

impl Link {
    /// Creates a link whose compressors have `blocks` blocks for lists and options.
    pub fn new(channel: Channel, mode: Mode, blocks: usize, change: impl Fn(&mut CompressorConfig)) -> Self {
        let endpoint = || {
            let mut config = CompressorConfig::new(channel);
            change(&mut config);
            let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(blocks)));
            let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
            Endpoint::new(
                compressor,
                Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(64))),
            )
        };
        let (rohc, back) = (vec![0; 4_000], vec![0; 4_000]);
        Self { near: endpoint(), far: endpoint(), now: Instant::ZERO, rohc, back }
    }

    /// Compresses a packet 20 ms after the last one, into `rohc`.
    pub fn send(&mut self, packet: &[u8]) -> Compressed {
        self.now = self.now + Duration::from_millis(20);
        self.near.send(self.now, packet, &mut self.rohc).unwrap()
    }

    /// Decompresses a packet that was sent, compares the result, and carries feedback back.
    pub fn receive(&mut self, packet: &[u8], sent: &Compressed) {
        let rohc = &self.rohc[..sent.len];
        let done = self.far.receive(self.now, rohc, &mut self.back);
        let done = done.unwrap_or_else(|error| panic!("{error}: {sent:?} {rohc:02x?} of {packet:02x?}"));
        assert_eq!(&self.back[..done.len], packet, "{sent:?} {rohc:02x?}");
        assert_eq!((done.profile, done.format), (sent.profile, sent.format));
        assert_eq!((done.header_in, done.header_out), (sent.header_out, sent.header_in));
        let mut feedback = [0; 64];
        while let Some(len) = self.far.poll_feedback(&mut feedback) {
            let _ = self.near.receive(self.now, &feedback[..len], &mut self.back);
        }
    }

    /// Carries a packet, and its feedback in the other direction.
    pub fn carry(&mut self, packet: &[u8]) -> Compressed {
        let sent = self.send(packet);
        self.receive(packet, &sent);
        sent
    }
}

/// Sends random flows through a random channel with these profiles. Counts the uses of each format.
pub fn any_flows_come_back(
    profiles: ProfileSet,
    seed: u64,
    change: impl Fn(&mut CompressorConfig),
    formats: &mut BTreeMap<(ProfileId, Format), u32>,
) {
    let mut random = SplitMix64(seed);
    let (cids, max_cid) = match random.below(4) {
        0 => (CidSpace::Small, 0),
        1 => (CidSpace::Large, 300),
        _ => (CidSpace::Small, 15),
    };
    let mode = if random.once_in(2) { Mode::Optimistic } else { Mode::Unidirectional };
    let window = 1 + random.below(16) as u8;
    let refresh = match random.below(3) {
        0 => Refresh::Off,
        1 => Refresh::Cycle { ir: 3, so: 20, direct: true },
        _ => Refresh::Periodic { packets: Some(60), time: None, backoff: seed.is_multiple_of(2) },
    };
    let channel = Channel::new(cids, max_cid, profiles).unwrap();
    let mut link = Link::new(channel, mode, 64, |config| {
        config.window = window;
        config.refresh = refresh;
        if seed.is_multiple_of(3) {
            config.rtp = RtpDetection::of_ports(&[5004]).unwrap();
        }
        config.seed = seed;
        change(config);
    });
    let mut flows: Vec<_> = (0..1 + random.below(5)).map(|_| any_flow(&mut random)).collect();
    for _ in 0..150 {
        let at = random.below(flows.len() as u64) as usize;
        if random.once_in(6) {
            flows[at].change(&mut random);
        }
        let mut packet = flows[at].packet(&mut random);
        if random.once_in(40) {
            // Packets that only profile 0x0000 can carry.
            let at = random.below(packet.len() as u64) as usize;
            packet[at] ^= 1 << random.below(8);
            if HeaderChain::parse(&packet).is_err() {
                continue;
            }
        }
        let compressed = link.carry(&packet);
        *formats.entry((compressed.profile, compressed.format)).or_insert(0) += 1;
    }
}
