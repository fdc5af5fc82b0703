//! Method and Response Codes by name. RFC 7252, section 12.1; RFC 7959, section 2.9; RFC 8132; RFC 8323, section 11.1.
//!
//! The type is [`Code`] of the message header; this module has its values and classes.

pub use thinair_wire::header::coap::Code;

/// 0.05 (RFC 8132).
pub const FETCH: Code = Code::new(0, 5);
/// 0.06 (RFC 8132).
pub const PATCH: Code = Code::new(0, 6);
/// 0.07 (RFC 8132).
pub const IPATCH: Code = Code::new(0, 7);

/// 2.01.
pub const CREATED: Code = Code::new(2, 1);
/// 2.02.
pub const DELETED: Code = Code::new(2, 2);
/// 2.03.
pub const VALID: Code = Code::new(2, 3);
/// 2.31 (RFC 7959).
pub const CONTINUE: Code = Code::new(2, 31);
/// 4.00.
pub const BAD_REQUEST: Code = Code::new(4, 0);
/// 4.01.
pub const UNAUTHORIZED: Code = Code::new(4, 1);
/// 4.02.
pub const BAD_OPTION: Code = Code::new(4, 2);
/// 4.03.
pub const FORBIDDEN: Code = Code::new(4, 3);
/// 4.04.
pub const NOT_FOUND: Code = Code::new(4, 4);
/// 4.05.
pub const METHOD_NOT_ALLOWED: Code = Code::new(4, 5);
/// 4.06.
pub const NOT_ACCEPTABLE: Code = Code::new(4, 6);
/// 4.08 (RFC 7959).
pub const REQUEST_ENTITY_INCOMPLETE: Code = Code::new(4, 8);
/// 4.09 (RFC 8132).
pub const CONFLICT: Code = Code::new(4, 9);
/// 4.12.
pub const PRECONDITION_FAILED: Code = Code::new(4, 12);
/// 4.13.
pub const REQUEST_ENTITY_TOO_LARGE: Code = Code::new(4, 13);
/// 4.15.
pub const UNSUPPORTED_CONTENT_FORMAT: Code = Code::new(4, 15);
/// 4.22 (RFC 8132).
pub const UNPROCESSABLE_ENTITY: Code = Code::new(4, 22);
/// 4.29 (RFC 8516).
pub const TOO_MANY_REQUESTS: Code = Code::new(4, 29);
/// 5.00.
pub const INTERNAL_SERVER_ERROR: Code = Code::new(5, 0);
/// 5.01.
pub const NOT_IMPLEMENTED: Code = Code::new(5, 1);
/// 5.02.
pub const BAD_GATEWAY: Code = Code::new(5, 2);
/// 5.03.
pub const SERVICE_UNAVAILABLE: Code = Code::new(5, 3);
/// 5.04.
pub const GATEWAY_TIMEOUT: Code = Code::new(5, 4);
/// 5.05.
pub const PROXYING_NOT_SUPPORTED: Code = Code::new(5, 5);

/// 7.01, Capabilities and Settings Message (RFC 8323, section 5.3).
pub const CSM: Code = Code::new(7, 1);
/// 7.02 (RFC 8323, section 5.4).
pub const PING: Code = Code::new(7, 2);
/// 7.03 (RFC 8323, section 5.4).
pub const PONG: Code = Code::new(7, 3);
/// 7.04 (RFC 8323, section 5.5).
pub const RELEASE: Code = Code::new(7, 4);
/// 7.05 (RFC 8323, section 5.6).
pub const ABORT: Code = Code::new(7, 5);

/// Kind of message by its code. RFC 7252, section 3; RFC 8323, section 5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// 0.00.
    Empty,
    /// Class 0.
    Request,
    /// Classes 2, 4 and 5.
    Response,
    /// Class 7, only over streams.
    Signal,
    /// Classes 1, 3 and 6.
    Reserved,
}

/// Returns the kind of message of a code.
#[inline]
pub const fn kind(code: Code) -> MessageKind {
    use MessageKind::{Request, Reserved, Response, Signal};
    const CLASSES: [MessageKind; 8] =
        [Request, Reserved, Response, Reserved, Response, Response, Reserved, Signal];
    match code {
        Code::EMPTY => MessageKind::Empty,
        _ => CLASSES[code.class() as usize & 7],
    }
}

/// True if the method is safe: a request with it can be repeated without effect on the resource. RFC 7252, section
/// 5.1; RFC 8132, section 2.
#[inline]
pub const fn is_safe(method: Code) -> bool {
    matches!(method, Code::GET | FETCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_is_of_one_kind() {
        let kinds = [0, 1, 2, 3, 4, 5, 6, 7].map(|class| kind(Code::new(class, 1)));
        use MessageKind::{Request, Reserved, Response, Signal};
        assert_eq!(kinds, [Request, Reserved, Response, Reserved, Response, Response, Reserved, Signal]);
        assert_eq!(kind(Code::EMPTY), MessageKind::Empty);
        assert_eq!(kind(Code::new(5, 0)), MessageKind::Response);
    }
}
