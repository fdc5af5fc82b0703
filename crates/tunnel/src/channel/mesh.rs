//! One compressor that many decompressors hear, and their feedback as if it came from one.
//!
//! Any NACK or STATIC-NACK goes to the compressor. An acknowledgment does when every member has acknowledged the context: the
//! one with the lowest SN, because that is what all have at least. A mode is asked for when all ask for it. So a member that
//! is silent, or gone, holds acknowledgments back: the compressor then repeats as often as it does without feedback, and stays
//! in U-mode, which costs octets and loses nothing. Refreshes go on in all modes, for those who cannot answer.

use thinair_rohc::cid::{Cid, CidSpace};
use thinair_rohc::feedback::{AckType, Feedback, FeedbackError, Form, MAX_ELEMENT};
use thinair_rohc::{Compressed, Compressor, Instant, Mode, ProfileId};

use crate::unit::SiteId;

/// An acknowledgment of a packet that is so many SNs old says nothing any more: FEEDBACK-2 has 12 bits of SN.
const STALE: u32 = 1 << 12;

/// What the members have said of the contexts of one compressor.
#[derive(Debug)]
pub(super) struct Combined {
    members: Vec<SiteId>,
    contexts: Vec<Context>,
    /// A row of members for each context.
    said: Vec<Said>,
}

/// What was sent on a CID.
#[derive(Clone, Copy, Debug, Default)]
struct Context {
    profile: Option<ProfileId>,
    /// The SN of the newest packet: its low 16 bits, with their turns above.
    newest: u32,
    /// The SN of the first packet of the context.
    first: u32,
    /// What the compressor was told last.
    told: Option<(u32, Option<Mode>)>,
}

/// What a member has said of a context.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    /// The newest SN that it has acknowledged, with its turns.
    acknowledged: Option<u32>,
    /// The mode that it has asked for last, protected by a CRC.
    mode: Option<Mode>,
    protected: bool,
    /// The last LOSS option of profile 0x0081.
    loss: Option<u8>,
}

impl Combined {
    pub(super) fn new(members: Vec<SiteId>, contexts: usize) -> Self {
        let said = vec![Said::default(); members.len() * contexts];
        Self { members, contexts: vec![Context::default(); contexts], said }
    }

    /// Nobody has said anything.
    pub(super) fn clear(&mut self) {
        self.contexts.fill(Context::default());
        self.said.fill(Said::default());
    }

    /// A packet was sent; its context has this SN.
    pub(super) fn note_sent(&mut self, compressed: &Compressed, sn: Option<u32>) {
        let at = compressed.cid.index();
        let Some(context) = self.contexts.get_mut(at) else { return };
        let sn = sn.unwrap_or(0);
        let step = i32::from((sn as u16).wrapping_sub(context.newest as u16).cast_signed());
        let begins = compressed.format.is_initialization() && !compressed.refresh && !(0..=1).contains(&step);
        if context.profile != Some(compressed.profile) || begins {
            let first = 1 << 16 | (sn & 0xFFFF);
            *context = Context { profile: Some(compressed.profile), newest: first, first, told: None };
            self.row(at).fill(Said::default());
            return;
        }
        context.newest = context.newest.wrapping_add_signed(step);
    }

    /// A member has sent an element, which counts now, or is kept until others have said as much.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        from: SiteId,
        element: &[u8],
        space: CidSpace,
        compressor: &mut Compressor<'_>,
    ) -> Result<(), FeedbackError> {
        let member =
            self.members.iter().position(|member| *member == from).ok_or(FeedbackError::Malformed)?;
        let (cid, _) = Feedback::glance(element, space).ok_or(FeedbackError::Malformed)?;
        let known = compressor.context(cid).ok_or(FeedbackError::UnknownCid(cid))?;
        // As the compressor reads it: a decompressor without context does not know the profile.
        let asks = |feedback: &Feedback| feedback.ack == AckType::StaticNack && feedback.protected;
        let feedback = Feedback::read_as(Form::of(known.profile), element, space)
            .or_else(|error| Feedback::read(element, space).ok().filter(asks).ok_or(error))?;
        let context = self.contexts.get(cid.index()).copied().ok_or(FeedbackError::UnknownCid(cid))?;
        let row = self.row(cid.index());
        let Some(said) = row.get_mut(member) else { return Err(FeedbackError::UnknownCid(cid)) };
        if feedback.protected {
            said.protected = true;
            said.mode = feedback.mode.or(said.mode);
        }
        if feedback.loss.is_some() {
            said.loss = feedback.loss;
        }
        if feedback.ack != AckType::Ack {
            said.acknowledged = None;
            let mode = agreed(row);
            return tell(now, Feedback { mode, ..feedback }, space, compressor);
        }
        said.acknowledge(&feedback, &context);
        self.tell_if_all(now, cid, space, compressor)
    }

    /// Tells the compressor what all members have acknowledged, if that is more than it knows.
    fn tell_if_all(
        &mut self,
        now: Instant,
        cid: Cid,
        space: CidSpace,
        compressor: &mut Compressor<'_>,
    ) -> Result<(), FeedbackError> {
        let Some(context) = self.contexts.get(cid.index()).copied() else { return Ok(()) };
        let row = self.row(cid.index());
        let Some(back) = oldest(row, &context) else { return Ok(()) };
        let sn = context.newest.wrapping_sub(back);
        let mode = agreed(row);
        let has_sn = context.profile != Some(ProfileId::Uncompressed);
        if has_sn && context.told == Some((sn, mode)) {
            return Ok(());
        }
        let protected = row.iter().all(|said| said.protected);
        let mut feedback = Feedback { sn: sn & 0xFF, sn_bits: 8, ..Feedback::new(cid, AckType::Ack) };
        match context.profile {
            // RFC 5795, section 5.4.5: FEEDBACK-1 is all that there is. What was said counts once.
            Some(ProfileId::Uncompressed) => row.fill(Said::default()),
            Some(profile) if Form::of(profile) != Form::Rfc3095 && protected => {
                feedback.form = Form::of(profile);
                (feedback.sn, feedback.sn_bits) = (sn & 0x3FFF, 14);
                feedback.protected = true;
                if row.iter().all(|said| said.loss.is_some()) {
                    feedback.loss = row.iter_mut().filter_map(|said| said.loss.take()).max();
                }
            }
            Some(profile) if Form::of(profile) != Form::Rfc3095 && back > 0xFF => return Ok(()),
            Some(profile) if Form::of(profile) != Form::Rfc3095 => feedback.form = Form::of(profile),
            _ => {
                (feedback.sn, feedback.sn_bits) = (sn & 0xFFF, 12);
                feedback.mode = mode;
                feedback.protected = protected;
            }
        }
        if let Some(context) = self.contexts.get_mut(cid.index()) {
            context.told = Some((sn, mode));
        }
        tell(now, feedback, space, compressor)
    }

    fn row(&mut self, context: usize) -> &mut [Said] {
        let members = self.members.len();
        self.said.get_mut(context * members..(context + 1) * members).unwrap_or_default()
    }
}

impl Said {
    /// The newest packet with the bits of an SN is acknowledged, unless there was none in this context, or a newer one
    /// was before.
    fn acknowledge(&mut self, feedback: &Feedback, context: &Context) {
        let bits = feedback.sn_bits.min(16);
        if bits == 0 {
            return;
        }
        let mask = (1 << bits) - 1;
        let back = if context.profile == Some(ProfileId::Uncompressed) {
            0
        } else {
            context.newest.wrapping_sub(feedback.sn) & mask
        };
        let sent = context.newest.wrapping_sub(context.first);
        if back > sent {
            return;
        }
        let sn = context.newest.wrapping_sub(back);
        let is_newer = |before: u32| sn.wrapping_sub(before).cast_signed() > 0;
        if self.acknowledged.is_none_or(is_newer) {
            self.acknowledged = Some(sn);
        }
    }
}

/// How far behind the newest packet the oldest acknowledgment of all members is; `None` if one has none, or a stale one.
fn oldest(row: &[Said], context: &Context) -> Option<u32> {
    let mut oldest = None;
    for said in row {
        let back = context.newest.wrapping_sub(said.acknowledged?);
        if back >= STALE {
            return None;
        }
        oldest = oldest.max(Some(back));
    }
    oldest
}

/// The mode that all members ask for.
fn agreed(row: &[Said]) -> Option<Mode> {
    let mode = row.first()?.mode?;
    row.iter().all(|said| said.mode == Some(mode)).then_some(mode)
}

fn tell(
    now: Instant,
    feedback: Feedback,
    space: CidSpace,
    compressor: &mut Compressor<'_>,
) -> Result<(), FeedbackError> {
    let mut element = [0; MAX_ELEMENT];
    let len = feedback.write(space, &mut element).ok_or(FeedbackError::Malformed)?;
    let element = element.get(..len).unwrap_or_default();
    // The compressor takes elements without their type octets.
    let head = if element.first() == Some(&0b1111_0000) { 2 } else { 1 };
    compressor.receive_feedback(now, element.get(head..).unwrap_or_default())?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use thinair_rohc::{
        Channel, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig, DecompressorMemory,
        ProfileSet,
    };

    /// A compressor, with members that hear nothing but acknowledge what the test says.
    struct Sender {
        compressor: Compressor<'static>,
        combined: Combined,
        channel: Channel,
    }

    fn site(number: u8) -> SiteId {
        SiteId::new(number).unwrap()
    }

    impl Sender {
        fn new() -> Self {
            let channel = Channel::new(CidSpace::Small, 0, ProfileSet::v1()).unwrap();
            let config = CompressorConfig { seed: 5, ..CompressorConfig::new(channel) };
            let compressor = Compressor::new(config, CompressorMemory::owned(&channel, 0));
            let combined = Combined::new(vec![site(2), site(3), site(4)], channel.contexts());
            Self { compressor, combined, channel }
        }

        /// Sends packets of a flow, and returns the SN of the last one.
        fn send(&mut self, flow: u8, packets: usize) -> u32 {
            let mut packet = *b"\x60\0\0\0\0\x0C\x11\x40\xFD00000000000000A\xFD00000000000000B\x10\x00\x20\x00\0\x0C\x12\x34\0\0\0\0";
            packet[40] = flow;
            for _ in 0..packets {
                let mut out = [0; 128];
                let compressed = self.compressor.compress(Instant::ZERO, &packet, &mut out).unwrap();
                let sn = self.compressor.context(compressed.cid).unwrap().sn;
                self.combined.note_sent(&compressed, sn);
            }
            self.compressor.context(Cid::ZERO).unwrap().sn.unwrap()
        }

        fn say(&mut self, from: u8, feedback: Feedback) -> Result<(), FeedbackError> {
            let mut element = [0; MAX_ELEMENT];
            let len = feedback.write(self.channel.cids(), &mut element).unwrap();
            let (combined, compressor) = (&mut self.combined, &mut self.compressor);
            combined.receive(Instant::ZERO, site(from), &element[1..len], CidSpace::Small, compressor)
        }

        fn ack(&mut self, from: u8, sn: u32, mode: Mode) {
            let ack = Feedback::new(Cid::ZERO, AckType::Ack);
            let ack = Feedback { sn: sn & 0xFFF, sn_bits: 12, mode: Some(mode), protected: true, ..ack };
            self.say(from, ack).unwrap();
        }

        fn told(&self) -> Option<(u32, Option<Mode>)> {
            self.combined.contexts[0].told.map(|(sn, mode)| (sn & 0xFFFF, mode))
        }

        fn state(&self) -> (&'static str, Mode) {
            let context = self.compressor.context(Cid::ZERO).unwrap();
            (context.state, context.mode)
        }
    }

    #[test]
    fn the_compressor_is_told_what_all_have_acknowledged() {
        let mut sender = Sender::new();
        let sn = sender.send(1, 3);
        sender.ack(2, sn, Mode::Optimistic);
        sender.ack(3, sn - 1, Mode::Optimistic);
        sender.ack(3, sn - 2, Mode::Optimistic);
        assert_eq!((sender.told(), sender.state()), (None, ("IR", Mode::Unidirectional)));
        sender.ack(4, sn, Mode::Unidirectional);
        // A late one has not taken back the one before.
        assert_eq!(sender.told(), Some((sn - 1, None)));
        assert_eq!(sender.state(), ("SO", Mode::Unidirectional));
        sender.ack(4, sn, Mode::Optimistic);
        assert_eq!(sender.told(), Some((sn - 1, Some(Mode::Optimistic))));
        assert_eq!(sender.state(), ("SO", Mode::Optimistic));
        let newer = sender.send(1, 10);
        sender.ack(3, newer, Mode::Optimistic);
        sender.ack(4, newer - 3, Mode::Optimistic);
        assert_eq!(sender.told(), Some((sn, Some(Mode::Optimistic))));
    }

    #[test]
    fn one_that_asks_for_everything_is_enough_and_has_to_acknowledge_anew() {
        let mut sender = Sender::new();
        let sn = sender.send(1, 5);
        for member in [2, 3, 4] {
            sender.ack(member, sn, Mode::Optimistic);
        }
        assert_eq!(sender.state(), ("SO", Mode::Optimistic));
        let told = sender.told();
        sender.say(3, Feedback { protected: true, ..Feedback::new(Cid::ZERO, AckType::StaticNack) }).unwrap();
        let sn = sender.send(1, 1);
        assert_eq!(sender.state(), ("IR", Mode::Optimistic));
        for member in [2, 4] {
            sender.ack(member, sn, Mode::Optimistic);
        }
        assert_eq!((sender.told(), sender.state().0), (told, "IR"));
        sender.ack(3, sn, Mode::Optimistic);
        assert_eq!((sender.told().unwrap().0, sender.state().0), (sn & 0xFFFF, "SO"));
        // One that asks for another mode with it does not move the others.
        let nack = Feedback {
            mode: Some(Mode::Unidirectional),
            protected: true,
            ..Feedback::new(Cid::ZERO, AckType::Nack)
        };
        sender.say(4, nack).unwrap();
        assert_eq!(sender.state(), ("FO", Mode::Optimistic));
    }

    #[test]
    fn what_was_said_of_another_flow_does_not_count() {
        let mut sender = Sender::new();
        let sn = sender.send(1, 5);
        for member in [2, 3] {
            sender.ack(member, sn, Mode::Optimistic);
        }
        let sn = sender.send(2, 2);
        sender.ack(4, sn, Mode::Optimistic);
        assert_eq!((sender.told(), sender.state()), (None, ("IR", Mode::Unidirectional)));
        // Nor an SN before the first of the context.
        for member in [2, 3] {
            sender.ack(member, sn.wrapping_sub(2), Mode::Optimistic);
        }
        assert_eq!(sender.told(), None);
        for member in [2, 3] {
            sender.ack(member, sn, Mode::Optimistic);
        }
        assert_eq!(sender.told(), Some((sn & 0xFFFF, Some(Mode::Optimistic))));
    }

    #[test]
    fn an_old_acknowledgment_grows_stale() {
        let mut sender = Sender::new();
        let sn = sender.send(1, 5);
        for member in [2, 3] {
            sender.ack(member, sn, Mode::Optimistic);
        }
        let newer = sender.send(1, 4_095);
        sender.ack(4, newer, Mode::Optimistic);
        assert_eq!(sender.told(), Some((sn & 0xFFFF, Some(Mode::Optimistic))));
        let newest = sender.send(1, 70_000);
        sender.ack(4, newest, Mode::Optimistic);
        sender.ack(3, newest, Mode::Optimistic);
        assert_eq!(sender.told(), Some((sn & 0xFFFF, Some(Mode::Optimistic))));
        sender.ack(2, newest, Mode::Optimistic);
        assert_eq!(sender.told(), Some((newest & 0xFFFF, Some(Mode::Optimistic))));
    }

    #[test]
    fn a_stranger_is_not_heard() {
        let mut sender = Sender::new();
        sender.send(1, 1);
        let nack = Feedback { protected: true, ..Feedback::new(Cid::ZERO, AckType::StaticNack) };
        assert_eq!(sender.say(9, nack), Err(FeedbackError::Malformed));
        let other = Feedback { cid: Cid::new(3).unwrap(), ..nack };
        assert_eq!(sender.say(2, other), Err(FeedbackError::UnknownCid(other.cid)));
        // Decompressors make nothing else than what is read here.
        let config = DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(sender.channel) };
        let mut decompressor = Decompressor::new(config, DecompressorMemory::owned(&sender.channel, 0));
        let _ = decompressor.decompress(Instant::ZERO, &[0x05, 1, 2], &mut [0; 64]);
        let mut element = [0; MAX_ELEMENT];
        let len = decompressor.poll_feedback(&mut element).unwrap();
        let (combined, compressor) = (&mut sender.combined, &mut sender.compressor);
        let space = CidSpace::Small;
        assert_eq!(combined.receive(Instant::ZERO, site(2), &element[1..len], space, compressor), Ok(()));
    }
}
