//! Writer of the JSON document. Small objects take one line each, so that many flows stay readable.

use std::io::{self, Write};

use serde::Serialize as _;
use serde_json::Serializer;
use serde_json::ser::Formatter;
use thinair_analyze::Outcome;

/// Nesting level from which values stand on one line: that of an element of `flows[].schemes`.
const LEVELS: usize = 5;

/// Members of the document whose elements take one line each.
const LISTS: [&str; 1] = ["other_flows"];

/// Nesting level of the values of their elements.
const LEVELS_OF_LISTS: usize = 3;

/// Writes the document, in many small pieces.
pub(super) fn write(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    outcome.serialize(&mut Serializer::with_formatter(&mut *out, LineFormatter::default()))?;
    out.write_all(b"\n")
}

/// JSON formatter that indents by two spaces per level and keeps inner values on one line.
#[derive(Debug, Default)]
struct LineFormatter {
    /// Number of open brackets.
    level: usize,
    /// True if the innermost bracket has a value.
    has_value: bool,
    /// True while a key of the document is written.
    is_member: bool,
    /// True within a member listed in [`LISTS`].
    is_list: bool,
}

impl LineFormatter {
    fn open<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.level += 1;
        self.has_value = false;
        out.write_all(bracket)
    }

    fn close<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        let breaks = self.has_value && !self.is_one_line();
        self.level -= 1;
        self.has_value = true;
        if breaks {
            self.line(out)?;
        }
        out.write_all(bracket)
    }

    fn next<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        let comma: &[u8] = if is_first { b"" } else { b"," };
        out.write_all(comma)?;
        match self.is_one_line() {
            true if is_first => Ok(()),
            true => out.write_all(b" "),
            false => self.line(out),
        }
    }

    fn is_one_line(&self) -> bool {
        self.level >= if self.is_list { LEVELS_OF_LISTS } else { LEVELS }
    }

    fn line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..self.level).try_for_each(|_| out.write_all(b"  "))
    }
}

impl Formatter for LineFormatter {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        self.next(out, is_first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        self.is_member = self.level == 1;
        self.next(out, is_first)
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.is_member = false;
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        if self.is_member {
            self.is_list = LISTS.contains(&fragment);
        }
        out.write_all(fragment.as_bytes())
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_objects_stand_on_one_line() {
        let document = json!({
            "flows": [{"packets": 2, "schemes": [{"mode": null, "types": {"IR": 1}}, {}]}],
            "other_flows": [{"src": "a", "bytes_out": [1, 2]}, {"src": "b", "bytes_out": []}],
            "totals": {"packets": 3, "odd": {}},
        });
        let mut out = Vec::new();
        document.serialize(&mut Serializer::with_formatter(&mut out, LineFormatter::default())).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), document);
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert!(lines.contains(&"{\"mode\": null, \"types\": {\"IR\": 1}},"), "{text}");
        let (a, b) = ("{\"bytes_out\": [1, 2], \"src\": \"a\"},", "{\"bytes_out\": [], \"src\": \"b\"}");
        assert!(lines.contains(&a) && lines.contains(&b), "{text}");
        assert!(lines.contains(&"\"packets\": 3") && lines.contains(&"\"odd\": {},"), "{text}");
    }
}
