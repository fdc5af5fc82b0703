//! A constrained link in time: two directions with rate, delay, queue and loss, told the time by the caller.
//!
//! What becomes of a packet is not known when it is offered: CoDel drops where packets leave the queue, and on a shared
//! medium it matters who was on the air before. So the link is asked for events. Times follow from those at which
//! packets were offered and not from those at which it was asked: who polls late learns late, and nothing else
//! changes.

mod codel;
mod sender;

use alloc::collections::BinaryHeap;
use core::cmp::Ordering;
use core::fmt;
use core::time::Duration;

use thinair_wire::time::Instant;

use crate::model::{Duplex, LinkModel};
use crate::random::Random;

use sender::{Fate, Sender};

/// An end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The first; the device of links that have one.
    A,
    /// The second; the network.
    B,
}

impl Side {
    /// Both.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// The other end.
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// When a packet was where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// It was given to the link.
    pub offered: Instant,
    /// Its first bit was sent.
    pub start: Instant,
    /// Its last bit was sent.
    pub sent: Instant,
    /// It came out at the other end.
    pub arrival: Instant,
}

/// What has happened to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<P> {
    /// It arrived.
    Delivered {
        /// Where.
        to: Side,
        /// It, damaged in place if the link damages.
        packet: P,
        /// When.
        times: Times,
        /// Bits of it that are not as they were sent.
        flipped: u64,
    },
    /// It did not, and will not.
    Dropped {
        /// Who has sent it.
        from: Side,
        /// It; of no use if it was damaged.
        packet: P,
        /// Why.
        reason: DropReason,
        /// When: for CoDel, or if it was encoded to more than the MTU, when it left the queue, for loss when its last bit was sent, for damage when it would have
        /// arrived.
        at: Instant,
    },
}

/// Why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// It was longer than the MTU.
    TooLong,
    /// So many packets wait that it found no room in the queue.
    QueuePackets,
    /// So many octets wait that it found no room in the queue.
    QueueOctets,
    /// The link holds as many packets as it may, those that were not polled included.
    NoRoom,
    /// It has waited too long, for CoDel.
    CoDel,
    /// The link lost it, or a fragment of it.
    Loss,
    /// The check of the link layer found damage in it, or in a fragment of it.
    Integrity,
}

impl DropReason {
    /// All of them, those of [`ConstrainedLink::offer`] first.
    pub const ALL: [Self; 7] = [
        Self::TooLong,
        Self::QueuePackets,
        Self::QueueOctets,
        Self::NoRoom,
        Self::CoDel,
        Self::Loss,
        Self::Integrity,
    ];

    /// As in logs: lower case, a hyphen between words.
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

/// What a direction has carried since the start.
///
/// **Offered is delivered plus dropped plus [held](ConstrainedLink::held).** A packet is counted as delivered or
/// dropped when its event is polled, or when it was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets offered.
    pub offered: u64,
    /// Octets of them, as they were offered.
    pub offered_octets: u64,
    /// Octets of packets whose transmission has begun, as they were sent.
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
    /// Nanoseconds on the air.
    pub busy: u64,
}

/// Packets that did not arrive, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped([u64; DropReason::ALL.len()]);

impl Dropped {
    /// For this reason.
    pub const fn by(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// For any.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }
}

/// A link of two directions that holds packets of type `P` while they are under way.
///
/// **Offer packets and poll events in the order of their times.** Whenever [`Self::poll_at`] has come, poll until there
/// is no more; a `now` that is earlier than one before is taken for that one. The same model, seed, times and lengths
/// of packets give the same events. Each direction has random sequences of its own: what happens in one changes no
/// decision of chance in the other.
///
/// ```
/// use std::time::Duration;
///
/// use thinair_link::{Airtime, ConstrainedLink, Direction, Duplex, Event, LinkModel, Rate, Side};
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
/// assert!(matches!(link.poll(at), Some(Event::Delivered { to: Side::B, flipped: 0, .. })));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConstrainedLink<'a, P> {
    senders: [Sender<'a, P>; 2],
    /// The turnaround, if the directions share a medium.
    half_duplex: Option<Duration>,
    /// Of a shared medium.
    free_at: Instant,
    last: Side,
    now: Instant,
    outcomes: BinaryHeap<Outcome<P>>,
    /// Outcomes so far: those of one time come in this order.
    decided: u64,
}

/// An event to come.
#[derive(Clone, Debug)]
struct Outcome<P> {
    at: Instant,
    number: u64,
    event: Event<P>,
    len: u64,
}

impl<'a, P: AsMut<[u8]>> ConstrainedLink<'a, P> {
    /// A link before its first packet.
    pub fn new(model: &LinkModel<'a>, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let senders = [model.a_to_b, model.b_to_a].map(|direction| Sender::new(direction, &mut random));
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

    /// Takes a packet that `from` sends.
    ///
    /// # Errors
    ///
    /// It was dropped at once, for the reason that comes with it; the packet is as it was. It is counted.
    pub fn offer(&mut self, now: Instant, from: Side, mut packet: P) -> Result<(), (DropReason, P)> {
        let (sender, len) = (&mut self.senders[from as usize], packet.as_mut().len());
        if sender.is_too_long(len) {
            return Err(sender.refuse(DropReason::TooLong, len, packet));
        }
        self.offer_with(now, from, packet, as_it_is)
    }

    /// Takes a packet that `from` sends and that `encode` rewrites where it leaves the queue, before its first bit is sent: a
    /// packet that the queue drops is never encoded. The queue counts octets as they are offered; airtime, frames, MTU and
    /// damage are those of the encoded packet.
    ///
    /// `encode` is given the time, the sender and the packet, in the order in which packets are sent. If it returns `None`, the
    /// packet is not sent and counts as never offered. **Give the same one to [`poll_with`](Self::poll_with).**
    ///
    /// # Errors
    ///
    /// It was dropped at once, as in [`offer`](Self::offer).
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

    /// When to poll next; `None` if nothing is under way. Nothing happens before; at that time there may be an event.
    pub fn poll_at(&self) -> Option<Instant> {
        let outcome = self.outcomes.peek().map(|outcome| outcome.at);
        let start = self.next_start().map(|(at, _)| at);
        [outcome, start].into_iter().flatten().min()
    }

    /// The next event that has happened by `now`, in the order of time; `None` if there is no more.
    pub fn poll(&mut self, now: Instant) -> Option<Event<P>> {
        self.poll_with(now, as_it_is)
    }

    /// The next event, where packets are encoded as they leave the queue: see [`offer_with`](Self::offer_with).
    pub fn poll_with(
        &mut self,
        now: Instant,
        mut encode: impl FnMut(Instant, Side, P) -> Option<P>,
    ) -> Option<Event<P>> {
        self.advance(now, &mut encode);
        if self.outcomes.peek()?.at > self.now {
            return None;
        }
        let Outcome { event, len, .. } = self.outcomes.pop()?;
        match &event {
            Event::Delivered { to, flipped, .. } => {
                self.senders[to.other() as usize].delivered(len, *flipped);
            }
            Event::Dropped { from, reason, .. } => self.senders[*from as usize].dropped(*reason),
        }
        Some(event)
    }

    /// What the direction from `from` has carried.
    pub fn traffic(&self, from: Side) -> Traffic {
        self.senders[from as usize].traffic()
    }

    /// Packets and octets from `from` that wait for the air.
    pub fn waiting(&self, from: Side) -> (usize, u64) {
        self.senders[from as usize].waiting()
    }

    /// Packets from `from` that wait, are on the air or on the way, or have arrived and were not polled.
    pub fn held(&self, from: Side) -> u32 {
        self.senders[from as usize].held()
    }

    /// Lets all begin that begins by `now`.
    fn advance(&mut self, now: Instant, encode: &mut impl FnMut(Instant, Side, P) -> Option<P>) {
        self.now = self.now.max(now);
        while let Some((at, from)) = self.next_start() {
            if at > self.now {
                break;
            }
            self.start(at, from, encode);
        }
    }

    /// Who takes a packet from its queue next, and when.
    fn next_start(&self) -> Option<(Instant, Side)> {
        let ready = |side: Side| {
            let at = self.senders[side as usize].ready()?;
            Some((if self.half_duplex.is_some() { at.max(self.free_at) } else { at }, side))
        };
        match (ready(self.last), ready(self.last.other())) {
            // At the same time it is the turn of the other one.
            (Some(last), Some(other)) => Some(if last.0 < other.0 { last } else { other }),
            (last, other) => last.or(other),
        }
    }

    fn start(&mut self, at: Instant, from: Side, encode: &mut impl FnMut(Instant, Side, P) -> Option<P>) {
        // The medium is free for a while before the other side begins.
        let earliest = match self.half_duplex {
            Some(turnaround) if from != self.last && self.free_at > Instant::ZERO => {
                at.max(self.free_at + turnaround)
            }
            Some(_) | None => at,
        };
        let (outcomes, decided) = (&mut self.outcomes, &mut self.decided);
        let mut decide = |at, event, len| {
            outcomes.push(Outcome { at, number: *decided, event, len });
            *decided += 1;
        };
        let sender = &mut self.senders[from as usize];
        let Some(waiting) = sender.dequeue(at, |packet, len| {
            decide(at, Event::Dropped { from, packet, reason: DropReason::CoDel, at }, len);
        }) else {
            return;
        };
        let Some(waiting) = sender.encode(waiting, |packet| encode(at, from, packet)) else { return };
        let len = waiting.len() as u64;
        if sender.is_too_long(waiting.len()) {
            let reason = DropReason::TooLong;
            return decide(at, Event::Dropped { from, packet: waiting.into_packet(), reason, at }, len);
        }
        let (times, fate, packet) = sender.send(earliest, waiting);
        self.free_at = times.sent;
        self.last = from;
        match fate {
            Fate::Arrives { flipped } => {
                decide(times.arrival, Event::Delivered { to: from.other(), packet, times, flipped }, len);
            }
            Fate::Dropped { reason, at } => decide(at, Event::Dropped { from, packet, reason, at }, len),
        }
    }
}

/// Sends a packet as it was offered.
fn as_it_is<P>(_: Instant, _: Side, packet: P) -> Option<P> {
    Some(packet)
}

impl<P> PartialEq for Outcome<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<P> Eq for Outcome<P> {}

impl<P> PartialOrd for Outcome<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The heap has its greatest on top, so the earliest is the greatest.
impl<P> Ord for Outcome<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}
