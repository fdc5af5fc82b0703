//! One site sends a flow of packets to another one. Every packet that arrives is compared with the sent one.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use thinair_rohc::{CompressorConfig, Mode, Refresh};
use thinair_ule::Pid;
use thinair_wire::time::Instant;

use super::listener::Listener;
use super::sender::StreamSender;
use super::{BroadcastError, Delays, SECOND, StreamCarrier};
use crate::queue::EventQueue;
use thinair_emulator::{ProtocolStack, StackFlow};

/// PID of the stream.
const PID: u16 = 0x35;

/// Parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneWayPlan {
    /// The carrier.
    pub carrier: StreamCarrier,
    /// Headers of the packets.
    pub stack: ProtocolStack,
    /// Payload of a packet, in octets.
    pub payload: usize,
    /// Compression of headers; `None`: not compressed.
    pub compression: Option<HeaderCompression>,
    /// Offered load.
    pub offered: Offered,
    /// Queue before the compressor in packets. It drops packets that exceed it.
    pub queue: usize,
    /// Time before the window.
    pub warm_up: Duration,
    /// Time in which events are counted.
    pub window: Duration,
    /// Seed of the flow.
    pub seed: u64,
}

/// Compression of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderCompression {
    /// Refreshes in U-mode.
    pub refresh: Refresh,
    /// Mode of the decompressor. Feedback returns on a separate path, with the delay of the carrier.
    pub mode: Mode,
}

/// Times of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// There is always another packet.
    Saturating,
    /// This many bits of payload per second, evenly spaced.
    Rate(u64),
}

/// Results of a run, in its window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneWayOutcome {
    /// Length of the window, in nanoseconds.
    window: u64,
    /// Payload of a packet, in bits.
    bits: u64,
    /// Packets offered.
    pub offered: u64,
    /// Packets dropped by the queue, which `offered` includes.
    pub dropped: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Packets that were not restored exactly, or not delivered although their TS packets arrived. Counted from the
    /// start of the run.
    pub wrong: u64,
    /// Delays of the delivered packets.
    pub delays: Delays,
    /// TS packets that were not null.
    pub ts_packets: u64,
    /// All TS packets.
    pub slots: u64,
    /// Number of ROHC packets of the whole run, by whether they were IR and the octets of their headers.
    pub headers: BTreeMap<(bool, usize), u64>,
}

impl OneWayOutcome {
    /// Delivered payload, in bit/s.
    pub fn throughput(&self) -> f64 {
        (self.delivered * self.bits) as f64 * SECOND as f64 / self.window as f64
    }

    /// Share of the offered packets that the queue dropped; 0 if none was offered.
    pub fn loss(&self) -> f64 {
        if self.offered == 0 { 0.0 } else { self.dropped as f64 / self.offered as f64 }
    }

    /// TS packets per packet; `None` if none was delivered.
    pub fn ts_packets_each(&self) -> Option<f64> {
        (self.delivered > 0).then(|| self.ts_packets as f64 / self.delivered as f64)
    }
}

#[derive(Clone, Debug)]
enum OneWayEvent {
    /// Arrival of the next packet.
    Arrival,
    /// Begin of the next TS packet.
    Slot,
    /// Possible end of the Packing Threshold.
    Poll,
    Feedback(Vec<u8>),
}

/// Runs a plan.
///
/// # Errors
///
/// The payload does not fit into a packet, or a packet is rejected.
pub fn run(plan: &OneWayPlan) -> Result<OneWayOutcome, BroadcastError> {
    let flow = StackFlow::new(plan.stack, plan.payload, 1, plan.seed)
        .ok_or(BroadcastError::Unfit("the payload does not fit into a packet"))?;
    let pid = Pid::new(PID).ok_or(BroadcastError::Unfit("no PID"))?;
    let rohc: Option<(CompressorConfig, Mode)> = plan
        .compression
        .map(|HeaderCompression { refresh, mode }| {
            plan.stack.compressor(1, refresh).map(|config| (config, mode))
        })
        .transpose()?;
    let mut buffer = vec![0; thinair_ule::sndu::LONGEST];
    let begin = Instant::ZERO + plan.warm_up;
    let end = begin + plan.window;
    let mut run = OneWayRun {
        plan,
        flow,
        sender: StreamSender::new(pid, &plan.carrier, rohc),
        waiting: VecDeque::new(),
        next: 0,
        under_way: VecDeque::new(),
        polled_at: None,
        begin,
        outcome: OneWayOutcome {
            window: end.nanos_since(begin),
            bits: plan.payload as u64 * 8,
            ..OneWayOutcome::default()
        },
        packet: Vec::new(),
    };
    let mut listener = Listener::new(pid, &mut buffer, rohc);
    let mut queue = EventQueue::new();
    if let Offered::Rate(_) = plan.offered {
        queue.schedule(Instant::ZERO, OneWayEvent::Arrival);
    }
    queue.schedule(Instant::ZERO, OneWayEvent::Slot);
    let mut slot = 0;
    while let Some((now, event)) = queue.next_before(end) {
        match event {
            OneWayEvent::Arrival => {
                run.arrive(now);
                if let Some(next) = run.arrival(run.next) {
                    queue.schedule(next, OneWayEvent::Arrival);
                }
                run.feed(now)?;
            }
            OneWayEvent::Slot => {
                run.feed(now)?;
                run.slot(now, slot, &mut listener);
                while let Some(feedback) = listener.poll_feedback() {
                    // Feedback leaves when the TS packet arrives, and takes as long.
                    let back = plan.carrier.arrival(slot) + plan.carrier.delay;
                    queue.schedule(back, OneWayEvent::Feedback(feedback));
                }
                slot += 1;
                queue.schedule(plan.carrier.slot(slot), OneWayEvent::Slot);
                run.feed(now)?;
            }
            OneWayEvent::Poll => run.sender.poll(now, run.another_waits()),
            OneWayEvent::Feedback(octets) => run.sender.feedback(now, &octets),
        }
        run.schedule_poll(&mut queue);
    }
    let mut outcome = run.outcome;
    outcome.headers = run.sender.sent.headers;
    outcome.delays.sort();
    Ok(outcome)
}

struct OneWayRun<'p> {
    plan: &'p OneWayPlan,
    flow: StackFlow,
    sender: StreamSender,
    /// Numbers and arrival times of packets before the compressor.
    waiting: VecDeque<(u32, Instant)>,
    /// Number of the next packet.
    next: u32,
    /// Packets that were compressed and not delivered.
    under_way: VecDeque<(u32, Instant)>,
    /// Latest time for which a poll was scheduled.
    polled_at: Option<Instant>,
    begin: Instant,
    outcome: OneWayOutcome,
    packet: Vec<u8>,
}

impl OneWayRun<'_> {
    /// Arrival time of packet `number`; `None` if there is always one.
    fn arrival(&self, number: u32) -> Option<Instant> {
        let Offered::Rate(rate) = self.plan.offered else { return None };
        let nanos = u128::from(number) * u128::from(self.outcome.bits) * SECOND / u128::from(rate.max(1));
        u64::try_from(nanos).ok().map(Instant::from_nanos)
    }

    fn arrive(&mut self, now: Instant) {
        let number = self.next;
        self.next += 1;
        let counts = now >= self.begin;
        self.outcome.offered += u64::from(counts);
        if self.waiting.len() < self.plan.queue {
            self.waiting.push_back((number, now));
        } else {
            self.outcome.dropped += u64::from(counts);
        }
    }

    /// Passes packets to the sender as long as it sends them at once.
    fn feed(&mut self, now: Instant) -> Result<(), BroadcastError> {
        while self.sender.is_ready() {
            let mut taken = 0;
            while taken < self.sender.batch() {
                let Some((number, came)) = self.take(now) else { break };
                self.flow.packet(number, &mut self.packet);
                self.sender.take(now, &self.packet)?;
                self.under_way.push_back((number, came));
                taken += 1;
            }
            if taken == 0 {
                break;
            }
            self.sender.go(now)?;
        }
        Ok(())
    }

    fn another_waits(&self) -> bool {
        self.plan.offered == Offered::Saturating || !self.waiting.is_empty()
    }

    fn take(&mut self, now: Instant) -> Option<(u32, Instant)> {
        if self.plan.offered == Offered::Saturating {
            self.outcome.offered += u64::from(now >= self.begin);
            self.next += 1;
            return Some((self.next - 1, now));
        }
        self.waiting.pop_front()
    }

    fn slot(&mut self, now: Instant, slot: u64, listener: &mut Listener<'_>) {
        let counts = now >= self.begin;
        self.outcome.slots += u64::from(counts);
        let Some(packet) = self.sender.slot() else { return };
        self.outcome.ts_packets += u64::from(counts);
        let there = self.plan.carrier.arrival(slot);
        let Self { flow, under_way, outcome, packet: expected, .. } = self;
        listener.receive(there, &packet, &mut |delivered| {
            let Some((number, came)) = under_way.pop_front() else {
                outcome.wrong += 1;
                return;
            };
            flow.packet(number, expected);
            if delivered != Some(expected) {
                outcome.wrong += 1;
                return;
            }
            if counts {
                outcome.delivered += 1;
                outcome.delays.note(came, there);
            }
        });
    }

    fn schedule_poll(&mut self, queue: &mut EventQueue<OneWayEvent>) {
        let at = self.sender.poll_at();
        if at != self.polled_at
            && let Some(at) = at
        {
            queue.schedule(at, OneWayEvent::Poll);
        }
        self.polled_at = at;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use thinair_ule::Since;
    use thinair_ule::capacity::{self, Encapsulation, HeaderRun};

    use super::*;
    use crate::broadcast::Filling;

    const PAPER: HeaderCompression = HeaderCompression {
        refresh: Refresh::Cycle { ir: 3, so: 50, direct: true },
        mode: Mode::Unidirectional,
    };
    const CARRIER: StreamCarrier = StreamCarrier {
        bitrate: 3_507_000,
        delay: Duration::from_millis(250),
        filling: Filling::Push { wait: Duration::from_millis(3), since: Since::Last },
        concat: 1,
    };
    const PLAN: OneWayPlan = OneWayPlan {
        carrier: CARRIER,
        stack: ProtocolStack::IPV6_UDP,
        payload: 40,
        compression: Some(PAPER),
        offered: Offered::Saturating,
        queue: 10,
        warm_up: Duration::from_millis(100),
        window: Duration::from_secs(1),
        seed: 1,
    };

    fn exact(encapsulation: Encapsulation, filling: capacity::Filling, headers: &[HeaderRun]) -> f64 {
        let flow = capacity::PacketFlow { payload: 40, headers };
        capacity::cost(encapsulation, filling, flow).throughput(CARRIER.bitrate)
    }

    #[track_caller]
    fn close(ours: f64, expected: f64, within: f64) {
        assert!((ours / expected - 1.0).abs() < within, "{ours} is not {expected}");
    }

    #[test]
    fn what_is_sent_is_what_the_model_counts() {
        let headers = [HeaderRun { packets: 3, octets: 50 }, HeaderRun { packets: 50, octets: 3 }];
        let expected = exact(Encapsulation::ULE, capacity::Filling::Packing, &headers);
        for filling in [CARRIER.filling, Filling::Pull] {
            let outcome = run(&OneWayPlan { carrier: StreamCarrier { filling, ..CARRIER }, ..PLAN }).unwrap();
            assert_eq!((outcome.wrong, outcome.dropped), (0, 0));
            close(outcome.throughput(), expected, 0.003);
            assert!(outcome.headers.keys().eq(&[(false, 3), (true, 50)]), "{:?}", outcome.headers);
        }
        let padding =
            StreamCarrier { filling: Filling::Push { wait: Duration::ZERO, since: Since::Last }, ..CARRIER };
        let outcome = run(&OneWayPlan { carrier: padding, ..PLAN }).unwrap();
        close(outcome.throughput(), 746_170.0, 0.001);
    }

    #[test]
    fn o_mode_and_pdu_concat_take_what_compression_leaves() {
        let settled = [HeaderRun { packets: 1, octets: 3 }];
        let optimistic = HeaderCompression { refresh: Refresh::default(), mode: Mode::Optimistic };
        for filling in [CARRIER.filling, Filling::Pull] {
            let plan = OneWayPlan {
                carrier: StreamCarrier { filling, concat: 8, ..CARRIER },
                compression: Some(optimistic),
                warm_up: Duration::from_secs(2),
                ..PLAN
            };
            let outcome = run(&plan).unwrap();
            assert_eq!(outcome.wrong, 0);
            let expected = exact(Encapsulation::ULE.concat(8), capacity::Filling::Packing, &settled);
            close(outcome.throughput(), expected, 0.003);
        }
    }

    #[test]
    fn below_capacity_nothing_is_lost_and_above_it_the_rest() {
        let at = |rate| run(&OneWayPlan { offered: Offered::Rate(rate), compression: None, ..PLAN }).unwrap();
        let below = at(1_400_000);
        assert_eq!((below.dropped, below.wrong), (0, 0));
        close(below.throughput(), 1_400_000.0, 0.002);
        let above = at(2_000_000);
        close(above.throughput(), 1_422_390.0, 0.003);
        close(above.loss(), 1.0 - 1_422_390.0 / 2_000_000.0, 0.02);
    }

    #[test]
    fn a_threshold_packs_what_comes_fast_enough_and_delays_it() {
        let at = |since, ms, packets: u64| {
            let filling = Filling::Push { wait: Duration::from_millis(ms), since };
            run(&OneWayPlan {
                carrier: StreamCarrier { filling, ..CARRIER },
                offered: Offered::Rate(packets * 320),
                window: Duration::from_secs(4),
                ..PLAN
            })
            .unwrap()
        };
        let (padded, packed) = (at(Since::Last, 3, 200), at(Since::Last, 10, 200));
        close(padded.ts_packets_each().unwrap(), 1.0, 0.01);
        // An SNDU of 53.7 octets on average, including Payload Pointers.
        close(packed.ts_packets_each().unwrap(), 0.2932, 0.005);
        let [padded, packed] = [padded, packed].map(|outcome| outcome.delays.mean_ms().unwrap() - 250.0);
        // At least the threshold and the TS packet itself; then the time to fill a TS packet.
        assert!((3.4..4.0).contains(&padded), "{padded}");
        assert!((8.0..14.0).contains(&packed), "{packed}");

        // Counted from the first packet, the threshold bounds the delay: a packet waits for one other, which arrives 5
        // ms later. Of two IR packets the second one continues in the next TS packet.
        let bounded = at(Since::First, 6, 200);
        close(bounded.ts_packets_each().unwrap(), 0.5, 0.03);
        assert!(bounded.delays.percentile_ms(100).unwrap() < 250.0 + 6.0 + 2.0 * 0.4289);
    }

    #[test]
    fn a_pulled_packet_waits_for_its_slot_alone() {
        let plan = OneWayPlan {
            carrier: StreamCarrier { filling: Filling::Pull, ..CARRIER },
            offered: Offered::Rate(200 * 320),
            ..PLAN
        };
        let outcome = run(&plan).unwrap();
        assert!(outcome.delays.percentile_ms(100).unwrap() < 250.0 + 2.0 * 0.4289);
    }

    #[test]
    fn a_plan_determines_its_outcome() {
        assert_eq!(run(&PLAN).unwrap(), run(&PLAN).unwrap());
        assert!(run(&OneWayPlan { payload: 70_000, ..PLAN }).is_err());
    }
}
