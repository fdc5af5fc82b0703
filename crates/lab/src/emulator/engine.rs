//! The link with what stands at its ends: packets in, packets out, at the times of the link.

use thinair_link::{ConstrainedLink, DropReason, Event, LinkModel, Side, Times};
use thinair_rohc::{CompressError, DecompressError};
use thinair_wire::header::chain::NotIp;
use thinair_wire::time::Instant;

use super::channel::{ROOM, RohcChannel, Terminal};
use super::iphc::Iphc;
use super::totals::Totals;

/// Blocks for extension headers of each compressor and decompressor.
const BLOCKS: usize = 256;

/// A link, and, if it is asked for, ROHC at both its ends: compressed where a packet enters the queue, decompressed
/// where it leaves the link.
///
/// **Give it packets and poll passages in the order of time: whenever [`poll_at`](Self::poll_at) has come, poll until
/// there is no more.** A packet's times follow from when it was given, and not from when it was polled.
#[derive(Debug)]
pub struct Engine {
    model: LinkModel<'static>,
    link: ConstrainedLink<'static, Carried>,
    terminals: Option<[Terminal; 2]>,
    iphc: Option<Iphc>,
    /// For them.
    room: Vec<u8>,
    totals: [Totals; 2],
    next: u64,
    /// What the link refused before it was polled.
    refused: Vec<Passage>,
}

/// What the link carries.
#[derive(Clone, Debug)]
struct Carried {
    number: u64,
    octets: Vec<u8>,
    /// The IP packet that should come out; `None` for feedback alone.
    ip: Option<Vec<u8>>,
    entered: Instant,
}

impl AsMut<[u8]> for Carried {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.octets
    }
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
    /// Octets that the link was given.
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
    /// The compressor did not take it.
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
            terminals: channel.map(|channel| Side::ALL.map(|side| Terminal::new(channel, side, BLOCKS))),
            iphc: None,
            room: vec![0; if channel.is_some() { ROOM } else { 0 }],
            totals: Default::default(),
            next: 0,
            refused: Vec::new(),
        }
    }

    /// The same with LOWPAN_IPHC at both ends of the link, where there is no ROHC: it then carries IPv6 alone.
    #[must_use]
    pub fn with_iphc(self) -> Self {
        Self { iphc: self.terminals.is_none().then(Iphc::new), room: vec![0; ROOM], ..self }
    }

    /// An IP packet enters at `from`.
    pub fn handle_packet(&mut self, now: Instant, from: Side, packet: &[u8]) {
        self.send_feedback(now);
        let totals = &mut self.totals[from as usize];
        totals.packets += 1;
        totals.octets += packet.len() as u64;
        let number = self.next;
        self.next += 1;
        match self.compressed(now, from, packet) {
            Ok(octets) => {
                self.offer(now, from, Carried { number, octets, ip: Some(packet.to_vec()), entered: now });
            }
            Err(why) => {
                *self.totals[from as usize].not_compressed.entry(why).or_default() += 1;
                let carried = Carried { number, octets: Vec::new(), ip: Some(packet.to_vec()), entered: now };
                let passage = self.passage(from, carried, now, None, Fate::NotCompressed(why));
                self.refused.push(passage);
            }
        }
    }

    /// A packet as the link carries it; an error in a word.
    fn compressed(&mut self, now: Instant, from: Side, packet: &[u8]) -> Result<Vec<u8>, &'static str> {
        let totals = &mut self.totals[from as usize];
        let (header_in, header_out, octets) = match (&mut self.terminals, self.iphc) {
            (None, None) => return Ok(packet.to_vec()),
            (None, Some(iphc)) => {
                let (done, octets) = iphc.compress(from, packet, &mut self.room)?;
                (done.header_in, done.header_out, octets)
            }
            (Some(terminals), _) => {
                let terminal = &mut terminals[from as usize];
                let done = terminal.compress(now, packet, &mut self.room, &mut totals.feedback);
                let (compressed, octets) = done.map_err(name)?;
                *totals.formats.entry(compressed.format).or_default() += 1;
                (compressed.header_in, compressed.header_out, octets)
            }
        };
        totals.header_octets += header_in as u64;
        totals.compressed_header_octets += header_out as u64;
        Ok(octets)
    }

    /// When to poll next; `None` if nothing is under way.
    pub fn poll_at(&self) -> Option<Instant> {
        if let Some(passage) = self.refused.first() {
            return Some(passage.ended);
        }
        let feedback = self.terminals.iter().flatten().filter_map(Terminal::feedback_at).min();
        [self.link.poll_at(), feedback].into_iter().flatten().min()
    }

    /// The next passage that has ended by `now`; `None` if there is no more.
    pub fn poll(&mut self, now: Instant) -> Option<Passage> {
        if !self.refused.is_empty() {
            return Some(self.refused.remove(0));
        }
        self.send_feedback(now);
        let (from, carried, ended, times, fate) = match self.link.poll(now)? {
            Event::Delivered { to, packet, times, flipped: _ } => {
                (to.other(), packet, times.arrival, Some(times), None)
            }
            Event::Dropped { from, packet, reason, at } => {
                (from, packet, at, None, Some(Fate::Dropped(reason)))
            }
        };
        Some(match fate {
            Some(fate) => {
                self.totals[from as usize].dropped += u64::from(carried.ip.is_some());
                self.passage(from, carried, ended, times, fate)
            }
            None => self.arrive(from, carried, ended, times),
        })
    }

    /// Whether no packet is under way, and no feedback waits.
    pub fn is_idle(&self) -> bool {
        self.poll_at().is_none()
    }

    /// What the direction from `from` has come to.
    pub fn totals(&self, from: Side) -> Totals {
        let mut totals = self.totals[from as usize].clone();
        totals.link = self.link.traffic(from);
        let ended = totals.delivered + totals.dropped + totals.not_compressed() + totals.not_decompressed();
        totals.under_way = totals.packets - ended;
        totals
    }

    /// The model of the link.
    pub fn model(&self) -> &LinkModel<'static> {
        &self.model
    }

    /// Lets all feedback go alone that has waited for long enough.
    fn send_feedback(&mut self, now: Instant) {
        for side in Side::ALL {
            let Some(terminals) = &mut self.terminals else { return };
            let terminal = &mut terminals[side as usize];
            // It goes when it is due, also if that is noticed late.
            let due = terminal.feedback_at().unwrap_or(now).min(now);
            let feedback = &mut self.totals[side as usize].feedback;
            if let Some(octets) = terminal.poll_feedback(now, feedback) {
                let number = self.next;
                self.next += 1;
                self.offer(due, side, Carried { number, octets, ip: None, entered: due });
            }
        }
    }

    fn offer(&mut self, now: Instant, from: Side, carried: Carried) {
        self.totals[from as usize].carried_octets += carried.octets.len() as u64;
        if let Err((reason, carried)) = self.link.offer(now, from, carried) {
            self.totals[from as usize].dropped += u64::from(carried.ip.is_some());
            let passage = self.passage(from, carried, now, None, Fate::Dropped(reason));
            self.refused.push(passage);
        }
    }

    /// A packet has come out of the link.
    fn arrive(&mut self, from: Side, carried: Carried, now: Instant, times: Option<Times>) -> Passage {
        let (fate, delivered) = match (&mut self.terminals, self.iphc) {
            (None, Some(iphc)) => match iphc.decompress(from, &carried.octets, &mut self.room) {
                Ok(packet) => (delivered(carried.ip.as_deref(), &packet), packet),
                Err(why) => (Fate::NotDecompressed(why), Vec::new()),
            },
            (None, None) => (delivered(carried.ip.as_deref(), &carried.octets), carried.octets.clone()),
            (Some(terminals), _) => {
                let to = from.other() as usize;
                // Feedback on this packet goes the other way.
                let feedback = &mut self.totals[to].feedback;
                match terminals[to].decompress(now, &carried.octets, &mut self.room, feedback) {
                    Ok((done, packet)) if done.len > 0 && carried.ip.is_some() => {
                        (delivered(carried.ip.as_deref(), &packet), packet)
                    }
                    // Damaged feedback that passes for a packet: nobody has sent it.
                    Ok((done, _)) if done.len > 0 => (Fate::NotDecompressed("damaged_feedback"), Vec::new()),
                    Ok(_) if carried.ip.is_none() => (Fate::Consumed, Vec::new()),
                    Ok(_) => (Fate::NotDecompressed("nothing_delivered"), Vec::new()),
                    Err(DecompressError::NothingYet) if carried.ip.is_none() => (Fate::Consumed, Vec::new()),
                    Err(error) => (Fate::NotDecompressed(error.name()), Vec::new()),
                }
            }
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
        Passage { delivered, ..self.passage(from, carried, now, times, fate) }
    }

    fn passage(
        &self,
        from: Side,
        carried: Carried,
        ended: Instant,
        times: Option<Times>,
        fate: Fate,
    ) -> Passage {
        let direction = match from {
            Side::A => &self.model.a_to_b,
            Side::B => &self.model.b_to_a,
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
}

/// Whether what came out is what went in.
fn delivered(sent: Option<&[u8]>, delivered: &[u8]) -> Fate {
    if sent == Some(delivered) { Fate::Delivered } else { Fate::Altered }
}

fn name(error: CompressError) -> &'static str {
    match error {
        CompressError::NotIp(NotIp::Version) => "not_ip",
        CompressError::NotIp(NotIp::Short { .. }) => "short_ip_header",
        CompressError::OutputTooSmall { .. } => "output_too_small",
        CompressError::NoContexts => "no_contexts",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
