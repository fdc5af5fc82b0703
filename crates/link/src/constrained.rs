//! A constrained link in time: two directions with rate, delay, queue and loss. The caller supplies the time.
//!
//! The outcome of a packet is not known when it is offered: CoDel drops where packets leave the queue, and on a shared
//! medium it depends on earlier transmissions. So the link is polled for events. Times follow from those at which packets
//! were offered and not from those of polling: late polling delays only the report.

mod codel;
mod sender;

use alloc::collections::BinaryHeap;
use core::cmp::Ordering;
use core::fmt;
use core::time::Duration;

use thinair_wire::time::Instant;

use crate::model::{Duplex, LinkModel};
use crate::random::Random;

use sender::{TransmissionOutcome, Transmitter};

/// An end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// First end; the device of links that have one.
    A,
    /// Second end; the network.
    B,
}

impl Side {
    /// Both ends.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// Returns the other end.
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// Times of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Time at which it was given to the link.
    pub offered: Instant,
    /// Start of its first bit.
    pub start: Instant,
    /// End of its last bit.
    pub sent: Instant,
    /// Arrival at the other end.
    pub arrival: Instant,
}

/// Event of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent<P> {
    /// Arrival.
    Delivered {
        /// Receiving side.
        to: Side,
        /// The packet, damaged in place if the link damages it.
        packet: P,
        /// Times of the packet.
        times: Times,
        /// Number of flipped bits.
        flipped: u64,
    },
    /// Drop.
    Dropped {
        /// Sending side.
        from: Side,
        /// The packet; unspecified if it was damaged.
        packet: P,
        /// Reason.
        reason: DropReason,
        /// Time: for CoDel, and for a packet that was encoded to more than the MTU, when it left the queue; for loss when
        /// its last bit was sent; for damage when it would have arrived.
        at: Instant,
    },
}

/// Reason why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// It exceeded the MTU.
    TooLong,
    /// The queue was full, counted in packets.
    QueuePackets,
    /// The queue was full, counted in octets.
    QueueOctets,
    /// The link holds its maximum of packets, including those that were not polled.
    NoRoom,
    /// CoDel dropped it after too long a wait.
    CoDel,
    /// The link lost it, or a fragment of it.
    Loss,
    /// The check of the link layer detected damage in it, or in a fragment of it.
    Integrity,
}

impl DropReason {
    /// All reasons, those of [`ConstrainedLink::offer`] first.
    pub const ALL: [Self; 7] = [
        Self::TooLong,
        Self::QueuePackets,
        Self::QueueOctets,
        Self::NoRoom,
        Self::CoDel,
        Self::Loss,
        Self::Integrity,
    ];

    /// Returns its name in logs: lower case, a hyphen between words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooLong => "too-long",
            Self::QueuePackets => "queue-packets",
            Self::QueueOctets => "queue-octets",
            Self::NoRoom => "no-room",
            Self::CoDel => "codel",
            Self::Loss => "loss",
            Self::Integrity => "integrity",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Totals of a direction since the start.
///
/// **Offered is delivered plus dropped plus [held](ConstrainedLink::held).** A packet is counted as delivered or
/// dropped when its event is polled, or when it is rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTraffic {
    /// Packets offered.
    pub offered: u64,
    /// Octets of them, before encoding.
    pub offered_octets: u64,
    /// Octets of packets whose transmission has begun, after encoding.
    pub sent_octets: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Octets of them.
    pub delivered_octets: u64,
    /// Packets that arrived damaged.
    pub damaged: u64,
    /// Packets that did not arrive.
    pub dropped: Dropped,
    /// Frames sent, those of lost packets included.
    pub frames: u64,
    /// Octets on the air, with all that the link layer adds.
    pub octets: u64,
    /// Time on the air, in nanoseconds.
    pub busy: u64,
}

/// Packets that did not arrive, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped([u64; DropReason::ALL.len()]);

impl Dropped {
    /// Returns the number for a reason.
    pub const fn by(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Returns the number for all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }
}

/// A link of two directions that holds packets of type `P` while they are under way.
///
/// **Offer packets and poll events in the order of their times.** Whenever [`Self::poll_at`] is reached, poll until there
/// are no more; a `now` that is earlier than a previous one is replaced by that one. Equal models, seeds, times and
/// lengths of packets give equal events. Each direction has random sequences of its own: events in one direction change
/// no random decision in the other.
///
/// ```
/// use std::time::Duration;
///
/// use thinair_link::{Airtime, ConstrainedLink, Direction, Duplex, LinkEvent, LinkModel, Rate, Side};
/// use thinair_wire::time::Instant;
///
/// let direction = Direction {
///     airtime: Rate::from_bps(20_000).map(Airtime::Rate).ok_or("no rate")?,
///     delay: Duration::from_millis(20),
///     ..Direction::default()
/// };
/// let mut link = ConstrainedLink::<Vec<u8>>::new(&LinkModel::symmetric(direction, Duplex::Full), 1);
/// link.offer(Instant::ZERO, Side::A, vec![0; 44]).map_err(|(reason, _)| reason.name())?;
/// let at = link.poll_at().ok_or("nothing is under way")?;
/// assert_eq!(at, Instant::from_nanos(37_600_000));
/// assert!(matches!(link.poll(at), Some(LinkEvent::Delivered { to: Side::B, flipped: 0, .. })));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConstrainedLink<'a, P> {
    senders: [Transmitter<'a, P>; 2],
    /// Turnaround, if the directions share a medium.
    half_duplex: Option<Duration>,
    /// Time at which a shared medium becomes free.
    free_at: Instant,
    last: Side,
    now: Instant,
    outcomes: BinaryHeap<PendingEvent<P>>,
    /// Number of outcomes so far, which orders outcomes of equal time.
    decided: u64,
}

/// A future event.
#[derive(Clone, Debug)]
struct PendingEvent<P> {
    at: Instant,
    number: u64,
    event: LinkEvent<P>,
    len: u64,
}

impl<'a, P: AsMut<[u8]>> ConstrainedLink<'a, P> {
    /// Creates a link before its first packet.
    pub fn new(model: &LinkModel<'a>, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let senders = [model.a_to_b, model.b_to_a].map(|direction| Transmitter::new(direction, &mut random));
        Self {
            senders,
            half_duplex: match model.duplex {
                Duplex::Full => None,
                Duplex::Half { turnaround } => Some(turnaround),
            },
            free_at: Instant::ZERO,
            last: Side::B,
            now: Instant::ZERO,
            outcomes: BinaryHeap::new(),
            decided: 0,
        }
    }

    /// Sends a packet from `from`.
    ///
    /// # Errors
    ///
    /// The packet was dropped immediately, for the returned reason, and is returned unchanged. It is counted.
    pub fn offer(&mut self, now: Instant, from: Side, mut packet: P) -> Result<(), (DropReason, P)> {
        let (sender, len) = (&mut self.senders[from as usize], packet.as_mut().len());
        if sender.is_too_long(len) {
            return Err(sender.refuse(DropReason::TooLong, len, packet));
        }
        self.offer_with(now, from, packet, as_it_is)
    }

    /// Sends a packet from `from` that `encode` rewrites when it leaves the queue, before its first bit is sent: a packet
    /// that the queue drops is never encoded. The queue counts octets before encoding; airtime, frames, MTU and damage
    /// are those of the encoded packet.
    ///
    /// `encode` gets the time, the sender and the packet, in the order of transmission. If it returns `None`, the packet
    /// is not sent and counts as never offered. **Pass the same closure to [`poll_with`](Self::poll_with).**
    ///
    /// # Errors
    ///
    /// The packet was dropped immediately, as in [`offer`](Self::offer).
    pub fn offer_with(
        &mut self,
        now: Instant,
        from: Side,
        mut packet: P,
        mut encode: impl FnMut(Instant, Side, P) -> Option<P>,
    ) -> Result<(), (DropReason, P)> {
        self.advance(now, &mut encode);
        let len = packet.as_mut().len();
        self.senders[from as usize].enqueue(self.now, len, packet)?;
        self.advance(now, &mut encode);
        Ok(())
    }

    /// Returns the time of the next poll; `None` if nothing is under way. There is no event before; at that time there
    /// may be one.
    pub fn poll_at(&self) -> Option<Instant> {
        let outcome = self.outcomes.peek().map(|outcome| outcome.at);
        let start = self.next_start().map(|(at, _)| at);
        [outcome, start].into_iter().flatten().min()
    }

    /// Returns the next event by `now`, in the order of time; `None` if there is none.
    pub fn poll(&mut self, now: Instant) -> Option<LinkEvent<P>> {
        self.poll_with(now, as_it_is)
    }

    /// Returns the next event, where packets are encoded as they leave the queue: see [`offer_with`](Self::offer_with).
    pub fn poll_with(
        &mut self,
        now: Instant,
        mut encode: impl FnMut(Instant, Side, P) -> Option<P>,
    ) -> Option<LinkEvent<P>> {
        self.advance(now, &mut encode);
        if self.outcomes.peek()?.at > self.now {
            return None;
        }
        let PendingEvent { event, len, .. } = self.outcomes.pop()?;
        match &event {
            LinkEvent::Delivered { to, flipped, .. } => {
                self.senders[to.other() as usize].delivered(len, *flipped);
            }
            LinkEvent::Dropped { from, reason, .. } => self.senders[*from as usize].dropped(*reason),
        }
        Some(event)
    }

    /// Returns the totals of the direction from `from`.
    pub fn traffic(&self, from: Side) -> LinkTraffic {
        self.senders[from as usize].traffic()
    }

    /// Returns the packets and octets from `from` that wait for transmission.
    pub fn waiting(&self, from: Side) -> (usize, u64) {
        self.senders[from as usize].waiting()
    }

    /// Returns the packets from `from` that wait, are under way, or have arrived and were not polled.
    pub fn held(&self, from: Side) -> u32 {
        self.senders[from as usize].held()
    }

    /// Starts all transmissions that begin by `now`.
    fn advance(&mut self, now: Instant, encode: &mut impl FnMut(Instant, Side, P) -> Option<P>) {
        self.now = self.now.max(now);
        while let Some((at, from)) = self.next_start() {
            if at > self.now {
                break;
            }
            self.start(at, from, encode);
        }
    }

    /// Returns the time and side of the next transmission.
    fn next_start(&self) -> Option<(Instant, Side)> {
        let ready = |side: Side| {
            let at = self.senders[side as usize].ready()?;
            Some((if self.half_duplex.is_some() { at.max(self.free_at) } else { at }, side))
        };
        match (ready(self.last), ready(self.last.other())) {
            // At equal times the side that did not send last is next.
            (Some(last), Some(other)) => Some(if last.0 < other.0 { last } else { other }),
            (last, other) => last.or(other),
        }
    }

    fn start(&mut self, at: Instant, from: Side, encode: &mut impl FnMut(Instant, Side, P) -> Option<P>) {
        // The medium is free for the turnaround before the other side begins.
        let earliest = match self.half_duplex {
            Some(turnaround) if from != self.last && self.free_at > Instant::ZERO => {
                at.max(self.free_at + turnaround)
            }
            Some(_) | None => at,
        };
        let (outcomes, decided) = (&mut self.outcomes, &mut self.decided);
        let mut decide = |at, event, len| {
            outcomes.push(PendingEvent { at, number: *decided, event, len });
            *decided += 1;
        };
        let sender = &mut self.senders[from as usize];
        let Some(waiting) = sender.dequeue(at, |packet, len| {
            decide(at, LinkEvent::Dropped { from, packet, reason: DropReason::CoDel, at }, len);
        }) else {
            return;
        };
        let Some(waiting) = sender.encode(waiting, |packet| encode(at, from, packet)) else { return };
        let len = waiting.len() as u64;
        if sender.is_too_long(waiting.len()) {
            let reason = DropReason::TooLong;
            return decide(at, LinkEvent::Dropped { from, packet: waiting.into_packet(), reason, at }, len);
        }
        let (times, fate, packet) = sender.send(earliest, waiting);
        self.free_at = times.sent;
        self.last = from;
        match fate {
            TransmissionOutcome::Arrives { flipped } => {
                decide(times.arrival, LinkEvent::Delivered { to: from.other(), packet, times, flipped }, len);
            }
            TransmissionOutcome::Dropped { reason, at } => {
                decide(at, LinkEvent::Dropped { from, packet, reason, at }, len)
            }
        }
    }
}

/// Encoder that leaves a packet unchanged.
fn as_it_is<P>(_: Instant, _: Side, packet: P) -> Option<P> {
    Some(packet)
}

impl<P> PartialEq for PendingEvent<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<P> Eq for PendingEvent<P> {}

impl<P> PartialOrd for PendingEvent<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The top of the heap is its greatest element, so the earliest outcome is the greatest.
impl<P> Ord for PendingEvent<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}
