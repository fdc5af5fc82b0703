//! Measurement: two hosts, all paths between them side by side, and libcoap's client, which uses them in turn.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use thinair_os::{Interface, Namespace, Route, Waker, clock};
use thinair_simulation::load::{INTERFACE, LoadError, LoadHosts, forward};
use thinair_simulation::{Purpose, RandomStreams};
use thinair_tunnel::status::socket::ask;
use thinair_tunnel::status::{Side, Status, TrafficCounters as Counted};

use super::cell::{InnerIpVersion, LinkPlace, RttCell, TunnelPath};
use super::exchange::{self, CoapExchange, PORT};
use super::summary::RttSummary;
use super::{CarriedOctets, CellMeasurements, PlaceMeasurements, RttScale};
use crate::children::{Children, Interrupt, with_causes};
use crate::paper::{PaperError, RunPlan};

/// Programs of libcoap, and tcpdump, whose times are used.
const CLIENT: &str = "coap-client-notls";
const SERVER: &str = "coap-server-notls";
const CAPTURE: &str = "tcpdump";

/// Requests of each cell that are not counted, during which contexts are established.
const WARM_UP: usize = 10;

/// Port of the client: all its requests belong to one flow.
const CLIENT_PORT: &str = "40000";

/// One-way delay of the link, as an argument of `thinair link run`.
const DELAY: &str = "5.3ms";

/// Name of the cable's interface, and network of its addresses.
const CABLE: &str = "carrier0";

/// Time limit for anything to start, and for a client to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Numbers of networks: the cable's or link's, the forwarder's, and the first tunnel's.
const OUTSIDE: u8 = 0;
const FORWARDED: u8 = 1;
const FIRST_TUNNEL: u8 = 2;

/// Reason that nothing can be measured; `None` if it can.
pub(super) fn missing() -> Option<String> {
    let programs = [(CLIENT, "libcoap3-bin"), (SERVER, "libcoap3-bin"), (CAPTURE, "tcpdump")];
    for (program, package) in programs {
        let tried = Command::new(program).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if tried.is_err() {
            return Some(format!("there is no {program} (Debian: {package})"));
        }
    }
    match LoadHosts::create() {
        Ok(_) => None,
        Err(LoadError::Os(why)) if why.is_permission() => Some(format!("{why}: this needs root")),
        Err(why) => Some(why.to_string()),
    }
}

/// Requests at a place, including those that are not counted.
pub(super) fn requests(place: LinkPlace, scale: RttScale) -> u64 {
    (place.cells().len() * (WARM_UP + scale.rounds)) as u64
}

/// Measures all cells of a place.
pub(super) fn measure(
    place: LinkPlace,
    plan: &RunPlan,
    program: &Path,
    scale: RttScale,
    interrupt: &Interrupt,
    progress: &dyn Fn() -> Result<(), PaperError>,
) -> Result<PlaceMeasurements, PaperError> {
    let site = TunnelSite::open(place)?;
    let stop = Waker::new()?;
    std::thread::scope(|scope| {
        let forwarding = site.tuns.as_ref().map(|[a, b]| scope.spawn(|| forward([a, b], &stop)));
        let measured = site.measure(plan, program, scale, interrupt, progress);
        stop.ring();
        let forwarded = forwarding.map(|forwarding| forwarding.join());
        let forwarded = forwarded.map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let measured = measured?;
        forwarded.transpose().map_err(with_causes)?;
        Ok(measured)
    })
}

/// Two hosts and the link between them.
struct TunnelSite {
    place: LinkPlace,
    hosts: LoadHosts,
    tuns: Option<[thinair_os::Tun; 2]>,
    /// Folder of the programs' output.
    folder: TempDir,
}

/// Cell that can be measured.
struct PreparedCell {
    cell: RttCell,
    /// Server of the client's requests.
    server: IpAddr,
    client: Command,
    /// Status sockets of both ends of a tunnel.
    sockets: Option<[PathBuf; 2]>,
    /// Status of the client's end before the first counted request.
    before: Option<Status>,
}

impl TunnelSite {
    fn open(place: LinkPlace) -> Result<Self, PaperError> {
        let hosts = LoadHosts::create().map_err(with_causes)?;
        for namespace in [hosts.here(), hosts.there()] {
            // Since 4.2, Linux gives each socket its own flow label, so that every request of a restarted client would
            // be another flow. The paper's system did not.
            namespace.within(|| fs::write("/proc/sys/net/ipv6/auto_flowlabels", "0"))??;
        }
        let folder = tempfile::Builder::new().prefix("thinair-paper").tempdir()?;
        let mut site = Self { place, hosts, tuns: None, folder };
        if place == LinkPlace::Veth {
            let namespaces = site.namespaces();
            Interface::veth((namespaces[0], CABLE), (namespaces[1], CABLE))?;
            site.give_addresses(CABLE, OUTSIDE)?;
            site.tuns = Some(site.hosts.tuns().map_err(with_causes)?);
            site.give_addresses(INTERFACE, FORWARDED)?;
        }
        Ok(site)
    }

    fn namespaces(&self) -> [&Namespace; 2] {
        [self.hosts.here(), self.hosts.there()]
    }

    /// Gives an interface of both hosts its addresses in a network.
    fn give_addresses(&self, interface: &str, network: u8) -> Result<(), PaperError> {
        for (namespace, own) in self.namespaces().into_iter().zip([0, 1]) {
            namespace.within(|| {
                let interface = Interface::named(interface)?;
                interface.quiet()?;
                interface.up()?;
                for version in InnerIpVersion::ALL {
                    let (hosts, bits) = version.hosts(network);
                    interface.add_address(hosts[own], bits)?;
                    let whole = if version == InnerIpVersion::V4 { 32 } else { 128 };
                    let to = (hosts[1 - own], whole);
                    interface.add_route(&Route { to, from: Some(hosts[own]), mtu: 0, congestion: None })?;
                }
                thinair_os::Result::Ok(())
            })??;
        }
        Ok(())
    }

    fn measure(
        &self,
        plan: &RunPlan,
        program: &Path,
        scale: RttScale,
        interrupt: &Interrupt,
        progress: &dyn Fn() -> Result<(), PaperError>,
    ) -> Result<PlaceMeasurements, PaperError> {
        let mut children = Children::new(interrupt)?;
        let [here, there] = self.namespaces();
        let folder = self.folder.path();
        if self.place == LinkPlace::Link {
            children.start_link(self.namespaces(), self.folder.path(), program, &["--delay", DELAY])?;
        }
        children.start(there, folder, "server", &mut Command::new(SERVER))?;
        // In a folder of its own: the other one becomes that of the daemon's user.
        let keys = folder.join("keys");
        fs::create_dir(&keys)?;
        let key = keys.join("tunnel.key");
        let made = children.run(
            here,
            Command::new(program)
                .args(["tunnel", "keygen"])
                .arg(&key)
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
            PATIENCE,
        )?;
        if !made.success() {
            return Err(PaperError::RealTime("no key could be made".to_owned()));
        }
        let mut cells = Vec::new();
        for (number, cell) in (FIRST_TUNNEL..).zip(self.place.cells()) {
            cells.push(self.prepare(cell, number, program, &key, &mut children)?);
        }
        children.until("the server listens", PATIENCE, || listens(there))?;
        for ready in &cells {
            children.until("the tunnels have a session", PATIENCE, || ready.is_joined())?;
        }
        // At the client's host, on all its interfaces. The carrier has other ports.
        let filter = format!("udp port {PORT}");
        children.start(
            here,
            folder,
            "capture",
            Command::new(CAPTURE)
                .args(["-i", "any", "--immediate-mode", "-B", "8192", "--time-stamp-precision", "nano"])
                .args(["-n", "-w", "-", &filter]),
        )?;
        let capture_says = folder.join("capture.err");
        children.until("tcpdump listens", PATIENCE, || {
            fs::read_to_string(&capture_says).is_ok_and(|log| log.contains("listening on"))
        })?;

        let mut orders = RandomStreams::new(plan.seed).random(self.place as u32, 0, Purpose::Choice);
        let begin = clock::ProcessorTime::until_now();
        for round in 0..WARM_UP + scale.rounds {
            if round == WARM_UP {
                for ready in &mut cells {
                    ready.before = ready.status()?;
                }
            }
            // In random order, so that no cell always follows the same other one.
            let mut order: Vec<_> = (0..cells.len()).collect();
            for last in (1..order.len()).rev() {
                order.swap(last, orders.below(last as u64 + 1) as usize);
            }
            children.look()?;
            for at in order {
                // The capture shows if it was answered.
                children.run(here, &mut cells[at].client, PATIENCE)?;
                progress()?;
            }
        }
        let stolen = match (begin, clock::ProcessorTime::until_now()) {
            (Some(begin), Some(end)) => end.stolen_since(begin),
            _ => 0.0,
        };
        let carried: Vec<_> = cells.iter().map(PreparedCell::carried).collect::<Result<_, _>>()?;
        children.finish("capture", PATIENCE)?;
        children.end();
        if let Some(dropped) = dropped(&fs::read_to_string(&capture_says)?) {
            return Err(PaperError::RealTime(format!("tcpdump lost packets: {dropped}")));
        }
        let exchanges = exchange::read(&folder.join("capture.out"))?;
        let mut measured =
            PlaceMeasurements { place: self.place, cells: Vec::new(), stolen, late: self.late()? };
        for (ready, carried) in cells.iter().zip(carried) {
            measured.cells.push(ready.measurements(&exchanges, scale, carried));
        }
        Ok(measured)
    }

    /// 99th percentile of the link's lateness, in microseconds; `None` without a link.
    fn late(&self) -> Result<Option<f64>, PaperError> {
        if self.place != LinkPlace::Link {
            return Ok(None);
        }
        let output = fs::read(self.folder.path().join("link.out"))?;
        let output: serde_json::Value = serde_json::from_slice(&output)
            .map_err(|error| PaperError::RealTime(format!("invalid output of the link: {error}")))?;
        Ok(output["lateness_us"]["p99"].as_f64())
    }

    /// Address of a host outside of the tunnels.
    fn outside(&self, version: InnerIpVersion, host: usize) -> IpAddr {
        match self.place {
            LinkPlace::Veth => version.hosts(OUTSIDE).0[host],
            LinkPlace::Link => {
                let side = thinair_link::Side::ALL[host];
                let [four, six] = thinair_simulation::emulator::addresses(side).map(|(address, _)| address);
                if version == InnerIpVersion::V4 { four } else { six }
            }
        }
    }

    /// Starts the programs of a cell.
    fn prepare(
        &self,
        cell: RttCell,
        number: u8,
        program: &Path,
        key: &Path,
        children: &mut Children<'_>,
    ) -> Result<PreparedCell, PaperError> {
        let (hosts, bits) = cell.version.hosts(number);
        let server = match cell.way {
            TunnelPath::Plain => self.outside(cell.version, 1),
            TunnelPath::Forwarder => cell.version.hosts(FORWARDED).0[1],
            TunnelPath::Tunnel(_) | TunnelPath::Insecure => hosts[1],
        };
        let mut client = Command::new(CLIENT);
        client.args(["-B", "5", "-p", CLIENT_PORT]);
        client.arg(match cell.version {
            InnerIpVersion::V4 => format!("coap://{server}/time"),
            InnerIpVersion::V6 => format!("coap://[{server}]/time"),
        });
        client.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let socket = |end: usize| self.folder.path().join(format!("{number}-{end}.sock"));
        let mut ready = PreparedCell { cell, server, client, sockets: None, before: None };
        let Some(profiles) = cell.way.offered() else { return Ok(ready) };
        for (end, namespace) in self.namespaces().into_iter().enumerate() {
            let carrier =
                format!("udp://{}:{}", self.outside(InnerIpVersion::V4, 1 - end), 7_000 + u16::from(number));
            let mut tunnel = Command::new(program);
            tunnel.args(["tunnel", "run", &carrier, "--tun", &format!("inside{number}")]);
            tunnel.args(["--address", &format!("{}/{bits}", hosts[end]), "--profiles", profiles]);
            tunnel.arg("--status").arg(socket(end)).arg("--state").arg(self.folder.path());
            if cell.way == TunnelPath::Insecure {
                tunnel.arg("--insecure");
            } else {
                tunnel.arg("--key").arg(key);
            }
            children.start(namespace, self.folder.path(), &format!("tunnel-{number}-{end}"), &mut tunnel)?;
        }
        ready.sockets = Some([socket(0), socket(1)]);
        Ok(ready)
    }
}

impl PreparedCell {
    /// Status of the client's end of the tunnel.
    fn status(&self) -> Result<Option<Status>, PaperError> {
        self.sockets.as_ref().map(|[here, _]| ask(here).map_err(with_causes)).transpose()
    }

    /// True if packets get through.
    fn is_joined(&self) -> bool {
        let has_session = |socket: &PathBuf| {
            let status = ask(socket).ok()?;
            let needs_none = self.cell.way == TunnelPath::Insecure;
            (needs_none || status.peers.first()?.session_seconds.is_some()).then_some(())
        };
        self.sockets.iter().flatten().all(|socket| has_session(socket).is_some())
    }

    /// Mean octets that the tunnel carried for a request and for a response.
    fn carried(&self) -> Result<Option<CarriedOctets>, PaperError> {
        let (Some(before), Some(after)) = (&self.before, self.status()?) else { return Ok(None) };
        let profile = self.cell.way.profile().map(thinair_rohc::ProfileId::name);
        let has = |side: Side| {
            let contexts = after.peers.iter().flat_map(|peer| &peer.contexts);
            contexts.filter(|count| count.side == side).any(|count| Some(&*count.profile) == profile)
        };
        let ways = [(before.totals.sent, after.totals.sent), (before.totals.received, after.totals.received)];
        let mean = |octets: fn(&Counted) -> u64| {
            ways.map(|(before, after)| {
                let packets = after.packets - before.packets;
                (octets(&after) - octets(&before)) as f64 / packets.max(1) as f64
            })
        };
        Ok(Some(CarriedOctets {
            inside: mean(|way| way.octets),
            compressed: mean(|way| way.compressed_octets),
            carrier: mean(|way| way.carrier_octets),
            is_by_profile: has(Side::Compressor) && has(Side::Decompressor),
        }))
    }

    /// Measurements of the cell.
    fn measurements(
        &self,
        exchanges: &[CoapExchange],
        scale: RttScale,
        carried: Option<CarriedOctets>,
    ) -> CellMeasurements {
        let own = exchanges.iter().filter(|exchange| exchange.server == self.server).skip(WARM_UP);
        let times: Vec<_> = own.filter_map(CoapExchange::round_trip).collect();
        let lost = scale.rounds.saturating_sub(times.len());
        CellMeasurements { cell: self.cell, times: RttSummary::of(times), lost, carried }
    }
}

/// Line of tcpdump's output about packets that it missed, if any.
fn dropped(output: &str) -> Option<&str> {
    let lines = output.lines().filter(|line| line.contains(" dropped by "));
    lines.map(str::trim).find(|line| !line.starts_with("0 "))
}

/// True if a CoAP server is listening.
fn listens(namespace: &Namespace) -> bool {
    // proc_pid_net(5): local addresses and ports are in hexadecimal digits.
    let port = format!(":{PORT:04X} ");
    let has = |table: &str| fs::read_to_string(table).is_ok_and(|table| table.contains(&port));
    namespace
        .within(|| has("/proc/thread-self/net/udp") || has("/proc/thread-self/net/udp6"))
        .unwrap_or_default()
}
