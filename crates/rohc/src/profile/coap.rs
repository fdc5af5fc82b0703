//! Profile 0x0081: CoAP over UDP over IP. `docs/coap-profile.md` specifies it.
//!
//! What both ends know of a flow is a `State` with its templates; the headers of one packet are `Fields`. A function
//! per format moves fields to octets and back (`formats`), what a packet does not carry is inferred from the state
//! (`header`), and the compressor learns from traffic what need not be carried (`learn`).

mod base;
pub(crate) mod compress;
mod confirm;
pub(crate) mod decompress;
mod flow;
mod formats;
#[cfg(test)]
mod formats_test;
mod header;
mod learn;
mod message;
pub mod outline;
mod replicate;
mod state;

use thinair_wire::header::coap::Type;

pub use base::{Base, BaseEnd, BasePath, BaseTemplate};
pub(crate) use message::Message;
use outline::{Holes, MAX_DYNAMIC};
pub(crate) use state::Path;
use state::TEMPLATES;
pub(crate) use state::Templates;
use state::Token;
pub use state::{ChecksumMode, IpIdMode, MessageIdMode, Template, TokenMode};

use crate::channel::Channel;

/// Option Number of Observe. RFC 7641, section 2.
const OBSERVE: u16 = 6;

/// Fields that a packet carries although the context would tell them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Carries {
    ip_id: bool,
    message_id: bool,
    request: bool,
    token: bool,
    numbers: bool,
    message_type: bool,
    /// The MSN with all its 16 bits.
    msn: bool,
    /// The UDP checksum, although it is elided elsewhere: in IR.
    checksum: bool,
}

impl Carries {
    const NOTHING: Self = Self {
        ip_id: false,
        message_id: false,
        request: false,
        token: false,
        numbers: false,
        message_type: false,
        msn: false,
        checksum: false,
    };

    #[inline]
    fn is_nothing(&self) -> bool {
        let Self { ip_id, message_id, request, token, numbers, message_type, msn, checksum } = *self;
        // One word.
        let all = [ip_id, message_id, request, token, numbers, message_type, msn, checksum];
        u64::from_ne_bytes(all.map(u8::from)) == 0
    }

    /// What IR, `co_common` and `co_repair` carry.
    const EVERYTHING: Self = Self {
        ip_id: true,
        message_id: true,
        request: true,
        token: true,
        numbers: true,
        message_type: true,
        msn: true,
        checksum: false,
    };
}

/// The least format that says what a packet must say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Least {
    Pt0,
    Pt1,
    Pt2,
    CoCommon,
    CoRepair,
}

/// What of the addresses of an IR-CR packet differs from its base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Differences {
    source_port: bool,
    destination_port: bool,
    source: bool,
    destination: bool,
    /// The template is not the first, or the Flow Label differs.
    template: bool,
    flow_label: bool,
}

/// The interval of the MSNs that `k` bits can mean, and what is tried behind it: how far it begins below the last
/// MSN, and how many turns of the bits may be added.
#[inline]
const fn msn_interval(k: u32) -> (u32, u32) {
    match k {
        0..=3 => (0, 0),
        // pt_0, which does without turns, and the formats with a template.
        4 => (2, 7),
        16.. => (1 << 15, 0),
        _ => (8, 3),
    }
}

/// Packets from the `last` MSN to another one, for the pace of a flow.
#[inline]
fn steps(last: u32, msn: u32) -> u32 {
    msn.wrapping_sub(last).cast_signed().max(1).cast_unsigned()
}

/// The headers of one packet, as short formats see them.
#[derive(Clone, Copy, Debug)]
struct Fields<'p> {
    msn: u32,
    template: u8,
    message_type: Type,
    message_id: u16,
    ip_id: u16,
    /// MSN of the message of the other direction that the packet names.
    request_msn: u16,
    names_request: bool,
    checksum: u16,
    check: u16,
    token: Token,
    carries: Carries,
    /// The dynamic options, and their values: numbers, and octets.
    holes: Holes,
    numbers: [u32; MAX_DYNAMIC],
    octets: [&'p [u8]; MAX_DYNAMIC],
    // The parts of co_common, co_repair and IR that are there.
    has_ip: bool,
    has_control: bool,
    has_definition: bool,
    keep: bool,
}

/// Further fields of `co_common`, `co_repair`, IR and IR-CR.
#[derive(Clone, Copy, Debug)]
struct Whole<'p> {
    next: Path,
    definition: Template,
    outline: &'p [u8],
    control_crc: u8,
    base: u8,
    differs: bool,
    differences: Differences,
    header_crc: u8,
}

impl Fields<'_> {
    #[inline]
    fn new(template: u8) -> Self {
        Self {
            msn: 0,
            template,
            message_type: Type::Confirmable,
            message_id: 0,
            ip_id: 0,
            request_msn: 0,
            names_request: false,
            checksum: 0,
            check: 0,
            token: Token::EMPTY,
            carries: Carries::NOTHING,
            holes: Holes::NONE,
            numbers: [0; MAX_DYNAMIC],
            octets: [&[]; MAX_DYNAMIC],
            has_ip: false,
            has_control: false,
            has_definition: false,
            keep: false,
        }
    }
}

impl Whole<'_> {
    fn new(next: Path) -> Self {
        Self {
            next,
            definition: Template::EMPTY,
            outline: &[],
            control_crc: 0,
            base: 0,
            differs: false,
            differences: Differences::default(),
            header_crc: 0,
        }
    }
}

/// Templates for the flows of a channel: as many as the flows of a small channel can take, four a flow of a large one.
pub(crate) fn templates_for(channel: &Channel) -> usize {
    (channel.contexts() * TEMPLATES).min(1_024).max(channel.contexts() * 4).min(usize::from(u16::MAX))
}
