use super::*;
use crate::form::Vars;

fn run(errors: &str, ppm: i64, exchanges: usize, number: u32) -> LossySample {
    let cell = [("profile", "uncompressed"), ("way", "bi"), ("errors", errors)];
    let cell = cell.into_iter().fold(Vars::default(), |cell, (name, text)| cell.with(name, &text.into()));
    cell::run(&cell.with("rate.ppm", &ppm.into()), exchanges, 1, number).expect("it runs")
}

/// Each of five attempts takes a request of 38 octets and a response of 52.
#[test]
fn give_ups_without_compression_are_what_the_formula_has() {
    let sum =
        (0..10).map(|number| run("iid", 1_000, 500, number)).fold(LossySample::default(), LossySample::and);
    let fails: f64 = 1.0 - 0.999_f64.powi(8 * (38 + 52));
    let expected = 100.0 * fails.powi(5);
    let found = sum.give_ups().expect("there were exchanges");
    // 2.6 standard errors.
    let apart = 2.6 * (expected * (100.0 - expected) / sum.exchanges).sqrt();
    assert!((found - expected).abs() < apart, "{found} of {expected}");
    assert!((expected - 3.57).abs() < 0.01, "{expected}");
}

/// “Without compression nothing could be lost”.
#[test]
fn twenty_exchanges_do_not_fill_the_counter_at_1e_4() {
    let sample = run("rohctunnel16", 100, TWENTY, 0);
    assert_eq!((sample.retransmissions(), sample.given_up), (Some(0.0), 0.0));
}
