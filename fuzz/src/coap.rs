//! CoAP between two endpoints, for a given profile: conversations in which identifiers, tokens and options change as
//! those of real endpoints do, and also in other ways.

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use thinair_rohc::FormatPolicy;
use thinair_rohc::exchange::Exchanges;
use thinair_rohc::profile::coap::Base;
use thinair_rohc::storage::Slots;
use thinair_rohc::{
    Channel, CidSpace, CompressError, Compressor, CompressorConfig, CompressorMemory, DecompressError,
    Decompressed, Decompressor, DecompressorConfig, DecompressorMemory, Endpoint, Instant, Integrity, Mode,
    ProfileId, ProfileSet, Refresh, Threshold, packet,
};
use thinair_wire::header::chain::HeaderChain;
use thinair_wire::header::ipv4::Ipv4;

use crate::ROOM;

/// Number of flows between the two endpoints.
const FLOWS: usize = 3;

/// Channel in both directions, with its ends.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct CoapSetup {
    large: bool,
    max_cid: u8,
    elide: bool,
    format: u8,
    window: u8,
    repetitions: u8,
    refresh: u8,
    optimistic: bool,
    /// A context is never given up, so that an input can try many packets on one.
    patient: bool,
    /// Number of slots for exchanges; with 0 no response refers to its request.
    exchanges: u8,
    bases: u8,
    seed: u64,
}

/// Bases learned from the conversation of [`OPENING`].
static BASES: LazyLock<Vec<Base>> = LazyLock::new(|| {
    let setup = CoapSetup {
        large: false,
        max_cid: 3,
        elide: true,
        format: 0,
        window: 3,
        repetitions: 3,
        refresh: 0,
        optimistic: true,
        patient: false,
        exchanges: 0,
        bases: 0,
        seed: 0,
    };
    let mut link = CoapLink::new(&setup, ProfileId::Coap, false);
    OPENING.iter().for_each(|step| link.step(step, &mut |_| {}));
    link.ends.iter().flat_map(|end| end.compressor.learned_bases()).collect()
});

impl CoapSetup {
    fn channel(&self, profile: ProfileId) -> Channel {
        let profiles = ProfileSet::v1().with(profile).expect("it is no variant");
        let cids = if self.large { CidSpace::Large } else { CidSpace::Small };
        let integrity = if self.elide { Integrity::Mic } else { Integrity::None };
        let channel =
            Channel::new(cids, u16::from(self.max_cid % 4), profiles).expect("every space has CID 3");
        channel.with_integrity_below(integrity)
    }

    fn config(&self, profile: ProfileId) -> CompressorConfig {
        let policies = [FormatPolicy::Auto, FormatPolicy::Pt0, FormatPolicy::Pt1, FormatPolicy::Pt0c];
        let refresh = match self.refresh {
            0 => Refresh::Off,
            n @ 1..128 => Refresh::Cycle { ir: 1 + u32::from(n % 4), so: u32::from(n), direct: n % 2 == 0 },
            _ => Refresh::default(),
        };
        let mut config = CompressorConfig {
            refresh,
            repetitions: 1 + self.repetitions % 5,
            window: 1 + self.window % 16,
            seed: self.seed,
            ..CompressorConfig::new(self.channel(profile))
        };
        config.coap.format = policies[usize::from(self.format % 4)];
        config
    }

    /// Bases of both ends, in equal order.
    fn base_slots(&self) -> Slots<'static, Base> {
        let wanted = usize::from(self.bases % 8);
        let bases = if wanted == 0 { &[][..] } else { &BASES };
        Slots::owned(bases.iter().copied().take(wanted).collect())
    }

    /// Creates the compressor.
    pub fn compressor(&self, profile: ProfileId) -> Compressor<'static> {
        let config = self.config(profile);
        Compressor::new(config, CompressorMemory::owned(config.channel.sizes().blocks(4)))
            .with_bases(self.base_slots())
    }

    /// Creates the decompressor.
    pub fn decompressor(&self, profile: ProfileId) -> Decompressor<'static> {
        let channel = self.channel(profile);
        let mode = if self.optimistic { Mode::Optimistic } else { Mode::Unidirectional };
        let mut config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        if self.patient {
            (config.nack, config.static_nack) = (Threshold { k: 17, n: 16 }, Threshold { k: 17, n: 16 });
        }
        Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(64)))
            .with_bases(self.base_slots())
    }

    fn endpoint(&self, profile: ProfileId) -> Endpoint<'static> {
        let places = usize::from(self.exchanges % 33);
        Endpoint::new(self.compressor(profile), self.decompressor(profile))
            .with_exchanges(Exchanges::owned(places), Exchanges::owned(places))
    }
}

/// Change of a number from one message to the next.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Id {
    /// Plus one.
    Next,
    /// Plus or minus a step.
    Step(i8),
    /// Any value.
    Jump(u16),
    /// Value of the other side's last message.
    OfPeer,
    /// Random value for each message.
    Random,
}

/// Token of a message.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum TokenChoice {
    /// Token of length 0.
    Empty,
    /// One token for all messages with these parameters.
    Fixed { fill: u8, len: u8 },
    /// Counter as a uint, in its shortest form if it has no length.
    Counts { len: Option<u8> },
    /// Random token for each message.
    Random { len: u8 },
    /// Token of the other side's last message.
    OfPeer,
}

/// Value of an option.
#[derive(Arbitrary, Clone, Debug)]
pub enum OptionValue {
    /// One value for all messages with these parameters.
    Fixed { fill: u8, len: u16 },
    /// Counter as a uint.
    Counts { from: u32, step: i8 },
    /// Block option with a counting NUM; M and SZX.
    Block { low: u8 },
    /// An OSCORE option whose Partial IV counts.
    Oscore { from: u32, flags: u8, behind: u8 },
    /// Prefix, and random octets for each message.
    Tail { prefix: u8, len: u8 },
    /// Any octets.
    Octets(Vec<u8>),
}

/// Damage of a packet before it is sent.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Damage {
    /// Changes an octet of the CoAP message, with a right checksum.
    Message { at: u8, xor: u8 },
    /// Changes an octet of the packet.
    Packet { at: u8, xor: u8 },
    /// Truncates the CoAP message, with a right checksum.
    Short { by: u8 },
    /// Sets the UDP checksum to zero.
    NoChecksum,
}

/// Messages of one kind.
#[derive(Arbitrary, Clone, Debug)]
pub struct MessageStep {
    server: bool,
    flow: u8,
    /// Milliseconds before each of them.
    wait: u16,
    repeat: u8,
    kind: u8,
    code: u8,
    id: Id,
    token: TokenChoice,
    /// Option Numbers, or the differences between them.
    options: Vec<(u16, OptionValue)>,
    payload: u8,
    ip_id: Id,
    ttl: u8,
    damage: Option<Damage>,
    /// Lost, on a lossy link only.
    lost: bool,
}

impl MessageStep {
    const fn plain(server: bool, kind: u8, code: u8) -> Self {
        Self {
            server,
            flow: 0,
            wait: 10,
            repeat: 7,
            kind,
            code,
            id: Id::Next,
            token: TokenChoice::Empty,
            options: Vec::new(),
            payload: 0,
            ip_id: Id::Next,
            ttl: 0,
            damage: None,
            lost: false,
        }
    }
}

/// Requests, responses that refer to them, notifications, empty acknowledgements, a block-wise transfer, OSCORE.
static OPENING: LazyLock<Vec<MessageStep>> = LazyLock::new(|| {
    let uri = || (11, OptionValue::Fixed { fill: b't', len: 4 });
    let get = MessageStep {
        options: vec![uri()],
        token: TokenChoice::Counts { len: None },
        ..MessageStep::plain(false, 0, 1)
    };
    let response = MessageStep {
        options: vec![(12, OptionValue::Fixed { fill: 50, len: 1 })],
        token: TokenChoice::OfPeer,
        id: Id::OfPeer,
        payload: 9,
        ..MessageStep::plain(true, 2, 69)
    };
    let notification = MessageStep {
        options: vec![(6, OptionValue::Counts { from: 77, step: 1 })],
        token: TokenChoice::Fixed { fill: 3, len: 4 },
        payload: 20,
        ..MessageStep::plain(true, 1, 69)
    };
    let blocks = MessageStep {
        options: vec![uri(), (12, OptionValue::Block { low: 2 })],
        ..MessageStep::plain(false, 0, 1)
    };
    let oscore = MessageStep {
        flow: 1,
        options: vec![(9, OptionValue::Oscore { from: 300, flags: 8, behind: 1 })],
        payload: 14,
        ..MessageStep::plain(false, 0, 2)
    };
    let query = MessageStep {
        options: vec![uri(), (4, OptionValue::Tail { prefix: 2, len: 6 })],
        ..MessageStep::plain(false, 0, 1)
    };
    let once = |step: &MessageStep| MessageStep { repeat: 0, ..step.clone() };
    let mut steps = vec![get.clone()];
    for _ in 0..8 {
        steps.extend([once(&get), once(&response)]);
    }
    let empty = MessageStep { id: Id::OfPeer, ..MessageStep::plain(false, 2, 0) };
    steps.extend([notification.clone(), empty, query, blocks, oscore, notification]);
    steps
});

/// State of the conversation in one flow.
#[derive(Clone, Debug)]
struct Conversation {
    v6: bool,
    port: u16,
    count: u32,
    /// Last Message ID, token and IP-ID of client and server.
    ids: [u16; 2],
    tokens: [Vec<u8>; 2],
    ip_ids: [u16; 2],
}

impl Conversation {
    fn new(number: u8) -> Self {
        Self {
            v6: number % 2 == 1,
            port: 0xE000 + u16::from(number),
            count: 0,
            ids: [0x1200, 0x7700],
            tokens: [vec![], vec![]],
            ip_ids: [0, 0x4000],
        }
    }

    /// Octets that differ from message to message.
    fn random(&self, salt: u32) -> [u8; 8] {
        let mut z = (u64::from(self.count) << 32 | u64::from(salt)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (z ^ z >> 31).to_be_bytes()
    }

    fn id(&self, id: Id, ids: [u16; 2], side: usize) -> u16 {
        match id {
            Id::Next => ids[side].wrapping_add(1),
            Id::Step(step) => ids[side].wrapping_add_signed(i16::from(step)),
            Id::Jump(to) => to,
            Id::OfPeer => ids[1 - side],
            Id::Random => u16::from_be_bytes([self.random(1)[0], self.random(1)[1]]),
        }
    }

    fn token(&self, token: TokenChoice, side: usize) -> Vec<u8> {
        let len = |len: u8| usize::from(len % 9);
        match token {
            TokenChoice::Empty => vec![],
            TokenChoice::Fixed { fill, len: octets } => vec![fill; len(octets)],
            TokenChoice::Counts { len: None } => uint(self.count.wrapping_add(0xF0)),
            TokenChoice::Counts { len: Some(octets) } => {
                u64::from(self.count.wrapping_add(0xF0)).to_be_bytes()[8 - len(octets)..].to_vec()
            }
            TokenChoice::Random { len: octets } => self.random(2)[..len(octets)].to_vec(),
            TokenChoice::OfPeer => self.tokens[1 - side].clone(),
        }
    }

    fn value(&self, value: &OptionValue, index: u32) -> Vec<u8> {
        match *value {
            OptionValue::Fixed { fill, len } => vec![fill; usize::from(len % 300)],
            OptionValue::Counts { from, step } => {
                uint(from.wrapping_add_signed(i32::from(step).wrapping_mul(self.count as i32)))
            }
            OptionValue::Block { low } => uint(self.count << 4 | u32::from(low & 0xF)),
            OptionValue::Oscore { from, flags, behind } => {
                let number = from.wrapping_add(self.count);
                let piv = if number == 0 { vec![0] } else { uint(number) };
                let flags = flags & !7 | piv.len() as u8;
                [&[flags][..], &piv, &vec![7; usize::from(behind % 9)]].concat()
            }
            OptionValue::Tail { prefix, len } => {
                let tail = self.random(3 + index);
                [&vec![b'q'; usize::from(prefix % 9)], &tail[..usize::from(len % 9)]].concat()
            }
            OptionValue::Octets(ref octets) => octets.clone(),
        }
    }

    /// Next message, as a packet.
    fn packet(&mut self, step: &MessageStep) -> Vec<u8> {
        let side = usize::from(step.server);
        self.count = self.count.wrapping_add(1);
        self.ids[side] = self.id(step.id, self.ids, side);
        self.ip_ids[side] = self.id(step.ip_id, self.ip_ids, side);
        self.tokens[side] = self.token(step.token, side);
        let token = &self.tokens[side];
        let mut coap = vec![0x40 | (step.kind & 3) << 4 | token.len() as u8, step.code];
        coap.extend(self.ids[side].to_be_bytes());
        coap.extend(token);
        for (index, (delta, value)) in step.options.iter().take(8).enumerate() {
            let value = self.value(value, index as u32);
            // Most Option Numbers are small.
            let delta = if *delta < 0xF000 { delta % 32 } else { delta % 700 };
            option(&mut coap, delta, &value);
        }
        if step.payload > 0 {
            coap.push(0xFF);
            coap.extend((0..step.payload).map(|i| i ^ self.count as u8));
        }
        match step.damage {
            Some(Damage::Message { at, xor }) => {
                if let Some(octet) = coap.get_mut(usize::from(at)) {
                    *octet ^= xor;
                }
            }
            Some(Damage::Short { by }) => coap.truncate(coap.len().saturating_sub(usize::from(by))),
            Some(Damage::Packet { .. } | Damage::NoChecksum) | None => {}
        }
        let mut packet = self.wrap(side, step.ttl, &coap);
        match step.damage {
            Some(Damage::Packet { at, xor }) => {
                if let Some(octet) = packet.get_mut(usize::from(at)) {
                    *octet ^= xor;
                }
            }
            Some(Damage::NoChecksum) => {
                let at = if self.v6 { 46 } else { 26 };
                packet[at..at + 2].fill(0);
            }
            Some(Damage::Message { .. } | Damage::Short { .. }) | None => {}
        }
        packet
    }

    fn wrap(&self, side: usize, ttl: u8, coap: &[u8]) -> Vec<u8> {
        let len = (8 + coap.len()) as u16;
        let ends = if side == 0 { [1, 2] } else { [2, 1] };
        let mut packet = Vec::new();
        let mut addresses = Vec::new();
        for end in ends {
            let ipv6 = [0xFD, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0xFF, 0xFE, 0, 0, end];
            addresses.extend_from_slice(if self.v6 { &ipv6 } else { &ipv6[12..] });
        }
        if self.v6 {
            packet.extend([0x60, 0, 0, 0, (len >> 8) as u8, len as u8, 17, 64 ^ ttl]);
            packet.extend(&addresses);
        } else {
            packet.extend([0x45, 0]);
            packet.extend((20 + len).to_be_bytes());
            packet.extend(self.ip_ids[side].to_be_bytes());
            packet.extend([0x40, 0, 64 ^ ttl, 17, 0, 0]);
            packet.extend(&addresses);
            let sum = Ipv4::checksum_of(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let ports = if side == 0 { [self.port, 5683] } else { [5683, self.port] };
        let mut udp: Vec<u8> = ports.into_iter().flat_map(u16::to_be_bytes).collect();
        udp.extend(len.to_be_bytes());
        udp.extend([0, 0]);
        udp.extend(coap);
        let sum =
            thinair_wire::checksum::Sum::ZERO.octets(&addresses).word(17).word(len).octets(&udp).checksum();
        let sum = if sum == 0 { 0xFFFF } else { sum };
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        packet.extend(udp);
        packet
    }
}

/// Appends an option.
fn option(coap: &mut Vec<u8>, delta: u16, value: &[u8]) {
    let nibble = |n: usize| match n {
        0..13 => (n as u8, vec![]),
        13..269 => (13, vec![(n - 13) as u8]),
        _ => (14, ((n - 269) as u16).to_be_bytes().to_vec()),
    };
    let (delta, more_delta) = nibble(usize::from(delta));
    let (len, more_len) = nibble(value.len());
    coap.push(delta << 4 | len);
    coap.extend(more_delta);
    coap.extend(more_len);
    coap.extend_from_slice(value);
}

/// Uint in its shortest form.
fn uint(value: u32) -> Vec<u8> {
    value.to_be_bytes().into_iter().skip_while(|octet| *octet == 0).collect()
}

/// Two endpoints, and a link between them without delay.
#[derive(Debug)]
pub struct CoapLink {
    ends: [Endpoint<'static>; 2],
    talks: [Conversation; FLOWS],
    now: Instant,
    loses: bool,
}

impl CoapLink {
    /// Creates a link, which may be lossy.
    pub fn new(setup: &CoapSetup, profile: ProfileId, loses: bool) -> Self {
        Self {
            ends: [setup.endpoint(profile), setup.endpoint(profile)],
            talks: [0, 1, 2].map(Conversation::new),
            now: Instant::ZERO,
            loses,
        }
    }

    /// Sends the packets of a step: delivered packets are restored, on a lossless link bit for bit. Calls `tell` with
    /// each ROHC packet of the server.
    pub fn step(&mut self, step: &MessageStep, tell: &mut impl FnMut(&[u8])) {
        let talk = usize::from(step.flow) % FLOWS;
        for _ in 0..=step.repeat % 16 {
            self.now = Instant::from_nanos(self.now.as_nanos() + u64::from(step.wait) * 1_000_000);
            let sent = self.talks[talk].packet(step);
            if sent.len() + 512 <= ROOM {
                self.carry(step, &sent, tell);
            }
        }
    }

    fn carry(&mut self, step: &MessageStep, sent: &[u8], tell: &mut impl FnMut(&[u8])) {
        let [client, server] = &mut self.ends;
        let (near, far) = if step.server { (server, client) } else { (client, server) };
        let (mut rohc, mut back) = ([0; ROOM], [0; ROOM]);
        let compressed = match near.send(self.now, sent, &mut rohc) {
            Ok(done) => done,
            Err(CompressError::NotIp(_)) => return,
            Err(error) => panic!("{error}: {sent:02x?}"),
        };
        let octets = &rohc[..compressed.len];
        if step.server {
            tell(octets);
        }
        if self.loses && step.lost {
            return;
        }
        match far.receive(self.now, octets, &mut back) {
            Ok(done) if self.loses => assert_well_formed(&done, octets, &back),
            Ok(done) => {
                assert_eq!(back[..done.len], *sent, "{compressed:?} {octets:02x?}");
                assert_eq!(
                    (done.cid, done.profile, done.format, done.header_in, done.header_out),
                    (
                        compressed.cid,
                        compressed.profile,
                        compressed.format,
                        compressed.header_out,
                        compressed.header_in
                    )
                );
            }
            Err(_) if self.loses => {}
            Err(error) => panic!("{error}: {compressed:?} {octets:02x?} of {sent:02x?}"),
        }
        let mut element = [0; 32];
        while let Some(len) = far.poll_feedback(&mut element) {
            let _ = near.receive(self.now, &element[..len], &mut back);
        }
    }
}

/// Conversation of two endpoints, whose packets are restored.
pub fn round_trip(profile: ProfileId, setup: &CoapSetup, loses: bool, steps: &[MessageStep]) {
    let mut link = CoapLink::new(setup, profile, loses);
    steps.iter().take(48).for_each(|step| link.step(step, &mut |_| {}));
}

/// Input of a compressor.
#[derive(Arbitrary, Clone, Debug)]
pub enum CompressorInput {
    /// Packets to send.
    Send(MessageStep),
    /// Data of a forged feedback element.
    Feedback(Vec<u8>),
    /// Feedback element for a CID: an ACK type, bits of the MSN, and options.
    Element { cid: u8, ack: u8, msn: u8, options: Vec<u8> },
}

/// After any feedback, a decompressor that has received every packet accepts the next one.
pub fn feedback(profile: ProfileId, setup: &CoapSetup, events: &[CompressorInput]) {
    let mut compressor = setup.compressor(profile);
    let mut decompressor = setup.decompressor(profile);
    let mut talks = [0, 1, 2].map(Conversation::new);
    let mut now = Instant::ZERO;
    let (mut rohc, mut back) = ([0; ROOM], [0; ROOM]);
    for event in events.iter().take(64) {
        let step = match event {
            CompressorInput::Send(step) => step,
            CompressorInput::Feedback(data) => {
                let _ = compressor.receive_feedback(now, data);
                continue;
            }
            CompressorInput::Element { cid, ack, msn, options } => {
                let cid = if setup.large { vec![cid % 4] } else { vec![0xE0 | (cid % 4)] };
                let data = [&cid[..], &[ack << 6, *msn], options].concat();
                let _ = compressor.receive_feedback(now, &data);
                continue;
            }
        };
        for _ in 0..=step.repeat % 16 {
            now = Instant::from_nanos(now.as_nanos() + u64::from(step.wait) * 1_000_000);
            let sent = talks[usize::from(step.flow) % FLOWS].packet(step);
            if sent.len() + 512 > ROOM {
                continue;
            }
            let Ok(compressed) = compressor.compress(now, &sent, &mut rohc) else { continue };
            let octets = &rohc[..compressed.len];
            match decompressor.decompress(now, octets, &mut back) {
                Ok(done) => assert_eq!(back[..done.len], *sent, "{compressed:?} {octets:02x?}"),
                Err(error) => panic!("{error}: {compressed:?} {octets:02x?} of {sent:02x?}"),
            }
        }
    }
}

/// Forged ROHC packet for a decompressor.
#[derive(Arbitrary, Clone, Debug)]
pub struct Forged {
    /// Delivered packet to start from, if any.
    like: Option<u8>,
    /// Octets that are inserted before it, and octets that change.
    front: Vec<u8>,
    changes: Vec<(u8, u8)>,
    /// Number of octets that are cut off at the end.
    short: u8,
    /// Octet of which every value is tried, if any, to find a right CRC of 8 bits.
    search: Option<u8>,
    wait: u16,
}

/// Forged packets for a decompressor with contexts: they are decompressed or rejected, and every delivered packet is
/// well formed.
pub fn decompress(profile: ProfileId, setup: &CoapSetup, steps: &[MessageStep], packets: &[Forged]) {
    let mut link = CoapLink::new(setup, profile, false);
    let mut heard: Vec<Vec<u8>> = Vec::new();
    OPENING.iter().chain(steps.iter().take(4)).for_each(|step| {
        link.step(step, &mut |octets| {
            heard.truncate(255);
            heard.insert(0, octets.to_vec());
        });
    });
    let victim = &mut link.ends[0];
    let mut now = link.now;
    for forged in packets.iter().take(24) {
        now = Instant::from_nanos(now.as_nanos() + u64::from(forged.wait) * 1_000_000);
        let mut octets = forged.front.clone();
        octets.extend(forged.like.and_then(|like| heard.get(usize::from(like))).into_iter().flatten());
        octets.truncate(octets.len().saturating_sub(usize::from(forged.short)));
        for &(at, xor) in &forged.changes {
            if let Some(octet) = octets.get_mut(usize::from(at)) {
                *octet ^= xor;
            }
        }
        match forged.search.map(|at| usize::from(at % 8)).filter(|&at| at < octets.len()) {
            None => {
                let _ = try_one(victim, now, &octets);
            }
            Some(at) => {
                for value in 0..=u8::MAX {
                    octets[at] = value;
                    if matches!(try_one(victim, now, &octets), Ok(len) if len > 0) {
                        break;
                    }
                }
            }
        }
    }
}

fn try_one(victim: &mut Endpoint<'_>, now: Instant, octets: &[u8]) -> Result<usize, DecompressError> {
    let mut out = [0; ROOM];
    let traced = victim.decompressor.dissect(octets, |_| {});
    let outcome = victim.receive(now, octets, &mut out);
    let mut element = [0; 32];
    while let Some(len) = victim.poll_feedback(&mut element) {
        assert!(len <= thinair_rohc::feedback::MAX_ELEMENT);
        packet::parts(&element[..len]).expect("it was just written");
    }
    let done = outcome?;
    assert_well_formed(&done, octets, &out);
    // A delivered packet can be dissected, too. (A segmented unit is not dissected segment by segment.)
    if octets[0] & 0b1111_1110 != 0b1111_1110 && octets[0] & 0b1111_1000 != 0b1111_0000 {
        assert!(
            traced.is_none() || traced == Some((done.cid, done.profile, done.format)),
            "{traced:?} {done:?}"
        );
    }
    Ok(done.len)
}

/// Restored headers are valid headers with right lengths.
fn assert_well_formed(done: &Decompressed, rohc: &[u8], out: &[u8]) {
    assert!(done.header_in <= rohc.len() && done.header_out <= done.len && done.len <= out.len(), "{done:?}");
    if done.len == 0 || done.profile == ProfileId::Uncompressed {
        return;
    }
    let packet = &out[..done.len];
    HeaderChain::parse(packet).expect("headers that were rebuilt are headers");
    if done.profile == ProfileId::Coap {
        let word = |at: usize| usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
        let udp = if packet[0] >> 4 == 6 { 40 } else { 20 };
        assert_eq!(if udp == 40 { word(4) + 40 } else { word(2) }, done.len, "{packet:02x?}");
        assert_eq!(word(udp + 4), done.len - udp, "{packet:02x?}");
    }
}
