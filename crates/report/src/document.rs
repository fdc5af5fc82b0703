//! The document: sections of prose, key figures, tables and plots, in reading order. Knows the order only;
//! how each output shows it is in `page`, `terminal` and `json`.

use crate::plot::Figure;
use crate::table::{Cell, Table};

/// A report to be read from top to bottom.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// What the report is about.
    pub title: String,
    /// One line below the title. May be empty.
    pub subtitle: String,
    /// The parts, in reading order.
    pub sections: Vec<Section>,
}

/// A part of a [`Document`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// Names the part. May be empty, as for a summary at the top.
    pub heading: String,
    /// What it holds, in reading order.
    pub blocks: Vec<Block>,
}

/// One thing to read.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// Key figures side by side.
    Tiles(Vec<Tile>),
    /// A table.
    Table(Table),
    /// A plot with its caption.
    Figure(Figure),
}

/// A key figure: one large value and what it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Tile {
    /// What the value is, in a few words.
    pub caption: String,
    /// The value.
    pub value: Cell,
    /// The unit, where the value does not carry its own. May be empty.
    pub unit: String,
    /// What to compare it with. May be empty.
    pub detail: String,
}

impl Document {
    /// A document without sections yet.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Says more in one line below the title.
    #[must_use]
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// Adds a section at the end.
    #[must_use]
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }
}

impl Section {
    /// A section with nothing in it yet.
    pub fn new(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), blocks: Vec::new() }
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.block(Block::Text(text.into()))
    }

    /// Adds key figures side by side.
    #[must_use]
    pub fn tiles(self, tiles: impl IntoIterator<Item = Tile>) -> Self {
        self.block(Block::Tiles(tiles.into_iter().collect()))
    }

    /// Adds a table.
    #[must_use]
    pub fn table(self, table: Table) -> Self {
        self.block(Block::Table(table))
    }

    /// Adds a figure.
    #[must_use]
    pub fn figure(self, figure: Figure) -> Self {
        self.block(Block::Figure(figure))
    }

    /// Adds whatever block it is.
    #[must_use]
    pub fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }
}

impl Tile {
    /// A value and what it is.
    pub fn new(caption: impl Into<String>, value: Cell) -> Self {
        Self { caption: caption.into(), value, unit: String::new(), detail: String::new() }
    }

    /// Names the unit, where the value does not carry its own.
    #[must_use]
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = unit.into();
        self
    }

    /// Says what to compare the value with.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }
}
