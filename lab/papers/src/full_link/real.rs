//! Cells in real time: the command `thinair` creates the link, and the tunnel through it, between two network
//! namespaces, and iperf3 sends through them. Captures at both ends have every packet.

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use thinair_capture::Reader;
use thinair_os::Namespace;
use thinair_rohc::Mode;
use thinair_simulation::load::LoadHosts;
use thinair_wire::time::Instant;

use super::cell::{HeaderTreatment, LinkCarrier, LinkScenario, RATE};
use super::flow::{GoodputSample, HEADERS};
use crate::children::{Children, Interrupt, with_causes};
use crate::paper::{PaperError, RunPlan};

/// Required programs, and the Debian packages that have them.
const SENDER: &str = "iperf3";
const CAPTURE: &str = "tcpdump";
const PROGRAMS: [(&str, &str); 2] = [(SENDER, "iperf3"), (CAPTURE, "tcpdump")];

/// Time limit for anything to start or to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time from the first packet to the start of the measured window.
const WARM_UP: Duration = Duration::from_millis(500);
/// Port of the receiver of iperf3.
const PORT: u16 = 5_201;
/// Port of the tunnel, its interface, and its addresses.
const TUNNEL_PORT: u16 = 7_000;
const TUNNEL: &str = "inside";
const TUNNEL_ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

/// Reason that nothing can be measured, if there is one.
pub(super) fn missing() -> Option<String> {
    for (program, package) in PROGRAMS {
        let tried =
            Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if tried.is_err() {
            return Some(format!("there is no {program} (Debian: {package})"));
        }
    }
    LoadHosts::create().err().map(|why| format!("{}: this needs root", with_causes(why)))
}

/// Measures one cell for `seconds` seconds.
pub(super) fn measure(
    scenario: LinkScenario,
    way: HeaderTreatment,
    plan: &RunPlan,
    program: &Path,
    seconds: u64,
    interrupt: &Interrupt,
) -> Result<GoodputSample, PaperError> {
    let hosts = LoadHosts::create().map_err(with_causes)?;
    let hosts = [hosts.here(), hosts.there()];
    let folder = tempfile::Builder::new().prefix("thinair-paper").tempdir()?;
    let folder = folder.path();
    let mut children = Children::new(interrupt)?;

    let seed = plan.seed.to_string();
    let mut link = vec!["--rate", "2M", "--queue", "100", "--seed", &seed];
    let mode = match way {
        HeaderTreatment::Plain => None,
        HeaderTreatment::Rohc(Mode::Unidirectional) => Some("u"),
        HeaderTreatment::Rohc(Mode::Optimistic) => Some("o"),
        HeaderTreatment::Rohc(Mode::Reliable) => Some("r"),
    };
    if let (LinkCarrier::Link, Some(mode)) = (scenario.carrier, mode) {
        link.extend(["--rohc", "--mode", mode]);
    }
    children.start_link(hosts, folder, program, &link)?;

    let (receiver, interface) = match scenario.carrier {
        LinkCarrier::Link => (outside()[1].to_string(), thinair_simulation::load::INTERFACE),
        LinkCarrier::Udp | LinkCarrier::Ule => {
            start_tunnel(&mut children, hosts, folder, program, scenario.carrier, mode)?;
            (TUNNEL_ADDRESSES[1].to_owned(), TUNNEL)
        }
    };
    let mut ping = Command::new("ping");
    ping.args(["-c", "1", "-W", "1", &receiver]).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = std::time::Instant::now();
    while !children.run(hosts[0], &mut ping, PATIENCE)?.success() {
        if begun.elapsed() > PATIENCE {
            return Err(PaperError::RealTime(format!("{receiver} did not start")));
        }
    }

    let port = PORT.to_string();
    let mut server = Command::new(SENDER);
    server.args(["--server", "--bind", &receiver, "--port", &port]);
    children.start(hosts[1], folder, "receiver", &mut server)?;
    for (end, host) in hosts.into_iter().enumerate() {
        let name = format!("capture-{end}");
        let mut capture = Command::new(CAPTURE);
        capture.args(["-i", interface, "--immediate-mode", "-B", "16384", "--time-stamp-precision", "nano"]);
        capture.args(["-n", "-w", "-", &format!("udp dst port {port}")]);
        children.start(host, folder, &name, &mut capture)?;
        let log = folder.join(format!("{name}.err"));
        children.until("tcpdump listens", PATIENCE, || {
            std::fs::read_to_string(&log).is_ok_and(|log| log.contains("listening on"))
        })?;
    }
    let mut sender = Command::new(SENDER);
    sender.args(["--client", &receiver, "--port", &port, "--udp", "--time", &(seconds + 1).to_string()]);
    sender.args([
        "--bitrate",
        &format!("{}M", scenario.offered()),
        "--length",
        &scenario.payload.to_string(),
    ]);
    sender.stdout(Stdio::null()).stderr(Stdio::null());
    // Its control connection shares the saturated link, and may never end.
    children.run_for(hosts[0], &mut sender, Duration::from_secs(seconds + 1) + PATIENCE)?;
    for end in 0..2 {
        children.finish(&format!("capture-{end}"), PATIENCE)?;
    }
    children.end();
    compare(folder, scenario, Duration::from_secs(seconds))
}

/// IPv4 addresses of both ends of the link.
fn outside() -> [IpAddr; 2] {
    thinair_link::Side::ALL.map(|side| thinair_simulation::emulator::addresses(side)[0].0)
}

/// Starts both ends of a tunnel through the link.
fn start_tunnel(
    children: &mut Children<'_>,
    hosts: [&Namespace; 2],
    folder: &Path,
    program: &Path,
    carrier: LinkCarrier,
    mode: Option<&str>,
) -> Result<(), PaperError> {
    let key = folder.join("tunnel.key");
    let mut keygen = Command::new(program);
    keygen.args(["tunnel", "keygen"]).arg(&key).stdout(Stdio::null()).stderr(Stdio::null());
    if !children.run(hosts[0], &mut keygen, PATIENCE)?.success() {
        return Err(PaperError::RealTime("no key could be made".to_owned()));
    }
    let (scheme, options) = if carrier == LinkCarrier::Ule { ("ule+udp", "?flush=3ms") } else { ("udp", "") };
    for (end, host) in hosts.into_iter().enumerate() {
        let other = outside()[1 - end];
        let mut tunnel = Command::new(program);
        tunnel.args([
            "tunnel",
            "run",
            &format!("{scheme}://{other}:{TUNNEL_PORT}{options}"),
            "--tun",
            TUNNEL,
        ]);
        tunnel.args(["--address", &format!("{}/30", TUNNEL_ADDRESSES[end])]);
        match mode {
            Some(mode) => tunnel.args(["--mode", mode]),
            None => tunnel.args(["--profiles", "uncompressed"]),
        };
        tunnel.arg("--key").arg(&key).arg("--state").arg(folder);
        children.start(host, folder, &format!("tunnel-{end}"), &mut tunnel)?;
    }
    Ok(())
}

/// Compares both captures.
fn compare(folder: &Path, scenario: LinkScenario, span: Duration) -> Result<GoodputSample, PaperError> {
    let len = HEADERS + scenario.payload;
    let sent: HashSet<Vec<u8>> = packets(folder, 0, len)?.into_iter().map(|(_, packet)| packet).collect();
    let received = packets(folder, 1, len)?;
    let Some(&(first, _)) = received.first() else { return Ok(GoodputSample::default()) };
    let from = first + WARM_UP;
    let within = received.iter().filter(|(time, _)| (from..from + span).contains(time));
    let (mut last, mut sample) = (from, GoodputSample::default());
    for (time, packet) in within {
        if sent.contains(packet) {
            sample.delivered += 1.0;
            sample.outage = sample.outage.max(1e-6 * time.nanos_since(last) as f64);
            last = *time;
        } else {
            sample.wrong += 1.0;
        }
    }
    sample.outage = sample.outage.max(1e-6 * (from + span).nanos_since(last) as f64);
    // Capacity of a saturated link. The bar uses it only there.
    sample.octets = RATE as f64 / 8.0 * span.as_secs_f64() / sample.delivered.max(1.0);
    sample.goodput = 8e-6 * sample.delivered * scenario.payload as f64 / span.as_secs_f64();
    Ok(sample)
}

/// IP packets of `len` octets in the capture of one end, with their times.
fn packets(folder: &Path, end: usize, len: usize) -> Result<Vec<(Instant, Vec<u8>)>, PaperError> {
    let path = folder.join(format!("capture-{end}.out"));
    let file =
        std::fs::File::open(&path).map_err(|source| PaperError::Open { path: path.clone(), source })?;
    let failed = |source| PaperError::Read { path: path.clone(), source };
    let mut reader = Reader::new(file).map_err(failed)?;
    let mut packets = Vec::new();
    while let Some(record) = reader.next_record() {
        let record = record.map_err(failed)?;
        let Ok(network) = record.network_packet() else { continue };
        if network.packet.len() == len {
            packets.push((Instant::from_nanos(record.time.as_nanos()), network.packet.to_vec()));
        }
    }
    Ok(packets)
}
