//! The link with what stands at its ends: packets in, packets out, at the times of the link.

use std::collections::VecDeque;

use thinair_link::{ConstrainedLink, DropReason, Event, LinkModel, Side, Times};
use thinair_wire::time::Instant;

use super::channel::{RohcChannel, Terminal};
use super::codec::{Carried, Codec};
use super::totals::Totals;

/// A link, and, if it is asked for, ROHC or LOWPAN_IPHC at both its ends: packets wait in the queue as they are, are compressed
/// when they leave it for the air, and decompressed where they leave the link.
///
/// **Give it packets and poll passages in the order of time: whenever [`poll_at`](Self::poll_at) has come, poll until
/// there is no more.** A packet's times follow from when it was given, and not from when it was polled.
///
/// Feedback does not wait in the queue: it goes in front of the packet whose transmission begins next, or, if none waits and
/// [`feedback_wait`](RohcChannel::feedback_wait) is over, alone. So no full queue drops it.
#[derive(Debug)]
pub struct Engine {
    model: LinkModel<'static>,
    link: ConstrainedLink<'static, Carried>,
    codec: Codec,
    totals: [Totals; 2],
    next: u64,
    /// Packets that ended before the link was polled: refused by its queue or by the compressor.
    refused: VecDeque<Passage>,
}

/// The way of one packet, when it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Packets are numbered as they enter, from 0, those of feedback alone included.
    pub number: u64,
    /// Who has sent it.
    pub from: Side,
    /// Octets of the IP packet; 0 for feedback alone.
    pub ip_octets: usize,
    /// Octets that were sent; those of the IP packet if it was dropped before its transmission.
    pub carried_octets: usize,
    /// Frames that these are.
    pub frames: usize,
    /// Octets of the frames, with all that the link layer adds.
    pub frame_octets: u64,
    /// It was given to the engine.
    pub entered: Instant,
    /// When it was where; `None` if it did not arrive.
    pub times: Option<Times>,
    /// When it ended: for a packet that arrives, when it does.
    pub ended: Instant,
    /// What became of it.
    pub fate: Fate,
    /// What came out of the link; of no use if it was dropped.
    pub carried: Vec<u8>,
    /// The IP packet that came out at the end; empty if none did.
    pub delivered: Vec<u8>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was delivered, bit for bit.
    Delivered,
    /// It was delivered, but not as it was: the link damaged it, and nobody saw that.
    Altered,
    /// It was feedback alone, or a ROHC packet without an IP packet, and has arrived.
    Consumed,
    /// The compressor did not take it when its transmission was to begin.
    NotCompressed(&'static str),
    /// The link dropped it.
    Dropped(DropReason),
    /// The decompressor did not give it back.
    NotDecompressed(&'static str),
}

impl Fate {
    /// A word for it, and the reason where there is one: as in logs.
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
    /// The link before its first packet, compressed or not.
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

    /// The same with LOWPAN_IPHC at both ends of the link, where there is no ROHC: it then carries IPv6 alone.
    #[must_use]
    pub fn with_iphc(self) -> Self {
        match self.codec {
            Codec::None => Self { codec: Codec::iphc(), ..self },
            Codec::Iphc { .. } | Codec::Rohc { .. } => self,
        }
    }

    /// A link that numbers its frames, where there is ROHC: the decompressor is given the number of frames that were
    /// lost before each one ([`Arrival::lost`](thinair_rohc::Arrival)). Octets of the number are part of what the link layer adds to
    /// a frame ([`Framing::overhead`](thinair_link::Framing)), with compression and without.
    #[must_use]
    pub fn with_numbered_frames(mut self) -> Self {
        self.codec.number_frames();
        self
    }

    /// An IP packet enters at `from`.
    pub fn handle_packet(&mut self, now: Instant, from: Side, packet: &[u8]) {
        self.send_feedback(now);
        let totals = &mut self.totals[from as usize];
        totals.packets += 1;
        totals.octets += packet.len() as u64;
        self.offer(now, from, packet.to_vec(), Some(packet.to_vec()));
    }

    /// When to poll next; `None` if nothing is under way.
    pub fn poll_at(&self) -> Option<Instant> {
        if let Some(passage) = self.refused.front() {
            return Some(passage.ended);
        }
        let feedback = Side::ALL.into_iter().filter_map(|side| self.feedback_at(side)).min();
        [self.link.poll_at(), feedback].into_iter().flatten().min()
    }

    /// The next passage that has ended by `now`; `None` if there is no more.
    pub fn poll(&mut self, now: Instant) -> Option<Passage> {
        loop {
            if let Some(passage) = self.refused.pop_front() {
                return Some(passage);
            }
            // Step by step, so that feedback which has arrived is heard before the next packet is compressed.
            let at = self.poll_at().filter(|at| *at <= now)?;
            self.send_feedback(at);
            let Self { link, codec, totals, refused, model, .. } = self;
            let event = link
                .poll_with(at, |at, from, packet| encode(codec, totals, refused, model, at, from, packet));
            match event {
                Some(Event::Delivered { to, packet, times, flipped: _ }) => {
                    return Some(self.arrive(to.other(), packet, times));
                }
                Some(Event::Dropped { from, packet, reason, at }) => {
                    return Some(self.dropped(from, packet, at, reason));
                }
                None => {}
            }
        }
    }

    /// Whether no packet is under way, and no feedback waits.
    pub fn is_idle(&self) -> bool {
        self.poll_at().is_none()
    }

    /// What the direction from `from` has come to.
    pub fn totals(&self, from: Side) -> Totals {
        let mut totals = self.totals[from as usize].clone();
        totals.link = self.link.traffic(from);
        totals.carried_octets = totals.link.sent_octets;
        let ended = totals.delivered + totals.dropped + totals.not_compressed() + totals.not_decompressed();
        totals.under_way = totals.packets - ended;
        totals
    }

    /// The model of the link.
    pub fn model(&self) -> &LinkModel<'static> {
        &self.model
    }

    /// When feedback goes alone. What waits in the queue takes it along.
    fn feedback_at(&self, side: Side) -> Option<Instant> {
        let due = self.codec.terminals().get(side as usize).and_then(Terminal::feedback_at);
        due.filter(|_| self.link.waiting(side).0 == 0)
    }

    /// Lets all feedback go alone that has waited for long enough.
    fn send_feedback(&mut self, now: Instant) {
        for side in Side::ALL {
            // It goes when it is due, also if that is noticed late.
            let Some(due) = self.feedback_at(side) else { continue };
            let feedback = &mut self.totals[side as usize].feedback;
            let terminal = self.codec.terminal(side);
            if let Some(octets) = terminal.and_then(|terminal| terminal.poll_feedback(now, feedback)) {
                self.offer(due.min(now), side, octets, None);
            }
        }
    }

    fn offer(&mut self, now: Instant, from: Side, octets: Vec<u8>, ip: Option<Vec<u8>>) {
        let carried = Carried { number: self.next, octets, ip, entered: now, frame: 0 };
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

    fn dropped(&mut self, from: Side, carried: Carried, at: Instant, reason: DropReason) -> Passage {
        self.totals[from as usize].dropped += u64::from(carried.ip.is_some());
        passage(&self.model, from, carried, at, None, Fate::Dropped(reason))
    }

    /// A packet has come out of the link.
    fn arrive(&mut self, from: Side, carried: Carried, times: Times) -> Passage {
        let now = times.arrival;
        let back = &mut self.totals[from.other() as usize];
        let (fate, delivered) = match self.codec.decompress(now, from, &carried, back) {
            Ok(Some(packet)) if carried.ip.as_ref() == Some(&packet) => (Fate::Delivered, packet),
            Ok(Some(packet)) => (Fate::Altered, packet),
            Ok(None) => (Fate::Consumed, Vec::new()),
            Err(why) => (Fate::NotDecompressed(why), Vec::new()),
        };
        let totals = &mut self.totals[from as usize];
        match fate {
            Fate::Delivered | Fate::Altered => {
                totals.delivered += 1;
                totals.delivered_octets += delivered.len() as u64;
                totals.altered += u64::from(fate == Fate::Altered);
            }
            Fate::NotDecompressed(why) if carried.ip.is_some() => {
                *totals.not_decompressed.entry(why).or_default() += 1;
            }
            Fate::NotDecompressed(_) | Fate::Consumed | Fate::NotCompressed(_) | Fate::Dropped(_) => {}
        }
        Passage { delivered, ..passage(&self.model, from, carried, now, Some(times), fate) }
    }
}

/// Compresses a packet that has left the queue; `None` if the compressor does not take it.
fn encode(
    codec: &mut Codec,
    totals: &mut [Totals; 2],
    refused: &mut VecDeque<Passage>,
    model: &LinkModel<'_>,
    at: Instant,
    from: Side,
    mut carried: Carried,
) -> Option<Carried> {
    let totals = &mut totals[from as usize];
    match codec.compress(at, from, &mut carried, totals) {
        Ok(()) => Some(carried),
        Err(why) => {
            *totals.not_compressed.entry(why).or_default() += 1;
            carried.octets = Vec::new();
            refused.push_back(passage(model, from, carried, at, None, Fate::NotCompressed(why)));
            None
        }
    }
}

fn passage(
    model: &LinkModel<'_>,
    from: Side,
    carried: Carried,
    ended: Instant,
    times: Option<Times>,
    fate: Fate,
) -> Passage {
    let direction = match from {
        Side::A => &model.a_to_b,
        Side::B => &model.b_to_a,
    };
    let len = carried.octets.len();
    let is_carried = !matches!(fate, Fate::NotCompressed(_));
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
