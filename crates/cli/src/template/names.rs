//! Keywords of template files and their values, for reading and writing.

use thinair_rohc::profile::coap::{ChecksumMode, IpIdMode, MessageIdMode};
use thinair_wire::header::coap::Type;

/// Keywords of one field.
pub(super) type Words<T> = [(&'static str, T)];

/// `Raw` has no keyword: a base for flows with wrong checksums is useless.
pub(super) const CHECKSUMS: &Words<ChecksumMode> =
    &[("carried", ChecksumMode::Carried), ("elided", ChecksumMode::Elided), ("zero", ChecksumMode::Zero)];

pub(super) const IP_IDS: &Words<IpIdMode> = &[
    ("constant", IpIdMode::Constant),
    ("counted", IpIdMode::Counted),
    ("lsb", IpIdMode::Lsb),
    ("irregular", IpIdMode::Irregular),
];

pub(super) const MESSAGE_IDS: &Words<MessageIdMode> = &[
    ("counted", MessageIdMode::Counted),
    ("of-request", MessageIdMode::OfRequest),
    ("irregular", MessageIdMode::Irregular),
];

pub(super) const TYPES: &Words<Type> = &[
    ("CON", Type::Confirmable),
    ("NON", Type::NonConfirmable),
    ("ACK", Type::Acknowledgement),
    ("RST", Type::Reset),
];

/// CoAP Option Numbers registry of IANA, with the entries of RFC 7252, 7641, 7959, 7967, 8516, 8613, 8768,
/// 9175 and 9177.
pub(super) const OPTIONS: &Words<u16> = &[
    ("If-Match", 1),
    ("Uri-Host", 3),
    ("ETag", 4),
    ("If-None-Match", 5),
    ("Observe", 6),
    ("Uri-Port", 7),
    ("Location-Path", 8),
    ("OSCORE", 9),
    ("Uri-Path", 11),
    ("Content-Format", 12),
    ("Max-Age", 14),
    ("Uri-Query", 15),
    ("Hop-Limit", 16),
    ("Accept", 17),
    ("Q-Block1", 19),
    ("Location-Query", 20),
    ("Block2", 23),
    ("Block1", 27),
    ("Size2", 28),
    ("Q-Block2", 31),
    ("Proxy-Uri", 35),
    ("Proxy-Scheme", 39),
    ("Size1", 60),
    ("Echo", 252),
    ("No-Response", 258),
    ("Request-Tag", 292),
];

/// Options with uint values.
const UINTS: &[u16] = &[6, 7, 12, 14, 16, 17, 19, 23, 27, 28, 31, 60, 258];

/// True if the value of an option is usually written as a number.
pub(super) fn is_uint(option: u16) -> bool {
    UINTS.contains(&option)
}

/// Returns the keyword of a value.
pub(super) fn word<T: PartialEq>(words: &Words<T>, value: &T) -> Option<&'static str> {
    words.iter().find(|(_, of)| of == value).map(|(word, _)| *word)
}

/// Returns the value of a keyword in a field. The error lists all keywords.
pub(super) fn value<T: Copy>(words: &Words<T>, field: &str, word: &str) -> anyhow::Result<T> {
    let found = words.iter().find(|(known, _)| *known == word).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        anyhow::anyhow!("invalid `{field}` \"{word}\"; expected one of {}", known.join(", "))
    })
}
