//! Comparison of the fast path, which is tried before a packet is parsed, with the full path, which a packet takes that its caller has
//! parsed: octets, outcomes and contexts are equal.

use crate::common::SplitMix64;
use crate::common::coap::{CoapFlow, CoapSide, FlowName, Mix};
use crate::common::tcp::{Outer, TcpPacket, timestamps};
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, FormatPolicy, Instant, Integrity,
    ProfileId, ProfileSet, Refresh,
};
use thinair_wire::header::chain::HeaderChain;

/// Two compressors that get the same packets.
struct BothPaths {
    fast: Compressor<'static>,
    full: Compressor<'static>,
    now: u64,
    packets: u64,
}

impl BothPaths {
    fn new(config: CompressorConfig) -> Self {
        let compressor = || Compressor::new(config, CompressorMemory::owned(&config.channel));
        Self { fast: compressor(), full: compressor(), now: 0, packets: 0 }
    }

    fn compress(&mut self, packet: &[u8], room: usize) {
        let now = Instant::from_millis(self.now);
        let (mut octets, mut others) = ([0; 300], [0; 300]);
        let done = self.fast.compress(now, packet, &mut octets[..room]);
        let chain = HeaderChain::parse(packet).unwrap();
        let other = self.full.compress_parsed(now, &chain, &mut others[..room]);
        assert_eq!(done, other, "{packet:x?}");
        if let Ok(done) = done {
            assert_eq!(octets[..done.len], others[..done.len]);
        }
        self.packets += 1;
        if self.packets.is_multiple_of(16) {
            assert_eq!(format!("{:?}", self.fast), format!("{:?}", self.full), "behind {done:?}");
        }
    }
}

fn config(random: &mut SplitMix64) -> CompressorConfig {
    let profiles =
        ProfileSet::v1().with(ProfileId::Coap).and_then(|profiles| profiles.with(ProfileId::Tcp)).unwrap();
    let integrity = [Integrity::None, Integrity::Crc32][random.below(2) as usize];
    let cids = [CidSpace::Small, CidSpace::Large][random.below(2) as usize];
    let channel = Channel::new(cids, 3, profiles).unwrap().with_integrity_below(integrity);
    let mut config = CompressorConfig::new(channel);
    config.coap.format = [FormatPolicy::Auto, FormatPolicy::Pt0, FormatPolicy::Pt1, FormatPolicy::Pt0c]
        [random.below(4) as usize];
    if random.once_in(2) {
        config.refresh = Refresh::Periodic { packets: Some(40), time: None, backoff: false };
    }
    config
}

#[test]
fn both_paths_of_coap_agree() {
    use FlowName::{A, B, C2, C4, CCount, D, EReq, ERsp, FReq, FRsp, G, H, HRsp};
    for seed in 0..78 {
        let random = &mut SplitMix64(seed);
        let names = [A, B, C2, C4, CCount, D, EReq, ERsp, FReq, FRsp, G, H, HRsp];
        let mut both = BothPaths::new(config(random));
        let mut flows: Vec<_> = (0..1 + random.below(2))
            .map(|i| CoapFlow::new(names[(seed + i * 5) as usize % names.len()], random.once_in(3), seed + i))
            .collect();
        let mut current = 0;
        for _ in 0..250 {
            if random.once_in(20) {
                current = random.below(flows.len() as u64) as usize;
            }
            let (side, mut packet) = flows[current].next().pop().unwrap();
            assert_eq!(side, flows[current].side);
            both.now += if random.once_in(40) { random.below(60_000) } else { 100 };
            match random.below(60) {
                // A packet is lost, one octet differs, or octets are appended or missing.
                0 => continue,
                1..4 => {
                    let at = random.below(packet.len() as u64) as usize;
                    packet[at] ^= 1 << random.below(8);
                }
                4 => packet.push(7),
                5 => drop(packet.pop()),
                6 => both.now -= 90,
                _ => {}
            }
            if HeaderChain::parse(&packet).is_ok() {
                both.compress(&packet, if random.once_in(50) { 20 } else { 300 });
            }
        }
    }
}

#[test]
fn both_paths_of_mixed_messages_agree() {
    for seed in 0..24 {
        let random = &mut SplitMix64(seed);
        let (mut both, mut mix) = (BothPaths::new(config(random)), Mix::new(random.once_in(2), random));
        for _ in 0..400 {
            let (side, packet) = mix.next(random);
            both.now += if random.once_in(40) { random.below(60_000) } else { 100 };
            if side == CoapSide::Client || seed % 2 == 0 {
                both.compress(&packet, 300);
            }
        }
    }
}

#[test]
fn both_paths_of_tcp_agree() {
    for seed in 0..40 {
        let random = &mut SplitMix64(seed);
        let mut both = BothPaths::new(config(random));
        let mut flows: Vec<_> = (0..1 + random.below(2))
            .map(|i| {
                TcpPacket::new(vec![Outer::new(random.once_in(3)); 1 + i as usize * 2 / 3], 4_000 + i as u16)
            })
            .collect();
        let (step, ids, stamps) = (random.below(3) * 700, random.below(4), random.below(3));
        let mut current = 0;
        for i in 0..400 {
            if random.once_in(30) {
                current = random.below(flows.len() as u64) as usize;
            }
            let flow = &mut flows[current];
            let sent = flow.payload.len() as u32;
            flow.tcp.sequence_number = flow.tcp.sequence_number.wrapping_add(sent);
            flow.tcp.acknowledgment_number = flow.tcp.acknowledgment_number.wrapping_add(step as u32);
            let id = &mut flow.ips[0].id;
            *id = match ids {
                0 => 0,
                1 => random.next() as u16,
                2 => id.swap_bytes().wrapping_add(1).swap_bytes(),
                _ => id.wrapping_add(1),
            };
            if stamps > 0 {
                flow.options = timestamps(i, i / 2);
            }
            (flow.tcp.syn, flow.tcp.fin, flow.tcp.rst) = (false, false, false);
            let one = 1 + random.below(50) as u16;
            match random.below(120) {
                0 => flow.ips[0].ttl ^= 1,
                1 => flow.ips[0].tos ^= 1,
                2 => flow.tcp.window = flow.tcp.window.wrapping_add(one),
                3 => flow.tcp.urgent_pointer = one,
                4 => flow.payload = vec![7; one.into()],
                5 => flow.payload.clear(),
                6 => flow.tcp.fin = true,
                7 => flow.tcp.syn = true,
                8 => flow.tcp.rst = true,
                9 => flow.wrong = if flow.wrong == 0 { one } else { 0 },
                10 => flow.tcp.ece ^= true,
                11 => flow.options = vec![1, 1, 1, 1],
                12 => flow.ips[0].id = random.next() as u16,
                13 => flow.tcp.sequence_number = random.next() as u32,
                14..40 => flow.tcp.psh ^= true,
                _ => {}
            }
            both.now += if random.once_in(60) { random.below(60_000) } else { 100 };
            let mut packet = flow.octets();
            if random.once_in(40) {
                let at = random.below(packet.len() as u64) as usize;
                packet[at] ^= 1 << random.below(8);
            }
            if HeaderChain::parse(&packet).is_ok() {
                both.compress(&packet, if random.once_in(50) { 20 } else { 300 });
            }
        }
    }
}
