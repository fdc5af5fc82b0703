//! Tables and documents as JSON: numbers stay numbers, rows are objects with a key per column, so that
//! `.rows[].saved` is a query.

use std::collections::BTreeSet;

use serde_json::{Number, Value, json};

use crate::document::{Document, Element, Term, Tile};
use crate::table::{Cell, Table, cell};

impl Table {
    /// Returns the table as an object: `title`, `note`, `columns` (`key`, `heading`, `unit`), and `rows` and
    /// `totals` as objects by key.
    ///
    /// A key is the heading in lower case, with `_` for other characters than letters and digits; a second
    /// column with an equal key gets `_2`. A [`Cell::Estimate`] is an object of `value` and `margin`, a
    /// percentage is a ratio; empty cells and values that are not finite are null.
    pub fn to_json(&self) -> Value {
        let keys = keys(self);
        let columns: Vec<Value> = self
            .columns()
            .iter()
            .zip(&keys)
            .enumerate()
            .map(|(at, (column, key))| {
                json!({ "key": key, "heading": column.heading, "unit": self.raw_unit(at) })
            })
            .collect();
        let object = |row: &Vec<Cell>| -> Value {
            keys.iter().enumerate().map(|(at, key)| (key.clone(), value(cell(row, at)))).collect()
        };
        json!({
            "title": self.title,
            "note": self.note,
            "columns": columns,
            "rows": self.rows().iter().map(object).collect::<Vec<_>>(),
            "totals": self.totals().iter().map(object).collect::<Vec<_>>(),
        })
    }
}

impl Document {
    /// Returns the document as an object: `title`, `subtitle`, and `sections` of `heading` and `blocks`. Each
    /// block has a `kind`: `text`, `tiles`, `facts`, `code`, `terms`, `table` or `figure`, the last with its
    /// data as a table.
    pub fn to_json(&self) -> Value {
        let sections: Vec<Value> = self
            .sections
            .iter()
            .map(|section| {
                let blocks: Vec<Value> = section.blocks.iter().map(block).collect();
                json!({ "heading": section.heading, "blocks": blocks })
            })
            .collect();
        json!({ "title": self.title, "subtitle": self.subtitle, "sections": sections })
    }
}

fn block(block: &Element) -> Value {
    match block {
        Element::Text(text) => json!({ "kind": "text", "text": text }),
        Element::Tiles(tiles) => {
            json!({ "kind": "tiles", "tiles": tiles.iter().map(tile).collect::<Vec<_>>() })
        }
        Element::Facts(facts) => {
            json!({ "kind": "facts", "facts": facts.iter().map(tile).collect::<Vec<_>>() })
        }
        Element::Code(code) => json!({ "kind": "code", "caption": code.caption, "text": code.text }),
        Element::Terms(terms) => {
            let term = |term: &Term| json!({ "word": term.word, "meaning": term.meaning });
            json!({ "kind": "terms", "terms": terms.iter().map(term).collect::<Vec<_>>() })
        }
        Element::Table(table) => json!({ "kind": "table", "table": table.to_json() }),
        Element::Figure(figure) => json!({ "kind": "figure", "data": figure.data().to_json() }),
    }
}

fn tile(tile: &Tile) -> Value {
    json!({
        "caption": tile.caption,
        "value": value(&tile.value),
        "unit": tile.unit,
        "detail": tile.detail,
    })
}

fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Empty => Value::Null,
        Cell::Text(text) => Value::from(text.as_str()),
        // Many JSON readers lose digits beyond 64 bits, so such an integer is text.
        Cell::Integer(value) => {
            Number::from_i128(*value).map_or_else(|| value.to_string().into(), Value::from)
        }
        Cell::Number { value, .. } | Cell::Percent(value) => Value::from(*value),
        Cell::Estimate { value, margin, .. } => json!({ "value": value, "margin": margin }),
        Cell::Octets(octets) => Value::from(*octets),
        Cell::YesNo(yes) => Value::from(*yes),
    }
}

fn keys(table: &Table) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut keys = Vec::new();
    for column in table.columns() {
        let base = slug(&column.heading, "column", '_');
        let key = std::iter::once(base.clone())
            .chain((2_u32..).map(|n| format!("{base}_{n}")))
            .find(|key| !taken.contains(key))
            .unwrap_or(base);
        taken.insert(key.clone());
        keys.push(key);
    }
    keys
}

/// Returns the name in lower case, with `joint` for other characters than letters and digits; `fallback` if
/// the result is empty.
pub(crate) fn slug(name: &str, fallback: &str, joint: char) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        } else if !out.is_empty() && !out.ends_with(joint) {
            out.push(joint);
        }
    }
    let out = out.trim_end_matches(joint);
    if out.is_empty() { fallback.to_owned() } else { out.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Section;
    use crate::table::Column;

    #[test]
    fn values_stay_numbers() {
        let mut table = Table::new("t", [Column::text("Flow"), Column::number("mean size").unit("B")]);
        table.row([Cell::text("a"), Cell::number(2.125, 1)]);
        table.row([Cell::text("b"), Cell::Octets(u64::MAX)]);
        table.row([Cell::text("c"), Cell::number(f64::NAN, 1)]);
        table.total([Cell::Empty, Cell::estimate(1.5, 0.5, 1)]);
        let json = table.to_json();
        assert_eq!(json["columns"][1], json!({ "key": "mean_size", "heading": "mean size", "unit": "B" }));
        assert_eq!(json["rows"][0], json!({ "flow": "a", "mean_size": 2.125 }));
        assert_eq!(json["rows"][1]["mean_size"], json!(u64::MAX));
        assert_eq!(json["rows"][2]["mean_size"], Value::Null);
        assert_eq!(json["totals"][0], json!({ "flow": null, "mean_size": { "value": 1.5, "margin": 0.5 } }));
    }

    #[test]
    fn integers_beyond_64_bits_become_text() {
        assert_eq!(value(&Cell::Integer(i128::MAX)), json!(i128::MAX.to_string()));
        assert_eq!(value(&Cell::Integer(i64::MIN.into())), json!(i64::MIN));
    }

    #[test]
    fn columns_of_one_name_keep_their_own_key() {
        let mut table = Table::new("", [Column::number("%"), Column::number("%"), Column::number("A")]);
        table.row([Cell::integer(1), Cell::integer(2), Cell::integer(3)]);
        assert_eq!(table.to_json()["rows"][0], json!({ "column": 1, "column_2": 2, "a": 3 }));
    }

    #[test]
    fn documents_nest_their_blocks() {
        let section = Section::new("s").text("words").table(Table::new("t", []));
        let json = Document::new("d").section(section).to_json();
        assert_eq!(json["sections"][0]["blocks"][0], json!({ "kind": "text", "text": "words" }));
        assert_eq!(json["sections"][0]["blocks"][1]["table"]["title"], "t");
    }
}
