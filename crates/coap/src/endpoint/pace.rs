//! Rate of messages that are not acknowledged: RFC 7252, section 4.7; RFC 7641, section 4.5.1; CoCoA.
//!
//! After a Non-confirmable message nothing is sent to a peer for its RTO, if there is a measured one. Otherwise the
//! pause follows from PROBING_RATE after a request, and is 3 s after a notification. A rate of PROBING_RATE is always
//! allowed.

use core::hash::Hash;
use core::time::Duration;

use thinair_wire::time::Instant;

use super::peer::PeerState;
use super::{Endpoint, Timed};
use crate::congestion::CongestionControl;
use crate::request::Response;
use crate::table::SlotKey;
use crate::token::Token;

/// Pause after a notification to a client whose round-trip time is not known. RFC 7641, section 4.5.1.
pub(super) const UNKNOWN: Duration = Duration::from_secs(3);

/// Number of unanswered requests after which the measurement no longer counts.
const UNHEARD: u8 = 7;

/// Rate control of one peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerPace {
    /// Time at which the next Non-confirmable notification may be sent.
    free: Instant,
    /// Notifications since the latest Confirmable message.
    pub(super) since_confirmable: u8,
    /// Non-confirmable requests since the latest message of the peer.
    pub(super) unheard: u8,
    /// True if a timer runs until `free`.
    armed: bool,
}

impl<P> PeerState<P> {
    /// Returns the pause after a Non-confirmable message of `octets` octets; `unknown` if there is no measurement.
    pub(super) fn pause(&self, now: Instant, octets: usize, unknown: Duration) -> Duration {
        let rate = u64::from(self.transmission.probing_rate.max(1));
        let probing = Duration::from_nanos((octets as u64).saturating_mul(1_000_000_000) / rate);
        match self.controller.has_sample() && self.pace.unheard < UNHEARD {
            true => probing.min(self.controller.rto(now, &self.transmission)),
            false => probing.min(unknown),
        }
    }
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// True if congestion control requires the next notification to be Confirmable.
    pub(super) fn is_to_be_confirmed(&self, peer: SlotKey) -> bool {
        self.peers.get(peer).is_some_and(|peer| {
            peer.pace.since_confirmable.saturating_add(1) >= peer.controller.confirm_every()
        })
    }

    /// True if a Non-confirmable notification has to wait; then starts the timer that sends it.
    pub(super) fn wait_for_pace(&mut self, now: Instant, peer_key: SlotKey) -> bool {
        let Some(peer) = self.peers.get_mut(peer_key).filter(|peer| peer.pace.free > now) else {
            return false;
        };
        if !core::mem::replace(&mut peer.pace.armed, true) {
            self.timers.insert((peer.pace.free, Timed::Pace(peer_key)));
        }
        true
    }

    /// Records a Non-confirmable notification of `octets` octets that was sent.
    pub(super) fn notified(&mut self, now: Instant, peer: SlotKey, octets: usize) {
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.pace.free = now + peer.pause(now, octets, UNKNOWN);
            peer.pace.since_confirmable = peer.pace.since_confirmable.saturating_add(1);
        }
    }

    /// Sends the states that have waited longest, as far as the rate allows.
    pub(super) fn pace_timeout(&mut self, now: Instant, peer: SlotKey) {
        let Some(state) = self.peers.get_mut(peer) else { return };
        state.pace.armed = false;
        loop {
            let of_peer =
                self.by_observer.range((peer, Token::EMPTY)..).take_while(|((other, _), _)| *other == peer);
            let waiting =
                of_peer.filter_map(|(_, &key)| Some((self.observers.get(key)?.waits_since()?, key)));
            let Some((_, key)) = waiting.min() else { return };
            if !self.is_to_be_confirmed(peer) && self.wait_for_pace(now, peer) {
                return;
            }
            let Some(state) = self.observers.get_mut(key).and_then(|observer| observer.waiting.take()) else {
                return;
            };
            let response =
                Response { code: state.code, options: state.options, payload: state.payload.into() };
            let _ = self.notify(now, crate::ObserverId(key), &response, false);
        }
    }
}
