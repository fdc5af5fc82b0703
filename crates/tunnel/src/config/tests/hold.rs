//! Rules of packets that wait.

use std::path::Path;
use std::time::Duration;

use super::super::{Settings, site_config};
use super::{KEY, complains, of_arguments, of_text, surroundings};
use crate::site_config::HoldRule;

fn text(hold: &str) -> String {
    format!("{hold}\n[carrier]\nurl = \"udp://192.0.2.1:7000\"\n[security]\nkey = \"sat.key\"\n")
}

#[test]
fn rules_are_a_list_or_sections() {
    let minutes = Duration::from_secs(300);
    let rule = HoldRule { dst_port: Some(5_683), protocol: None, dscp: None, time: minutes };
    let list =
        "hold = [{ dst_port = 5683, time = \"5min\" }, { protocol = \"udp-lite\", dscp = 8, time = \"1s\" }]";
    let other = HoldRule { dst_port: None, protocol: Some(136), dscp: Some(8), time: Duration::from_secs(1) };
    assert_eq!(of_text(&text(list)).unwrap().hold, [rule, other]);
    let section = text("") + "[[hold]]\ndst_port = 5683\ntime = \"5min\"\n";
    assert_eq!(of_text(&section).unwrap().hold, [rule]);
    assert_eq!(of_text(&text("")).unwrap().hold, []);
}

#[test]
fn the_option_sets_the_time_of_all_rules_and_needs_one() {
    let rules = text("hold = [{ dst_port = 5683, time = \"5min\" }, { dscp = 8 }]");
    let mut settings = Settings::read(Path::new("/etc/thinair/sat.toml"), &rules).unwrap();
    settings.set("hold", "time", "--hold", "1min");
    let times: Vec<_> =
        site_config(&settings, &surroundings()).unwrap().hold.iter().map(|rule| rule.time).collect();
    assert_eq!(times, [Duration::from_secs(60); 2]);
    let alone = of_arguments("udp://192.0.2.1:7000", &[KEY, ("hold", "time", "1min")]);
    complains(alone, &["names no packets", "in a [[hold]] of a file"]);
}

#[test]
fn a_wrong_rule_is_told() {
    for (rule, words) in [
        ("time = \"5min\"", &["names no packets", "`dst_port`, `protocol` or `dscp`"][..]),
        ("dst_port = 5683", &["has no `time`", "5min"]),
        ("dst_port = 5683, time = \"0\"", &["above 0"]),
        ("dst_port = 5683, time = \"25h\"", &["at most 24h"]),
        ("dst_port = 0, time = \"1s\"", &["1 to 65535"]),
        ("dscp = 64, time = \"1s\"", &["0 to 63"]),
        ("protocol = \"tcp\", time = \"1s\"", &["expected one of udp, udp-lite"]),
        ("port = 5683, time = \"1s\"", &["port"]),
    ] {
        complains(of_text(&text(&format!("hold = [{{ {rule} }}]"))), words);
    }
    let tap = text("hold = [{ dst_port = 5683, time = \"1s\" }]") + "[inside]\ntap = true\n";
    complains(of_text(&tap), &["needs IP packets"]);
}
