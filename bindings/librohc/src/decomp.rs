//! The decompressor: an engine that begins with the first packet, counters of each CID, feedback. Its functions for C are in
//! `functions`.

#![allow(unsafe_code, reason = "feedback is written to a buffer of C")]

use thinair_rohc::feedback::{AckType, Feedback, MAX_ELEMENT};
use thinair_rohc::{
    Cid, DecompressError, Decompressed, Decompressor, DecompressorConfig, DecompressorMemory, Format,
    Instant, Mode, ProfileId,
};

use crate::abi::{BAD_CRC, Buf, ERROR, MALFORMED, NO_CONTEXT, OUTPUT_TOO_SMALL, Status};
use crate::clock::Clock;
use crate::comp::BLOCKS;
use crate::handle::Handle;
use crate::profiles::Profiles;
use crate::side::Side;
use crate::trace::{GENERAL, Trace, WARNING};

pub mod functions;

/// Packets behind which an IR packet in U-mode is acknowledged again: the CID may have been given to another flow.
const IR_AGAIN: u16 = 8;

/// `struct rohc_decomp`.
pub type Decomp = Handle<Decompression>;

/// A decompressor, and what C has set.
///
/// The engine is made with the first packet, so that everything that is set before it counts.
#[derive(Debug)]
pub struct Decompression {
    config: DecompressorConfig,
    profiles: Profiles,
    engine: Option<Decompressor<'static>>,
    trace: Trace,
    clock: Clock,
    prtt: usize,
    rates: [usize; 6],
    /// Packets between two acknowledgments in U-mode.
    interval: usize,
    /// Packets of each CID.
    records: Vec<Record>,
    last: Option<Last>,
}

/// Packets of one CID.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    packets: u64,
    octets_in: u64,
    octets_out: u64,
    profile: u16,
    /// Packets since an acknowledgment in U-mode.
    unacknowledged: u16,
    /// SN, and `packets`, when the caller looked at the last packet.
    seen: (u32, u64),
}

/// The last packet, as [`Last`](crate::comp) of a compressor.
#[derive(Clone, Copy, Debug)]
struct Last {
    cid: Cid,
    profile: ProfileId,
    format: Format,
    header_in: u32,
    header_out: u32,
    octets_in: usize,
    octets_out: usize,
}

impl Decompression {
    #[cold]
    fn begin(&mut self) {
        let channel = self.profiles.on(self.config.channel);
        let contexts = channel.contexts();
        // TCP may still be turned on later, and has memory of its own.
        let memory =
            DecompressorMemory::owned(channel.sizes().blocks(contexts.min(BLOCKS)).tcp_flows(contexts));
        self.config.channel = channel;
        self.engine = Some(Decompressor::new(self.config, memory));
        self.records = vec![Record::default(); contexts];
    }

    /// Decompresses a packet. Returns its octets, and whether it has to be acknowledged.
    #[inline(always)]
    fn decompress(&mut self, now: Instant, input: &[u8], output: &mut [u8]) -> Result<(usize, bool), Status> {
        if self.engine.is_none() {
            self.begin();
        }
        let Some(engine) = &mut self.engine else { return Err(ERROR) };
        match engine.decompress(now, input, output) {
            Ok(done) => Ok((done.len, self.note(&done, input.len()))),
            Err(error) => self.failed(error),
        }
    }

    #[cold]
    fn failed(&mut self, error: DecompressError) -> Result<(usize, bool), Status> {
        self.last = None;
        if error == DecompressError::NothingYet {
            return Ok((0, false));
        }
        self.trace.emit(WARNING, GENERAL, format_args!("a packet is not decompressed: {error}"));
        Err(status(error))
    }

    /// Counts a packet. Returns whether it has to be acknowledged though the decompressor is in U-mode: RFC 3095, section 5.3.1.3,
    /// allows that, and callers count on it.
    #[inline(always)]
    fn note(&mut self, done: &Decompressed, octets_in: usize) -> bool {
        let Decompressed { cid, profile, format, header_in, header_out, len: octets_out } = *done;
        let Some(record) = self.records.get_mut(cid.index()) else { return false };
        let is_first = record.packets == 0 || record.profile != profile.number();
        record.packets += 1;
        record.octets_in += octets_in as u64;
        record.octets_out += octets_out as u64;
        if is_first {
            (record.profile, record.seen) = (profile.number(), (0, 0));
        }
        record.unacknowledged = record.unacknowledged.saturating_add(1);
        let is_due = self.config.mode == Mode::Unidirectional
            && (is_first
                || usize::from(record.unacknowledged) >= self.interval
                || record.unacknowledged >= IR_AGAIN && format == Format::Ir);
        if is_due {
            record.unacknowledged = 0;
        }
        let (header_in, header_out) = (header_in as u32, header_out as u32);
        self.last = Some(Last { cid, profile, format, header_in, header_out, octets_in, octets_out });
        self.trace.packet(cid, profile, format, octets_in, octets_out);
        is_due
    }

    /// Packets by which the SN is ahead of the packet before: 1 if none is missing, negative if this one comes late. Packets that
    /// the caller did not look at count as received.
    fn ahead(&mut self, cid: Cid, sn: Option<u32>) -> i64 {
        let Some(record) = self.records.get_mut(cid.index()) else { return 1 };
        let (Some(sn), (before, packets)) = (sn, record.seen) else { return 1 };
        let received = record.packets.wrapping_sub(packets) as i64;
        let moved = i64::from(sn.wrapping_sub(before) as i16);
        record.seen = (sn, record.packets);
        // At the first look, and at a second look at one packet, nothing is known.
        if packets == 0 || received == 0 { 1 } else { moved - received + 1 }
    }

    /// Writes waiting feedback behind what is in a buffer; of the last packet also an acknowledgment of U-mode.
    ///
    /// # Safety
    ///
    /// The buffer is as long as its fields promise.
    #[cold]
    unsafe fn send_feedback(&mut self, is_due: bool, feedback: &mut Buf) {
        let Some(engine) = &mut self.engine else { return };
        let mut put = |element: &[u8]| {
            // SAFETY: as the caller promises.
            let Some(room) = (unsafe { feedback.room() }) else { return };
            if let Some(room) = room.get_mut(..element.len()) {
                room.copy_from_slice(element);
                feedback.len += element.len();
            }
        };
        let mut element = [0; MAX_ELEMENT];
        while let Some(len) = engine.poll_feedback(&mut element) {
            put(&element[..len]);
        }
        let Some(Last { cid, .. }) = self.last.filter(|_| is_due) else { return };
        let sn = engine.context(cid).and_then(|state| state.sn).unwrap_or(0) & 0xFF;
        let ack = Feedback { sn, sn_bits: 8, ..Feedback::new(cid, AckType::Ack) };
        if let Some(len) = ack.write(self.config.channel.cids(), &mut element) {
            put(&element[..len]);
        }
    }
}

/// The status of a failure.
fn status(error: DecompressError) -> Status {
    match error {
        DecompressError::NoContext(_) => NO_CONTEXT,
        DecompressError::Crc(..) => BAD_CRC,
        DecompressError::OutputTooSmall { .. } => OUTPUT_TOO_SMALL,
        DecompressError::Packet(_) | DecompressError::Malformed(_) | DecompressError::Cid => MALFORMED,
        _ => ERROR,
    }
}

impl Side for Decompression {
    fn mrru(&self) -> usize {
        self.config.channel.mrru()
    }

    fn profiles(&mut self) -> &mut Profiles {
        &mut self.profiles
    }

    fn set_profiles(&mut self) {
        if let Some(engine) = &mut self.engine {
            engine.set_profiles(self.profiles.set);
        }
    }
}
