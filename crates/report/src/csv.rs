//! Tables as comma-separated values (RFC 4180): bare numbers, ratios instead of percentages, units in the
//! header row.

use crate::table::{Cell, Table, cell, with_unit};

impl Table {
    /// Returns the rows as RFC 4180 text, with a header row and without totals.
    ///
    /// A column of [`Cell::Estimate`] becomes two, the second with the margin. Values that are not finite are
    /// empty.
    pub fn to_csv(&self) -> String {
        let estimates: Vec<bool> = (0..self.columns().len())
            .map(|at| self.column_cells(at).any(|cell| matches!(cell, Cell::Estimate { .. })))
            .collect();
        let mut out = String::new();

        let mut header = Vec::new();
        for (at, (column, &estimate)) in self.columns().iter().zip(&estimates).enumerate() {
            header.push(with_unit(&column.heading, self.raw_unit(at)));
            if estimate {
                header.push(with_unit(&format!("{} margin", column.heading), self.raw_unit(at)));
            }
        }
        push_record(&mut out, &header);

        for row in self.rows() {
            let mut record = Vec::new();
            for (at, &estimate) in estimates.iter().enumerate() {
                let cell = cell(row, at);
                record.push(raw(cell));
                if estimate {
                    record.push(raw_margin(cell));
                }
            }
            push_record(&mut out, &record);
        }
        out
    }
}

fn raw(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Text(text) => text.clone(),
        Cell::Integer(value) => value.to_string(),
        Cell::Number { value, .. } | Cell::Estimate { value, .. } | Cell::Percent(value) => {
            raw_number(*value)
        }
        Cell::Octets(octets) => octets.to_string(),
        Cell::YesNo(yes) => yes.to_string(),
    }
}

fn raw_margin(cell: &Cell) -> String {
    match cell {
        Cell::Estimate { margin, .. } => raw_number(*margin),
        _ => String::new(),
    }
}

fn raw_number(value: f64) -> String {
    // Debug instead of Display: the shortest text that parses to the same value, with an exponent if it is
    // long.
    if value.is_finite() { format!("{value:?}") } else { String::new() }
}

fn push_record(out: &mut String, fields: &[String]) {
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        if field.contains(['"', ',', '\r', '\n']) {
            out.push('"');
            out.push_str(&field.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(field);
        }
    }
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;

    #[test]
    fn quotes_commas_and_line_breaks_are_quoted() {
        let mut table = Table::new("", [Column::text("a, b"), Column::text("c")]);
        table.row([Cell::text("say \"hi\""), Cell::text("two\nlines")]);
        assert_eq!(table.to_csv(), "\"a, b\",c\r\n\"say \"\"hi\"\"\",\"two\nlines\"\r\n");
    }

    #[test]
    fn numbers_are_bare_and_units_stand_in_the_header() {
        let mut table = Table::new(
            "",
            [
                Column::number("delay").unit("ms"),
                Column::number("size"),
                Column::number("saved"),
                Column::number("packets"),
            ],
        );
        table.row([
            Cell::number(1234.5678, 1),
            Cell::Octets(12_345),
            Cell::Percent(0.25),
            Cell::integer(-4_000),
        ]);
        table.row([Cell::number(f64::NAN, 1), Cell::Empty, Cell::Percent(f64::INFINITY)]);
        table.total([Cell::number(1.0, 1)]);
        assert_eq!(
            table.to_csv(),
            "delay (ms),size (B),saved (ratio),packets\r\n1234.5678,12345,0.25,-4000\r\n,,,\r\n"
        );
    }

    #[test]
    fn an_estimate_takes_two_columns() {
        let mut table = Table::new("", [Column::number("delay").unit("ms"), Column::text("x")]);
        table.row([Cell::estimate(2.5, 0.125, 1), Cell::text("y")]);
        assert_eq!(table.to_csv(), "delay (ms),delay margin (ms),x\r\n2.5,0.125,y\r\n");
    }

    #[test]
    fn a_table_without_columns_is_one_empty_line() {
        assert_eq!(Table::new("", []).to_csv(), "\r\n");
    }
}
