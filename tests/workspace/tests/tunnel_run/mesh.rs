//! Three sites that broadcast to a group, and receive each other.

use std::collections::VecDeque;
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use thinair_os::udp::options::{ToGroups, bind_shared, join, send_to_groups};
use thinair_os::{Interface, Namespace};

use super::bench::{BenchFolder, SetOnDrop, TunnelDaemon, key, run, thinair, wait_for};
use super::traffic::numbered_between;

const GROUP: [u8; 4] = [239, 9, 0, 1];
const PORT: u16 = 5000;

const KEY: &str = "key = \"mesh.key\"";
const OPEN: &str = "open = true";

/// Sites of a mesh, whose group is on the loopback interface of a namespace.
struct MeshBench {
    ends: [Option<TunnelDaemon>; 3],
    inside: [Namespace; 3],
    outside: Namespace,
    folder: BenchFolder,
}

impl MeshBench {
    fn started(name: &str, scheme: &str, security: [&str; 3]) -> Self {
        let folder = BenchFolder::new(name);
        key(&folder, "mesh.key");
        key(&folder, "other.key");
        let mut shared = format!("[carrier]\nurl = \"{scheme}://239.9.0.1:{PORT}\"\nttl = 1\n");
        for id in 1..=3 {
            let pid = if scheme.starts_with("ule") { format!("pid = 0x10{id}\n") } else { String::new() };
            let allowed = format!("allowed = [\"10.9.0.{id}/32\", \"fd09::{id}/128\"]\n");
            shared += &format!("[[site]]\nid = {id}\nname = \"site{id}\"\n{pid}{allowed}");
        }
        fs::write(folder.path("shared.toml"), shared).unwrap();
        for (security, id) in security.iter().zip(1..) {
            let text = format!(
                "[inside]\naddress = [\"10.9.0.{id}/24\", \"fd09::{id}/64\"]\n[carrier]\niface = \"lo\"\n\
                 [security]\n{security}\n[mesh]\nown = {id}\n[channel]\ninclude = \"shared.toml\"\n"
            );
            fs::write(folder.path(&format!("site{id}.toml")), text).unwrap();
        }
        let namespace = |side: &str| {
            let namespace = Namespace::create(&format!("thinair-{}-{name}-{side}", std::process::id()));
            let namespace = namespace.unwrap();
            namespace.quiet().unwrap();
            namespace
        };
        let (inside, outside) = (["1", "2", "3"].map(namespace), namespace("out"));
        let mut mesh = Self { ends: [None, None, None], inside, outside, folder };
        for (site, security) in security.iter().enumerate() {
            mesh.start(site, *security != OPEN);
        }
        mesh
    }

    fn start(&mut self, site: usize, has_epochs: bool) {
        let name = format!("site{}", site + 1);
        let (file, state) =
            (self.folder.path(&format!("{name}.toml")), self.folder.path(&format!("{name}.state")));
        let mut arguments =
            ["--config", &file, "--netns", &self.inside[site].called()].map(str::to_owned).to_vec();
        if has_epochs {
            arguments.extend(["--state".to_owned(), state]);
        }
        self.ends[site] = Some(TunnelDaemon::start(&self.outside, &self.folder, &name, &arguments));
    }

    /// True if a ping from one site is answered by another within this many seconds, by each version of IP.
    fn is_through(&self, from: usize, to: usize, seconds: u64) -> bool {
        [format!("10.9.0.{}", to + 1), format!("fd09::{}", to + 1)].iter().all(|address| {
            let ping = ["ping", "-c", "1", "-W", "1", address];
            wait_for(seconds, || run(&self.inside[from], 5, &ping).status.success())
        })
    }

    fn all_are_through(&self) {
        let begun = Instant::now();
        for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
            assert!(self.is_through(from, to, 20), "{from} to {to}\n{}", self.reported());
        }
        println!("all pairs after {:?}", begun.elapsed());
    }

    fn status(&self, site: usize) -> Value {
        self.ends[site].as_ref().unwrap().status()
    }

    fn reported(&self) -> String {
        (0..3).map(|site| self.status(site)["drops"].to_string() + "\n").collect()
    }

    /// Packets that a site has received from each of the others.
    fn heard(&self, site: usize) -> Vec<u64> {
        let status = self.status(site);
        let peers = status["peers"].as_array().unwrap().iter();
        let sites = peers.filter(|peer| peer["kind"] == "site");
        sites.map(|peer| peer["received"]["packets"].as_u64().unwrap()).collect()
    }
}

#[test]
fn sites_of_a_group_key_hear_each_other() {
    all_hear_each_other("mesh-udp", "udp", KEY);
}

#[test]
fn sites_of_a_sealed_stream_hear_each_other() {
    all_hear_each_other("mesh-ule", "ule+udp", KEY);
}

#[test]
fn sites_of_an_open_stream_hear_each_other() {
    all_hear_each_other("mesh-open", "ule+udp", OPEN);
}

fn all_hear_each_other(name: &str, scheme: &str, security: &str) {
    if thinair().is_none() {
        return;
    }
    let mut mesh = MeshBench::started(name, scheme, [security; 3]);
    mesh.all_are_through();
    for site in 0..3 {
        let heard = mesh.heard(site);
        println!("{name}: site {site} has heard {heard:?}");
        assert!(heard.len() == 2 && heard.iter().all(|&packets| packets > 0), "{heard:?}");
    }
    // A site that was killed restarts with a new epoch.
    mesh.ends[1].take().unwrap().end("-KILL");
    mesh.start(1, security != OPEN);
    mesh.all_are_through();
}

#[test]
fn a_site_with_another_key_hears_nobody() {
    if thinair().is_none() {
        return;
    }
    let mesh = MeshBench::started("mesh-key", "udp", [KEY, KEY, "key = \"other.key\""]);
    assert!(mesh.is_through(0, 1, 20) && mesh.is_through(1, 0, 20), "{}", mesh.reported());
    for (from, to) in [(0, 2), (2, 0)] {
        assert!(!mesh.is_through(from, to, 1), "{from} to {to}");
    }
    for site in 0..3 {
        let drops = &mesh.status(site)["drops"];
        assert!(drops["handshake"].as_u64() > Some(0), "{drops}");
    }
    assert_eq!(mesh.heard(2), [0, 0]);
}

#[test]
fn what_a_group_hears_again_is_not_delivered_again() {
    if thinair().is_none() {
        return;
    }
    let mesh = MeshBench::started("mesh-again", "udp", [KEY; 3]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let repeater = scope.spawn(|| repeat(&mesh.outside, &stop));
        let ended = SetOnDrop(&stop);
        mesh.all_are_through();
        let (mesh, after) = (&mesh, Duration::from_secs(2));
        let flows = [(0, 1, 9_101), (1, 2, 9_102), (2, 0, 9_103)].map(|(from, to, port)| {
            let address = |site: usize| SocketAddr::from(([10, 9, 0, site as u8 + 1], port));
            let ends = ((&mesh.inside[from], address(from)), (&mesh.inside[to], address(to)));
            scope.spawn(move || numbered_between(ends.0, ends.1, 1_000, after))
        });
        for flow in flows {
            let delivered = flow.join().unwrap();
            assert_eq!((delivered.again, delivered.other), (0, 0), "{delivered:?}");
            assert!(delivered.once * 10 >= delivered.sent * 9, "{delivered:?}\n{}", mesh.reported());
        }
        drop(ended);
        let repeated = repeater.join().unwrap();
        println!("{repeated} datagrams were repeated\n{}", mesh.reported());
        assert!(repeated > 1_000, "{repeated}");
    });
    for site in 0..3 {
        let drops = &mesh.status(site)["drops"];
        assert!(drops["replayed"].as_u64() > Some(500), "{drops}");
    }
}

#[test]
fn sites_that_were_killed_accept_nothing_that_was_recorded() {
    if thinair().is_none() {
        return;
    }
    let mut mesh = MeshBench::started("mesh-kill", "udp", [KEY; 3]);
    let stop = AtomicBool::new(false);
    let recorded = std::thread::scope(|scope| {
        let recorder = scope.spawn(|| record(&mesh.outside, &stop));
        let ended = SetOnDrop(&stop);
        mesh.all_are_through();
        let pings = run(&mesh.inside[0], 20, &["ping", "-c", "8", "-i", "0.2", "10.9.0.2"]);
        assert!(pings.status.success(), "{}", mesh.reported());
        drop(ended);
        recorder.join().unwrap()
    });
    for end in &mut mesh.ends {
        end.take().unwrap().end("-KILL");
    }
    mesh.start(1, true);
    let (_, mouth) = group_sockets(&mesh.outside);
    for datagram in &recorded {
        mouth.send_to(datagram, (IpAddr::from(GROUP), PORT)).unwrap();
    }
    let dropped = |reason: &str| mesh.status(1)["drops"][reason].as_u64().unwrap();
    assert!(wait_for(10, || dropped("replayed") >= 8), "{}", mesh.status(1)["drops"]);
    assert_eq!(mesh.heard(1), [0, 0], "{} datagrams were sent again", recorded.len());
    // The others are heard again.
    mesh.start(0, true);
    mesh.start(2, true);
    mesh.all_are_through();
}

/// Returns the datagrams of the group.
fn record(namespace: &Namespace, stop: &AtomicBool) -> Vec<Vec<u8>> {
    let (ears, _) = group_sockets(namespace);
    let (mut recorded, mut room) = (Vec::new(), vec![0; 2_000]);
    while !stop.load(Ordering::Relaxed) {
        if let Ok((len, _)) = ears.recv_from(&mut room) {
            recorded.push(room[..len].to_vec());
        }
    }
    recorded
}

/// Returns a socket that receives what is sent to the group, and one that sends to it.
fn group_sockets(namespace: &Namespace) -> (UdpSocket, UdpSocket) {
    let open = || {
        let loopback = Interface::named("lo").unwrap();
        let ears = bind_shared((GROUP, PORT).into()).unwrap();
        join(&ears, IpAddr::from(GROUP), Some(&loopback)).unwrap();
        ears.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let mouth = UdpSocket::bind("127.0.0.1:0").unwrap();
        let how = ToGroups { interface: Some(loopback), hops: 1, heard_here: true };
        send_to_groups(&mouth, IpAddr::from(GROUP), &how).unwrap();
        (ears, mouth)
    };
    namespace.within(open).unwrap()
}

/// Repeats received datagrams to the group, a second later. Returns their number.
fn repeat(namespace: &Namespace, stop: &AtomicBool) -> usize {
    let (ears, mouth) = group_sockets(namespace);
    let own = mouth.local_addr().unwrap();
    let (mut later, mut room, mut repeated) = (VecDeque::new(), vec![0; 2_000], 0);
    while !stop.load(Ordering::Relaxed) {
        if let Ok((len, from)) = ears.recv_from(&mut room)
            && from != own
        {
            later.push_back((Instant::now() + Duration::from_secs(1), room[..len].to_vec()));
        }
        while later.front().is_some_and(|(at, _)| *at <= Instant::now()) {
            let (_, datagram) = later.pop_front().unwrap();
            repeated += usize::from(mouth.send_to(&datagram, (IpAddr::from(GROUP), PORT)).is_ok());
        }
    }
    repeated
}
