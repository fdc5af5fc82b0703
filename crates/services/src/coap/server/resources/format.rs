//! Content-Formats. RFC 7252, section 12.3, and the registry of IANA.

/// `text/plain;charset=utf-8`.
pub(super) const TEXT: u16 = 0;
pub(super) const LINKS: u16 = 40;
pub(super) const XML: u16 = 41;
pub(super) const OCTETS: u16 = 42;
pub(super) const JSON: u16 = 50;
pub(super) const CBOR: u16 = 60;

/// Formats by the end of a file's name. Of several for a format the first one is given to a file that is made.
const BY_EXTENSION: &[(&str, u16)] = &[
    ("txt", TEXT),
    ("log", TEXT),
    ("md", TEXT),
    ("csv", TEXT),
    ("wlnk", LINKS),
    ("xml", XML),
    ("bin", OCTETS),
    ("gif", 21),
    ("jpg", 22),
    ("jpeg", 22),
    ("png", 23),
    ("exi", 47),
    ("json", JSON),
    ("cbor", CBOR),
    ("senml", 110),
    ("senmlc", 112),
    ("js", 20_002),
    ("css", 20_000),
    ("svg", 30_000),
];

/// The format of a file with this name. Nothing: it has an end that no format goes with, or none.
pub(super) fn of_name(name: &str) -> Option<u16> {
    let (_, extension) = name.rsplit_once('.')?;
    let known = BY_EXTENSION.iter().find(|(known, _)| extension.eq_ignore_ascii_case(known));
    known.map(|(_, format)| *format)
}

/// The end of the name of a file in this format.
pub(super) fn extension(format: Option<u16>) -> &'static str {
    let known = BY_EXTENSION.iter().find(|(_, known)| Some(*known) == format);
    known.map_or("bin", |(extension, _)| *extension)
}
