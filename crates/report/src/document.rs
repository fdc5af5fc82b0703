//! The document: sections of prose, key figures, commands, explained words, tables and plots, in reading
//! order. Knows the order only; how each output shows it is in `page`, `terminal` and `json`.

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
    /// True if a page shows the heading alone until a reader opens it. Default: false. Terminal and JSON
    /// have all of it.
    pub folded: bool,
}

/// One thing to read.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// Key figures side by side.
    Tiles(Vec<Tile>),
    /// Key figures below each other, caption first: for values that are words.
    Facts(Vec<Tile>),
    /// Text to be copied letter for letter.
    Code(Code),
    /// Words and what they mean.
    Terms(Vec<Term>),
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

/// Text to be copied letter for letter: commands, a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Where the text belongs, such as the host that a command is for. May be empty.
    pub caption: String,
    /// Lines, separated by `\n`. Long ones are wrapped on a page and copied whole.
    pub text: String,
}

/// A word and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// As it stands in tables and plots.
    pub word: String,
    /// Explanation, in a sentence or two.
    pub meaning: String,
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
        Self { heading: heading.into(), ..Self::default() }
    }

    /// Shows the heading alone on a page, until a reader opens it. Needs a heading.
    #[must_use]
    pub fn folded(mut self) -> Self {
        self.folded = true;
        self
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

    /// Adds key figures below each other.
    #[must_use]
    pub fn facts(self, facts: impl IntoIterator<Item = Tile>) -> Self {
        self.block(Block::Facts(facts.into_iter().collect()))
    }

    /// Adds text to be copied letter for letter, such as commands, with a caption that may be empty.
    #[must_use]
    pub fn code(self, caption: impl Into<String>, text: impl Into<String>) -> Self {
        self.block(Block::Code(Code { caption: caption.into(), text: text.into() }))
    }

    /// Adds words and what they mean.
    #[must_use]
    pub fn terms<W: Into<String>, M: Into<String>>(self, terms: impl IntoIterator<Item = (W, M)>) -> Self {
        let term = |(word, meaning): (W, M)| Term { word: word.into(), meaning: meaning.into() };
        self.block(Block::Terms(terms.into_iter().map(term).collect()))
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
