//! Tables and plots as terminal text, JSON, CSV and self-contained HTML.
//!
//! This crate formats numbers, rows and curves for reading and comparison. It has no notion of packets or protocols,
//! and no unit except the octet. It reads neither environment nor clock, so equal input gives equal output.
//!
//! Begin with a [`Table`] ([`to_text`](Table::to_text), [`to_csv`](Table::to_csv),
//! [`to_json`](Table::to_json)). Put tables, prose, [`Tile`]s, [`Code`] and [`Figure`]s into a [`Document`]
//! for [`to_html`](Document::to_html).
//!
//! ```
//! use thinair_report::{Cell, Column, Style, Table};
//!
//! let mut table = Table::new("Links", [Column::text("link"), Column::number("delay").unit("ms")]);
//! table.row([Cell::text("north"), Cell::number(1234.5, 1)]);
//! table.row([Cell::text("south"), Cell::number(7.25, 1)]);
//! assert_eq!(
//!     table.to_text(&Style::plain(80)),
//!     "Links\n\n\
//!      link   delay (ms)\n\
//!      ─────────────────\n\
//!      north     1,234.5\n\
//!      south         7.2\n"
//! );
//! ```
//!
//! Omissions are visible: a figure counts the values that it does not show, and rounding never yields 0 or 100 % for
//! other values (see [`Numerals`]).

mod csv;
mod document;
mod json;
mod number;
mod page;
mod plot;
mod sequence;
mod table;
mod terminal;
mod text;

pub use document::{Code, Document, Element, Section, Term, Tile};
pub use number::Numerals;
pub use plot::axis::{Axis, Format, Scale};
pub use plot::bars::Bars;
pub use plot::lines::{Lines, Point, Series, Shape};
pub use plot::stacked::StackedBars;
pub use plot::{Figure, Plot};
pub use sequence::{Sequence, SequenceMessage};
pub use table::{Cell, Column, ColumnKind, Table};
pub use terminal::Style;
pub use text::wrapped;

/// Style sheet of [`Document::to_html`], for other pages with the same look.
pub const STYLESHEET: &str = concat!(include_str!("plot/plot.css"), include_str!("page/page.css"));
