//! One figure: theirs, ours, those of peers, and the bar that ours must meet.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::paper::{Findings, Paper};

/// Version of [`Outcome`] as JSON.
pub const SCHEMA: &str = "thinair.paper/1";

/// What was measured, beside what others have published.
///
/// **Whether the bar is met is the comparison of `ours` with `bar`, and nothing else.** Without a bar there is
/// nothing to miss, so it is met; a bar over something that could not be measured is not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    id: String,
    what: String,
    unit: Cow<'static, str>,
    theirs: Option<f64>,
    ours: Option<f64>,
    peers: BTreeMap<String, f64>,
    bar: Option<Bar>,
    met: bool,
}

/// The range that a figure must lie in, both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bar {
    /// At most; none if there is no upper end.
    pub max: Option<f64>,
    /// At least; none if there is no lower end.
    pub min: Option<f64>,
}

impl Row {
    /// A figure of this run, `None` if it could not be measured, in `unit`; empty for a bare count.
    pub fn new(
        id: impl Into<String>,
        what: impl Into<String>,
        unit: impl Into<Cow<'static, str>>,
        ours: impl Into<Option<f64>>,
    ) -> Self {
        Self {
            id: id.into(),
            what: what.into(),
            unit: unit.into(),
            theirs: None,
            ours: ours.into(),
            peers: BTreeMap::new(),
            bar: None,
            met: true,
        }
    }

    /// What the paper states.
    #[must_use]
    pub fn theirs(self, theirs: impl Into<Option<f64>>) -> Self {
        Self { theirs: theirs.into(), ..self }
    }

    /// What somebody else needs; left out if it is not known.
    #[must_use]
    pub fn peer(mut self, name: impl Into<String>, value: impl Into<Option<f64>>) -> Self {
        if let Some(value) = value.into() {
            self.peers.insert(name.into(), value);
        }
        self
    }

    /// Holds the figure to at most `max`; no bar if there is none.
    #[must_use]
    pub fn at_most(self, max: impl Into<Option<f64>>) -> Self {
        match max.into() {
            Some(max) => self.within(Bar { max: Some(max), min: None }),
            None => self,
        }
    }

    /// Holds the figure to a range.
    #[must_use]
    pub fn within(self, bar: Bar) -> Self {
        let met = self.ours.is_some_and(|ours| bar.holds(ours));
        Self { bar: Some(bar), met, ..self }
    }

    /// Holds the figure to a range, if there is one.
    pub(crate) fn held(self, bar: Option<Bar>) -> Self {
        match bar {
            Some(bar) => self.within(bar),
            None => self,
        }
    }

    /// Names the figure within its paper.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it is, in words.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Its unit; empty for a bare count.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// What the paper states.
    pub fn stated(&self) -> Option<f64> {
        self.theirs
    }

    /// What this run has measured.
    pub fn ours(&self) -> Option<f64> {
        self.ours
    }

    /// What somebody else needs.
    pub fn of_peer(&self, name: &str) -> Option<f64> {
        self.peers.get(name).copied()
    }

    /// The bar.
    pub fn bar(&self) -> Option<Bar> {
        self.bar
    }

    /// Whether the bar is met.
    pub fn met(&self) -> bool {
        self.met
    }
}

impl Bar {
    /// Whether a figure is in the range.
    pub fn holds(&self, figure: f64) -> bool {
        self.max.is_none_or(|max| figure <= max) && self.min.is_none_or(|min| figure >= min)
    }
}

impl std::fmt::Display for Bar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.min, self.max) {
            (None, Some(max)) => write!(f, "at most {max}"),
            (Some(min), None) => write!(f, "at least {min}"),
            (Some(min), Some(max)) => write!(f, "{min} to {max}"),
            (None, None) => write!(f, "none"),
        }
    }
}

/// Everything that a run has found, as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome<'f> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The name of the paper.
    pub paper: &'static str,
    /// Every figure.
    pub rows: &'f [Row],
}

/// The findings of a paper, to be serialised.
pub fn outcome<'f>(paper: &Paper, findings: &'f Findings) -> Outcome<'f> {
    Outcome { schema: SCHEMA, paper: paper.about().name, rows: &findings.rows }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(ours: Option<f64>) -> Row {
        Row::new("a/v4/carried", "GET", "octets", ours)
    }

    #[test]
    fn a_bar_is_met_up_to_its_ends() {
        for (ours, met) in [(2.9, true), (3.0, true), (3.000_000_1, false)] {
            assert_eq!(row(Some(ours)).at_most(3.0).met(), met, "{ours}");
        }
        let range = Bar { max: Some(5.0), min: Some(3.0) };
        for (ours, met) in [(2.9, false), (3.0, true), (5.0, true), (5.1, false), (f64::NAN, false)] {
            assert_eq!(row(Some(ours)).within(range).met(), met, "{ours}");
        }
    }

    #[test]
    fn what_was_not_measured_meets_no_bar_and_misses_none() {
        assert!(!row(None).at_most(3.0).met());
        assert!(row(None).met());
        assert!(row(Some(1e9)).at_most(None).met());
    }

    #[test]
    fn a_row_has_every_key_of_the_schema() {
        let row = row(Some(3.0)).theirs(5.0).peer("schc", 3.0).peer("6lowpan", None).at_most(3.0);
        assert_eq!(
            serde_json::to_value(&row).unwrap(),
            json!({
                "id": "a/v4/carried", "what": "GET", "unit": "octets", "theirs": 5.0, "ours": 3.0,
                "peers": {"schc": 3.0}, "bar": {"max": 3.0, "min": null}, "met": true,
            })
        );
        let row = Row::new("x", "", "", None);
        assert_eq!(
            serde_json::to_value(&row).unwrap(),
            json!({
                "id": "x", "what": "", "unit": "", "theirs": null, "ours": null, "peers": {}, "bar": null, "met": true,
            })
        );
    }
}
