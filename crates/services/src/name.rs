//! The path of a URI as the name of a file.

use std::path::{Path, PathBuf};

/// Longest name, in octets: NAME_MAX of Linux.
const LONGEST: usize = 255;

/// Largest number of segments of a path.
const DEEPEST: usize = 32;

/// Name of a file or folder: every segment is a valid name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    path: PathBuf,
    segments: Vec<String>,
    /// True if it ends with an empty segment, as in `/folder/`.
    is_folder: bool,
}

impl Name {
    /// Creates a name of these segments, without percent-encoding. `None` if it is not valid: an empty segment before the
    /// last, a segment that begins with a dot, contains a slash or a zero, or is not UTF-8.
    pub fn of<'s>(path: impl IntoIterator<Item = &'s [u8]>) -> Option<Self> {
        let mut segments = Vec::new();
        let mut is_folder = false;
        for segment in path {
            let segment = std::str::from_utf8(segment).ok()?;
            if is_folder || segments.len() >= DEEPEST {
                return None;
            }
            if segment.is_empty() {
                is_folder = true;
                continue;
            }
            // This excludes `.` and `..`, too.
            if segment.starts_with('.') || segment.contains(['/', '\0']) || segment.len() > LONGEST {
                return None;
            }
            segments.push(segment.to_owned());
        }
        let mut path: PathBuf = segments.iter().collect();
        if segments.is_empty() {
            (path, is_folder) = (PathBuf::from("."), true);
        }
        Some(Self { path, segments, is_folder })
    }

    /// Returns the path for the system; `.` for the root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if it ends with an empty segment, as in `/folder/`.
    pub fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// Returns the last segment; an empty text for the root.
    pub fn last(&self) -> &str {
        self.segments.last().map_or("", String::as_str)
    }

    /// Returns the path of the folder that contains it.
    pub fn above(&self) -> &Path {
        match self.path.parent() {
            Some(above) if !above.as_os_str().is_empty() => above,
            _ => Path::new("."),
        }
    }

    /// Returns the segments of the path, in order.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// Returns it as the target of a link, without a trailing slash.
    pub fn target(&self) -> String {
        self.segments.iter().map(|segment| format!("/{}", escaped(segment))).collect()
    }
}

/// Percent-encodes a segment for a URI, except unreserved characters. RFC 3986, section 2.3.
pub fn escaped(segment: &str) -> String {
    let mut text = String::with_capacity(segment.len());
    for octet in segment.bytes() {
        if octet.is_ascii_alphanumeric() || b"-._~".contains(&octet) {
            text.push(char::from(octet));
        } else {
            text.push_str(&format!("%{octet:02X}"));
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn name(segments: &[&[u8]]) -> Option<Name> {
        Name::of(segments.iter().copied())
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = [b'a'; 256];
        for segments in [
            &[&b".."[..]][..],
            &[b"a", b"..", b"b"],
            &[b"."],
            &[b".hidden"],
            &[b"a/b"],
            &[b"..\\", b"/"],
            &[b"a\0"],
            &[b"", b"a"],
            &[b"a", b"", b"b"],
            &[b"a", b"", b""],
            &[b"\xFF\xFE"],
            &[&long],
            &[&b"a"[..]; 33],
        ] {
            assert_eq!(name(segments), None, "{segments:?}");
        }
    }

    #[test]
    fn names_are_paths_and_targets() {
        let file = name(&[b"a b", "\u{fc}".as_bytes()]).unwrap();
        assert_eq!((file.path(), file.above()), (Path::new("a b/\u{fc}"), Path::new("a b")));
        assert_eq!((file.last(), &*file.target(), file.is_folder()), ("\u{fc}", "/a%20b/%C3%BC", false));
        let folder = name(&[b"a", b""]).unwrap();
        assert_eq!(
            (folder.path(), folder.above(), folder.is_folder()),
            (Path::new("a"), Path::new("."), true)
        );
        for root in [name(&[]), name(&[b""])] {
            assert_eq!(root.unwrap().path(), Path::new("."));
        }
    }
}
