//! Section V.E of the paper, recomputed: its measurements and its conclusions from them.

use thinair_link::energy::{Energy, Power, RASPBERRY_PI};
use thinair_link::{Airtime, Ofdm, Rate, preset};

use crate::coap_delay::{CallProfile, instructions_of_exchange};
use crate::form::Figures;

/// Power of the client while it compresses and sends.
const POWER: Power = RASPBERRY_PI.power;
/// Additional duration of the current's peak with compression, in nanoseconds.
const LONGER: u64 = 2_300_000;
/// Measured energy of the whole exchange: uncompressed, and by the paper's profile.
const MEASURED: [Energy; 2] = [Energy::from_nanojoules(153_000_000), Energy::from_nanojoules(156_400_000)];
/// Size of the GET in octets: uncompressed, and by the paper's profile.
const SIZES: [usize; 2] = [38, 5];
/// Increase that the paper assumes, in thousandths.
const INCREASE: u64 = 25;

/// Puts the figures that the model derives from the paper's.
pub(super) fn put(figures: &mut Figures) {
    let extra = POWER.over(LONGER);
    let [plain, compressed] = MEASURED;
    let measured = Energy::from_nanojoules(compressed.as_nanojoules() - plain.as_nanojoules());
    let percent = |part: Energy| 100.0 * part.as_joules() / plain.as_joules();
    let rounded = Energy::from_nanojoules(plain.as_nanojoules() * INCREASE / 1_000);
    let break_even = |extra| plain.break_even(extra).map(|exchanges| exchanges as f64);
    figures.put("published/extra", 1e3 * extra.as_joules());
    figures.put("published/increase", percent(extra));
    figures.put("published/measured-increase", percent(measured));
    figures.put("published/break-even", break_even(rounded));
    figures.put("published/break-even-exact", break_even(extra));
    for (name, octets) in ["uncompressed", "compressed"].into_iter().zip(SIZES) {
        let bare = Rate::from_bps(54_000_000).map_or(Airtime::None, Airtime::Rate);
        let framing = preset::WIFI_80211G.model.a_to_b.framing;
        let framed = Ofdm::G54.airtime(framing.octets(octets));
        figures.put(format!("published/airtime/{name}"), bare.of(octets as u64, &mut 0) as f64 / 1e3);
        figures.put(format!("published/airtime-802.11g/{name}"), framed as f64 / 1e3);
    }
    // Both ends, as for the 2.3 ms.
    let by_instructions = instructions_of_exchange(CallProfile::Coap2015, false)
        .map(|[client, server]| RASPBERRY_PI.spends(u64::from(client) + u64::from(server)));
    figures.put("published/by-instructions", by_instructions.map(|energy| 1e3 * energy.as_joules()));
}
