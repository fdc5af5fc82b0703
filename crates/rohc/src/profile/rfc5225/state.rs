//! State of a flow at both ends: the headers of its last packet, and the control fields. RFC 5225, section 6.6.11 and 6.8.2.4.

use thinair_wire::crc::Check;
use thinair_wire::time::Instant;

use super::encodings::{ReorderRatio, near};
use super::headers::{Headers, Item, Kind, MAX_IP, infer, upper};
use crate::field::ip::set_id;
pub(super) use crate::field::ip_id::Behavior;
use crate::field::timer::phase;
use crate::flow::search::SumEquation;
use crate::id::ProfileId;
use crate::storage::{Room, Slots};
use crate::work;

/// `ts_stride` of a new context: TS_STRIDE_DEFAULT.
pub(super) const TS_STRIDE: u32 = 160;

/// Items of the table of CSRC identifiers.
pub(super) const CSRCS: usize = 16;

/// UDP_LITE_COVERAGE_INFERRED, UDP_LITE_COVERAGE_STATIC and UDP_LITE_COVERAGE_IRREGULAR.
pub(super) mod coverage {
    pub(in super::super) const INFERRED: u8 = 0;
    pub(in super::super) const STATIC: u8 = 1;
    pub(in super::super) const IRREGULAR: u8 = 2;
}

/// The headers of a packet, and the control fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) profile: ProfileId,
    pub(super) headers: Headers,
    /// The MSN; where it has 16 bits, its low half.
    pub(super) msn: u32,
    pub(super) reorder_ratio: ReorderRatio,
    /// `ip_id_behavior` of each IP header; of IPv6 it is random.
    pub(super) behaviors: [Behavior; MAX_IP],
    /// `ip_id_offset` of the innermost header, whatever its behavior is.
    pub(super) ip_id_offset: u16,
    pub(super) ts_stride: u32,
    pub(super) time_stride: u32,
    pub(super) coverage_behavior: u8,
    pub(super) checksum_used: bool,
    /// The table of CSRC identifiers, and which of its items are known.
    pub(super) csrcs: [[u8; 4]; CSRCS],
    pub(super) known: u16,
}

impl State {
    pub(super) const fn new(profile: ProfileId) -> Self {
        Self {
            profile,
            headers: Headers::EMPTY,
            msn: 0,
            reorder_ratio: ReorderRatio::None,
            behaviors: [Behavior::Random; MAX_IP],
            ip_id_offset: 0,
            ts_stride: TS_STRIDE,
            time_stride: 0,
            coverage_behavior: 0,
            checksum_used: false,
            csrcs: [[0; 4]; CSRCS],
            known: 0,
        }
    }

    /// True if there is an RTP header.
    #[inline]
    pub(super) fn has_rtp(&self) -> bool {
        has_rtp(self.profile)
    }

    /// True if the profile has a UDP-Lite header.
    #[inline]
    pub(super) fn has_lite(&self) -> bool {
        matches!(self.profile, ProfileId::RtpUdpLiteV2 | ProfileId::UdpLiteV2)
    }

    /// Bits of the MSN.
    #[inline]
    pub(super) fn msn_bits(&self) -> u32 {
        if self.profile == ProfileId::EspV2 { 32 } else { 16 }
    }

    /// True if the MSN is a sequence number of the headers: it may take any step.
    #[inline]
    pub(super) fn has_own_msn(&self) -> bool {
        self.has_rtp() || self.profile == ProfileId::EspV2
    }

    /// The MSN that the headers have, if they have one.
    #[inline]
    pub(super) fn own_msn(&self, headers: &Headers) -> Option<u32> {
        if let Some(rtp) = headers.upper(Kind::Rtp) {
            return Some(near(self.msn, headers.word(rtp, 2)));
        }
        headers.upper(Kind::Esp).map(|esp| headers.long(esp, 4))
    }

    /// `ip_id_behavior_innermost`.
    #[inline]
    pub(super) fn inner_behavior(&self) -> Behavior {
        self.behaviors[self.headers.inner_ip()]
    }

    /// `ip_id_behavior_innermost`, to be changed.
    pub(super) fn inner_behavior_mut(&mut self) -> &mut Behavior {
        &mut self.behaviors[self.headers.inner_ip()]
    }

    /// True if the IP-ID of the innermost header follows from the MSN: formats with `seq` in their names are used.
    #[inline]
    pub(super) fn is_sequential(&self) -> bool {
        self.inner_behavior().is_sequential()
    }

    /// True if the innermost IP header is IPv6.
    pub(super) fn is_v6(&self) -> bool {
        self.headers.inner().kind == Kind::V6
    }

    /// True if the Checksum Coverage is inferred.
    #[inline]
    pub(super) fn infers_coverage(&self) -> bool {
        self.has_lite() && self.coverage_behavior == coverage::INFERRED
    }

    /// The IP-ID of the innermost header as its offset from the MSN. RFC 5225, section 6.8.2.4, `ip_id_lsb`: for swapped octets, too.
    pub(super) fn offset_of_id(&self) -> u16 {
        let inner = self.headers.inner();
        if inner.kind == Kind::V6 {
            return 0;
        }
        self.inner_behavior().counted(self.headers.word(inner, 4)).wrapping_sub(self.msn as u16)
    }

    /// Sets the IP-ID of the innermost header from its offset.
    pub(super) fn set_id(&mut self, offset: u16) {
        let inner = self.headers.inner();
        let id = self.inner_behavior().counted(offset.wrapping_add(self.msn as u16));
        self.headers.set(inner, 4, id.to_be_bytes());
    }

    /// The RTP timestamp.
    pub(super) fn timestamp(&self) -> u32 {
        self.headers.upper(Kind::Rtp).map_or(0, |rtp| self.headers.long(rtp, 4))
    }

    /// The scaled RTP timestamp.
    pub(super) fn ts_scaled(&self) -> u32 {
        self.timestamp().checked_div(self.ts_stride).unwrap_or(0)
    }

    /// RTP timestamp of a packet that was sent `now`, as a decompressor keeps it: its distance from the clock if a timer is used.
    #[inline]
    pub(super) fn stamp(&self, now: Instant) -> u32 {
        match self.time_stride {
            0 => self.timestamp(),
            time_stride => phase(now, self.ts_scaled(), time_stride),
        }
    }

    /// `ts_offset`: the residue of the RTP timestamp, which also changes where the timestamp wraps around.
    pub(super) fn ts_offset(&self) -> u32 {
        self.timestamp().checked_rem(self.ts_stride).unwrap_or(0)
    }

    /// The RTP timestamp of MSN 0 by `ts_stride`.
    pub(super) fn line(&self) -> u32 {
        self.timestamp().wrapping_sub(self.ts_stride.wrapping_mul(self.msn))
    }

    /// Writes the headers of a packet with a payload of so many octets to the start of `out`; `None` if there is no room, or a
    /// length does not fit its field.
    pub(super) fn rebuild(&self, payload: usize, out: &mut [u8]) -> Option<usize> {
        let len = self.headers.len();
        let octets = out.get_mut(..len)?;
        octets.copy_from_slice(self.headers.all());
        infer(self.headers.items(), octets, len + payload, self.infers_coverage())?;
        Some(len)
    }

    /// Number of octets in front that do not depend on the MSN.
    pub(super) fn same_octets(&self) -> usize {
        let id = Some((self.headers.inner(), 4)).filter(|_| !self.is_v6());
        let numbered = || {
            let rtp = self.headers.upper(Kind::Rtp).map(|rtp| (rtp, 2));
            rtp.or_else(|| Some((self.headers.upper(Kind::Esp)?, 4)))
        };
        id.or_else(numbered).map_or(self.headers.len(), |(item, at)| usize::from(item.at) + at)
    }

    /// Changes headers that were [rebuilt](Self::rebuild) to those of the same packet with another MSN.
    pub(super) fn renumber(&self, out: &mut [u8]) {
        if !self.is_v6() {
            let inner = self.headers.inner();
            set_id(out, inner.at.into(), self.headers.word(inner, 4));
        }
        let mut copy = |item: Item, from: usize| {
            let range = usize::from(item.at) + from..usize::from(item.at) + 8;
            if let (Some(room), Some(octets)) = (out.get_mut(range.clone()), self.headers.octets.get(range)) {
                room.copy_from_slice(octets);
            }
        };
        if let Some(rtp) = self.headers.upper(Kind::Rtp) {
            copy(rtp, 2);
        }
        if let Some(esp) = self.headers.upper(Kind::Esp) {
            copy(esp, 4);
        }
    }

    /// `control_crc3`. RFC 5225, section 6.6.11, with erratum 2703: behaviors of IPv4 headers alone.
    pub(super) fn control_crc3(&self) -> u8 {
        let check = Check::Crc3;
        let mut crc = check.update(check.start(), &[self.reorder_ratio as u8]);
        if self.has_rtp() {
            crc = check
                .update(check.update(crc, &self.ts_stride.to_be_bytes()), &self.time_stride.to_be_bytes());
        }
        if !self.has_own_msn() {
            crc = check.update(crc, &(self.msn as u16).to_be_bytes());
        }
        if self.has_lite() {
            crc = check.update(crc, &[self.coverage_behavior]);
        }
        let ips = self.headers.items().iter().filter(|item| item.kind.is_ip());
        for (_, behavior) in ips.zip(self.behaviors).filter(|(ip, _)| ip.kind == Kind::V4) {
            crc = check.update(crc, &[behavior as u8]);
        }
        crc
    }

    /// True if the checksum of UDP or UDP-Lite, if it is right, covers sequence number and timestamp of RTP.
    pub(super) fn sum_covers_rtp(&self) -> bool {
        /// Octets from the UDP-Lite header to the end of the timestamp. RFC 3828, section 3.1: 0 is the whole datagram.
        const COVERED: u16 = 16;
        let is_covered = |lite| match self.headers.word(lite, 4) {
            0 => true,
            coverage => self.infers_coverage() || coverage >= COVERED,
        };
        self.has_rtp() && self.headers.upper(Kind::UdpLite).map_or(self.checksum_used, is_covered)
    }

    /// True if the UDP or UDP-Lite checksum of headers that were rebuilt is right.
    pub(super) fn has_right_sum(&self, out: &[u8], payload: &[u8]) -> bool {
        self.sum(out, payload) == Some(u16::MAX)
    }

    /// Sums up what a UDP or UDP-Lite checksum covers in headers that were rebuilt, with their payload: 65,535 if it is right. `None` if
    /// there is none, or it does not cover all headers from there on.
    pub(super) fn sum(&self, out: &[u8], payload: &[u8]) -> Option<u16> {
        let lite = self.has_lite();
        let udp = self.headers.upper(if lite { Kind::UdpLite } else { Kind::Udp })?;
        sum(lite, self.headers.inner(), out, out.get(usize::from(udp.at)..self.headers.len())?, payload)
    }

    /// The equation of that checksum.
    pub(super) fn equation(&self, out: &[u8], payload: &[u8]) -> Option<SumEquation> {
        let rtp = self.headers.upper(Kind::Rtp)?;
        let sum = self.sum(out, payload)?;
        Some(SumEquation::new(sum, self.headers.word(rtp, 2), self.timestamp()))
    }
}

/// True if a profile has an RTP header.
#[inline]
pub(super) fn has_rtp(profile: ProfileId) -> bool {
    upper(profile).len() == 2
}

/// Returns the sum of a datagram whose headers and payload lie apart.
fn sum(lite: bool, ip: Item, out: &[u8], datagram: &[u8], payload: &[u8]) -> Option<u16> {
    use thinair_wire::checksum::Sum;
    use thinair_wire::header::protocol;

    let len = datagram.len() + payload.len();
    let field = datagram.get(4..6).map_or(0, |octets| usize::from(octets[0]) << 8 | usize::from(octets[1]));
    let covered = match (lite, field) {
        (true, 1..) => field,
        _ => len,
    };
    let behind = payload.len().checked_sub(len.checked_sub(covered)?)?;
    let ends = if ip.kind == Kind::V4 { 12..20 } else { 8..40 };
    let ends = out.get(ip.range())?.get(ends)?;
    let protocol = if lite { protocol::UDP_LITE } else { protocol::UDP };
    let sum = Sum::ZERO.octets(ends).word(u16::from(protocol)).word(len as u16).octets(datagram);
    work::note(covered / 8);
    // Headers have an even number of octets.
    Some(sum.octets(payload.get(..behind)?).fold())
}

/// Place of one flow of RFC 5225 at either end: its last packet.
#[derive(Clone, Copy, Debug)]
pub struct V2Room(pub(super) State);

impl V2Room {
    /// The profiles whose flows have one.
    pub(super) const PROFILES: [ProfileId; 6] = [
        ProfileId::RtpV2,
        ProfileId::UdpV2,
        ProfileId::EspV2,
        ProfileId::RtpUdpLiteV2,
        ProfileId::UdpLiteV2,
        ProfileId::IpV2,
    ];
}

impl Room for V2Room {
    const EMPTY: Self = Self(State::new(ProfileId::IpV2));
    const PROFILES: &'static [ProfileId] = &Self::PROFILES;
    type Shared<'m> = Slots<'m, Self>;

    fn share(rooms: Slots<'_, Self>) -> Slots<'_, Self> {
        rooms
    }
}
