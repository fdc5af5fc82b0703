//! A flow as `iperf3 -u` sends it: packets of one length at a constant rate, in groups by the tick of a timer.

use core::ops::Range;
use core::time::Duration;

use thinair_link::Random;
use thinair_wire::time::Instant;

use crate::traffic::{TrafficVersion, write_headers};

/// Period of the sender's timer. `iperf3` sends due packets whenever its pacing timer of 1 ms expires.
const TICK: Duration = Duration::from_millis(1);
/// One of this many ticks is followed by a pause, as on a machine with other load.
const PAUSES: u64 = 20;
/// Longest pause.
const PAUSE: Duration = Duration::from_millis(10);

/// Octets of IPv4 and UDP headers.
pub(super) const HEADERS: usize = 28;
/// Offset of the packet's number, after its send time in the payload.
const NUMBER: usize = HEADERS + 8;
/// Port of the receiver.
const IPERF_PORT: u16 = 5_201;
/// IPv4 addresses of sender and receiver, in the last four octets.
const SENDER: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 9, 0, 1];
const RECEIVER: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 9, 0, 2];

/// Flow of IPv4 with a counting IP-ID, and UDP with a checksum.
#[derive(Clone, Debug)]
pub(super) struct IperfFlow {
    ip_id: u16,
    source_port: u16,
    /// Octets of UDP payload, at least 12.
    payload: usize,
    /// Payload after time and number, equal in all packets.
    filling: Vec<u8>,
}

impl IperfFlow {
    pub(super) fn new(payload: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let filling = core::iter::repeat_with(|| random.next_u64() as u8).take(payload.saturating_sub(12));
        let filling = filling.collect();
        Self {
            ip_id: random.next_u64() as u16,
            source_port: 0x8000 | random.next_u64() as u16,
            payload,
            filling,
        }
    }

    /// Packet of that number, from 0, sent at that time.
    pub(super) fn packet(&self, number: u32, now: Instant) -> Vec<u8> {
        let mut packet = vec![0; HEADERS];
        packet.extend(now.as_nanos().to_be_bytes());
        packet.extend(number.to_be_bytes());
        packet.extend(&self.filling);
        let ends = [(&SENDER, self.source_port), (&RECEIVER, IPERF_PORT)];
        write_headers(&mut packet, TrafficVersion::V4, self.ip_id.wrapping_add(number as u16), ends);
        packet
    }

    /// True if a delivered packet is, octet by octet, one that was sent.
    fn has_sent(&self, packet: &[u8]) -> bool {
        let field = packet.get(HEADERS..NUMBER).zip(packet.get(NUMBER..NUMBER + 4));
        let Some((sent, number)) = field else { return false };
        let sent = Instant::from_nanos(sent.try_into().map_or(0, u64::from_be_bytes));
        let number = number.try_into().map_or(0, u32::from_be_bytes);
        self.packet(number, sent) == packet
    }
}

/// Times after the start at which the sender sends due packets, until `span` is over.
pub(super) fn ticks(seed: u64, span: Duration) -> Vec<Duration> {
    let mut random = Random::new(seed);
    let pause = |random: &mut Random| match random.below(PAUSES) {
        0 => Duration::from_nanos(random.below(PAUSE.as_nanos() as u64)),
        _ => Duration::ZERO,
    };
    let ticks = core::iter::successors(Some(Duration::ZERO), |at| {
        let at = *at + pause(&mut random);
        Some(TICK * (at.as_nanos() / TICK.as_nanos() + 1) as u32)
    });
    ticks.take_while(|at| *at < span).collect()
}

/// Counts the output of the other end.
#[derive(Debug)]
pub(super) struct Meter {
    flow: IperfFlow,
    window: Range<Instant>,
    /// Octets of UDP payload delivered within the window.
    octets: u64,
    /// Packets delivered correctly in the whole run.
    delivered: u64,
    /// Packets delivered incorrectly.
    wrong: u64,
    /// Time of the last delivery within the window.
    last: Instant,
    outage: u64,
}

impl Meter {
    pub(super) fn new(flow: &IperfFlow, window: Range<Instant>) -> Self {
        let last = window.start;
        Self { flow: flow.clone(), window, octets: 0, delivered: 0, wrong: 0, last, outage: 0 }
    }

    pub(super) fn deliver(&mut self, now: Instant, packet: &[u8]) {
        if !self.flow.has_sent(packet) {
            self.wrong += 1;
            if std::env::var("DBG").is_ok() {
                eprintln!(
                    "{:?} WRONG {} {:02x?}",
                    std::thread::current().id(),
                    now.as_nanos() / 1000,
                    &packet[..40]
                );
            }
            return;
        }
        self.delivered += 1;
        if self.window.contains(&now) {
            self.octets += self.flow.payload as u64;
            self.outage = self.outage.max(now.nanos_since(self.last));
            self.last = now;
        }
    }

    /// Figures of the run. `undelivered`: packets that arrived and were not decompressed. `carried`: octets that the
    /// link delivered.
    pub(super) fn sample(self, undelivered: u64, carried: u64) -> GoodputSample {
        let seconds = self.window.end.since(self.window.start).as_secs_f64();
        GoodputSample {
            goodput: 8e-6 * self.octets as f64 / seconds,
            delivered: self.delivered as f64,
            wrong: self.wrong as f64,
            undelivered: undelivered as f64,
            outage: 1e-6 * self.outage.max(self.window.end.nanos_since(self.last)) as f64,
            octets: carried as f64 / (self.delivered.max(1)) as f64,
        }
    }
}

/// Figures of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct GoodputSample {
    /// Mbit/s of UDP payload in correct packets.
    pub(super) goodput: f64,
    /// Packets delivered correctly.
    pub(super) delivered: f64,
    /// Packets delivered incorrectly.
    pub(super) wrong: f64,
    /// Packets that arrived and were not decompressed.
    pub(super) undelivered: f64,
    /// Longest time without a correct packet, in milliseconds.
    pub(super) outage: f64,
    /// Octets of the link per correct packet.
    pub(super) octets: f64,
}
