//! What is said: a request for an object and the response to it, with the headers that the experiment demands, or with those of a
//! browser and of Apache.

/// Who talks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Talk {
    /// What the protocols demand, and no more.
    Least,
    /// A browser, and Apache.
    Browser,
}

/// Which side says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Request,
    Response,
}

/// What of a connection it is, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The first exchange.
    First,
    /// The same object once more.
    Second,
    /// Another object.
    Other,
}

/// Host and port, as in the exchanges over our TCP.
const HOST: &str = "10.9.0.2:8080";

/// What Chrome 37 sent in 2014, beside what names the object, and Connection.
pub(in super::super) const BROWSER: [(&str, &str); 4] = [
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"),
    (
        "User-Agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/37.0.2062.94 Safari/537.36",
    ),
    ("Accept-Encoding", "gzip,deflate,sdch"),
    ("Accept-Language", "en-US,en;q=0.8"),
];

type Fields = Vec<(String, String)>;

/// A message of HTTP, whatever it is carried in.
#[derive(Clone, Debug)]
pub(super) struct Message {
    side: Side,
    path: &'static str,
    /// Names in lower case: HTTP/1.1 does not care, and the others demand it.
    fields: Fields,
    /// Fields of the connection, which HTTP/1.1 alone has. RFC 9113, section 8.2.2.
    of_connection: Fields,
}

impl Message {
    pub(super) fn new(talk: Talk, side: Side, turn: Turn) -> Self {
        let (path, octets) = if turn == Turn::Other { ("/50", 50) } else { ("/10", 10) };
        let (fields, of_connection) = match (talk, side) {
            (Talk::Least, Side::Request) => (Vec::new(), Vec::new()),
            // Who does not close the connection must say where the object ends. In the others frames do.
            (Talk::Least, Side::Response) => (Vec::new(), owned([("content-length", octets.to_string())])),
            (Talk::Browser, Side::Request) => (owned(BROWSER), owned([("connection", "keep-alive")])),
            (Talk::Browser, Side::Response) => apache(turn, octets),
        };
        Self { side, path, fields, of_connection }
    }

    /// As HTTP/1.1 says it. RFC 9112.
    pub(super) fn text(&self) -> String {
        let mut text = match self.side {
            Side::Request => format!("GET {} HTTP/1.1\r\nhost: {HOST}\r\n", self.path),
            Side::Response => "HTTP/1.1 200 OK\r\n".to_owned(),
        };
        for (name, value) in self.fields.iter().chain(&self.of_connection) {
            text.extend([name, ": ", value, "\r\n"]);
        }
        text + "\r\n"
    }

    /// As SPDY/3.1 says it (sections 3.2.1 and 3.2.2), in the order of our client.
    pub(super) fn spdy(&self) -> Vec<(&str, &str)> {
        let mut pairs = match self.side {
            Side::Request => vec![
                (":path", self.path),
                (":host", HOST),
                (":version", "HTTP/1.1"),
                (":method", "GET"),
                (":scheme", "http"),
            ],
            Side::Response => vec![(":status", "200 OK"), (":version", "HTTP/1.1")],
        };
        pairs.extend(self.fields());
        pairs
    }

    /// As HTTP/2 and HTTP/3 say it. RFC 9113, section 8.3; RFC 9114, section 4.3.
    pub(super) fn fields_of_http2(&self) -> Vec<(&str, &str)> {
        let mut pairs = match self.side {
            Side::Request => {
                vec![(":method", "GET"), (":scheme", "http"), (":authority", HOST), (":path", self.path)]
            }
            Side::Response => vec![(":status", "200")],
        };
        pairs.extend(self.fields());
        pairs
    }

    fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// What Apache 2.4 says of a file without extension: a second passes from one exchange to the next.
fn apache(turn: Turn, octets: usize) -> (Fields, Fields) {
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

/// With names in lower case.
fn owned<const N: usize>(fields: [(&str, impl Into<String>); N]) -> Fields {
    fields.map(|(name, value)| (name.to_ascii_lowercase(), value.into())).to_vec()
}
