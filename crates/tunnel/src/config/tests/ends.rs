//! Peers, and sites of a mesh.

use thinair_rohc::Mode;
use thinair_ule::Pid;

use super::{complains, of_arguments, of_text};
use crate::config::agreement::{Disagreement, disagreements};
use crate::site_config::{ALL_ADDRESSES, Carrier, Others, Packaging, Security, SiteConfig, Suite};

/// Two peers, the second of which is modified.
fn hub(north: &str, south: &str) -> String {
    format!(
        "[carrier]\nurl = \"udp://:7000\"\n\
         [[peer]]\nname = \"north\"\nkey = \"north.key\"\nallowed = [\"10.1.0.0/16\"]\n{north}\n\
         [[peer]]\n{south}\n"
    )
}

const SOUTH: &str = "name = \"south\"\nkey = \"south.key\"\nallowed = [\"10.2.0.0/16\"]";

#[test]
fn peers_have_keys_and_networks_of_their_own() {
    let config = of_text(&hub("keepalive = \"25s\"", SOUTH)).unwrap();
    let Others::Peers(peers) = &config.others else { panic!() };
    assert_eq!(peers.iter().map(|peer| peer.name.as_str()).collect::<Vec<_>>(), ["north", "south"]);
    assert_eq!(peers[1].key.as_deref(), Some("/etc/thinair/south.key".as_ref()));
    assert!(peers[0].keepalive.is_some() && peers[1].keepalive.is_none());
    for (north, south, words) in [
        ("", "name = \"south\"\nkey = \"south.key\"", &["[[peer]]", "needs `allowed`"][..]),
        ("", "name = \"south\"\nallowed = [\"10.2.0.0/16\"]", &["needs its own `key`", "impersonate"]),
        ("", &SOUTH.replace("10.2.0.0/16", "10.1.2.0/24"), &["sat.toml:11", "10.1.2.0/24 and 10.1.0.0/16"]),
        ("", &SOUTH.replace("south.key", "north.key"), &["the same key file", "sat.toml:5"]),
        ("", &SOUTH.replace("\"south\"", "\"north\""), &["the same name"]),
        ("", &SOUTH.replace("10.2.0.0", "10.2.0.1"), &["the network is 10.2.0.0/16"]),
        (
            "address = \"192.0.2.1:1\"",
            &format!("{SOUTH}\naddress = \"192.0.2.1:1\""),
            &["the same address", "sat.toml:7"],
        ),
        ("address = \"0.0.0.0:1\"", SOUTH, &["not the address of a peer"]),
        ("address = \"239.1.2.3:1\"", SOUTH, &["not the address of a peer"]),
        ("pid = 0x40", SOUTH, &["PIDs apply to transport streams"]),
        ("adress = \"192.0.2.1:1\"", SOUTH, &["did you mean `address`?"]),
    ] {
        complains(of_text(&hub(north, south)), words);
    }
    let url = hub("", SOUTH).replace("udp://:7000", "udp://192.0.2.1:7000");
    complains(of_text(&url), &["the peers have their own addresses"]);
    let serial = hub("", SOUTH).replace("udp://:7000", "serial:///dev/ttyS0");
    complains(of_text(&serial), &["a single peer"]);
    // One peer may use the address of the carrier.
    let one =
        "[carrier]\nurl = \"udp://192.0.2.1:7000\"\n[security]\nkey = \"k\"\n[[peer]]\nname = \"hub\"\n";
    let Others::Peers(peers) = of_text(one).unwrap().others else { panic!() };
    assert_eq!(peers[0].address, Some("192.0.2.1:7000".parse().unwrap()));
}

#[test]
fn any_source_is_allowed_by_name_also_as_an_option() {
    let one = |allowed: &str| {
        of_text(&format!(
            "[carrier]\nurl = \"udp://192.0.2.1:7000\"\n[security]\nkey = \"k\"\n[[peer]]\nallowed = {allowed}\n"
        ))
    };
    let allowed = |config: SiteConfig| match config.others {
        Others::Peers(peers) => peers[0].allowed.clone(),
        Others::Mesh(_) => panic!("peers"),
    };
    assert_eq!(allowed(one("\"any\"").unwrap()), ALL_ADDRESSES);
    assert_eq!(allowed(one("[]").unwrap()), []);
    complains(one("\"all\""), &["sat.toml:6", "\"any\""]);
    let option = [("security", "key", "k"), ("peer", "allowed", "any")];
    let config = of_arguments("udp://192.0.2.1:7000", &option).unwrap();
    let Others::Peers(peers) = &config.others else { panic!("peers") };
    assert_eq!((peers.len(), peers[0].address), (1, Some("192.0.2.1:7000".parse().unwrap())));
    assert_eq!(allowed(config), ALL_ADDRESSES);
    // Two peers that have all addresses.
    let [north, south] = ["north", "south"].map(|name| format!("name = \"{name}\"\nkey = \"{name}.key\""));
    let two = format!(
        "[carrier]\nurl = \"udp://:7000\"\n[[peer]]\n{north}\nallowed = \"any\"\n[[peer]]\n{south}\n\
         allowed = \"any\"\n"
    );
    complains(of_text(&two), &["overlapping networks"]);
}

/// Three sites on a group.
fn mesh(own: &str, security: &str, more: &str) -> String {
    format!(
        "[carrier]\nurl = \"ule+udp://239.9.0.1:5000\"\n[security]\n{security}\n[mesh]\n{own}\n{more}\n\
         [[site]]\nid = 1\npid = 0x101\nnpa = \"02:00:00:00:00:01\"\n\
         [[site]]\nid = 2\npid = 0x102\nnpa = \"02:00:00:00:00:02\"\n\
         [[site]]\nid = 3\npid = 0x103\nnpa = \"02:00:00:00:00:03\"\n"
    )
}

fn pid(config: &SiteConfig) -> Pid {
    match &config.carrier {
        Carrier::Udp { packaging: Packaging::Ts { pid, .. }, .. } => *pid,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_site_hears_all_others_and_sends_as_itself() {
    for security in ["key = \"mesh.key\"", "open = true"] {
        let config = of_text(&mesh("own = 2", security, "")).unwrap();
        let Others::Mesh(of) = &config.others else { panic!() };
        let others: Vec<_> = of.sites.iter().map(|site| site.id.number()).collect();
        assert_eq!((of.own.map(|own| own.number()), others), (Some(2), vec![1, 3]));
        assert_eq!(pid(&config), Pid::new(0x102).unwrap());
        assert_eq!((of.to, of.feedback), (Some("239.9.0.1:5000".parse().unwrap()), false));
        assert_eq!(config.channel.mode, Mode::Unidirectional);
        let answered = of_text(&mesh("own = 2", security, "feedback = true")).unwrap();
        assert_eq!(answered.channel.mode, Mode::Optimistic);
    }
    let silent = of_text(&mesh("", "open = true", "")).unwrap();
    let Others::Mesh(of) = &silent.others else { panic!() };
    assert_eq!((of.own, of.sites.len()), (None, 3));
    let elsewhere = of_text(&mesh("own = 2", "open = true", "to = \"192.0.2.9:1234\"")).unwrap();
    let Others::Mesh(of) = &elsewhere.others else { panic!() };
    assert_eq!(of.to, Some("192.0.2.9:1234".parse().unwrap()));
}

#[test]
fn what_a_mesh_cannot_be_is_told() {
    let open = "open = true";
    let mode = |mode: &str| format!("{}[channel]\nmode = \"{mode}\"\n", mesh("own = 1", open, ""));
    let swap = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    };
    let one = mesh("own = 1", open, "");
    let answered = mesh("own = 1", open, "feedback = true");
    for (text, words) in [
        (mode("o"), &["o-mode needs feedback", "`feedback = true`"][..]),
        (mode("r"), &["r-mode needs feedback"]),
        (swap(&one, "id = 3", "id = 2"), &["the same `id`", "sat.toml:17"]),
        (swap(&one, "0x103", "0x102"), &["the same `pid`"]),
        (swap(&one, "02:00:00:00:00:03", "02:00:00:00:00:02"), &["the same `npa`"]),
        (swap(&one, "id = 3\n", ""), &["has no `id`"]),
        (swap(&one, "id = 3", "id = 0"), &["1 to 255"]),
        (swap(&one, "pid = 0x103\n", ""), &["\"site 3\" needs a `pid`"]),
        (swap(&one, "pid = 0x103", "pid = 0x40").replace("own = 1", "own = 9"), &["the PID of this site"]),
        (swap(&one, "[mesh]\nown = 1\n", ""), &["[[site]]", "[mesh] is missing"]),
        (swap(&one, "239.9.0.1:5000", ":5000"), &["a destination"]),
        (mesh("", open, "feedback = true"), &["receiver-only site cannot answer"]),
        (swap(&answered, "npa = \"02:00:00:00:00:03\"\n", ""), &["an `npa`"]),
        (swap(&one, "open = true", "key = \"k\"\ntag = 4"), &["too short for a group"]),
        (swap(&one, "ule+udp://239.9.0.1:5000", "serial:///dev/ttyS0"), &["`insecure`"]),
        (format!("{one}[[peer]]\nname = \"a\"\n"), &["remove one of them"]),
        (
            "[carrier]\nurl = \"ule+udp://239.9.0.1:5000\"\n[security]\nopen = true\n[mesh]\n".to_owned(),
            &["no senders"],
        ),
        (
            "[carrier]\nurl = \"serial:///dev/ttyS0\"\n[security]\nkey = \"k\"\n[mesh]\nown = 1\n".to_owned(),
            &["a single peer"],
        ),
    ] {
        complains(of_text(&text), words);
    }
    let gse = one.replace("ule+udp", "gse+udp").replace("pid = ", "# pid = ");
    complains(of_text(&gse), &["do not identify their sender"]);
    assert!(of_text(&gse.replace("open = true", "key = \"k\"")).is_ok());
    // Without a key, datagrams contain the number of the site.
    let udp = one.replace("ule+udp", "udp").replace("pid = ", "# pid = ").replace("open", "insecure");
    assert!(of_text(&udp).is_ok());
    // A sender without feedback.
    let sender = "[carrier]\nurl = \"gse+udp://192.0.2.1:5000\"\n[security]\nopen = true\n[mesh]\nown = 1\n";
    let config = of_text(sender).unwrap();
    assert!(matches!(&config.others, Others::Mesh(mesh) if mesh.sites.is_empty()));
}

#[test]
fn two_ends_negotiate_where_nobody_has_chosen_a_suite() {
    let negotiates = |config: SiteConfig| matches!(config.security, Security::Key { negotiates: true, .. });
    let pair = |url: &str, more: &str| {
        of_text(&format!("[carrier]\nurl = \"{url}\"\n[security]\nkey = \"k\"\n{more}")).unwrap()
    };
    assert!(negotiates(pair("udp://192.0.2.1:7000", "")));
    for chosen in ["suite = \"chacha20-poly1305\"", "suite = \"aes-gcm\"", "tag = 16", "tag = 8"] {
        assert!(!negotiates(pair("udp://192.0.2.1:7000", chosen)), "{chosen}");
    }
    assert!(!negotiates(pair("serial:///dev/ttyS0", "")));
    assert!(!negotiates(of_text(&mesh("own = 1", "key = \"mesh.key\"", "")).unwrap()));
}

#[test]
fn groups_have_the_longest_tag_by_default() {
    let config = of_text(&mesh("own = 1", "key = \"mesh.key\"", "")).unwrap();
    let Security::Key { suite, .. } = config.security else { panic!() };
    assert_eq!(suite, Suite::ChaCha20Poly1305);
}

#[test]
fn ends_that_do_not_agree_are_told() {
    let pair = |more: &str| {
        of_text(&format!("[carrier]\nurl = \"udp://192.0.2.1:7000\"\n[security]\nkey = \"k\"\n{more}"))
            .unwrap()
    };
    let setting = |a: &SiteConfig, b: &SiteConfig| -> Vec<String> {
        disagreements(a, b).iter().map(Disagreement::to_string).collect()
    };
    let here = pair("");
    assert_eq!(setting(&here, &pair("[inside]\naddress = [\"10.9.0.2/30\"]\n")), Vec::<String>::new());
    assert_eq!(
        setting(
            &pair("[inside]\nmtu = 1400\n"),
            &pair(
                "tag = 8\n[channel]\nmax_cid = 7\nprofiles = [\"udp\"]\n[inside]\ntap = true\nmtu = 1400\n"
            )
        ),
        [
            "the ends disagree on [inside] tap: false here, true there",
            "the ends disagree on [security]: chacha20-poly1305 here, aes-ccm-8 there",
            "the ends disagree on [channel] cid: auto here, small there",
            "the ends disagree on [channel] max_cid: 1023 here, 7 there",
            "the ends disagree on [channel] profiles: uncompressed,rtp,udp,esp,ip,tcp,rtp-udp-lite,udp-lite,coap \
             here, uncompressed,udp there",
        ]
    );

    let stream = |options: &str| {
        let url = format!("ule+udp://192.0.2.1:7000?{options}");
        of_text(&format!("[carrier]\nurl = \"{url}\"\n[security]\nopen = true\n")).unwrap()
    };
    let crossed = setting(&stream("pid=64&peer-pid=65"), &stream("pid=65&peer-pid=64"));
    assert_eq!(crossed, Vec::<String>::new());
    assert_eq!(
        setting(&stream("pid=64&peer-pid=65"), &stream("pid=64&peer-pid=64")),
        [
            "the ends disagree on the PID from there to here: heard on PID 0x0041 here, sent on PID 0x0040 there"
        ]
    );

    let site = |own: &str| of_text(&mesh(own, "open = true", "")).unwrap();
    assert_eq!(setting(&site("own = 1"), &site("own = 2")), Vec::<String>::new());
    assert_eq!(setting(&site("own = 1"), &site("")), Vec::<String>::new());
    assert_eq!(
        setting(&site("own = 1"), &site("own = 1")),
        ["the ends disagree on [mesh] own, which must differ: 1 here, 1 there"]
    );
    let moved = of_text(&mesh("own = 2", "open = true", "").replace("0x101", "0x111")).unwrap();
    assert_eq!(
        setting(&site("own = 1"), &moved),
        ["the ends disagree on site 1: on PID 0x0101 here, on PID 0x0111 there"]
    );
}
