//! Encoders of header blocks, each with its state of a connection.

use flate2::{Compress, Compression, FlushCompress};
use thinair_http::deflate::Flush;
use thinair_http::spdy::{self, DICTIONARY, HeaderBlocks};

use super::message::HttpMessage;

/// Encoding of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// Text.
    Http1,
    /// SPDY/3.1 with zlib, each block flushed.
    Spdy,
    /// SPDY/3.1 with our encoder.
    IotSpdy,
    /// HTTP/2: RFC 7541.
    Hpack,
    /// HTTP/3 with the static table alone: RFC 9204.
    Qpack,
}

impl Codec {
    pub(super) const ALL: [Self; 5] = [Self::Http1, Self::Spdy, Self::IotSpdy, Self::Hpack, Self::Qpack];

    /// Name in ids.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Spdy => "spdy",
            Self::IotSpdy => "iot-spdy",
            Self::Hpack => "hpack",
            Self::Qpack => "qpack",
        }
    }

    /// Overhead of the frame around a block in octets, for requests and for responses. SPDY/3.1, sections 2.6.1 and
    /// 2.6.2; RFC 9113, section 4.1; RFC 9114, section 7.1, for blocks below 64 octets.
    pub(super) const fn frame(self) -> [usize; 2] {
        match self {
            Self::Http1 => [0, 0],
            Self::Spdy | Self::IotSpdy => [18, 12],
            Self::Hpack => [9, 9],
            Self::Qpack => [2, 2],
        }
    }

    /// Encoder for one direction of a new connection.
    pub(super) fn encoder(self) -> Box<dyn Encode> {
        match self {
            Self::Http1 => Box::new(Text),
            Self::Spdy => Box::new(Zlib::new()),
            // All of these blocks are shorter.
            Self::IotSpdy => Box::new(HeaderBlocks::new(Flush::Least, 8_192)),
            Self::Hpack => Box::new(Hpack::new(4_096)),
            Self::Qpack => Box::new(Qpack),
        }
    }
}

/// Encoder of one direction of a connection.
pub(super) trait Encode {
    /// Next header block; `None` if the encoder rejects it.
    fn encode(&mut self, message: &HttpMessage) -> Option<Vec<u8>>;
}

struct Text;

impl Encode for Text {
    fn encode(&mut self, message: &HttpMessage) -> Option<Vec<u8>> {
        Some(message.text().into_bytes())
    }
}

/// Usual implementation: `deflateSetDictionary`, and `Z_SYNC_FLUSH` after each block.
struct Zlib {
    stream: Compress,
    is_ready: bool,
}

impl Zlib {
    fn new() -> Self {
        let mut stream = Compress::new(Compression::default(), true);
        let is_ready = stream.set_dictionary(DICTIONARY).is_ok();
        Self { stream, is_ready }
    }
}

impl Encode for Zlib {
    fn encode(&mut self, message: &HttpMessage) -> Option<Vec<u8>> {
        let octets = spdy::uncompressed(&message.spdy());
        // Room for incompressible blocks, so that one call is enough.
        let mut block = Vec::with_capacity(octets.len() + 128);
        let made = self.stream.compress_vec(&octets, &mut block, FlushCompress::Sync);
        (self.is_ready && made.is_ok()).then_some(block)
    }
}

impl Encode for HeaderBlocks {
    fn encode(&mut self, message: &HttpMessage) -> Option<Vec<u8>> {
        Some(self.write(&message.spdy()))
    }
}

/// Uses the tables wherever possible, inserts all other fields into the dynamic table, and encodes every text by
/// Huffman, which makes none of these longer.
pub(super) struct Hpack(httlib_hpack::Encoder<'static>);

impl Hpack {
    /// Encoder with a dynamic table of `octets` octets; 4,096 unless the peer sets another size.
    pub(super) fn new(octets: u32) -> Self {
        Self(httlib_hpack::Encoder::with_dynamic_size(octets))
    }

    pub(super) fn block(&mut self, fields: &[(&str, &str)]) -> Option<Vec<u8>> {
        use httlib_hpack::Encoder;

        const FLAGS: u8 =
            Encoder::BEST_FORMAT | Encoder::WITH_INDEXING | Encoder::HUFFMAN_NAME | Encoder::HUFFMAN_VALUE;
        let mut block = Vec::new();
        for (name, value) in fields {
            self.0.encode((name.as_bytes().to_vec(), value.as_bytes().to_vec(), FLAGS), &mut block).ok()?;
        }
        Some(block)
    }
}

impl Encode for Hpack {
    fn encode(&mut self, message: &HttpMessage) -> Option<Vec<u8>> {
        self.block(&message.fields_of_http2())
    }
}

/// As in h3: no dynamic table, so that no stream waits for another one, and the encoder stream is empty.
struct Qpack;

impl Encode for Qpack {
    fn encode(&mut self, message: &HttpMessage) -> Option<Vec<u8>> {
        let fields = message.fields_of_http2().into_iter();
        let fields = fields.map(|(name, value)| qpack::HeaderField::new(name, value));
        let mut block = Vec::new();
        qpack::encode_stateless(&mut block, fields).ok()?;
        Some(block)
    }
}
