//! One direction of a link: its queue, its transmitter, and random impairments.

use alloc::collections::VecDeque;
use core::time::Duration;

use thinair_wire::time::Instant;

use super::codel::{self, CoDel};
use super::{DropReason, LinkTraffic, Times};
use crate::bit_errors::BitErrors;
use crate::integrity::{CheckOutcome, Integrity};
use crate::jitter::nanoseconds;
use crate::loss::LossProcess;
use crate::model::{Direction, Discipline, LossUnit};
use crate::probability::Probability;
use crate::random::Random;

#[derive(Clone, Debug)]
pub(super) struct Transmitter<'a, P> {
    direction: Direction<'a>,
    queue: Fifo<P>,
    codel: Option<CoDel>,
    held: u32,
    /// End of the latest transmission; `None` before the first.
    sent: Option<Instant>,
    /// Remainder of its last nanosecond, see `Airtime::of`.
    carried: u64,
    /// Time at which the duty cycle allows the next packet.
    allowed: Instant,
    latest_arrival: Instant,
    loss: LossProcess<'a>,
    bit_errors: BitErrors,
    check: Random,
    jitter: Random,
    traffic: LinkTraffic,
}

/// A packet in the queue.
#[derive(Clone, Debug)]
pub(super) struct QueuedPacket<P> {
    offered: Instant,
    len: usize,
    packet: P,
}

impl<P> QueuedPacket<P> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn into_packet(self) -> P {
        self.packet
    }
}

/// Outcome of a packet that was sent.
pub(super) enum TransmissionOutcome {
    Arrives { flipped: u64 },
    Dropped { reason: DropReason, at: Instant },
}

#[derive(Clone, Debug)]
struct Fifo<P> {
    packets: VecDeque<QueuedPacket<P>>,
    octets: u64,
}

impl<P> codel::CoDelQueue for Fifo<P> {
    type Packet = QueuedPacket<P>;

    fn pop(&mut self) -> Option<(Instant, QueuedPacket<P>)> {
        let first = self.packets.pop_front()?;
        self.octets -= first.len as u64;
        Some((first.offered, first))
    }

    fn octets(&self) -> u64 {
        self.octets
    }
}

impl<'a, P: AsMut<[u8]>> Transmitter<'a, P> {
    pub(super) fn new(direction: Direction<'a>, random: &mut Random) -> Self {
        Self {
            direction,
            queue: Fifo { packets: VecDeque::new(), octets: 0 },
            codel: match direction.queue.discipline {
                Discipline::DropTail => None,
                Discipline::CoDel(config) => Some(CoDel::new(config)),
            },
            held: 0,
            sent: None,
            carried: 0,
            allowed: Instant::ZERO,
            latest_arrival: Instant::ZERO,
            loss: LossProcess::new(direction.loss, random.split()),
            bit_errors: BitErrors::new(direction.bit_errors, random.split()),
            check: random.split(),
            jitter: random.split(),
            traffic: LinkTraffic::default(),
        }
    }

    pub(super) fn enqueue(&mut self, now: Instant, len: usize, packet: P) -> Result<(), (DropReason, P)> {
        if let Some(reason) = self.refuses(len as u64) {
            return Err(self.refuse(reason, len, packet));
        }
        self.count_offered(len);
        self.held += 1;
        self.queue.octets += len as u64;
        self.queue.packets.push_back(QueuedPacket { offered: now, len, packet });
        Ok(())
    }

    pub(super) fn refuse(&mut self, reason: DropReason, len: usize, packet: P) -> (DropReason, P) {
        self.count_offered(len);
        self.traffic.dropped.count(reason);
        (reason, packet)
    }

    fn count_offered(&mut self, len: usize) {
        self.traffic.offered += 1;
        self.traffic.offered_octets += len as u64;
    }

    pub(super) fn is_too_long(&self, len: usize) -> bool {
        let mtu = u64::from(self.direction.framing.mtu);
        mtu > 0 && len as u64 > mtu
    }

    fn refuses(&self, len: u64) -> Option<DropReason> {
        let limits = &self.direction.queue;
        if self.held >= limits.held {
            return Some(DropReason::NoRoom);
        }
        if self.queue.packets.len() as u64 >= u64::from(limits.packets.max(1)) {
            return Some(DropReason::QueuePackets);
        }
        (self.queue.octets.saturating_add(len) > limits.octets).then_some(DropReason::QueueOctets)
    }

    /// Returns the time at which the first packet of the queue may be sent.
    pub(super) fn ready(&self) -> Option<Instant> {
        let first = self.queue.packets.front()?;
        Some(first.offered.max(self.sent.unwrap_or_default()).max(self.allowed))
    }

    pub(super) fn dequeue(&mut self, now: Instant, mut drop: impl FnMut(P, u64)) -> Option<QueuedPacket<P>> {
        match &mut self.codel {
            Some(codel) => {
                codel.dequeue(now, &mut self.queue, |waiting| drop(waiting.packet, waiting.len as u64))
            }
            None => codel::CoDelQueue::pop(&mut self.queue).map(|(_, waiting)| waiting),
        }
    }

    /// Rewrites a packet that has left the queue; `None` if it is not sent, and counts as never offered.
    pub(super) fn encode(
        &mut self,
        waiting: QueuedPacket<P>,
        encode: impl FnOnce(P) -> Option<P>,
    ) -> Option<QueuedPacket<P>> {
        let QueuedPacket { offered, len, packet } = waiting;
        let Some(mut packet) = encode(packet) else {
            self.held -= 1;
            self.traffic.offered -= 1;
            self.traffic.offered_octets -= len as u64;
            return None;
        };
        let len = packet.as_mut().len();
        Some(QueuedPacket { offered, len, packet })
    }

    /// Sends a packet, not before `earliest`.
    pub(super) fn send(
        &mut self,
        earliest: Instant,
        waiting: QueuedPacket<P>,
    ) -> (Times, TransmissionOutcome, P) {
        let QueuedPacket { offered, len, mut packet } = waiting;
        let start = match (self.direction.idle_wake, self.sent) {
            (Some(idle), None) => earliest + idle.wake,
            (Some(idle), Some(sent)) if earliest > sent + idle.after => earliest + idle.wake,
            (Some(_) | None, _) => earliest,
        };
        if self.sent.is_none_or(|sent| start > sent) {
            // The air was free: there is no remainder.
            self.carried = 0;
        }
        self.traffic.sent_octets += len as u64;
        let on_air = self.on_air(len);
        let sent = start + Duration::from_nanos(on_air);
        self.sent = Some(sent);
        if let Some(share) = self.direction.duty_cycle {
            self.allowed = sent + Duration::from_nanos(share.pause(on_air));
        }
        let jitter = self.direction.jitter.draw(&mut self.jitter);
        let mut arrival = sent + self.direction.delay + Duration::from_nanos(jitter);
        if self.direction.keeps_order {
            arrival = arrival.max(self.latest_arrival);
        }
        let fate = if self.draw_loss(len) {
            TransmissionOutcome::Dropped { reason: DropReason::Loss, at: sent }
        } else {
            match self.damage(packet.as_mut()) {
                Some(flipped) => TransmissionOutcome::Arrives { flipped },
                None => TransmissionOutcome::Dropped { reason: DropReason::Integrity, at: arrival },
            }
        };
        if let TransmissionOutcome::Arrives { .. } = fate {
            self.latest_arrival = arrival;
        }
        (Times { offered, start, sent, arrival }, fate, packet)
    }

    /// Counts the frames of a packet of `len` octets, and returns its airtime in nanoseconds.
    fn on_air(&mut self, len: usize) -> u64 {
        let mut on_air = 0_u64;
        let per_frame = nanoseconds(self.direction.per_frame);
        for frame in self.direction.framing.frames(len) {
            let octets = frame.octets() as u64;
            let time = self.direction.airtime.of(octets, &mut self.carried);
            on_air = on_air.saturating_add(time).saturating_add(per_frame);
            self.traffic.frames += 1;
            self.traffic.octets += octets;
        }
        self.traffic.busy = self.traffic.busy.saturating_add(on_air);
        on_air
    }

    /// True if any part of a packet is lost. All parts are drawn, so that later packets do not depend on the result.
    fn draw_loss(&mut self, len: usize) -> bool {
        let loss = &mut self.loss;
        match self.direction.loss_unit {
            LossUnit::Packet => loss.takes_next(len),
            LossUnit::Frame => {
                let frames = self.direction.framing.frames(len);
                frames.fold(false, |draw_loss, frame| loss.takes_next(frame.octets()) | draw_loss)
            }
            LossUnit::Fragment(octets) => {
                let octets = usize::from(octets).max(1);
                let fragments = (0..len.max(1)).step_by(octets).map(|at| octets.min(len - at));
                fragments.fold(false, |draw_loss, fragment| loss.takes_next(fragment) | draw_loss)
            }
        }
    }

    /// Returns the number of damaged bits of the packet; `None` if a check detected damage.
    fn damage(&mut self, mut octets: &mut [u8]) -> Option<u64> {
        let mut flipped = 0;
        let mut is_found = false;
        for frame in self.direction.framing.frames(octets.len()) {
            let (payload, rest) = octets.split_at_mut(frame.payload);
            octets = rest;
            is_found |= self.draw_overhead_damage(frame.overhead);
            match self.direction.integrity.carry(payload, &mut self.bit_errors, &mut self.check) {
                CheckOutcome::Intact => {}
                CheckOutcome::Damaged { flipped: bits } => flipped += bits,
                CheckOutcome::Discarded => is_found = true,
            }
        }
        (!is_found).then_some(flipped)
    }

    fn draw_overhead_damage(&mut self, mut overhead: usize) -> bool {
        let mut flipped = 0;
        while overhead > 0 {
            let piece = overhead.min(16);
            flipped += self.bit_errors.damage(&mut [0; 16][..piece]);
            overhead -= piece;
        }
        match self.direction.integrity {
            Integrity::None => false,
            Integrity::Modelled { width } => {
                flipped > 0 && !self.check.happens(Probability::power_of_half(width))
            }
            Integrity::Crc16 | Integrity::Crc32 => flipped > 0,
        }
    }

    pub(super) fn delivered(&mut self, len: u64, flipped: u64) {
        self.held -= 1;
        self.traffic.delivered += 1;
        self.traffic.delivered_octets += len;
        self.traffic.damaged += u64::from(flipped > 0);
    }

    pub(super) fn dropped(&mut self, reason: DropReason) {
        self.held -= 1;
        self.traffic.dropped.count(reason);
    }

    pub(super) fn traffic(&self) -> LinkTraffic {
        self.traffic
    }

    pub(super) fn waiting(&self) -> (usize, u64) {
        (self.queue.packets.len(), self.queue.octets)
    }

    pub(super) fn held(&self) -> u32 {
        self.held
    }
}
