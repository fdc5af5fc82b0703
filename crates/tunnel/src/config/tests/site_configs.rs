//! Interface, channel, and status settings.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use thinair_rohc::{CidSpace, Mode, ProfileId, Refresh, ReorderRatio, RtpDetection};
use thinair_segment::NetworkProperties;

use super::{KEY, OPEN, complains, of_arguments};
use crate::site_config::{ChannelConfig, SiteConfig};

const UDP: &str = "udp://192.0.2.1:7000";

fn with(section: &str, key: &str, value: &str) -> Result<SiteConfig, super::ConfigError> {
    of_arguments(UDP, &[KEY, (section, key, value)])
}

#[test]
fn what_is_left_out_has_a_default() {
    let config = of_arguments(UDP, &[KEY]).unwrap();
    let inside = &config.inside;
    assert_eq!((inside.name.as_str(), inside.bridged, inside.mtu), ("thinair0", false, None));
    assert!(inside.addresses.is_empty() && inside.routes.is_empty() && inside.namespace.is_none());
    assert_eq!(config.seeing.status, Some(PathBuf::from("/run/thinair/thinair0/status.sock")));
    assert_eq!((config.seeing.http, config.seeing.billing_unit, config.user), (None, 0, None));
    assert_eq!(config.state, PathBuf::from("/var/lib/thinair/thinair0"));
    let (channel, default) = (&config.channel, ChannelConfig::new());
    assert_eq!((channel.cids, channel.max_cid), (default.cids, default.max_cid));
    assert_eq!((channel.cids_name(), channel.large_max_cid), ("auto", Some(1_023)));
    assert_eq!((channel.profiles, channel.mode), (default.profiles, Mode::Optimistic));
    assert_eq!((channel.mrru, channel.refresh, channel.pad), (None, None, 0));
    assert_eq!((channel.repetitions, channel.window, channel.rtp), (4, 4, default.rtp));
    assert_eq!(channel.feedback_wait, Duration::from_millis(20));
}

#[test]
fn every_key_of_the_channel_is_taken() {
    let arguments = [
        KEY,
        ("channel", "cid", "large"),
        ("channel", "max_cid", "1000"),
        ("channel", "profiles", "rtp,udp, ip"),
        ("channel", "mrru", "1400"),
        ("channel", "mode", "r"),
        ("channel", "refresh", "packets=100,time=5"),
        ("channel", "rtp", "ports"),
        ("channel", "rtp_ports", "5004,5006"),
        ("channel", "repetitions", "3"),
        ("channel", "window", "16"),
        ("channel", "reorder_ratio", "half"),
        ("channel", "feedback_wait", "100ms"),
        ("channel", "pad", "16"),
    ];
    let channel = of_arguments(UDP, &arguments).unwrap().channel;
    assert_eq!((channel.cids, channel.max_cid, channel.mode), (CidSpace::Large, 1_000, Mode::Reliable));
    let profiles: Vec<_> = channel.profiles.iter().collect();
    assert_eq!(profiles, [ProfileId::Uncompressed, ProfileId::Rtp, ProfileId::Udp, ProfileId::Ip]);
    let refresh =
        Refresh::Periodic { packets: Some(100), time: Some(Duration::from_secs(5)), backoff: false };
    assert_eq!((channel.mrru, channel.refresh), (Some(1_400), Some(refresh)));
    assert_eq!(channel.rtp, RtpDetection::of_ports(&[5_004, 5_006]).unwrap());
    assert_eq!((channel.repetitions, channel.window, channel.pad), (3, 16, 16));
    assert_eq!(channel.reorder_ratio, ReorderRatio::Half);
    assert_eq!(channel.feedback_wait, Duration::from_millis(100));
    // ULE and GSE have Types.
    let by_type = ("channel", "by_type", "true");
    assert!(of_arguments("gse+udp://192.0.2.1:7000", &[OPEN, by_type]).unwrap().channel.by_type);
    complains(of_arguments(UDP, &[KEY, by_type]), &["--by-type", "ULE or GSE"]);
}

#[test]
fn what_a_channel_cannot_be_is_told() {
    for (key, value, words) in [
        ("cid", "smal", &["--cid: is \"smal\"", "did you mean small?"][..]),
        ("max_cid", "16384", &["--max-cid", "exceeds 16383"]),
        ("profiles", "rtp,sctp", &["has \"sctp\"", "coap", "the sets v1 and v2"]),
        ("mode", "x", &["expected one of u, o, r"]),
        ("refresh", "sometimes", &["expected `budget=PERCENT%"]),
        ("rtp", "ports", &["`rtp_ports`"]),
        ("rtp_ports", "1,2,3,4,5,6,7,8,9", &["the maximum is 8"]),
        ("rtp_ports", "0", &["1 to 65535"]),
        ("repetitions", "0", &["1 to 255"]),
        ("window", "17", &["1 to 16"]),
        ("reorder_ratio", "1/2", &["none", "three-quarters"]),
        ("feedback_wait", "11s", &["at most 10s"]),
        ("feedback_wait", "20", &["its unit"]),
        ("pad", "2000", &["0 to 1024"]),
        ("coap_template", "a.toml", &["a.toml is not read in tests"]),
    ] {
        complains(with("channel", key, value), words);
    }
    let never = [KEY, ("channel", "rtp", "never"), ("channel", "rtp_ports", "5004")];
    complains(of_arguments(UDP, &never), &["--rtp-ports", "remove one"]);
    let without = [KEY, ("channel", "profiles", "udp"), ("channel", "rtp_ports", "5004")];
    complains(of_arguments(UDP, &without), &["--rtp-ports", "`profiles`"]);
}

#[test]
fn what_goes_one_way_has_no_feedback() {
    for mode in ["o", "r"] {
        let arguments = [OPEN, ("channel", "mode", mode)];
        let wrong = of_arguments("ule+file://?to=a.ts", &arguments);
        complains(wrong, &["--mode", "needs feedback", "one-way", "give u"]);
        assert!(of_arguments("ule+file://?from=a.ts&to=b.ts", &arguments).is_ok());
    }
    assert!(of_arguments("ule+file://?to=a.ts", &[OPEN, ("channel", "mode", "u")]).is_ok());
}

#[test]
fn ipv6_needs_1280_octets() {
    let mtu = ("inside", "mtu", "1279");
    for (key, value) in [("address", "fd09::1/64"), ("route", "fd00::/8")] {
        complains(
            of_arguments(UDP, &[KEY, mtu, ("inside", key, value)]),
            &["--mtu", "disables IPv6 below 1280", "remove the IPv6 addresses and routes"],
        );
        assert!(of_arguments(UDP, &[KEY, ("inside", "mtu", "1280"), ("inside", key, value)]).is_ok());
    }
    assert!(of_arguments(UDP, &[KEY, mtu, ("inside", "address", "10.9.0.1/30")]).is_ok());
    complains(with("inside", "mtu", "67"), &["68 to 65535"]);
}

#[test]
fn addresses_and_names_are_what_the_system_takes() {
    let config = with("inside", "address", "10.9.0.1/30,fd09::1/64").unwrap();
    let expected =
        [("10.9.0.1", 30), ("fd09::1", 64)].map(|(ip, bits)| (ip.parse::<IpAddr>().unwrap(), bits));
    assert_eq!(config.inside.addresses, expected);
    for (key, value, words) in [
        ("address", "10.9.0.1/33", &["is 0 to 32"][..]),
        ("address", "fd09::1/129", &["is 0 to 128"]),
        ("address", "0.0.0.0/0", &["not a valid interface address"]),
        ("address", "239.1.2.3/4", &["not a valid interface address"]),
        ("address", "gateway", &["10.9.0.1/30"]),
        ("route", "10.9.0.1/16", &["the network is 10.9.0.0/16"]),
        ("tun", "a-name-of-16-let", &["1 to 15"]),
        ("tun", "a/b", &["name of an interface"]),
        ("tun", "", &["name of an interface"]),
        ("tun", "tun%d", &["name of an interface"]),
        ("namespace", "../init", &["`ip netns`"]),
        ("queue", "0", &["1 to"]),
        ("tap", "maybe", &["true or false"]),
    ] {
        complains(with("inside", key, value), words);
    }
}

#[test]
fn segments_have_a_control_that_knows_the_network() {
    assert_eq!(with("inside", "queue", "9").unwrap().inside.segments, None);
    let of = |keys: &[(&str, &str, &str)]| of_arguments(UDP, &[&[KEY], keys].concat());
    let network = NetworkProperties { frame: 80, most: 600, ..NetworkProperties::default() };
    let setting = [("segments", "sizer", "tssa"), ("segments", "frame", "80"), ("segments", "most", "600")];
    let expected = network.configure(&"tssa".parse().unwrap());
    assert_eq!(of(&setting).unwrap().inside.segments, Some(expected));
    complains(of(&[("segments", "sizer", "tssa2")]), &["fixed:OCTETS", "adaptive"]);
    complains(of(&[("segments", "frame", "80")]), &["give `sizer`"]);
    complains(of(&[setting[0], ("segments", "least", "2000")]), &["minimum 2000", "maximum 1024"]);
    complains(of(&[setting[0], ("inside", "tap", "true")]), &["IP packets"]);
}

#[test]
fn the_page_is_for_this_machine() {
    for (value, shown) in
        [("127.0.0.1:9464", "127.0.0.1:9464"), ("[::1]:80", "[::1]:80"), (":9464", "127.0.0.1:9464")]
    {
        let http = with("seeing", "http", value).unwrap().seeing.http.unwrap();
        assert_eq!(http.to_string(), shown);
    }
    for value in ["0.0.0.0:9464", "192.0.2.1:9464", "[::]:80", "[2001:db8::1]:80"] {
        complains(with("seeing", "http", value), &["--http", "ssh -L"]);
    }
    for value in ["", "9464", "localhost:9464", ":0", "127.0.0.1"] {
        assert!(with("seeing", "http", value).is_err(), "{value}");
    }
}

#[test]
fn what_is_shown_goes_where_it_was_asked_to() {
    assert_eq!(with("seeing", "status", "none").unwrap().seeing.status, None);
    assert_eq!(with("seeing", "status", "/tmp/s").unwrap().seeing.status, Some("/tmp/s".into()));
    assert_eq!(with("seeing", "billing_unit", "50").unwrap().seeing.billing_unit, 50);
    assert_eq!(with("seeing", "pcap_inside", "a.pcap").unwrap().seeing.pcap_inside, Some("a.pcap".into()));
    assert_eq!(with("seeing", "pcap_outside", "b.pcap").unwrap().seeing.pcap_outside, Some("b.pcap".into()));
    assert_eq!(with("daemon", "user", "thinair").unwrap().user.as_deref(), Some("thinair"));
    assert_eq!(with("daemon", "state", "/srv/epochs").unwrap().state, PathBuf::from("/srv/epochs"));
    complains(with("daemon", "user", "a b"), &["name of a user"]);
}
