//! Segmentation of one direction of a stream: choice of the next segment, and feedback to the size control.

use std::io;
use std::net::TcpStream;

use thinair_os::tcp::segments::{self, TcpInfo};
use thinair_segment::{LossDetection, SegmentSizer as _, Sizer};
use thinair_wire::time::Instant;

/// Totals of segmentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SegmentTotals {
    /// Octets and segments passed to the system.
    pub(super) octets: u64,
    pub(super) segments: u64,
    /// Octets that were acknowledged.
    pub(super) acknowledged: u64,
    /// Retransmitted segments.
    pub(super) sent_again: u64,
    /// Shortest and longest segment, in octets; 0 before the first one. A segment at the end of the data counts with
    /// the size that it could have had.
    pub(super) least: u16,
    pub(super) most: u16,
}

/// Segmentation of one direction.
#[derive(Debug)]
pub(super) struct Cut {
    /// Latest information of the system.
    last: TcpInfo,
    /// Segments that have arrived, and were not acknowledged yet: earlier ones are missing.
    arrived: u32,
    /// End of the last short segment, as an offset in the stream.
    short: u64,
    pub(super) counts: SegmentTotals,
}

/// Result of an attempt to send.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SendResult {
    /// This number of octets was sent.
    Octets(usize),
    /// There is no room.
    NoRoom,
    /// Less than a segment is available, and another short one is under way: the rest waits for more, or for the
    /// acknowledgment.
    Held,
}

impl Cut {
    /// Creates the segmentation of an open stream.
    ///
    /// # Errors
    /// The socket is invalid.
    pub(super) fn new(stream: &TcpStream) -> Result<Self, thinair_os::Error> {
        segments::prepare(stream)?;
        let last = segments::info(stream)?;
        Ok(Self { last, arrived: 0, short: 0, counts: SegmentTotals::default() })
    }

    /// Reports new acknowledgments and losses to the control; returns true if everything has arrived.
    pub(super) fn look(
        &mut self,
        stream: &TcpStream,
        sizer: &mut Sizer,
        now: Instant,
    ) -> Result<bool, thinair_os::Error> {
        let info = segments::info(stream)?;
        self.take_in(info, sizer, now);
        // A reset stream has nothing under way either: only acknowledgments count.
        Ok(self.counts.acknowledged == self.counts.octets)
    }

    /// Reports losses first, since retransmissions caused the later acknowledgments.
    fn take_in(&mut self, info: TcpInfo, sizer: &mut Sizer, now: Instant) {
        let loss = if info.timeouts > 0 { LossDetection::Rto } else { LossDetection::Fast };
        let sent_again = info.sent_again.wrapping_sub(self.last.sent_again);
        for _ in 0..sent_again {
            sizer.on_lost(loss, now);
        }
        // A FIN counts as one more.
        let missing = self.counts.octets - self.counts.acknowledged;
        let octets = info.acknowledged.saturating_sub(self.last.acknowledged).min(missing);
        self.arrived = self.arrived.saturating_add(info.delivered.wrapping_sub(self.last.delivered));
        if octets > 0 {
            let segments = u64::from(self.arrived).clamp(1, octets);
            let each = u32::try_from(octets / segments).unwrap_or(u32::MAX);
            let round_trip = (!info.round_trip.is_zero()).then_some(info.round_trip);
            for _ in 0..segments {
                sizer.on_acked(each, round_trip, now);
            }
            self.arrived = 0;
        }
        self.counts.sent_again += u64::from(sent_again);
        self.counts.acknowledged += octets;
        self.last = info;
    }

    /// Sends the next segment of `waits`; `ended`: nothing follows them.
    pub(super) fn send(
        &mut self,
        stream: &TcpStream,
        waits: &[u8],
        ended: bool,
        sizer: &mut Sizer,
        now: Instant,
    ) -> io::Result<SendResult> {
        self.look(stream, sizer, now).map_err(io::Error::other)?;
        let mss = u16::try_from(self.last.mss).unwrap_or(u16::MAX).max(1);
        let size = sizer.size().clamp(1, mss);
        let segment = waits.get(..usize::from(size)).unwrap_or(waits);
        let is_short = segment.len() < usize::from(size);
        if is_short && !ended && self.short > self.counts.acknowledged {
            return Ok(SendResult::Held);
        }
        match segments::send(stream, segment) {
            Ok(taken) => {
                let counts = &mut self.counts;
                counts.octets += taken as u64;
                counts.segments += 1;
                counts.least = if counts.segments == 1 { size } else { counts.least.min(size) };
                counts.most = counts.most.max(size);
                if is_short {
                    self.short = counts.octets;
                }
                Ok(SendResult::Octets(taken))
            }
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => Ok(SendResult::NoRoom),
            Err(why) => Err(why),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use thinair_segment::{Fixed, Tssa};

    use super::*;

    fn cut() -> (Cut, TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        (Cut::new(&stream).unwrap(), stream, other)
    }

    #[test]
    fn the_control_gets_every_segment_once() {
        let (mut cut, ..) = cut();
        let before = cut.last;
        let mut sizer = Sizer::from(Tssa::default());
        cut.counts.octets = 128;
        // Two segments, the second of which was acknowledged by SACK: there is no cumulative acknowledgment yet.
        cut.take_in(TcpInfo { delivered: before.delivered + 1, ..before }, &mut sizer, Instant::ZERO);
        assert_eq!(sizer.size(), 64);
        // The first one was retransmitted, and both are acknowledged.
        let info = TcpInfo {
            delivered: before.delivered + 2,
            acknowledged: before.acknowledged + 128,
            sent_again: 1,
            ..before
        };
        cut.take_in(info, &mut sizer, Instant::ZERO);
        let mut expected = Sizer::from(Tssa::default());
        expected.on_lost(LossDetection::Fast, Instant::ZERO);
        expected.on_acked(64, None, Instant::ZERO);
        expected.on_acked(64, None, Instant::ZERO);
        assert_eq!(sizer, expected);
        assert_eq!((cut.counts.acknowledged, cut.counts.sent_again), (128, 1));
        cut.take_in(info, &mut sizer, Instant::ZERO);
        assert_eq!(sizer, expected, "nothing has happened");
    }

    #[test]
    fn a_short_segment_waits_while_another_one_is_under_way() {
        let (mut cut, stream, mut other) = cut();
        let mut sizer = Sizer::from(Fixed::new(100));
        let now = Instant::ZERO;
        let mut send =
            |cut: &mut Cut, waits: &[u8], ended| cut.send(&stream, waits, ended, &mut sizer, now).unwrap();
        assert_eq!(send(&mut cut, &[0; 250], false), SendResult::Octets(100));
        assert_eq!(send(&mut cut, &[0; 50], false), SendResult::Octets(50), "full ones may be under way");
        // As if the acknowledgment had not arrived yet.
        let short = cut.short;
        cut.short = u64::MAX;
        assert_eq!(send(&mut cut, &[0; 99], false), SendResult::Held);
        assert_eq!(send(&mut cut, &[0; 100], false), SendResult::Octets(100));
        assert_eq!(send(&mut cut, &[0; 99], true), SendResult::Octets(99), "nothing will follow");
        cut.short = short;
        assert_eq!((cut.counts.octets, cut.counts.segments), (349, 4));
        other.read_exact(&mut [0; 349]).unwrap();
    }

    /// A reset stream has nothing under way; but not all of it has arrived.
    #[test]
    fn what_was_reset_is_not_complete() {
        let (mut cut, stream, other) = cut();
        let mut sizer = Sizer::from(Fixed::new(1_000));
        // More than the receive buffer of the other side, which reads nothing, and closes.
        let octets = vec![0; 1_000];
        while cut.counts.octets < 1 << 26
            && matches!(
                cut.send(&stream, &octets, false, &mut sizer, Instant::ZERO),
                Ok(SendResult::Octets(_))
            )
        {}
        thinair_os::tcp::reset(other);
        while cut.send(&stream, &octets, false, &mut sizer, Instant::ZERO).is_ok() {
            std::thread::yield_now();
        }
        assert_eq!(segments::info(&stream).unwrap().unacknowledged, 0);
        assert!(cut.counts.acknowledged < cut.counts.octets, "{:?}", cut.counts);
        assert!(!cut.look(&stream, &mut sizer, Instant::ZERO).unwrap());
    }
}
