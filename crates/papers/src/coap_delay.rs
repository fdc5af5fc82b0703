//! `coap-delay`: what a packet of each type costs to compress and to decompress, and what it cost in the paper that
//! began it.

mod clock;
mod exchange;
mod instructions;
mod published;
mod show;

use thinair_rohc::{
    Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig, DecompressorMemory,
    ProfileId,
};

use clock::Time;
use exchange::{BLOCKS, Case, ROOM, Ready};
use instructions::{Count, SIDES};

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};
use crate::row::Row;

/// The evaluation.
#[derive(Debug)]
pub(crate) struct CoapDelay;

/// Rounds by the clock.
const ROUNDS: usize = 1_000;
const QUICK_ROUNDS: usize = 100;

impl Paper for CoapDelay {
    fn about(&self) -> About {
        About::read("coap-delay", include_str!("coap_delay/paper.md"))
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        measure(if plan.quick { QUICK_ROUNDS } else { ROUNDS }, progress)
    }
}

/// Instructions that the client and the server spend on an exchange by this profile, on a Cortex-M4, built for speed;
/// in steady state, or in its first exchange. None if nobody has counted them.
pub(crate) fn instructions_of_exchange(profile: ProfileId, is_first: bool) -> Option<[u32; 2]> {
    let kind = if is_first { exchange::Type::Ir1 } else { exchange::Type::Uo0 };
    let of = |half, side| instructions::of(Case { kind, half, profile }, side).thumbv7em_o3;
    let [compress, decompress] = SIDES;
    let client = of(exchange::Half::Get, compress)? + of(exchange::Half::Response, decompress)?;
    let server = of(exchange::Half::Get, decompress)? + of(exchange::Half::Response, compress)?;
    Some([client, server])
}

/// What is known of one case.
#[derive(Clone, Copy, Debug)]
struct Line {
    case: Case,
    /// Octets of the ROHC packet; none if it was never sent.
    octets: Option<usize>,
    /// It and all before it came back as they were.
    is_exact: bool,
    /// By the clock, to compress and to decompress.
    times: Option<[Time; 2]>,
    /// Instructions to compress and to decompress.
    counts: [Count; 2],
}

fn measure(rounds: usize, progress: Progress<'_>) -> Result<Findings, Error> {
    let cases: Vec<_> = Case::all().collect();
    let mut lines = Vec::new();
    for (done, case) in cases.iter().enumerate() {
        progress(done as u64, cases.len() as u64);
        lines.push(Line::measure(*case, rounds)?);
    }
    progress(cases.len() as u64, cases.len() as u64);

    let count = |of: fn(&Line) -> bool| lines.iter().filter(|line| of(line)).count() as f64;
    let mut rows: Vec<_> = lines.iter().flat_map(Line::rows).collect();
    rows.extend([
        Row::new(
            "not-provoked",
            "packet types that the exchange did not provoke",
            "types",
            count(|line| line.octets.is_none()),
        )
        .at_most(0.0),
        Row::new(
            "round-trip/not-exact",
            "packet types of which a packet did not come back as it was",
            "types",
            count(|line| !line.is_exact),
        )
        .at_most(0.0),
    ]);
    Ok(Findings { rows, ours: show::sections(&lines), left_out: Vec::new() })
}

impl Line {
    fn measure(case: Case, rounds: usize) -> Result<Self, Error> {
        let config = case.config()?;
        let counts = SIDES.map(|side| instructions::of(case, side));
        let Some((ready, number)) = case.scout(&mut compressor(config)) else {
            return Ok(Self { case, octets: None, is_exact: false, times: None, counts });
        };
        let is_exact = is_exact(case, config, &ready, number);
        let times = clock::times(rounds, &ready, || {
            let (mut near, mut far) = (compressor(config), decompressor(config));
            case.replay(number, &mut near, &mut far);
            (near, far)
        });
        Ok(Self { case, octets: Some(ready.rohc().len()), is_exact, times, counts })
    }

    /// Names it, and its rows.
    fn id(&self) -> String {
        let Case { kind, half, profile } = self.case;
        format!("{}/{}/{}", profile.name(), kind.name(), half.name())
    }

    fn rows(&self) -> Vec<Row> {
        let (id, case) = (self.id(), self.case);
        let what = format!("{} by profile {}", published::label(case.kind, case.half), case.profile.name());
        // The sizes, laptop and Raspberry Pi are those of the paper's own profile.
        let theirs = published::of(case.kind, case.half).filter(|_| case.profile == ProfileId::Coap2015);
        let octets = Row::new(
            format!("{id}/octets"),
            format!("{what}: the ROHC packet"),
            "octets",
            self.octets.map(|octets| octets as f64),
        );
        let mut rows =
            vec![octets.theirs(theirs.map(|theirs| theirs.octets)).at_most(theirs.map(|theirs| theirs.most))];
        let rohc_lib = published::rohc_lib(case.kind).filter(|_| case.profile == ProfileId::Udp);
        for (i, side) in SIDES.into_iter().enumerate() {
            let time = self.times.map(|times| times[i]);
            let name = side.name();
            rows.extend([
                Row::new(
                    format!("{id}/{name}/ns"),
                    format!("{what}: to {name} it, median"),
                    "ns",
                    time.map(|time| time.median),
                )
                .theirs(theirs.map(|theirs| 1e6 * theirs.laptop[i]))
                .peer("raspberry-pi", theirs.map(|theirs| 1e6 * theirs.raspberry_pi[i]))
                .peer("rohc-lib", rohc_lib.map(|rohc_lib| rohc_lib[i].0)),
                Row::new(
                    format!("{id}/{name}/least-ns"),
                    format!("{what}: to {name} it, least of all rounds"),
                    "ns",
                    time.map(|time| time.least),
                ),
            ]);
            for (build, count) in self.counts[i].by_build() {
                let of_peer = published::rohc_lib_instructions(case, side).filter(|_| build == "x86-64");
                rows.push(
                    Row::new(
                        format!("{id}/{name}/{build}"),
                        format!("{what}: to {name} it, {build}"),
                        "instructions",
                        count.map(|count| count as f64),
                    )
                    .peer("rohc-lib", of_peer),
                );
            }
        }
        rows.push(
            Row::new(
                format!("{id}/total/ns"),
                format!("{what}: both"),
                "ns",
                self.times.map(|[compress, decompress]| compress.median + decompress.median),
            )
            .theirs(theirs.map(|theirs| 1e6 * theirs.laptop[2]))
            .peer("raspberry-pi", theirs.map(|theirs| 1e6 * theirs.raspberry_pi[2])),
        );
        rows
    }
}

fn compressor(config: CompressorConfig) -> Compressor<'static> {
    Compressor::new(config, CompressorMemory::owned(&config.channel, BLOCKS))
}

fn decompressor(config: CompressorConfig) -> Decompressor<'static> {
    let memory = DecompressorMemory::owned(&config.channel, BLOCKS);
    Decompressor::new(DecompressorConfig::new(config.channel), memory)
}

/// Whether the packet and all before it come back.
fn is_exact(case: Case, config: CompressorConfig, ready: &Ready, number: u16) -> bool {
    let (mut near, mut far) = (compressor(config), decompressor(config));
    if !case.replay(number, &mut near, &mut far) {
        return false;
    }
    let mut back = [0; ROOM];
    let done = far.decompress(ready.now, ready.rohc(), &mut back);
    done.is_ok_and(|done| back.get(..done.len) == Some(ready.packet()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::traffic::{self, Kind, Version};

    fn found() -> Findings {
        measure(1, &|_, _| ()).unwrap()
    }

    #[test]
    fn every_packet_type_of_the_paper_is_provoked_and_comes_back() {
        let found = found();
        let figure = |id: &str| found.rows.iter().find(|row| row.id() == id).unwrap().ours();
        assert_eq!((figure("not-provoked"), figure("round-trip/not-exact")), (Some(0.0), Some(0.0)));
        for (id, octets) in [
            ("coap-2015/ir-1/get", 38.0),
            ("coap-2015/ir-3/rsp", 51.0),
            ("coap-2015/ir-dyn/get", 15.0),
            ("coap-2015/uor-2/get", 6.0),
            ("coap-2015/uo-0/get", 5.0),
            ("coap-2015/uo-0/rsp", 20.0),
            ("udp/uor-2/get", 13.0),
            ("coap/uo-0/get", 3.0),
        ] {
            assert_eq!(figure(&format!("{id}/octets")), Some(octets), "{id}");
        }
    }

    #[test]
    fn bars_are_on_what_no_clock_tells_and_all_are_met() {
        let found = found();
        let held: Vec<_> = found.rows.iter().filter(|row| row.bar().is_some()).collect();
        assert_eq!(held.len(), 12 + 2);
        assert!(held.iter().all(|row| matches!(row.unit(), "octets" | "types")));
        assert_eq!(found.missed().count(), 0);
    }

    #[test]
    fn only_the_clock_tells_two_runs_apart() {
        let [one, again] = [found(), found()].map(|found| found.rows);
        let of_code =
            |rows: &[Row]| rows.iter().filter(|row| row.unit() != "ns").cloned().collect::<Vec<_>>();
        assert_eq!(of_code(&one), of_code(&again));
        let ids: BTreeSet<_> = one.iter().map(Row::id).collect();
        assert_eq!(ids.len(), one.len());
    }

    #[test]
    fn a_microcontroller_of_64_mhz_needs_less_than_the_laptop_of_the_paper() {
        for case in Case::all().filter(|case| case.profile == ProfileId::Coap2015) {
            let counts = SIDES.map(|side| instructions::of(case, side).thumbv7em_o3.unwrap());
            let milliseconds = f64::from(2 * (counts[0] + counts[1])) / 64_000.0;
            let [.., laptop] = published::of(case.kind, case.half).unwrap().laptop;
            assert!(milliseconds < laptop, "{case:?}: {milliseconds} of {laptop}");
        }
    }

    #[test]
    fn the_exchange_is_that_of_the_size_table() {
        for (half, kind) in [(exchange::Half::Get, Kind::A), (exchange::Half::Response, Kind::B)] {
            let case = Case { kind: exchange::Type::Uo0, half, profile: ProfileId::Udp };
            let theirs = traffic::packets(kind, Version::V4, 1, 2);
            for (number, theirs) in theirs.iter().enumerate() {
                let (ours, len) = case.packet(number as u16);
                assert_eq!(len, theirs.octets.len());
                // IP-ID, checksums, addresses, ports, Message ID and payload follow from a seed there.
                for same in [0..4, 6..10, 24..26, 28..30, 32..theirs.headers] {
                    assert_eq!(ours[same.clone()], theirs.octets[same.clone()], "{half:?} {same:?}");
                }
            }
        }
    }
}
