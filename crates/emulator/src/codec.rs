//! Header compression between the queue and the air, at both ends of a link: ROHC, LOWPAN_IPHC, or none.
//!
//! Packets are compressed when their transmission begins: a packet that the queue drops is never compressed, so that its
//! loss does not affect the context. PDCP entities that compress as late discard packets in the same way.

use thinair_link::Side;
use thinair_rohc::{Arrival, CompressError, DecompressError};
use thinair_wire::header::chain::NotIp;
use thinair_wire::time::Instant;

use super::channel::{ROOM, RohcChannel, Terminal};
use super::iphc::Iphc;
use super::totals::DirectionTotals;

/// Memory blocks for extension headers of each compressor and decompressor.
const BLOCKS: usize = 256;

/// A packet on the link, with the IP packet that should come out.
#[derive(Clone, Debug)]
pub(super) struct CarriedPacket {
    pub(super) number: u64,
    /// Octets as sent; while the packet waits, the IP packet.
    pub(super) octets: Vec<u8>,
    /// IP packet that should come out; `None` for feedback alone.
    pub(super) ip: Option<Vec<u8>>,
    pub(super) entered: Instant,
    /// Number of its first frame among those that its side has sent.
    pub(super) frame: u32,
}

impl AsMut<[u8]> for CarriedPacket {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.octets
    }
}

/// Frame numbers of one direction, as a link layer has them: the COUNT of PDCP (TS 38.323, section 7.1), of which 12 or
/// 18 bits are sent, or the sequence numbers of IEEE 802.11 and 802.15.4.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameNumbers {
    sent: u32,
    /// Number of frames up to the newest that has arrived.
    newest: u32,
}

impl FrameNumbers {
    fn number(&mut self) -> u32 {
        self.sent = self.sent.wrapping_add(1);
        self.sent
    }

    /// Returns the number of frames missing before `frame`; `None` if a later one has already arrived.
    fn lost(&mut self, frame: u32) -> Option<u32> {
        let ahead = frame.wrapping_sub(self.newest);
        let is_newest = (1..1 << 31).contains(&ahead);
        self.newest = if is_newest { frame } else { self.newest };
        is_newest.then(|| ahead - 1)
    }
}

/// Header compression at both ends.
#[derive(Debug)]
pub(super) enum Codec {
    None,
    Iphc {
        iphc: Box<Iphc>,
        room: Vec<u8>,
    },
    /// ROHC, with `frames` from each side if the link layer numbers them.
    Rohc {
        terminals: Box<[Terminal; 2]>,
        room: Vec<u8>,
        frames: Option<[FrameNumbers; 2]>,
    },
}

impl Codec {
    pub(super) fn rohc(channel: &RohcChannel) -> Self {
        let terminals = Box::new(Side::ALL.map(|side| Terminal::new(channel, side, BLOCKS)));
        Self::Rohc { terminals, room: vec![0; ROOM], frames: None }
    }

    pub(super) fn iphc() -> Self {
        Self::Iphc { iphc: Box::new(Iphc::new()), room: vec![0; ROOM] }
    }

    /// Gives the decompressors the number of lost frames from now on.
    pub(super) fn number_frames(&mut self) {
        match self {
            Self::Rohc { frames, .. } => *frames = Some(Default::default()),
            Self::None | Self::Iphc { .. } => {}
        }
    }

    pub(super) fn terminals(&self) -> &[Terminal] {
        match self {
            Self::Rohc { terminals, .. } => &**terminals,
            Self::None | Self::Iphc { .. } => &[],
        }
    }

    pub(super) fn terminal(&mut self, side: Side) -> Option<&mut Terminal> {
        match self {
            Self::Rohc { terminals, .. } => Some(&mut terminals[side as usize]),
            Self::None | Self::Iphc { .. } => None,
        }
    }

    /// Compresses a packet whose transmission begins; an error is the name of a reason.
    pub(super) fn compress(
        &mut self,
        now: Instant,
        from: Side,
        carried: &mut CarriedPacket,
        totals: &mut DirectionTotals,
    ) -> Result<(), &'static str> {
        if let Self::Rohc { frames: Some(frames), .. } = self {
            carried.frame = frames[from as usize].number();
        }
        let (header_in, header_out) = match (self, &carried.ip) {
            (Self::None, _) | (_, None) => return Ok(()),
            (Self::Iphc { iphc, room }, Some(ip)) => {
                let (done, octets) = iphc.compress(from, ip, room)?;
                carried.octets = octets;
                (done.header_in, done.header_out)
            }
            (Self::Rohc { terminals, room, .. }, Some(ip)) => {
                let terminal = &mut terminals[from as usize];
                let (done, octets) = terminal.compress(now, ip, room, &mut totals.feedback).map_err(name)?;
                carried.octets = octets;
                *totals.formats.entry(done.format).or_default() += 1;
                (done.header_in, done.header_out)
            }
        };
        totals.header_octets += header_in as u64;
        totals.compressed_header_octets += header_out as u64;
        Ok(())
    }

    /// Decompresses a packet that has come out of the link; `None` if it was feedback alone. `back` are the totals of the
    /// opposite direction, in which feedback is sent.
    pub(super) fn decompress(
        &mut self,
        now: Instant,
        from: Side,
        carried: &CarriedPacket,
        back: &mut DirectionTotals,
    ) -> Result<Option<Vec<u8>>, &'static str> {
        let is_packet = carried.ip.is_some();
        match self {
            Self::None => Ok(Some(carried.octets.clone())),
            Self::Iphc { iphc, room } => iphc.decompress(from, &carried.octets, room).map(Some),
            Self::Rohc { terminals, room, frames } => {
                let lost = frames.as_mut().and_then(|frames| frames[from as usize].lost(carried.frame));
                let terminal = &mut terminals[from.other() as usize];
                match terminal.decompress(Arrival { now, lost }, &carried.octets, room, &mut back.feedback) {
                    Ok((done, packet)) if done.len > 0 && is_packet => Ok(Some(packet)),
                    // Damaged feedback that decodes as a packet: nobody has sent it.
                    Ok((done, _)) if done.len > 0 => Err("damaged_feedback"),
                    Ok(_) | Err(DecompressError::NothingYet) if !is_packet => Ok(None),
                    Ok(_) => Err("nothing_delivered"),
                    Err(error) => Err(error.name()),
                }
            }
        }
    }
}

fn name(error: CompressError) -> &'static str {
    match error {
        CompressError::NotIp(NotIp::Version) => "not_ip",
        CompressError::NotIp(NotIp::Short { .. }) => "short_ip_header",
        CompressError::OutputTooSmall { .. } => "output_too_small",
        CompressError::NoContexts => "no_contexts",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_are_missing_are_counted_and_late_ones_are_not() {
        let mut frames = FrameNumbers::default();
        let sent: Vec<u32> = (0..6).map(|_| frames.number()).collect();
        let mut lost = |at: usize| frames.lost(sent[at]);
        assert_eq!([lost(0), lost(3), lost(2), lost(4), lost(5)], [Some(0), Some(2), None, Some(0), Some(0)]);
    }
}
