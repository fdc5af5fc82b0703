//! Traffic of an office: DNS, a web page, ssh, a call, MQTT.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use super::place::{HOST, OfficePath, OfficePlace};
use super::{OfficeFigure, call, median};
use thinair_tests::site::{folder, run};

/// Services in the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum OfficeService {
    Dns,
    Web,
    Login,
    Keys,
    Call,
    Mqtt,
}

/// Amount of traffic of each.
pub(crate) struct Amount {
    pub(crate) lookups: usize,
    pub(crate) keys: usize,
    /// RTP packets per direction, one every 20 ms.
    pub(crate) packets: u16,
    pub(crate) messages: usize,
}

/// Objects of the page, and their sizes in octets.
pub(crate) fn page() -> Vec<(String, usize)> {
    let objects = (1..=8).map(|number| (format!("{number}.jpg"), number * 3_000));
    [("index.html".to_owned(), 12_000)].into_iter().chain(objects).collect()
}

impl OfficeService {
    pub(crate) const ALL: [Self; 6] = [Self::Dns, Self::Web, Self::Login, Self::Keys, Self::Call, Self::Mqtt];

    pub(crate) fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Dns => &["dnsmasq", "dig"],
            Self::Web => &["python3", "curl"],
            Self::Login | Self::Keys => &["sshd", "ssh"],
            Self::Call => &[],
            Self::Mqtt => &["mosquitto", "mosquitto_pub", "mosquitto_sub"],
        }
    }

    pub(crate) fn title(self, amount: &Amount) -> String {
        match self {
            Self::Dns => format!("DNS, {} lookups", amount.lookups),
            Self::Web => format!("web page, {} objects, 120,000 octets", page().len()),
            Self::Login => "ssh, login and a command".to_owned(),
            Self::Keys => format!("ssh, {} keystrokes, one at a time", amount.keys),
            Self::Call => format!("call, {} s, both ways", amount.packets / 50),
            Self::Mqtt => format!("MQTT, {} messages, one a second", amount.messages),
        }
    }

    /// Command of the server at the host of the Internet.
    pub(crate) fn server(self) -> Option<String> {
        let folder = folder();
        let folder = folder.to_str().unwrap();
        match self {
            Self::Dns => Some(format!(
                "dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts --user=root --pid-file= \
                 --bind-interfaces --listen-address={HOST} --address=/example/{HOST}"
            )),
            Self::Web => Some(format!("python3 -m http.server --bind {HOST} --directory {folder}/page 80")),
            Self::Login => Some(format!("/usr/sbin/sshd -D -e -f {folder}/sshd.conf")),
            Self::Keys | Self::Call => None,
            Self::Mqtt => Some(format!("mosquitto -c {folder}/mosquitto.conf")),
        }
    }

    pub(crate) fn run(self, place: &OfficePlace, amount: &Amount) -> Vec<OfficeFigure> {
        match self {
            Self::Dns => dns(place, amount.lookups),
            Self::Web => web(place),
            Self::Login => login(place),
            Self::Keys => keys(place, amount.keys),
            Self::Call => call::run(place, amount.packets),
            Self::Mqtt => mqtt(place, amount.messages),
        }
    }
}

/// Checks that hold for any losses of the link.
pub(crate) fn check(service: OfficeService, way: OfficePath, figures: &[OfficeFigure]) {
    let of =
        |name: &str| &figures.iter().find(|figure| figure.0 == name).unwrap_or_else(|| panic!("{name}")).1;
    match service {
        OfficeService::Dns => assert_eq!(of("lookups without an answer"), &[0.0]),
        OfficeService::Call => {
            assert_eq!(of("packets that differ"), &[0.0, 0.0]);
            for direction in 0..2 {
                let [octets, datagrams, lost, arrived, missing] = [
                    "octets, up / down",
                    "datagrams, up / down",
                    "of these lost by the link",
                    "packets that arrive",
                    "packets that do not arrive",
                ]
                .map(|name| of(name)[direction]);
                let packets = arrived + missing;
                // Packets that wait at the same time share a datagram, and may be lost with it.
                let together = (packets - datagrams).max(0.0);
                assert!(
                    missing <= lost + together,
                    "{way:?}: {missing} packets are missing; the link lost {lost}"
                );
                // 40 of 60 octets are headers; IP, UDP and encryption add 48, and compression saves at least 30.
                let most = if way.is_ours() { 60 + 48 - 30 } else { 60 + 54 };
                assert!(
                    octets <= packets * f64::from(most),
                    "{way:?}: {octets} octets for {packets} packets"
                );
            }
        }
        OfficeService::Mqtt => assert_eq!(of("messages that do not arrive"), &[0.0]),
        OfficeService::Web | OfficeService::Login | OfficeService::Keys => {}
    }
}

fn at_field(place: &OfficePlace, line: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["90", "ip", "netns", "exec", &place.field]).args(line.split_whitespace());
    command
}

fn millis(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 1e3).round()
}

fn dns(place: &OfficePlace, lookups: usize) -> Vec<OfficeFigure> {
    let mut times = Vec::new();
    for number in 0..lookups {
        let started = Instant::now();
        let line = format!("dig +short +timeout=3 +tries=6 @{HOST} host{number}.example");
        let output = at_field(place, &line).output().unwrap();
        // Timeouts precede the answer.
        if String::from_utf8_lossy(&output.stdout).lines().last() == Some(HOST) {
            times.push(millis(started));
        }
    }
    let missing = lookups - times.len();
    vec![
        ("median lookup, ms", vec![median(times.into_iter())]),
        ("lookups without an answer", vec![missing as f64]),
    ]
}

/// Fetches like a browser: the page, then its objects on six connections.
fn web(place: &OfficePlace) -> Vec<OfficeFigure> {
    let loaded = folder().join(&place.field);
    std::fs::create_dir_all(&loaded).unwrap();
    let objects: Vec<String> = page().into_iter().map(|(object, _)| object).collect();
    let started = Instant::now();
    for objects in [&objects[..1], &objects[1..]] {
        let urls: String = objects.iter().map(|object| format!(" -O http://www.example/{object}")).collect();
        let line = format!("curl --silent --show-error --fail --parallel --parallel-max 6{urls}");
        let output = at_field(place, &line).current_dir(&loaded).output().unwrap();
        assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stderr), place.logs());
    }
    let took = millis(started);
    for object in objects {
        let [sent, received] =
            [folder().join("page"), loaded.clone()].map(|from| std::fs::read(from.join(&object)).unwrap());
        assert!(sent == received, "{object} differs");
    }
    vec![("page load, ms", vec![took])]
}

fn ssh(place: &OfficePlace, arguments: &str) -> Command {
    let key = folder().join("user");
    let options =
        "-o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR";
    at_field(place, &format!("ssh -F none -i {} {options} {arguments}", key.display()))
}

fn login(place: &OfficePlace) -> Vec<OfficeFigure> {
    let started = Instant::now();
    let output = ssh(place, &format!("root@{HOST} echo done")).output().unwrap();
    assert!(output.stdout == b"done\n", "{}{}", String::from_utf8_lossy(&output.stderr), place.logs());
    vec![("time until the end, ms", vec![millis(started)])]
}

/// The terminal of the other end echoes each key.
fn keys(place: &OfficePlace, keys: usize) -> Vec<OfficeFigure> {
    let mut ssh = ssh(place, &format!("-tt root@{HOST} echo ready; cat >/dev/null"));
    let mut ssh = ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut typed, mut shown) = (ssh.stdin.take().unwrap(), ssh.stdout.take().unwrap());
    let mut until = |last: u8| {
        let mut octet = [0];
        while octet[0] != last {
            shown.read_exact(&mut octet).unwrap_or_else(|error| panic!("{error}: {}", place.logs()));
        }
    };
    until(b'\n');
    let mut times = Vec::new();
    for key in (b'a'..=b'z').cycle().take(keys) {
        let started = Instant::now();
        typed.write_all(&[key]).unwrap();
        until(key);
        times.push(millis(started));
    }
    end(&mut ssh);
    vec![("median echo, ms", vec![median(times.into_iter())])]
}

fn end(timeout: &mut Child) {
    let _ = run(&format!("kill -TERM {}", timeout.id()));
    let _ = timeout.wait();
}

/// The field site publishes on one connection with QoS 1; the subscriber is beside the broker.
fn mqtt(place: &OfficePlace, messages: usize) -> Vec<OfficeFigure> {
    let line = format!("mosquitto_sub -h {HOST} -t field -q 1 -C {messages} -W 60 -F %U:%p");
    let subscriber = Command::new("ip")
        .args(["netns", "exec", &place.internet])
        .args(line.split_whitespace())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let line = format!("mosquitto_pub -h {HOST} -t field -q 1 -l");
    let mut publisher = at_field(place, &line).stdin(Stdio::piped()).spawn().unwrap();
    let mut published = publisher.stdin.take().unwrap();
    for _ in 0..messages {
        std::thread::sleep(Duration::from_secs(1));
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        writeln!(published, "{now}").unwrap();
    }
    drop(published);
    let received = subscriber.wait_with_output().unwrap();
    publisher.wait().unwrap();
    let received = String::from_utf8(received.stdout).unwrap();
    let delays: Vec<f64> = received
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(arrived, sent)| (arrived.parse::<f64>().unwrap() - sent.parse::<f64>().unwrap()) * 1e3)
        .map(f64::round)
        .collect();
    let missing = messages - delays.len();
    vec![
        ("median delay, ms", vec![median(delays.into_iter())]),
        ("messages that do not arrive", vec![missing as f64]),
    ]
}
