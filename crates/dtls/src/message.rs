//! Handshake messages. RFC 5246, section 7.4; RFC 6347, section 4.2.2.

use alloc::vec::Vec;

use crate::cid::{Cid, MAX_CID};
use crate::prf::Random;
use crate::record::VERSION;

/// Octets of the header of a handshake message.
pub(crate) const MESSAGE_HEADER: usize = 12;

pub(crate) const CLIENT_HELLO: u8 = 1;
pub(crate) const SERVER_HELLO: u8 = 2;
pub(crate) const HELLO_VERIFY_REQUEST: u8 = 3;
pub(crate) const SERVER_KEY_EXCHANGE: u8 = 12;
pub(crate) const SERVER_HELLO_DONE: u8 = 14;
pub(crate) const CLIENT_KEY_EXCHANGE: u8 = 16;
pub(crate) const FINISHED: u8 = 20;

/// `TLS_PSK_WITH_AES_128_CCM_8`. RFC 6655, section 6.
const SUITE: u16 = 0xc0a8;

/// `TLS_EMPTY_RENEGOTIATION_INFO_SCSV`. RFC 5746, section 3.3.
const SCSV: u16 = 0x00ff;

const EXTENDED_MASTER_SECRET: u16 = 23;
const CONNECTION_ID: u16 = 54;
const RENEGOTIATION_INFO: u16 = 0xff01;

/// A fragment of a handshake message.
pub(crate) struct Fragment<'d> {
    pub(crate) kind: u8,
    /// Octets of the whole message, without header.
    pub(crate) len: usize,
    pub(crate) sequence: u16,
    pub(crate) offset: usize,
    pub(crate) body: &'d [u8],
}

impl<'d> Fragment<'d> {
    /// Takes the next fragment off the content of a record.
    pub(crate) fn take(rest: &mut &'d [u8]) -> Option<Self> {
        let mut reader = Reader(core::mem::take(rest));
        let kind = reader.u8()?;
        let (len, sequence, offset) = (reader.u24()?, reader.u16()?, reader.u24()?);
        let body_len = reader.u24()?;
        let body = reader.octets(body_len)?;
        if offset + body.len() > len {
            return None;
        }
        *rest = reader.0;
        Some(Self { kind, len, sequence, offset, body })
    }

    pub(crate) const fn is_whole(&self) -> bool {
        self.body.len() == self.len
    }
}

/// Returns the header of a message, as a fragment of it or as a whole.
pub(crate) fn header(
    kind: u8,
    len: usize,
    sequence: u16,
    offset: usize,
    body: usize,
) -> [u8; MESSAGE_HEADER] {
    let ([_, l0, l1, l2], [s0, s1]) = ((len as u32).to_be_bytes(), sequence.to_be_bytes());
    let ([_, o0, o1, o2], [_, b0, b1, b2]) = ((offset as u32).to_be_bytes(), (body as u32).to_be_bytes());
    [kind, l0, l1, l2, s0, s1, o0, o1, o2, b0, b1, b2]
}

/// ClientHello. RFC 6347, section 4.2.1.
pub(crate) struct ClientHello<'d> {
    pub(crate) is_version_12: bool,
    pub(crate) random: &'d Random,
    /// Session to resume; empty: none.
    pub(crate) session_id: &'d [u8],
    pub(crate) cookie: &'d [u8],
    /// All octets that a cookie binds, without the cookie.
    pub(crate) bound: [&'d [u8]; 2],
    pub(crate) has_suite: bool,
    pub(crate) has_extended_master_secret: bool,
    pub(crate) has_renegotiation_info: bool,
    /// Connection ID of the client, if it offers connection IDs and it is not too long.
    pub(crate) cid: Option<Cid>,
}

impl<'d> ClientHello<'d> {
    pub(crate) fn read(body: &'d [u8]) -> Option<Self> {
        let mut reader = Reader(body);
        let version = reader.u16()?;
        let random = reader.octets(32)?.try_into().ok()?;
        let session_id = reader.session_id()?;
        let (before, cookie) = (body.len() - reader.0.len(), reader.vector8()?);
        let behind = reader.0;
        let suites = reader.vector16().filter(|suites| suites.len() % 2 == 0)?;
        let has = |suite: u16| suites.chunks_exact(2).any(|pair| pair == suite.to_be_bytes());
        let has_null_compression = reader.vector8()?.contains(&0);
        let mut hello = Self {
            is_version_12: version >> 8 == VERSION >> 8 && version <= VERSION,
            random,
            session_id,
            cookie,
            bound: [body.get(..before)?, behind],
            has_suite: has(SUITE) && has_null_compression,
            has_extended_master_secret: false,
            has_renegotiation_info: has(SCSV),
            cid: None,
        };
        for_each_extension(reader, |kind, mut data| {
            match kind {
                EXTENDED_MASTER_SECRET => hello.has_extended_master_secret = true,
                RENEGOTIATION_INFO => hello.has_renegotiation_info = true,
                CONNECTION_ID => hello.cid = Cid::new(data.last_vector8()?),
                _ => {}
            }
            Some(())
        })?;
        Some(hello)
    }

    /// Writes the body of a ClientHello. `cid`: connection ID of the client, if it offers connection IDs.
    pub(crate) fn write(
        out: &mut Vec<u8>,
        random: &Random,
        session_id: &[u8],
        cookie: &[u8],
        cid: Option<&Cid>,
    ) {
        put16(out, VERSION);
        out.extend_from_slice(random);
        put8(out, session_id);
        put8(out, cookie);
        put16(out, 4);
        put16(out, SUITE);
        put16(out, SCSV);
        put8(out, &[0]);
        put_extensions(out, false, cid);
    }
}

/// ServerHello. RFC 5246, section 7.4.1.3.
pub(crate) struct ServerHello<'d> {
    pub(crate) is_version_12: bool,
    pub(crate) random: &'d Random,
    /// The session that the client has offered, if it is resumed; otherwise the new one, or empty if it cannot be resumed.
    pub(crate) session_id: &'d [u8],
    pub(crate) has_suite: bool,
    pub(crate) has_extended_master_secret: bool,
    /// True if there is an extension that no ClientHello of ours offers, or whose contents are not allowed.
    pub(crate) has_other_extension: bool,
    /// Connection ID of the server, if it takes up connection IDs.
    pub(crate) cid: Option<Cid>,
}

impl<'d> ServerHello<'d> {
    pub(crate) fn read(body: &'d [u8]) -> Option<Self> {
        let mut reader = Reader(body);
        let is_version_12 = reader.u16()? == VERSION;
        let random = reader.octets(32)?.try_into().ok()?;
        let session_id = reader.session_id()?;
        let has_suite = reader.u16()? == SUITE && reader.u8()? == 0;
        let mut hello = Self {
            is_version_12,
            random,
            session_id,
            has_suite,
            has_extended_master_secret: false,
            has_other_extension: false,
            cid: None,
        };
        for_each_extension(reader, |kind, mut data| {
            match kind {
                EXTENDED_MASTER_SECRET => hello.has_extended_master_secret = true,
                CONNECTION_ID => hello.cid = Some(Cid::new(data.last_vector8()?)?),
                // The contents in a first handshake: RFC 5746, section 3.4.
                RENEGOTIATION_INFO if data.0 == [0] => {}
                _ => hello.has_other_extension = true,
            }
            Some(())
        })?;
        Some(hello)
    }

    /// Writes the body of a ServerHello. `cid`: connection ID of the server, if the client offers connection IDs.
    pub(crate) fn write(
        out: &mut Vec<u8>,
        random: &Random,
        session_id: &[u8],
        has_renegotiation_info: bool,
        cid: Option<&Cid>,
    ) {
        put16(out, VERSION);
        out.extend_from_slice(random);
        put8(out, session_id);
        put16(out, SUITE);
        out.push(0);
        put_extensions(out, has_renegotiation_info, cid);
    }
}

/// Returns the cookie in a HelloVerifyRequest.
pub(crate) fn read_hello_verify_request(body: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader(body);
    reader.u16()?;
    reader.last_vector8()
}

/// Returns the identity in a ClientKeyExchange. RFC 4279, section 2.
pub(crate) fn read_client_key_exchange(body: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader(body);
    reader.vector16().filter(|_| reader.0.is_empty())
}

fn put_extensions(out: &mut Vec<u8>, has_renegotiation_info: bool, cid: Option<&Cid>) {
    let start = out.len();
    put16(out, 0);
    put16(out, EXTENDED_MASTER_SECRET);
    put16(out, 0);
    if has_renegotiation_info {
        put16(out, RENEGOTIATION_INFO);
        put16(out, 1);
        out.push(0);
    }
    if let Some(cid) = cid {
        put16(out, CONNECTION_ID);
        put16(out, 1 + cid.len() as u16);
        put8(out, cid.octets());
    }
    let len = ((out.len() - start - 2) as u16).to_be_bytes();
    out.iter_mut().skip(start).zip(len).for_each(|(to, from)| *to = from);
}

fn put16(out: &mut Vec<u8>, number: u16) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// Writes octets, at most 255, behind their length.
fn put8(out: &mut Vec<u8>, octets: &[u8]) {
    out.push(octets.len() as u8);
    out.extend_from_slice(octets);
}

/// Calls `each` for every extension; their list may be absent. `None` if it, or the list, is malformed.
fn for_each_extension<'d>(
    mut reader: Reader<'d>,
    mut each: impl FnMut(u16, Reader<'d>) -> Option<()>,
) -> Option<()> {
    if reader.0.is_empty() {
        return Some(());
    }
    let mut list = Reader(reader.vector16().filter(|_| reader.0.is_empty())?);
    while !list.0.is_empty() {
        let (kind, data) = (list.u16()?, list.vector16()?);
        each(kind, Reader(data))?;
    }
    Some(())
}

/// Reader of integers and vectors. RFC 5246, section 4.
struct Reader<'d>(&'d [u8]);

impl<'d> Reader<'d> {
    fn octets(&mut self, len: usize) -> Option<&'d [u8]> {
        let (octets, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(octets)
    }

    fn uint(&mut self, len: usize) -> Option<usize> {
        Some(self.octets(len)?.iter().fold(0, |number, octet| number << 8 | usize::from(*octet)))
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.uint(1)? as u8)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(self.uint(2)? as u16)
    }

    fn u24(&mut self) -> Option<usize> {
        self.uint(3)
    }

    fn vector8(&mut self) -> Option<&'d [u8]> {
        let len = self.uint(1)?;
        self.octets(len)
    }

    fn vector16(&mut self) -> Option<&'d [u8]> {
        let len = self.uint(2)?;
        self.octets(len)
    }

    /// Returns a session ID. RFC 5246, section 7.4.1.2.
    fn session_id(&mut self) -> Option<&'d [u8]> {
        self.vector8().filter(|session_id| session_id.len() <= 32)
    }

    /// Returns a vector behind which there is nothing.
    fn last_vector8(&mut self) -> Option<&'d [u8]> {
        let vector = self.vector8()?;
        self.0.is_empty().then_some(vector)
    }
}

const _: () = assert!(MAX_CID <= u8::MAX as usize);
