//! What each algorithm does with the same losses: its timers as a table.

use std::fmt::Write;
use std::string::String;

use super::*;

/// Messages every 60 s on a path of 300 ms; a digit says how many transmissions of one are lost.
const LOST: [u8; 10] = [0, 0, 1, 0, 2, 0, 0, 1, 1, 0];

#[test]
fn timers_over_a_scripted_loss_pattern() {
    let parameters = Transmission::default();
    let mut table = String::new();
    for name in Algorithm::NAMES {
        let algorithm: Algorithm = name.parse().expect("it is a name");
        let mut controller = Controller::new(&algorithm, &parameters);
        write!(table, "{name}:").expect("a string takes all");
        for (i, lost) in (0..).zip(LOST) {
            let first = Instant::from_millis(60_000 * i);
            let mut timer = controller.start(first, &parameters, 0, 0);
            let mut last = first;
            write!(table, " {}", timer.timeout().as_millis()).expect("a string takes all");
            for _ in 0..lost {
                last = last + timer.timeout();
                controller.back_off(&mut timer);
                write!(table, "+{}", timer.timeout().as_millis()).expect("a string takes all");
            }
            let now = last + Duration::from_millis(300);
            controller.on_ack(&Acknowledged { now, first, last, transmissions: lost + 1, answered: None });
        }
        table.push('\n');
    }
    std::print!("{table}");
    assert_eq!(table, EXPECTED);
}

const EXPECTED: &str = "\
rfc7252: 2000 2000 2000+4000 2000 2000+4000+8000 2000 2000 2000+4000 2000+4000 2000
rfc6298: 2000 900 750+1500 1500 637+1275+2550 2550 553 489+979 979+1959 1959
cocoa: 2000 1450 1100+2200 1350 1987+3975+5962 2427 1490 1980+3960 2339+4678 2578
fasor: 2166 525 487+975 487 459+918+1837 459 438 422+844 422+1083 1083
";
