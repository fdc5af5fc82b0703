//! The document: sections of prose, key figures, commands, terms, tables and plots, in reading order. Modules
//! `page`, `terminal` and `json` render it.

use crate::plot::Figure;
use crate::table::{Cell, Table};

/// A report.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// Subject of the report.
    pub title: String,
    /// One line below the title. May be empty.
    pub subtitle: String,
    /// Sections in reading order.
    pub sections: Vec<Section>,
}

/// A section of a [`Document`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// Heading. May be empty, as for a summary at the top.
    pub heading: String,
    /// Contents in reading order.
    pub blocks: Vec<Element>,
    /// True if a page shows only the heading until a reader opens it. Default: false. Terminal and JSON show
    /// everything.
    pub folded: bool,
}

/// An element of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Element {
    /// A paragraph.
    Text(String),
    /// Key figures side by side.
    Tiles(Vec<Tile>),
    /// Key figures below each other, caption first: for values that are words.
    Facts(Vec<Tile>),
    /// Text for copying verbatim.
    Code(Code),
    /// Terms and their meanings.
    Terms(Vec<Term>),
    /// A table.
    Table(Table),
    /// A plot with its caption.
    Figure(Figure),
}

/// A key figure: one large value with a caption.
#[derive(Debug, Clone, PartialEq)]
pub struct Tile {
    /// Meaning of the value, in a few words.
    pub caption: String,
    /// The value.
    pub value: Cell,
    /// Unit, if the value has none of its own. May be empty.
    pub unit: String,
    /// Value for comparison, or another remark. May be empty.
    pub detail: String,
}

/// Text for copying verbatim: commands, a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Place for the text, such as the host of a command. May be empty.
    pub caption: String,
    /// Lines, separated by `\n`. A page wraps long lines, and copies them whole.
    pub text: String,
}

/// A term and its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The term, as written in tables and plots.
    pub word: String,
    /// Explanation, in a sentence or two.
    pub meaning: String,
}

impl Document {
    /// Returns a document without sections.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Sets the line below the title.
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
    /// Returns an empty section.
    pub fn new(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), ..Self::default() }
    }

    /// Shows only the heading on a page until a reader opens it. Requires a heading.
    #[must_use]
    pub fn folded(mut self) -> Self {
        self.folded = true;
        self
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.block(Element::Text(text.into()))
    }

    /// Adds key figures side by side.
    #[must_use]
    pub fn tiles(self, tiles: impl IntoIterator<Item = Tile>) -> Self {
        self.block(Element::Tiles(tiles.into_iter().collect()))
    }

    /// Adds key figures below each other.
    #[must_use]
    pub fn facts(self, facts: impl IntoIterator<Item = Tile>) -> Self {
        self.block(Element::Facts(facts.into_iter().collect()))
    }

    /// Adds text for copying verbatim, such as commands, with a caption that may be empty.
    #[must_use]
    pub fn code(self, caption: impl Into<String>, text: impl Into<String>) -> Self {
        self.block(Element::Code(Code { caption: caption.into(), text: text.into() }))
    }

    /// Adds terms and their meanings.
    #[must_use]
    pub fn terms<W: Into<String>, M: Into<String>>(self, terms: impl IntoIterator<Item = (W, M)>) -> Self {
        let term = |(word, meaning): (W, M)| Term { word: word.into(), meaning: meaning.into() };
        self.block(Element::Terms(terms.into_iter().map(term).collect()))
    }

    /// Adds a table.
    #[must_use]
    pub fn table(self, table: Table) -> Self {
        self.block(Element::Table(table))
    }

    /// Adds a figure.
    #[must_use]
    pub fn figure(self, figure: Figure) -> Self {
        self.block(Element::Figure(figure))
    }

    /// Adds any block.
    #[must_use]
    pub fn block(mut self, block: Element) -> Self {
        self.blocks.push(block);
        self
    }
}

impl Tile {
    /// Returns a value with its caption.
    pub fn new(caption: impl Into<String>, value: Cell) -> Self {
        Self { caption: caption.into(), value, unit: String::new(), detail: String::new() }
    }

    /// Sets the unit, if the value has none of its own.
    #[must_use]
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = unit.into();
        self
    }

    /// Sets a value for comparison, or another remark.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }
}
