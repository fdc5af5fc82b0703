//! `ntn-voice`: a voice call over a geostationary satellite, with header compression, behind losses in a row.

mod call;
mod show;

use thinair_rohc::Mode;

use call::{Call, PHASES, Profile, Tally, calls};

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};
use crate::row::Row;
use crate::sweep::sweep;

/// The evaluation.
#[derive(Debug)]
pub(crate) struct NtnVoice;

const ABOUT: About = About {
    name: "ntn-voice",
    title: "Voice over a geostationary link with ROHC, behind 1 to 1,024 losses in a row",
    source: "3GPP SA2, liaison statement S2-2507636 (R2-2506747) on IMS voice over NB-IoT NTN, 2025, questions 1 and 2, with the \
        answers of RAN2 (R2-2508784) and RAN1 (R1-2508096)",
    claim: &[
        "SA2 assumes that about 16 packets lost in a row (UO-0 with 4 bits of sequence number) make a compressor fall back from SO \
            to FO, and about 64 (UOR-2 with 6 bits) to IR, each with a gap in the voice, and asks whether that is so. RAN2 could make \
            no observation, as it depends on the implementation. RAN1 holds 16 or 64 losses in a row for negligible with a line of \
            sight and up to 10 % of packets lost, and for possible behind an obstacle.",
        "Ours: neither number is in RFC 3095. A compressor in U-mode falls back by its own clock, one in O-mode or R-mode by a NACK; a \
            decompressor sends a NACK where it cannot find the sequence number. The time since the last packet tells how many are missing, \
            and the UDP checksum proves it: continuous voice is delivered from the first packet behind up to 1,024 losses. Pauses are \
            harder: where a burst takes the beginning of a talkspurt, the jump of its timestamps is lost with it.",
    ],
    method: &[
        "RTP over UDP with its checksum, over IPv4 with an IP-ID that counts and over IPv6; one packet each 20, 40 or 160 ms, \
            sent with a jitter of up to 1 ms, delivered with up to 2 ms more. 280 ms in each direction, for feedback, too. Continuous \
            voice, and voice with pauses (once in 50 packets, 2 to 101 intervals, a marker behind each). counted: the carrier numbers \
            its frames, as PDCP does, and the decompressor gets the number of those that are missing.",
        "After 160 to 223 packets a burst is lost whole; the 64 packets behind it arrive. One call for each of 64 places of the burst \
            (4 in a quick run), so that it begins at every phase of 4 and 6 bits. Everything is at its default.",
        "not delivered: packets that arrived behind the burst, but were not delivered as they were sent, on average of the bursts. wrong: \
            delivered with another header. falls back: bursts behind which the compressor sends IR-DYN or IR packets, in O-mode and \
            R-mode; in U-mode it sends them by its clock, whatever is lost, so that packets not delivered tell.",
    ],
    theirs: &["16 and 64 losses are assumptions of the question; nobody has measured them there."],
    why_different: &[
        "Bits of a sequence number limit how many losses a decompressor sees without help. The local clock (RFC 3095, section \
            5.3.2.2.4) is such help: voice has a pace. Where it does not, as behind a pause, the UDP checksum decides among the \
            candidates: it covers the sequence number and the timestamp.",
        "An IP-ID is covered by no checksum but its own header's, which is not sent. It follows the sequence number, and is right where \
            that one is proved.",
        "With profiles udp and ip the RTP header is payload, 12 octets of each packet: there is no sequence number in the UDP header that a checksum could \
            prove. Over IPv6 nothing hangs on the number of packets; over IPv4 the IP-ID does, and the pace alone tells it.",
    ],
};

/// Bursts of a run.
const QUICK: &[u64] = &[1, 4, 15, 16, 17, 64, 256, 1_024];
const FULL: &[u64] =
    &[1, 2, 4, 8, 12, 13, 14, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 128, 192, 256, 512, 768, 1_024];

/// Intervals between packets, in milliseconds.
const INTERVALS: [u64; 3] = [20, 40, 160];

/// Profiles; with pauses; with a carrier that counts.
const KINDS: [(Profile, bool, bool); 5] = [
    (Profile::Rtp, false, false),
    (Profile::Rtp, true, false),
    (Profile::Rtp, true, true),
    (Profile::Udp, false, false),
    (Profile::Ip, false, false),
];

const MODES: [Mode; 3] = [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable];

/// All bursts of a call.
#[derive(Clone, Debug)]
struct Measured {
    call: Call,
    bursts: Vec<(u64, Tally)>,
}

impl Measured {
    fn all(&self) -> Tally {
        let mut all = Tally::default();
        self.bursts.iter().for_each(|(_, tally)| all.add(tally));
        all
    }

    fn of(&self, burst: u64) -> Option<&Tally> {
        self.bursts.iter().find(|(packets, _)| *packets == burst).map(|(_, tally)| tally)
    }

    /// The shortest burst that made the context fall back.
    fn falls_back(&self) -> Option<u64> {
        let falls = |tally: &Tally| match self.call.mode {
            Mode::Unidirectional => tally.felt > 0,
            Mode::Optimistic | Mode::Reliable => tally.dynamic + tally.initial > 0,
        };
        self.bursts.iter().find(|(_, tally)| falls(tally)).map(|(packets, _)| *packets)
    }

    fn rows(&self) -> Vec<Row> {
        let (id, all) = (self.call.id(), self.all());
        let mut rows = vec![
            Row::new(format!("{id}/octets"), format!("{id}: header, nothing lost"), "octets", all.steady()),
            Row::new(
                format!("{id}/falls-back"),
                format!("{id}: losses in a row that make the context fall back; 0 if none do"),
                "packets",
                self.falls_back().unwrap_or(0) as f64,
            ),
        ];
        for (burst, tally) in &self.bursts {
            let row = |name: &str, what: &str, unit, ours: f64| {
                Row::new(format!("{id}/{burst}/{name}"), format!("{id}, behind {burst}: {what}"), unit, ours)
            };
            // Behind a pause no pace tells how many packets are missing.
            let is_held = !self.call.pauses;
            rows.extend([
                row("wrong", "wrong headers", "", tally.wrong as f64).at_most(0.0),
                row("undelivered", "packets not delivered", "", tally.undelivered())
                    .at_most(is_held.then_some(1.0)),
                row("outage", "longest outage", "packets", tally.outage as f64),
                row("octets", "header in the first second", "octets", tally.after()),
            ]);
        }
        rows
    }
}

impl Paper for NtnVoice {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        let (bursts, phases) = if plan.quick { (QUICK, 4) } else { (FULL, PHASES) };
        let jobs: Vec<_> = grid().flat_map(|call| bursts.iter().map(move |burst| (call, *burst))).collect();
        let cost = |(_, burst): &(Call, u64)| 256 + burst;
        let tallies = sweep(&jobs, plan.threads, progress, cost, |(call, burst)| {
            calls(*call, *burst, phases, plan.seed.wrapping_add(*burst << 32))
        })?;
        let mut found = bursts.iter().copied().cycle().zip(tallies);
        let measured: Vec<_> = grid()
            .map(|call| Measured { call, bursts: found.by_ref().take(bursts.len()).collect() })
            .collect();
        let rows = measured.iter().flat_map(Measured::rows).collect();
        Ok(Findings { rows, ours: show::sections(&measured, bursts), left_out: Vec::new() })
    }
}

fn grid() -> impl Iterator<Item = Call> {
    INTERVALS.into_iter().flat_map(|interval| {
        [true, false].into_iter().flat_map(move |six| {
            KINDS.into_iter().flat_map(move |(profile, pauses, counts)| {
                MODES.map(|mode| Call { profile, six, mode, interval, pauses, counts })
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_quick_run_has_every_figure_once_and_continuous_voice_meets_its_bars() {
        let plan = Plan { quick: true, threads: 2, ..Plan::default() };
        let findings = NtnVoice.run(&plan, &|_, _| ()).expect("it runs");
        let ids: BTreeSet<_> = findings.rows.iter().map(Row::id).collect();
        assert_eq!(ids.len(), findings.rows.len());
        assert!(findings.rows.iter().all(|row| row.ours().is_some_and(f64::is_finite)));
        // Open: a talkspurt whose beginning is lost; the IP-ID behind the longest burst, where the clock alone tells its place.
        let is_open = |id: &str| {
            id.starts_with("rtp-pauses") || !id.starts_with("rtp") && id.ends_with("/1024/undelivered")
        };
        let missed = findings.missed().map(Row::id).filter(|id| !is_open(id));
        assert_eq!(missed.collect::<Vec<_>>(), [""; 0]);
    }
}
