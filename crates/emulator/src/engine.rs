//! The link with the codecs at its ends: packets in, packets out, at the times of the link.

use std::collections::VecDeque;

use thinair_link::{ConstrainedLink, DropReason, LinkEvent, LinkModel, Side, Times};
use thinair_wire::time::Instant;

use super::channel::{RohcChannel, Terminal};
use super::codec::{CarriedPacket, Codec};
use super::totals::DirectionTotals;

/// A link, optionally with ROHC or LOWPAN_IPHC at both ends: packets wait in the queue uncompressed, are compressed when
/// their transmission begins, and decompressed where they leave the link.
///
/// **Give it packets and poll passages in the order of time: whenever [`poll_at`](Self::poll_at) is reached, poll until
/// there are no more.** The times of a packet follow from the time at which it was given, not from the time of polling.
///
/// Feedback does not wait in the queue: it piggybacks on the packet whose transmission begins next, or, if there is none
/// within [`feedback_wait`](RohcChannel::feedback_wait), is sent alone. Therefore no full queue drops it.
#[derive(Debug)]
pub struct Engine {
    model: LinkModel<'static>,
    link: ConstrainedLink<'static, CarriedPacket>,
    codec: Codec,
    totals: [DirectionTotals; 2],
    next: u64,
    /// Packets that ended before the link was polled: dropped by its queue or rejected by the compressor.
    refused: VecDeque<Passage>,
}

/// Passage of one packet over the link, after its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Number of the packet: packets are numbered as they enter, from 0, packets of feedback alone included.
    pub number: u64,
    /// Sending side.
    pub from: Side,
    /// Octets of the IP packet; 0 for feedback alone.
    pub ip_octets: usize,
    /// Octets that were sent; octets of the IP packet if it was dropped before its transmission.
    pub carried_octets: usize,
    /// Number of frames that carried it.
    pub frames: usize,
    /// Octets of the frames, with the overhead of the link layer.
    pub frame_octets: u64,
    /// Time at which it was given to the engine.
    pub entered: Instant,
    /// Times of its stages on the link; `None` if it did not arrive.
    pub times: Option<Times>,
    /// Time of its end: for a packet that arrives, the time of arrival.
    pub ended: Instant,
    /// Outcome.
    pub fate: PassageOutcome,
    /// Octets that came out of the link; unspecified if the packet was dropped.
    pub carried: Vec<u8>,
    /// IP packet that was delivered; empty if none was.
    pub delivered: Vec<u8>,
}

/// Outcome of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassageOutcome {
    /// Delivered unchanged.
    Delivered,
    /// Delivered with an error: the link damaged it, and nothing detected that.
    Altered,
    /// Arrived; it was feedback alone, or a ROHC packet without an IP packet.
    Consumed,
    /// Rejected by the compressor when its transmission was to begin.
    NotCompressed(&'static str),
    /// Dropped by the link.
    Dropped(DropReason),
    /// Rejected by the decompressor.
    NotDecompressed(&'static str),
}

impl PassageOutcome {
    /// Returns its name in logs, and the reason where there is one.
    pub const fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::Delivered => ("delivered", ""),
            Self::Altered => ("altered", ""),
            Self::Consumed => ("consumed", ""),
            Self::NotCompressed(why) => ("not-compressed", why),
            Self::Dropped(why) => ("dropped", why.name()),
            Self::NotDecompressed(why) => ("not-decompressed", why),
        }
    }
}

impl Engine {
    /// Creates the link before its first packet, with compression if `channel` is given.
    pub fn new(model: &LinkModel<'static>, seed: u64, channel: Option<&RohcChannel>) -> Self {
        Self {
            model: *model,
            link: ConstrainedLink::new(model, seed),
            codec: channel.map_or(Codec::None, Codec::rohc),
            totals: Default::default(),
            next: 0,
            refused: VecDeque::new(),
        }
    }

    /// Adds LOWPAN_IPHC at both ends of a link without ROHC: it then carries IPv6 only.
    #[must_use]
    pub fn with_iphc(self) -> Self {
        match self.codec {
            Codec::None => Self { codec: Codec::iphc(), ..self },
            Codec::Iphc { .. } | Codec::Rohc { .. } => self,
        }
    }

    /// Numbers the frames of a link with ROHC: the decompressor receives the number of frames that were lost before each
    /// one ([`Arrival::lost`](thinair_rohc::Arrival)). The octets of the number are part of the overhead of the link
    /// layer ([`Framing::overhead`](thinair_link::Framing)), with compression and without.
    #[must_use]
    pub fn with_numbered_frames(mut self) -> Self {
        self.codec.number_frames();
        self
    }

    /// Gives the link an IP packet that enters at `from`.
    pub fn handle_packet(&mut self, now: Instant, from: Side, packet: &[u8]) {
        self.send_feedback(now);
        let totals = &mut self.totals[from as usize];
        totals.packets += 1;
        totals.octets += packet.len() as u64;
        self.offer(now, from, packet.to_vec(), Some(packet.to_vec()));
    }

    /// Returns the time of the next poll; `None` if nothing is under way.
    pub fn poll_at(&self) -> Option<Instant> {
        if let Some(passage) = self.refused.front() {
            return Some(passage.ended);
        }
        let feedback = Side::ALL.into_iter().filter_map(|side| self.feedback_at(side)).min();
        [self.link.poll_at(), feedback].into_iter().flatten().min()
    }

    /// Returns the next passage that has ended by `now`; `None` if there is none.
    pub fn poll(&mut self, now: Instant) -> Option<Passage> {
        loop {
            if let Some(passage) = self.refused.pop_front() {
                return Some(passage);
            }
            // One event at a time, so that feedback that has arrived is processed before the next packet is compressed.
            let at = self.poll_at().filter(|at| *at <= now)?;
            self.send_feedback(at);
            let Self { link, codec, totals, refused, model, .. } = self;
            let event = link
                .poll_with(at, |at, from, packet| encode(codec, totals, refused, model, at, from, packet));
            match event {
                Some(LinkEvent::Delivered { to, packet, times, flipped: _ }) => {
                    return Some(self.arrive(to.other(), packet, times));
                }
                Some(LinkEvent::Dropped { from, packet, reason, at }) => {
                    return Some(self.dropped(from, packet, at, reason));
                }
                None => {}
            }
        }
    }

    /// Returns true if no packet is under way and no feedback waits.
    pub fn is_idle(&self) -> bool {
        self.poll_at().is_none()
    }

    /// Returns the totals of the direction from `from`.
    pub fn totals(&self, from: Side) -> DirectionTotals {
        let mut totals = self.totals[from as usize].clone();
        totals.link = self.link.traffic(from);
        totals.carried_octets = totals.link.sent_octets;
        let ended = totals.delivered + totals.dropped + totals.not_compressed() + totals.not_decompressed();
        totals.under_way = totals.packets - ended;
        totals
    }

    /// Returns the model of the link.
    pub fn model(&self) -> &LinkModel<'static> {
        &self.model
    }

    /// Returns the time at which feedback is sent alone. A packet in the queue carries it instead.
    fn feedback_at(&self, side: Side) -> Option<Instant> {
        let due = self.codec.terminals().get(side as usize).and_then(Terminal::feedback_at);
        due.filter(|_| self.link.waiting(side).0 == 0)
    }

    /// Sends all feedback alone that is due.
    fn send_feedback(&mut self, now: Instant) {
        for side in Side::ALL {
            // It is sent at the time when it was due, even if the engine is polled later.
            let Some(due) = self.feedback_at(side) else { continue };
            let feedback = &mut self.totals[side as usize].feedback;
            let terminal = self.codec.terminal(side);
            if let Some(octets) = terminal.and_then(|terminal| terminal.poll_feedback(now, feedback)) {
                self.offer(due.min(now), side, octets, None);
            }
        }
    }

    fn offer(&mut self, now: Instant, from: Side, octets: Vec<u8>, ip: Option<Vec<u8>>) {
        let carried = CarriedPacket { number: self.next, octets, ip, entered: now, frame: 0 };
        self.next += 1;
        let Self { link, codec, totals, refused, model, .. } = self;
        let offered = match codec {
            Codec::None => link.offer(now, from, carried),
            Codec::Iphc { .. } | Codec::Rohc { .. } => {
                link.offer_with(now, from, carried, |at, from, packet| {
                    encode(codec, totals, refused, model, at, from, packet)
                })
            }
        };
        if let Err((reason, carried)) = offered {
            let passage = self.dropped(from, carried, now, reason);
            self.refused.push_back(passage);
        }
    }

    fn dropped(&mut self, from: Side, carried: CarriedPacket, at: Instant, reason: DropReason) -> Passage {
        self.totals[from as usize].dropped += u64::from(carried.ip.is_some());
        passage(&self.model, from, carried, at, None, PassageOutcome::Dropped(reason))
    }

    /// Processes a packet that has come out of the link.
    fn arrive(&mut self, from: Side, carried: CarriedPacket, times: Times) -> Passage {
        let now = times.arrival;
        let back = &mut self.totals[from.other() as usize];
        let (fate, delivered) = match self.codec.decompress(now, from, &carried, back) {
            Ok(Some(packet)) if carried.ip.as_ref() == Some(&packet) => (PassageOutcome::Delivered, packet),
            Ok(Some(packet)) => (PassageOutcome::Altered, packet),
            Ok(None) => (PassageOutcome::Consumed, Vec::new()),
            Err(why) => (PassageOutcome::NotDecompressed(why), Vec::new()),
        };
        let totals = &mut self.totals[from as usize];
        match fate {
            PassageOutcome::Delivered | PassageOutcome::Altered => {
                totals.delivered += 1;
                totals.delivered_octets += delivered.len() as u64;
                totals.altered += u64::from(fate == PassageOutcome::Altered);
            }
            PassageOutcome::NotDecompressed(why) if carried.ip.is_some() => {
                *totals.not_decompressed.entry(why).or_default() += 1;
            }
            PassageOutcome::NotDecompressed(_)
            | PassageOutcome::Consumed
            | PassageOutcome::NotCompressed(_)
            | PassageOutcome::Dropped(_) => {}
        }
        Passage { delivered, ..passage(&self.model, from, carried, now, Some(times), fate) }
    }
}

/// Compresses a packet that has left the queue; `None` if the compressor rejects it.
fn encode(
    codec: &mut Codec,
    totals: &mut [DirectionTotals; 2],
    refused: &mut VecDeque<Passage>,
    model: &LinkModel<'_>,
    at: Instant,
    from: Side,
    mut carried: CarriedPacket,
) -> Option<CarriedPacket> {
    let totals = &mut totals[from as usize];
    match codec.compress(at, from, &mut carried, totals) {
        Ok(()) => Some(carried),
        Err(why) => {
            *totals.not_compressed.entry(why).or_default() += 1;
            carried.octets = Vec::new();
            refused.push_back(passage(model, from, carried, at, None, PassageOutcome::NotCompressed(why)));
            None
        }
    }
}

fn passage(
    model: &LinkModel<'_>,
    from: Side,
    carried: CarriedPacket,
    ended: Instant,
    times: Option<Times>,
    fate: PassageOutcome,
) -> Passage {
    let direction = match from {
        Side::A => &model.a_to_b,
        Side::B => &model.b_to_a,
    };
    let len = carried.octets.len();
    let is_carried = !matches!(fate, PassageOutcome::NotCompressed(_));
    Passage {
        number: carried.number,
        from,
        ip_octets: carried.ip.map_or(0, |ip| ip.len()),
        carried_octets: len,
        frames: if is_carried { direction.framing.frames(len).count() } else { 0 },
        frame_octets: if is_carried { direction.framing.octets(len) } else { 0 },
        entered: carried.entered,
        times,
        ended,
        fate,
        carried: carried.octets,
        delivered: Vec::new(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
