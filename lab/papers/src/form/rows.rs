//! Rows of figures, as the plan defines them.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::vars::text;
use super::{Figures, PlanFile, Published, Vars};
use crate::paper::PaperError;
use crate::row::{Bar, FigureRow};

/// Rows of one kind. A row exists if its figure was measured, or was attempted.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RowForm {
    each: Vec<String>,
    id: String,
    what: String,
    unit: String,
    /// Ids of a figure and of its divisor, where the row is their quotient.
    quotient: Option<[String; 2]>,
    /// Published figure, if it is not in `published.csv`: see [`amount`].
    theirs: Option<toml::Value>,
    min: Option<toml::Value>,
    max: Option<toml::Value>,
}

/// Bar for some of the rows: see [`amount`].
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct BarForm {
    each: Vec<String>,
    id: String,
    min: Option<toml::Value>,
    max: Option<toml::Value>,
}

impl PlanFile {
    pub(super) fn rows(
        &self,
        figures: &Figures,
        published: &Published,
    ) -> Result<Vec<FigureRow>, PaperError> {
        let mut rows: Vec<FigureRow> = Vec::new();
        let mut ids = BTreeSet::new();
        for form in &self.row {
            for vars in self.each(&Vars::default(), &form.each)? {
                let id = vars.expand(&form.id)?;
                let figure = figures.get(&id);
                let value = match &form.quotient {
                    None => match figure {
                        Some(figure) => figure.value,
                        None => continue,
                    },
                    Some(of) => {
                        let [figure, over] = [vars.expand(&of[0])?, vars.expand(&of[1])?];
                        figures.value(&figure).zip(figures.value(&over)).map(|(figure, over)| figure / over)
                    }
                };
                if !ids.insert(id.clone()) {
                    continue;
                }
                let known = published.get(&id);
                let theirs = amount(form.theirs.as_ref(), &vars, None, figures)?
                    .or(known.and_then(|known| known.theirs))
                    .or(figure.and_then(|figure| figure.theirs));
                let note = figure.map_or("", |figure| &figure.note);
                let vars = vars.with("note", &note.into());
                let row = FigureRow::new(id, vars.expand(&form.what)?, vars.expand(&form.unit)?, value);
                let mut row = row.theirs(theirs);
                let peers = known.iter().flat_map(|known| &known.peers);
                for (name, value) in peers.chain(figure.iter().flat_map(|figure| &figure.peers)) {
                    row = row.peer(name, *value);
                }
                let bar = Bar {
                    min: amount(form.min.as_ref(), &vars, theirs, figures)?,
                    max: amount(form.max.as_ref(), &vars, theirs, figures)?,
                };
                let bar =
                    figure.and_then(|figure| figure.bar).or(known.and_then(|known| known.bar)).or(some(bar));
                rows.push(row.held(bar));
            }
        }
        for form in &self.bar {
            for vars in self.each(&Vars::default(), &form.each)? {
                let id = vars.expand(&form.id)?;
                let Some(row) = rows.iter_mut().find(|row| row.id() == id) else { continue };
                let bar = Bar {
                    min: amount(form.min.as_ref(), &vars, row.stated(), figures)?,
                    max: amount(form.max.as_ref(), &vars, row.stated(), figures)?,
                };
                *row = row.clone().held(some(bar));
            }
        }
        Ok(rows)
    }
}

fn some(bar: Bar) -> Option<Bar> {
    Some(bar).filter(|bar| *bar != Bar::default())
}

/// Number, or text: a number or quotient `A/B`, `FACTOR theirs`, or `FACTOR ID` of another figure. `None` if that has
/// no value.
fn amount(
    value: Option<&toml::Value>,
    vars: &Vars,
    theirs: Option<f64>,
    figures: &Figures,
) -> Result<Option<f64>, PaperError> {
    let Some(value) = value else { return Ok(None) };
    let text = vars.expand(&text(value))?;
    let (number, of) = text.split_once(' ').map_or((text.as_str(), None), |(number, of)| (number, Some(of)));
    if number.is_empty() {
        return Ok(None);
    }
    let parse =
        |number: &str| number.parse().map_err(|_| PaperError::Form(format!("invalid amount: {text}")));
    let number: f64 = match number.split_once('/') {
        Some((number, by)) => parse(number)? / parse(by)?,
        None => parse(number)?,
    };
    Ok(match of {
        None => Some(number),
        Some("theirs") => theirs.map(|theirs| number * theirs),
        Some(id) => figures.value(id).map(|value| number * value),
    })
}
