//! HTTP messages: a request for an object and its response, with the headers that the experiment requires, or with
//! those of a browser and of Apache.

/// Set of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderSet {
    /// Headers that the protocols require.
    Least,
    /// Headers of a browser and of Apache.
    Browser,
}

/// Sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageSide {
    Request,
    Response,
}

/// Exchange of a connection, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The first exchange.
    First,
    /// First object once more.
    Second,
    /// Another object.
    Other,
}

/// Host and port, as in the exchanges over our TCP.
const HOST: &str = "10.9.0.2:8080";

/// Headers of Chrome 37 (2014), besides those that name the object, and Connection.
pub(in super::super) const BROWSER: [(&str, &str); 4] = [
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"),
    (
        "User-Agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/37.0.2062.94 Safari/537.36",
    ),
    ("Accept-Encoding", "gzip,deflate,sdch"),
    ("Accept-Language", "en-US,en;q=0.8"),
];

type HeaderFields = Vec<(String, String)>;

/// HTTP message, independent of its encoding.
#[derive(Clone, Debug)]
pub(super) struct HttpMessage {
    side: MessageSide,
    path: &'static str,
    /// Fields with names in lower case, which HTTP/1.1 accepts and the others require.
    fields: HeaderFields,
    /// Fields of the connection, only in HTTP/1.1. RFC 9113, section 8.2.2.
    of_connection: HeaderFields,
}

impl HttpMessage {
    pub(super) fn new(talk: HeaderSet, side: MessageSide, turn: Turn) -> Self {
        let (path, octets) = if turn == Turn::Other { ("/50", 50) } else { ("/10", 10) };
        let (fields, of_connection) = match (talk, side) {
            (HeaderSet::Least, MessageSide::Request) => (Vec::new(), Vec::new()),
            // Without the end of the connection, HTTP/1.1 needs the length of the object. The other protocols have
            // frames.
            (HeaderSet::Least, MessageSide::Response) => {
                (Vec::new(), owned([("content-length", octets.to_string())]))
            }
            (HeaderSet::Browser, MessageSide::Request) => {
                (owned(BROWSER), owned([("connection", "keep-alive")]))
            }
            (HeaderSet::Browser, MessageSide::Response) => apache(turn, octets),
        };
        Self { side, path, fields, of_connection }
    }

    /// HTTP/1.1 text. RFC 9112.
    pub(super) fn text(&self) -> String {
        let mut text = match self.side {
            MessageSide::Request => format!("GET {} HTTP/1.1\r\nhost: {HOST}\r\n", self.path),
            MessageSide::Response => "HTTP/1.1 200 OK\r\n".to_owned(),
        };
        for (name, value) in self.fields.iter().chain(&self.of_connection) {
            text.extend([name, ": ", value, "\r\n"]);
        }
        text + "\r\n"
    }

    /// Headers of SPDY/3.1 (sections 3.2.1 and 3.2.2), in the order of our client.
    pub(super) fn spdy(&self) -> Vec<(&str, &str)> {
        let mut pairs = match self.side {
            MessageSide::Request => vec![
                (":path", self.path),
                (":host", HOST),
                (":version", "HTTP/1.1"),
                (":method", "GET"),
                (":scheme", "http"),
            ],
            MessageSide::Response => vec![(":status", "200 OK"), (":version", "HTTP/1.1")],
        };
        pairs.extend(self.fields());
        pairs
    }

    /// Fields of HTTP/2 and HTTP/3. RFC 9113, section 8.3; RFC 9114, section 4.3.
    pub(super) fn fields_of_http2(&self) -> Vec<(&str, &str)> {
        let mut pairs = match self.side {
            MessageSide::Request => {
                vec![(":method", "GET"), (":scheme", "http"), (":authority", HOST), (":path", self.path)]
            }
            MessageSide::Response => vec![(":status", "200")],
        };
        pairs.extend(self.fields());
        pairs
    }

    fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Response headers of Apache 2.4 for a file without extension, with a second between two exchanges.
fn apache(turn: Turn, octets: usize) -> (HeaderFields, HeaderFields) {
    let seconds = turn as usize;
    let fields = owned([
        ("date", format!("Tue, 23 Sep 2014 09:10:0{seconds} GMT")),
        ("server", "Apache/2.4.10 (Debian)".to_owned()),
        ("last-modified", "Mon, 22 Sep 2014 17:21:43 GMT".to_owned()),
        ("etag", format!("\"{octets:x}-503a8ac4d17c0\"")),
        ("accept-ranges", "bytes".to_owned()),
        ("content-length", octets.to_string()),
    ]);
    let left = 100 - seconds;
    let of_connection =
        owned([("keep-alive", format!("timeout=5, max={left}")), ("connection", "Keep-Alive".to_owned())]);
    (fields, of_connection)
}

/// Fields with names in lower case.
fn owned<const N: usize>(fields: [(&str, impl Into<String>); N]) -> HeaderFields {
    fields.map(|(name, value)| (name.to_ascii_lowercase(), value.into())).to_vec()
}
