//! One TCP stream through the tunnel, beside that through the newest wireguard-go and through a plain forwarder with the same
//! offloads, in the same run.
//!
//! `cargo bench -p thinair-tunnel --bench stream`, as root. Two hosts (network namespaces) are joined by a virtual cable, and
//! two ends on it carry a stream of iperf3. Rates, and CPU seconds of both ends for a gigabyte delivered: generator and ends
//! share the machine, so that only ratios of rows are meaningful. All rows are measured by turns; medians are printed with
//! the least and the most. `SECONDS=N`, `TURNS=N`: other than 5 seconds and 5 turns. `WIREGUARD_GO=PROGRAM`: that program
//! besides; without it, the newest one is built if Go is there.

#![allow(missing_docs)]

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::io::{Read as _, Write as _};
    use std::net::{IpAddr, Ipv4Addr, UdpSocket};
    use std::os::unix::net::UnixStream;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use thinair_os::signals::{Ask, ask};
    use thinair_os::udp::{ReceiveBatch, SendQueue, options};
    use thinair_os::{EventLoop, Interface, Namespace, Ping, Route, Tun, TunKind};
    use thinair_tunnel::config::{self, Settings, Surroundings};
    use thinair_tunnel::daemon::Daemon;
    use thinair_tunnel::key_file;
    use thinair_tunnel::offload::{Coalescer, HEADER, Splitter, VirtioHeader};

    type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

    /// Names of the interfaces of both ends: wireguard-go has a socket of that name. And of the cable.
    const INTERFACES: [&str; 2] = ["link0", "link1"];
    const CABLE: &str = "cable0";

    /// Addresses of both hosts on the cable, and of both ends.
    const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
    const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 9, 1, 1), Ipv4Addr::new(10, 9, 1, 2)];
    const PORT: u16 = 17_001;

    /// MTU of wireguard-go, and of the forwarder.
    const MTU: u32 = 1_420;

    /// First argument that makes this program an end.
    const END: &str = "end-of-a-tunnel";

    /// Kinds of ends.
    const ROWS: &[(&str, &str)] = &[
        ("forward", "plain forwarder"),
        ("default", "thinair tunnel"),
        ("chacha20-poly1305", "thinair tunnel, ChaCha20-Poly1305"),
        ("off", "thinair tunnel, offloads off"),
        ("insecure", "thinair tunnel, not encrypted"),
        ("wireguard", "wireguard-go"),
    ];

    /// Rate in bit/s, and CPU seconds of both ends for a gigabyte.
    #[derive(Clone, Copy)]
    struct Figures {
        rate: f64,
        cost: f64,
    }

    fn measure(kind: &str, seconds: u32, wireguard: Option<&Path>) -> Outcome<Figures> {
        let names = ["a", "b"].map(|end| format!("thinair-stream-{}{end}", std::process::id()));
        let hosts = [Namespace::create(&names[0])?, Namespace::create(&names[1])?];
        Interface::veth((&hosts[0], CABLE), (&hosts[1], CABLE))?;
        for (number, host) in hosts.iter().enumerate() {
            host.allow_pings()?;
            host.within(|| configure(CABLE, HOSTS, number, 1_500))??;
        }
        let folder = std::env::temp_dir().join(format!("thinair-stream-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let key = folder.join("key");
        if !key.exists() {
            key_file::generate(&key, "stream", &mut |octets: &mut [u8]| {
                getrandom::fill(octets).unwrap_or_default();
            })?;
        }
        let mut ends = Vec::new();
        for (number, host) in hosts.iter().enumerate() {
            let mut command = match (kind, wireguard) {
                ("wireguard", Some(program)) => {
                    let mut command = Command::new(program);
                    command.args(["-f", INTERFACES[number]]).env("WG_PROCESS_FOREGROUND", "1");
                    command
                }
                _ => {
                    let mut command = Command::new(std::env::current_exe()?);
                    command.args([END, kind, &number.to_string()]).arg(&folder);
                    command
                }
            };
            ends.push(host.spawn(command.stdin(Stdio::null()).stdout(Stdio::null()))?);
            if kind == "wireguard" {
                start_wireguard(number, host)?;
            }
        }
        let figures = stream(&hosts, &ends, seconds);
        for end in &mut ends {
            ask(end, Ask::Terminate);
            end.wait()?;
        }
        let _ = std::fs::remove_dir_all(&folder);
        figures
    }

    fn stream(hosts: &[Namespace; 2], ends: &[Child], seconds: u32) -> Outcome<Figures> {
        wait_until("the ends to be joined", || {
            let ping = hosts[0].within(|| Ping::to(IpAddr::V4(ENDS[1])))?;
            Ok(ping?.once(&[0; 56], Duration::from_millis(200))?.map(drop))
        })?;
        let mut server = hosts[1].spawn(Command::new("iperf3").args(["-s", "-1"]).stdout(Stdio::null()))?;
        std::thread::sleep(Duration::from_millis(300));
        let before = processor(ends)?;
        let mut client = Command::new("iperf3");
        let arguments = [&*ENDS[1].to_string(), "-J", "-t", &seconds.to_string()].map(str::to_owned);
        client.arg("-c").args(arguments).stdout(Stdio::piped());
        let mut client = hosts[0].spawn(&mut client)?;
        let mut text = String::new();
        if let Some(out) = &mut client.stdout {
            out.read_to_string(&mut text)?;
        }
        client.wait()?;
        let after = processor(ends)?;
        ask(&mut server, Ask::Terminate);
        server.wait()?;
        let report: serde_json::Value = serde_json::from_str(&text)?;
        let received = &report["end"]["sum_received"];
        let figure = |key: &str| received[key].as_f64().ok_or_else(|| format!("iperf3 has no {key}: {text}"));
        Ok(Figures { rate: figure("bits_per_second")?, cost: (after - before) / figure("bytes")? * 1e9 })
    }

    /// CPU seconds of all ends.
    fn processor(ends: &[Child]) -> Outcome<f64> {
        let mut ticks = 0;
        for end in ends {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", end.id()))?;
            // proc_pid_stat(5): utime and stime are the 14th and 15th field; the second one is in parentheses.
            let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
            ticks += fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum::<u64>();
        }
        Ok(ticks as f64 / 100.0)
    }

    fn wait_until<T>(what: &str, mut look: impl FnMut() -> Outcome<Option<T>>) -> Outcome<T> {
        let mut last = String::new();
        for _ in 0..100 {
            match look() {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(why) => last = why.to_string(),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("waited in vain for {what}: {last}").into())
    }

    /// Configures an end of wireguard-go by its socket.
    fn start_wireguard(number: usize, host: &Namespace) -> Outcome<()> {
        /// Private and public keys, which need not be secret here.
        const KEYS: [(&str, &str); 2] = [
            (
                "0808080808080808080808080808080808080808080808080808080808080841",
                "c1af9d21a3c4dfd49b4676af28f4deae8aa147b37a42feb76a16d5255b844b37",
            ),
            (
                "1010101010101010101010101010101010101010101010101010101010101042",
                "f171fc7d22a4acd4ccbb455668e988cb41be418d858ec6d384200fe1b9f47518",
            ),
        ];
        let socket = format!("/var/run/wireguard/{}.sock", INTERFACES[number]);
        let mut stream = wait_until("wireguard-go", || Ok(UnixStream::connect(&socket).ok()))?;
        let (own, other) = (KEYS[number].0, KEYS[1 - number].1);
        write!(
            stream,
            "set=1\nprivate_key={own}\nlisten_port={PORT}\npublic_key={other}\nendpoint={}:{PORT}\n\
             replace_allowed_ips=true\nallowed_ip={}/32\n\n",
            HOSTS[1 - number],
            ENDS[1 - number]
        )?;
        let mut answer = [0; 100];
        let len = stream.read(&mut answer)?;
        if !answer[..len].starts_with(b"errno=0") {
            return Err(format!("wireguard-go: {}", String::from_utf8_lossy(&answer[..len])).into());
        }
        host.within(|| configure(INTERFACES[number], ENDS, number, MTU))?
    }

    /// Gives an interface its address and the route to the other one.
    fn configure(name: &str, addresses: [Ipv4Addr; 2], number: usize, mtu: u32) -> Outcome<()> {
        let interface = Interface::named(name)?;
        interface.quiet()?;
        interface.set_mtu(mtu)?;
        interface.up()?;
        let (own, other) = (addresses[number], addresses[1 - number]);
        interface.add_address(own.into(), 32)?;
        interface.add_route(&Route {
            to: (other.into(), 32),
            from: Some(own.into()),
            mtu: 0,
            congestion: None,
        })?;
        Ok(())
    }

    /// Runs this program as an end.
    fn end(kind: &str, number: usize, folder: &Path) -> Outcome<()> {
        if kind == "forward" {
            return forward(number);
        }
        let security = match kind {
            "insecure" => "insecure = true".to_owned(),
            suite @ "chacha20-poly1305" => format!("key = {:?}\nsuite = {suite:?}", folder.join("key")),
            _ => format!("key = {:?}", folder.join("key")),
        };
        let offloads = if kind == "off" { "off" } else { "on" };
        // The end gives this folder to the user that it becomes: a key may not be in it.
        let state = folder.join("state");
        std::fs::create_dir_all(&state)?;
        let text = format!(
            "[inside]\ntun = {:?}\naddress = [\"{}/30\"]\n\
             [carrier]\nurl = \"udp://{}:{PORT}\"\nlisten = \"{}:{PORT}\"\n\
             [security]\n{security}\n[daemon]\noffloads = {offloads:?}\nstate = {state:?}\n",
            INTERFACES[number],
            ENDS[number],
            HOSTS[1 - number],
            HOSTS[number],
        );
        let settings = Settings::read(Path::new("stream.toml"), &text)?;
        let surroundings = Surroundings {
            runtime: None,
            state,
            templates: &|_| Ok(Vec::new()),
            tariff: &|_| Err(String::new()),
            resolve: &config::system_resolver,
        };
        Daemon::open(&config::site_config(&settings, &surroundings)?, None, None)?.run()?;
        Ok(())
    }

    /// Carries packets of the interface as datagrams, and back.
    fn forward(number: usize) -> Outcome<()> {
        let tun = Tun::open_offloaded(INTERFACES[number], TunKind::Tun)?;
        configure(INTERFACES[number], ENDS, number, MTU)?;
        let socket = UdpSocket::bind((HOSTS[number], PORT))?;
        socket.connect((HOSTS[1 - number], PORT))?;
        socket.set_nonblocking(true)?;
        options::join_datagrams(&socket);
        let mut events = EventLoop::new(Duration::ZERO)?;
        events.add(&tun, 0)?;
        events.add(&socket, 1)?;
        let (mut queue, mut received) = (SendQueue::grouping(&socket), ReceiveBatch::of_joined(8, 1_500));
        let (mut splitter, mut coalescer) = (Splitter::new(false), Coalescer::new(false, true));
        let (mut ready, mut header, mut packet) = (Vec::new(), [0; HEADER], vec![0; 65_535]);
        let write = &mut |header: &VirtioHeader, octets: &[u8], _: &[()]| {
            let _ = tun.write_offloaded(&header.octets(), octets);
        };
        loop {
            events.wait(None, &mut ready)?;
            while let Ok(len) = tun.read_offloaded(&mut header, &mut packet) {
                let packet = &mut packet[..len];
                splitter.begin(&VirtioHeader::read(header), packet)?;
                while let Some(place) = splitter.next(packet) {
                    queue.push(None, &packet[place]);
                }
                // A datagram for which there is no room is lost, as on any link.
                let _ = queue.send(&socket);
                queue.clear();
            }
            while received.receive(&socket).is_ok() {
                while let Some(datagram) = received.take_next() {
                    if let Some((datagram, ..)) = datagram {
                        coalescer.push(datagram, (), write);
                    }
                }
                coalescer.flush(write);
            }
        }
    }

    /// Returns wireguard-go, built from the Go module proxy if need be.
    fn wireguard() -> Option<PathBuf> {
        if let Some(program) = std::env::var_os("WIREGUARD_GO") {
            return Some(program.into());
        }
        let folder = std::env::temp_dir().join("thinair-wireguard-go");
        let go = ["go", "/usr/local/go/bin/go"].into_iter().find(|go| {
            Command::new(go)
                .arg("version")
                .stdout(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        })?;
        let built = Command::new(go)
            .args(["install", "golang.zx2c4.com/wireguard@latest"])
            .env("GOBIN", &folder)
            .status();
        built.is_ok_and(|status| status.success()).then(|| folder.join("wireguard"))
    }

    fn setting(name: &str) -> Option<u32> {
        std::env::var(name).ok()?.parse().ok()
    }

    pub(super) fn main() {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        if let [END, kind, number, folder] =
            arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice()
        {
            if let Err(why) = end(kind, number.parse().unwrap_or_default(), Path::new(folder)) {
                eprintln!("an end of a tunnel: {why}");
                std::process::exit(1);
            }
            return;
        }
        if !thinair_os::privileges::is_root() {
            println!("skipped: network namespaces need root");
            return;
        }
        if Command::new("iperf3").arg("-v").stdout(Stdio::null()).status().is_err() {
            println!("skipped: iperf3 is missing");
            return;
        }
        let (seconds, turns) = (setting("SECONDS").unwrap_or(5), setting("TURNS").unwrap_or(5));
        let wireguard = wireguard();
        if wireguard.is_none() {
            println!("skipped: wireguard-go, as Go is missing, or its module proxy");
        }
        let is_there = |kind: &str| kind != "wireguard" || wireguard.is_some();
        let rows: Vec<_> = ROWS.iter().filter(|(kind, _)| is_there(kind)).collect();
        let mut figures: Vec<Vec<Figures>> = rows.iter().map(|_| Vec::new()).collect();
        for _ in 0..turns {
            for ((kind, name), figures) in rows.iter().zip(&mut figures) {
                match measure(kind, seconds, wireguard.as_deref()) {
                    Ok(outcome) => figures.push(outcome),
                    Err(why) => println!("{name}: {why}"),
                }
            }
        }
        println!(
            "One TCP stream: medians of {turns} turns of {seconds} s, and in brackets the least and the most"
        );
        println!("{:<34} {:>26} {:>26}", "", "Mbit/s", "CPU s a GB, both ends");
        for ((_, name), figures) in rows.iter().zip(&figures) {
            let rates = spread(figures.iter().map(|figures| figures.rate / 1e6), 0);
            let costs = spread(figures.iter().map(|figures| figures.cost), 2);
            println!("{name:<34} {rates:>26} {costs:>26}");
        }
    }

    /// Median, and least and most in brackets; empty without figures.
    fn spread(figures: impl Iterator<Item = f64>, decimals: usize) -> String {
        let mut figures: Vec<f64> = figures.collect();
        figures.sort_by(f64::total_cmp);
        let Some((least, most)) = figures.first().zip(figures.last()) else { return String::new() };
        let median = figures.get(figures.len() / 2).unwrap_or(most);
        format!("{median:.decimals$} ({least:.decimals$} to {most:.decimals$})")
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}
