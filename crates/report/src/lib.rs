//! Plain tables and series, to terminal text, JSON, CSV and one offline HTML file with plots.
//!
//! This crate knows how to set numbers, rows and curves so that they can be read and compared. It refuses
//! to know what they mean: no protocol, no packet, no unit beyond the octet. It reads no environment and
//! no clock, so the same input gives the same bytes.
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
//! What cannot be drawn is said, not hidden: a figure counts the values it left out, and a rounded number
//! never claims to be nothing or all when it is not (see [`Numerals`]).

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

pub use document::{Block, Code, Document, Section, Term, Tile};
pub use number::Numerals;
pub use plot::axis::{Axis, Format, Scale};
pub use plot::bars::Bars;
pub use plot::lines::{Lines, Point, Series, Shape};
pub use plot::stacked::StackedBars;
pub use plot::{Figure, Plot};
pub use sequence::{Message, Sequence};
pub use table::{Cell, Column, Kind, Table};
pub use terminal::Style;

/// The style of [`Document::to_html`], for other pages that are to look like it.
pub const STYLESHEET: &str = concat!(include_str!("plot/plot.css"), include_str!("page/page.css"));
