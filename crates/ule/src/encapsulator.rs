//! The Encapsulator: SNDUs into TS Packets of one PID. RFC 4326, section 6.
//!
//! There are two ways to run it. Where PDUs set the pace, they are [pushed](Encapsulator::push), and a TS Packet leaves
//! when it is full, or when the Packing Threshold is over. Where a transmitter of constant rate sets the pace, it
//! [pulls](Encapsulator::pull) a TS Packet for each of its slots: full as long as PDUs are queued, then padded, then a
//! null packet. Padding costs nothing there, as the slot would have been empty, so nothing ever waits.

use core::time::Duration;
use thinair_wire::time::Instant;

use crate::extension::PduConcat;
use crate::sndu::{Frame, LONGEST, Pdus, Sndu, SnduError};
use crate::source::{Queued, Source};
use crate::ts::{Cc, HEADER, LEN, NULL_PACKET, Pid, STUFFING, TsHeader, TsPacket};

/// Where the flag PUSI is in a TS Packet.
const PUSI_OCTET: usize = 1;
const PUSI: u8 = 0x40;

/// When a TS Packet leaves that is not full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// At once: Padding. One SNDU starts in a TS Packet, and the least delay is added.
    #[default]
    Off,
    /// When no SNDU has followed for a time, the Packing Threshold.
    Threshold {
        /// The longest wait. Zero is the same as [`Off`](Self::Off).
        wait: Duration,
        /// What starts it.
        since: Since,
    },
}

/// From when the Packing Threshold counts. RFC 4326, section 6.2, bounds "the maximum period of time an Encapsulator can
/// wait for additional PDUs", and can be read either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// From the first SNDU that ends in the TS Packet: no SNDU is delayed by more than the threshold.
    #[default]
    First,
    /// From the last: a TS Packet fills as long as SNDUs come faster than that, and the first one in it may wait for
    /// many thresholds.
    Last,
}

/// How many PDUs one SNDU carries, if they are queued together. RFC 5163, section 3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concat {
    /// PDUs in an SNDU, at most; none are put together below 2.
    pub pdus: usize,
    /// Octets of such an SNDU, header and CRC included, at most. A lost TS Packet takes all of them with it.
    pub octets: usize,
}

/// What an [`Encapsulator`] has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncapsulatorConfig {
    /// The PID of the stream. One [for streams](Pid::is_for_streams), or no Receiver finds it.
    pub pid: Pid,
    /// Whether SNDUs that are pushed wait for each other.
    pub packing: Packing,
    /// Whether queued PDUs of one Type to one destination share an SNDU. Both ends have to agree to it: Linux discards
    /// such SNDUs.
    pub concat: Option<Concat>,
}

impl EncapsulatorConfig {
    /// Padding, and a PDU an SNDU.
    pub const fn new(pid: Pid) -> Self {
        Self { pid, packing: Packing::Off, concat: None }
    }
}

/// What an [`Encapsulator`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncapsulatorCounters {
    /// SNDUs that went out.
    pub sndus: u64,
    /// PDUs in them: more, where there is PDU-Concat.
    pub pdus: u64,
    /// Octets of the SNDUs.
    pub octets: u64,
    /// TS Packets that went out, null packets not counted.
    pub ts_packets: u64,
    /// Those with an End Indicator and octets of padding behind it.
    pub padded: u64,
    /// Octets of padding, End Indicators included.
    pub padding: u64,
    /// Null packets that [`pull`](Encapsulator::pull) gave.
    pub nulls: u64,
    /// PDUs that were taken from a source but cannot be sent, whatever the reason.
    pub refused: u64,
}

/// A pushed SNDU was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError {
    /// It cannot be sent.
    Sndu(SnduError),
    /// Another one, which was pulled, is not wholly sent: go on with [`pull`](Encapsulator::pull).
    Midway,
}

impl core::fmt::Display for PushError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Sndu(error) => error.fmt(f),
            Self::Midway => f.write_str("another SNDU is half sent, and has to be pulled on"),
        }
    }
}

impl core::error::Error for PushError {}

impl From<SnduError> for PushError {
    fn from(error: SnduError) -> Self {
        Self::Sndu(error)
    }
}

/// What a slot of a transmitter is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulled<'e> {
    /// A TS Packet without room for another SNDU.
    Full(&'e TsPacket),
    /// A TS Packet that ends with padding, as nothing more is queued.
    Padded(&'e TsPacket),
    /// Nothing is queued: a null packet, or whatever else has to be sent.
    Null,
}

impl<'e> Pulled<'e> {
    /// The packet; if there is nothing to send, a null packet.
    pub const fn packet(self) -> &'e TsPacket {
        match self {
            Self::Full(packet) | Self::Padded(packet) => packet,
            Self::Null => &NULL_PACKET,
        }
    }
}

/// Puts SNDUs into TS Packets of one PID.
///
/// It holds one TS Packet, and nothing of an SNDU that does not stand in it: an SNDU is copied once, from where the
/// caller has it into TS Packets.
///
/// **Push, and poll when [`poll_at`](Self::poll_at) says so. Or pull. Before a change from pushing to pulling nothing
/// has to be done; before one from pulling to pushing, the SNDU that is half sent has to be pulled to its end.**
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
    /// Where the next octet goes; `LEN` if no packet is begun.
    at: usize,
    /// Whether PUSI is set in the packet that is begun.
    pusi: bool,
    cc: Cc,
    /// When the packet that is begun has to leave.
    deadline: Option<Instant>,
    /// The SNDU that is half sent, in pull mode.
    begun: Option<Begun>,
    counters: EncapsulatorCounters,
}

/// An SNDU, some octets of which are sent.
#[derive(Clone, Copy, Debug)]
struct Begun {
    frame: Frame,
    sent: usize,
    /// PDUs of the source in it.
    pdus: usize,
}

impl Encapsulator {
    /// An Encapsulator that has not sent anything.
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

    /// What it was made with.
    pub const fn config(&self) -> &EncapsulatorConfig {
        &self.config
    }

    /// What it has done.
    pub const fn counters(&self) -> EncapsulatorCounters {
        self.counters
    }

    /// Sends an SNDU: what is full goes to `out`, and so does the rest of it if SNDUs do not wait.
    ///
    /// Packing can be decided SNDU by SNDU: [`flush`](Self::flush) in front of one starts it in a TS Packet of its own,
    /// behind one sends it on without delay.
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
        let frame = Frame::of(sndu)?;
        self.push_frame(now, &frame, sndu, sndu, sndu.pdus(), out);
        Ok(())
    }

    /// Sends all PDUs that are queued, by PDU-Concat if that is configured. Then SNDUs wait as those that are pushed.
    ///
    /// PDUs that cannot be sent are taken from the queue and counted.
    pub fn drain(
        &mut self,
        now: Instant,
        source: &mut impl Source,
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

    /// When [`poll`](Self::poll) has to be called, if nothing is pushed until then.
    pub const fn poll_at(&self) -> Option<Instant> {
        self.deadline
    }

    /// Sends the TS Packet that is begun if the Packing Threshold is over.
    pub fn poll(&mut self, now: Instant, out: &mut impl FnMut(&TsPacket)) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.flush(out);
        }
    }

    /// Sends the TS Packet that is begun, if there is one, now.
    pub fn flush(&mut self, out: &mut impl FnMut(&TsPacket)) {
        // Of an SNDU that is half sent nothing lies in a packet that is begun.
        if self.at < LEN {
            self.pad();
            out(&self.packet);
        }
    }

    /// The TS Packet for the next slot of a transmitter. `source` is asked for PDUs as long as there is room.
    ///
    /// A PDU stays at the head of the source until its last octet is in a TS Packet; if another one is there before, the
    /// Receiver finds the CRC wrong. PDUs that cannot be sent are taken from the source and counted.
    pub fn pull(&mut self, source: &mut impl Source) -> Pulled<'_> {
        loop {
            let Some(mut begun) = self.begun.take().or_else(|| self.begin(source)) else {
                if self.at == LEN {
                    self.counters.nulls += 1;
                    return Pulled::Null;
                }
                self.pad();
                return Pulled::Padded(&self.packet);
            };
            // A source that has lost what it was promised to keep: the Receiver drops its part of it.
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

    /// The next SNDU of a source.
    fn begin(&mut self, source: &mut impl Source) -> Option<Begun> {
        loop {
            let first = source.peek(0)?;
            let (pdus, len) = self.concatenated(&first, source);
            let frame = if pdus > 1 {
                Frame::around(&first, &Queued { source, pdus }, PduConcat::HEADER + len)
            } else {
                Frame::of(&first)
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

    /// How many PDUs at the head of a source go into one SNDU, and the octets of them with their lengths.
    fn concatenated(&self, first: &Sndu<'_>, source: &impl Source) -> (usize, usize) {
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
        frame: &Frame,
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
            // The SNDU starts behind the Payload Pointer.
            self.set_octet(HEADER, 0);
            self.at = HEADER + 1;
        } else if !self.pusi {
            // Rule (v): the octets that are there make room for the Payload Pointer. They are at most 181, or the
            // packet would have been sent.
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

    /// Copies octets of an SNDU into what is left of the TS Packet, and returns how many.
    #[inline]
    fn fill(&mut self, frame: &Frame, from: usize, head: &Sndu<'_>, queued: &impl Pdus) -> usize {
        let room = self.packet.get_mut(self.at..).unwrap_or_default();
        let len = frame.copy(from, room, head, queued);
        self.at += len;
        len
    }

    /// Behind an SNDU: whether the TS Packet is to be sent, as there is no room for the start of another one. RFC 4326,
    /// section 6.2, rules (i) to (iii).
    #[inline]
    fn end_sndu(&mut self, frame: &Frame, pdus: usize) -> bool {
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

    /// Rule (iv): an End Indicator, and padding up to the end.
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

    /// The TS Packet leaves, and none is begun.
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
