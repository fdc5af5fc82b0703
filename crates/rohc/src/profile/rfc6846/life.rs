//! The life of a connection at the compressor of one direction, which detects its end.

use thinair_wire::time::Instant;

use super::state::{FIN, RST, SYN, TcpState};

/// State of a connection in its life.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    /// Time of its beginning, as [`moment`] encodes it.
    begun: u32,
    /// Time from its SYN to the first packet that acknowledges more: at least a round trip. 0 while it is unknown.
    handshake: u16,
    is_opening: bool,
    /// Number of packets since the beginning of its end, including the first one; 0 before.
    closing: u8,
}

impl Life {
    /// Records a packet that is sent after the `last` one.
    pub(super) fn note(&mut self, now: u32, next: &TcpState, last: &TcpState) {
        if next.rsf == SYN {
            *self = Self { begun: now, is_opening: true, ..Self::default() };
            return;
        }
        if self.is_opening && next.ack_flag && (!last.ack_flag || next.ack != last.ack) {
            self.is_opening = false;
            self.handshake = u16::try_from(now.wrapping_sub(self.begun)).unwrap_or(u16::MAX).max(1);
        }
        let has = |flag: u8| next.rsf & flag != 0;
        if self.is_closing() || has(FIN) || has(RST) {
            self.closing = self.closing.saturating_add(1);
        }
        self.is_opening &= !has(RST);
    }

    /// True if the other side has answered its SYN, as shown by a later packet.
    pub(super) fn has_shaken_hands(&self) -> bool {
        self.handshake > 0
    }

    /// True if it is between its beginning and its end: other packets than SYN, FIN and RST do not change it.
    #[inline]
    pub(super) fn is_established(&self) -> bool {
        !self.is_opening && !self.is_closing()
    }

    /// True if it has sent a FIN or RST.
    pub(super) fn is_closing(&self) -> bool {
        self.closing > 0
    }

    /// True if the packet just recorded is a FIN, or the next one after it, and no other one like it is in flight. If it is
    /// lost, TCP sends another one, and nothing else waits for it.
    pub(super) fn is_farewell(&self, next: &TcpState, last: &TcpState) -> bool {
        let numbers = |state: &TcpState| (state.seq, state.ack, state.rsf);
        matches!(self.closing, 1..=FAREWELLS) && next.rsf & RST == 0 && numbers(next) != numbers(last)
    }

    /// True if no more packets are expected: its end has begun, and it was `quiet` for as long as its handshake took, in which
    /// the FIN of the other side would have arrived and been acknowledged. An error costs a larger packet, and no more.
    pub(super) fn is_over(&self, quiet: u32) -> bool {
        let enough = if self.handshake > 0 { self.handshake } else { LONG };
        self.is_closing() && quiet >= u32::from(enough)
    }
}

/// A FIN, and the acknowledgment of that of the other side.
const FAREWELLS: u8 = 2;

/// Value for a handshake that was not seen: few links take longer than a second.
const LONG: u16 = 954;

/// A time in units of 1.05 ms (2^20 ns), of which 32 bits are enough.
#[inline]
pub(super) fn moment(now: Instant) -> u32 {
    (now.as_nanos() >> 20) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records packets: time, RST, SYN and FIN, acknowledgment number (0 for none). Returns how long the flow must be quiet to
    /// be over.
    fn over(packets: &[(u32, u8, u32)]) -> Option<u32> {
        let (mut life, mut last) = (Life::default(), TcpState::EMPTY);
        for &(at, rsf, ack) in packets {
            let next = TcpState { rsf, ack, ack_flag: ack > 0, ..TcpState::EMPTY };
            life.note(at, &next, &last);
            last = next;
        }
        (0..10_000).find(|quiet| life.is_over(*quiet))
    }

    #[test]
    fn who_closes_last_is_quiet_for_a_round_trip() {
        assert_eq!(over(&[(5, SYN, 0), (105, 0, 1), (130, FIN, 30)]), Some(100));
    }

    /// With Fast Open the response accompanies the SYN-ACK; the round trip ends with the acknowledgment of the FIN.
    #[test]
    fn a_response_at_once_tells_no_round_trip() {
        assert_eq!(over(&[(0, SYN, 21), (1, FIN, 21)]), Some(LONG.into()));
        assert_eq!(over(&[(0, SYN, 21), (1, FIN, 21), (80, 0, 22)]), Some(80));
    }

    #[test]
    fn a_reset_ends_it_and_a_syn_begins_it_anew() {
        assert_eq!(over(&[(0, SYN, 0), (80, RST, 0)]), Some(LONG.into()));
        assert_eq!(over(&[(0, SYN, 0), (80, 0, 5), (99, RST, 5)]), Some(80));
        assert_eq!(over(&[(0, SYN, 0), (80, 0, 5), (81, FIN, 5), (300, SYN, 0)]), None);
    }

    #[test]
    fn what_was_not_seen_from_its_syn_on_is_quiet_for_longer() {
        assert_eq!(over(&[(0, 0, 5), (80, 0, 6), (90, FIN, 7)]), Some(LONG.into()));
    }

    #[test]
    fn clocks_turn_round() {
        assert_eq!(over(&[(u32::MAX - 49, SYN, 0), (50, 0, 1), (60, FIN, 30)]), Some(100));
        assert_eq!(moment(Instant::from_nanos((1 << 52) + (7 << 20))), 7);
    }
}
