//! Bars of quick runs: intervals from runs with other seeds, for the figures that carry a claim.
//!
//! A quick run is too short for the bars of a full one. It must reproduce what quick runs give: `scripts/quick-bars`
//! measures mean and standard deviation over the seeds of the plan, and writes them into it.

use serde::Deserialize;

use crate::paper::PaperError;
use crate::row::{Bar, FigureRow};

/// Half of an interval, in standard deviations. With eight seeds, one normal figure in 500 is outside.
const DEVIATIONS: f64 = 5.0;

/// Share of the mean by which an interval is wider, for what the plan rounds.
const ROUNDING: f64 = 1e-5;

/// Bars in place of those of a full run.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct QuickForm {
    /// First and last seed of the runs, for `scripts/quick-bars`.
    #[serde(rename = "seeds")]
    _seeds: [u64; 2],
    bar: Vec<QuickBar>,
}

/// Mean and standard deviation of a figure over the seeds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuickBar {
    id: String,
    mean: f64,
    deviation: f64,
}

impl QuickForm {
    /// Sets the bars of a quick run.
    ///
    /// # Errors
    /// A figure with a bar has no row.
    pub(super) fn hold(&self, rows: &mut [FigureRow]) -> Result<(), PaperError> {
        for bar in &self.bar {
            let row = rows.iter_mut().find(|row| row.id() == bar.id);
            let row = row.ok_or_else(|| PaperError::Form(format!("no figure {} for its bar", bar.id)))?;
            *row = row.clone().within(bar.interval());
        }
        Ok(())
    }
}

impl QuickBar {
    fn interval(&self) -> Bar {
        let half = DEVIATIONS * self.deviation + ROUNDING * self.mean.abs();
        Bar { min: Some(self.mean - half), max: Some(self.mean + half) }
    }
}
