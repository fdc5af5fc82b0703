//! Two hosts, an emulated link between them, a server of each service at one, and a client at the other that fetches
//! objects in sequence. The link's log gives the costs of each.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use thinair_analyze::exchange::{Passage, measure};
use thinair_link::Side;
use thinair_os::{Namespace, clock};
use thinair_rohc::Ports;
use thinair_simulation::load::{LoadError, LoadHosts};

use super::cell::{KernelOptions, Temper, TransportCell, TransportLink, TransportService};
use super::http3::{self, ClientReport};
use super::passed::{self, LinkPacket};
use super::service::{ServicePlace, object};
use super::{ExchangeSample, Served};
use crate::children::{Children, Interrupt, with_causes};
use crate::paper::PaperError;

/// Time limit for anything to start or to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time limit of an exchange. A longer one counts as unfinished.
const LONGEST: Duration = Duration::from_secs(25);

/// Time without packets in flight after which the link is idle: longer than an acknowledgment is delayed in these
/// exchanges.
const REST: Duration = Duration::from_millis(80);

/// Interval between two polls of the link.
const A_MOMENT: Duration = Duration::from_millis(10);

/// Lateness of the link, in nanoseconds, above which an exchange is repeated if possible.
const MOST_LATE: u64 = 1_000_000;

/// Number of rounds in which late exchanges are repeated.
const REPEATS: usize = 2;

/// Reason that there can be no hosts; `None` if there can.
pub(super) fn missing() -> Option<String> {
    match LoadHosts::create() {
        Ok(_) => None,
        Err(LoadError::Os(why)) if why.is_permission() => {
            Some(format!("it takes network namespaces, and so root (with sudo it is measured): {why}"))
        }
        Err(why) => Some(why.to_string()),
    }
}

/// Measures cells with a common link and options: at least `runs` samples of each.
pub(super) fn run(
    cells: &[TransportCell],
    runs: usize,
    program: &Path,
    interrupt: &Interrupt,
) -> Result<Vec<Served>, PaperError> {
    let Some(first) = cells.first() else { return Ok(Vec::new()) };
    let site = LinkSite::open(first.link, first.options, program, &[])?;
    let mut children = Children::new(interrupt)?;
    let mut samples: Vec<Vec<ExchangeSample>> = vec![Vec::new(); cells.len()];
    for round in 0..runs + REPEATS {
        let lacks = |samples: &Vec<ExchangeSample>| {
            samples.iter().filter(|sample| !sample.is_late()).count() < runs.min(round + 1)
        };
        let due: Vec<usize> = (0..cells.len()).filter(|&at| lacks(&samples[at])).collect();
        if due.is_empty() {
            continue;
        }
        let asked: Vec<TransportCell> = due.iter().map(|&at| cells[at]).collect();
        for (at, sample) in due.into_iter().zip(site.round(&asked, ClientMode::Processes, &mut children)?) {
            samples[at].push(sample);
        }
    }
    children.end();
    Ok(cells.iter().zip(samples).map(|(cell, samples)| Served::of(*cell, samples, runs)).collect())
}

impl ExchangeSample {
    fn is_late(&self) -> bool {
        self.late_ns > MOST_LATE
    }
}

impl Served {
    /// Selects the samples that count: those on time if there are enough of them.
    fn of(cell: TransportCell, mut samples: Vec<ExchangeSample>, runs: usize) -> Self {
        samples.sort_by_key(ExchangeSample::is_late);
        let repeated = samples.len().saturating_sub(runs);
        samples.truncate(runs);
        Self { cell, samples, repeated }
    }
}

/// Client of the exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientMode {
    /// New process for each exchange.
    Processes,
    /// One CoAP client whose Message IDs and Tokens rise by one.
    OneOfCoap,
}

/// Confirmable GET with a Token of one octet, as libcoap sends it. RFC 7252, section 3.
fn coap_get(number: u16, size: usize) -> Vec<u8> {
    let path = size.to_string();
    let message_id = 0x4000_u16.wrapping_add(number).to_be_bytes();
    let [.., token] = number.to_be_bytes();
    // Version 1, Confirmable, a Token of 1 octet; GET. Uri-Path is option 11, and the names of objects are short.
    let mut message = vec![0b0100_0001, 0x01, message_id[0], message_id[1], token, 0xb0 | path.len() as u8];
    message.extend(path.as_bytes());
    message
}

/// Hosts and link.
pub(super) struct LinkSite {
    hosts: LoadHosts,
    place: ServicePlace,
    link: Vec<String>,
    is_ipv6: bool,
    _folder: TempDir,
}

impl LinkSite {
    /// Creates two hosts with these kernel options, and a link with further arguments of `thinair link run`.
    pub(super) fn open(
        link: TransportLink,
        options: KernelOptions,
        program: &Path,
        more: &[&str],
    ) -> Result<Self, PaperError> {
        let hosts = LoadHosts::create().map_err(with_causes)?;
        for namespace in [hosts.here(), hosts.there()] {
            namespace.quiet()?;
            for (name, value) in options.sysctls() {
                let path = format!("/proc/sys/net/ipv4/{name}");
                namespace
                    .within(|| fs::write(&path, value))?
                    .map_err(|why| PaperError::RealTime(format!("cannot set {path} to {value}: {why}")))?;
            }
        }
        let folder = tempfile::Builder::new().prefix("thinair-paper").tempdir()?;
        let place = ServicePlace {
            program: program.to_owned(),
            folder: folder.path().to_owned(),
            server: address(Side::B, link.is_ipv6()),
        };
        place.prepare()?;
        let (is_ipv6, (rate, mtu), own) = (link.is_ipv6(), link.words(), link.more());
        let link = ["--rate", rate, "--delay", "20ms", "--mtu", mtu, "--queue", "50"];
        let link = link.iter().chain(own).chain(more).map(|word| (*word).to_owned()).collect();
        Ok(Self { hosts, place, link, is_ipv6, _folder: folder })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.folder.join(name)
    }

    /// Runs the link and fetches each object once.
    pub(super) fn round(
        &self,
        cells: &[TransportCell],
        client: ClientMode,
        children: &mut Children<'_>,
    ) -> Result<Vec<ExchangeSample>, PaperError> {
        self.open_up(cells, children)?;
        let here = self.hosts.here();
        let socket = match client {
            ClientMode::Processes => None,
            ClientMode::OneOfCoap => Some(self.socket()?),
        };
        let mut spans = Vec::new();
        let client_output = self.file("client.json");
        for (number, cell) in (0..).zip(cells) {
            children.look()?;
            if cell.temper == Temper::Cold {
                let mut forget = Command::new("ip");
                forget.args(["tcp_metrics", "flush", "all"]);
                children.run(here, &mut forget, PATIENCE)?;
            }
            let begin = clock::epoch() + clock::now().as_nanos();
            match &socket {
                None => {
                    let mut client = cell.service.client(&self.place, cell.size);
                    if cell.service == TransportService::Http3 {
                        http3::prepare(&mut client, cell.temper, &client_output)?;
                    }
                    children.run_for(here, &mut client, LONGEST)?;
                }
                // A missing response shows in the capture.
                Some(socket) => {
                    socket.send(&coap_get(number, cell.size))?;
                    let _ = socket.recv(&mut [0; 1_500]);
                }
            }
            self.rest(children)?;
            let report = (cell.service == TransportService::Http3)
                .then(|| ClientReport::read(&client_output, cell.size));
            spans.push((begin, clock::epoch() + clock::now().as_nanos(), report));
        }
        let packets = self.close_down(children)?;
        Ok(cells.iter().zip(spans).map(|(cell, span)| sample(cell, &packets, span)).collect())
    }

    /// Runs the link and lets one client fetch the objects over one connection. Returns every packet.
    pub(super) fn kept(
        &self,
        cell: TransportCell,
        children: &mut Children<'_>,
    ) -> Result<Vec<LinkPacket>, PaperError> {
        self.open_up(&[cell], children)?;
        let here = self.hosts.here();
        match cell.service.keeping_client(&self.place, cell.size) {
            Some(mut client) => {
                children.run_for(here, &mut client, LONGEST)?;
            }
            None => {
                here.within(|| super::kept_real::ask(cell.service, &self.place, cell.size, LONGEST))??
            }
        }
        self.rest(children)?;
        self.close_down(children)
    }

    /// Starts the link, and servers of all services.
    fn open_up(&self, cells: &[TransportCell], children: &mut Children<'_>) -> Result<(), PaperError> {
        let (here, there) = (self.hosts.here(), self.hosts.there());
        let mut options: Vec<&str> = self.link.iter().map(String::as_str).collect();
        let files = self.files().map(|file| file.display().to_string());
        options.extend(["--log", &files[0], "--ip-pcap", &files[1]]);
        children.start_link([here, there], &self.place.folder, &self.place.program, &options)?;

        let mut services: Vec<TransportService> = cells.iter().map(|cell| cell.service).collect();
        services.sort_unstable();
        services.dedup();
        for service in services {
            if listens(there, service.port()) {
                continue;
            }
            children.start(there, &self.place.folder, service.name(), &mut service.server(&self.place))?;
            let what = format!("{} listens", service.name());
            children.until(&what, PATIENCE, || listens(there, service.port()))?;
            for cell in cells.iter().filter(|cell| cell.service == service) {
                if let Some(mut put) = service.provision(&self.place, cell.size) {
                    // From the server's own host, so that the link carries nothing of it.
                    children.run(there, &mut put, PATIENCE)?;
                }
            }
        }
        // Obtains the cookie, which all services of a host share.
        if let Some(cell) = cells.iter().find(|cell| cell.service.has_cookie()) {
            children.run_for(here, &mut cell.service.client(&self.place, cell.size), LONGEST)?;
        }
        self.rest(children)?;
        Ok(())
    }

    /// Stops the link. Returns all its packets.
    fn close_down(&self, children: &mut Children<'_>) -> Result<Vec<LinkPacket>, PaperError> {
        children.finish("link", PATIENCE)?;
        let [log, capture] = self.files();
        passed::read(&log, &capture)
    }

    /// Log of the link, and capture of its IP packets.
    fn files(&self) -> [PathBuf; 2] {
        ["link.csv", "link.pcap"].map(|name| self.file(name))
    }

    /// Socket of a lasting client for libcoap's server.
    fn socket(&self) -> Result<UdpSocket, PaperError> {
        let own = address(Side::A, self.is_ipv6);
        let server = (self.place.server, TransportService::Coap.port());
        let socket = self.hosts.here().within(|| -> std::io::Result<UdpSocket> {
            let socket = UdpSocket::bind((own, 40_001))?;
            socket.connect(server)?;
            socket.set_read_timeout(Some(LONGEST))?;
            Ok(socket)
        })??;
        Ok(socket)
    }

    /// Waits until no packet is in flight.
    fn rest(&self, children: &mut Children<'_>) -> Result<(), PaperError> {
        let until = clock::now() + LONGEST;
        let mut seen = (self.counters(), clock::now());
        while clock::now() < until {
            children.pause(A_MOMENT)?;
            let counters = self.counters();
            if counters != seen.0 {
                seen = (counters, clock::now());
            }
            // One host has received all packets of the other.
            let [here, there] = counters;
            let is_under_way = here.1 != there.0 || there.1 != here.0;
            if !is_under_way && clock::now() >= seen.1 + REST {
                break;
            }
            // A dropped packet never arrives.
            if clock::now() >= seen.1 + REST * 20 {
                break;
            }
        }
        Ok(())
    }

    /// Packets that each host has received from its end of the link, and sent to it.
    fn counters(&self) -> [(u64, u64); 2] {
        [self.hosts.here(), self.hosts.there()].map(|namespace| {
            let read = || fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
            let table = namespace.within(read).unwrap_or_default();
            // proc_pid_net(5): 8 columns for received packets, and then for sent ones.
            let line = table.lines().find_map(|line| line.trim_start().strip_prefix("thinair"));
            let fields: Vec<&str> =
                line.unwrap_or_default().split([' ', ':']).filter(|field| !field.is_empty()).collect();
            let field = |at: usize| fields.get(at).and_then(|field| field.parse().ok()).unwrap_or(0);
            (field(2), field(10))
        })
    }
}

/// Costs of an exchange, from all packets of the link, and from the client's report if it is encrypted.
fn sample(
    cell: &TransportCell,
    packets: &[LinkPacket],
    (begin, end, report): (u64, u64, Option<Option<ClientReport>>),
) -> ExchangeSample {
    let mut own: Vec<&LinkPacket> =
        packets.iter().filter(|packet| (begin..end).contains(&packet.entered)).collect();
    if report.is_some() {
        http3::keep_last_connection(&mut own);
    }
    let passages = own.iter().map(|packet| Passage {
        entered: packet.entered,
        delivered: packet.delivered,
        octets: &packet.octets,
    });
    let ports =
        Ports::of(&[TransportService::Coap.port(), TransportService::CoapOurs.port()]).unwrap_or(Ports::COAP);
    let mut exchange = measure(passages, &object(cell.size), ports);
    if let Some(report) = report.flatten() {
        report.complete(&mut exchange, cell.size);
    }
    let sum = |of: fn(&LinkPacket) -> u64| own.iter().map(|packet| of(packet)).sum();
    ExchangeSample {
        exchange,
        late_ns: own.iter().map(|packet| packet.late).max().unwrap_or(0),
        ip_octets: sum(|packet| packet.ip_octets),
        link_octets: sum(|packet| packet.link_octets),
        frames: sum(|packet| packet.frames),
        frame_octets: sum(|packet| packet.frame_octets),
    }
}

/// Address of a host.
fn address(side: Side, is_ipv6: bool) -> IpAddr {
    let [four, six] = thinair_simulation::emulator::addresses(side).map(|(address, _)| address);
    if is_ipv6 { six } else { four }
}

/// True if a socket listens on a port of a host, by UDP or TCP.
fn listens(namespace: &Namespace, port: u16) -> bool {
    // proc_pid_net(5): local addresses and ports are in hexadecimal digits; the remote end of a listening socket is 0.
    let entry = format!(":{port:04X} 00000000");
    let has = |table: &str| fs::read_to_string(table).is_ok_and(|table| table.contains(&entry));
    let tables = ["udp", "udp6", "tcp", "tcp6"].map(|table| format!("/proc/thread-self/net/{table}"));
    namespace.within(|| tables.iter().any(|table| has(table))).unwrap_or_default()
}

/// Reasons that services cannot run, by service.
pub(super) fn services_missing(program: &Path) -> BTreeMap<TransportService, String> {
    TransportService::all().filter_map(|service| Some((service, service.missing(program)?))).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use thinair_wire::header::coap::Coap;

    use super::*;

    #[test]
    fn a_get_is_one() {
        let message = coap_get(258, 1_000);
        let read = Coap::read(&message).unwrap();
        assert_eq!((read.message_id, read.token), (0x4102, &[2][..]));
        let options: Vec<_> = read.options().map(|option| (option.number, option.value)).collect();
        assert_eq!(options, [(11, &b"1000"[..])]);
    }
}
