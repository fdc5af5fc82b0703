//! Overhead of encryption, and sizes of messages without a body, for encryption and planning.

use super::group::ANNOUNCEMENT_LENGTH;
use super::handshake::{PUBLIC_REQUEST_LENGTH, REQUEST_LENGTH};
use super::header::{KIND, LOW_COUNTER, REST_OF_COUNTER, WHOSE};
use super::two_way::Over;
use crate::Suite;

/// Octets that encryption adds to a body, and the size of its longest message. Default: none, without encryption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// Usual length of the clear header.
    pub header: usize,
    /// Additional length of a header with the whole counter; 0: no counter.
    pub rest_of_counter: usize,
    /// Length of the tag; 0: no tag.
    pub tag: usize,
    /// Length of the longest datagram without a body that is required for decrypting bodies; 0: none.
    pub longest_message: usize,
}

impl Around {
    /// For peers with shared keys. On a line with a single peer, no octet for its session is required.
    pub const fn two_way(over: Over, suite: Suite) -> Self {
        let whose = match over {
            Over::Datagrams => WHOSE,
            Over::Line => 0,
        };
        Self::sealed(whose, suite, REQUEST_LENGTH)
    }

    /// For peers with public keys.
    pub const fn public_keys(over: Over, suite: Suite) -> Self {
        Self { longest_message: PUBLIC_REQUEST_LENGTH, ..Self::two_way(over, suite) }
    }

    /// For sites that broadcast.
    pub const fn group(suite: Suite) -> Self {
        Self::sealed(WHOSE, suite, ANNOUNCEMENT_LENGTH)
    }

    /// For peers, without protection.
    pub const fn insecure_peers() -> Self {
        Self { header: KIND, rest_of_counter: 0, tag: 0, longest_message: 0 }
    }

    /// For sites that broadcast, without protection.
    pub const fn insecure_group() -> Self {
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

    /// Usual length of header and tag.
    pub const fn usual(self) -> usize {
        self.header + self.tag
    }

    /// Maximum length of header and tag, with the whole counter.
    pub const fn most(self) -> usize {
        self.usual() + self.rest_of_counter
    }
}
