//! Size table: each flow, over IPv4 and IPv6, in three modes, beside its peers.

use thinair_rohc::FormatPolicy;
use thinair_rohc::{Instant, ProfileId};

use super::peers;
use crate::form::{Figures, PaperRun};
use crate::pair::{EndPair, PairEnd, PairSettings};
use crate::paper::PaperError;
use crate::sweep::sweep;
use crate::traffic::{CoapFlow, TrafficKind, TrafficPacket, TrafficVersion};

/// Packets at the start of a flow that are not counted.
const START: u64 = 200;
/// Packets of a flow.
const PACKETS: u64 = 500;
/// Milliseconds between two packets.
const PACE: u64 = 100;

/// Channel of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SizeMode {
    ElidedPt0,
    ElidedPt1,
    Carried,
    Udp,
    Coap2015,
}

impl SizeMode {
    const ALL: [Self; 5] = [Self::ElidedPt0, Self::ElidedPt1, Self::Carried, Self::Udp, Self::Coap2015];

    /// Name in row ids.
    const fn name(self) -> &'static str {
        match self {
            Self::ElidedPt0 => "elided-pt0",
            Self::ElidedPt1 => "elided-pt1",
            Self::Carried => "carried",
            Self::Udp => "udp",
            Self::Coap2015 => "coap-2015",
        }
    }

    fn settings(self, seed: u64) -> Result<PairSettings, PaperError> {
        let ours = PairSettings::new(Some(ProfileId::Coap), seed)?.optimistic();
        Ok(match self {
            Self::ElidedPt0 => ours.elided().format(FormatPolicy::Pt0),
            Self::ElidedPt1 => ours.elided().format(FormatPolicy::Pt1),
            Self::Carried => ours,
            Self::Udp => PairSettings::new(None, seed)?.optimistic(),
            Self::Coap2015 => PairSettings::coap_2015(seed)?.optimistic(),
        })
    }
}

/// One flow over one channel.
#[derive(Clone, Copy, Debug)]
struct SizeJob {
    kind: TrafficKind,
    version: TrafficVersion,
    way: SizeMode,
    seed: u64,
}

/// Sizes in steady state.
#[derive(Clone, Copy, Debug, Default)]
struct Steady {
    /// Mean size of a packet, in octets.
    octets: f64,
    /// Size of an uncompressed packet, in octets.
    plain: usize,
    /// Octets of feedback in all packets.
    feedback: usize,
    /// Packets that were not restored exactly.
    not_exact: u64,
    /// True if a packet used profile 0x0080.
    is_coap_2015: bool,
}

fn steady(job: &SizeJob) -> Result<Steady, PaperError> {
    let mut pair = EndPair::new(&job.way.settings(job.seed)?)?;
    let (mut request, mut flow) = match job.kind {
        TrafficKind::HRsp => CoapFlow::exchange(job.version, job.seed),
        kind => (CoapFlow::new(kind, job.version, job.seed), CoapFlow::new(kind, job.version, job.seed)),
    };
    let from = if job.kind.is_from_server() { PairEnd::Server } else { PairEnd::Client };
    let mut packet = TrafficPacket::default();
    let (mut octets, mut steady) = (0, Steady::default());
    for number in 0..PACKETS {
        let now = Instant::from_millis(number * PACE);
        if job.kind == TrafficKind::HRsp {
            request.ask(&mut packet);
            let trip = pair.carry(now, PairEnd::Client, &packet.octets)?;
            steady.not_exact += u64::from(!trip.is_exact);
            flow.answer(&request, &mut packet);
        } else {
            flow.next(&mut packet);
        }
        let trip = pair.carry(now, from, &packet.octets)?;
        steady.feedback += trip.feedback;
        steady.not_exact += u64::from(!trip.is_exact);
        steady.is_coap_2015 |= trip.is_coap_2015;
        if number >= START {
            octets += trip.compressed.len;
        }
    }
    steady.plain = packet.octets.len();
    steady.octets = octets as f64 / (PACKETS - START) as f64;
    Ok(steady)
}

pub(super) fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let (plan, progress) = (run.plan, run.progress);
    let flows: Vec<_> = TrafficVersion::ALL
        .into_iter()
        .flat_map(|version| TrafficKind::ALL.map(|kind| (kind, version)))
        .collect();
    let jobs: Vec<_> = flows
        .iter()
        .flat_map(|&(kind, version)| SizeMode::ALL.map(|way| SizeJob { kind, version, way, seed: plan.seed }))
        .collect();
    let measured = sweep(&jobs, plan.threads, progress, |_| PACKETS, steady)?;
    let of_peers = sweep(
        &flows,
        plan.threads,
        progress,
        |_| PACKETS,
        |&(kind, version)| Ok(peers::measure(kind, version, plan.seed, PACKETS as usize, START as usize)),
    )?;
    let (mut not_exact, mut feedback, mut packets) = (0, 0, 0);
    for ((&(kind, version), ways), peers) in
        flows.iter().zip(measured.chunks_exact(SizeMode::ALL.len())).zip(of_peers)
    {
        let of = |way: SizeMode| &ways[way as usize];
        let flow = format!("{}/{}", kind.name(), version.name());
        let coap_2015 = Some(of(SizeMode::Coap2015)).filter(|of| of.is_coap_2015).map(|of| of.octets);
        for way in [SizeMode::ElidedPt0, SizeMode::ElidedPt1, SizeMode::Carried] {
            let lowpan = if way == SizeMode::Carried { peers.lowpan_carried } else { peers.lowpan_elided };
            figures
                .put(format!("{flow}/{}", way.name()), of(way).octets)
                .peer("udp", of(SizeMode::Udp).octets)
                .peer("coap-2015", coap_2015)
                .peer("schc", peers.schc)
                .peer("6lowpan", lowpan);
            feedback += of(way).feedback;
            packets += PACKETS;
        }
        not_exact += ways.iter().map(|way| way.not_exact).sum::<u64>() + peers.not_exact;
        figures.put(format!("plain/{flow}"), of(SizeMode::Udp).plain as f64);
        let left = [SizeMode::ElidedPt1, SizeMode::Carried, SizeMode::Udp]
            .map(|way| (way.name(), Some(of(way).octets)));
        for (name, octets) in left.into_iter().chain([("schc", Some(peers.schc)), ("coap-2015", coap_2015)]) {
            let left = octets.map(|octets| octets - kind.payload() as f64);
            figures.put(format!("left/{flow}/{name}"), left);
        }
    }
    figures.put("round-trip/not-exact", not_exact as f64);
    figures.put("feedback", feedback as f64 / packets as f64);
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_udp_profile_leaves_what_it_is_known_to_leave() {
        // Measured with rohc-lib over IPv6: 3 octets and the CoAP message.
        let sizes = [12.0, 26.0, 14.0, 16.0, 14.0, 37.0, 15.0, 84.0, 28.0, 36.0, 19.0, 12.0, 30.0];
        for (kind, size) in TrafficKind::ALL.into_iter().zip(sizes) {
            let job = SizeJob { kind, version: TrafficVersion::V6, way: SizeMode::Udp, seed: 5 };
            let steady = steady(&job).unwrap();
            assert_eq!((steady.octets, steady.not_exact), (size, 0), "{kind:?}");
        }
    }
}
