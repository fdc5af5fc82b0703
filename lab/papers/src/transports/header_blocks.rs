//! The paper's future work: what compression of headers is worth. Octets of the header blocks of the same requests and responses,
//! one after another on a connection: as text, as SPDY/3.1 makes them, and as its successors do. No link, no clock.

mod codec;
mod message;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use thinair_report::{Cell as Field, Column, Section, Table};

use codec::Codec;
use message::{Message, Side, Talk, Turn};

pub(super) use message::BROWSER;

use crate::row::Row;

const TALKS: [Talk; 2] = [Talk::Least, Talk::Browser];
const SIDES: [Side; 2] = [Side::Request, Side::Response];
const TURNS: [Turn; 3] = [Turn::First, Turn::Second, Turn::Other];

/// Octets of one header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    codec: Codec,
    talk: Talk,
    side: Side,
    turn: Turn,
    /// `None` if the encoder refused the headers.
    octets: Option<usize>,
}

/// All blocks: of each direction of a connection in their order.
#[derive(Clone, Debug)]
pub(super) struct Blocks(Vec<Block>);

impl Blocks {
    pub(super) fn measure() -> Self {
        let mut blocks = Vec::new();
        for (codec, talk) in Codec::ALL.into_iter().flat_map(|codec| TALKS.map(|talk| (codec, talk))) {
            for side in SIDES {
                let mut encoder = codec.encoder();
                blocks.extend(TURNS.map(|turn| {
                    let octets = encoder.encode(&Message::new(talk, side, turn)).map(|block| block.len());
                    Block { codec, talk, side, turn, octets }
                }));
            }
        }
        Self(blocks)
    }

    fn octets(&self, codec: Codec, talk: Talk, side: Side, turn: Turn) -> Option<usize> {
        let mut of = self.0.iter();
        of.find(|of| (of.codec, of.talk, of.side, of.turn) == (codec, talk, side, turn))?.octets
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = Row> {
        self.0.iter().map(|&Block { codec, talk, side, turn, octets }| {
            let (turn, turn_words) = match turn {
                Turn::First => ("first", "the first one of a connection"),
                Turn::Second => ("second", "the same once more"),
                Turn::Other => ("other", "then one for another object"),
            };
            let (side, side_words) = match side {
                Side::Request => ("request", "a request"),
                Side::Response => ("response", "a response"),
            };
            let (talk, talk_words) = match talk {
                Talk::Least => ("", "what the protocol demands"),
                Talk::Browser => ("/browser", "a browser and Apache"),
            };
            Row::new(
                format!("headers/{}/{turn}/{side}{talk}", codec.name()),
                format!("Header block of {side_words}, {}: {talk_words}, {turn_words}", codec.what()),
                "octets",
                octets.map(|octets| octets as f64),
            )
        })
    }

    pub(super) fn section(&self) -> Section {
        let section = Section::new("Compression of headers").text(
            "Octets of header blocks: the first exchange of a connection, the same once more, and then one for another object. \
                SPDY's zlib stream begins with 6 octets that name its dictionary, and each block of zlib ends with a flush of 4 or \
                5. The dictionary has no name that begins with a colon, so that a first request of few headers takes more than its \
                text. From then on blocks refer to what was said, and ours do so without a flush. HPACK has the names in its \
                static table from the beginning on, and an octet for each header that was there before; of a value that has \
                changed in one character it says all. QPACK is that of h3, which leaves its dynamic table empty: each block is like \
                the first one. SPDY's way was given up because who can add text to a request learns from the length of the block \
                what else is in it (CRIME); HPACK compares whole values alone.",
        );
        TALKS.into_iter().fold(section, |section, talk| section.table(self.table(talk)))
    }

    fn table(&self, talk: Talk) -> Table {
        let title = match talk {
            Talk::Least => "Header blocks with what the protocols demand, octets",
            Talk::Browser => "Header blocks of a browser and Apache, octets",
        };
        let mut columns = vec![Column::text("headers")];
        for side in ["request", "response"] {
            columns.extend(
                ["first", "again", "other object", "frame"]
                    .map(|turn| Column::number(format!("{side}: {turn}"))),
            );
        }
        let mut table = Table::new(title, columns);
        for codec in Codec::ALL {
            let mut row = vec![Field::text(codec.what())];
            for (side, frame) in SIDES.into_iter().zip(codec.frame()) {
                let octets = TURNS.map(|turn| self.octets(codec, talk, side, turn));
                row.extend(octets.map(|octets| octets.map_or(Field::text("refused"), Field::integer)));
                row.push(Field::integer(frame));
            }
            table.row(row);
        }
        table.note("Frame: octets around each block, that of HTTP/3 for blocks below 64 octets.")
    }
}
