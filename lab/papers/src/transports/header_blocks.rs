//! The paper's future work: value of header compression. Sizes of the header blocks of equal requests and responses in
//! sequence on a connection: as text, by SPDY/3.1, and by its successors. No link, no clock.

mod codec;
mod message;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use codec::Codec;
use message::{HeaderSet, HttpMessage, MessageSide, Turn};

pub(super) use message::BROWSER;

use crate::form::Figures;

const TALKS: [HeaderSet; 2] = [HeaderSet::Least, HeaderSet::Browser];
const SIDES: [MessageSide; 2] = [MessageSide::Request, MessageSide::Response];
const TURNS: [Turn; 3] = [Turn::First, Turn::Second, Turn::Other];

pub(super) fn measure(figures: &mut Figures) {
    for (codec, talk) in Codec::ALL.into_iter().flat_map(|codec| TALKS.map(|talk| (codec, talk))) {
        for (side, frame) in SIDES.into_iter().zip(codec.frame()) {
            let mut encoder = codec.encoder();
            let (name, side_name) =
                (codec.name(), if side == MessageSide::Request { "request" } else { "response" });
            figures.put(format!("frame/{name}/{side_name}"), frame as f64);
            for (turn, turn_name) in TURNS.into_iter().zip(["first", "second", "other"]) {
                let octets = encoder.encode(&HttpMessage::new(talk, side, turn)).map(|block| block.len());
                let talk = if talk == HeaderSet::Least { "" } else { "/browser" };
                let id = format!("headers/{name}/{turn_name}/{side_name}{talk}");
                if octets.is_none() {
                    figures.put_text(id.clone(), "refused");
                }
                figures.put(id, octets.map(|octets| octets as f64));
            }
        }
    }
}
