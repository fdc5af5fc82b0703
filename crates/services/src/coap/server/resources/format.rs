//! Content-Formats. RFC 7252, section 12.3, and the registry of IANA.

/// `text/plain;charset=utf-8`.
pub(super) const TEXT: u16 = 0;
pub(super) const LINKS: u16 = 40;
pub(super) const XML: u16 = 41;
pub(super) const OCTETS: u16 = 42;
pub(super) const JSON: u16 = 50;
pub(super) const CBOR: u16 = 60;

/// Content-Formats by file name extension. The first extension of a format is used for new files.
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

/// Returns the Content-Format of a file with this name. `None` if its extension is unknown or absent.
pub(super) fn of_name(name: &str) -> Option<u16> {
    let (_, extension) = name.rsplit_once('.')?;
    let known = BY_EXTENSION.iter().find(|(known, _)| extension.eq_ignore_ascii_case(known));
    known.map(|(_, format)| *format)
}

/// Returns the extension of a file of this format.
pub(super) fn extension(format: Option<u16>) -> &'static str {
    let known = BY_EXTENSION.iter().find(|(_, known)| Some(*known) == format);
    known.map_or("bin", |(extension, _)| *extension)
}
