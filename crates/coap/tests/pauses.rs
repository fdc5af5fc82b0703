//! Exchanges that meet a pause of their path: the table of `examples/pauses.rs`, and what holds for each cell of it.

#[path = "../examples/pauses.rs"]
#[allow(dead_code, reason = "its `main` is not called here")]
mod pauses;

use std::time::Duration;

use pauses::{PAUSES, ROUND_TRIPS, cells};
use thinair_coap::congestion::{Algorithm, MAX_TRANSMISSIONS, Transmission};

/// MAX_TRANSMIT_SPAN, in milliseconds: a pause that is shorter is outlived.
const SPAN: u64 = 45_000;

fn algorithms() -> impl Iterator<Item = Algorithm> {
    Algorithm::NAMES.into_iter().filter_map(|name| name.parse().ok())
}

fn adaptive() -> impl Iterator<Item = Algorithm> {
    algorithms().filter(|algorithm| *algorithm != Algorithm::Rfc7252)
}

/// Pauses of 0.5 to 40 s at every round trip: GET, PUT of 20 kB, Observe, separate response.
#[test]
fn an_exchange_outlives_every_pause_within_max_transmit_span() {
    assert_eq!(Transmission::default().max_transmit_span(), Duration::from_millis(SPAN));
    for algorithm in adaptive() {
        for round_trip in ROUND_TRIPS {
            for pause in PAUSES.into_iter().filter(|pause| *pause < SPAN) {
                for cell in cells(algorithm, round_trip, pause) {
                    let outcome = cell.run();
                    assert!(outcome.is_complete, "{cell:?}: {outcome:?}");
                    assert!(outcome.retransmissions < u64::from(MAX_TRANSMISSIONS), "{cell:?}: {outcome:?}");
                }
            }
        }
    }
}

/// No algorithm does worse than the timer of RFC 7252, with ACK_RANDOM_FACTOR 1.5, also in pauses beyond its span.
#[test]
fn where_the_timer_of_rfc_7252_outlives_a_pause_every_other_one_does() {
    for round_trip in ROUND_TRIPS {
        for pause in PAUSES.into_iter().filter(|pause| *pause < SPAN) {
            for cell in cells(Algorithm::Rfc7252, round_trip, pause).filter(|cell| cell.run().is_complete) {
                for algorithm in adaptive() {
                    let cell = pauses::Cell { algorithm, ..cell };
                    assert!(cell.run().is_complete, "{cell:?}");
                }
            }
        }
    }
}

/// 1.5 s up to a round trip of 300 ms; at 1,500 ms one RTO, with the largest dither: ACK_RANDOM_FACTOR, or SRTT.
#[test]
fn behind_a_pause_of_two_seconds_the_exchange_goes_on_at_once() {
    for algorithm in adaptive() {
        for round_trip in ROUND_TRIPS {
            for cell in cells(algorithm, round_trip, 2_000) {
                let outcome = cell.run();
                let dither = (outcome.rto / 2).max(Duration::from_millis(round_trip));
                let limit =
                    if round_trip <= 300 { Duration::from_millis(1_500) } else { outcome.rto + dither };
                let after = outcome.after.unwrap_or(Duration::MAX);
                assert!(after <= limit, "{cell:?}: {outcome:?}");
            }
        }
    }
}
