//! Section V.E of the paper, again: what it measured and what it computed from that.

use thinair_link::energy::{Energy, Power, RASPBERRY_PI};
use thinair_link::{Airtime, Ofdm, Rate, preset};
use thinair_rohc::ProfileId;

use crate::coap_delay::instructions_of_exchange;
use crate::row::{Bar, Row};

/// The client while it compresses and sends.
const POWER: Power = RASPBERRY_PI.power;
/// Nanoseconds by which the peak of the current is longer with compression.
const LONGER: u64 = 2_300_000;
/// The whole exchange as measured: uncompressed, and by the paper's profile. Nanojoules.
const MEASURED: [Energy; 2] = [Energy::from_nanojoules(153_000_000), Energy::from_nanojoules(156_400_000)];
/// Octets of the GET: uncompressed, and by the paper's profile.
pub(super) const SIZES: [usize; 2] = [38, 5];
/// The increase that the paper reckons with, in thousandths.
const INCREASE: u64 = 25;

/// What is derived from the figures of the paper by the model.
pub(super) fn rows() -> Vec<Row> {
    let extra = POWER.over(LONGER);
    let [plain, compressed] = MEASURED;
    let measured = Energy::from_nanojoules(compressed.as_nanojoules() - plain.as_nanojoules());
    let percent = |part: Energy| 100.0 * part.as_joules() / plain.as_joules();
    let rounded = Energy::from_nanojoules(plain.as_nanojoules() * INCREASE / 1_000);
    let break_even = |extra| plain.break_even(extra).map(|exchanges| exchanges as f64);
    let within = |min, max| Bar { min: Some(min), max: Some(max) };

    let row = |id: &str, what: &str, unit, ours: f64, theirs: f64, bar| {
        Row::new(format!("published/{id}"), what, unit, ours).theirs(theirs).within(bar)
    };
    let mut rows = vec![
        row(
            "extra",
            "energy that compression and decompression add: 2.3 ms at 340 mA and 5 V",
            "mJ",
            1e3 * extra.as_joules(),
            3.9,
            within(3.85, 3.95),
        ),
        row("increase", "that, of an exchange of 153.0 mJ", "%", percent(extra), 2.5, within(2.45, 2.6)),
        row(
            "measured-increase",
            "the exchange as measured with the oscilloscope: 156.4 of 153.0 mJ",
            "%",
            percent(measured),
            2.2,
            within(2.15, 2.25),
        ),
        Row::new(
            "published/break-even",
            "exchanges of which one must be spared a retransmission, from 2.5 %",
            "exchanges",
            break_even(rounded),
        )
        .theirs(40.0)
        .within(within(40.0, 40.0)),
        Row::new(
            "published/break-even-exact",
            "the same, from 3.91 and 153.0 mJ",
            "exchanges",
            break_even(extra),
        )
        .theirs(40.0),
    ];
    let names = ["uncompressed", "compressed"];
    for ((name, octets), (theirs, bar)) in
        names.into_iter().zip(SIZES).zip([(5.6, within(5.55, 5.65)), (0.7, within(0.65, 0.75))])
    {
        let bare = Rate::from_bps(54_000_000).map_or(Airtime::None, Airtime::Rate);
        let framing = preset::WIFI_80211G.model.a_to_b.framing;
        let framed = Ofdm::G54.airtime(framing.octets(octets));
        rows.extend([
            row(
                &format!("airtime/{name}"),
                &format!("{octets} octets at 54 Mbit/s, and nothing else"),
                "us",
                bare.of(octets as u64, &mut 0) as f64 / 1e3,
                theirs,
                bar,
            ),
            Row::new(
                format!("published/airtime-802.11g/{name}"),
                format!("{octets} octets in an 802.11g frame: preamble, headers, whole symbols"),
                "us",
                framed as f64 / 1e3,
            )
            .theirs(theirs),
        ]);
    }
    // Both ends, as the 2.3 ms are.
    let by_instructions = instructions_of_exchange(ProfileId::Coap2015, false)
        .map(|[client, server]| RASPBERRY_PI.spends(u64::from(client) + u64::from(server)));
    rows.push(
        Row::new(
            "published/by-instructions",
            "a model: the instructions that our coap-2015 takes for the exchange, both ends, at the power of the paper's board",
            "mJ",
            by_instructions.map(|energy| 1e3 * energy.as_joules()),
        )
        .theirs(3.9),
    );
    rows
}
