//! Three sites that broadcast to a group, and hear each other.

use std::fs;

use thinair_os::Namespace;

use super::bench::{End, Folder, run, thinair, wait_for};

/// What the sites have in common: a group on loopback, and who there is.
fn shared(url: &str, with_pids: bool) -> String {
    let mut shared =
        format!("[carrier]\nurl = \"{url}\"\nttl = 1\n[channel]\nprofiles = [\"v1\", \"coap\"]\n");
    for id in 1..=3 {
        let pid = if with_pids { format!("pid = 0x10{id}\n") } else { String::new() };
        let allowed = format!("allowed = [\"10.9.0.{id}/32\", \"fd09::{id}/128\"]\n");
        shared += &format!("[[site]]\nid = {id}\nname = \"site{id}\"\n{pid}{allowed}");
    }
    shared
}

#[test]
fn sites_of_a_group_key_hear_each_other() {
    all_hear_each_other("mesh-udp", &shared("udp://239.9.0.1:5000", false), "key = \"mesh.key\"");
}

#[test]
fn sites_of_an_open_stream_hear_each_other() {
    all_hear_each_other("mesh-ule", &shared("ule+udp://239.9.0.1:5000", true), "open = true");
}

fn all_hear_each_other(name: &str, shared: &str, security: &str) {
    if thinair().is_none() {
        return;
    }
    let folder = Folder::new(name);
    super::bench::key(&folder, "mesh.key");
    fs::write(folder.path("shared.toml"), shared).unwrap();
    let namespace = |side: String| {
        let namespace = Namespace::create(&format!("thinair-{}-{name}-{side}", std::process::id())).unwrap();
        namespace.quiet().unwrap();
        namespace
    };
    let outside = namespace("out".to_owned());
    let inside = [1, 2, 3].map(|id| namespace(id.to_string()));
    let start = |id: usize| {
        let file = folder.path(&format!("site{id}.toml"));
        let text = format!(
            "[inside]\naddress = [\"10.9.0.{id}/24\", \"fd09::{id}/64\"]\n[carrier]\niface = \"lo\"\n[security]\n\
             {security}\n[mesh]\nown = {id}\n[channel]\ninclude = \"shared.toml\"\n"
        );
        fs::write(&file, text).unwrap();
        let state = folder.path(&format!("state{id}"));
        let inside = inside[id - 1].called();
        let mut arguments = vec!["--config", &file, "--netns", &inside];
        if security.starts_with("key") {
            arguments.extend(["--state", &state]);
        }
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        End::start(&outside, &folder, &format!("site{id}"), &arguments)
    };
    let mut ends = [1, 2, 3].map(|id| Some(start(id)));
    let all_through = |ends: &[Option<End>; 3]| {
        for from in 1..=3 {
            for to in (1..=3).filter(|&to| to != from) {
                for address in [format!("10.9.0.{to}"), format!("fd09::{to}")] {
                    let ping = ["ping", "-c", "1", "-W", "1", &address];
                    let through = wait_for(20, || run(&inside[from - 1], 5, &ping).status.success());
                    let told = || ends.iter().flatten().map(|end| end.status()["drops"].to_string() + "\n");
                    assert!(through, "{from} to {address}\n{}", told().collect::<String>());
                }
            }
        }
    };
    all_through(&ends);
    for (end, id) in ends.iter().flatten().zip(1..) {
        let status = end.status();
        let heard = |peer: &serde_json::Value| peer["received"]["packets"].as_u64().unwrap_or(0);
        let sites: Vec<_> =
            status["peers"].as_array().unwrap().iter().filter(|peer| peer["kind"] == "site").collect();
        println!("{name}: site {id} heard {:?}", sites.iter().map(|peer| heard(peer)).collect::<Vec<_>>());
        assert_eq!(sites.len(), 2, "{}", status["peers"]);
        assert!(sites.iter().all(|peer| heard(peer) > 0), "{}", status["peers"]);
    }
    // One that was killed, and comes with a new epoch.
    ends[1].take().unwrap().end("-KILL");
    ends[1] = Some(start(2));
    all_through(&ends);
}
