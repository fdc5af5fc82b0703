//! Flows for the tests that hold the short ways against the long ones.

use alloc::vec::Vec;
use proptest::prelude::*;
use thinair_wire::header::ipv4::Ipv4;

/// The destination port of RTP.
pub(crate) const RTP_PORT: u16 = 0x1634;

/// What follows the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upper {
    Udp,
    Rtp,
    Esp,
}

/// A flow with one IP header and a payload of 4 octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) upper: Upper,
    pub(crate) six: bool,
    pub(crate) ttl: u8,
    pub(crate) id: u16,
    pub(crate) checksum: u16,
    pub(crate) sn: u32,
    pub(crate) ts: u32,
    pub(crate) marker: bool,
}

impl Flow {
    pub(crate) fn new(upper: Upper, six: bool) -> Self {
        Self { upper, six, ttl: 64, id: 1, checksum: 1, sn: 0xFFFF_FFF0, ts: 0xFFFF_F000, marker: false }
    }

    pub(crate) fn packet(&self) -> Vec<u8> {
        let mut inside = Vec::new();
        if self.upper == Upper::Esp {
            inside.extend_from_slice(&[0, 0, 1, 2]);
            inside.extend_from_slice(&self.sn.to_be_bytes());
        } else {
            inside.extend_from_slice(&[0x16, 0x33]);
            inside.extend_from_slice(&RTP_PORT.to_be_bytes());
            inside.extend_from_slice(&[0, if self.upper == Upper::Rtp { 24 } else { 12 }]);
            inside.extend_from_slice(&self.checksum.to_be_bytes());
        }
        if self.upper == Upper::Rtp {
            inside.extend_from_slice(&[0x80, u8::from(self.marker) << 7]);
            inside.extend_from_slice(&(self.sn as u16).to_be_bytes());
            inside.extend_from_slice(&self.ts.to_be_bytes());
            inside.extend_from_slice(&[9, 8, 7, 6]);
        }
        inside.extend_from_slice(&[1, 2, 3, 4]);
        let (len, next) = (inside.len() as u8, if self.upper == Upper::Esp { 50 } else { 17 });
        let mut packet = Vec::new();
        if self.six {
            packet.extend_from_slice(&[0x60, 0, 0, 0, 0, len, next, self.ttl]);
            packet.extend_from_slice(&[0xFD; 32]);
        } else {
            let [high, low] = self.id.to_be_bytes();
            packet.extend_from_slice(&[0x45, 0, 0, 20 + len, high, low, 0x40, 0, self.ttl, next, 0, 0]);
            packet.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            let sum = Ipv4::checksum_of(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        packet.extend_from_slice(&inside);
        packet
    }

    /// Goes on by one packet. Every kind of step is that of an IP-ID somewhere.
    pub(crate) fn step(&mut self, step: Step) {
        self.id = match step {
            Step::Counts(by) => self.id.wrapping_add(by),
            Step::CountsSwapped => self.id.swap_bytes().wrapping_add(1).swap_bytes(),
            Step::Jumps(to) => to,
            Step::Stays | Step::ChangesTtl(_) | Step::Pauses(_) | Step::Skips(_) => self.id,
        };
        self.sn = self.sn.wrapping_add(1);
        self.ts = self.ts.wrapping_add(160);
        self.marker = false;
        match step {
            Step::ChangesTtl(ttl) => self.ttl = ttl,
            Step::Pauses(time) => {
                self.marker = true;
                self.ts = self.ts.wrapping_add(time);
            }
            Step::Skips(packets) => {
                self.sn = self.sn.wrapping_add(packets);
                self.ts = self.ts.wrapping_add(packets.wrapping_mul(160));
            }
            _ => {}
        }
        if self.checksum != 0 {
            self.checksum = self.checksum.wrapping_mul(5) | 1;
        }
    }
}

/// What becomes of the header from one packet to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Counts(u16),
    CountsSwapped,
    Stays,
    Jumps(u16),
    ChangesTtl(u8),
    /// A new timestamp, with the marker.
    Pauses(u32),
    /// Sequence numbers that the compressor does not see.
    Skips(u32),
}

/// Steps of one kind in a row, so that flows settle.
pub(crate) fn steps() -> impl Strategy<Value = (Step, usize)> {
    let step = prop_oneof![
        4 => (1..4_u16).prop_map(Step::Counts),
        2 => Just(Step::CountsSwapped),
        2 => Just(Step::Stays),
    ];
    let odd = prop_oneof![
        any::<u16>().prop_map(Step::Jumps),
        any::<u8>().prop_map(Step::ChangesTtl),
        (0..20_u32).prop_map(|packets| Step::Pauses(160 * packets)),
        (0..5_000_u32).prop_map(Step::Pauses),
        (1..40_u32).prop_map(Step::Skips),
    ];
    prop_oneof![5 => (step, 1..40_usize), 1 => (odd, 1..4_usize)]
}

/// Any flow.
pub(crate) fn flows() -> impl Strategy<Value = Flow> {
    let upper = prop_oneof![Just(Upper::Udp), Just(Upper::Rtp), Just(Upper::Esp)];
    (upper, any::<bool>(), any::<u16>(), 0..3_u16).prop_map(|(upper, six, id, checksum)| Flow {
        id,
        checksum,
        ..Flow::new(upper, six)
    })
}
