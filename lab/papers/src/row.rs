//! Figure of a paper: published, ours, those of peers, and the bar that ours must meet.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::paper::{Findings, Paper};

/// Version of [`PaperOutcome`] as JSON.
pub const SCHEMA: &str = "thinair.paper/1";

/// Measured figure beside published ones.
///
/// **The bar is met if `ours` is within `bar`; nothing else counts.** Without a bar the row is met; with a bar but
/// without a measurement it is missed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureRow {
    id: String,
    what: String,
    unit: Cow<'static, str>,
    theirs: Option<f64>,
    ours: Option<f64>,
    peers: BTreeMap<String, f64>,
    bar: Option<Bar>,
    met: bool,
}

/// Range that a figure must lie in, both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bar {
    /// Maximum; `None`: no upper end.
    pub max: Option<f64>,
    /// Minimum; `None`: no lower end.
    pub min: Option<f64>,
}

impl FigureRow {
    /// Creates a row with a figure of this run, `None` if it could not be measured, in `unit`; an empty unit is a bare
    /// count.
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

    /// Sets the published figure.
    #[must_use]
    pub fn theirs(self, theirs: impl Into<Option<f64>>) -> Self {
        Self { theirs: theirs.into(), ..self }
    }

    /// Adds the figure of a peer, if there is one.
    #[must_use]
    pub fn peer(mut self, name: impl Into<String>, value: impl Into<Option<f64>>) -> Self {
        if let Some(value) = value.into() {
            self.peers.insert(name.into(), value);
        }
        self
    }

    /// Sets a bar of at most `max`; none without a value.
    #[must_use]
    pub fn at_most(self, max: impl Into<Option<f64>>) -> Self {
        match max.into() {
            Some(max) => self.within(Bar { max: Some(max), min: None }),
            None => self,
        }
    }

    /// Sets a bar.
    #[must_use]
    pub fn within(self, bar: Bar) -> Self {
        let met = self.ours.is_some_and(|ours| bar.holds(ours));
        Self { bar: Some(bar), met, ..self }
    }

    /// Sets a bar, if there is one.
    pub(crate) fn held(self, bar: Option<Bar>) -> Self {
        match bar {
            Some(bar) => self.within(bar),
            None => self,
        }
    }

    /// Id of the figure, unique in its paper.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Description of the figure.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Unit; empty for a bare count.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// Published figure.
    pub fn stated(&self) -> Option<f64> {
        self.theirs
    }

    /// Figure of this run.
    pub fn ours(&self) -> Option<f64> {
        self.ours
    }

    /// Names of the peers.
    pub fn peers(&self) -> impl Iterator<Item = &str> {
        self.peers.keys().map(String::as_str)
    }

    /// Figure of a peer.
    pub fn of_peer(&self, name: &str) -> Option<f64> {
        self.peers.get(name).copied()
    }

    /// Bar that the figure must meet.
    pub fn bar(&self) -> Option<Bar> {
        self.bar
    }

    /// True if the bar is met.
    pub fn met(&self) -> bool {
        self.met
    }
}

impl Bar {
    /// True if a figure is in the range.
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

/// All results of a run, as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct PaperOutcome<'f> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Name of the paper.
    pub paper: &'static str,
    /// All figures.
    pub rows: &'f [FigureRow],
}

/// Results of a paper, for serialization.
pub fn outcome<'f>(paper: &Paper, findings: &'f Findings) -> PaperOutcome<'f> {
    PaperOutcome { schema: SCHEMA, paper: paper.about().name, rows: &findings.rows }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(ours: Option<f64>) -> FigureRow {
        FigureRow::new("a/v4/carried", "GET", "octets", ours)
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
        let row = FigureRow::new("x", "", "", None);
        assert_eq!(
            serde_json::to_value(&row).unwrap(),
            json!({
                "id": "x", "what": "", "unit": "", "theirs": null, "ours": null, "peers": {}, "bar": null, "met": true,
            })
        );
    }
}
