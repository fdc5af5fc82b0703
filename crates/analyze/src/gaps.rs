//! Packets of a flow that build its context from nothing, and how far apart they are.

use thinair_rohc::{Format, Instant, ProfileId};

use crate::outcome::LateWait;
use crate::scheme::{Compressed, Label};

/// The gaps between packets that build the context of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gaps {
    /// Time of the newest packet that built the context, and packets since.
    open: Option<(Instant, u64)>,
    latest: Instant,
    longest_packets: u64,
    longest_nanos: u64,
    packets: u64,
    nanos: u64,
    count: u64,
}

impl Gaps {
    /// Adds a packet of the flow. Those of profile 0x0000 share one context, and are not counted.
    pub(crate) fn add(&mut self, now: Instant, compressed: Option<&Compressed>) {
        if compressed.is_none_or(|compressed| compressed.profile == Some(ProfileId::Uncompressed)) {
            return;
        }
        self.latest = now;
        if let Some((_, packets)) = &mut self.open {
            *packets += 1;
        }
        if compressed.is_some_and(builds_context) {
            self.close();
            self.open = Some((now, 0));
        }
    }

    /// Adds the gaps of another flow, which has ended.
    pub(crate) fn add_flow(&mut self, mut flow: Self) {
        flow.close();
        self.longest_packets = self.longest_packets.max(flow.longest_packets);
        self.longest_nanos = self.longest_nanos.max(flow.longest_nanos);
        self.packets += flow.packets;
        self.nanos += flow.nanos;
        self.count += flow.count;
    }

    /// The gaps of flows that have ended; none if there is not any.
    pub(crate) fn late_wait(mut self) -> Option<LateWait> {
        self.close();
        let mean = |sum: f64| sum / self.count as f64;
        (self.count > 0).then(|| LateWait {
            packets: self.longest_packets,
            seconds: self.longest_nanos as f64 / 1e9,
            mean_packets: mean(self.packets as f64),
            mean_seconds: mean(self.nanos as f64 / 1e9),
        })
    }

    /// Ends the gap that is open, if it has packets.
    fn close(&mut self) {
        let Some((since, packets @ 1..)) = self.open.take() else { return };
        let nanos = self.latest.nanos_since(since);
        self.longest_packets = self.longest_packets.max(packets);
        self.longest_nanos = self.longest_nanos.max(nanos);
        self.packets += packets;
        self.nanos += nanos;
        self.count += 1;
    }
}

/// IR, and the IR-CR of profile 0x0081, whose bases both ends have from the start. That of profile 0x0006 needs another context.
fn builds_context(compressed: &Compressed) -> bool {
    match compressed.format {
        Label::Format(Format::Ir) => true,
        Label::Format(Format::IrCr) => compressed.profile == Some(ProfileId::Coap),
        Label::Format(_) | Label::Rule(_) | Label::Iphc | Label::Ipv6 => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn packet(format: Format) -> Compressed {
        Compressed {
            format: Label::Format(format),
            profile: Some(ProfileId::Udp),
            header_in: 28,
            header_out: 3,
            len: 3,
            refresh: false,
        }
    }

    fn gaps(formats: &[Format]) -> Gaps {
        let mut gaps = Gaps::default();
        for (second, &format) in (0..).zip(formats) {
            gaps.add(Instant::from_millis(1_000 * second), Some(&packet(format)));
        }
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
        all.add_flow(gaps(&[Ir, Uo0, Ir]));
        all.add_flow(gaps(&[Ir, Uo0, Uo0, Uo0]));
        let wait = all.late_wait().unwrap();
        assert_eq!((wait.packets, wait.mean_packets), (3, 2.5));
    }
}
