//! Figures by their ids: measured and published ones.

use std::collections::BTreeMap;

use crate::paper::PaperError;
use crate::row::Bar;

/// Measured figure.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeasuredFigure {
    pub(crate) value: Option<f64>,
    /// Half of its 95 % interval.
    pub(crate) half: Option<f64>,
    /// Bar, where it depends on measurements.
    pub(crate) bar: Option<Bar>,
    /// Figures of others that were measured beside it.
    pub(crate) peers: BTreeMap<String, f64>,
    /// Published figure, where it depends on measurements.
    pub(crate) theirs: Option<f64>,
    /// Text for `{note}` in a plan.
    pub(crate) note: String,
    /// Text to show instead of the value.
    pub(crate) text: Option<String>,
}

impl MeasuredFigure {
    pub(crate) fn peer(&mut self, name: &str, value: impl Into<Option<f64>>) -> &mut Self {
        if let Some(value) = value.into() {
            self.peers.insert(name.to_owned(), value);
        }
        self
    }
}

/// All measured figures. Figures without a row in the plan can only appear in texts and plots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    by_id: BTreeMap<String, MeasuredFigure>,
    curves: BTreeMap<String, Vec<(f64, f64)>>,
    /// Measurements that were left out, and the reasons.
    pub(crate) left_out: Vec<String>,
}

impl Figures {
    /// Puts a figure, `None` if it could not be measured.
    pub(crate) fn put(
        &mut self,
        id: impl Into<String>,
        value: impl Into<Option<f64>>,
    ) -> &mut MeasuredFigure {
        let figure = self.by_id.entry(id.into()).or_default();
        figure.value = value.into();
        figure
    }

    /// Puts a text instead of a number.
    pub(crate) fn put_text(&mut self, id: impl Into<String>, text: impl Into<String>) {
        self.put(id, None).text = Some(text.into());
    }

    /// Puts points of a curve that follow no axis of the plan.
    pub(crate) fn put_curve(&mut self, id: impl Into<String>, points: Vec<(f64, f64)>) {
        self.curves.insert(id.into(), points);
    }

    pub(crate) fn get(&self, id: &str) -> Option<&MeasuredFigure> {
        self.by_id.get(id)
    }

    pub(crate) fn curve(&self, id: &str) -> &[(f64, f64)] {
        self.curves.get(id).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn value(&self, id: &str) -> Option<f64> {
        self.get(id)?.value
    }
}

/// Line of `published.csv`: `id,theirs,min,max,PEER…,where`. A field may be empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct PublishedFigure {
    pub(crate) theirs: Option<f64>,
    /// Bar for our figure.
    pub(crate) bar: Option<Bar>,
    pub(crate) peers: BTreeMap<String, f64>,
    /// True if it is shown with an asterisk, which ends the text of `where`.
    pub(crate) is_marked: bool,
}

/// Published figures by the ids of ours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published(BTreeMap<String, PublishedFigure>);

impl Published {
    pub(crate) fn read(text: &str) -> Result<Self, PaperError> {
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let mut published = Self::default();
        for line in lines {
            // The last column is text, and may have commas.
            let mut fields = line.splitn(names.len(), ',');
            let id = fields.next().unwrap_or_default();
            let (mut figure, mut bar) = (PublishedFigure::default(), Bar::default());
            for (name, field) in names.iter().skip(1).zip(fields).filter(|(_, field)| !field.is_empty()) {
                if *name == "where" {
                    figure.is_marked = field.ends_with('*');
                    continue;
                }
                let value =
                    field.parse().map_err(|_| PaperError::Form(format!("invalid value of {id}: {field}")))?;
                match *name {
                    "theirs" => figure.theirs = Some(value),
                    "min" => bar.min = Some(value),
                    "max" => bar.max = Some(value),
                    peer => {
                        figure.peers.insert(peer.to_owned(), value);
                    }
                }
            }
            figure.bar = Some(bar).filter(|bar| *bar != Bar::default());
            published.0.insert(id.to_owned(), figure);
        }
        Ok(published)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&PublishedFigure> {
        self.0.get(id)
    }

    pub(crate) fn theirs(&self, id: &str) -> Option<f64> {
        self.get(id)?.theirs
    }

    /// All published figures, by id.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &PublishedFigure)> {
        self.0.iter().map(|(id, figure)| (id.as_str(), figure))
    }
}
