//! Two ends of a tunnel: each inside in its own namespace, the carrier in a third one with only loopback.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use thinair_os::serial::Pty;
use thinair_os::{Interface, Namespace, Tun, TunKind};

use super::relay::Relay;

/// Time of a soak in seconds, as `THINAIR_SOAK` has it; 0 without one.
pub(crate) fn soak() -> u64 {
    std::env::var("THINAIR_SOAK").map_or(0, |seconds| seconds.parse().unwrap())
}

/// Time limit of a daemon in seconds, even if the test is killed.
fn limit() -> String {
    (170 + soak()).to_string()
}

/// Interface of each end.
pub(crate) const TUN: &str = "air0";

/// Path of the command, or `None` and a message with the reason that nothing can be tested. The environment may name an
/// existing build.
pub(crate) fn thinair() -> Option<&'static str> {
    static COMMAND: OnceLock<Result<String, String>> = OnceLock::new();
    let found = COMMAND.get_or_init(|| {
        let possible = Namespace::create(&format!("thinair-{}", std::process::id())).and_then(|namespace| {
            namespace.quiet()?;
            Tun::open_in(&namespace, TUN, TunKind::Tun)
        });
        possible.map(|_| thinair_tests::command()).map_err(|why| why.to_string())
    });
    match found {
        Ok(command) => Some(command),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

/// True if a program of a package is installed.
pub(crate) fn has(program: &str, package: &str) -> bool {
    let there = Command::new(program).arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there {
        println!("skipped: what needs {program} (Debian: {package})");
    }
    there
}

/// Runs a command in a namespace, for at most this many seconds.
pub(crate) fn run(namespace: &Namespace, seconds: u32, command: &[&str]) -> Output {
    start(namespace, seconds, command).wait_with_output().unwrap()
}

/// Starts a command in a namespace, for at most this many seconds.
pub(crate) fn start(namespace: &Namespace, seconds: u32, command: &[&str]) -> Child {
    let mut timeout = Command::new("timeout");
    timeout.args(["--signal", "KILL", &seconds.to_string()]).args(command);
    timeout.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    namespace.spawn(&mut timeout).unwrap()
}

/// Ends a command that was [started](start) by SIGTERM, which `timeout` passes on. SIGKILL would end `timeout` alone.
pub(crate) fn stop(mut timeout: Child) {
    let _ = Command::new("kill").arg(timeout.id().to_string()).status();
    let _ = timeout.wait();
}

/// Waits until a condition is true. Returns false after the time limit.
pub(crate) fn wait_for(seconds: u64, mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(seconds);
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Process that a `timeout` has started, which is its only child; 0 if it has already ended.
fn only_child(timeout: &mut Child) -> u32 {
    let path = format!("/proc/{0}/task/{0}/children", timeout.id());
    let mut child = None;
    wait_for(10, || {
        child = fs::read_to_string(&path).ok().and_then(|children| children.trim().parse().ok());
        child.is_some() || timeout.try_wait().unwrap().is_some()
    });
    child.unwrap_or(0)
}

/// Sets a flag on drop, so that a thread ends also after a panic.
pub(crate) struct SetOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Folder, removed on drop.
#[derive(Debug)]
pub(crate) struct BenchFolder(PathBuf);

impl BenchFolder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("thinair-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for BenchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Daemon, ended on drop.
#[derive(Debug)]
pub(crate) struct TunnelDaemon {
    timeout: Child,
    pub(crate) pid: u32,
    status: String,
    log: String,
}

impl TunnelDaemon {
    /// Starts a daemon whose socket is in `outside`, and waits until it is open.
    pub(crate) fn start(outside: &Namespace, folder: &BenchFolder, name: &str, arguments: &[String]) -> Self {
        let (status, log) = (folder.path(&format!("{name}.sock")), folder.path(&format!("{name}.log")));
        let mut command = Command::new("timeout");
        command.args(["--signal", "KILL", &limit(), thinair().unwrap(), "tunnel", "run"]).args(arguments);
        // Long queue: a busy machine delays packets, of which the system must lose none.
        command.args(["--tun", TUN, "--queue", "20000", "--status", &status]);
        command.env("STATE_DIRECTORY", folder.path(&format!("{name}.state")));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(fs::File::options().create(true).append(true).open(&log).unwrap());
        let before = fs::read_to_string(&log).unwrap_or_default().len();
        let mut timeout = outside.spawn(&mut command).unwrap();
        let pid = only_child(&mut timeout);
        let mut end = Self { timeout, pid, status, log };
        let open = wait_for(30, || end.log()[before..].contains("tunnel is open") || end.check_gone());
        assert!(open && !end.check_gone(), "{name} {arguments:?}\n{}", end.log());
        end
    }

    /// Log of the daemon.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn check_gone(&mut self) -> bool {
        self.timeout.try_wait().unwrap().is_some()
    }

    pub(crate) fn check_alive(&mut self) -> bool {
        !self.check_gone()
    }

    /// Sends a signal to the daemon.
    pub(crate) fn signal(&self, signal: &str) {
        let _ = Command::new("kill").args([signal, &self.pid.to_string()]).stderr(Stdio::null()).status();
    }

    /// Ends the daemon by a signal. Returns its exit status.
    pub(crate) fn end(mut self, signal: &str) -> Option<i32> {
        self.signal(signal);
        assert!(wait_for(10, || self.check_gone()), "{signal} does not end it\n{}", self.log());
        self.timeout.wait().unwrap().code()
    }

    /// Status of the daemon, repeatedly requested, as a busy machine may respond late.
    pub(crate) fn status(&self) -> Value {
        let mut reported = None;
        for _ in 0..5 {
            let mut ask = Command::new("timeout");
            ask.args(["10", thinair().unwrap(), "tunnel", "status", &self.status, "--json"]);
            let output = ask.output().unwrap();
            if output.status.success() {
                return serde_json::from_slice(&output.stdout).unwrap();
            }
            reported = Some(output.stderr);
        }
        panic!("{}\n{}", String::from_utf8_lossy(&reported.unwrap()), self.log());
    }

    /// Number of drops for a reason.
    pub(crate) fn drops(&self, reason: &str) -> u64 {
        let status = self.status();
        status["drops"][reason].as_u64().unwrap_or_else(|| panic!("{reason}: {}", status["drops"]))
    }

    /// Path of the status socket.
    pub(crate) fn socket(&self) -> &str {
        &self.status
    }

    /// Resident memory in octets.
    pub(crate) fn memory(&self) -> u64 {
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.pid)).unwrap();
        statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
    }
}

impl Drop for TunnelDaemon {
    fn drop(&mut self) {
        if !self.check_gone() {
            self.signal("-KILL");
            let _ = self.timeout.wait();
        }
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<_> = log.lines().collect();
            println!("{}:\n{}", self.log, lines[lines.len().saturating_sub(30)..].join("\n"));
        }
    }
}

/// Protection of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatagramSecurity {
    Sealed,
    /// By public keys.
    Public,
    Open,
    Insecure,
}

/// Carrier, as arguments of a tunnel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarrierKind {
    pub(crate) name: &'static str,
    pub(crate) scheme: &'static str,
    /// Address of both ends.
    pub(crate) host: IpAddr,
    /// Options after the `?` of each end.
    pub(crate) options: [&'static str; 2],
    pub(crate) security: DatagramSecurity,
}

impl CarrierKind {
    pub(crate) const UDP: Self = Self {
        name: "udp",
        scheme: "udp",
        host: IpAddr::V4(Ipv4Addr::LOCALHOST),
        options: ["", ""],
        security: DatagramSecurity::Sealed,
    };

    pub(crate) fn is_line(&self) -> bool {
        self.scheme.starts_with("serial")
    }
}

/// Connection between the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    Nothing,
    Relay,
}

/// Addresses inside: IPv4 and IPv6.
pub(crate) const ADDRESSES: [[&str; 2]; 2] = [["10.77.0.1", "fd77::1"], ["10.77.0.2", "fd77::2"]];

pub(crate) fn address(side: usize, version: usize) -> IpAddr {
    ADDRESSES[side][version].parse().unwrap()
}

/// Ports of the ends, and of the relay's sockets that face them.
const PORTS: [u16; 2] = [7001, 7002];
const RELAY_PORTS: [u16; 2] = [7011, 7012];

/// Two ends of a tunnel and their surroundings.
#[derive(Debug)]
pub(crate) struct TunnelBench {
    pub(crate) ends: [Option<TunnelDaemon>; 2],
    arguments: [Vec<String>; 2],
    pub(crate) inside: [Namespace; 2],
    pub(crate) outside: Namespace,
    relay: Option<Arc<Relay>>,
    pub(crate) folder: BenchFolder,
}

impl TunnelBench {
    /// Creates two ends that do not run yet, with these arguments in addition to the required ones.
    pub(crate) fn new(name: &str, kind: CarrierKind, between: Between, more: &[&str]) -> Self {
        let folder = BenchFolder::new(name);
        // The command takes names.
        let namespace = |side: &str| {
            let namespace =
                Namespace::create(&format!("thinair-{}-{name}-{side}", std::process::id())).unwrap();
            namespace.quiet().unwrap();
            namespace
        };
        let (inside, outside) = (["a", "b"].map(namespace), namespace("out"));
        let mut security = match kind.security {
            DatagramSecurity::Open => [(); 2].map(|()| vec!["--open".to_owned()]),
            DatagramSecurity::Insecure => [(); 2].map(|()| vec!["--insecure".to_owned()]),
            DatagramSecurity::Sealed => {
                let key = key(&folder, "key");
                [(); 2].map(|()| vec!["--key".to_owned(), key.clone()])
            }
            DatagramSecurity::Public => {
                let keys = ["a.key", "b.key"].map(|name| key(&folder, name));
                let public = keys.each_ref().map(|file| public_key(file));
                [0, 1].map(|side| {
                    let [own, other] = [&keys[side], &public[1 - side]];
                    ["--private-key", own, "--public-key", other].map(str::to_owned).to_vec()
                })
            }
        };
        for security in &mut security {
            security.extend(more.iter().map(|&argument| argument.to_owned()));
        }
        let (relay, urls) = if kind.is_line() {
            let lines = [Pty::open().unwrap(), Pty::open().unwrap()];
            let urls = [0, 1].map(|side| {
                let path = lines[side].path().to_str().unwrap();
                vec![format!("{}://{path}{}", kind.scheme, kind.options[side])]
            });
            (Some(Relay::of_lines(lines)), urls)
        } else {
            let at = |port| SocketAddr::new(kind.host, port);
            let relay = (between == Between::Relay)
                .then(|| Relay::of_datagrams(&outside, RELAY_PORTS.map(at), PORTS.map(at)));
            let urls = [0, 1].map(|side| {
                let port = if relay.is_some() { RELAY_PORTS[side] } else { PORTS[1 - side] };
                let url = format!("{}://{}{}", kind.scheme, at(port), kind.options[side]);
                vec![url, "--listen".to_owned(), at(PORTS[side]).to_string()]
            });
            (relay, urls)
        };
        let mut side = 0;
        let arguments = urls.map(|mut arguments| {
            arguments.append(&mut security[side]);
            arguments.extend(["--netns".to_owned(), inside[side].called()]);
            for (address, bits) in ADDRESSES[side].iter().zip([30, 64]) {
                arguments.extend(["--address".to_owned(), format!("{address}/{bits}")]);
            }
            side += 1;
            arguments
        });
        Self { ends: [None, None], arguments, inside, outside, relay: relay.map(Arc::new), folder }
    }

    /// Creates two ends, starts both, and waits until they are connected.
    pub(crate) fn started(name: &str, kind: CarrierKind, between: Between, more: &[&str]) -> Self {
        let mut bench = Self::new(name, kind, between, more);
        bench.start(0);
        bench.start(1);
        assert!(bench.is_through(20), "{name}: nothing gets through\n{}", bench.reported());
        bench
    }

    /// Starts an end.
    pub(crate) fn start(&mut self, side: usize) {
        let name = ["a", "b"][side];
        self.ends[side] = Some(TunnelDaemon::start(&self.outside, &self.folder, name, &self.arguments[side]));
    }

    /// Replaces an argument for the next start of an end.
    pub(crate) fn replace(&mut self, side: usize, argument: &str, by: &str) {
        let found = self.arguments[side].iter_mut().find(|found| *found == argument);
        *found.unwrap() = by.to_owned();
    }

    /// From its next start on, an end waits for the other one, without its address.
    pub(crate) fn listen(&mut self, side: usize) {
        let url = format!("udp://:{}", PORTS[side]);
        self.arguments[side].splice(..3, [url]);
    }

    /// Adds arguments for the next start of an end.
    pub(crate) fn add(&mut self, side: usize, arguments: &[&str]) {
        self.arguments[side].extend(arguments.iter().map(|&argument| argument.to_owned()));
    }

    pub(crate) fn end(&self, side: usize) -> &TunnelDaemon {
        self.ends[side].as_ref().unwrap()
    }

    pub(crate) fn relay(&self) -> &Arc<Relay> {
        self.relay.as_ref().unwrap()
    }

    /// Number of sessions that an end has had since its start.
    pub(crate) fn sessions(&self, side: usize) -> u64 {
        self.end(side).status()["peers"][0]["sessions"].as_u64().unwrap()
    }

    /// True if a ping gets through, in each direction and by each version of IP, within this many seconds.
    pub(crate) fn is_through(&self, seconds: u64) -> bool {
        let all = [(0, 0), (0, 1), (1, 0), (1, 1)];
        all.iter().all(|&(side, version)| {
            let to = ADDRESSES[1 - side][version];
            wait_for(seconds, || {
                run(&self.inside[side], 5, &["ping", "-c", "1", "-W", "1", to]).status.success()
            })
        })
    }

    /// Counters of both ends, as text.
    pub(crate) fn reported(&self) -> String {
        let reported = self.ends.iter().flatten().zip(&self.inside).map(|(end, inside)| {
            let table = inside.within(|| fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
            let interface = table.lines().find_map(|line| line.trim().strip_prefix(&format!("{TUN}:")));
            let refused = interface.and_then(|numbers| numbers.split_whitespace().nth(11)).map(str::to_owned);
            let status = end.status();
            let counted = |tally: &Value| -> Vec<String> {
                let members = tally.as_object().into_iter().flatten();
                members
                    .filter(|(_, n)| n.as_u64() != Some(0))
                    .map(|(name, n)| format!("{name} {n}"))
                    .collect()
            };
            let failures = counted(&status["peers"][0]["failures"]);
            let drops = counted(&status["drops"]);
            let refused = refused.unwrap_or_default();
            format!("interface {refused}, drops {drops:?}, failures {failures:?}, {}", status["totals"])
        });
        reported.collect::<Vec<_>>().join("\n")
    }

    /// True if the interface of an end exists.
    pub(crate) fn has_interface(&self, side: usize) -> bool {
        self.inside[side].within(|| Interface::exists(TUN)).unwrap()
    }
}

/// Public key of a key file.
pub(crate) fn public_key(file: &str) -> String {
    let output =
        Command::new(thinair().unwrap()).args(["tunnel", "keygen", "--public", file]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Creates a key file.
pub(crate) fn key(folder: &BenchFolder, name: &str) -> String {
    let path = folder.path(name);
    let made = Command::new(thinair().unwrap()).args(["tunnel", "keygen", &path]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(Path::new(&path).exists());
    path
}
