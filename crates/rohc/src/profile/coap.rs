//! Profile 0x0181: CoAP over UDP over IP. `docs/coap-profile.md` specifies it.
//!
//! The state that both ends share for a flow is a `CoapState` with its templates; the headers of one packet are
//! `HeaderFields`. A function per format moves fields to octets and back (`formats`). Fields that a packet does not
//! carry are inferred from the state (`header`), and the compressor learns from traffic which fields need not be
//! carried (`learn`).

mod base;
pub(crate) mod compress;
mod confirm;
pub(crate) mod decompress;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod fast_path_test;
mod flow;
mod formats;
#[cfg(test)]
mod formats_test;
mod header;
mod ip_id;
mod learn;
mod long;
mod message;
mod next;
mod note;
pub mod outline;
mod ports;
mod receiver;
mod replicate;
mod state;
mod template;
mod trial;

use thinair_wire::header::coap::Type;

pub use base::{Base, BaseEnd, BasePath, BaseTemplate};
pub(crate) use message::CoapMessage;
use outline::{Holes, MAX_DYNAMIC};
pub(crate) use state::CoapPath;
pub use state::{ChecksumMode, IpIdMode, MessageIdMode, Template, TokenMode};
use state::{CoapToken, FlowLabel, TEMPLATES, Templates};

use crate::id::ProfileId;
use crate::storage::{Room, Slots};

/// Option Number of Observe. RFC 7641, section 2.
const OBSERVE: u16 = 6;

/// Fields that a packet carries although the context determines them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Carries {
    ip_id: bool,
    message_id: bool,
    request: bool,
    token: bool,
    numbers: bool,
    message_type: bool,
    /// All 16 bits of the MSN.
    msn: bool,
    /// The port of the client.
    port: bool,
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
        port: false,
    };

    #[inline]
    fn is_nothing(&self) -> bool {
        let Self { ip_id, message_id, request, token, numbers, message_type, msn, port } = *self;
        // One word.
        [ip_id, message_id, request, token, numbers, message_type, msn, port] == [false; 8]
    }

    /// Fields that IR, `co_common` and `co_repair` always carry.
    const EVERYTHING: Self = Self {
        ip_id: true,
        message_id: true,
        request: true,
        token: true,
        numbers: true,
        message_type: true,
        msn: true,
        port: false,
    };
}

/// Smallest kind of format that has the fields a packet must carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Least {
    Pt0,
    Pt1,
    Pt2,
    CoCommon,
    CoRepair,
}

/// Differences between the addresses of an IR-CR packet and of its base.
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

/// Step of the MSN up to which no port can be missed: the first packets of a flow carry it.
const MOST_LOST: i32 = 4;

/// Interval of the MSNs that `k` bits may stand for, and of those that are tried in addition: the distance of its
/// start below the last MSN, and the number of turns of the bits that may be added.
#[inline]
const fn msn_interval(k: u32) -> (u32, u32) {
    match k {
        0..=3 => (0, 0),
        // pt_0, which uses no turns, and the formats with a template.
        4 => (2, 7),
        16.. => (1 << 15, 0),
        _ => (8, 3),
    }
}

/// Headers of one packet, as short formats represent them.
#[derive(Clone, Copy, Debug)]
struct HeaderFields<'p> {
    msn: u32,
    template: u8,
    message_type: Type,
    message_id: u16,
    /// IP-ID, or the folded flow label.
    ip_id: u16,
    flow_label: FlowLabel,
    /// MSN of the message of the other direction that the packet refers to.
    request_msn: u16,
    names_request: bool,
    /// Port of the client.
    port: u16,
    checksum: u16,
    check: u16,
    token: CoapToken,
    carries: Carries,
    /// The UDP checksum is carried, in an IR packet of a context that elides it elsewhere.
    has_checksum: bool,
    /// The dynamic options, and their values: numbers, and octets.
    holes: Holes,
    numbers: [u32; MAX_DYNAMIC],
    octets: [&'p [u8]; MAX_DYNAMIC],
    // Parts of co_common, co_repair and IR that are present.
    has_ip: bool,
    has_control: bool,
    has_definition: bool,
    keep: bool,
}

/// Further fields of `co_common`, `co_repair`, IR and IR-CR.
#[derive(Clone, Copy, Debug)]
struct Whole<'p> {
    next: CoapPath,
    definition: Template,
    outline: &'p [u8],
    control_crc: u8,
    base: u8,
    differs: bool,
    differences: Differences,
    header_crc: u8,
}

impl HeaderFields<'_> {
    #[inline]
    fn new(template: u8) -> Self {
        Self {
            msn: 0,
            template,
            message_type: Type::Confirmable,
            message_id: 0,
            ip_id: 0,
            flow_label: FlowLabel::ZERO,
            request_msn: 0,
            names_request: false,
            port: 0,
            checksum: 0,
            check: 0,
            token: CoapToken::EMPTY,
            carries: Carries::NOTHING,
            has_checksum: false,
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
    fn new(next: CoapPath) -> Self {
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

/// Memory that the contexts of an end share.
#[derive(Debug)]
pub(crate) struct CoapMemory<'m> {
    templates: Templates<'m>,
    pub(super) bases: Slots<'m, Base>,
    /// Number of flows since the start that count as CoAP by a parse alone.
    guessed: u32,
}

impl Room for Template {
    const EMPTY: Self = Self::EMPTY;
    const PROFILES: &'static [ProfileId] = &[ProfileId::Coap];
    const PER_CONTEXT: usize = 4;
    type Shared<'m> = CoapMemory<'m>;

    /// As many as the flows of a small channel can use, four per flow of a large one.
    fn count(contexts: usize) -> usize {
        (contexts * TEMPLATES).min(1_024).max(contexts * 4).min(usize::from(u16::MAX))
    }

    fn share(rooms: Slots<'_, Self>) -> CoapMemory<'_> {
        CoapMemory { templates: Templates::new(rooms), bases: Slots::Lent(&mut []), guessed: 0 }
    }
}
