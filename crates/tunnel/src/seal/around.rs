//! How many octets are around a body, and in what is no body: said once, for those who seal and for those who plan.

use super::group::ANNOUNCEMENT_LENGTH;
use super::handshake::REQUEST_LENGTH;
use super::header::{KIND, LOW_COUNTER, REST_OF_COUNTER, WHOSE};
use super::two_way::Over;
use crate::plan::{Carrier, Others, Plan, Security, Suite};

/// Octets that a seal adds to a body, and what else it has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// Octets of the clear header of nearly every datagram.
    pub header: usize,
    /// How many more the header has where the whole counter travels; 0: there is no counter.
    pub rest_of_counter: usize,
    /// Octets of the tag; 0: there is none.
    pub tag: usize,
    /// Octets of the longest datagram that has no body, without which bodies are not opened; 0: there is none.
    pub longest_message: usize,
}

impl Around {
    /// What the seal of a plan adds. In the open it is nothing.
    pub fn of(plan: &Plan) -> Self {
        match (&plan.security, &plan.others) {
            (Security::Open, _) => Self { header: 0, rest_of_counter: 0, tag: 0, longest_message: 0 },
            (Security::Insecure, Others::Peers(_)) => Self::insecure_peers(),
            (Security::Insecure, Others::Mesh(_)) => Self::insecure_group(),
            (Security::Key { suite, .. }, Others::Peers(_)) => Self::two_way(Over::of(&plan.carrier), *suite),
            (Security::Key { suite, .. }, Others::Mesh(_)) => Self::group(*suite),
        }
    }

    /// One peer is at the other end of a line, and needs no octet that says whose a body is.
    pub(super) const fn two_way(over: Over, suite: Suite) -> Self {
        let whose = match over {
            Over::Datagrams => WHOSE,
            Over::Line => 0,
        };
        Self::sealed(whose, suite, REQUEST_LENGTH)
    }

    pub(super) const fn group(suite: Suite) -> Self {
        Self::sealed(WHOSE, suite, ANNOUNCEMENT_LENGTH)
    }

    pub(super) const fn insecure_peers() -> Self {
        Self { header: KIND, rest_of_counter: 0, tag: 0, longest_message: 0 }
    }

    pub(super) const fn insecure_group() -> Self {
        Self { header: KIND + WHOSE, rest_of_counter: 0, tag: 0, longest_message: 0 }
    }

    const fn sealed(whose: usize, suite: Suite, longest_message: usize) -> Self {
        Self {
            header: KIND + whose + LOW_COUNTER,
            rest_of_counter: REST_OF_COUNTER,
            tag: suite.tag(),
            longest_message,
        }
    }

    /// Octets of header and tag of nearly every datagram.
    pub const fn usual(self) -> usize {
        self.header + self.tag
    }

    /// Octets of header and tag at most: where the whole counter travels.
    pub const fn most(self) -> usize {
        self.usual() + self.rest_of_counter
    }
}

impl Over {
    /// What bodies of peers go over.
    pub const fn of(carrier: &Carrier) -> Self {
        match carrier {
            Carrier::Serial { .. } => Self::Line,
            Carrier::Udp { .. } | Carrier::File { .. } => Self::Datagrams,
        }
    }
}
