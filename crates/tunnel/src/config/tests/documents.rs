//! Files: known keys, shared files, and errors.

use std::path::Path;

use proptest::prelude::*;

use super::super::{Settings, keys, site_config, templates::Template};
use super::{complains, of_text, surroundings};
use crate::site_config::{Others, SiteConfig};

#[test]
fn an_unknown_key_is_told_with_its_line_and_its_neighbour() {
    for (text, words) in [
        (
            "[inside]\nadress = \"10.9.0.1/30\"\n",
            &["/etc/thinair/sat.toml:2: [inside] adress", "`address`?"][..],
        ),
        ("[inside]\n\n\nfoo = 1\n", &["sat.toml:4", "the keys are tun, tap"]),
        ("[channel]\nttl = 4\n", &["`ttl` belongs to [carrier]"]),
        ("[carier]\nurl = 1\n", &["sat.toml:1: [carier]", "did you mean [carrier]?"]),
        ("mtu = 1400\n", &["`mtu` is a key of [inside]"]),
        ("[zebra]\n", &["the sections are [inside], [carrier]"]),
        ("[peers]\n", &["did you mean [[peer]]?"]),
        ("[peer]\nname = \"a\"\n", &["write [[peer]]"]),
        ("[[inside]]\n", &["write [inside]"]),
        ("inside = 1\n", &["write [inside] above its keys"]),
        ("peer = [1]\n", &["is not a section"]),
        ("[inside]\ntun = \"a\"\ntun = \"b\"\n", &["sat.toml:3: not valid TOML"]),
        ("[inside\n", &["sat.toml:1: not valid TOML"]),
        ("[inside]\nmtu = { a = 1 }\n", &["a string, a number"]),
        (
            "[inside]\nmtu = [1, 2]\n[carrier]\nurl = \"udp://192.0.2.1:1\"\n[security]\nkey = \"k\"\n",
            &["is a list"],
        ),
        ("[inside]\nmtu = 99999999999999999999999999999999999999999\n", &["too large"]),
        ("[security]\nintegrity_below = \"crc32\"\n", &["unknown key"]),
        ("[channel]\nintegrity_below = \"crc32\"\n", &["unknown key"]),
        ("", &["no carrier is given"]),
    ] {
        complains(of_text(text), words);
    }
}

#[test]
fn paths_in_a_file_start_at_its_folder() {
    let config = of_text("[carrier]\nurl = \"udp://192.0.2.1:1\"\n[security]\nkey = \"a.key\"\n").unwrap();
    let crate::site_config::Security::Key { path, .. } = config.security else { panic!() };
    assert_eq!(path.as_deref(), Some(Path::new("/etc/thinair/a.key")));
}

#[test]
fn arguments_replace_what_the_file_tells() {
    let text = "[inside]\ntun = \"a\"\nmtu = 1300\n[carrier]\nurl = \"ule+udp://192.0.2.1:1?ts=2&flush=1ms\"\nmtu = 1400\n\
                [security]\nopen = true\n";
    let mut settings = Settings::read(Path::new("sat.toml"), text).unwrap();
    settings.set("inside", "tun", "--tun", "b");
    settings.set("carrier", "url", "CARRIER", "ule+udp://192.0.2.7:2?ts=3&mtu=1000");
    let config = site_config(&settings, &surroundings()).unwrap();
    assert_eq!((config.inside.name.as_str(), config.inside.mtu), ("b", Some(1_300)));
    let crate::site_config::Carrier::Udp { packaging, mtu, .. } = &config.carrier else { panic!() };
    assert_eq!(*mtu, 1_000);
    assert!(
        matches!(packaging, crate::site_config::Packaging::Ts { per_datagram: 3, flush, .. } if flush.is_zero())
    );
}

fn with_shared(own: &str, shared: &str) -> Result<SiteConfig, crate::config::ConfigError> {
    let mut settings = Settings::read(Path::new("/etc/thinair/sat.toml"), own)?;
    let include = settings.include()?.unwrap();
    assert_eq!(include, Path::new("/etc/thinair/shared.toml"));
    settings.add_shared(&include, shared)?;
    site_config(&settings, &surroundings())
}

const OWN: &str = "[channel]\ninclude = \"shared.toml\"\n[security]\nkey = \"k\"\n";

#[test]
fn a_shared_file_has_nothing_of_one_end_alone() {
    let shared = "[carrier]\nurl = \"udp://192.0.2.1:1\"\n[channel]\nmax_cid = 7\n";
    assert_eq!(with_shared(OWN, shared).unwrap().channel.max_cid, 7);
    for section in keys::SECTIONS {
        for keys::Key { name: key, of, .. } in section.keys {
            let text = format!("{}\n{key} = \"1\"\n", section.title());
            let read = Settings::new().add_shared(Path::new("shared.toml"), &text);
            assert_eq!(read.is_err(), *of == keys::Of::OneEnd, "{} {key}", section.title());
        }
    }
    complains(
        with_shared(OWN, "[inside]\ntun = \"a\"\n"),
        &["shared.toml:2: [inside] tun", "belongs to one end"],
    );
    complains(with_shared(OWN, "[channel]\ninclude = \"a\"\n"), &["belongs to one end"]);
    let twice = with_shared(&format!("{OWN}tag = 8\n"), "[security]\ntag = 16\n");
    complains(twice, &["shared.toml:2", "is also set by /etc/thinair/sat.toml:5", "remove one"]);
}

#[test]
fn every_template_is_a_plan() {
    for template in Template::ALL {
        let text = template.text();
        let config = match template {
            Template::Shared => continue,
            Template::Mesh => with_shared(text, Template::Shared.text()),
            _ => of_text(text),
        };
        let config = config.unwrap_or_else(|error| panic!("{template:?}: {error}"));
        if template == Template::Mesh {
            assert!(
                matches!(&config.others, Others::Mesh(mesh) if mesh.sites.len() == 2),
                "{:?}",
                config.others
            );
        }
    }
}

/// Keys of `[channel]` after a `#`, except examples.
#[test]
fn a_channel_in_an_example_shows_the_defaults() {
    for (template, examples) in [(Template::Pair, &["pad"][..]), (Template::Hub, &[])] {
        let text = template.text();
        let (head, rest) = text.split_once("\n[channel]").unwrap();
        let (channel, end) = rest.split_once("\n[").unwrap();
        let given = channel.lines().map(|line| match line.strip_prefix("# ") {
            Some(key) if !examples.contains(&key.split(' ').next().unwrap()) => key,
            _ => line,
        });
        let given = format!("{head}\n[channel]{}\n[{end}", given.collect::<Vec<_>>().join("\n"));
        assert_ne!(given, text);
        let channel = |text| format!("{:?}", of_text(text).unwrap().channel);
        assert_eq!(channel(&given), channel(text), "{template:?}");
    }
}

/// Keys after a `#` in an example are valid as well, each by itself.
#[test]
fn every_key_that_a_template_leaves_out_is_right() {
    let mut tried = 0;
    for template in Template::ALL {
        let lines: Vec<_> = template.text().lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let is_key = |line: &&str| line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
            let Some(key) = line.strip_prefix("# ").filter(is_key) else { continue };
            let mut lines = lines.clone();
            lines[number] = key;
            let name = key.split(' ').next().unwrap();
            // `key` instead of `open`.
            if (template, name) == (Template::OneWay, "key") {
                lines.retain(|line| !line.starts_with("open = "));
            }
            let text = lines.join("\n");
            let config = match template {
                Template::Shared => with_shared(Template::Mesh.text(), &text),
                Template::Mesh => with_shared(&text, Template::Shared.text()),
                _ => of_text(&text),
            };
            if let Err(error) = config {
                panic!("{template:?}: {key}: {error}");
            }
            tried += 1;
        }
    }
    assert!(tried > 25, "{tried}");
}

/// The configurations shown in the manual.
#[test]
fn every_configuration_of_the_manual_is_a_plan() {
    let manual = include_str!("../../../../../docs/tunnel.md");
    let mut blocks =
        manual.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).peekable();
    let (mut tried, mut shared) = (0, None);
    assert!(blocks.peek().is_some());
    for block in blocks {
        tried += 1;
        if block.starts_with("# shared.toml") {
            shared = Some(block);
            continue;
        }
        let config = if block.contains("include = ") {
            with_shared(block, shared.expect("the shared file stands before those that include it"))
        } else {
            of_text(block)
        };
        if let Err(error) = config {
            panic!("{error}\n{block}");
        }
    }
    assert!(tried >= 6, "{tried}");
}

/// Parts of files, so that more than the first line is parsed.
fn pieces() -> impl Strategy<Value = String> {
    let known: Vec<String> = keys::SECTIONS
        .iter()
        .flat_map(|section| {
            let keys = section.names().map(|key| format!("{key} = "));
            std::iter::once(section.title() + "\n").chain(keys)
        })
        .chain(
            [
                "\n",
                "\"",
                "[",
                "]",
                ",",
                "=",
                "#",
                "'''",
                "true\n",
                "1\n",
                "0x40\n",
                "-1\n",
                "\"u\"\n",
                "\"10.0.0.0/8\"\n",
                "\"udp://192.0.2.1:7000\"\n",
                "\"ule+udp://239.1.2.3:1?ts=7&pid=0x40\"\n",
                "\"serial://x\"\n",
                "\"ule+file://-\"\n",
                "[\"10.9.0.1/30\", \"::1/64\"]\n",
                "\"v1,tcp,coap\"\n",
                "\"3ms\"\n",
                "\"gse+udp://[::1]:7?\"\n",
            ]
            .map(str::to_owned),
        )
        .collect();
    proptest::collection::vec(prop_oneof![proptest::sample::select(known), ".{0,6}"], 0..40)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_is_too_much(text in ".{0,200}") {
        let _ = of_text(&text);
    }

    #[test]
    fn no_file_is_too_much(text in pieces()) {
        let _ = of_text(&text);
    }

    #[test]
    fn no_carrier_is_too_much(rest in "[a-z+]{0,8}(://)?[\\[\\]0-9a-f:.%-]{0,20}\\??[a-z=&0-9x-]{0,20}") {
        for security in [super::KEY, super::OPEN, super::INSECURE] {
            let _ = super::of_arguments(&rest, &[security]);
        }
    }

    #[test]
    fn no_value_is_too_much(value in "[ -~]{0,24}", number in 0_usize..100) {
        let all: Vec<_> = keys::SECTIONS
            .iter()
            .filter(|section| !section.repeated)
            .flat_map(|section| section.names().map(|key| (section.name, key)))
            .collect();
        let (section, key) = all[number % all.len()];
        let _ = super::of_arguments("ule+udp://192.0.2.1:7000", &[super::OPEN, (section, key, &value)]);
    }
}
