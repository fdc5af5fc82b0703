//! Commands of `thinair tunnel` that start no tunnel, run as a user runs them.

#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn thinair(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_thinair"))
        .arg("tunnel")
        .args(arguments)
        .current_dir(folder)
        .env_remove("RUNTIME_DIRECTORY")
        .env("XDG_RUNTIME_DIR", folder)
        .output()
        .unwrap()
}

/// Returns the output of a command, which must succeed.
#[track_caller]
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = thinair(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A limit of the size of files stands for a full disk.
#[test]
fn no_half_key_file_is_left_where_the_disk_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let full = |arguments: &[&str]| {
        let mut limited = Command::new("sh");
        limited.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" tunnel keygen \"$@\""]);
        limited.arg(env!("CARGO_BIN_EXE_thinair")).args(arguments).current_dir(folder.path());
        assert_eq!(limited.output().unwrap().status.code(), Some(1), "{arguments:?}");
    };
    let files = || fs::read_dir(folder.path()).unwrap().count();
    full(&["a.key"]);
    assert_eq!(files(), 0);
    printed(folder.path(), &["keygen", "a.key"]);
    let key = fs::read(folder.path().join("a.key")).unwrap();
    full(&["a.key", "--rotate", "add"]);
    assert_eq!((files(), fs::read(folder.path().join("a.key")).unwrap()), (1, key));
    printed(folder.path(), &["keygen", "a.key", "--rotate", "add"]);
}

/// Checks that a command fails with exit status 2 and an error that contains these words.
#[track_caller]
fn refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    let output = thinair(folder, arguments);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
    for word in words {
        assert!(told.contains(word), "{arguments:?}: `{word}` is not in: {told}");
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_configuration_to_begin_with_passes_its_check() {
    let folder = folder();
    let folder = folder.path();
    for key in ["pair", "north", "south", "mesh", "serial"] {
        printed(folder, &["keygen", &format!("{key}.key")]);
    }
    fs::write(folder.join("shared.toml"), printed(folder, &["config", "shared"])).unwrap();
    for kind in ["pair", "hub", "mesh", "one-way", "serial"] {
        let file = format!("{kind}.toml");
        fs::write(folder.join(&file), printed(folder, &["config", kind])).unwrap();
        let text = printed(folder, &["check", &file]);
        assert!(text.contains("thinair0 (TUN)") && text.contains("carrier"), "{text}");
        let json: Value = serde_json::from_str(&printed(folder, &["check", &file, "--json"])).unwrap();
        assert_eq!(
            (&json["schema"], &json["ok"]),
            (&"thinair.tunnel.check/1".into(), &true.into()),
            "{json}"
        );
        assert_eq!(json["plan"]["inside"]["tun"], "thinair0");
    }
}

#[test]
fn a_key_file_is_for_its_owner_alone_and_never_overwritten() {
    let folder = folder();
    let (folder, file) = (folder.path(), folder.path().join("a.key"));
    let output = thinair(folder, &["keygen", "a.key"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    let first = fs::read_to_string(&file).unwrap();
    let key = first.split_whitespace().next().unwrap();
    let public = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(public.trim().len() == 44 && public.trim() != key && !stderr(&output).contains(key), "{public}");
    assert_eq!(printed(folder, &["keygen", "--public", "a.key"]), public);

    let again = thinair(folder, &["keygen", "a.key"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("a.key") && stderr(&again).contains("exists"), "{}", stderr(&again));
    assert_eq!(fs::read_to_string(&file).unwrap(), first);

    for (step, keys) in [("add", 2), ("promote", 2), ("retire", 1)] {
        printed(folder, &["keygen", "a.key", "--rotate", step]);
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert_eq!(lines, keys, "{step}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    }
    assert_ne!(fs::read_to_string(&file).unwrap(), first);
    assert_eq!(thinair(folder, &["keygen", "a.key", "--rotate", "retire"]).status.code(), Some(1));
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);

    let nowhere = stderr(&thinair(folder, &["keygen", "none/a.key"]));
    assert!(nowhere.contains("there is no folder none"), "{nowhere}");

    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let exposed = thinair(folder, &["keygen", "a.key", "--rotate", "add"]);
    assert!(stderr(&exposed).contains("chmod 600"), "{}", stderr(&exposed));
}

#[test]
fn a_check_tells_what_is_wrong_and_where() {
    let folder = folder();
    let folder = folder.path();
    let file = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    file("a.toml", "[carrier]\nurl = \"udp://192.0.2.1:7000\"\n[security]\nkey = \"a.key\"\n");
    refused(folder, &["check", "a.toml"], &["key file", "a.key", "thinair tunnel keygen"]);
    printed(folder, &["keygen", "a.key"]);
    printed(folder, &["check", "a.toml"]);
    fs::set_permissions(folder.join("a.key"), fs::Permissions::from_mode(0o640)).unwrap();
    refused(folder, &["check", "a.toml"], &["mode 0640", "chmod 600"]);
    fs::set_permissions(folder.join("a.key"), fs::Permissions::from_mode(0o600)).unwrap();

    file(
        "b.toml",
        "[carrier]\nurl = \"udp://192.0.2.2:7000\"\n[security]\nkey = \"a.key\"\n[channel]\nmax_cid = 7\n",
    );
    printed(folder, &["check", "a.toml", "--against", "a.toml"]);
    refused(folder, &["check", "a.toml", "--against", "b.toml"], &["[channel] max_cid: 1023 here, 7 there"]);
    printed(folder, &["keygen", "b.key"]);
    file("b.toml", "[carrier]\nurl = \"udp://192.0.2.2:7000\"\n[security]\nkey = \"b.key\"\n");
    let json: Value = serde_json::from_str(&printed(folder, &["check", "b.toml", "--json"])).unwrap();
    let there = format!("{} there", json["keys"][0]["ids"][0].as_str().unwrap());
    refused(folder, &["check", "a.toml", "--against", "b.toml"], &["disagree on [security] key", &there]);
    fs::remove_file(folder.join("b.key")).unwrap();
    let text = printed(folder, &["check", "a.toml", "--against", "b.toml"]);
    assert!(text.contains("are not compared"), "{text}");
    file("c.toml", "[carrier]\nurll = \"udp://192.0.2.2:7000\"\n");
    refused(folder, &["check", "c.toml"], &["c.toml:2: [carrier] urll", "did you mean `url`?"]);
    refused(folder, &["check", "d.toml"], &["cannot read d.toml"]);
}

#[test]
fn a_hub_has_no_common_key() {
    let folder = folder();
    let folder = folder.path();
    for key in ["north", "south"] {
        printed(folder, &["keygen", &format!("{key}.key")]);
    }
    fs::write(folder.join("hub.toml"), printed(folder, &["config", "hub"])).unwrap();
    let text = printed(folder, &["check", "hub.toml"]);
    let security = text.lines().find(|line| line.starts_with("security")).unwrap();
    assert!(security.ends_with("a key file for each peer"), "{security}");
    for key in ["north", "south"] {
        let peer = text.lines().filter(|line| line.starts_with("peer") && line.contains(key));
        assert!(peer.into_iter().all(|line| line.contains(&format!("{key}.key"))), "{text}");
    }
    let json: Value = serde_json::from_str(&printed(folder, &["check", "hub.toml", "--json"])).unwrap();
    assert!(json["plan"]["security"]["key_file"].is_null(), "{json}");
}

/// Packet lengths are visible in every tunnel without `pad`: the documentation and `check` mention it, but
/// not each log.
#[test]
fn a_start_does_not_warn_of_the_default() {
    let folder = folder();
    let folder = folder.path();
    printed(folder, &["keygen", "a.key"]);
    let start = |more: &[&str]| {
        let run = ["run", "udp://192.0.2.1:7000", "--netns", "thinair-has-no-such-namespace"];
        let output = thinair(folder, &[&run[..], more].concat());
        assert!(stderr(&output).contains("thinair-has-no-such-namespace"), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(start(&["--insecure"]).contains("WARN"));
    let started = start(&["--key", "a.key"]);
    assert!(!started.contains("lengths"), "{started}");
    let file = "[carrier]\nurl = \"udp://192.0.2.1:7000\"\n[security]\nkey = \"a.key\"\n";
    fs::write(folder.join("a.toml"), file).unwrap();
    assert!(printed(folder, &["check", "a.toml"]).contains("`pad` hides that"));
}

/// A start says it, too: warnings are among the notes of `check`.
#[test]
fn a_tunnel_that_leaves_one_version_of_ip_open_says_so() {
    let folder = folder();
    let folder = folder.path();
    let noted = |routes: &[&str], more: &[&str]| {
        let mut run =
            vec!["run", "udp://192.0.2.1:7000", "--insecure", "--netns", "thinair-has-no-such-namespace"];
        routes.iter().for_each(|route| run.extend(["--route", route]));
        let started = stderr(&thinair(folder, &[&run[..], more].concat()));
        assert!(started.contains("thinair-has-no-such-namespace"), "{started}");
        ["nothing of IPv6", "nothing of IPv4"].map(|words| started.contains(words))
    };
    for (routes, expected) in [
        (&["0.0.0.0/0"][..], [true, false]),
        (&["0.0.0.0/1", "128.0.0.0/1"], [true, false]),
        (&["::/0"], [false, true]),
        (&["0.0.0.0/0", "::/0"], [false; 2]),
        (&["10.0.0.0/8"], [false; 2]),
    ] {
        assert_eq!(noted(routes, &[]), expected, "{routes:?}");
        assert_eq!(noted(routes, &["--on-failure", "block"]), [false; 2], "{routes:?}");
    }
}

#[test]
fn wrong_arguments_start_nothing() {
    let folder = folder();
    let folder = folder.path();
    let udp = "udp://192.0.2.1:7000";
    for (arguments, words) in [
        (&["run"][..], &["no carrier is given", "thinair tunnel config pair"][..]),
        (&["run", udp], &["--key FILE", "--insecure"]),
        (&["run", "ule+udp://192.0.2.1:7000"], &["--key FILE", "--open"]),
        (&["run", udp, "--key", "k", "--mtu", "1279", "--address", "fd09::1/64"], &["--mtu", "1280"]),
        (&["run", "udp://:99999", "--insecure"], &["\"99999\" is not a port", "1 to 65535"]),
        (
            &["run", "udp://:7000", "--insecure", "--address", "10.9.0.300/24"],
            &["CARRIER", "--insecure", "--address: has \"10.9.0.300/24\""],
        ),
        (
            &["run", "udp://192.0.2.1:7000?foo=1", "--insecure"],
            &["the options are listen, keepalive, bare-keepalive, idle-budget, tariff, iface, ttl, mtu"],
        ),
        (&["run", udp, "--insecure", "--mode", "x"], &["--mode: is \"x\""]),
        (&["run", udp, "--insecure", "--http", "0.0.0.0:80"], &["--http", "ssh -L"]),
        (&["run", "--name", "../a"], &["letters, digits"]),
        (&["run", "--name", "thinair-has-no-such-file"], &["/etc/thinair/thinair-has-no-such-file.toml"]),
        (&["run", "--name", "a", "--config", "b"], &["cannot be used with"]),
        (&["status"], &["no status socket in"]),
        (&["keygen"], &["<FILE>"]),
        (&["config", "star"], &["pair", "hub", "mesh"]),
    ] {
        refused(folder, arguments, words);
    }
    let nobody = thinair(folder, &["status", "no.sock"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(stderr(&nobody).contains("no.sock"), "{}", stderr(&nobody));
}

#[test]
fn every_option_is_a_key_of_the_configuration() {
    let folder = folder();
    let help = printed(folder.path(), &["run", "--help"]);
    let mut options = 0;
    for line in help.lines().map(str::trim_start).filter(|line| line.starts_with("--")) {
        let (name, value) = line.split_once(' ').map_or((line, ""), |(name, rest)| (name, rest.trim()));
        if ["--config", "--name", "--version", "--help"].contains(&name) {
            continue;
        }
        options += 1;
        // An error, not a panic.
        let mut arguments = vec!["run", "udp://192.0.2.1:0", name];
        if value.starts_with('<') {
            arguments.push("x");
        }
        let output = thinair(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", stderr(&output));
    }
    assert!(options >= 35, "{options}");
}

/// Octets of a column of a bill.
fn billed(bill: &Value, column: &str) -> u64 {
    let causes = bill[column]["causes"].as_object().unwrap();
    let sum: u64 = causes.values().map(|octets| octets.as_u64().unwrap()).sum();
    assert_eq!(bill[column]["octets"], sum, "{column}");
    sum
}

#[test]
fn a_bill_is_known_before_the_first_packet() {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let [capture, tariff] = ["captures/coap_udp4_observe.pcap", "docs/tariffs/skylo-monogoto.toml"]
        .map(|file| format!("{here}/{file}"));
    let folder = folder();
    let pair = printed(folder.path(), &["config", "pair"]).replace("# keepalive", "keepalive");
    fs::write(folder.path().join("pair.toml"), &pair).unwrap();
    let bill = |options: &[&str]| -> Value {
        let arguments = [&["bill", "pair.toml", "--json"], options].concat();
        serde_json::from_str(&printed(folder.path(), &arguments)).unwrap()
    };
    let idle = bill(&[]);
    // A keepalive of 48 octets every 25 s, a few signs of life, and new keys.
    assert!((165_888..167_000).contains(&billed(&idle, "idle_day")), "{idle}");
    assert!(billed(&idle, "start") > 300 && idle["capture"].is_null() && idle["currency"].is_null());
    let carried = bill(&["--capture", &capture, "--tariff", &tariff]);
    assert!(billed(&carried, "capture") > 10_000, "{carried}");
    // Each datagram counts at least 50 octets.
    let (keepalives, price) = (&carried["idle_day"]["datagrams"], &carried["idle_day"]["price"]);
    assert!(price.as_f64().unwrap() >= 50.0 * keepalives.as_f64().unwrap(), "{carried}");
    // A shorter tag saves its octets in each datagram with a tag.
    let short = carried["tags"].as_array().unwrap().iter().find(|cost| cost["tag"] == 8).unwrap();
    let datagrams = carried["capture"]["datagrams"].as_u64().unwrap();
    let saved = billed(&carried, "capture") - short["capture_octets"].as_u64().unwrap();
    assert_eq!(saved, 8 * datagrams);
    fs::write(
        folder.path().join("pair.toml"),
        pair.replace("# keepalive", "keepalive").replace("keepalive =", "# ="),
    )
    .unwrap();
    assert_eq!(billed(&bill(&[]), "idle_day"), 0);

    let mesh = printed(folder.path(), &["config", "one-way"]);
    fs::write(folder.path().join("one-way.toml"), mesh).unwrap();
    refused(folder.path(), &["bill", "one-way.toml"], &["a mesh is not billed"]);
    fs::write(folder.path().join("tariff.toml"), "name = \"x\"\n").unwrap();
    let wrong = thinair(folder.path(), &["bill", "pair.toml", "--tariff", "tariff.toml"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(stderr(&wrong).contains("tariff.toml, line 1: missing field"), "{}", stderr(&wrong));
}
