//! Requests that wait for their turn: many ends may ask at once, as behind a power cut, and each answer takes several curve
//! operations. The socket is emptied meanwhile, and packets do not wait for all of them.

use std::collections::{HashMap, VecDeque};

use super::PEERS;
use crate::handshake::RequestHeader;
use crate::{AddressPair, Key};

/// A request with a valid proof, or a paid one.
pub(super) struct KeptRequest {
    pub(super) from: Option<AddressPair>,
    pub(super) header: RequestHeader,
    pub(super) gate: Key,
    pub(super) is_paid: bool,
    pub(super) is_loaded: bool,
    pub(super) datagram: Vec<u8>,
}

/// Kept requests, the addresses that have waited longest first. Each has the newest request of its address: an initiator has
/// given up earlier ones.
#[derive(Default)]
pub(super) struct Backlog {
    order: VecDeque<Option<AddressPair>>,
    requests: HashMap<Option<AddressPair>, KeptRequest>,
}

impl Backlog {
    /// Keeps a request, if there is room: for one of each peer.
    pub(super) fn keep(&mut self, request: KeptRequest) {
        let from = request.from;
        match self.requests.get_mut(&from) {
            // Anybody can send from that address, but not with a cookie for it.
            Some(kept) if kept.is_paid && !request.is_paid => {}
            Some(kept) => *kept = request,
            None if self.order.len() < PEERS => {
                self.order.push_back(from);
                self.requests.insert(from, request);
            }
            None => {}
        }
    }

    /// Takes the request of the address that has waited longest. The memory of an empty backlog is free.
    pub(super) fn take(&mut self) -> Option<KeptRequest> {
        let Some(from) = self.order.pop_front() else {
            *self = Self::default();
            return None;
        };
        self.requests.remove(&from)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}
