//! Trials of configurations: each octet has one cause.

use super::*;
use crate::site::trial::{Trial, TrialCause};

fn total(trial: &Trial) -> u64 {
    let spent = trial.spent();
    let all = spent.datagrams.iter().flatten();
    all.map(|(octets, count)| u64::from(*octets) * count).sum()
}

#[test]
fn the_sum_of_the_causes_is_that_of_the_datagrams() {
    let ule = "[inside]\naddress = [\"10.0.0.1/24\"]\n[carrier]\nurl = \"ule+udp://127.0.0.1:1?pid=0x40&peer-pid=0x41\"\n\
               [security]\nopen = true\n";
    let packets = captured();
    for (text, keys) in [
        (text(7_001, 7_002, KEY), true),
        (text(7_001, 7_002, "insecure = true"), false),
        (
            text(7_001, 7_002, KEY)
                .replace("udp://127.0.0.1:7002", "serial:///dev/null")
                .replace("listen", "#"),
            true,
        ),
        (ule.to_owned(), false),
    ] {
        let mut trial = Trial::new(&config(&text), 0).unwrap();
        trial.run_to(Duration::from_secs(10));
        for (packet, number) in packets.iter().zip(0..) {
            trial.send(Duration::from_secs(10 + number), number % 2 == 1, packet);
        }
        trial.run_to(Duration::from_secs(1_000));
        let spent = trial.spent();
        assert_eq!(spent.total(), total(&trial), "{text}");
        assert_eq!(trial.delivered().iter().sum::<u64>(), packets.len() as u64, "{text}");
        assert_eq!(spent.of(TrialCause::KeyExchanges) > 0, keys, "{text}");
        assert!(spent.of(TrialCause::Contexts) > 0 && spent.of(TrialCause::Packets) > 0, "{text}");
    }
}

/// 135 and 68 octets of UDP payload with public keys, 91 and 68 with a shared one.
#[test]
fn a_key_exchange_has_its_octets_by_either_kind_of_keys() {
    let shared = text(7_001, 7_002, KEY);
    let public = "private_key = \"own.key\"\n[[peer]]\nname = \"far\"\n\
                  public_key = \"ANJNyPtSrzb2EBE8iRx4G1XF2hO/PMa9+C5JUwrYuTk=\"";
    let public = shared.replace(KEY, public);
    for (text, octets) in [(&shared, 91 + 68), (&public, 135 + 68)] {
        let mut trial = Trial::new(&config(text), 0).unwrap();
        trial.run_to(Duration::from_secs(10));
        assert_eq!(trial.spent().of(TrialCause::KeyExchanges), octets + 2 * 28, "{text}");
    }
}

#[test]
fn an_idle_day_has_keepalives_alone() {
    for (keepalive, most) in [("", 0), ("keepalive = \"270s\"\n", 16_000), ("keepalive = \"27s\"\n", 155_000)]
    {
        let text = text(7_001, 7_002, KEY).replace("listen", &format!("{keepalive}listen"));
        let mut trial = Trial::new(&config(&text), 0).unwrap();
        trial.run_to(Duration::from_secs(60));
        let start = trial.spent();
        trial.run_to(Duration::from_secs(60) + crate::idle::DAY);
        let day = trial.spent().since(&start);
        println!("{keepalive}{day:?}");
        assert!(day.total() <= most && day.total() >= most * 9 / 10, "{keepalive}: {day:?}");
        assert_eq!(day.total(), day.of(TrialCause::Keepalives) + day.of(TrialCause::KeyExchanges));
    }
}
