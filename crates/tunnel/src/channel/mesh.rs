//! Combination of the feedback of many decompressors, so that it looks like that of one to the compressor.
//!
//! Any NACK or STATIC-NACK goes to the compressor. An acknowledgment does when every member has acknowledged
//! the context: the one with the lowest SN, since all members have that packet at least. A mode is requested
//! when all request it. A member that is silent, or gone, therefore delays acknowledgments: the compressor
//! then repeats as often as without feedback, and stays in U-mode, which costs octets but no packets.
//! Refreshes continue in all modes, for members that cannot answer.

use thinair_rohc::cid::{Cid, CidSpace};
use thinair_rohc::feedback::{AckType, Feedback, FeedbackError, FeedbackForm, MAX_ELEMENT};
use thinair_rohc::{Compressed, Compressor, Instant, Mode, ProfileId};

use crate::unit::SiteId;

/// Age in SNs from which on an acknowledgment is ambiguous: FEEDBACK-2 has 12 bits of SN.
const STALE: u32 = 1 << 12;

/// Feedback of all members on the contexts of one compressor.
#[derive(Debug)]
pub(super) struct Combined {
    members: Vec<SiteId>,
    contexts: Vec<SentContext>,
    /// For each context, the feedback of each member.
    states: Vec<MemberFeedback>,
}

/// State of a CID at the sender.
#[derive(Clone, Copy, Debug, Default)]
struct SentContext {
    profile: Option<ProfileId>,
    /// SN of the newest packet: its low 16 bits, extended by a count of wraparounds.
    newest: u32,
    /// SN of the first packet of the context.
    first: u32,
    /// Last feedback passed to the compressor.
    passed: Option<(u32, Option<Mode>)>,
}

/// Feedback of a member on a context.
#[derive(Clone, Copy, Debug, Default)]
struct MemberFeedback {
    /// Newest acknowledged SN, extended by wraparounds.
    acknowledged: Option<u32>,
    /// Mode that it requested last, protected by a CRC.
    mode: Option<Mode>,
    protected: bool,
    /// Last LOSS option of profile 0x0181.
    loss: Option<u8>,
}

impl Combined {
    pub(super) fn new(members: Vec<SiteId>, contexts: usize) -> Self {
        let states = vec![MemberFeedback::default(); members.len() * contexts];
        Self { members, contexts: vec![SentContext::default(); contexts], states }
    }

    /// Forgets all feedback.
    pub(super) fn clear(&mut self) {
        self.contexts.fill(SentContext::default());
        self.states.fill(MemberFeedback::default());
    }

    /// Records a sent packet, and the SN of its context.
    pub(super) fn note_sent(&mut self, compressed: &Compressed, sn: Option<u32>) {
        let at = compressed.cid.index();
        let Some(context) = self.contexts.get_mut(at) else { return };
        let sn = sn.unwrap_or(0);
        let step = i32::from((sn as u16).wrapping_sub(context.newest as u16).cast_signed());
        let begins = compressed.format.is_initialization() && !compressed.refresh && !(0..=1).contains(&step);
        if context.profile != Some(compressed.profile) || begins {
            let first = 1 << 16 | (sn & 0xFFFF);
            *context = SentContext { profile: Some(compressed.profile), newest: first, first, passed: None };
            self.row(at).fill(MemberFeedback::default());
            return;
        }
        context.newest = context.newest.wrapping_add_signed(step);
    }

    /// Processes an element of a member, at once or when the other members have sent theirs.
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
        // As the compressor parses it: a decompressor without context does not know the profile.
        let asks = |feedback: &Feedback| feedback.ack == AckType::StaticNack && feedback.protected;
        let feedback = Feedback::read_as(FeedbackForm::of(known.profile), element, space)
            .or_else(|error| Feedback::read(element, space).ok().filter(asks).ok_or(error))?;
        let context = self.contexts.get(cid.index()).copied().ok_or(FeedbackError::UnknownCid(cid))?;
        let row = self.row(cid.index());
        let Some(state) = row.get_mut(member) else { return Err(FeedbackError::UnknownCid(cid)) };
        if feedback.protected {
            state.protected = true;
            state.mode = feedback.mode.or(state.mode);
        }
        if feedback.loss.is_some() {
            state.loss = feedback.loss;
        }
        if feedback.ack != AckType::Ack {
            state.acknowledged = None;
            let mode = agreed(row);
            return pass(now, Feedback { mode, ..feedback }, space, compressor);
        }
        state.acknowledge(&feedback, &context);
        self.pass_if_all(now, cid, space, compressor)
    }

    /// Passes the acknowledgment of all members to the compressor, if it is a newer one.
    fn pass_if_all(
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
        if has_sn && context.passed == Some((sn, mode)) {
            return Ok(());
        }
        let protected = row.iter().all(|state| state.protected);
        let mut feedback = Feedback { sn: sn & 0xFF, sn_bits: 8, ..Feedback::new(cid, AckType::Ack) };
        match context.profile {
            // RFC 5795, section 5.4.5: FEEDBACK-1 is the only format. Each is used once.
            Some(ProfileId::Uncompressed) => row.fill(MemberFeedback::default()),
            Some(profile) if FeedbackForm::of(profile) != FeedbackForm::Rfc3095 && protected => {
                feedback.form = FeedbackForm::of(profile);
                (feedback.sn, feedback.sn_bits) = (sn & 0x3FFF, 14);
                feedback.protected = true;
                if row.iter().all(|state| state.loss.is_some()) {
                    feedback.loss = row.iter_mut().filter_map(|state| state.loss.take()).max();
                }
            }
            Some(profile) if FeedbackForm::of(profile) != FeedbackForm::Rfc3095 => {
                if back > 0xFF {
                    return Ok(());
                }
                feedback.form = FeedbackForm::of(profile);
            }
            _ => {
                (feedback.sn, feedback.sn_bits) = (sn & 0xFFF, 12);
                feedback.mode = mode;
                feedback.protected = protected;
            }
        }
        if let Some(context) = self.contexts.get_mut(cid.index()) {
            context.passed = Some((sn, mode));
        }
        pass(now, feedback, space, compressor)
    }

    fn row(&mut self, context: usize) -> &mut [MemberFeedback] {
        let members = self.members.len();
        self.states.get_mut(context * members..(context + 1) * members).unwrap_or_default()
    }
}

impl MemberFeedback {
    /// Records the acknowledgment of the newest packet with these SN bits, unless the context has no such
    /// packet, or a newer one is acknowledged already.
    fn acknowledge(&mut self, feedback: &Feedback, context: &SentContext) {
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

/// Distance from the newest packet to the oldest acknowledgment of all members; `None` if one is missing or
/// stale.
fn oldest(row: &[MemberFeedback], context: &SentContext) -> Option<u32> {
    let mut oldest = None;
    for state in row {
        let back = context.newest.wrapping_sub(state.acknowledged?);
        if back >= STALE {
            return None;
        }
        oldest = oldest.max(Some(back));
    }
    oldest
}

/// Returns the mode that all members request.
fn agreed(row: &[MemberFeedback]) -> Option<Mode> {
    let mode = row.first()?.mode?;
    row.iter().all(|state| state.mode == Some(mode)).then_some(mode)
}

fn pass(
    now: Instant,
    feedback: Feedback,
    space: CidSpace,
    compressor: &mut Compressor<'_>,
) -> Result<(), FeedbackError> {
    let mut element = [0; MAX_ELEMENT];
    let len = feedback.write(space, &mut element).ok_or(FeedbackError::Malformed)?;
    let element = element.get(..len).unwrap_or_default();
    // The compressor expects elements without type octets.
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

    /// A compressor with members that acknowledge as the test demands.
    struct TestSender {
        compressor: Compressor<'static>,
        combined: Combined,
        channel: Channel,
    }

    fn site(number: u8) -> SiteId {
        SiteId::new(number).unwrap()
    }

    impl TestSender {
        fn new() -> Self {
            let channel = Channel::new(CidSpace::Small, 0, ProfileSet::v1()).unwrap();
            let config = CompressorConfig { seed: 5, ..CompressorConfig::new(channel) };
            let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(0)));
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

        fn passed(&self) -> Option<(u32, Option<Mode>)> {
            self.combined.contexts[0].passed.map(|(sn, mode)| (sn & 0xFFFF, mode))
        }

        fn state(&self) -> (&'static str, Mode) {
            let context = self.compressor.context(Cid::ZERO).unwrap();
            (context.state, context.mode)
        }
    }

    #[test]
    fn the_compressor_is_told_what_all_have_acknowledged() {
        let mut sender = TestSender::new();
        let sn = sender.send(1, 3);
        sender.ack(2, sn, Mode::Optimistic);
        sender.ack(3, sn - 1, Mode::Optimistic);
        sender.ack(3, sn - 2, Mode::Optimistic);
        assert_eq!((sender.passed(), sender.state()), (None, ("IR", Mode::Unidirectional)));
        sender.ack(4, sn, Mode::Unidirectional);
        // A late acknowledgment does not revert an earlier one.
        assert_eq!(sender.passed(), Some((sn - 1, None)));
        assert_eq!(sender.state(), ("SO", Mode::Unidirectional));
        sender.ack(4, sn, Mode::Optimistic);
        assert_eq!(sender.passed(), Some((sn - 1, Some(Mode::Optimistic))));
        assert_eq!(sender.state(), ("SO", Mode::Optimistic));
        let newer = sender.send(1, 10);
        sender.ack(3, newer, Mode::Optimistic);
        sender.ack(4, newer - 3, Mode::Optimistic);
        assert_eq!(sender.passed(), Some((sn, Some(Mode::Optimistic))));
    }

    #[test]
    fn one_that_asks_for_everything_is_enough_and_has_to_acknowledge_anew() {
        let mut sender = TestSender::new();
        let sn = sender.send(1, 5);
        for member in [2, 3, 4] {
            sender.ack(member, sn, Mode::Optimistic);
        }
        assert_eq!(sender.state(), ("SO", Mode::Optimistic));
        let passed = sender.passed();
        sender.say(3, Feedback { protected: true, ..Feedback::new(Cid::ZERO, AckType::StaticNack) }).unwrap();
        let sn = sender.send(1, 1);
        assert_eq!(sender.state(), ("IR", Mode::Optimistic));
        for member in [2, 4] {
            sender.ack(member, sn, Mode::Optimistic);
        }
        assert_eq!((sender.passed(), sender.state().0), (passed, "IR"));
        sender.ack(3, sn, Mode::Optimistic);
        assert_eq!((sender.passed().unwrap().0, sender.state().0), (sn & 0xFFFF, "SO"));
        // A NACK that requests another mode does not change that of the others.
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
        let mut sender = TestSender::new();
        let sn = sender.send(1, 5);
        for member in [2, 3] {
            sender.ack(member, sn, Mode::Optimistic);
        }
        let sn = sender.send(2, 2);
        sender.ack(4, sn, Mode::Optimistic);
        assert_eq!((sender.passed(), sender.state()), (None, ("IR", Mode::Unidirectional)));
        // Nor an SN before the first one of the context.
        for member in [2, 3] {
            sender.ack(member, sn.wrapping_sub(2), Mode::Optimistic);
        }
        assert_eq!(sender.passed(), None);
        for member in [2, 3] {
            sender.ack(member, sn, Mode::Optimistic);
        }
        assert_eq!(sender.passed(), Some((sn & 0xFFFF, Some(Mode::Optimistic))));
    }

    #[test]
    fn an_old_acknowledgment_grows_stale() {
        let mut sender = TestSender::new();
        let sn = sender.send(1, 5);
        for member in [2, 3] {
            sender.ack(member, sn, Mode::Optimistic);
        }
        let newer = sender.send(1, 4_095);
        sender.ack(4, newer, Mode::Optimistic);
        assert_eq!(sender.passed(), Some((sn & 0xFFFF, Some(Mode::Optimistic))));
        let newest = sender.send(1, 70_000);
        sender.ack(4, newest, Mode::Optimistic);
        sender.ack(3, newest, Mode::Optimistic);
        assert_eq!(sender.passed(), Some((sn & 0xFFFF, Some(Mode::Optimistic))));
        sender.ack(2, newest, Mode::Optimistic);
        assert_eq!(sender.passed(), Some((newest & 0xFFFF, Some(Mode::Optimistic))));
    }

    #[test]
    fn a_stranger_is_not_heard() {
        let mut sender = TestSender::new();
        sender.send(1, 1);
        let nack = Feedback { protected: true, ..Feedback::new(Cid::ZERO, AckType::StaticNack) };
        assert_eq!(sender.say(9, nack), Err(FeedbackError::Malformed));
        let other = Feedback { cid: Cid::new(3).unwrap(), ..nack };
        assert_eq!(sender.say(2, other), Err(FeedbackError::UnknownCid(other.cid)));
        // Decompressors send only formats that are parsed here.
        let config = DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(sender.channel) };
        let mut decompressor =
            Decompressor::new(config, DecompressorMemory::owned(sender.channel.sizes().blocks(0)));
        let _ = decompressor.decompress(Instant::ZERO, &[0x05, 1, 2], &mut [0; 64]);
        let mut element = [0; MAX_ELEMENT];
        let len = decompressor.poll_feedback(&mut element).unwrap();
        let (combined, compressor) = (&mut sender.combined, &mut sender.compressor);
        let space = CidSpace::Small;
        assert_eq!(combined.receive(Instant::ZERO, site(2), &element[1..len], space, compressor), Ok(()));
    }
}
