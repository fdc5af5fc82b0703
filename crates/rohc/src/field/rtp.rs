//! Detection of RTP among datagrams of UDP and UDP-Lite.

/// Packets of one SSRC in a row that must look like RTP before a flow is taken for it.
const PROOFS: u8 = 3;

/// SSRCs that are told apart while a flow is looked at.
const STREAMS: usize = 4;

/// Packets of a flow that are looked at because they could be RTP.
const LOOKS: u8 = 16;

/// Largest step of sequence numbers from packet to packet.
const MAX_GUESS_STEP: u16 = 16;

/// Largest step, either way, of a flow that was taken for RTP. One that takes a larger step must prove itself again: what
/// has no sequence numbers hardly ever takes a smaller one.
const MAX_SN_STEP: u16 = 128;

/// True if a flow that was taken for RTP goes on as such with a step of its sequence number.
pub(crate) const fn is_step(step: u16) -> bool {
    step.wrapping_add(MAX_SN_STEP) <= 2 * MAX_SN_STEP
}

/// Signs that a flow is RTP: few SSRCs, and sequence numbers of each that go on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guess {
    /// The newest first.
    streams: [Stream; STREAMS],
    looks: u8,
}

/// Packets of one SSRC.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    ssrc: u32,
    sn: u16,
    proofs: u8,
}

impl Guess {
    /// What the first packet of a flow shows.
    pub(crate) fn of(header: Option<(u32, u16)>) -> Self {
        let mut guess = Self::default();
        guess.look(header);
        guess
    }

    /// Looks at SSRC and sequence number of a datagram that may be RTP, and returns whether what has its SSRC is. RTCP and others may
    /// stand between.
    pub(crate) fn look(&mut self, header: Option<(u32, u16)>) -> bool {
        let Some((ssrc, sn)) = header else { return false };
        let at = self.streams.iter().position(|stream| stream.ssrc == ssrc).unwrap_or(STREAMS - 1);
        if let Some(streams) = self.streams.get_mut(..=at) {
            streams.rotate_right(1);
        }
        let before = self.streams[0];
        let goes_on = before.ssrc == ssrc && (1..=MAX_GUESS_STEP).contains(&sn.wrapping_sub(before.sn));
        let proofs = if goes_on { before.proofs.saturating_add(1) } else { 0 };
        self.streams[0] = Stream { ssrc, sn, proofs };
        let is_rtp = proofs >= PROOFS;
        // Where one stream was, another one may follow.
        self.looks = if is_rtp { 0 } else { self.looks.saturating_add(1) };
        is_rtp
    }

    /// Whether more packets are to be looked at.
    pub(crate) fn goes_on(&self) -> bool {
        self.looks < LOOKS
    }
}
