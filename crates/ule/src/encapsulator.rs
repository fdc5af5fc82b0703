//! Encapsulator: SNDUs into TS Packets of one PID. RFC 4326, section 6.
//!
//! There are two modes. Where PDUs set the pace, they are [pushed](Encapsulator::push), and a TS Packet is sent when it
//! is full, or when the Packing Threshold is reached. Where a transmitter of constant rate sets the pace, it
//! [pulls](Encapsulator::pull) a TS Packet for each of its slots: full as long as PDUs are queued, then padded, then a
//! null packet. Padding costs nothing in this mode, as the slot would have been empty, so nothing ever waits.

use core::time::Duration;
use thinair_wire::time::Instant;

use crate::extension::PduConcat;
use crate::sndu::{LONGEST, Pdus, Sndu, SnduError, SnduFrame};
use crate::source::{Queued, SnduSource};
use crate::ts::{Cc, HEADER, LEN, NULL_PACKET, Pid, STUFFING, TsHeader, TsPacket};

/// Offset of the octet with the flag PUSI in a TS Packet.
const PUSI_OCTET: usize = 1;
const PUSI: u8 = 0x40;

/// Time at which an incomplete TS Packet is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// At once: Padding. At most one SNDU starts in a TS Packet, and the delay is minimal.
    #[default]
    Off,
    /// After a time without a further SNDU, the Packing Threshold.
    Threshold {
        /// Longest wait. Zero is equivalent to [`Off`](Self::Off).
        wait: Duration,
        /// Start of the wait.
        since: Since,
    },
}

/// Start of the Packing Threshold. RFC 4326, section 6.2, bounds "the maximum period of time an Encapsulator can wait
/// for additional PDUs", which allows both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// The first SNDU that ends in the TS Packet: no SNDU is delayed by more than the threshold.
    #[default]
    First,
    /// The last SNDU: a TS Packet fills as long as SNDUs arrive faster than that, and the first one in it may wait for
    /// many thresholds.
    Last,
}

/// Concatenation of queued PDUs in one SNDU. RFC 5163, section 3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concat {
    /// Largest number of PDUs in an SNDU; below 2 there is no concatenation.
    pub pdus: usize,
    /// Largest SNDU of several PDUs, header and CRC included, in octets. A lost TS Packet loses all of them.
    pub octets: usize,
}

/// Settings of an [`Encapsulator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncapsulatorConfig {
    /// PID of the stream. It must be one [for streams](Pid::is_for_streams), or no Receiver finds it.
    pub pid: Pid,
    /// Waiting of pushed SNDUs for further ones.
    pub packing: Packing,
    /// Concatenation of queued PDUs of one Type to one destination. Both ends have to agree to it: Linux discards such
    /// SNDUs.
    pub concat: Option<Concat>,
}

impl EncapsulatorConfig {
    /// Returns settings with Padding, and one PDU in an SNDU.
    pub const fn new(pid: Pid) -> Self {
        Self { pid, packing: Packing::Off, concat: None }
    }
}

/// Counters of an [`Encapsulator`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncapsulatorCounters {
    /// SNDUs sent.
    pub sndus: u64,
    /// PDUs in them: more than SNDUs with PDU-Concat.
    pub pdus: u64,
    /// Octets of the SNDUs.
    pub octets: u64,
    /// TS Packets sent, null packets not counted.
    pub ts_packets: u64,
    /// TS Packets with an End Indicator and padding after it.
    pub padded: u64,
    /// Octets of padding, End Indicators included.
    pub padding: u64,
    /// Null packets returned by [`pull`](Encapsulator::pull).
    pub nulls: u64,
    /// PDUs that were taken from a source but cannot be sent, for any reason.
    pub refused: u64,
}

/// Reason why a pushed SNDU was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError {
    /// It cannot be sent.
    Sndu(SnduError),
    /// A pulled SNDU is not completely sent: continue with [`pull`](Encapsulator::pull).
    Midway,
}

impl core::fmt::Display for PushError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Sndu(error) => error.fmt(f),
            Self::Midway => f.write_str("another SNDU is partly sent; pull it to its end first"),
        }
    }
}

impl core::error::Error for PushError {}

impl From<SnduError> for PushError {
    fn from(error: SnduError) -> Self {
        Self::Sndu(error)
    }
}

/// Content of a transmitter's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulled<'e> {
    /// A TS Packet without room for another SNDU.
    Full(&'e TsPacket),
    /// A TS Packet that ends with padding, as no further PDU is queued.
    Padded(&'e TsPacket),
    /// Nothing is queued: send a null packet, or anything else.
    Null,
}

impl<'e> Pulled<'e> {
    /// Returns the packet; a null packet if there is nothing to send.
    pub const fn packet(self) -> &'e TsPacket {
        match self {
            Self::Full(packet) | Self::Padded(packet) => packet,
            Self::Null => &NULL_PACKET,
        }
    }
}

/// Encapsulates SNDUs into TS Packets of one PID.
///
/// It stores one TS Packet, and no other octets of an SNDU: an SNDU is copied once, from the caller's memory into TS
/// Packets.
///
/// **Push, and poll at [`poll_at`](Self::poll_at). Or pull. A change from pushing to pulling is possible at any time;
/// before a change from pulling to pushing, pull the incomplete SNDU to its end.**
///
/// ```
/// use thinair_ule::{Encapsulator, EncapsulatorConfig, EtherType, Pid, Sndu};
/// use thinair_wire::time::Instant;
///
/// let pid = Pid::new(0x35).ok_or("not a PID")?;
/// let mut encapsulator = Encapsulator::new(EncapsulatorConfig::new(pid));
/// let mut stream = Vec::new();
/// let sndu = Sndu::pdu(EtherType::ROHC, b"\0\xbe\xefhello");
/// encapsulator.push(Instant::ZERO, &sndu, &mut |packet| stream.push(*packet))?;
/// assert_eq!(stream.len(), 1);
/// assert!(stream[0].starts_with(b"\x47\x40\x35\x10\0\x80\x0c\x22\xf1\0\xbe\xefhello\x16\xad\x2f\x67\xff"));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Encapsulator {
    config: EncapsulatorConfig,
    packet: TsPacket,
    /// Offset of the next octet; `LEN` if no packet is begun.
    at: usize,
    /// True if PUSI is set in the begun packet.
    pusi: bool,
    cc: Cc,
    /// Time at which the begun packet has to be sent.
    deadline: Option<Instant>,
    /// SNDU that is partly sent, in pull mode.
    begun: Option<Begun>,
    counters: EncapsulatorCounters,
}

/// An SNDU that is partly sent.
#[derive(Clone, Copy, Debug)]
struct Begun {
    frame: SnduFrame,
    sent: usize,
    /// Number of PDUs of the source in it.
    pdus: usize,
}

impl Encapsulator {
    /// Creates an Encapsulator.
    pub fn new(config: EncapsulatorConfig) -> Self {
        Self {
            config,
            packet: NULL_PACKET,
            at: LEN,
            pusi: false,
            cc: Cc::default(),
            deadline: None,
            begun: None,
            counters: EncapsulatorCounters::default(),
        }
    }

    /// Returns the settings.
    pub const fn config(&self) -> &EncapsulatorConfig {
        &self.config
    }

    /// Returns the counters.
    pub const fn counters(&self) -> EncapsulatorCounters {
        self.counters
    }

    /// Sends an SNDU: full TS Packets are passed to `out`, and so is the rest of it if SNDUs do not wait.
    ///
    /// Packing can be decided SNDU by SNDU: [`flush`](Self::flush) before one starts it in a TS Packet of its own, after
    /// one sends it without delay.
    #[inline]
    pub fn push(
        &mut self,
        now: Instant,
        sndu: &Sndu<'_>,
        out: &mut impl FnMut(&TsPacket),
    ) -> Result<(), PushError> {
        if self.begun.is_some() {
            return Err(PushError::Midway);
        }
        let frame = SnduFrame::of(sndu)?;
        self.push_frame(now, &frame, sndu, sndu, sndu.pdus(), out);
        Ok(())
    }

    /// Sends all queued PDUs, with PDU-Concat if that is configured. Then SNDUs wait like those that are pushed.
    ///
    /// PDUs that cannot be sent are taken from the queue and counted.
    pub fn drain(
        &mut self,
        now: Instant,
        source: &mut impl SnduSource,
        out: &mut impl FnMut(&TsPacket),
    ) -> Result<(), PushError> {
        if self.begun.is_some() {
            return Err(PushError::Midway);
        }
        while let Some(Begun { frame, pdus, .. }) = self.begin(source) {
            let Some(head) = source.peek(0) else { break };
            self.push_frame(now, &frame, &head, &Queued { source, pdus }, pdus, out);
            source.take(pdus);
        }
        Ok(())
    }

    /// Returns the time of the next call of [`poll`](Self::poll), if nothing is pushed until then.
    pub const fn poll_at(&self) -> Option<Instant> {
        self.deadline
    }

    /// Sends the begun TS Packet if the Packing Threshold is reached.
    pub fn poll(&mut self, now: Instant, out: &mut impl FnMut(&TsPacket)) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.flush(out);
        }
    }

    /// Sends the begun TS Packet now, if there is one.
    pub fn flush(&mut self, out: &mut impl FnMut(&TsPacket)) {
        // No begun packet contains octets of a partly sent SNDU.
        if self.at < LEN {
            self.pad();
            out(&self.packet);
        }
    }

    /// Returns the TS Packet for the next slot of a transmitter, with PDUs of `source` as long as there is room.
    ///
    /// A PDU stays at the head of the source until its last octet is in a TS Packet; if it is replaced before, the
    /// Receiver detects a CRC error. PDUs that cannot be sent are taken from the source and counted.
    pub fn pull(&mut self, source: &mut impl SnduSource) -> Pulled<'_> {
        loop {
            let Some(mut begun) = self.begun.take().or_else(|| self.begin(source)) else {
                if self.at == LEN {
                    self.counters.nulls += 1;
                    return Pulled::Null;
                }
                self.pad();
                return Pulled::Padded(&self.packet);
            };
            // The source no longer has the PDU: the Receiver drops its part.
            let Some(head) = source.peek(0) else { continue };
            if begun.sent == 0 {
                self.start_sndu();
            } else {
                self.go_on();
            }
            begun.sent += self.fill(&begun.frame, begun.sent, &head, &Queued { source, pdus: begun.pdus });
            if begun.sent < begun.frame.octets {
                self.begun = Some(begun);
                self.complete();
                return Pulled::Full(&self.packet);
            }
            source.take(begun.pdus);
            if self.end_sndu(&begun.frame, begun.pdus) {
                return Pulled::Full(&self.packet);
            }
        }
    }

    /// Begins the next SNDU of a source.
    fn begin(&mut self, source: &mut impl SnduSource) -> Option<Begun> {
        loop {
            let first = source.peek(0)?;
            let (pdus, len) = self.concatenated(&first, source);
            let frame = if pdus > 1 {
                SnduFrame::around(&first, &Queued { source, pdus }, PduConcat::HEADER + len)
            } else {
                SnduFrame::of(&first)
            };
            match frame {
                Ok(frame) => return Some(Begun { frame, sent: 0, pdus }),
                Err(_) => {
                    self.counters.refused += 1;
                    source.take(1);
                }
            }
        }
    }

    /// Returns the number of PDUs at the head of a source that one SNDU combines, and their octets with their lengths.
    fn concatenated(&self, first: &Sndu<'_>, source: &impl SnduSource) -> (usize, usize) {
        let Some(Concat { pdus, octets }) = self.config.concat else { return (1, 0) };
        let with_length = |sndu: &Sndu<'_>| PduConcat::PDU_HEADER + sndu.one().map_or(0, <[u8]>::len);
        // Base header with address, PDU-Concat-Type, and CRC.
        let most = octets.min(LONGEST - 1).saturating_sub(16);
        let (mut count, mut len) = (1, with_length(first));
        while count < pdus {
            let Some(next) = source.peek(count).filter(|next| first.goes_with(next)) else { break };
            let longer = len.saturating_add(with_length(&next));
            if longer > most {
                break;
            }
            (count, len) = (count + 1, longer);
        }
        (count, len)
    }

    #[inline]
    fn push_frame(
        &mut self,
        now: Instant,
        frame: &SnduFrame,
        head: &Sndu<'_>,
        queued: &impl Pdus,
        pdus: usize,
        out: &mut impl FnMut(&TsPacket),
    ) {
        self.start_sndu();
        let mut sent = self.fill(frame, 0, head, queued);
        while sent < frame.octets {
            self.complete();
            out(&self.packet);
            self.go_on();
            sent += self.fill(frame, sent, head, queued);
        }
        if self.end_sndu(frame, pdus) {
            return out(&self.packet);
        }
        match self.config.packing {
            Packing::Threshold { wait, since } if !wait.is_zero() => {
                if since == Since::Last || self.deadline.is_none() {
                    self.deadline = Some(now + wait);
                }
            }
            Packing::Off | Packing::Threshold { .. } => self.flush(out),
        }
    }

    /// Makes room for the start of an SNDU, with PUSI and Payload Pointer.
    #[inline]
    fn start_sndu(&mut self) {
        if self.at == LEN {
            self.begin_packet(true);
            // The SNDU starts after the Payload Pointer.
            self.set_octet(HEADER, 0);
            self.at = HEADER + 1;
        } else if !self.pusi {
            // Rule (v): the present octets make room for the Payload Pointer. They are at most 181, or the packet would
            // have been sent.
            self.packet.copy_within(HEADER..self.at.min(LEN - 1), HEADER + 1);
            self.set_octet(HEADER, (self.at - HEADER) as u8);
            self.packet[PUSI_OCTET] |= PUSI;
            self.pusi = true;
            self.at += 1;
        }
    }

    /// Begins a TS Packet with the next octets of an SNDU.
    #[inline]
    fn go_on(&mut self) {
        self.begin_packet(false);
        self.at = HEADER;
    }

    #[inline]
    fn begin_packet(&mut self, pusi: bool) {
        let header = TsHeader::new(self.config.pid, pusi, self.cc).octets();
        if let Some(room) = self.packet.first_chunk_mut() {
            *room = header;
        }
        self.pusi = pusi;
        self.cc = self.cc.next();
    }

    /// Copies octets of an SNDU into the rest of the TS Packet, and returns their number.
    #[inline]
    fn fill(&mut self, frame: &SnduFrame, from: usize, head: &Sndu<'_>, queued: &impl Pdus) -> usize {
        let room = self.packet.get_mut(self.at..).unwrap_or_default();
        let len = frame.copy(from, room, head, queued);
        self.at += len;
        len
    }

    /// Ends an SNDU; returns true if the TS Packet is to be sent, as there is no room for the start of another one. RFC
    /// 4326, section 6.2, rules (i) to (iii).
    #[inline]
    fn end_sndu(&mut self, frame: &SnduFrame, pdus: usize) -> bool {
        self.counters.sndus += 1;
        self.counters.pdus += pdus as u64;
        self.counters.octets += frame.octets as u64;
        let start = if self.pusi { 2 } else { 3 };
        let free = LEN - self.at;
        if free >= start {
            return false;
        }
        self.stuff();
        self.counters.padding += free as u64;
        self.complete();
        true
    }

    /// Rule (iv): adds an End Indicator, and padding up to the end.
    fn pad(&mut self) {
        self.counters.padded += 1;
        self.counters.padding += (LEN - self.at) as u64;
        self.stuff();
        self.complete();
    }

    #[inline]
    fn stuff(&mut self) {
        if let Some(rest) = self.packet.get_mut(self.at..) {
            rest.fill(STUFFING);
        }
    }

    /// Counts the TS Packet as sent; none is begun.
    #[inline]
    fn complete(&mut self) {
        self.counters.ts_packets += 1;
        self.at = LEN;
        self.deadline = None;
    }

    #[inline]
    fn set_octet(&mut self, at: usize, value: u8) {
        if let Some(octet) = self.packet.get_mut(at) {
            *octet = value;
        }
    }
}
