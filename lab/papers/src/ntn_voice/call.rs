//! One loss burst in a voice call over a link with a long delay.

use core::time::Duration;
use std::collections::BTreeMap;

use thinair_link::Random;
use thinair_rohc::{
    Arrival, Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor,
    DecompressorConfig, DecompressorMemory, Endpoint, Format, Instant, Mode, ProfileId, ProfileSet,
    RtpDetection,
};
use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;

use crate::form::Vars;
use crate::paper::PaperError;

/// One-way delay: half of the round trip of a GEO link.
pub(super) const DELAY: Duration = Duration::from_millis(280);

/// Packets before a burst, without the number that varies between runs.
const BEFORE: u64 = 160;

/// Number of different positions of a burst: all phases of 6 bits.
pub(super) const PHASES: u64 = 64;

/// Packets after a burst.
const BEHIND: u64 = 64;

/// Size of a voice frame, in octets; it does not affect the headers.
const PAYLOAD: usize = 24;

/// Port of the stream.
const PORT: u16 = 5_004;

/// Maximum jitter of the sender, in microseconds. Jitter of the link is up to twice as much.
const JITTER: u64 = 1_000;

/// Call, and the compression of its headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    profiles: ProfileSet,
    six: bool,
    pub(super) mode: Mode,
    /// Time between packets, in milliseconds.
    interval: u64,
    /// Pauses between talkspurts, in which nothing is sent.
    pub(super) pauses: bool,
    /// The carrier numbers its frames, as PDCP does, and the decompressor receives the number of missing frames.
    counts: bool,
}

impl Call {
    pub(super) fn read(cell: &Vars) -> Result<Self, PaperError> {
        let profiles = match cell.text("kind")? {
            "udp" => ProfileSet::of(&[ProfileId::Udp])?,
            "ip" => ProfileSet::of(&[ProfileId::Ip])?,
            _ => ProfileSet::v1(),
        };
        let mode = match cell.text("mode")? {
            "u" => Mode::Unidirectional,
            "o" => Mode::Optimistic,
            _ => Mode::Reliable,
        };
        let (six, interval) = (cell.text("version")? == "v6", cell.parse("interval")?);
        Ok(Self {
            profiles,
            six,
            mode,
            interval,
            pauses: cell.has("kind.pauses"),
            counts: cell.has("kind.counts"),
        })
    }
}

/// Figures of one burst, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct BurstTally {
    pub(super) bursts: u64,
    /// Packets after bursts that arrived.
    pub(super) behind: u64,
    pub(super) wrong: u64,
    /// Packets after bursts that arrived and were not delivered exactly.
    pub(super) undelivered: u64,
    /// Largest number of consecutive ones.
    pub(super) outage: u64,
    /// Bursts after which a packet was not delivered.
    pub(super) felt: u64,
    /// Bursts after which the compressor sent IR or IR-DYN packets.
    pub(super) dynamic: u64,
    pub(super) initial: u64,
    /// Octets of headers and number of packets: last packets before a burst, and first second after it.
    steady: (u64, u64),
    after: (u64, u64),
}

impl BurstTally {
    pub(super) fn add(&mut self, other: &Self) {
        self.bursts += other.bursts;
        self.behind += other.behind;
        self.wrong += other.wrong;
        self.undelivered += other.undelivered;
        self.outage = self.outage.max(other.outage);
        self.felt += other.felt;
        self.dynamic += other.dynamic;
        self.initial += other.initial;
        for (ours, theirs) in [(&mut self.steady, other.steady), (&mut self.after, other.after)] {
            ours.0 += theirs.0;
            ours.1 += theirs.1;
        }
    }

    fn mean((octets, packets): (u64, u64)) -> f64 {
        octets as f64 / packets.max(1) as f64
    }

    /// Mean size of a compressed header without losses, in octets.
    pub(super) fn steady(&self) -> f64 {
        Self::mean(self.steady)
    }

    /// Mean size of a compressed header in the first second after a burst, in octets.
    pub(super) fn after(&self) -> f64 {
        Self::mean(self.after)
    }

    /// Mean number of packets that arrived after a burst and were not delivered.
    pub(super) fn undelivered(&self) -> f64 {
        self.undelivered as f64 / self.bursts.max(1) as f64
    }
}

/// Packets of a call.
struct Voice {
    call: Call,
    random: Random,
    sequence: u16,
    timestamp: u32,
    id: u16,
}

impl Voice {
    fn new(call: Call, mut random: Random) -> Self {
        let (sequence, timestamp, id) =
            (random.next_u64() as u16, random.next_u64() as u32, random.next_u64() as u16);
        Self { call, random, sequence, timestamp, id }
    }

    /// Next packet, and number of intervals since the previous one.
    fn next(&mut self) -> (u64, Vec<u8>) {
        let is_first = self.call.pauses && self.random.below(50) == 0;
        let intervals = if is_first { 2 + self.random.below(100) } else { 1 };
        // Clock of 8 kHz.
        self.timestamp = self.timestamp.wrapping_add((8 * self.call.interval * intervals) as u32);
        self.sequence = self.sequence.wrapping_add(1);
        self.id = self.id.wrapping_add(1);
        let length = (8 + 12 + PAYLOAD) as u16;
        let mut packet = Vec::with_capacity(104);
        if self.call.six {
            packet.extend_from_slice(&[0x60, 0, 0, 0]);
            packet.extend_from_slice(&length.to_be_bytes());
            packet.extend_from_slice(&[17, 64]);
            packet.extend_from_slice(b"\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x01");
            packet.extend_from_slice(b"\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x02");
        } else {
            packet.extend_from_slice(&[0x45, 0]);
            packet.extend_from_slice(&(20 + length).to_be_bytes());
            packet.extend_from_slice(&self.id.to_be_bytes());
            packet.extend_from_slice(&[0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 99, 0, 2]);
            let sum = Ipv4::checksum_of(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let at = packet.len();
        let addresses = if self.call.six { 8..40 } else { 12..20 };
        packet.extend_from_slice(&PORT.to_be_bytes());
        packet.extend_from_slice(&PORT.to_be_bytes());
        packet.extend_from_slice(&length.to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0x80, u8::from(is_first) << 7 | 96]);
        packet.extend_from_slice(&self.sequence.to_be_bytes());
        packet.extend_from_slice(&self.timestamp.to_be_bytes());
        packet.extend_from_slice(b"SSRC");
        for _ in 0..PAYLOAD / 8 {
            packet.extend_from_slice(&self.random.next_u64().to_be_bytes());
        }
        let sum = Sum::ZERO.octets(&packet[addresses]).word(17).word(length).octets(&packet[at..]).checksum();
        let sum = if sum == 0 { 0xFFFF } else { sum };
        packet[at + 6..at + 8].copy_from_slice(&sum.to_be_bytes());
        (intervals, packet)
    }
}

/// Packets and feedback in flight.
enum CallEvent {
    Packet { number: u64, rohc: Vec<u8>, packet: Vec<u8> },
    Feedback(Vec<u8>),
}

/// Runs calls with a burst of `burst` lost packets each, one call for each of the first `phases` positions of the
/// burst.
pub(super) fn calls(call: Call, burst: u64, phases: u64, seed: u64) -> Result<BurstTally, PaperError> {
    let mut tally = BurstTally::default();
    for phase in 0..phases {
        let seed = seed.wrapping_mul(PHASES).wrapping_add(phase);
        tally.add(&one(call, burst, BEFORE + phase * PHASES / phases, seed)?);
    }
    Ok(tally)
}

fn one(call: Call, burst: u64, before: u64, seed: u64) -> Result<BurstTally, PaperError> {
    let channel = Channel::new(CidSpace::Small, 15, call.profiles)?;
    let end = || {
        let rtp = RtpDetection::of_ports(&[PORT]).unwrap_or_default();
        let config = CompressorConfig { seed, rtp, ..CompressorConfig::new(channel) };
        let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4)));
        let config = DecompressorConfig { mode: call.mode, ..DecompressorConfig::new(channel) };
        Endpoint::new(
            compressor,
            Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(4))),
        )
    };
    let (mut near, mut far) = (end(), end());
    let mut random = Random::new(seed);
    let mut voice = Voice::new(call, random.split());
    let mut events = BTreeMap::new();
    let mut tally = BurstTally { bursts: 1, ..BurstTally::default() };
    let (mut rohc, mut back, mut element) = ([0; 512], [0; 512], [0; 64]);
    let (mut outage, mut noted) = (0, 0_u64);
    let (mut has_ir_dyn, mut has_ir) = (false, false);
    let mut time = Duration::from_secs(1);
    let (mut resumed, mut newest) = (None, 0);
    let total = before + burst + BEHIND;
    for number in 0..=total {
        // After the last packet, everything in flight still arrives.
        let next = (number < total).then(|| voice.next());
        let interval = Duration::from_millis(call.interval);
        time += interval * next.as_ref().map_or(1, |(intervals, _)| *intervals as u32);
        let at = time + Duration::from_micros(random.below(JITTER));
        let until = if next.is_some() { at } else { at + 10 * DELAY };
        while let Some(entry) = events.first_entry() {
            let (at, _): (Duration, u64) = *entry.key();
            if at > until {
                break;
            }
            let now = Instant::ZERO + at;
            match entry.remove() {
                CallEvent::Feedback(element) => {
                    let _ = near.receive(now, &element, &mut back);
                }
                CallEvent::Packet { number, rohc, packet } => {
                    let lost = call.counts.then_some((number - newest).saturating_sub(1) as u32);
                    newest = number;
                    let received = far.receive(Arrival { now, lost }, &rohc, &mut back);
                    let is_right = received.is_ok_and(|done| back[..done.len] == *packet);
                    tally.wrong += u64::from(received.is_ok_and(|done| done.len > 0) && !is_right);
                    if number >= before {
                        tally.behind += 1;
                        tally.undelivered += u64::from(!is_right);
                        outage = if is_right { 0 } else { outage + 1 };
                        tally.outage = tally.outage.max(outage);
                    }
                    while let Some(len) = far.poll_feedback(&mut element) {
                        noted += 1;
                        events.insert((at + DELAY, noted), CallEvent::Feedback(element[..len].to_vec()));
                    }
                }
            }
        }
        let Some((_, packet)) = next else { break };
        let sent = near.send(Instant::ZERO + at, &packet, &mut rohc)?;
        let len = sent.len;
        // Profiles udp and ip leave headers in the payload.
        let octets = sent.len.saturating_sub(PAYLOAD) as u64;
        if (before - PHASES..before).contains(&number) {
            tally.steady = (tally.steady.0 + octets, tally.steady.1 + 1);
        }
        if number >= before + burst {
            if at - *resumed.get_or_insert(at) < Duration::from_secs(1) {
                tally.after = (tally.after.0 + octets, tally.after.1 + 1);
            }
            has_ir_dyn |= sent.format == Format::IrDyn;
            has_ir |= sent.format == Format::Ir;
        }
        if !(before..before + burst).contains(&number) {
            noted += 1;
            let arrival = at + DELAY + Duration::from_micros(random.below(2 * JITTER));
            events.insert((arrival, noted), CallEvent::Packet { number, rohc: rohc[..len].to_vec(), packet });
        }
    }
    tally.felt = u64::from(tally.undelivered > 0);
    tally.dynamic = u64::from(has_ir_dyn);
    tally.initial = u64::from(has_ir);
    Ok(tally)
}
