//! An association: the keys of both directions and the records they protect. RFC 6347, section 4.1.2; RFC 6655; RFC 9146, section 5.3.
//!
//! Its epoch is 1, since there is no renegotiation. Keys are kept as octets and expanded for each record: ten thousand
//! associations then need little memory.

use aes::Aes128Enc;
use ccm::Ccm;
use ccm::aead::consts::{U8, U12};
use ccm::aead::{AeadInOut as _, KeyInit as _, Tag};
use zeroize::Zeroizing;

use crate::alert::Alert;
use crate::cid::{Cid, MAX_CID};
use crate::record::{
    ALERT, HEADER, MAX_CONTENT, MAX_SEQUENCE, NONCE, Record, SendError, TAG, TLS12_CID, VERSION, write_header,
};
use crate::window::ReplayWindow;

/// Octets of a key.
pub(crate) const KEY: usize = 16;

/// Octets of the part of a nonce that is not sent. RFC 6655, section 3.
pub(crate) const IV: usize = 4;

/// Epoch of all records that are protected.
const EPOCH: u64 = 1;

type Aead = Ccm<Aes128Enc, U8, U12>;

/// Key and implicit part of the nonces of one direction.
pub(crate) struct TrafficKey(Zeroizing<[u8; KEY + IV]>);

impl TrafficKey {
    pub(crate) fn new(key: &[u8], iv: &[u8]) -> Self {
        let mut octets = Zeroizing::new([0; KEY + IV]);
        octets.iter_mut().zip(key.iter().chain(iv)).for_each(|(to, from)| *to = *from);
        Self(octets)
    }

    fn cipher(&self) -> Aead {
        let (key, _) = self.0.split_first_chunk::<KEY>().expect("a key and more");
        Aead::new(key.into())
    }

    fn nonce(&self, explicit: &[u8; NONCE]) -> [u8; IV + NONCE] {
        let (_, iv) = self.0.split_last_chunk::<IV>().expect("an IV and more");
        core::array::from_fn(|place| if place < IV { iv[place] } else { explicit[place - IV] })
    }
}

/// Keys, sequence numbers and connection IDs of a session.
pub(crate) struct Association {
    write: TrafficKey,
    read: TrafficKey,
    /// Next sequence number to send.
    pub(crate) sequence: u64,
    window: ReplayWindow,
    /// Connection ID of the other end, in records that are sent.
    write_cid: Cid,
    /// Length of our connection ID, in records that are received.
    read_cid_len: u8,
}

/// An authentic record.
pub(crate) struct Opened<'d> {
    pub(crate) content_type: u8,
    pub(crate) content: &'d mut [u8],
    /// True if its sequence number is the highest one so far.
    pub(crate) is_newest: bool,
}

impl Association {
    pub(crate) fn new(write: TrafficKey, read: TrafficKey, write_cid: Cid, read_cid_len: usize) -> Self {
        // At most `MAX_CID`.
        let read_cid_len = read_cid_len as u8;
        Self { write, read, sequence: 0, window: ReplayWindow::default(), write_cid, read_cid_len }
    }

    /// True if the other end puts a connection ID into its records.
    pub(crate) const fn has_read_cid(&self) -> bool {
        self.read_cid_len > 0
    }

    /// Returns the length of a record with so much content, in octets.
    pub(crate) const fn record_len(&self, content: usize) -> usize {
        let inner_type = if self.write_cid.is_empty() { 0 } else { 1 };
        HEADER + self.write_cid.len() + NONCE + content + inner_type + TAG
    }

    /// Writes a protected record, and returns its length.
    pub(crate) fn seal(
        &mut self,
        content_type: u8,
        content: &[u8],
        out: &mut [u8],
    ) -> Result<usize, SendError> {
        let len = self.record_len(content.len());
        let too_long = SendError::TooLong { len };
        if content.len() > MAX_CONTENT {
            return Err(too_long);
        }
        if self.sequence > MAX_SEQUENCE {
            return Err(SendError::Exhausted);
        }
        let number = EPOCH << 48 | self.sequence;
        let cid = self.write_cid;
        let inner = len - HEADER - cid.len() - NONCE - TAG;
        let out = out.get_mut(..len).ok_or(too_long)?;
        let at =
            write_header(out, content_type, VERSION, number, &cid, NONCE + inner + TAG).ok_or(too_long)?;
        let (explicit, rest) =
            out.get_mut(at..).and_then(|rest| rest.split_first_chunk_mut::<NONCE>()).ok_or(too_long)?;
        // The explicit nonce counts: it never repeats under one key.
        *explicit = number.to_be_bytes();
        let (text, tag) = rest.split_last_chunk_mut::<TAG>().ok_or(too_long)?;
        text.iter_mut().zip(content.iter().chain([&content_type])).for_each(|(to, from)| *to = *from);
        let aad = Aad::new(content_type, VERSION, number, &cid, inner);
        let sealed = self.write.cipher().encrypt_inout_detached(
            &self.write.nonce(explicit).into(),
            aad.octets(),
            text.into(),
        );
        *tag = sealed.map_err(|_| too_long)?.into();
        self.sequence += 1;
        Ok(len)
    }

    /// Decrypts a record in place. `None`, and nothing changes but its octets, if it is not authentic or was received before. RFC
    /// 6347, section 4.1.2.6.
    pub(crate) fn open<'d>(&mut self, record: Record<'d>) -> Option<Opened<'d>> {
        let has_cid = record.content_type == TLS12_CID;
        let is_possible = u64::from(record.epoch) == EPOCH
            && record.version == VERSION
            && has_cid == self.has_read_cid()
            && self.window.allows(record.sequence);
        if !is_possible {
            return None;
        }
        let (explicit, rest) = record.fragment.split_first_chunk_mut::<NONCE>()?;
        let (text, tag) = rest.split_last_chunk_mut::<TAG>()?;
        let number = EPOCH << 48 | record.sequence;
        let aad = Aad::new(record.content_type, record.version, number, &record.cid, text.len());
        let nonce = self.read.nonce(explicit).into();
        let opened = self.read.cipher().decrypt_inout_detached(
            &nonce,
            aad.octets(),
            (&mut *text).into(),
            &Tag::<Aead>::from(*tag),
        );
        opened.ok()?;
        let is_newest = self.window.receive(record.sequence);
        let (content_type, len) = match has_cid {
            false => (record.content_type, text.len()),
            // The type is the last octet that is not zero: RFC 9146, section 4.
            true => {
                let len = text.iter().rposition(|octet| *octet != 0)?;
                (*text.get(len)?, len)
            }
        };
        Some(Opened { content_type, content: text.get_mut(..len)?, is_newest })
    }

    /// Writes an alert.
    pub(crate) fn seal_alert(&mut self, alert: Alert, out: &mut [u8]) -> Option<usize> {
        self.seal(ALERT, &alert.octets(), out).ok()
    }
}

/// Additional data of a record. RFC 5246, section 6.2.3.3; RFC 9146, section 5.3.
struct Aad {
    octets: [u8; 23 + MAX_CID],
    len: usize,
}

impl Aad {
    /// `len`: octets that are encrypted.
    fn new(content_type: u8, version: u16, number: u64, cid: &Cid, len: usize) -> Self {
        let (number, version) = (number.to_be_bytes(), version.to_be_bytes());
        // The length of a record fits in 16 bits.
        let len = (len as u16).to_be_bytes();
        let mut aad = Self { octets: [0; 23 + MAX_CID], len: 0 };
        match cid.is_empty() {
            true => [&number[..], &[content_type], &version, &len].iter().for_each(|part| aad.push(part)),
            false => {
                let types = [TLS12_CID, cid.len() as u8, TLS12_CID];
                [&[0xff; 8][..], &types, &version, &number, cid.octets(), &len]
                    .iter()
                    .for_each(|part| aad.push(part));
            }
        }
        aad
    }

    fn push(&mut self, part: &[u8]) {
        if let Some(room) = self.octets.get_mut(self.len..self.len + part.len()) {
            room.copy_from_slice(part);
            self.len += part.len();
        }
    }

    fn octets(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or_default()
    }
}
