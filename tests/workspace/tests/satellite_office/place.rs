//! Field site, gateway, and a host of the Internet beyond it; a satellite link between the first two.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::OfficeFigure;
use super::services::OfficeService;
use thinair_tests::site::{folder, run, sh, thinair, within};

/// Host of the Internet, which only the gateway reaches.
pub(crate) const HOST: &str = "203.0.113.9";

/// GEO link: 600 ms round trip; side A, the field site, sends 512 kbit/s and receives 2 Mbit/s.
const LINK: &str = "--rate-ab 512k --rate-ba 2M --delay 300ms --loss 3 --queue 100 --mtu 1500 --no-realtime";

/// Time limit of a process in seconds, even if the test is killed.
const LIMIT: &str = "200";

/// Time without packets after which the link is idle: more than a round trip.
const QUIET: Duration = Duration::from_millis(1_000);

/// Path of packets from the field site to the gateway.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum OfficePath {
    /// Routed over the link.
    Plain,
    Tunnel,
    /// Tunnel without profile `tcp`.
    TunnelWithoutTcp,
    OpenVpn,
}

impl OfficePath {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Tunnel => "thinair",
            Self::TunnelWithoutTcp => "thinair, v1 and coap",
            Self::OpenVpn => "OpenVPN",
        }
    }

    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::Tunnel | Self::TunnelWithoutTcp)
    }

    pub(crate) fn programs(self) -> &'static [&'static str] {
        match self {
            Self::OpenVpn => &["openvpn", "openssl"],
            _ => &[],
        }
    }
}

/// True if a program is installed; otherwise prints its name.
pub(crate) fn has(program: &str) -> bool {
    let there = run(&format!("command -v {program}")).status.success();
    if !there {
        println!("left out: there is no {program}");
    }
    there
}

/// Creates the files that all sites share: keys, certificates and the web page.
pub(crate) fn prepare(services: &[OfficeService]) {
    let folder = folder();
    let folder = folder.to_str().unwrap();
    sh(&format!("{} tunnel keygen {folder}/sat.key", thinair()));
    if services.contains(&OfficeService::Login) {
        // sshd rejects accounts whose password begins with `!`.
        sh(&format!(
            "ssh-keygen -q -t ed25519 -N '' -f {folder}/host; ssh-keygen -q -t ed25519 -N '' -f {folder}/user
            mkdir -p /run/sshd; sed -i 's/^root:!/root:*/' /etc/shadow"
        ));
        let config = format!(
            "HostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\nPermitRootLogin yes\nStrictModes no\n\
             UsePAM no\nUseDNS no\nPidFile none\n"
        );
        fs::write(format!("{folder}/sshd.conf"), config).unwrap();
    }
    let broker = format!("listener 1883 {HOST}\nallow_anonymous true\nuser root\n");
    fs::write(format!("{folder}/mosquitto.conf"), broker).unwrap();
    fs::create_dir_all(format!("{folder}/page")).unwrap();
    for (object, octets) in super::services::page() {
        let text: String = (0..octets).map(|at| char::from(b'a' + (at * at / 7 % 26) as u8)).collect();
        fs::write(format!("{folder}/page/{object}"), text).unwrap();
    }
    if has("openssl") {
        for end in ["gateway", "field"] {
            sh(&format!(
                "cd {folder}; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
                 -subj /CN={end} -keyout {end}.pem -out {end}.crt 2>&1
                openssl x509 -in {end}.crt -noout -fingerprint -sha256 | cut -d = -f 2 > {end}.print"
            ));
        }
    }
}

/// Three namespaces with the link, a path through it, and the services.
pub(crate) struct OfficePlace {
    pub(crate) field: String,
    pub(crate) internet: String,
    gateway: String,
    /// Names of the link's interfaces, at the field site and at the gateway.
    link: [String; 2],
    processes: Vec<Process>,
}

impl OfficePlace {
    pub(crate) fn new(number: usize, way: OfficePath, seed: u64, services: &[OfficeService]) -> Self {
        let [field, gateway, internet] =
            ["field", "gateway", "internet"].map(|name| format!("{name}{number}"));
        sh(&format!(
            "for name in {field} {gateway} {internet}; do ip netns add $name; ip -n $name link set lo up; done
            ip link add eth0 netns {gateway} type veth peer name eth0 netns {internet}
            ip -n {gateway} addr add 203.0.113.1/24 dev eth0; ip -n {gateway} link set eth0 up
            ip -n {internet} addr add {HOST}/24 dev eth0; ip -n {internet} link set eth0 up
            ip netns exec {gateway} sysctl -qw net.ipv4.ip_forward=1
            ip netns exec {gateway} nft 'table ip sat {{ chain out {{ type nat hook postrouting priority srcnat; \
            oifname \"eth0\" masquerade; }}; }}'
            mkdir -p /etc/netns/{field}; echo nameserver {HOST} > /etc/netns/{field}/resolv.conf"
        ));
        let line = format!("{} link run --netns {field},{gateway} {LINK} --seed {seed}", thinair());
        let mut processes = vec![Process::start("", &format!("link{number}"), &line)];
        let called = |netns: &str, address: &str| {
            let mut seen = String::new();
            let found = within(10.0, || {
                seen = sh(&format!("ip -n {netns} -o -4 addr show to {address}"));
                !seen.is_empty()
            });
            assert!(found, "{}", processes[0].log());
            seen.split_whitespace().nth(1).unwrap().to_owned()
        };
        let link = [called(&field, "10.9.0.1"), called(&gateway, "10.9.0.2")];
        let mut start = |netns: &str, line: &str| {
            let program = line.split([' ', '/']).find(|word| !word.is_empty()).unwrap();
            processes.push(Process::start(netns, &format!("{netns}-{program}-{}", processes.len()), line));
        };
        for service in services {
            if let Some(line) = service.server() {
                start(&internet, &line);
            }
        }
        let folder = folder();
        let folder = folder.to_str().unwrap();
        match way {
            OfficePath::Plain => {
                sh(&format!("ip -n {field} route add default via 10.9.0.2"));
            }
            OfficePath::Tunnel | OfficePath::TunnelWithoutTcp => {
                let profiles = if way == OfficePath::Tunnel { "" } else { "--profiles v1,coap " };
                let common = format!("--key {folder}/sat.key {profiles}--tun air{number}");
                let run = format!("{} tunnel run", thinair());
                start(&gateway, &format!("{run} udp://:7000 {common}g --address 10.7.0.1/30"));
                let to = format!("udp://10.9.0.2:7000 {common}f --address 10.7.0.2/30 --route 0.0.0.0/0");
                start(&field, &format!("{run} {to}"));
            }
            OfficePath::OpenVpn => {
                for (netns, end, peer, tls, more) in [
                    (
                        &gateway,
                        "gateway",
                        "field",
                        "server --dh none",
                        "--ifconfig 10.7.0.1 10.7.0.2 --port 1194",
                    ),
                    (
                        &field,
                        "field",
                        "gateway",
                        "client",
                        "--ifconfig 10.7.0.2 10.7.0.1 --nobind --remote 10.9.0.2 1194 \
                         --route 0.0.0.0 128.0.0.0 --route 128.0.0.0 128.0.0.0",
                    ),
                ] {
                    let print = fs::read_to_string(format!("{folder}/{peer}.print")).unwrap();
                    let own = format!(
                        "--cert {folder}/{end}.crt --key {folder}/{end}.pem --peer-fingerprint {}",
                        print.trim()
                    );
                    let cipher = "--cipher AES-128-GCM --data-ciphers AES-128-GCM";
                    start(netns, &format!("openvpn --dev tun --proto udp --tls-{tls} {own} {cipher} {more}"));
                }
            }
        }
        let place = Self { field, internet, gateway, link, processes };
        let reaches =
            || run(&format!("ip netns exec {} ping -c 1 -W 2 {HOST}", place.field)).status.success();
        assert!(within(40.0, reaches), "{way:?}: {}", place.logs());
        place
    }

    /// Last lines of the logs of all processes.
    pub(crate) fn logs(&self) -> String {
        self.processes.iter().map(Process::log).collect()
    }

    /// Runs a service. Returns the figures of the link, then its own.
    pub(crate) fn measure(&self, service: impl FnOnce() -> Vec<OfficeFigure>) -> Vec<OfficeFigure> {
        let before = self.quiet();
        let figures = service();
        let after = self.quiet();
        let [up, down] = [0, 1].map(|end| after[end].since(&before[end]));
        let both = |of: fn(&InterfaceCounters) -> f64| vec![of(&up), of(&down)];
        let mut all = vec![
            ("octets, up / down", both(|counters| counters.sent_octets)),
            ("datagrams, up / down", both(|counters| counters.sent)),
            ("of these lost by the link", vec![up.sent - down.received, down.sent - up.received]),
        ];
        all.extend(figures);
        all
    }

    /// Counters of both ends once no packet is in flight, or after 10 s.
    fn quiet(&self) -> [InterfaceCounters; 2] {
        let mut seen = self.counters();
        for _ in 0..10 {
            std::thread::sleep(QUIET);
            let now = self.counters();
            if now == seen {
                break;
            }
            seen = now;
        }
        seen
    }

    fn counters(&self) -> [InterfaceCounters; 2] {
        [(&self.field, &self.link[0]), (&self.gateway, &self.link[1])].map(|(netns, interface)| {
            let json = sh(&format!("ip -n {netns} -s -j link show dev {interface}"));
            let json: Value = serde_json::from_str(&json).unwrap();
            let of = |way: &str, what: &str| json[0]["stats64"][way][what].as_f64().unwrap();
            // Packets sent by the host's interface, before losses of the link.
            InterfaceCounters {
                sent: of("tx", "packets"),
                sent_octets: of("tx", "bytes"),
                received: of("rx", "packets"),
            }
        })
    }
}

/// Packets of the link's interface at one end.
#[derive(PartialEq)]
struct InterfaceCounters {
    sent: f64,
    sent_octets: f64,
    received: f64,
}

impl InterfaceCounters {
    fn since(&self, before: &Self) -> Self {
        Self {
            sent: self.sent - before.sent,
            sent_octets: self.sent_octets - before.sent_octets,
            received: self.received - before.received,
        }
    }
}

/// Process, ended on drop.
struct Process {
    timeout: Child,
    log: String,
}

impl Process {
    /// Starts a command in a namespace; without a name, in that of the test.
    fn start(netns: &str, name: &str, line: &str) -> Self {
        let log = format!("{}/{name}.log", folder().display());
        let line = if netns.is_empty() { line.to_owned() } else { format!("ip netns exec {netns} {line}") };
        let file = fs::File::create(&log).unwrap();
        let mut command = Command::new("timeout");
        command.args(["--kill-after", "2", LIMIT]).args(line.split_whitespace());
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Self { timeout: command.spawn().unwrap(), log }
    }

    fn log(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap();
        let lines: Vec<&str> = text.lines().rev().take(12).collect();
        format!("{}:\n{}\n", self.log, lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // `timeout` passes the signal on.
        let _ = run(&format!("kill -TERM {}", self.timeout.id()));
        let _ = self.timeout.wait();
    }
}
