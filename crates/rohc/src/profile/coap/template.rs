//! Templates, and the behaviors of fields: what a context has of CoAP messages of one kind. Section 4 of `docs/coap-profile.md`.

use thinair_wire::crc::Check;
use thinair_wire::header::coap::{Code, Type};
use thinair_wire::word_enum;

use super::outline::{Holes, MAX_DYNAMIC};
use crate::exchange::CoapToken;

/// Largest number of references that a template keeps.
const REFERENCES: usize = 3;

/// Treatment of the UDP checksum. A control field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumMode {
    /// The checksum is zero: unused.
    #[default]
    Zero,
    /// The checksum is correct and carried; where a format has a CHECK, in that.
    Carried,
    /// The checksum is correct, and recomputed by the decompressor.
    Elided,
    /// The checksum is carried unchanged, correct or not.
    Raw,
}

/// Behavior of the IP-ID. A control field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpIdMode {
    /// Constant; also used for IPv6, which has none.
    #[default]
    Constant,
    /// It counts with the MSN.
    Counted,
    /// Its 8 low bits are in every packet.
    Lsb,
    /// Every packet carries all of it.
    Irregular,
}

/// Port of the client, which changes where a client takes a new one for each request. A control field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PortMode {
    /// Both ports are those of the flow.
    #[default]
    Fixed,
    /// The source port is the client's.
    Source,
    /// The destination port is the client's: that of the message that a packet refers to.
    Destination,
    /// The source port is the client's, and in every packet.
    SourceInEach,
}

/// Behavior of the Message ID of a template. A control field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageIdMode {
    /// It counts with the MSN, in the space of its Type: own (CON, NON) or echoed (ACK, RST).
    #[default]
    Counted,
    /// Equals that of the message of the other direction that the packet refers to.
    OfRequest,
    /// Every packet carries all of it.
    Irregular,
}

/// Behavior of the token of a template. A control field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenMode {
    /// Constant.
    #[default]
    Static,
    /// A uint in its shortest form that counts with the MSN.
    CountedUint,
    /// A uint of TKL octets that counts with the MSN.
    Counted,
    /// Equals that of the message of the other direction that the packet refers to.
    OfRequest,
    /// TKL octets, in every packet.
    Irregular,
}

impl PortMode {
    /// The end that is not a server takes its ports from a range. `is_server`: source and destination port are those of servers.
    pub(super) fn of_servers(is_server: [bool; 2]) -> Self {
        match is_server {
            [false, true] => Self::Source,
            [true, false] => Self::Destination,
            _ => Self::Fixed,
        }
    }
}

word_enum!(ChecksumMode: Zero Carried Elided, Raw);
// Readers reject values without a mode before.
word_enum!(IpIdMode: Constant Counted Lsb, Irregular);
word_enum!(PortMode: Fixed Source Destination, SourceInEach);
word_enum!(MessageIdMode: Counted OfRequest, Irregular);
word_enum!(TokenMode: Static CountedUint Counted OfRequest, Irregular);

/// Messages of one kind within a flow, such as requests for a resource, notifications, or empty ACKs.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// The token. If it counts, the anchor of the uint: its value minus the MSN.
    pub(super) token: CoapToken,
    pub(super) message_type: Type,
    pub(super) code: Code,
    pub(super) token_mode: TokenMode,
    pub(super) message_id: MessageIdMode,
    /// Every packet has 8 bits for the message of the other direction, which does not follow from the MSN.
    pub(super) names: bool,
    /// Index of its outline in the arena.
    pub(super) at: u8,
    pub(super) len: u8,
    /// Number of dynamic options in the outline.
    pub(super) holes: u8,
    /// Its packets refer to a message of the other direction.
    pub(super) refers: bool,
    /// CRC states over the constant fields: CRC-3, CRC-7, CRC-8.
    pub(super) check: [u8; 3],
    /// Anchors of the counting numbers, in their order.
    pub(super) anchors: [u32; REFERENCES],
    /// MSN of its last packet. For a free place, index of the next one.
    pub(super) used: u32,
    /// Compressor: packets left that must define it, and packets left that must carry its token and numbers.
    pub(super) left: u8,
    pub(super) anchors_left: u8,
    /// Compressor: number of packets that used it, at most 255; and recent wrong predictions.
    pub(super) uses: u8,
    pub(super) misses: u8,
    /// Compressor: number of packets in a row in which a carried field has counted; length of such a run from which
    /// on the field is a counter, as a power of two; and the last step of the number.
    pub(super) run: u8,
    pub(super) patience: u8,
    pub(super) step: u8,
    /// Compressor: the last number of a class without anchor.
    pub(super) last: u32,
}

impl Template {
    /// No template.
    pub const EMPTY: Self = Self {
        token: CoapToken { octets: [0; 8], len: 0 },
        message_type: Type::Confirmable,
        code: Code::EMPTY,
        token_mode: TokenMode::Static,
        message_id: MessageIdMode::Counted,
        names: false,
        at: 0,
        len: 0,
        holes: 0,
        refers: false,
        check: [0; 3],
        anchors: [0; REFERENCES],
        used: 0,
        left: 0,
        anchors_left: 0,
        uses: 0,
        misses: 0,
        run: 0,
        patience: 4,
        step: 0,
        last: 0,
    };

    /// True if the Message ID is an own one: the sender has chosen it.
    #[inline]
    pub(super) fn is_own(message_type: Type) -> bool {
        matches!(message_type, Type::Confirmable | Type::NonConfirmable)
    }

    /// True if its tokens may have that length.
    #[inline]
    pub(super) fn has_token_of(&self, len: u8) -> bool {
        self.token.len == len || matches!(self.token_mode, TokenMode::CountedUint | TokenMode::OfRequest)
    }

    /// True if the outline has no dynamic option.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.holes == 0
    }

    /// True if short packets without changes carry octets for it, or for an option.
    #[inline]
    pub(super) fn is_irregular(&self, holes: &Holes) -> bool {
        self.has_irregular_field() || !self.is_plain() && holes.are_irregular()
    }

    /// True if short packets without changes carry octets for it, apart from its options.
    #[inline]
    pub(super) fn has_irregular_field(&self) -> bool {
        self.names || self.message_id == MessageIdMode::Irregular || self.token_mode == TokenMode::Irregular
    }

    /// True if two definitions of it have the same fields; the outline stands beside them.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        let fields = |of: &Self| (of.message_type, of.code, of.message_id, of.token_mode, of.names);
        fields(self) == fields(other) && (self.token_mode != TokenMode::Static || self.token == other.token)
    }

    /// Sets the fields that follow from the other fields and the outline.
    pub(super) fn settle(&mut self, outline: &[u8]) {
        self.len = outline.len() as u8;
        let holes = Holes::of(outline, MAX_DYNAMIC as u8);
        self.holes = holes.as_slice().len() as u8;
        if matches!(self.token_mode, TokenMode::CountedUint | TokenMode::OfRequest) {
            // Its tokens have no length of their own. Checks cover the length, and must not depend on which packets
            // have arrived.
            self.token.len = 0;
        }
        self.refers = self.message_id == MessageIdMode::OfRequest
            || self.token_mode == TokenMode::OfRequest
            || holes.of_request();
        let modes = (self.token_mode as u8) << 4 | u8::from(self.names) << 2 | self.message_id as u8;
        let head = [self.code.0, modes, self.token.len];
        let token = if self.token_mode == TokenMode::Static { self.token.as_slice() } else { &[] };
        for (state, check) in self.check.iter_mut().zip([Check::Crc3, Check::Crc7, Check::Crc8]) {
            *state = check.update(check.update(check.of(&head), token), outline);
        }
    }
}
