//! `ule-throughput`: what header compression is worth on a satellite link of MPEG-2 TS packets, by the equations of the
//! paper, by exact counting, in virtual time and, where that can be, in real time.

mod model;
mod published;
mod real;
mod rows;
mod show;
mod simulate;

use thinair_lab::{Stack, header_cycle};
use thinair_rohc::Refresh;

use model::HeaderSizes;
use real::Measured;
use simulate::{FULL, Found, Job, QUICK, SCHEDULE, Scale};

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};
use crate::sweep::sweep;

/// The evaluation.
#[derive(Debug)]
pub(crate) struct UleThroughput;

const ABOUT: About = About {
    name: "ule-throughput",
    title: "Header compression over a DVB-S link: ROHC over ULE",
    source: "W.-C. Ang, T.-C. Wan, K. Kataoka, C.-H. Teh: Performance Evaluation of RObust Header Compression (ROHC) over \
        Unidirectional Links using DVB-S Testbed, Keio SFC Journal 8(2), 2008",
    claim: &[
        "By its model, compression gains 79 % of throughput at 40 octets of payload and 4 % at 1,024 (UDP over IPv6, 3 IR \
            packets of 50 octets, then 50 of 3, ULE at 3.507 Mbit/s). Measured over the satellite, it gained 11, 7 and \
            3.4 % at 40, 80 and 120 octets: 828, 1,656 and 2,315 kbit/s, “possibly due to interactions between the \
            hardware device and software drivers”. From 200 octets on, measurement and model agree.",
        "Padding mode is worse than packing without compression whenever a packet slightly exceeds a multiple of a TS \
            packet; a Packing Threshold of 3 ms is the best of 1 to 20 ms. A mesh of unidirectional links has less \
            delay than a star, takes less spectrum, and no hub that all depends on.",
        "Ours: a sender that packs reaches the model at every payload, less 0.1 to 0.7 % for Payload Pointers. What the \
            paper measured is hardly more than one SNDU a TS packet: its sender did not pack.",
    ],
    method: &[
        "model: equations 1 to 7. packing: TS packets filled by the rules of RFC 4326, section 6.2, until they repeat \
            themselves: Payload Pointers, the one or two octets that stay empty. padding: whole TS packets. Null packets \
            and PSI are counted in none of these rows.",
        "simulated: UDP packets with checksums over IPv6 through our compressor (profile UDP, U-mode, refresh \
            ir=3,so=50,direct), encapsulator (threshold 3 ms), 3.507 Mbit/s of TS packets, 250 ms, receiver and \
            decompressor, in virtual time. There is always another packet; a window of 20 s is counted (2 s in a quick run). Every \
            packet that arrives is compared with what was sent, octet by octet.",
        "sweep: 100 to 3,500 kbit/s of payload are offered in steps of 100, 10 packets may wait (12 s; 0.3 s in a quick run). \
            threshold: 100 to 1,600 packets a second of 40 octets, compressed. It counts from the last packet, so that TS \
            packets fill whenever packets come faster, or, “from the first”, bounds the delay. Delays of \
            these rows are those that the sender adds, from a packet to the end of its TS packet: the way of 250 ms \
            comes on top.",
        "pull: the TS clock asks for packets; what is queued is packed, the rest of a TS packet is padded at once, and nothing \
            waits. mesh: 4, 8 and 16 sites, each with 400 packets a second of 40 octets for all others; in the star a hub \
            decompresses, and compresses all flows by one channel. After 0.8 s the hub fails, in the mesh the first site.",
        "real: TS packets by the clock over UDP between network namespaces, payload counted by iperf3 behind the \
            decompressor. If 1 in 100 TS packets was more than 1 ms late, because the machine had something else to do, the \
            row is measured again, up to three times, and the highest figure is taken.",
    ],
    theirs: &[
        "Measurements that the paper gives in numbers: 40, 80 and 120 octets; others are in figures alone. Its percentages \
            are of 3,500 kbit/s, and its “2.2 % increase” at 120 octets are points of that: 3.4 % more.",
        "Bars of model and packing are the equations worked by hand, and another program that filled TS packets with 200,000 \
            SNDUs. mpe: equation 3 with 16 octets for Multiprotocol Encapsulation. rohc-lib: exact packing with the IR \
            headers that rohc-lib sends, on the same schedule.",
    ],
    why_different: &[
        "One SNDU a TS packet explains what the paper left open. There are 2,331.78 TS packets a second, so that 40 octets in \
            each are 746.2 kbit/s and 120 octets 2,238.5: the paper measured 746 and 2,238 without compression, and \
            with it 1.11, 1.11 and 1.03 SNDUs a TS packet. Its threshold of 3 ms hardly ever found a second packet, for \
            reasons that the text does not tell. With one SNDU a TS packet, a smaller header saves nothing. Payload \
            Pointers, which the paper suspects, cost less than 0.7 %.",
        "A threshold works if packets come faster than it. At 200 packets a second one of 3 ms fills nothing, and one of 10 \
            ms makes every packet wait. Where the TS packets of a link are all one's own, the slot that is not used is a \
            null packet: then pulling costs nothing, packs whatever is there, and adds less than two TS packets of delay.",
        "The largest part of what compression leaves is ULE's own 8 octets. O-mode leaves the refreshes out, PDU-Concat \
            (RFC 5163) shares the 8 octets among 8 packets; a lost TS packet then costs more of them, and Linux discards such \
            SNDUs.",
        "The IR headers of rohc-lib are those of the first packet of a flow. For RTP ours are an octet shorter there, and \
            later, when they tell the stride of the timestamps, two longer.",
        "The star takes more than twice the TS packets of the mesh where few sites leave gaps at the hub; and the hub's \
            channel has several contexts, so that its packets have a CID.",
    ],
};

impl Paper for UleThroughput {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        measure(plan, if plan.quick { QUICK } else { FULL }, simulate::jobs(), progress)
    }
}

/// All that is known, before it is put into rows.
#[derive(Debug)]
struct Results {
    /// Headers of the paper's stack by the paper's schedule.
    headers: HeaderSizes,
    /// Headers of the others.
    others: Vec<(Stack, HeaderSizes)>,
    /// Headers of the paper's stack that has settled.
    settled: HeaderSizes,
    runs: Vec<(Job, Found)>,
    /// How long the sweep has run.
    scale: Scale,
    real: Vec<Measured>,
}

impl Results {
    fn of(&self, job: Job) -> Option<&Found> {
        self.runs.iter().find(|(other, _)| *other == job).map(|(_, found)| found)
    }
}

fn measure(plan: &Plan, scale: Scale, jobs: Vec<Job>, progress: Progress<'_>) -> Result<Findings, Error> {
    let sizes = |stack: Stack, refresh: Refresh| -> Result<HeaderSizes, Error> {
        Ok(HeaderSizes::new(stack, header_cycle(stack, refresh)?))
    };
    let found =
        sweep(&jobs, plan.threads, progress, |job| job.cost(&scale), |job| job.run(&scale, plan.seed))?;
    let mut left_out = Vec::new();
    let real = real::measure(plan).unwrap_or_else(|why| {
        left_out.push(format!("Left out: the rows real/, as {why}."));
        Vec::new()
    });
    let mut others = Vec::new();
    for stack in simulate::other_stacks() {
        others.push((stack, sizes(stack, SCHEDULE)?));
    }
    let results = Results {
        headers: sizes(Stack::IPV6_UDP, SCHEDULE)?,
        others,
        settled: sizes(Stack::IPV6_UDP, Refresh::Off)?,
        runs: jobs.into_iter().zip(found).collect(),
        scale,
        real,
    };
    Ok(Findings { rows: rows::rows(&results), ours: show::sections(&results), left_out })
}

#[cfg(test)]
mod tests;
