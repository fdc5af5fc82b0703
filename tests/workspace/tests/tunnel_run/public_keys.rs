//! Tunnels by public keys.

use std::fs;
use std::process::Command;

use super::bench::{Between, CarrierKind, DatagramSecurity, TunnelBench, key, public_key, thinair, wait_for};

const PUBLIC: CarrierKind =
    CarrierKind { name: "udp-public", security: DatagramSecurity::Public, ..CarrierKind::UDP };

#[test]
fn two_ends_by_public_keys_come_back_and_know_no_other() {
    if thinair().is_none() {
        return;
    }
    let mut bench = TunnelBench::started("public", PUBLIC, Between::Nothing, &[]);
    bench.ends[1].take().unwrap().end("-KILL");
    bench.start(1);
    assert!(bench.is_through(20), "{}", bench.reported());

    // Another private key: the end that is asked names the public one that it does not know.
    let (own, other) = (bench.folder.path("b.key"), key(&bench.folder, "other.key"));
    bench.ends[1].take().unwrap().end("-TERM");
    bench.replace(1, &own, &other);
    bench.start(1);
    let stranger = public_key(&other);
    assert!(wait_for(20, || bench.end(0).log().contains(&stranger)), "{}", bench.end(0).log());
    assert!(!bench.is_through(1));
}

#[test]
fn two_ends_with_keys_of_different_kinds_are_told_so() {
    if thinair().is_none() {
        return;
    }
    let mut bench = TunnelBench::new("kinds", PUBLIC, Between::Nothing, &[]);
    let (own, shared) = (bench.folder.path("b.key"), key(&bench.folder, "shared.key"));
    let public = public_key(&bench.folder.path("a.key"));
    for (argument, by) in
        [("--private-key", "--key"), (&*own, &*shared), ("--public-key", "--allowed"), (&*public, "any")]
    {
        bench.replace(1, argument, by);
    }
    bench.start(0);
    bench.start(1);
    for side in [0, 1] {
        let reason = || bench.end(side).status()["peers"][0]["trouble"]["reason"].clone();
        assert!(wait_for(20, || reason() == "other_mode"), "{side}: {}\n{}", reason(), bench.end(side).log());
    }
}

/// Wrong keys in a file are named with file, line and reason, and nothing of a private key is shown.
#[test]
fn wrong_public_keys_are_named() {
    if thinair().is_none() {
        return;
    }
    let bench = TunnelBench::new("wrong", PUBLIC, Between::Nothing, &[]);
    let file = bench.folder.path("end.toml");
    let private = fs::read_to_string(bench.folder.path("a.key")).unwrap();
    let own = public_key(&bench.folder.path("a.key"));
    let weak = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    for (wrong, words) in [
        (private.trim(), "is the private key of this end"),
        (&own, "is the public key of this end"),
        (weak, "no secret can be agreed on"),
        ("b.key", "is not a public key"),
    ] {
        let text = format!(
            "[carrier]\nurl = \"udp://:7000\"\n\n[security]\nprivate_key = \"a.key\"\n\n[[peer]]\npublic_key = \"{wrong}\"\n"
        );
        fs::write(&file, text).unwrap();
        let output = Command::new(thinair().unwrap()).args(["tunnel", "check", &file]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("end.toml:8: [[peer]] public_key: ") && said.contains(words), "{said}");
        assert!(!said.contains(private.trim()), "{said}");
    }
}

#[test]
fn two_files_are_compared_by_their_public_keys() {
    if thinair().is_none() {
        return;
    }
    let bench = TunnelBench::new("against", PUBLIC, Between::Nothing, &[]);
    let other = public_key(&key(&bench.folder, "other.key"));
    let public = ["a.key", "b.key"].map(|name| public_key(&bench.folder.path(name)));
    let files = [
        ("a", &public[1], "udp://192.0.2.2:7000"),
        ("b", &public[0], "udp://:7000"),
        ("c", &other, "udp://:7000"),
    ];
    for (name, peer, url) in files {
        let own = if name == "a" { "a.key" } else { "b.key" };
        let text = format!(
            "[carrier]\nurl = \"{url}\"\n\n[security]\nprivate_key = \"{own}\"\n\n[[peer]]\npublic_key = \"{peer}\"\n"
        );
        fs::write(bench.folder.path(&format!("{name}.toml")), text).unwrap();
    }
    for (there, words) in [("b", None), ("c", Some("is in no [[peer]] there"))] {
        let [here, there] = ["a", there].map(|name| bench.folder.path(&format!("{name}.toml")));
        let mut check = Command::new(thinair().unwrap());
        let output = check.args(["tunnel", "check", &here, "--against", &there]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.success(), words.is_none(), "{said}");
        assert!(words.is_none_or(|words| said.contains(words) && said.contains(&public[0])), "{said}");
        assert!(
            String::from_utf8(output.stdout).unwrap().contains(&public[0]),
            "its own public key is shown"
        );
    }
}
