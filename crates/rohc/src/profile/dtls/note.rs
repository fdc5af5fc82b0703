//! Changes that a packet makes in its context: how often each has to be sent, and the count after a packet was sent. Section 6 of
//! `docs/dtls-profile.md`.

use super::compress::DtlsSenderContext;
use super::formats::is_long;
use super::record::DtlsPacket;
use super::state::{ChecksumMode, DtlsPath, DtlsState, IpIdMode, NUMBER};
use super::{HeaderFields, NonceSource};
use crate::channel::Integrity;
use crate::compressor::CompressorConfig;
use crate::id::Format;

/// Largest step of the MSN to follow the sequence number. After a larger step the sequence number is sent.
const REACH: i64 = 200;

/// Largest reordering, in records, that the MSN follows.
const LATE: i64 = -8;

/// Fields that a packet carries only after a change: indices in [`Pending`](crate::flow::pending::Pending).
pub(super) mod changes {
    /// The dynamic part of the IP header, and control fields.
    pub(in super::super) const PATH: usize = 0;
    /// The type of the record.
    pub(in super::super) const RECORD: usize = 1;
    /// Epoch and sequence number.
    pub(in super::super) const NUMBER: usize = 2;
    /// The difference of the nonce.
    pub(in super::super) const NONCE: usize = 3;
    pub(in super::super) const IP_ID: usize = 4;
    pub(in super::super) const COUNT: usize = 5;
}

impl DtlsSenderContext {
    /// Returns the fields of the next packet, and the state behind it, but for its numbers. Records changes.
    pub(super) fn note(
        &mut self,
        packet: &DtlsPacket<'_>,
        config: &CompressorConfig,
    ) -> (HeaderFields, DtlsState) {
        let record = &packet.record;
        let is_unified = record.kind.is_unified();
        let mut next = self.state;
        let mut x =
            HeaderFields { checksum: packet.checksum, ip_id: packet.ip_id, ..HeaderFields::default() };
        next.epoch = record.epoch;
        let (has_nonce, difference) = self.note_nonce(packet, &next);
        next.shape = packet.shape(has_nonce);
        if record.kind.cid_len > 0 {
            self.cid_len = record.kind.cid_len;
        }
        let checksum = checksum_mode(packet.checksum, config);
        next.path = DtlsPath { checksum, ip_id_mode: self.state.path.ip_id_mode, ..packet.path };

        // A packet that changes the context is newer than all before it.
        let is_changing = next.shape != self.state.shape
            || next.path != self.state.path
            || !self.pending.is_none()
            || !self.establishment.is_established();
        let step = self.step(packet).filter(|step| *step > 0 || !is_changing);
        x.msn = self.state.msn.wrapping_add(step.unwrap_or(1) as u16);
        x.number = if is_unified { x.msn.into() } else { record.number };
        let has_step_back = step.is_some_and(|step| step <= 0);
        if !next.path.v6 && !has_step_back {
            next.path.ip_id_mode = self.ip_id.watch(next.path.ip_id_mode, x.ip_id, x.msn);
        }

        let mut expected = HeaderFields { ip_id: x.ip_id, msn: x.msn, ..HeaderFields::default() };
        next.infer(&mut expected);
        let repetitions = config.repetitions;
        if next.path != self.state.path {
            self.establishment.changed();
        }
        let mut is_due = |field: usize, is_missed: bool| {
            if is_missed {
                self.pending.require(field, repetitions);
                self.since = x.msn;
            }
            self.pending.has(field)
        };
        is_due(changes::PATH, next.path != self.state.path);
        let is_other_nonce =
            has_nonce && (!self.state.shape.has_nonce || difference != self.state.nonce_difference);
        let carries_nonce = is_due(changes::NONCE, is_other_nonce);
        x.carries.record = is_due(changes::RECORD, next.shape != self.state.shape || is_other_nonce);
        x.carries.number = is_due(changes::NUMBER, step.is_none()) && !is_unified;
        let is_missed = expected.ip_id != x.ip_id && next.path.ip_id_mode != IpIdMode::Irregular;
        // A packet that is late changes nothing.
        x.carries.ip_id = is_due(changes::IP_ID, is_missed && !has_step_back) || is_missed;

        if has_nonce {
            next.nonce_difference = difference;
        }
        let is_whole = !self.establishment.is_established() || self.pending.has(changes::PATH);
        x.nonce_source = match difference {
            _ if !has_nonce => NonceSource::None,
            0 => NonceSource::Number,
            _ if carries_nonce || is_whole => NonceSource::Carried,
            _ => NonceSource::Difference,
        };
        x.nonce = packet.nonce().unwrap_or_default();
        if is_unified {
            x.encrypted = record.number as u16;
        }
        x.carries.length = !record.behind.is_empty();
        x.length = record.fragment.len() as u16;
        next.settle();
        (x, next)
    }

    /// Step of the MSN with which it follows the sequence number, if that is near the last one.
    fn step(&self, packet: &DtlsPacket<'_>) -> Option<i64> {
        let (record, state) = (&packet.record, &self.state);
        if record.kind.is_unified() {
            return Some(1);
        }
        let follows = !self.is_first() && !state.shape.kind.is_unified() && record.epoch == state.epoch;
        let step = record.number.cast_signed() - state.number.cast_signed();
        (follows && (LATE..=REACH).contains(&step)).then_some(step)
    }

    /// Returns whether a record has a nonce that counts with its sequence number, and their difference: one that the record before it had,
    /// too, or none.
    fn note_nonce(&mut self, packet: &DtlsPacket<'_>, next: &DtlsState) -> (bool, u64) {
        let Some(nonce) = packet.nonce() else { return (false, 0) };
        let difference = next.difference(nonce, packet.record.number & NUMBER);
        let is_kept = self.state.shape.has_nonce
            && self.state.epoch == next.epoch
            && difference == self.state.nonce_difference;
        let is_again = self.last_difference == Some(difference);
        self.last_difference = Some(difference);
        (difference == 0 || is_kept || is_again, difference)
    }

    /// Counts the fields that a packet has carried.
    #[inline]
    pub(super) fn note_sent(&mut self, x: &HeaderFields, format: Format) {
        if !self.pending.is_none() {
            let has_nonce = x.carries.record && x.nonce_source != NonceSource::Difference;
            self.pending.count(changes::PATH, is_long(format));
            self.pending.count(changes::RECORD, x.carries.record);
            self.pending.count(changes::NUMBER, x.carries.number);
            self.pending.count(changes::NONCE, has_nonce);
            self.pending.count(changes::IP_ID, x.carries.ip_id);
        }
        self.establishment.count(format);
    }
}

/// Returns the encoding of a UDP checksum, which is right or 0.
fn checksum_mode(checksum: u16, config: &CompressorConfig) -> ChecksumMode {
    match (checksum, config.channel.integrity_below()) {
        (0, _) => ChecksumMode::Zero,
        (_, Integrity::None) => ChecksumMode::Carried,
        (_, Integrity::Crc32 | Integrity::Mic) => ChecksumMode::Elided,
    }
}

/// Addition to the misses of a wrong prediction, and number of misses at which the IP-ID is irregular.
const MISS: u8 = 4;
const TOO_MANY: u8 = 10;

/// Packets in a row from which on an irregular IP-ID counts as regular.
const RUN: u8 = 16;

/// Behavior of the IP-ID of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IpIdWatcher {
    last: Option<(u16, u16)>,
    misses: u8,
    /// Packets in a row that were equal, and that counted with the MSN.
    same: u8,
    counted: u8,
}

impl IpIdWatcher {
    /// Initial mode of a flow.
    pub(super) fn first(ip_id: u16) -> IpIdMode {
        // RFC 6864: an IP-ID of an atomic datagram is often zero throughout.
        if ip_id == 0 { IpIdMode::Constant } else { IpIdMode::Counted }
    }

    /// Records the next IP-ID, and returns the mode that encodes the next ones with fewest octets.
    #[inline]
    pub(super) fn watch(&mut self, mode: IpIdMode, ip_id: u16, msn: u16) -> IpIdMode {
        let Some((last, last_msn)) = self.last.replace((ip_id, msn)) else { return mode };
        let step = ip_id.wrapping_sub(last);
        let run = |run: u8, goes_on: bool| if goes_on { run.saturating_add(1) } else { 0 };
        self.same = run(self.same, step == 0);
        self.counted = run(self.counted, step == msn.wrapping_sub(last_msn));
        let is_right = match mode {
            IpIdMode::Constant => self.same > 0,
            IpIdMode::Counted => self.counted > 0,
            IpIdMode::Irregular => true,
        };
        self.misses = if is_right { self.misses.saturating_sub(1) } else { self.misses.saturating_add(MISS) };
        match mode {
            IpIdMode::Irregular if self.same >= RUN => IpIdMode::Constant,
            IpIdMode::Irregular if self.counted >= RUN => IpIdMode::Counted,
            _ if self.misses < TOO_MANY => mode,
            _ => {
                self.misses = 0;
                IpIdMode::Irregular
            }
        }
    }
}
