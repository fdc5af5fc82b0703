//! Feedback from decompressor to compressor. RFC 5795, section 5.2.4; the format of the RFC 3095 family and
//! its options, RFC 3095, section 5.7.6, with RFC 4815, sections 2.3, 8.5 and 8.6.

use crate::cid::{Cid, CidSpace};
use crate::id::ProfileId;
use crate::mode::Mode;
use crate::state::DecompressorState;
use thinair_wire::crc::Check;

/// State of the decompressor's context, as acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckType {
    /// The context is valid.
    Ack,
    /// The dynamic context is invalid.
    Nack,
    /// The static context is invalid or missing.
    StaticNack,
}

/// Option types of RFC 3095, section 5.7.6.2, and RFC 3843, section 3.7.
mod option {
    pub(super) const CRC: u8 = 1;
    pub(super) const REJECT: u8 = 2;
    pub(super) const SN_NOT_VALID: u8 = 3;
    pub(super) const SN: u8 = 4;
    pub(super) const CLOCK: u8 = 5;
    pub(super) const JITTER: u8 = 6;
    pub(super) const LOSS: u8 = 7;
    pub(super) const CONTEXT_MEMORY: u8 = 9;
    /// RFC 5225, section 6.9.2.4.
    pub(super) const CLOCK_RESOLUTION: u8 = 10;
}

/// Format of a FEEDBACK-2 element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FeedbackForm {
    /// RFC 3095, section 5.7.6: mode, 12 bits of SN, options of which one is a CRC.
    #[default]
    Rfc3095,
    /// RFC 6846, section 8.3: 14 bits of MSN and a CRC-8, then options. Profiles 0x0006, 0x0181 and 0x0182 have it.
    Rfc6846,
    /// RFC 5225, section 6.9: as RFC 6846, with other options; an unknown option invalidates the element.
    Rfc5225,
}

impl FeedbackForm {
    /// Returns the form that a profile uses.
    pub const fn of(profile: ProfileId) -> Self {
        match profile {
            ProfileId::Tcp | ProfileId::Coap | ProfileId::Dtls => Self::Rfc6846,
            ProfileId::RtpV2
            | ProfileId::UdpV2
            | ProfileId::EspV2
            | ProfileId::IpV2
            | ProfileId::RtpUdpLiteV2
            | ProfileId::UdpLiteV2 => Self::Rfc5225,
            _ => Self::Rfc3095,
        }
    }
}

/// One feedback element in the format of the RFC 3095 family; with [`FeedbackForm::Rfc6846`], in that of profiles 0x0006,
/// 0x0181 and 0x0182.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// CID of the context.
    pub cid: Cid,
    /// ACK, NACK or STATIC-NACK.
    pub ack: AckType,
    /// Mode that the decompressor requests; `None` in FEEDBACK-1 and where it is reserved.
    pub mode: Option<Mode>,
    /// Least significant bits of an SN, if it is valid.
    pub sn: u32,
    /// Number of bits of SN; 0 if the SN is not valid.
    pub sn_bits: u32,
    /// True if a CRC option protected the element.
    pub protected: bool,
    /// REJECT: the decompressor has no resources for the flow.
    pub reject: bool,
    /// CONTEXT_MEMORY: the decompressor has no memory for the flow as it is compressed.
    pub context_memory: bool,
    /// CLOCK: clock resolution in milliseconds; 0 means no timer-based decompression.
    pub clock: Option<u8>,
    /// JITTER: largest jitter observed, in units of TS_STRIDE.
    pub jitter: Option<u8>,
    /// LOSS: longest loss event, in packets. Of profile 0x0181: packets lost since the last report.
    pub loss: Option<u8>,
    /// Format of the element.
    pub form: FeedbackForm,
}

/// Reason feedback is ignored: an error of the peer, or damage on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackError {
    /// The element is shorter than its fields require.
    Truncated,
    /// Acktype 3, or an option with a wrong length for its type.
    Malformed,
    /// The CRC option does not match, or two CRC options differ.
    Crc,
    /// REJECT without a CRC option (RFC 3095, section 5.7.6.4).
    Unprotected,
    /// The channel has no such context.
    UnknownCid(Cid),
}

impl FeedbackError {
    /// A stable name for reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Truncated => "truncated_element",
            Self::Malformed => "malformed_element",
            Self::Crc => "bad_crc",
            Self::Unprotected => "unprotected_reject",
            Self::UnknownCid(_) => "unknown_cid",
        }
    }
}

impl core::fmt::Display for FeedbackError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Truncated => write!(f, "truncated feedback element"),
            Self::Malformed => {
                write!(f, "malformed feedback element: reserved Acktype, or an option with a wrong length")
            }
            Self::Crc => write!(f, "the CRC option of the feedback element does not match"),
            Self::Unprotected => write!(f, "REJECT without a CRC option is ignored"),
            Self::UnknownCid(cid) => write!(f, "feedback for CID {}, which has no context", cid.value()),
        }
    }
}

impl core::error::Error for FeedbackError {}

/// Length of the longest element that [`Feedback::write`] makes: type, large CID, FEEDBACK-2, and the options SN, CRC,
/// REJECT, SN-NOT-VALID, CONTEXT_MEMORY, CLOCK, JITTER and LOSS.
pub const MAX_ELEMENT: usize = 2 + 2 + 2 + 2 * 2 + 2 + 3 + 3 * 2;

impl Feedback {
    /// Number of packets that were sent after the acknowledged one, of which `newest` is the SN or MSN of the last; `None` without an
    /// SN. "The compressor matches valid SN LSBs with the most recent header sent with a SN with matching LSBs" (RFC 3095, section
    /// 5.7.6.3).
    #[inline(never)]
    pub(crate) fn newer(&self, newest: u32) -> Option<u32> {
        let bits = self.sn_bits.min(16);
        (bits > 0).then(|| newest.wrapping_sub(self.sn) & ((1 << bits) - 1))
    }

    /// Creates an acknowledgment of `cid` without SN, mode and options.
    pub fn new(cid: Cid, ack: AckType) -> Self {
        Self {
            cid,
            ack,
            mode: None,
            sn: 0,
            sn_bits: 0,
            protected: false,
            reject: false,
            context_memory: false,
            clock: None,
            jitter: None,
            loss: None,
            form: FeedbackForm::Rfc3095,
        }
    }

    /// Converts the element to a format with 14 bits of MSN, if the context has one.
    pub(crate) fn with_msn(self, form: FeedbackForm, state: DecompressorState, msn: u16) -> Self {
        let (sn, sn_bits) = match state {
            DecompressorState::Nc => (0, 0),
            DecompressorState::Sc | DecompressorState::Fc => (u32::from(msn) & 0x3FFF, 14),
        };
        Self { sn, sn_bits, mode: None, form, ..self }
    }

    /// Reads the data of one element, CID included ([`Elements`](crate::packet::Elements) yields them).
    pub fn read(data: &[u8], space: CidSpace) -> Result<Self, FeedbackError> {
        let (cid, body) = split_cid(data, space).ok_or(FeedbackError::Truncated)?;
        match *body {
            [] => Err(FeedbackError::Truncated),
            [sn] => Ok(Self { sn: u32::from(sn), sn_bits: 8, ..Self::new(cid, AckType::Ack) }),
            [first, second, ref options @ ..] => {
                let ack = match first >> 6 {
                    0 => AckType::Ack,
                    1 => AckType::Nack,
                    2 => AckType::StaticNack,
                    _ => return Err(FeedbackError::Malformed),
                };
                let mut feedback = Self::new(cid, ack);
                feedback.mode = Mode::from_bits(first >> 4 & 0b11);
                feedback.sn = u32::from(first & 0x0F) << 8 | u32::from(second);
                feedback.sn_bits = 12;
                feedback.read_options(data, options)?;
                Ok(feedback)
            }
        }
    }

    /// Returns the CID of an element.
    pub fn cid(data: &[u8], space: CidSpace) -> Option<Cid> {
        split_cid(data, space).map(|(cid, _)| cid)
    }

    /// Returns the CID and the acknowledgment of an element in any format; `None` for reserved values.
    pub fn glance(data: &[u8], space: CidSpace) -> Option<(Cid, AckType)> {
        let (cid, body) = split_cid(data, space)?;
        match (body, body.first()? >> 6) {
            ([_], _) | (_, 0) => Some((cid, AckType::Ack)),
            (_, 1) => Some((cid, AckType::Nack)),
            (_, 2) => Some((cid, AckType::StaticNack)),
            _ => None,
        }
    }

    /// Reads the data of one element in a format, CID included.
    pub fn read_as(form: FeedbackForm, data: &[u8], space: CidSpace) -> Result<Self, FeedbackError> {
        if form == FeedbackForm::Rfc3095 {
            return Self::read(data, space);
        }
        let (cid, body) = split_cid(data, space).ok_or(FeedbackError::Truncated)?;
        let new = |ack| Self { form, ..Self::new(cid, ack) };
        match *body {
            [] => Err(FeedbackError::Truncated),
            [msn] => Ok(Self { sn: u32::from(msn), sn_bits: 8, ..new(AckType::Ack) }),
            [_, _] => Err(FeedbackError::Truncated),
            [first, second, crc, ref options @ ..] => {
                let ack = match first >> 6 {
                    0 => AckType::Ack,
                    1 => AckType::Nack,
                    2 => AckType::StaticNack,
                    _ => return Err(FeedbackError::Malformed),
                };
                // "The CRC is calculated over the entire feedback element, with the CRC set to zero."
                let at = data.len() - options.len() - 1;
                let state = Check::Crc8.of(data.get(..at).unwrap_or_default());
                if Check::Crc8.update(Check::Crc8.update(state, &[0]), options) != crc {
                    return Err(FeedbackError::Crc);
                }
                let mut feedback = new(ack);
                feedback.sn = u32::from(first & 0x3F) << 8 | u32::from(second);
                feedback.sn_bits = 14;
                feedback.protected = true;
                match form {
                    FeedbackForm::Rfc5225 => feedback.read_options_of_rfc5225(options)?,
                    _ => feedback.read_options(data, options)?,
                }
                Ok(feedback)
            }
        }
    }

    /// RFC 5225, section 6.9.2: an element with an unknown option, or with one of them twice, is discarded.
    fn read_options_of_rfc5225(&mut self, mut options: &[u8]) -> Result<(), FeedbackError> {
        let mut seen = 0_u16;
        while let [head, rest @ ..] = options {
            let (value, rest) =
                rest.split_at_checked(usize::from(head & 0x0F)).ok_or(FeedbackError::Truncated)?;
            match (head >> 4, value) {
                (option::REJECT, []) => self.reject = true,
                (option::SN_NOT_VALID, []) => (self.sn, self.sn_bits) = (0, 0),
                (option::CONTEXT_MEMORY, []) => self.context_memory = true,
                (option::CLOCK_RESOLUTION, &[value]) => self.clock = Some(value),
                _ => return Err(FeedbackError::Malformed),
            }
            if seen >> (head >> 4) & 1 == 1 {
                return Err(FeedbackError::Malformed);
            }
            seen |= 1 << (head >> 4);
            options = rest;
        }
        Ok(())
    }

    fn read_options(&mut self, data: &[u8], mut options: &[u8]) -> Result<(), FeedbackError> {
        let start = data.len() - options.len();
        let mut crc = None;
        let mut sn_valid = true;
        while let [head, rest @ ..] = options {
            let (value, rest) =
                rest.split_at_checked(usize::from(head & 0x0F)).ok_or(FeedbackError::Truncated)?;
            match (head >> 4, value) {
                (option::CRC, &[value]) => {
                    // RFC 4815, section 8.6: several CRC options must be identical.
                    if crc.is_some_and(|other| other != value) {
                        return Err(FeedbackError::Crc);
                    }
                    crc = Some(value);
                }
                (option::REJECT, []) => self.reject = true,
                (option::SN_NOT_VALID, []) => sn_valid = false,
                // RFC 6846, section 8.3.2.3: "2 additional bits of MSN".
                (option::SN, &[value]) if self.form == FeedbackForm::Rfc6846 => {
                    self.sn = self.sn << 2 | u32::from(value >> 6);
                    self.sn_bits = 16;
                }
                (option::SN, &[value]) => {
                    self.sn = self.sn << 8 | u32::from(value);
                    self.sn_bits = (self.sn_bits + 8).min(32);
                }
                (option::CLOCK, &[value]) => self.clock = Some(value),
                (option::JITTER, &[value]) => self.jitter = Some(value),
                (option::LOSS, &[value]) => self.loss = Some(value),
                (option::CONTEXT_MEMORY, []) => self.context_memory = true,
                (
                    option::CRC
                    | option::REJECT
                    | option::SN_NOT_VALID
                    | option::SN
                    | option::CLOCK
                    | option::JITTER
                    | option::LOSS
                    | option::CONTEXT_MEMORY,
                    _,
                ) => return Err(FeedbackError::Malformed),
                // RFC 3095, section 5.7.6.10: an unknown option is ignored.
                _ => {}
            }
            options = rest;
        }
        if !sn_valid {
            self.sn_bits = 0;
        }
        if let Some(crc) = crc {
            if crc_with_holes(data, start) != crc {
                return Err(FeedbackError::Crc);
            }
            self.protected = true;
        }
        if self.reject && !self.protected {
            return Err(FeedbackError::Unprotected);
        }
        Ok(())
    }

    /// Writes the element, including its type octet, to the start of `out` and returns its length.
    ///
    /// The format is FEEDBACK-1 where it has room for all fields, otherwise FEEDBACK-2, with a CRC option if `protected`.
    /// `None` if `out` is too short; [`MAX_ELEMENT`] octets are always enough.
    pub fn write(&self, space: CidSpace, out: &mut [u8]) -> Option<usize> {
        let mut data = [0_u8; MAX_ELEMENT];
        let mut len = 0;
        let mut put = |octets: &[u8]| {
            data[len..len + octets.len()].copy_from_slice(octets);
            len += octets.len();
        };
        match space {
            CidSpace::Small if self.cid != Cid::ZERO => put(&[self.cid.add_cid()]),
            CidSpace::Small => {}
            CidSpace::Large => {
                let mut cid = [0; 2];
                let octets = self.cid.octets_inside(space);
                self.cid.write_large(&mut cid[..octets]);
                put(&cid[..octets]);
            }
        }
        // RFC 4815, section 8.5: several SN options are concatenated.
        let sn_octets = self.sn_bits.saturating_sub(12).div_ceil(8).min(3);
        let plain = self.ack == AckType::Ack
            && self.mode.is_none()
            && self.sn_bits == 8
            && !(self.protected || self.reject || self.context_memory)
            && (self.form == FeedbackForm::Rfc6846
                || (self.clock, self.jitter, self.loss) == (None, None, None));
        if plain {
            put(&[self.sn as u8]);
        } else {
            let ack = match self.ack {
                AckType::Ack => 0,
                AckType::Nack => 1,
                AckType::StaticNack => 2_u8,
            };
            if self.form != FeedbackForm::Rfc3095 {
                put(&[ack << 6 | (self.sn >> 8) as u8 & 0x3F, self.sn as u8, 0]);
                let crc_at = self.cid.octets_before(space) + self.cid.octets_inside(space) + 2;
                if self.sn_bits == 0 {
                    put(&[option::SN_NOT_VALID << 4]);
                }
                if self.reject {
                    put(&[option::REJECT << 4]);
                }
                match (self.form, self.loss, self.clock) {
                    (FeedbackForm::Rfc6846, Some(loss), _) => put(&[option::LOSS << 4 | 1, loss]),
                    (FeedbackForm::Rfc5225, _, Some(clock)) => {
                        put(&[option::CLOCK_RESOLUTION << 4 | 1, clock])
                    }
                    _ => {}
                }
                data[crc_at] = Check::Crc8.of(&data[..len]);
                return put_element(&data[..len], out);
            }
            let mode = self.mode.map_or(0, Mode::bits);
            let sn = self.sn >> (8 * sn_octets);
            put(&[ack << 6 | mode << 4 | (sn >> 8) as u8 & 0x0F, sn as u8]);
            for octet in (0..sn_octets).rev() {
                put(&[option::SN << 4 | 1, (self.sn >> (8 * octet)) as u8]);
            }
            if self.sn_bits == 0 {
                put(&[option::SN_NOT_VALID << 4]);
            }
            if self.reject {
                put(&[option::REJECT << 4]);
            }
            if self.context_memory {
                put(&[option::CONTEXT_MEMORY << 4]);
            }
            let values =
                [(option::CLOCK, self.clock), (option::JITTER, self.jitter), (option::LOSS, self.loss)];
            for (kind, value) in values {
                if let Some(value) = value {
                    put(&[kind << 4 | 1, value]);
                }
            }
            if self.protected {
                put(&[option::CRC << 4 | 1, 0]);
                data[len - 1] = Check::Crc8.of(&data[..len]);
            }
        }
        put_element(&data[..len], out)
    }
}

/// Writes an element with its type octet. RFC 5795, section 5.2.4.1.
fn put_element(data: &[u8], out: &mut [u8]) -> Option<usize> {
    let len = data.len();
    let head = if len <= 7 { 1 } else { 2 };
    let room = out.get_mut(..head + len)?;
    match head {
        1 => room[0] = 0b1111_0000 | len as u8,
        _ => room[..2].copy_from_slice(&[0b1111_0000, len as u8]),
    }
    room[head..].copy_from_slice(data);
    Some(head + len)
}

/// Splits the CID from the data of a feedback element. RFC 3095, section 5.2.2, rules 1 to 4.
fn split_cid(data: &[u8], space: CidSpace) -> Option<(Cid, &[u8])> {
    match space {
        CidSpace::Large => Cid::read_large(data),
        CidSpace::Small => match *data {
            [first, ref rest @ ..] if !rest.is_empty() && first & 0b1100_0000 == 0b1100_0000 => {
                let cid = Cid::new(u16::from(first & 0x0F))?;
                (first & 0b1111_0000 == 0b1110_0000).then_some((cid, rest))
            }
            _ => Some((Cid::ZERO, data)),
        },
    }
}

/// Returns the CRC-8 of `data` with zero in place of the values of all CRC options.
fn crc_with_holes(data: &[u8], options: usize) -> u8 {
    let mut state = Check::Crc8.update(Check::Crc8.start(), &data[..options]);
    let mut rest = &data[options..];
    while let [head, tail @ ..] = rest {
        let (value, tail) = tail.split_at_checked(usize::from(head & 0x0F)).unwrap_or((tail, &[]));
        state = Check::Crc8.update(state, &[*head]);
        state = if head >> 4 == option::CRC {
            Check::Crc8.update(state, &[0])
        } else {
            Check::Crc8.update(state, value)
        };
        rest = tail;
    }
    state
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::packet::parts;
    use proptest::prelude::*;

    fn data(element: &[u8]) -> &[u8] {
        parts(element).unwrap().feedback.next().unwrap()
    }

    /// RFC 3095, section 5.7.6.11: ACK of SN 17 for CID 8, Reliable mode.
    #[test]
    fn a_glance_sees_cid_and_acktype_of_all_formats() {
        for form in [FeedbackForm::Rfc3095, FeedbackForm::Rfc6846, FeedbackForm::Rfc5225] {
            for (space, cid) in [(CidSpace::Small, 0), (CidSpace::Small, 9), (CidSpace::Large, 300)] {
                let cid = Cid::new(cid).unwrap();
                for ack in [AckType::Ack, AckType::Nack, AckType::StaticNack] {
                    for sn_bits in [0, 8, 12] {
                        let feedback = Feedback { form, sn: 5, sn_bits, ..Feedback::new(cid, ack) };
                        let mut out = [0; MAX_ELEMENT];
                        let len = feedback.write(space, &mut out).unwrap();
                        assert_eq!(Feedback::glance(&out[1..len], space), Some((cid, ack)));
                    }
                }
            }
        }
        assert_eq!(Feedback::glance(&[], CidSpace::Small), None);
        assert_eq!(Feedback::glance(&[0xC0, 0], CidSpace::Small), None);
    }

    #[test]
    fn the_examples_of_the_rfc_are_read_and_written() {
        let cid = Cid::new(8).unwrap();
        let ack =
            Feedback { mode: Some(Mode::Reliable), sn: 17, sn_bits: 12, ..Feedback::new(cid, AckType::Ack) };
        let short = Feedback { sn: 17, sn_bits: 8, ..Feedback::new(cid, AckType::Ack) };
        let zero = Feedback { cid: Cid::ZERO, ..short };
        for (feedback, space, octets) in [
            (ack, CidSpace::Small, &[0xF3, 0xE8, 0x30, 17][..]),
            (short, CidSpace::Large, &[0xF2, 8, 17]),
            (short, CidSpace::Small, &[0xF2, 0xE8, 17]),
            (zero, CidSpace::Small, &[0xF1, 17]),
        ] {
            let mut out = [0; MAX_ELEMENT];
            let len = feedback.write(space, &mut out).unwrap();
            assert_eq!(&out[..len], octets);
            assert_eq!(Feedback::read(data(octets), space), Ok(feedback));
        }
    }

    #[test]
    fn a_damaged_protected_element_is_refused() {
        let nack = Feedback {
            mode: Some(Mode::Optimistic),
            sn: 0x1234,
            sn_bits: 20,
            protected: true,
            ..Feedback::new(Cid::new(300).unwrap(), AckType::Nack)
        };
        let mut out = [0; MAX_ELEMENT];
        let len = nack.write(CidSpace::Large, &mut out).unwrap();
        assert_eq!(Feedback::read(data(&out[..len]), CidSpace::Large), Ok(nack));
        for bit in 0..(len - 1) * 8 {
            let mut damaged = out;
            damaged[1 + bit / 8] ^= 1 << (bit % 8);
            assert_ne!(Feedback::read(&damaged[1..len], CidSpace::Large), Ok(nack), "bit {bit}");
        }
    }

    /// Every option of RFC 3095, section 5.7.6, made by hand; the SN has 32 bits as in profile 0x0003 (RFC 4815, section
    /// 8.5).
    #[test]
    fn all_options_are_written_and_read() {
        let cid = Cid::new(0).unwrap();
        let all = Feedback {
            mode: Some(Mode::Optimistic),
            sn: 0xA1B2_C3D4,
            sn_bits: 32,
            protected: true,
            reject: true,
            context_memory: true,
            clock: Some(10),
            jitter: Some(3),
            loss: Some(200),
            ..Feedback::new(cid, AckType::Nack)
        };
        let mut out = [0; MAX_ELEMENT];
        let len = all.write(CidSpace::Small, &mut out).unwrap();
        let expected = [
            0xF0, 18, 0x60, 0xA1, 0x41, 0xB2, 0x41, 0xC3, 0x41, 0xD4, 0x20, 0x90, 0x51, 10, 0x61, 3, 0x71,
            200, 0x11,
        ];
        assert_eq!(out[..expected.len()], expected);
        assert_eq!(len, expected.len() + 1);
        let read = Feedback::read(data(&out[..len]), CidSpace::Small);
        // 12 bits and three options make 36.
        assert_eq!(read, Ok(all));
        // FEEDBACK-1 has no options.
        let clock = Feedback { sn: 7, sn_bits: 8, clock: Some(1), ..Feedback::new(cid, AckType::Ack) };
        let len = clock.write(CidSpace::Small, &mut out).unwrap();
        assert_eq!(out[..len], [0xF4, 0x00, 7, 0x51, 1]);
    }

    #[test]
    fn reject_needs_a_crc_and_unknown_options_are_passed_over() {
        assert_eq!(Feedback::read(&[0x20, 1, 0x20], CidSpace::Small), Err(FeedbackError::Unprotected));
        let unknown = Feedback::read(&[0x20, 1, 0xE2, 7, 7, 0x30], CidSpace::Small).unwrap();
        assert_eq!(unknown.sn_bits, 0);
        assert_eq!(Feedback::read(&[0x20, 1, 0xE2, 7], CidSpace::Small), Err(FeedbackError::Truncated));
    }

    proptest! {
        #[test]
        fn arbitrary_octets_are_read_or_refused(octets: alloc::vec::Vec<u8>, large: bool) {
            let space = if large { CidSpace::Large } else { CidSpace::Small };
            let _ = Feedback::read(&octets, space);
        }
    }
}
