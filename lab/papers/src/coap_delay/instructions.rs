//! Instructions of one call, as counted by `make bench`: a program cannot count its own.

use super::exchange::CallCase;

/// Lines of `profile,type,half,side` and a count for each build; `#` begins a comment.
const COUNTED: &str = include_str!("instructions.csv");

/// Function that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallSide {
    Compress,
    Decompress,
}

pub(super) const SIDES: [CallSide; 2] = [CallSide::Compress, CallSide::Decompress];

impl CallSide {
    /// Name in row ids.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Compress => "compress",
            Self::Decompress => "decompress",
        }
    }
}

/// Instructions by build; `None` where they have not been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallInstructions {
    pub(super) x86_64: Option<u32>,
    /// Built for speed.
    pub(super) thumbv7em_o3: Option<u32>,
    /// Built for size.
    pub(super) thumbv7em_oz: Option<u32>,
}

impl CallInstructions {
    /// Counts with the names of the builds in row ids.
    pub(super) fn by_build(&self) -> [(&'static str, Option<u32>); 3] {
        [("x86-64", self.x86_64), ("thumbv7em-o3", self.thumbv7em_o3), ("thumbv7em-oz", self.thumbv7em_oz)]
    }
}

/// Commit whose code was counted, in the head of the file.
pub(super) fn commit() -> &'static str {
    COUNTED.lines().find_map(|line| line.strip_prefix("# Commit ")?.strip_suffix('.')).unwrap_or("unknown")
}

/// Counts of a call.
pub(super) fn of(case: CallCase, side: CallSide) -> CallInstructions {
    let key = [case.profile.name(), case.kind.name(), case.half.name(), side.name()];
    COUNTED.lines().find_map(|line| count(line, &key)).unwrap_or_default()
}

fn count(line: &str, key: &[&str; 4]) -> Option<CallInstructions> {
    let mut fields = line.split(',');
    let is_it = key.iter().all(|key| fields.next() == Some(key));
    let mut next = || fields.next()?.parse().ok();
    is_it.then(|| CallInstructions { x86_64: next(), thumbv7em_o3: next(), thumbv7em_oz: next() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_one_line_and_every_line_has_three_counts() {
        let mut lines = COUNTED.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.next(), Some("profile,type,half,side,x86_64,thumbv7em_o3,thumbv7em_oz"));
        let calls = CallCase::all().flat_map(|case| SIDES.map(|side| (case, side)));
        for (case, side) in calls {
            let line = lines.next().unwrap();
            let key = [case.profile.name(), case.kind.name(), case.half.name(), side.name()].join(",");
            let counts: Vec<u32> =
                line.strip_prefix(&key).unwrap().split(',').skip(1).map(|n| n.parse().unwrap()).collect();
            assert_eq!(counts.len(), 3, "{line}");
            assert!(counts.iter().all(|count| (100..100_000).contains(count)), "{line}");
            let found = of(case, side).by_build().map(|(_, count)| count.unwrap());
            assert_eq!(found[..], counts[..], "{line}");
        }
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn the_file_says_what_prints_it() {
        assert!(COUNTED.starts_with("# ") && COUNTED.contains("scripts/delay"));
        assert!(commit().len() >= 7 && commit() != "unknown", "{}", commit());
    }
}
