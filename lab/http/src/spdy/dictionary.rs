//! Dictionary of header blocks. SPDY/3.1, section 2.6.10.1.

/// Names and values, each after its length in 4 octets.
const WORDS: &[&str] = &[
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
];

/// Parts of values, without lengths, which follow the words.
const TEXT: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Au\
    thoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidd\
    en404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr Ma\
    y Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,imag\
    e/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicpri\
    vatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

const LEN: usize = {
    let mut len = TEXT.len();
    let mut word = 0;
    while word < WORDS.len() {
        len += 4 + WORDS[word].len();
        word += 1;
    }
    len
};

/// Dictionary of both ends.
pub const DICTIONARY: &[u8; LEN] = &{
    let mut octets = [0; LEN];
    let (mut at, mut word) = (0, 0);
    while word < WORDS.len() {
        octets[at + 3] = WORDS[word].len() as u8;
        at = copy(WORDS[word].as_bytes(), &mut octets, at + 4);
        word += 1;
    }
    copy(TEXT.as_bytes(), &mut octets, at);
    octets
};

const fn copy(from: &[u8], to: &mut [u8; LEN], at: usize) -> usize {
    let mut index = 0;
    while index < from.len() {
        to[at + index] = from[index];
        index += 1;
    }
    at + from.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deflate::adler_32;

    /// Every SPDY/3 implementation's zlib streams have this dictionary identifier.
    #[test]
    fn it_is_the_one_that_streams_name() {
        assert_eq!((DICTIONARY.len(), adler_32(DICTIONARY)), (1_423, 0xE3C6_A7C2));
    }
}
