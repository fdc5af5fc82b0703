//! Time at which an end requests an answer, since its packets have none.
//!
//! Packets of both directions are signs of life of each other, and cost nothing. An end whose packets are not answered
//! requests a sign of life: after 10 s, and each time that only the requested one comes, after eight times as long, up to
//! 6 hours. A packet from the other end begins again with 10 s.

use std::time::Duration;

use thinair_wire::time::Instant;

/// Time for which packets may be unanswered at first.
const FIRST: Duration = Duration::from_secs(10);
/// Factor of that time after each requested answer, and its maximum.
const FACTOR: u32 = 8;
const MOST: Duration = Duration::from_secs(6 * 3_600);
/// Time after the first unanswered packet until which others belong to the same response.
const RESPONSE: Duration = Duration::from_secs(1);

/// Signs of life of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Liveness {
    /// Time for which packets may be unanswered.
    pub(super) patience: Duration,
    /// Time of the last received packet.
    packet_at: Option<Instant>,
    /// Time of the first packet sent since anything was received.
    unanswered_at: Option<Instant>,
    /// True if a requested answer is pending.
    asked: bool,
}

impl Liveness {
    pub(super) const fn new() -> Self {
        Self { patience: FIRST, packet_at: None, unanswered_at: None, asked: false }
    }

    /// Records a sent packet. Returns the time at which an answer is to be requested unless anything is received. `None`:
    /// the packet is part of a response, which nobody answers.
    pub(super) fn sent(&mut self, now: Instant) -> Option<Instant> {
        let since = *self.unanswered_at.get_or_insert(now);
        let is_response =
            now.since(since) < RESPONSE && self.packet_at.is_some_and(|at| now.since(at) < FIRST);
        (!is_response).then(|| (since + self.patience).max(now))
    }

    /// Records a request for an answer.
    pub(super) fn asked(&mut self) {
        self.asked = true;
        self.unanswered_at = None;
    }

    /// Records a received datagram, with a packet or without.
    pub(super) fn heard(&mut self, now: Instant, has_packet: bool) {
        self.unanswered_at = None;
        let is_answer = std::mem::take(&mut self.asked);
        if has_packet {
            self.packet_at = Some(now);
            self.patience = FIRST;
        } else if is_answer {
            self.patience = (self.patience * FACTOR).min(MOST);
        }
    }
}
