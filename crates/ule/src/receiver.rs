//! Receiver: SNDUs from TS Packets of one PID. RFC 4326, section 7.

use core::marker::PhantomData;

use crate::extension::{Bridged, ExtensionChain, ExtensionError, SnduContent, TimeStamp};
use crate::filter::NpaFilter;
use crate::npa::Npa;
use crate::sndu::{BadSndu, ReceivedSndu, Start};
use crate::ts::{Afc, Cc, HEADER, Pid, STUFFING, TsHeader, TsPacket};
use crate::type_field::EtherType;

/// Largest Payload Pointer: the Length of an SNDU follows it. RFC 4326, section 7.
const PAYLOAD_POINTER_MOST: usize = 181;

/// Settings of a [`Receiver`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// PID of the stream.
    pub pid: Pid,
    /// Accepted addresses.
    pub filter: NpaFilter,
    /// Action after a wrong CRC.
    pub after_bad_crc: AfterBadCrc,
    /// Tolerated deviations from RFC 4326.
    pub lenience: Lenience,
}

impl ReceiverConfig {
    /// Returns settings that accept every address, and tolerate no deviation.
    pub const fn new(pid: Pid) -> Self {
        Self {
            pid,
            filter: NpaFilter::everything(),
            after_bad_crc: AfterBadCrc::GoOn,
            lenience: Lenience::STRICT,
        }
    }
}

/// Treatment of the rest of a TS Packet after an SNDU with a wrong CRC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterBadCrc {
    /// Expects the next SNDU where the Length of this one ends. It has a CRC of its own, so nothing wrong is delivered;
    /// if the Length was right, as it usually is, nothing more is lost.
    #[default]
    GoOn,
    /// "a Receiver SHOULD discard the remaining TS Packet payload (if any) following a CRC mismatch and return to the
    /// Idle State": RFC 4326, section 7.2, to the letter. Where single bits flip, up to twice as many SNDUs are lost.
    Discard,
}

/// Tolerated deviations of Encapsulators from RFC 4326.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lenience {
    /// Accepts Payload Pointers of 182 and 183, after which there is no room for a Length: nothing starts in that TS
    /// Packet. Linux accepts them, too.
    pub large_payload_pointers: bool,
    /// Accepts payload after an adaptation field, which a multiplexer may have inserted.
    pub adaptation_fields: bool,
    /// Ignores Continuity Counters, for multiplexers that write their own. Then duplicates are not detected, and losses
    /// only by Payload Pointers and CRCs.
    pub any_continuity: bool,
}

impl Lenience {
    /// No deviation is tolerated.
    pub const STRICT: Self =
        Self { large_payload_pointers: false, adaptation_fields: false, any_continuity: false };
}

/// Counters of a [`Receiver`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// TS Packets of its PID, or without sync byte.
    pub ts_packets: u64,
    /// SNDUs with a correct CRC, for any destination and of any Type.
    pub sndus: u64,
    /// PDUs, frames and groups of TS Packets that were delivered.
    pub delivered: u64,
    /// Octets of them.
    pub octets: u64,
    /// TS Packets that do not begin with 0x47.
    pub sync_errors: u64,
    /// TS Packets with Transport Error Indicator.
    pub transport_errors: u64,
    /// TS Packets with another Adaptation Field Control than `01`; discarded.
    pub adaptation_fields: u64,
    /// TS Packets with a Transport Scrambling Control other than 0. They are read nevertheless.
    pub scrambled: u64,
    /// TS Packets with the Continuity Counter of the previous one; discarded.
    pub duplicates: u64,
    /// Gaps in the Continuity Counter.
    pub continuity_errors: u64,
    /// Invalid Payload Pointers.
    pub payload_pointer_errors: u64,
    /// SNDUs that were dropped because they do not end at the Payload Pointer, and TS Packets in which an SNDU starts
    /// although PUSI is not set.
    pub delimiting_errors: u64,
    /// Invalid Length fields.
    pub length_errors: u64,
    /// SNDUs that are longer than the buffer.
    pub too_long: u64,
    /// SNDUs with a wrong CRC.
    pub crc_errors: u64,
    /// SNDUs to other addresses, including `00:00:00:00:00:00`.
    pub npa_filtered: u64,
    /// SNDUs, and PDUs of PDU-Concat, with unknown Mandatory Extension Headers.
    pub type_errors: u64,
    /// SNDUs that end within an Extension Header, and bridged frames that are shorter than their LLC length.
    pub payload_length_errors: u64,
    /// SNDUs with PDUs of inconsistent lengths.
    pub pdu_concat_errors: u64,
    /// SNDUs with incomplete TS Packets.
    pub ts_concat_errors: u64,
    /// Test SNDUs; discarded.
    pub tests: u64,
    /// SNDUs that were cut short by a loss or an error.
    pub cut_short: u64,
}

/// A delivered payload with its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery<'p> {
    /// Destination; `None` if the SNDU has none.
    pub destination: Option<Npa>,
    /// Time of encapsulation, if it was sent.
    pub time_stamp: Option<TimeStamp>,
    /// Payload.
    pub payload: Payload<'p>,
}

/// Payload of an SNDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'p> {
    /// A PDU. Those of a PDU-Concat are delivered one by one.
    Pdu(EtherType, &'p [u8]),
    /// A frame of a LAN, which has its own addresses.
    Bridged(Bridged<'p>),
    /// TS Packets, of any content.
    TsPackets(&'p [TsPacket]),
}

impl Payload<'_> {
    fn octets(&self) -> usize {
        match self {
            Self::Pdu(_, pdu) => pdu.len(),
            Self::Bridged(frame) => frame.octets().len(),
            Self::TsPackets(packets) => packets.as_flattened().len(),
        }
    }
}

/// Reassembles the SNDUs of one PID.
///
/// An SNDU in one TS Packet is delivered without a copy. The parts of an SNDU in several TS Packets are collected in the
/// caller's buffer: an SNDU that exceeds it is counted and skipped, without loss of those after it. 32,771 octets suffice
/// for all ([`LONGEST`](crate::sndu::LONGEST)). The buffer is borrowed or owned: a `Vec`, an array.
#[derive(Debug)]
pub struct Receiver<'m, B = &'m mut [u8]> {
    config: ReceiverConfig,
    /// Continuity Counter of the last TS Packet.
    cc: Option<Cc>,
    current: Option<Current>,
    /// Buffer of the Current SNDU.
    buffer: B,
    counters: ReceiverCounters,
    borrowed: PhantomData<&'m ()>,
}

/// The Current SNDU, in Reassembly State; `None` in Idle State.
#[derive(Clone, Copy, Debug)]
struct Current {
    octets: usize,
    have: usize,
}

impl Current {
    const fn left(self) -> usize {
        self.octets - self.have
    }
}

/// Position of the octets after a TS header.
struct Payloads<'p> {
    pusi: bool,
    octets: &'p [u8],
}

impl<'m> Receiver<'m> {
    /// Creates a Receiver.
    pub fn new(config: ReceiverConfig, buffer: &'m mut [u8]) -> Self {
        Self::with(config, buffer)
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Receiver<'_, B> {
    /// [`new`](Receiver::new) with a buffer of any kind, borrowed or owned.
    pub fn with(config: ReceiverConfig, buffer: B) -> Self {
        let counters = ReceiverCounters::default();
        Self { config, cc: None, current: None, buffer, counters, borrowed: PhantomData }
    }

    /// Returns the PID of the stream.
    #[inline]
    pub const fn pid(&self) -> Pid {
        self.config.pid
    }

    /// Returns the filter of addresses, to join and leave groups.
    pub const fn filter_mut(&mut self) -> &mut NpaFilter {
        &mut self.config.filter
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    /// Drops the Continuity Counter and the Current SNDU: the caller has detected missing TS Packets by other means. A
    /// Continuity Counter of 4 bits does not show the loss of 16, and the loss of 15 looks like a duplicate.
    pub fn resynchronize(&mut self) {
        self.cc = None;
        self.idle();
    }

    /// Processes a TS Packet, and passes what ends in it to `out`, in the order of sending.
    ///
    /// Packets of other PIDs are ignored.
    #[inline]
    pub fn receive(&mut self, packet: &TsPacket, out: &mut impl FnMut(Delivery<'_>)) {
        let Some(payload) = self.payload(packet) else { return };
        // Octets after the end of an SNDU that began in an earlier packet.
        let rest = match (payload.pusi, self.current) {
            (false, None) => return,
            (false, Some(current)) => self.end_of_current(current, payload.octets, out),
            (true, current) => self.behind_pointer(current, payload.octets, out),
        };
        if let Some(rest) = rest {
            self.sndus(rest, out);
        }
    }

    /// Returns the octets after the header, if they are to be processed. RFC 4326, section 7.3.
    #[inline]
    fn payload<'p>(&mut self, packet: &'p TsPacket) -> Option<Payloads<'p>> {
        let Ok(header) = TsHeader::read(packet) else {
            self.counters.ts_packets += 1;
            self.counters.sync_errors += 1;
            self.idle();
            return None;
        };
        if header.pid != self.config.pid {
            return None;
        }
        self.counters.ts_packets += 1;
        if header.transport_error {
            self.counters.transport_errors += 1;
            self.idle();
            return None;
        }
        let octets = match header.afc {
            Afc::Payload => packet.get(HEADER..)?,
            Afc::AdaptationAndPayload if self.config.lenience.adaptation_fields => {
                // The first octet of the adaptation field is its length after that octet.
                let (len, rest) = packet.get(HEADER..)?.split_first()?;
                rest.get(usize::from(*len)..).unwrap_or_default()
            }
            Afc::Reserved | Afc::Adaptation | Afc::AdaptationAndPayload => {
                self.counters.adaptation_fields += 1;
                return None;
            }
        };
        // If the packet is really scrambled, CRCs fail; if only a bit of this field is flipped, they do not.
        self.counters.scrambled += u64::from(header.scrambling != 0);
        if !self.config.lenience.any_continuity {
            match self.cc.replace(header.cc) {
                Some(last) if last == header.cc => {
                    self.counters.duplicates += 1;
                    return None;
                }
                Some(last) if last.next() != header.cc => {
                    self.counters.continuity_errors += 1;
                    self.idle();
                }
                Some(_) | None => {}
            }
        }
        Some(Payloads { pusi: header.payload_unit_start, octets })
    }

    /// Enters Idle State.
    #[inline]
    fn idle(&mut self) {
        if self.current.take().is_some() {
            self.counters.cut_short += 1;
        }
    }

    /// Continues the Current SNDU in a TS Packet without Payload Pointer, in which no other one starts.
    #[inline]
    fn end_of_current<'p>(
        &mut self,
        current: Current,
        octets: &'p [u8],
        out: &mut impl FnMut(Delivery<'_>),
    ) -> Option<&'p [u8]> {
        let (part, rest) = octets.split_at(current.left().min(octets.len()));
        if !self.collect(current, part, out) {
            return None;
        }
        // Only padding may follow. RFC 4326, section 7.2, (ii) and (iii).
        if let [STUFFING] | [STUFFING, STUFFING, ..] | [] = rest {
            return None;
        }
        self.counters.delimiting_errors += 1;
        None
    }

    /// Returns the octets of a TS Packet with a Payload Pointer from the first SNDU on that starts in it. RFC 4326,
    /// sections 7.1.1 and 7.2.1.
    #[inline]
    fn behind_pointer<'p>(
        &mut self,
        current: Option<Current>,
        octets: &'p [u8],
        out: &mut impl FnMut(Delivery<'_>),
    ) -> Option<&'p [u8]> {
        let (pointer, octets) = octets.split_first()?;
        let pointer = usize::from(*pointer);
        let too_large = pointer > PAYLOAD_POINTER_MOST && !self.config.lenience.large_payload_pointers;
        let Some((part, rest)) = octets.split_at_checked(pointer).filter(|_| !too_large) else {
            self.counters.payload_pointer_errors += 1;
            self.idle();
            return None;
        };
        if let Some(current) = current {
            if current.left() != pointer {
                self.counters.delimiting_errors += 1;
                self.idle();
            } else if !self.collect(current, part, out) {
                return None;
            }
        }
        Some(rest)
    }

    /// Adds a part of the Current SNDU, and delivers it when it is complete. Returns true if the octets after it may be
    /// read.
    #[inline]
    fn collect(&mut self, current: Current, part: &[u8], out: &mut impl FnMut(Delivery<'_>)) -> bool {
        let have = current.have + part.len();
        if let Some(room) = self.buffer.as_mut().get_mut(current.have..have) {
            room.copy_from_slice(part);
        }
        if have < current.octets {
            self.current = Some(Current { have, ..current });
            return true;
        }
        self.current = None;
        match self.buffer.as_ref().get(..current.octets) {
            Some(sndu) => deliver(&self.config, &mut self.counters, sndu, out),
            // It was counted when it began.
            None => true,
        }
    }

    /// Reads consecutive SNDUs, the first of which starts at `octets`. RFC 4326, section 7.2.
    #[inline]
    fn sndus(&mut self, mut octets: &[u8], out: &mut impl FnMut(Delivery<'_>)) {
        while let Some(start) = octets.first_chunk() {
            let len = match Start::read(*start) {
                Start::Octets(len) => len,
                Start::EndIndicator => return,
                Start::BadLength => {
                    self.counters.length_errors += 1;
                    return;
                }
            };
            let Some((sndu, rest)) = octets.split_at_checked(len) else {
                if len > self.buffer.as_ref().len() {
                    self.counters.too_long += 1;
                }
                self.collect(Current { octets: len, have: 0 }, octets, out);
                return;
            };
            if !deliver(&self.config, &mut self.counters, sndu, out) {
                return;
            }
            octets = rest;
        }
        if let [octet] = octets
            && *octet != STUFFING
        {
            self.counters.delimiting_errors += 1;
        }
    }
}

/// Delivers a complete SNDU, or counts the error. Returns true if the octets after it may be read.
#[inline]
fn deliver(
    config: &ReceiverConfig,
    counters: &mut ReceiverCounters,
    sndu: &[u8],
    out: &mut impl FnMut(Delivery<'_>),
) -> bool {
    let received = match ReceivedSndu::delimited(sndu) {
        Ok(received) => received,
        Err(BadSndu::Crc) => {
            counters.crc_errors += 1;
            return config.after_bad_crc == AfterBadCrc::GoOn;
        }
        Err(BadSndu::Length) => {
            counters.length_errors += 1;
            return false;
        }
    };
    counters.sndus += 1;
    let destination = match received.destination {
        None => None,
        Some(octets) => match Npa::new(octets).filter(|npa| config.filter.accepts(*npa)) {
            Some(npa) => Some(npa),
            None => {
                counters.npa_filtered += 1;
                return true;
            }
        },
    };
    let mut hand_up = |counters: &mut ReceiverCounters, time_stamp, payload: Payload<'_>| {
        counters.delivered += 1;
        counters.octets += payload.octets() as u64;
        out(Delivery { destination, time_stamp, payload });
    };
    match ExtensionChain::read(received.type_field, received.octets) {
        Ok(ExtensionChain { time_stamp, content: SnduContent::PduConcat(concat) }) => {
            for chain in concat.contents() {
                match chain {
                    Ok(chain) => one(counters, chain, time_stamp, &mut hand_up),
                    Err(error) => count(counters, error),
                }
            }
        }
        Ok(chain) => one(counters, chain, None, &mut hand_up),
        Err(error) => count(counters, error),
    }
    true
}

/// Delivers anything except a PDU-Concat.
#[inline]
fn one(
    counters: &mut ReceiverCounters,
    chain: ExtensionChain<'_>,
    outer: Option<TimeStamp>,
    hand_up: &mut impl FnMut(&mut ReceiverCounters, Option<TimeStamp>, Payload<'_>),
) {
    let payload = match chain.content {
        SnduContent::Pdu(ether_type, pdu) => Payload::Pdu(ether_type, pdu),
        SnduContent::Bridged(frame) => Payload::Bridged(frame),
        SnduContent::TsConcat(packets) => Payload::TsPackets(packets),
        SnduContent::Test(_) => {
            counters.tests += 1;
            return;
        }
        SnduContent::PduConcat(_) => return count(counters, ExtensionError::NestedConcat),
    };
    hand_up(counters, chain.time_stamp.or(outer), payload);
}

fn count(counters: &mut ReceiverCounters, error: ExtensionError) {
    let counter = match error {
        ExtensionError::UnknownMandatory(_) | ExtensionError::NestedConcat => &mut counters.type_errors,
        ExtensionError::Truncated | ExtensionError::LlcLength => &mut counters.payload_length_errors,
        ExtensionError::PduConcatSize => &mut counters.pdu_concat_errors,
        ExtensionError::TsConcatSize => &mut counters.ts_concat_errors,
    };
    *counter += 1;
}
