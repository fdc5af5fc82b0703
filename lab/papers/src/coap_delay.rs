//! `coap-delay`: cost of compressing and decompressing a packet of each type, beside the paper's.

mod clock;
mod exchange;
mod instructions;

use thinair_rohc::{CompressorConfig, CompressorMemory, DecompressorMemory};

pub(crate) use exchange::CallProfile;
use exchange::{BLOCKS, CallCase, CallCompressor, CallDecompressor, PreparedCall, ROOM};
use instructions::SIDES;

use crate::form::{Figures, PaperRun, declared};
use crate::paper::{Paper, PaperError};

pub(crate) const PAPER: Paper = declared!("coap-delay", "coap_delay", measure);

/// Rounds of a measurement by the clock.
const ROUNDS: usize = 1_000;
const QUICK_ROUNDS: usize = 100;

/// Instructions that the client and the server spend on an exchange by this profile, on a Cortex-M4, built for speed;
/// in steady state, or in the first exchange. `None` if they have not been counted.
pub(crate) fn instructions_of_exchange(profile: CallProfile, is_first: bool) -> Option<[u32; 2]> {
    let kind = if is_first { exchange::PacketType::Ir1 } else { exchange::PacketType::Uo0 };
    let of = |half, side| instructions::of(CallCase { kind, half, profile }, side).thumbv7em_o3;
    let [compress, decompress] = SIDES;
    let client = of(exchange::Half::Get, compress)? + of(exchange::Half::Response, decompress)?;
    let server = of(exchange::Half::Get, decompress)? + of(exchange::Half::Response, compress)?;
    Some([client, server])
}

fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let rounds = if run.plan.quick { QUICK_ROUNDS } else { ROUNDS };
    figures.left_out.push(format!(
        "Instructions are not counted in this run: they are those of commit {}; `scripts/delay` counts them.",
        instructions::commit()
    ));
    let cases: Vec<_> = CallCase::all().collect();
    let (mut not_provoked, mut not_exact) = (0, 0);
    for (done, case) in cases.iter().enumerate() {
        (run.progress)(done as u64, cases.len() as u64)?;
        let id = format!("{}/{}/{}", case.profile.name(), case.kind.name(), case.half.name());
        figures.put_text(format!("format/{id}"), case.wanted().0.name());
        put_counts(*case, &id, figures);
        let config = case.config()?;
        let found = case.scout(&mut compressor(*case, config));
        let octets = found.as_ref().map(|(ready, _)| ready.rohc().len() as f64);
        figures.put(format!("{id}/octets"), octets);
        not_provoked += u32::from(found.is_none());
        let is_exact = found.as_ref().is_some_and(|(ready, number)| is_exact(*case, config, ready, *number));
        not_exact += u32::from(!is_exact);
        let times = found.and_then(|(ready, number)| {
            clock::times(rounds, &ready, || {
                let (mut near, mut far) = (compressor(*case, config), decompressor(*case, config));
                case.replay(number, &mut near, &mut far);
                (near, far)
            })
        });
        for (i, side) in SIDES.into_iter().enumerate() {
            let (time, side) = (times.map(|times| times[i]), side.name());
            figures.put(format!("{id}/{side}/ns"), time.map(|time| time.median));
            figures.put(format!("{id}/{side}/least-ns"), time.map(|time| time.least));
        }
        let both = times.map(|[compress, decompress]| compress.median + decompress.median);
        figures.put(format!("{id}/total/ns"), both);
    }
    (run.progress)(cases.len() as u64, cases.len() as u64)?;
    figures.put("not-provoked", f64::from(not_provoked));
    figures.put("round-trip/not-exact", f64::from(not_exact));
    Ok(())
}

/// Puts the instructions of each side, and of both.
fn put_counts(case: CallCase, id: &str, figures: &mut Figures) {
    let counts = SIDES.map(|side| instructions::of(case, side).by_build());
    for (side, counts) in SIDES.into_iter().zip(&counts) {
        for (build, count) in counts {
            figures.put(format!("{id}/{}/{build}", side.name()), count.map(f64::from));
        }
    }
    let [compress, decompress] = counts;
    for ((build, compress), (_, decompress)) in compress.into_iter().zip(decompress) {
        let total = compress.zip(decompress).map(|(compress, decompress)| f64::from(compress + decompress));
        figures.put(format!("{id}/total/{build}"), total);
    }
}

fn compressor(case: CallCase, config: CompressorConfig) -> CallCompressor<'static> {
    case.compressor(config, CompressorMemory::owned(config.channel.sizes().blocks(BLOCKS)))
}

fn decompressor(case: CallCase, config: CompressorConfig) -> CallDecompressor<'static> {
    case.decompressor(config.channel, DecompressorMemory::owned(config.channel.sizes().blocks(BLOCKS)))
}

/// True if the packet and all before it are restored.
fn is_exact(case: CallCase, config: CompressorConfig, ready: &PreparedCall, number: u16) -> bool {
    let (mut near, mut far) = (compressor(case, config), decompressor(case, config));
    if !case.replay(number, &mut near, &mut far) {
        return false;
    }
    let mut back = [0; ROOM];
    let done = far.decompress(ready.now, ready.rohc(), &mut back);
    done.is_some_and(|len| back.get(..len) == Some(ready.packet()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::form::Published;
    use crate::paper::{Findings, RunPlan};
    use crate::row::FigureRow;
    use crate::traffic::{self, TrafficKind, TrafficVersion};

    fn found() -> Findings {
        PAPER.run(&RunPlan { quick: true, ..RunPlan::default() }, &|_, _| Ok(())).unwrap()
    }

    fn published() -> Published {
        Published::read(PAPER.published).unwrap()
    }

    #[test]
    fn totals_are_those_that_the_paper_prints_sums_or_not() {
        let published = published();
        let differs = CallCase::all().filter(|case| case.profile == CallProfile::Coap2015).filter(|case| {
            let of = |what: &str| {
                let id = format!("coap-2015/{}/{}/{what}/ns", case.kind.name(), case.half.name());
                let figure = published.get(&id).unwrap();
                [figure.theirs.unwrap(), figure.peers["raspberry-pi"]]
            };
            let (compress, decompress, total) = (of("compress"), of("decompress"), of("total"));
            (0..2).any(|i| (compress[i] + decompress[i] - total[i]).abs() > 1_500.0)
        });
        let differs: Vec<_> = differs.map(|case| (case.kind.name(), case.half.name())).collect();
        // IR/GET twice and UO-0: any other difference would be a copying error.
        assert_eq!(differs, [("ir-1", "get"), ("ir-2", "get"), ("uo-0", "get"), ("uo-0", "rsp")]);
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
            |rows: &[FigureRow]| rows.iter().filter(|row| row.unit() != "ns").cloned().collect::<Vec<_>>();
        assert_eq!(of_code(&one), of_code(&again));
        let ids: BTreeSet<_> = one.iter().map(FigureRow::id).collect();
        assert_eq!(ids.len(), one.len());
    }

    #[test]
    fn a_microcontroller_of_64_mhz_needs_less_than_the_laptop_of_the_paper() {
        for case in CallCase::all().filter(|case| case.profile == CallProfile::Coap2015) {
            let counts = SIDES.map(|side| instructions::of(case, side).thumbv7em_o3.unwrap());
            let milliseconds = f64::from(2 * (counts[0] + counts[1])) / 64_000.0;
            let id = format!("coap-2015/{}/{}/total/ns", case.kind.name(), case.half.name());
            let laptop = published().theirs(&id).unwrap() * 1e-6;
            assert!(milliseconds < laptop, "{case:?}: {milliseconds} of {laptop}");
        }
    }

    #[test]
    fn the_exchange_is_that_of_the_size_table() {
        for (half, kind) in
            [(exchange::Half::Get, TrafficKind::A), (exchange::Half::Response, TrafficKind::B)]
        {
            let case = CallCase { kind: exchange::PacketType::Uo0, half, profile: CallProfile::Udp };
            let theirs = traffic::packets(kind, TrafficVersion::V4, 1, 2);
            for (number, theirs) in theirs.iter().enumerate() {
                let (ours, len) = case.packet(number as u16);
                assert_eq!(len, theirs.octets.len());
                // IP-ID, checksums, addresses, ports, Message ID and payload depend on a seed there.
                for same in [0..4, 6..10, 24..26, 28..30, 32..theirs.headers] {
                    assert_eq!(ours[same.clone()], theirs.octets[same.clone()], "{half:?} {same:?}");
                }
            }
        }
    }
}
