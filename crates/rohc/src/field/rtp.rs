//! Detection of RTP among datagrams of UDP and UDP-Lite.

/// Number of packets of one SSRC in a row that must look like RTP before a flow counts as RTP.
const PROOFS: u8 = 3;

/// Number of SSRCs that are distinguished during detection.
const STREAMS: usize = 4;

/// Number of packets of a flow that are examined for RTP.
const LOOKS: u8 = 16;

/// Largest step of sequence numbers from packet to packet.
const MAX_GUESS_STEP: u16 = 16;

/// Largest step, in either direction, of a flow that counts as RTP. A flow with a larger step is detected anew: data
/// without sequence numbers hardly ever has a smaller one.
const MAX_SN_STEP: u16 = 128;

/// True if a flow that counts as RTP still does after a step of its sequence number.
pub(crate) const fn is_step(step: u16) -> bool {
    step.wrapping_add(MAX_SN_STEP) <= 2 * MAX_SN_STEP
}

/// Evidence that a flow is RTP: few SSRCs, each with continuing sequence numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guess {
    /// State of the SSRCs, the newest first.
    streams: [SsrcState; STREAMS],
    looks: u8,
}

/// State of one SSRC.
#[derive(Clone, Copy, Debug, Default)]
struct SsrcState {
    ssrc: u32,
    sn: u16,
    proofs: u8,
}

impl Guess {
    /// Returns the evidence of the first packet of a flow.
    pub(crate) fn of(header: Option<(u32, u16)>) -> Self {
        let mut guess = Self::default();
        guess.look(header);
        guess
    }

    /// Examines a datagram, and returns true if its SSRC has proved to be RTP. RTCP and others may stand between.
    pub(crate) fn look(&mut self, header: Option<(u32, u16)>) -> bool {
        let Some((ssrc, sn)) = header else { return false };
        let at = self.streams.iter().position(|stream| stream.ssrc == ssrc).unwrap_or(STREAMS - 1);
        if let Some(streams) = self.streams.get_mut(..=at) {
            streams.rotate_right(1);
        }
        let before = self.streams[0];
        let goes_on = before.ssrc == ssrc && (1..=MAX_GUESS_STEP).contains(&sn.wrapping_sub(before.sn));
        let proofs = if goes_on { before.proofs.saturating_add(1) } else { 0 };
        self.streams[0] = SsrcState { ssrc, sn, proofs };
        let is_rtp = proofs >= PROOFS;
        // After one stream, another one may follow.
        self.looks = if is_rtp { 0 } else { self.looks.saturating_add(1) };
        is_rtp
    }

    /// True if more packets are to be examined.
    pub(crate) fn goes_on(&self) -> bool {
        self.looks < LOOKS
    }
}
