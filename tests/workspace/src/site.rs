//! Field site, router and gateway, and tunnels between the two ends.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Addresses of the carrier: of the field site, of its router, of the gateway and of the router there.
pub const FIELD: [&str; 2] = ["192.0.2.2", "2001:db8:1::2"];
const FIELD_ROUTER: [&str; 2] = ["192.0.2.1", "2001:db8:1::1"];
pub const GATEWAY: [&str; 2] = ["198.51.100.7", "2001:db8:2::7"];
const GATEWAY_ROUTER: [&str; 2] = ["198.51.100.1", "2001:db8:2::1"];

/// Addresses of the tunnel, and a host of the Internet, beyond the gateway only.
pub const INSIDE: [[&str; 2]; 2] = [["10.9.0.1", "fd09::1"], ["10.9.0.2", "fd09::2"]];
pub const INTERNET: [&str; 2] = ["203.0.113.9", "2001:db8:9::9"];

/// Time limit of a daemon in seconds, even if the test is killed.
const LIMIT: &str = "600";

pub fn thinair() -> &'static str {
    static COMMAND: OnceLock<String> = OnceLock::new();
    COMMAND.get_or_init(crate::command)
}

/// Folder for keys and logs. All of `/run` is removed with the test.
pub fn folder() -> PathBuf {
    let folder = PathBuf::from("/run/test");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a shell line, which must succeed.
pub fn sh(line: &str) -> String {
    let output = Command::new("sh").args(["-euc", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// True if a condition becomes true within this many seconds.
pub fn within(seconds: f64, mut is_true: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    loop {
        if is_true() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Three namespaces, whose names end in a unique number.
pub struct Sites {
    pub field: String,
    pub gateway: String,
    pub key: String,
    number: usize,
}

impl Sites {
    pub fn new(number: usize) -> Self {
        let [field, router, gateway] = ["field", "router", "gateway"].map(|name| format!("{name}{number}"));
        let mut lines = String::new();
        for name in [&field, &router, &gateway] {
            lines += &format!("ip netns add {name}\n");
            // Addresses are static, so that repeated snapshots of a host are equal.
            lines += &format!(
                "ip netns exec {name} sh -c 'for of in all default; do
                    echo 0 > /proc/sys/net/ipv6/conf/$of/accept_dad
                    echo 1 > /proc/sys/net/ipv4/conf/$of/rp_filter; done'\n"
            );
            lines += &format!("ip -n {name} link set lo up\n");
        }
        for (site, own, routers) in [(&field, FIELD, FIELD_ROUTER), (&gateway, GATEWAY, GATEWAY_ROUTER)] {
            lines += &format!("ip link add eth0 netns {site} type veth peer name {site} netns {router}\n");
            for (netns, interface, [four, six]) in [(site, "eth0", own), (&router, site.as_str(), routers)] {
                lines += &format!("ip -n {netns} link set {interface} up\n");
                lines += &format!("ip -n {netns} addr add {four}/24 dev {interface}\n");
                lines += &format!("ip -n {netns} addr add {six}/64 dev {interface} nodad\n");
            }
            lines += &format!("ip -n {site} route add default via {}\n", routers[0]);
            lines += &format!("ip -n {site} -6 route add default via {}\n", routers[1]);
        }
        // A wider route of the field site, than which a tunnel's route may be more specific.
        lines += &format!("ip -n {field} route add 10.0.0.0/8 via {}\n", FIELD_ROUTER[0]);
        lines += &format!(
            "ip netns exec {router} sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward
                echo 1 > /proc/sys/net/ipv6/conf/all/forwarding'\n"
        );
        for (address, bits) in INTERNET.iter().zip([32, 128]) {
            lines += &format!("ip -n {gateway} addr add {address}/{bits} dev lo\n");
        }
        sh(&lines);
        let key = folder().join(format!("{number}.key")).to_str().unwrap().to_owned();
        assert!(run(&format!("rm -f {key}; {} tunnel keygen {key}", thinair())).status.success());
        Self { field, gateway, key, number }
    }

    /// Snapshot of everything that a tunnel may change at the field site.
    pub fn look(&self) -> String {
        let netns = &self.field;
        let mut seen = String::new();
        for family in ["-4", "-6"] {
            seen += &sh(&format!("ip -n {netns} {family} rule"));
            seen += &sh(&format!("ip -n {netns} {family} route show table all"));
            seen += &sh(&format!("ip -n {netns} {family} -brief addr"));
        }
        let folders =
            format!("ls -Rd /run/thinair/air{0} /run/thinair/thinair* 2>/dev/null || true", self.number);
        seen + &sh(&folders) + &sh("cat /etc/resolv.conf 2>/dev/null || true")
    }

    pub fn router(&self) -> String {
        format!("router{}", self.number)
    }

    /// Starts the gateway's end, over this version of IP.
    pub fn start_gateway(&self, version: usize) -> SiteDaemon {
        self.start_gateway_with(version, "")
    }

    /// Starts the gateway's end, with further arguments.
    pub fn start_gateway_with(&self, version: usize, more: &str) -> SiteDaemon {
        let url = ["udp://:7000", "udp://[::]:7000"][version];
        let name = format!("--tun gate{}", self.number);
        SiteDaemon::start(&self.gateway, &format!("{url} --key {} {} {name} {more}", self.key, addresses(0)))
    }

    /// Starts the field site's end, with further arguments.
    pub fn start_field(&self, version: usize, more: &str) -> SiteDaemon {
        SiteDaemon::start(&self.field, &self.field_arguments(version, more))
    }

    pub fn field_arguments(&self, version: usize, more: &str) -> String {
        let url = ["udp://198.51.100.7:7000", "udp://[2001:db8:2::7]:7000"][version];
        format!("{url} --key {} {} --tun air{} {more}", self.key, addresses(1), self.number)
    }

    /// True if the field site reaches an address.
    pub fn reaches(&self, address: &str) -> bool {
        within(6.0, || {
            run(&format!("ip netns exec {} ping -c 1 -W 1 {address}", self.field)).status.success()
        })
    }
}

impl Drop for Sites {
    fn drop(&mut self) {
        for name in ["field", "router", "gateway"] {
            let _ = run(&format!("ip netns del {name}{}", self.number));
        }
    }
}

fn addresses(side: usize) -> String {
    let [four, six] = INSIDE[side];
    format!("--address {four}/30 --address {six}/64")
}

/// Runs a line that may fail.
pub fn run(line: &str) -> Output {
    Command::new("sh").args(["-c", line]).output().unwrap()
}

/// Daemon, ended on drop.
pub struct SiteDaemon {
    timeout: Child,
    pub pid: u32,
    log: PathBuf,
}

impl SiteDaemon {
    /// Starts a daemon, and waits until it is open.
    pub fn start(netns: &str, arguments: &str) -> Self {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let log = folder().join(format!("{netns}-{number}.log"));
        let mut command = Command::new("ip");
        command.args([
            "netns",
            "exec",
            netns,
            "timeout",
            "--signal",
            "KILL",
            LIMIT,
            thinair(),
            "tunnel",
            "run",
        ]);
        command.args(arguments.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap());
        let mut timeout = command.spawn().unwrap();
        let is_open = || fs::read_to_string(&log).unwrap().contains("tunnel is open");
        let opened = within(20.0, || is_open() || timeout.try_wait().unwrap().is_some());
        let text = fs::read_to_string(&log).unwrap();
        assert!(opened && is_open(), "{arguments}\n{text}");
        let children = format!("/proc/{0}/task/{0}/children", timeout.id());
        let pid = fs::read_to_string(children).unwrap().trim().parse().unwrap();
        Self { timeout, pid, log }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Process of the helper, which is its only child.
    pub fn helper(&self) -> u32 {
        let children = format!("/proc/{0}/task/{0}/children", self.pid);
        fs::read_to_string(children).unwrap().trim().parse().unwrap()
    }

    /// Sends a signal, and waits for the end. Returns the exit status, if there is one.
    pub fn end(mut self, signal: &str) -> Option<i32> {
        let helper = self.helper();
        sh(&format!("kill -{signal} {}", self.pid));
        let code = self.timeout.wait().unwrap().code();
        // A killed daemon does not wait for its helper.
        assert!(within(5.0, || !fs::exists(format!("/proc/{helper}")).unwrap()), "the helper lives");
        code
    }

    /// Kills the daemon and its helper at once, so that no process is left to undo changes.
    pub fn kill_both(mut self) {
        let helper = self.helper();
        sh(&format!("kill -STOP {helper}; kill -KILL {}; kill -KILL {helper}", self.pid));
        self.timeout.wait().unwrap();
        assert!(within(5.0, || !fs::exists(format!("/proc/{helper}")).unwrap()));
    }
}

impl Drop for SiteDaemon {
    fn drop(&mut self) {
        if self.timeout.try_wait().unwrap().is_none() {
            let _ = run(&format!("kill -KILL {}", self.pid));
            let _ = self.timeout.wait();
        }
        if std::thread::panicking() {
            println!("{}:\n{}", self.log.display(), self.log());
        }
    }
}
