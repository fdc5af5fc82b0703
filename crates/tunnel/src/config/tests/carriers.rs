//! Carriers as URLs, and their protection.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thinair_rohc::Mode;
use thinair_ule::Pid;

use super::{INSECURE, KEY, OPEN, complains, of_arguments};
use crate::config::ConfigError;
use crate::mtu::Budget;
use crate::site_config::{Carrier, Framing, Others, Packaging, Security, SiteConfig, Suite, TotalLength};

fn socket(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn address(config: &SiteConfig) -> Option<SocketAddr> {
    match &config.others {
        Others::Peers(peers) => peers[0].address,
        Others::Mesh(_) => panic!("a mesh"),
    }
}

fn listen(config: &SiteConfig) -> SocketAddr {
    match &config.carrier {
        Carrier::Udp { listen, .. } => *listen,
        other => panic!("{other:?}"),
    }
}

#[test]
fn udp_leads_to_the_other_end_and_listens_on_its_port() {
    for (url, to, here) in [
        ("udp://192.0.2.1:7000", Some("192.0.2.1:7000"), "0.0.0.0:7000"),
        ("udp://192.0.2.1:7000/", Some("192.0.2.1:7000"), "0.0.0.0:7000"),
        ("udp://[2001:db8::1]:7000", Some("[2001:db8::1]:7000"), "[::]:7000"),
        ("udp://gateway.example:7000", Some("192.0.2.1:7000"), "0.0.0.0:7000"),
        ("udp://192.0.2.1:7000?listen=192.0.2.2:7001", Some("192.0.2.1:7000"), "192.0.2.2:7001"),
        ("udp://:7000", None, "0.0.0.0:7000"),
        ("udp://0.0.0.0:7000", None, "0.0.0.0:7000"),
        ("udp://[::]:7000", None, "[::]:7000"),
        ("udp://?listen=[::1]:7000", None, "[::1]:7000"),
        ("udp://:7000?listen=192.0.2.2:7001", None, "192.0.2.2:7001"),
    ] {
        let config = of_arguments(url, &[KEY]).unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(address(&config), to.map(socket), "{url}");
        assert_eq!(listen(&config), socket(here), "{url}");
        let Carrier::Udp { packaging, group, mtu, rtp, .. } = &config.carrier else { panic!("{url}") };
        assert_eq!((packaging, group, *mtu, *rtp), (&Packaging::Packed, &None, 1_500, false), "{url}");
        assert_eq!(config.channel.mode, Mode::Optimistic);
    }
}

#[test]
fn a_wrong_url_is_told_with_a_right_one() {
    for (url, words) in [
        ("192.0.2.1:7000", &["udp://HOST:PORT"][..]),
        ("upd://192.0.2.1:7000", &["did you mean udp?"]),
        ("tcp://192.0.2.1:7000", &["expected one of udp, ule+udp"]),
        ("udp://", &["udp://:PORT"]),
        ("udp://192.0.2.1", &["HOST:PORT"]),
        ("udp://192.0.2.1:", &["HOST:PORT"]),
        ("udp://192.0.2.1:70000", &["\"70000\" is not a port", "1 to 65535"]),
        ("udp://:99999", &["\"99999\" is not a port", "1 to 65535"]),
        ("udp://192.0.2.1:http", &["\"http\" is not a port", "1 to 65535"]),
        ("udp://192.0.2.1:0", &["1 to 65535"]),
        ("udp://2001:db8::1:7000", &["brackets"]),
        ("udp://[2001:db8::1:7000", &["HOST:PORT"]),
        ("udp://nobody.example:7000", &["cannot resolve nobody.example"]),
        ("udp://user@192.0.2.1:7000", &["HOST:PORT"]),
        ("udp://192.0.2.1:7000?lisen=192.0.2.2:1", &["option `lisen` of CARRIER", "did you mean `listen`?"]),
        ("udp://192.0.2.1:7000?listen=a&listen=b", &["is also set by"]),
        ("udp://192.0.2.1:7000?url=udp://", &["unknown option of udp://"]),
        (
            "udp://192.0.2.1:7000?foo=1",
            &["the options are listen, keepalive, bare-keepalive, idle-budget, tariff, iface"],
        ),
        (
            "udp://192.0.2.1:7000?fro=1",
            &["the options are listen, keepalive, bare-keepalive, idle-budget, tariff, iface"],
        ),
        ("ule+udp://192.0.2.1:7000?peer-pd=0x41", &["did you mean `peer-pid`?"]),
        ("udp://192.0.2.1:7000?suite=aes-gcm", &["`suite` belongs to [security]"]),
        ("udp://192.0.2.1:7000?pid=0x40", &["is for ule+udp://, ule+file://", "remove it"]),
        ("udp://192.0.2.1:7000?speed=9600", &["is for serial://, serial+raw://"]),
        ("udp://192.0.2.1:7000?ttl=4", &["multicast"]),
        ("udp://192.0.2.1:7000?listen=[::]:7000", &["both must be IPv4, or both IPv6"]),
        ("udp://192.0.2.1:7000?mtu=500", &["576 to 65535"]),
        ("udp://[2001:db8::1]:7000?mtu=1279", &["1280 to 65535"]),
        ("udp://192.0.2.1:7000?keepalive=0", &["above 0"]),
        ("udp://192.0.2.1:7000?tariff=none.toml", &["none.toml is not read in tests"]),
        ("udp://192.0.2.1:7000?idle-budget=9000", &["limits keepalives, and there are none"]),
        ("udp://192.0.2.1:7000?idle-budget=1999&keepalive=25s", &["below 2000 octets a day", "give more"]),
        (
            "udp://192.0.2.1:7000?idle-budget=9000&keepalive=auto",
            &["of a known interval", "instead of `auto`"],
        ),
        ("udp://192.0.2.1:7000?keepalive=often", &["or give auto"]),
        ("udp://192.0.2.1:7000?idle-budget=0&keepalive=25s", &["give a number from 1"]),
        ("serial://", &["serial:///dev/ttyUSB0"]),
        ("serial:///dev/ttyUSB0?framing=hdlc", &["expected one of cobs, slip"]),
        ("serial:///dev/ttyUSB0?speed=fast", &["9600"]),
        ("serial:///dev/ttyUSB0?speed=9G", &["serial line"]),
    ] {
        complains(of_arguments(url, &[KEY]), words);
    }
}

/// Options for BBFrames of other modulators and receivers.
#[test]
fn gse_has_options_for_deviations_of_others() {
    let gse = |url: &str| {
        let config = of_arguments(url, &[OPEN]).unwrap_or_else(|error| panic!("{url}: {error}"));
        match config.carrier {
            Carrier::Udp { packaging: Packaging::Gse { total_length, divided, .. }, .. } => {
                (total_length, divided)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(gse("gse+udp://192.0.2.1:7000"), (TotalLength::Checked, false));
    assert_eq!(
        gse("gse+udp://192.0.2.1:7000?total-length=checked&bbframes=whole"),
        (TotalLength::Checked, false)
    );
    assert_eq!(gse("gse+udp://192.0.2.1:7000?total-length=ignored"), (TotalLength::Ignored, false));
    assert_eq!(gse("gse+udp://192.0.2.1:7000?bbframes=divided"), (TotalLength::Checked, true));
    for (url, security, words) in [
        ("gse+udp://192.0.2.1:7000?bbframes=halved", OPEN, &["expected one of whole, divided"][..]),
        ("gse+udp://192.0.2.1:7000?total-length=0", OPEN, &["expected one of checked, ignored"]),
        ("gse+udp://192.0.2.1:7000?bbframes=divided", KEY, &["with `open`", "remove it"]),
        ("gse+udp://192.0.2.1:7000?total-length=ignored", KEY, &["with `open`", "remove it"]),
        ("ule+udp://192.0.2.1:7000?bbframes=divided", OPEN, &["is for gse+udp://"]),
    ] {
        complains(of_arguments(url, &[security]), words);
    }
}

#[test]
fn an_option_and_an_argument_are_told_once() {
    complains(
        of_arguments("udp://192.0.2.1:7000?keepalive=25s", &[KEY, ("carrier", "keepalive", "20s")]),
        &["option `keepalive` of CARRIER", "--keepalive"],
    );
}

#[test]
fn a_transport_stream_has_as_many_packets_as_fit() {
    let packets = |url: &str, security| {
        let config = of_arguments(url, &[security]).unwrap_or_else(|error| panic!("{url}: {error}"));
        match config.carrier {
            Carrier::Udp { packaging: Packaging::Ts { per_datagram, .. }, .. } => per_datagram,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(packets("ule+udp://192.0.2.1:7000", OPEN), 7);
    assert_eq!(packets("ule+udp://192.0.2.1:7000", KEY), 7);
    assert_eq!(packets("ule+udp://192.0.2.1:7000?ts=2", OPEN), 2);
    // 20 octets of IPv4, 8 of UDP, 7 times 188.
    assert_eq!(packets("ule+udp://192.0.2.1:7000?mtu=1344", OPEN), 7);
    assert_eq!(packets("ule+udp://192.0.2.1:7000?mtu=1343", OPEN), 6);
    assert_eq!(packets("ule+udp://192.0.2.1:7000?mtu=1344&rtp", OPEN), 6);
    // 10 octets of the longest header of an encrypted datagram, and the tag.
    assert_eq!(packets("ule+udp://192.0.2.1:7000?mtu=1370", KEY), 7);
    assert_eq!(packets("ule+udp://192.0.2.1:7000?mtu=1369", KEY), 6);
    assert_eq!(packets("ule+udp://[2001:db8::1]:7000?mtu=1364", OPEN), 7);
    complains(
        of_arguments("ule+udp://192.0.2.1:7000?mtu=1343&ts=7", &[OPEN]),
        &["1344 octets", "set `ts` to 6"],
    );
    complains(of_arguments("ule+udp://192.0.2.1:7000?ts=8", &[OPEN]), &["1 to 7"]);
}

/// The default values computed here leave enough room according to the budget.
#[test]
fn what_fits_by_default_fits() {
    for mtu in (1_280..1_600).step_by(7) {
        for host in ["192.0.2.1", "[2001:db8::1]"] {
            for (scheme, rtp, security) in [
                ("ule+udp", "", OPEN),
                ("ule+udp", "&rtp", OPEN),
                ("ule+udp", "", KEY),
                ("ule+udp", "&rtp", KEY),
                ("gse+udp", "", KEY),
                ("udp", "", KEY),
            ] {
                let url = format!("{scheme}://{host}:7000?mtu={mtu}{rtp}");
                let config = of_arguments(&url, &[security]).unwrap();
                let budget = Budget::of(&config).unwrap_or_else(|error| panic!("{url}: {error}"));
                assert!(budget.mtu >= 1_280, "{url}");
            }
        }
    }
}

#[test]
fn every_option_of_a_transport_stream_is_taken() {
    let url = "ule+udp://239.1.2.3:5000?iface=eth0&ttl=4&ts=6&flush=3ms&pid=0x40&peer-pid=0x41&psi=500ms&\
               bitrate=3.507M&rtp=1&mtu=1400&npa=02:00:00:00:00:01";
    let config = of_arguments(url, &[OPEN]).unwrap();
    let Carrier::Udp { packaging, listen, group, ttl, mtu, rtp } = &config.carrier else { panic!() };
    assert_eq!((*listen, *ttl, *mtu, *rtp), (socket("239.1.2.3:5000"), 4, 1_400, true));
    assert_eq!(group, &Some((IpAddr::from([239, 1, 2, 3]), Some("eth0".to_owned()))));
    let expected = Packaging::Ts {
        pid: Pid::new(0x40).unwrap(),
        per_datagram: 6,
        flush: Duration::from_millis(3),
        psi: Some(Duration::from_millis(500)),
        bitrate: Some(3_507_000),
        npa: Some("02:00:00:00:00:01".parse().unwrap()),
    };
    assert_eq!(packaging, &expected);
    let Others::Peers(peers) = &config.others else { panic!() };
    assert_eq!((peers[0].address, peers[0].pid), (Some(socket("239.1.2.3:5000")), Pid::new(0x41)));
}

#[test]
fn pids_are_free_ones_and_differ_on_a_group() {
    for pid in ["0x1f", "0x1ffb", "0", "8191", "65536", "x"] {
        let url = format!("ule+udp://192.0.2.1:7000?pid={pid}");
        complains(of_arguments(&url, &[OPEN]), &["option `pid`", "0x0020 to 0x1ffa"]);
    }
    for pid in ["0x20", "0x1ffa", "64"] {
        assert!(of_arguments(&format!("ule+udp://192.0.2.1:7000?pid={pid}"), &[OPEN]).is_ok(), "{pid}");
    }
    let group = "ule+udp://239.1.2.3:5000";
    complains(of_arguments(group, &[OPEN]), &["give each end a PID"]);
    complains(of_arguments(&format!("{group}?pid=64&peer-pid=64"), &[OPEN]), &["a different PID"]);
    assert!(of_arguments(&format!("{group}?pid=64&peer-pid=65"), &[OPEN]).is_ok());
    // Both directions of a pair of hosts may use one PID.
    let config = of_arguments("ule+udp://192.0.2.1:7000", &[OPEN]).unwrap();
    let Others::Peers(peers) = &config.others else { panic!() };
    assert_eq!(peers[0].pid, Pid::new(0x40));
    complains(of_arguments("ule+udp://192.0.2.1:7000?npa=01:00:5e:00:00:01", &[OPEN]), &["group address"]);
}

#[test]
fn groups_are_bound_where_they_can_be() {
    let listens = |url: &str| listen(&of_arguments(url, &[OPEN]).unwrap()).to_string();
    let pids = "pid=64&peer-pid=65";
    assert_eq!(listens(&format!("ule+udp://[ff15::1]:5000?{pids}")), "[ff15::1]:5000");
    assert_eq!(listens(&format!("ule+udp://[ff02::1]:5000?{pids}&iface=eth0")), "[::]:5000");
    assert_eq!(listens(&format!("ule+udp://239.1.2.3:5000?{pids}&listen=0.0.0.0:5000")), "0.0.0.0:5000");
    let elsewhere = format!("ule+udp://239.1.2.3:5000?{pids}&listen=0.0.0.0:5001");
    complains(of_arguments(&elsewhere, &[OPEN]), &["arrive at port 5000"]);
    complains(of_arguments("udp://239.1.2.3:5000", &[KEY]), &["[mesh]"]);
}

#[test]
fn serial_lines_have_their_defaults() {
    let config = of_arguments("serial:///dev/ttyUSB0", &[KEY]).unwrap();
    let Carrier::Serial { path, speed, framing, crc, mtu } = &config.carrier else { panic!() };
    assert_eq!(path, Path::new("/dev/ttyUSB0"));
    assert_eq!((*speed, *framing, *crc, *mtu), (None, Framing::Cobs, true, 1_500));
    let Security::Key { suite, .. } = config.security else { panic!() };
    assert_eq!(suite, Suite::AesCcm8);

    let config =
        of_arguments("serial:///dev/ttyUSB0?speed=115200&framing=slip&mtu=300", &[INSECURE]).unwrap();
    let Carrier::Serial { speed, framing, crc, mtu, .. } = &config.carrier else { panic!() };
    assert_eq!((*speed, *framing, *crc, *mtu), (Some(115_200), Framing::Slip, true, 300));

    let config = of_arguments("serial+raw:///dev/ttyUSB0", &[INSECURE]).unwrap();
    let Carrier::Serial { framing, crc, .. } = &config.carrier else { panic!() };
    assert_eq!((*framing, *crc), (Framing::Slip, false));
    complains(of_arguments("serial+raw:///dev/ttyUSB0?framing=cobs", &[INSECURE]), &["is for serial://"]);
}

#[test]
fn files_say_which_way_they_go() {
    let ends = |url: &str| {
        let config = of_arguments(url, &[OPEN]).unwrap_or_else(|error| panic!("{url}: {error}"));
        let Carrier::File { from, to, .. } = config.carrier else { panic!("{url}") };
        (from, to, config.channel.mode)
    };
    let (stdio, file) = (Some(PathBuf::from("-")), |name: &str| Some(PathBuf::from(name)));
    assert_eq!(ends("ule+file://-"), (stdio.clone(), stdio.clone(), Mode::Optimistic));
    assert_eq!(ends("ule+file://?to=a.ts"), (None, file("a.ts"), Mode::Unidirectional));
    assert_eq!(ends("ule+file://?from=-"), (stdio, None, Mode::Unidirectional));
    assert_eq!(ends("ule+file://?from=a.ts&to=b.ts"), (file("a.ts"), file("b.ts"), Mode::Optimistic));
    for (url, words) in [
        ("ule+file://", &["?to=FILE"][..]),
        ("ule+file://a.ts", &["?to=a.ts to send, or ?from=a.ts to receive"]),
        ("ule+file://a.ts?to=b.ts", &["remove a.ts"]),
        ("ule+file://?from=a.ts&to=a.ts", &["two different ones"]),
        ("ule+file://?to=", &["give a path"]),
    ] {
        complains(of_arguments(url, &[OPEN]), words);
    }
}

#[test]
fn nothing_starts_unprotected_by_itself() {
    for (url, words) in [
        ("udp://192.0.2.1:7000", &["--key FILE", "--insecure", "keygen"][..]),
        ("serial:///dev/ttyUSB0", &["--key FILE", "--insecure"]),
        ("serial+raw:///dev/ttyUSB0", &["--insecure"]),
        ("ule+udp://192.0.2.1:7000", &["--key FILE", "--open"]),
        ("gse+udp://192.0.2.1:7000", &["--key FILE", "--open"]),
        ("ule+file://?to=a.ts", &["--open"]),
    ] {
        complains(of_arguments(url, &[]), words);
    }
}

#[test]
fn each_carrier_has_its_own_way_to_go_unprotected() {
    for (url, security, words) in [
        ("udp://192.0.2.1:7000", OPEN, &["--open", "insecure"][..]),
        ("serial:///dev/ttyUSB0", OPEN, &["insecure"]),
        ("serial+raw:///dev/ttyUSB0", OPEN, &["insecure"]),
        ("ule+udp://192.0.2.1:7000", INSECURE, &["--insecure", "`open`"]),
        ("gse+udp://192.0.2.1:7000", INSECURE, &["`open`"]),
        ("ule+file://?to=a.ts", INSECURE, &["`open`"]),
        ("ule+file://?to=a.ts", KEY, &["--open"]),
        ("serial+raw:///dev/ttyUSB0", KEY, &["serial://", "--insecure"]),
        // Feedback has no destination without a name or address.
        ("udp://:7000", INSECURE, &["CARRIER", "--insecure", "HOST:PORT", "--key FILE"]),
        ("ule+udp://:7000", OPEN, &["CARRIER", "--open", "HOST:PORT"]),
    ] {
        complains(of_arguments(url, &[security]), words);
    }
    complains(of_arguments("ule+file://?fro=a.ts", &[OPEN]), &["did you mean `from`?"]);
    // Both of two errors are reported.
    for url in ["udp://:7000", "udp://:99999"] {
        let address = ("inside", "address", "10.9.0.300/24");
        complains(of_arguments(url, &[INSECURE, address]), &["CARRIER", "--address", "10.9.0.300/24"]);
    }
    for both in [[KEY, OPEN], [KEY, INSECURE], [OPEN, INSECURE]] {
        complains(of_arguments("ule+udp://192.0.2.1:7000", &both), &["contradict", "take one out"]);
    }
    for (url, security) in [
        ("udp://192.0.2.1:7000", INSECURE),
        ("serial:///dev/ttyUSB0", INSECURE),
        ("ule+udp://192.0.2.1:7000", OPEN),
        ("gse+udp://192.0.2.1:7000", OPEN),
        ("gse+udp://192.0.2.1:7000", KEY),
    ] {
        assert!(of_arguments(url, &[security]).is_ok(), "{url}");
    }
}

#[test]
fn suites_have_names_and_tags() {
    let suite = |arguments: &[(&str, &str, &str)]| -> Result<Suite, ConfigError> {
        let config = of_arguments("udp://192.0.2.1:7000", &[&[KEY], arguments].concat())?;
        match config.security {
            Security::Key { suite, .. } => Ok(suite),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(suite(&[]), Ok(Suite::ChaCha20Poly1305));
    for (name, tag, of) in [
        ("chacha20-poly1305", "16", Suite::ChaCha20Poly1305),
        ("aes-ccm-8", "8", Suite::AesCcm8),
        ("aes-ccm-4", "4", Suite::AesCcm4),
        ("aes-gcm", "16", Suite::AesGcm),
    ] {
        assert_eq!(suite(&[("security", "suite", name)]), Ok(of));
        // The length alone selects the default of two suites with a tag of 16 octets.
        if of != Suite::AesGcm {
            assert_eq!(suite(&[("security", "tag", tag)]), Ok(of));
        }
        assert_eq!(suite(&[("security", "suite", name), ("security", "tag", tag)]), Ok(of));
    }
    let wrong = suite(&[("security", "suite", "aes-ccm-8"), ("security", "tag", "16")]).unwrap_err();
    assert!(wrong.to_string().contains("has a tag of 8 octets"), "{wrong}");
    let wrong = suite(&[("security", "tag", "12")]).unwrap_err();
    assert!(wrong.to_string().contains("expected one of 16, 8, 4"), "{wrong}");
    let unsealed = [OPEN, ("security", "tag", "8")];
    complains(of_arguments("ule+udp://192.0.2.1:7000", &unsealed), &["encrypted", "remove it"]);
}

#[test]
fn a_key_is_never_an_argument_and_never_repeated() {
    let key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    let wrong = of_arguments("udp://192.0.2.1:7000", &[("security", "key", key)]).unwrap_err();
    let text = format!("{wrong} {wrong:?}");
    assert!(text.contains("path of a key file") && !text.contains(key), "{text}");
    complains(of_arguments("udp://192.0.2.1:7000", &[("security", "key", "-")]), &["path of a key file"]);
    complains(of_arguments("udp://192.0.2.1:7000", &[("security", "key", "")]), &["path of a key file"]);
}
