//! Traces: one line for each call that changes something.

#![allow(unsafe_code, reason = "the callback is a function of C")]

use std::ffi::{c_int, c_uint, c_void};
use std::fmt::{self, Write as _};

use thinair_rohc::{Cid, Format, ProfileId};

use crate::abi::TraceCallback;

const DEBUG: c_uint = 0;
pub(crate) const INFO: c_uint = 1;
pub(crate) const WARNING: c_uint = 2;

/// Stands for no profile.
pub(crate) const GENERAL: c_int = 0xFFFF;

/// Receiver of the traces of one side.
#[derive(Debug)]
pub(crate) struct Trace {
    callback: Option<TraceCallback>,
    private: *mut c_void,
    /// 0 at a compressor, 1 at a decompressor.
    entity: c_uint,
    /// Octets of packets are traced, too.
    pub(crate) dumps: bool,
}

impl Trace {
    pub(crate) fn of(entity: c_uint) -> Self {
        Self { callback: None, private: std::ptr::null_mut(), entity, dumps: false }
    }

    pub(crate) fn set(&mut self, callback: Option<TraceCallback>, private: *mut c_void) {
        (self.callback, self.private) = (callback, private);
    }

    /// Hands a text to the callback, if there is one.
    #[inline(always)]
    pub(crate) fn emit(&self, level: c_uint, profile: c_int, text: fmt::Arguments<'_>) {
        if let Some(callback) = self.callback {
            self.call(callback, level, profile, text);
        }
    }

    /// Traces a packet that a context took: its octets before and behind.
    #[inline(always)]
    pub(crate) fn packet(&self, cid: Cid, profile: ProfileId, format: Format, before: usize, behind: usize) {
        if self.callback.is_some() {
            self.packet_line(cid, profile, format, before, behind);
        }
    }

    #[cold]
    fn packet_line(&self, cid: Cid, profile: ProfileId, format: Format, before: usize, behind: usize) {
        let (cid, name) = (cid.value(), format.name());
        self.emit(
            DEBUG,
            profile.number().into(),
            format_args!("CID {cid}: {name}, {before} -> {behind} octets"),
        );
    }

    #[cold]
    fn call(&self, callback: TraceCallback, level: c_uint, profile: c_int, text: fmt::Arguments<'_>) {
        let mut line = Line { octets: [0; Line::ROOM], len: 0 };
        // A longer text is cut off.
        let _ = line.write_fmt(text);
        // SAFETY: the caller has set a function of that type, and the format takes one text that ends with a null.
        unsafe {
            callback(self.private, level, self.entity, profile, c"%s\n".as_ptr(), line.octets.as_ptr());
        }
    }

    /// Traces the octets of a packet, 32 a line, if that was asked for.
    #[inline(always)]
    pub(crate) fn dump(&self, name: &str, octets: &[u8]) {
        if self.dumps {
            self.rows(name, octets);
        }
    }

    #[cold]
    fn rows(&self, name: &str, octets: &[u8]) {
        self.emit(DEBUG, GENERAL, format_args!("{name}: {} octets", octets.len()));
        for (i, row) in octets.chunks(32).enumerate() {
            self.emit(DEBUG, GENERAL, format_args!("{:04x}: {}", i * 32, Hex(row)));
        }
    }
}

/// Octets as hexadecimal digits.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x} "))
    }
}

/// A text of C.
struct Line {
    octets: [u8; Self::ROOM],
    len: usize,
}

impl Line {
    const ROOM: usize = 256;
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // The last octet stays null.
        let room = Self::ROOM - 1 - self.len;
        let taken = text.len().min(room);
        self.octets[self.len..self.len + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.len += taken;
        if taken == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}
