//! Option Numbers and their properties. RFC 7252, section 5.10; RFC 7641; RFC 7959; RFC 7967; RFC 9175; RFC 9668.
//!
//! The options that an application implements are set in [`Policy::recognised`](crate::Policy::recognised).

/// If-Match: opaque, 0 to 8 octets, repeatable.
pub const IF_MATCH: u16 = 1;
/// Uri-Host: 1 to 255 octets.
pub const URI_HOST: u16 = 3;
/// ETag: opaque, 1 to 8 octets; repeatable in requests.
pub const ETAG: u16 = 4;
/// If-None-Match: empty.
pub const IF_NONE_MATCH: u16 = 5;
/// Observe: uint of 0 to 3 octets (RFC 7641).
pub const OBSERVE: u16 = 6;
/// Uri-Port: uint of 0 to 2 octets.
pub const URI_PORT: u16 = 7;
/// Location-Path: 0 to 255 octets, repeatable.
pub const LOCATION_PATH: u16 = 8;
/// OSCORE: 0 to 255 octets (RFC 8613).
pub const OSCORE: u16 = 9;
/// Uri-Path: 0 to 255 octets, repeatable.
pub const URI_PATH: u16 = 11;
/// Content-Format: uint of 0 to 2 octets.
pub const CONTENT_FORMAT: u16 = 12;
/// Max-Age in seconds: uint of 0 to 4 octets, 60 if absent.
pub const MAX_AGE: u16 = 14;
/// Uri-Query: 0 to 255 octets, repeatable.
pub const URI_QUERY: u16 = 15;
/// Hop-Limit: uint of 1 octet (RFC 8768).
pub const HOP_LIMIT: u16 = 16;
/// Accept: uint of 0 to 2 octets.
pub const ACCEPT: u16 = 17;
/// Location-Query: 0 to 255 octets, repeatable.
pub const LOCATION_QUERY: u16 = 20;
/// EDHOC: empty; a value is ignored (RFC 9668).
pub const EDHOC: u16 = 21;
/// Block2: uint of 0 to 3 octets (RFC 7959).
pub const BLOCK2: u16 = 23;
/// Block1: uint of 0 to 3 octets (RFC 7959).
pub const BLOCK1: u16 = 27;
/// Size2 in octets: uint of 0 to 4 octets (RFC 7959).
pub const SIZE2: u16 = 28;
/// Proxy-Uri: 1 to 1034 octets.
pub const PROXY_URI: u16 = 35;
/// Proxy-Scheme: 1 to 255 octets.
pub const PROXY_SCHEME: u16 = 39;
/// Size1 in octets: uint of 0 to 4 octets.
pub const SIZE1: u16 = 60;
/// Echo: opaque, 1 to 40 octets (RFC 9175).
pub const ECHO: u16 = 252;
/// No-Response: uint of 0 to 1 octets (RFC 7967).
pub const NO_RESPONSE: u16 = 258;
/// Request-Tag: opaque, 0 to 8 octets, repeatable (RFC 9175).
pub const REQUEST_TAG: u16 = 292;

/// Content-Format of link lists (RFC 6690).
pub const LINK_FORMAT: u16 = 40;

/// True if a message with the option must be rejected by a receiver that does not recognize it. RFC 7252, section 5.4.6.
#[inline]
pub const fn is_critical(number: u16) -> bool {
    number & 1 == 1
}

/// True if the option is no part of the cache key. RFC 7252, section 5.4.6.
#[inline]
pub const fn is_no_cache_key(number: u16) -> bool {
    number & 0x1E == 0x1C
}

/// True if the option may have a value of `length` octets: a critical option of another length is treated like an
/// unrecognized one. RFC 7252, section 5.4.3. Always true for a number that is not listed above.
#[inline]
pub const fn allows(number: u16, length: usize) -> bool {
    match number {
        IF_MATCH | REQUEST_TAG => length <= 8,
        URI_HOST | PROXY_SCHEME => 1 <= length && length <= 255,
        ETAG => 1 <= length && length <= 8,
        IF_NONE_MATCH => length == 0,
        OBSERVE | BLOCK1 | BLOCK2 => length <= 3,
        URI_PORT | CONTENT_FORMAT | ACCEPT => length <= 2,
        HOP_LIMIT => length == 1,
        OSCORE | LOCATION_PATH | URI_PATH | URI_QUERY | LOCATION_QUERY => length <= 255,
        MAX_AGE | SIZE1 | SIZE2 => length <= 4,
        PROXY_URI => 1 <= length && length <= 1034,
        ECHO => 1 <= length && length <= 40,
        NO_RESPONSE => length <= 1,
        _ => true,
    }
}

/// True if the option may occur more than once. RFC 7252, section 5.4.5: a supernumerary critical option is treated like
/// an unrecognized one. Always true for a number that is not listed above.
#[inline]
pub const fn is_repeatable(number: u16) -> bool {
    !matches!(
        number,
        URI_HOST
            | IF_NONE_MATCH
            | OBSERVE
            | URI_PORT
            | OSCORE
            | CONTENT_FORMAT
            | MAX_AGE
            | HOP_LIMIT
            | ACCEPT
            | EDHOC
            | BLOCK1
            | BLOCK2
            | SIZE1
            | SIZE2
            | PROXY_URI
            | PROXY_SCHEME
            | ECHO
            | NO_RESPONSE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7252, table 4, and the tables of RFC 7641, 7959, 7967, 9175 and 9668: columns C and N.
    #[test]
    fn numbers_have_the_properties_of_the_tables() {
        let critical = [
            IF_MATCH,
            URI_HOST,
            IF_NONE_MATCH,
            URI_PORT,
            OSCORE,
            URI_PATH,
            URI_QUERY,
            ACCEPT,
            EDHOC,
            BLOCK2,
            BLOCK1,
            PROXY_URI,
            PROXY_SCHEME,
        ];
        let elective = [
            ETAG,
            OBSERVE,
            LOCATION_PATH,
            CONTENT_FORMAT,
            MAX_AGE,
            HOP_LIMIT,
            LOCATION_QUERY,
            SIZE2,
            SIZE1,
            ECHO,
            NO_RESPONSE,
            REQUEST_TAG,
        ];
        assert!(critical.into_iter().all(is_critical));
        assert!(!elective.into_iter().any(is_critical));
        let no_cache_key: std::vec::Vec<u16> =
            critical.into_iter().chain(elective).filter(|&number| is_no_cache_key(number)).collect();
        assert_eq!(no_cache_key, [SIZE2, SIZE1, ECHO]);
    }
}
