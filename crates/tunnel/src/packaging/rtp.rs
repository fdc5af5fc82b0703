//! RTP header before TS Packets: payload type 33 (RFC 3551), with a clock of 90 kHz (RFC 2250, section 2).

use core::fmt;

use thinair_wire::header::rtp::Rtp;
use thinair_wire::time::Instant;

use super::counters::RtpCounters;

/// Payload type MP2T (RFC 3551, table 5).
pub const PAYLOAD_TYPE: u8 = 33;
/// Length of the sent header in octets.
pub const HEADER: usize = Rtp::LEN;

/// Maximum distance of a late sequence number from the newest one; a larger one is a restart (RFC 3550,
/// appendix A.1).
const MAX_MISORDER: u16 = 100;
/// Maximum number of sequence numbers lost at a time (RFC 3550, appendix A.1).
const MAX_DROPOUT: u16 = 3_000;
/// Maximum number of sources followed at a time.
const SOURCES: usize = 16;

/// Initial values of a source, which should be random (RFC 3550, section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Synchronization source.
    pub ssrc: u32,
    /// First sequence number.
    pub sequence_number: u16,
}

/// State of sent headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct RtpHeaders(Start);

impl RtpHeaders {
    pub(super) const fn new(start: Start) -> Self {
        Self(start)
    }

    /// Returns the header of a datagram sent at `now`: the timestamp is "the target transmission time" (RFC
    /// 2250, section 2).
    pub(super) fn next(&mut self, now: Instant) -> [u8; HEADER] {
        let Start { ssrc, sequence_number } = self.0;
        self.0.sequence_number = sequence_number.wrapping_add(1);
        // 90,000 per second; only the low 32 bits are sent.
        let timestamp = (u128::from(now.as_nanos()) * 9 / 100_000) as u32;
        let header = Rtp { payload_type: PAYLOAD_TYPE, sequence_number, timestamp, ssrc, ..Rtp::default() };
        let mut octets = [0; HEADER];
        // The buffer is large enough.
        let _ = header.write(&mut octets, 0);
        octets
    }
}

/// Reason why an RTP header is not one of TS Packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadRtp {
    /// The header is longer than the datagram.
    CutShort,
    /// Another payload type.
    PayloadType(u8),
    /// Invalid padding at the end of the datagram, with its length in octets.
    Padding(u8),
}

impl fmt::Display for BadRtp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutShort => f.write_str("the datagram ends within its RTP header"),
            Self::PayloadType(payload_type) => {
                write!(f, "RTP payload type {payload_type}; that of TS Packets is {PAYLOAD_TYPE}")
            }
            Self::Padding(octets) => write!(f, "RTP padding of {octets} octets"),
        }
    }
}

/// Parses headers, and follows the sequence numbers of each source.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    /// SSRC and newest sequence number of each source, most recent one first.
    known: Vec<(u32, u16)>,
    pub(super) counters: RtpCounters,
}

impl Sources {
    pub(super) fn new() -> Self {
        Self { known: Vec::with_capacity(SOURCES), counters: RtpCounters::default() }
    }

    /// Returns offset and octets of the TS Packets in a datagram, unless it is late. A datagram without RTP
    /// header, which begins with 0x47, is returned unchanged: version 2 of RTP has another first octet.
    pub(super) fn strip<'d>(&mut self, datagram: &'d [u8]) -> Result<Option<(usize, &'d [u8])>, BadRtp> {
        let [first, second, ..] = *datagram else { return Ok(Some((0, datagram))) };
        if first >> 6 != 2 {
            return Ok(Some((0, datagram)));
        }
        let payload_type = second & 0x7F;
        if payload_type != PAYLOAD_TYPE {
            return Err(BadRtp::PayloadType(payload_type));
        }
        let header = Rtp::read(datagram).map_err(|_| BadRtp::CutShort)?;
        let (start, mut end) = (header.len(), datagram.len());
        if header.padding {
            // The last octet includes itself in the count (RFC 3550, section 5.1).
            let padding = datagram.last().copied().unwrap_or(0);
            end = end.saturating_sub(usize::from(padding));
            if padding == 0 || end < start {
                return Err(BadRtp::Padding(padding));
            }
        }
        self.counters.packets += 1;
        let payload = datagram.get(start..end).ok_or(BadRtp::CutShort)?;
        Ok(self.advance(header.ssrc, header.sequence_number).then_some((start, payload)))
    }

    /// Notes a sequence number. True if the datagram is a new one.
    fn advance(&mut self, ssrc: u32, number: u16) -> bool {
        let Some(at) = self.known.iter().position(|(known, _)| *known == ssrc) else {
            self.counters.sources += 1;
            self.known.truncate(SOURCES - 1);
            self.known.insert(0, (ssrc, number));
            return true;
        };
        let newest = match self.known.get_mut(at) {
            Some((_, newest)) => std::mem::replace(newest, number),
            None => number,
        };
        let ahead = number.wrapping_sub(newest);
        if ahead > u16::MAX - MAX_MISORDER || ahead == 0 {
            self.counters.late += 1;
            if let Some((_, kept)) = self.known.get_mut(at) {
                *kept = newest;
            }
            return false;
        }
        match ahead {
            1..=MAX_DROPOUT => self.counters.lost += u64::from(ahead - 1),
            _ => self.counters.sources += 1,
        }
        if let Some(known) = self.known.get_mut(..=at) {
            known.rotate_right(1);
        }
        true
    }
}
