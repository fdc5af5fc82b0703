//! The table: typed cells in named columns. The output modules lay out its rows.

use crate::number::Numerals;
use crate::text::printable;

/// Rows of typed cells under named columns.
///
/// **Every cell has a column:** a row that is too short is filled with [`Cell::Empty`] when it is read, and a
/// row that is too long adds columns without a heading, so that nothing is lost.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Title. May be empty.
    pub title: String,
    /// Explanation that is required to read the table correctly. May be empty.
    pub note: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    totals: Vec<Vec<Cell>>,
}

/// Heading and kind of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub heading: String,
    /// Unit of all its cells, if the cells have none of their own.
    pub unit: Option<String>,
    /// Kind of cells, for alignment and truncation.
    pub kind: ColumnKind,
}

/// Kind of the cells in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Left-aligned; truncated if space is short.
    Text,
    /// Right-aligned; never truncated.
    Number,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// No value: not measured, or not applicable.
    Empty,
    /// A name.
    Text(String),
    /// A count. Wide enough for every `i64` and `u64`.
    Integer(i128),
    /// A measured value.
    Number {
        /// Value; JSON and CSV contain it unrounded.
        value: f64,
        /// Number of decimals shown.
        decimals: u8,
    },
    /// A value and half the width of its interval, shown as `12.3 ± 0.4`.
    Estimate {
        /// Middle of the interval.
        value: f64,
        /// Half the width of the interval, in the unit of the value.
        margin: f64,
        /// Number of decimals shown.
        decimals: u8,
    },
    /// A ratio, shown as a percentage: 0.25 is 25.0 %.
    Percent(f64),
    /// An amount of data, shown with a decimal prefix.
    Octets(u64),
    /// A verdict, shown as yes or no.
    YesNo(bool),
}

impl Table {
    /// Returns a table with these columns and no rows.
    pub fn new(title: impl Into<String>, columns: impl IntoIterator<Item = Column>) -> Self {
        Self {
            title: title.into(),
            note: String::new(),
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
            totals: Vec::new(),
        }
    }

    /// Sets the explanation that is required to read the table correctly.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells = self.widen_for(cells);
        self.rows.push(cells);
    }

    /// Adds a row of totals. It is set apart, stays at the bottom when rows are sorted, and is omitted in
    /// CSV, where it would be summed again.
    pub fn total(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells = self.widen_for(cells);
        self.totals.push(cells);
    }

    /// The columns, from left to right.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The rows, without the totals.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// The rows of totals.
    pub fn totals(&self) -> &[Vec<Cell>] {
        &self.totals
    }

    fn widen_for(&mut self, cells: impl IntoIterator<Item = Cell>) -> Vec<Cell> {
        let cells: Vec<Cell> = cells.into_iter().collect();
        for cell in cells.iter().skip(self.columns.len()) {
            self.columns.push(Column { heading: String::new(), unit: None, kind: cell.kind() });
        }
        cells
    }

    /// Returns all cells as text, rows first and then totals, each row with all columns.
    pub(crate) fn texts(&self, numerals: &Numerals) -> Vec<Vec<String>> {
        let margins: Vec<usize> = (0..self.columns.len()).map(|at| self.margin_width(at, numerals)).collect();
        let cells = self.rows.iter().chain(&self.totals);
        cells
            .map(|row| {
                let texts = margins.iter().enumerate();
                texts.map(|(at, &margin)| cell(row, at).to_text(numerals, margin)).collect()
            })
            .collect()
    }

    fn margin_width(&self, column: usize, numerals: &Numerals) -> usize {
        let cells = self.column_cells(column);
        let widths = cells.map(|cell| match cell {
            Cell::Estimate { margin, decimals, .. } => numerals.margin(*margin, *decimals).chars().count(),
            _ => 0,
        });
        widths.max().unwrap_or(0)
    }

    /// Returns the cells of one column, rows first and then totals.
    pub(crate) fn column_cells(&self, column: usize) -> impl Iterator<Item = &Cell> {
        self.rows.iter().chain(&self.totals).map(move |row| cell(row, column))
    }

    /// Unit of a column's bare values: the given one, or that of its cells.
    pub(crate) fn raw_unit(&self, column: usize) -> Option<&str> {
        let given = self.columns.get(column).and_then(|c| c.unit.as_deref());
        given.or_else(|| {
            self.column_cells(column).find_map(|cell| match cell {
                Cell::Octets(_) => Some("B"),
                Cell::Percent(_) => Some("ratio"),
                _ => None,
            })
        })
    }
}

/// Returns the cell of a row in a column; empty if the row is too short.
pub(crate) fn cell(row: &[Cell], column: usize) -> &Cell {
    row.get(column).unwrap_or(&Cell::Empty)
}

impl Column {
    /// Returns a column of names.
    pub fn text(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), unit: None, kind: ColumnKind::Text }
    }

    /// Returns a column of values.
    pub fn number(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), unit: None, kind: ColumnKind::Number }
    }

    /// Sets the unit of all cells. Omit it for [`Cell::Octets`] and [`Cell::Percent`], which have their own.
    #[must_use]
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = Some(unit.into());
        self
    }

    /// Heading with its unit in parentheses.
    pub(crate) fn label(&self) -> String {
        with_unit(&self.heading, self.unit.as_deref())
    }
}

/// Formats `name (unit)`, or only the name.
pub(crate) fn with_unit(name: &str, unit: Option<&str>) -> String {
    match unit {
        Some(unit) if !unit.is_empty() => format!("{name} ({unit})").trim_start().to_owned(),
        _ => name.to_owned(),
    }
}

impl Cell {
    /// Returns a name.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Returns a count of any integer type, including `usize`. A `u128` beyond `i128` is empty.
    pub fn integer(value: impl TryInto<i128>) -> Self {
        value.try_into().map_or(Self::Empty, Self::Integer)
    }

    /// Returns a measured value, shown with this number of decimals.
    pub fn number(value: f64, decimals: u8) -> Self {
        Self::Number { value, decimals }
    }

    /// Returns a value and half the width of its interval.
    pub fn estimate(value: f64, margin: f64, decimals: u8) -> Self {
        Self::Estimate { value, margin, decimals }
    }

    /// Returns the part as a share of the whole; empty if the whole is 0.
    pub fn share(part: u64, whole: u64) -> Self {
        if whole == 0 { Self::Empty } else { Self::Percent(part as f64 / whole as f64) }
    }

    /// Kind of the column to which the cell belongs.
    pub fn kind(&self) -> ColumnKind {
        match self {
            Self::Empty | Self::Text(_) | Self::YesNo(_) => ColumnKind::Text,
            Self::Integer(_)
            | Self::Number { .. }
            | Self::Estimate { .. }
            | Self::Percent(_)
            | Self::Octets(_) => ColumnKind::Number,
        }
    }

    /// Formats the cell. `margin_width` aligns the margins of a column; 0 for a single cell.
    pub(crate) fn to_text(&self, numerals: &Numerals, margin_width: usize) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Text(text) => printable(text).into_owned(),
            Self::Integer(value) => numerals.integer(*value),
            Self::Number { value, decimals } => numerals.number(*value, *decimals),
            Self::Estimate { value, margin, decimals } => {
                numerals.estimate(*value, *margin, *decimals, margin_width)
            }
            Self::Percent(ratio) => numerals.percent(*ratio, 1),
            Self::Octets(octets) => numerals.octets(*octets),
            Self::YesNo(true) => "yes".to_owned(),
            Self::YesNo(false) => "no".to_owned(),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ragged_rows_lose_nothing() {
        let mut table = Table::new("", [Column::text("a"), Column::number("b")]);
        table.row([Cell::text("short")]);
        table.row([Cell::text("long"), Cell::integer(1), Cell::integer(2)]);
        assert_eq!(table.columns().len(), 3);
        assert_eq!(table.texts(&Numerals::TERMINAL), [["short", "", ""], ["long", "1", "2"]]);
    }

    #[test]
    fn estimates_of_a_column_line_up() {
        let mut table = Table::new("", [Column::number("delay")]);
        table.row([Cell::estimate(1.0, 0.25, 2)]);
        table.row([Cell::estimate(20.0, 10.5, 2)]);
        assert_eq!(table.texts(&Numerals::TERMINAL), [["1.00 ±  0.25"], ["20.00 ± 10.50"]]);
    }

    #[test]
    fn a_share_of_nothing_is_empty() {
        assert_eq!(Cell::share(0, 0), Cell::Empty);
        assert_eq!(Cell::share(1, 4), Cell::Percent(0.25));
    }
}
