//! Packets that establish the context of a flow from nothing, and the gaps between them.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};
use thinair_rohc::{Format, Instant, ProfileId};

use crate::outcome::LateWait;
use crate::scheme::{CompressedPacket, FormatLabel};

/// The open gap of a flow, which begins with a packet that established the context.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gap {
    /// Packets since that one, plus 1; `None` if no packet has established the context.
    open: Option<NonZeroU64>,
    since: Instant,
    latest: Instant,
}

impl Gap {
    /// Adds a packet of the flow. If it ends a gap, returns the length of the gap in packets and nanoseconds.
    /// Packets of profile 0x0000 share one context, and are not counted.
    pub(crate) fn add(&mut self, now: Instant, compressed: Option<&CompressedPacket>) -> Option<(u64, u64)> {
        let compressed = compressed.filter(|one| one.profile != Some(ProfileId::Uncompressed))?;
        self.latest = now;
        self.open = self.open.map(|packets| packets.saturating_add(1));
        if !builds_context(compressed) {
            return None;
        }
        let ended = self.ended();
        (self.open, self.since) = (Some(NonZeroU64::MIN), now);
        ended
    }

    /// Length of the gap at the end of the flow, in packets and nanoseconds; `None` without a packet.
    pub(crate) fn ended(&self) -> Option<(u64, u64)> {
        let packets = self.open?.get() - 1;
        (packets > 0).then(|| (packets, self.latest.nanos_since(self.since)))
    }
}

/// Sums of gaps that have ended.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Gaps {
    longest_packets: u64,
    longest_nanos: u64,
    packets: u64,
    nanos: u64,
    count: u64,
}

impl Gaps {
    /// Adds the length of a gap in packets and nanoseconds, if one has ended.
    pub(crate) fn add(&mut self, ended: Option<(u64, u64)>) {
        let Some((packets, nanos)) = ended else { return };
        self.longest_packets = self.longest_packets.max(packets);
        self.longest_nanos = self.longest_nanos.max(nanos);
        self.packets += packets;
        self.nanos += nanos;
        self.count += 1;
    }

    /// Adds the gaps of a flow.
    pub(crate) fn merge(&mut self, flow: &Self) {
        self.longest_packets = self.longest_packets.max(flow.longest_packets);
        self.longest_nanos = self.longest_nanos.max(flow.longest_nanos);
        self.packets += flow.packets;
        self.nanos += flow.nanos;
        self.count += flow.count;
    }

    /// Waiting time of a decompressor that starts late; `None` if there is no gap.
    pub(crate) fn late_wait(self) -> Option<LateWait> {
        let mean = |sum: f64| sum / self.count as f64;
        (self.count > 0).then(|| LateWait {
            packets: self.longest_packets,
            seconds: self.longest_nanos as f64 / 1e9,
            mean_packets: mean(self.packets as f64),
            mean_seconds: mean(self.nanos as f64 / 1e9),
        })
    }
}

/// True for IR, and for the IR-CR of profile 0x0181, whose bases both ends have from the start. The IR-CR of
/// profile 0x0006 depends on another context.
fn builds_context(compressed: &CompressedPacket) -> bool {
    match compressed.format {
        FormatLabel::Format(Format::Ir) => true,
        FormatLabel::Format(Format::IrCr) => compressed.profile == Some(ProfileId::Coap),
        FormatLabel::Format(_) | FormatLabel::Rule(_) | FormatLabel::Iphc | FormatLabel::Ipv6 => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn packet(format: Format) -> CompressedPacket {
        CompressedPacket {
            format: FormatLabel::Format(format),
            profile: Some(ProfileId::Udp),
            header_in: 28,
            header_out: 3,
            len: 3,
            cid_len: 0,
            refresh: false,
        }
    }

    /// Adds the gaps of a flow with these packets, at intervals of one second.
    fn add(gaps: &mut Gaps, formats: &[Format]) {
        let mut gap = Gap::default();
        for (second, &format) in (0..).zip(formats) {
            gaps.add(gap.add(Instant::from_millis(1_000 * second), Some(&packet(format))));
        }
        gaps.add(gap.ended());
    }

    fn gaps(formats: &[Format]) -> Gaps {
        let mut gaps = Gaps::default();
        add(&mut gaps, formats);
        gaps
    }

    #[test]
    fn gaps_are_counted_from_ir_to_ir_and_to_the_end() {
        use Format::{Ir, IrDyn, Uo0};
        let wait = gaps(&[Ir, Ir, Uo0, Uo0, Ir, IrDyn, Uo0, Uo0, Uo0]).late_wait().unwrap();
        assert_eq!((wait.packets, wait.seconds), (4, 4.0));
        assert_eq!((wait.mean_packets, wait.mean_seconds), (8.0 / 3.0, 8.0 / 3.0));
    }

    #[test]
    fn a_flow_that_ends_with_its_only_context_has_no_gap() {
        assert_eq!(gaps(&[Format::Ir]).late_wait(), None);
        assert_eq!(gaps(&[Format::Uo0, Format::Uo0]).late_wait(), None);
    }

    #[test]
    fn the_longest_gap_of_all_flows_counts() {
        use Format::{Ir, Uo0};
        let mut all = Gaps::default();
        add(&mut all, &[Ir, Uo0, Ir]);
        add(&mut all, &[Ir, Uo0, Uo0, Uo0]);
        let wait = all.late_wait().unwrap();
        assert_eq!((wait.packets, wait.mean_packets), (3, 2.5));
    }
}
