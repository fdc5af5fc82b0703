//! ROHC directly on the link, as in `thinair link run --rohc`.

use thinair_link::Side;
use thinair_rohc::{ProfileSet, Refresh};
use thinair_simulation::emulator::Engine;
use thinair_wire::time::Instant;

use super::cell::{HeaderTreatment, LinkRun};
use super::flow::{GoodputSample, Meter};
use crate::compressed::channel;
use crate::paper::PaperError;

/// Number of flows of the channel: small CIDs.
const FLOWS: u16 = 16;

pub(super) fn run(run: &LinkRun) -> Result<GoodputSample, PaperError> {
    let rohc = match run.way {
        HeaderTreatment::Plain => None,
        HeaderTreatment::Rohc(mode) => {
            let mut rohc = channel(ProfileSet::default(), FLOWS, mode, Refresh::default(), run.seed)?;
            rohc.compressor.counted = true;
            Some(rohc)
        }
    };
    let mut engine = Engine::new(&run.model, run.seed, rohc.as_ref()).with_numbered_frames();
    let mut meter = run.meter(Instant::ZERO);
    for (now, packets) in run.groups(Instant::ZERO) {
        go_on(&mut engine, now, &mut meter);
        for packet in packets {
            engine.handle_packet(now, Side::A, &packet);
        }
    }
    go_on(&mut engine, Instant::ZERO + run.span, &mut meter);
    let totals = engine.totals(Side::A);
    Ok(meter.sample(totals.not_decompressed(), totals.link.delivered_octets))
}

/// Meters all output until `now`.
fn go_on(engine: &mut Engine, now: Instant, meter: &mut Meter) {
    while let Some(at) = engine.poll_at().filter(|at| *at <= now) {
        while let Some(passage) = engine.poll(at) {
            if passage.from == Side::A && !passage.delivered.is_empty() {
                meter.deliver(passage.ended, &passage.delivered);
            }
        }
    }
}
