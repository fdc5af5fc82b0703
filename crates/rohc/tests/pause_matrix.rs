//! Senders that pause and lose their first packets behind a pause, and carriers that count: a delivered packet equals the one sent, a
//! flow that was interrupted is served again soon, and a count never delivers less.
//!
//! Each cell has wrong packets (and, where only a CRC proves a candidate, the number that the formats accept), packets that arrive and are
//! not delivered, gaps, the longest outage in packets and in seconds, the number of gaps that are followed by a longer outage than
//! `journey.rs` allows, and octets of headers a packet. In full, with other seeds:
//!
//! ```text
//! THINAIR_PACKETS=1000000 THINAIR_SEED=2 cargo test --profile optimized -p thinair-rohc --test pause_matrix -- --nocapture
//! ```
//!
//! Octets are held against those on record, in `pause_matrix/`; `THINAIR_BLESS=1` writes them anew.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use common::grid::measure;
use common::journey::{JourneyOutcome, JourneySetup, PacketPace, Step, run, run_peer, run_steps};
use common::losses::{LossFates, Losses};
use common::pairs::covering;
use common::pauses::{self, PauseShape, PausedClock, Pauses, bursty_steps};
use common::peer::Peer;
use common::source::{ChecksumUse, PacketSource, SourceKind};
use common::table::{Size, hold, wrong};
use common::{IdKind, SplitMix64};
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Endpoint, Instant, Mode, ProfileSet, ReorderRatio, RtpDetection,
};

/// Delay in one direction, in microseconds.
const DELAY: u64 = 5_000;

/// Number of packets of a cell in a short run.
const SMALL: u64 = 800;

/// Cells that miss their limit.
///
/// Each has the words of a line, and the number of lines that have them with the first seed and default size: there may not be more.
/// - Octets: a timestamp that no checksum proves, and those of TCP, are sent once more behind a pause, where the flow was dead before.
/// - Undelivered: IP-IDs of busy hosts and timestamps that jump often take more than one packet behind a request for repair.
/// - Service: behind 1,024 losses, or a pause of an hour, in U-mode.
/// - Count: the smaller number of candidates decides earlier, about a timestamp too.
const OPEN: &[(&str, usize)] =
    &[("octets packet", 200), ("undelivered gaps", 48), ("gaps service", 9), ("without count", 11)];

/// A flow: its headers, their profiles, and the clock of its timestamps in a pause.
#[derive(Clone, Copy, Debug)]
struct FlowKind {
    kind: SourceKind,
    checksum: ChecksumUse,
    is_v2: bool,
    clock: PausedClock,
}

impl FlowKind {
    fn all() -> Vec<Self> {
        use SourceKind::{
            CoapExchange, CoapGet, CoapNotify, Esp, Ip, Rtp, RtpTalk, TcpAck, TcpChat, TcpData, Udp, UdpLite,
        };
        let v1 = [
            Udp,
            Esp,
            Ip,
            UdpLite,
            Rtp,
            RtpTalk,
            TcpData,
            TcpAck,
            TcpChat,
            CoapGet,
            CoapNotify,
            CoapExchange,
        ];
        let v2 = [Udp, Esp, Ip, Rtp];
        let kinds = v1.iter().map(|kind| (*kind, false)).chain(v2.iter().map(|kind| (*kind, true)));
        let mut all = Vec::new();
        for (kind, is_v2) in kinds {
            for &checksum in kind.checksums() {
                let clocks = [PausedClock::GoesOn, PausedClock::Stops];
                for clock in clocks.into_iter().take(if kind.is_rtp() { 2 } else { 1 }) {
                    all.push(Self { kind, checksum, is_v2, clock });
                }
            }
        }
        all
    }

    fn modes(&self) -> &'static [Mode] {
        let has_reliable = !self.is_v2 && !self.kind.is_coap() && !self.kind.is_tcp();
        &MODES[..if has_reliable { 3 } else { 2 }]
    }

    fn ids(&self) -> &'static [IdKind] {
        &IDS[..if self.kind.is_coap() { 1 } else { IDS.len() }]
    }

    fn setup(&self, mode: Mode, ip: Option<IdKind>) -> JourneySetup {
        JourneySetup {
            kind: self.kind,
            six: ip.is_none(),
            checksum: self.checksum,
            mode,
            pace: PacketPace::MS_20,
            counts: false,
            moves: false,
            delay: DELAY,
            v2: self.is_v2.then_some(ReorderRatio::None),
            ids: ip.unwrap_or(IdKind::Counts),
        }
    }
}

const MODES: [Mode; 3] = [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable];

const RATIOS: [ReorderRatio; 4] =
    [ReorderRatio::None, ReorderRatio::Quarter, ReorderRatio::Half, ReorderRatio::ThreeQuarters];

/// IP-IDs. Hosts that are busy step by up to 12.
const IDS: [IdKind; 5] =
    [IdKind::Counts, IdKind::Steps(12), IdKind::Random, IdKind::Swapped, IdKind::Constant];

const SHAPES: [PauseShape; 4] =
    [PauseShape::Fixed, PauseShape::Exponential, PauseShape::OnOff, PauseShape::Bursts];

/// Pauses, in milliseconds.
const PAUSES: [u64; 8] = [1, 100, 500, 1_600, 5_000, 25_000, 60_000, 3_600_000];

/// Numbers of packets that are lost behind a pause.
const LOST: [u64; 10] = [1, 2, 3, 4, 6, 8, 16, 64, 256, 1_024];

/// Traffic and losses of a cell.
#[derive(Clone, Copy, Debug)]
enum Load {
    Pauses(Pauses),
    /// One packet in 20 ms.
    Steady(Losses),
    /// Packets 0.5 ms to 4 s apart, of which one in five is lost.
    Bursty,
}

/// A cell of the matrix.
#[derive(Clone, Copy, Debug)]
struct PauseCell {
    setup: JourneySetup,
    load: Load,
    /// The cell is compared with one of the same stream that has a proof: it has as many packets.
    is_compared: bool,
}

impl PauseCell {
    fn paused(setup: JourneySetup, pauses: Pauses) -> Self {
        Self {
            setup: JourneySetup { pace: pauses.pace(), ..setup },
            load: Load::Pauses(pauses),
            is_compared: false,
        }
    }

    fn steady(setup: JourneySetup, losses: Losses) -> Self {
        Self { setup, load: Load::Steady(losses), is_compared: false }
    }

    fn bursty(setup: JourneySetup) -> Self {
        Self {
            setup: JourneySetup { pace: PacketPace::Pausing(20_000), ..setup },
            load: Load::Bursty,
            is_compared: false,
        }
    }

    /// The cell, and that of the same stream with the count of a carrier.
    fn compared(self) -> [Self; 2] {
        [false, true].map(|counts| Self {
            setup: JourneySetup { counts, ..self.setup },
            is_compared: true,
            ..self
        })
    }

    /// Carries the packets; through rohc-lib if there is a `peer`.
    fn run(&self, size: &Size, peer: Option<&Peer>) -> JourneyOutcome {
        let setup = &self.setup;
        let counts = setup.counts || self.is_compared;
        let packets = size.packets(&JourneySetup { counts, ..*setup }, SMALL);
        let seed = size.seed + 1_000;
        let steps_of = |packets, seed| match self.load {
            Load::Pauses(pauses) => pauses.steps(packets, seed),
            _ => bursty_steps(packets, seed),
        };
        let run_one = |steps: &[Step], seed| match peer {
            None => run_steps(setup, steps, seed),
            Some(peer) => {
                let mut fates = LossFates::new(Losses::None, 0);
                run_peer(setup, &mut fates, seed, steps.len() as u64, steps, peer)
            }
        };
        let Load::Steady(losses) = self.load else {
            return pauses::run_flows(packets, seed, steps_of, run_one);
        };
        // A short run has a long loss, too.
        let least = if let Losses::Behind(lost) = losses { 160 + 2 * lost } else { 0 };
        let packets = packets.max(least);
        let (mut all, mut seeds) = (JourneyOutcome::default(), SplitMix64(seed));
        while all.sent < packets {
            let (mut fates, seed) = (LossFates::new(losses, seeds.next()), seeds.next());
            let left = (packets - all.sent).min(20_000);
            all.add(&match peer {
                None => run(setup, &mut fates, seed, left),
                Some(peer) => run_peer(setup, &mut fates, seed, left, &[], peer),
            });
        }
        all
    }

    /// The value in each dimension.
    fn dimensions(&self) -> Vec<String> {
        let load = match self.load {
            Load::Pauses(Pauses { micros, shape, clock, lost }) => {
                [format!("{shape:?}"), format!("{micros}"), format!("{clock:?} {lost}")]
            }
            Load::Steady(losses) => [format!("{losses:?}"), String::new(), String::new()],
            Load::Bursty => ["bursty".into(), String::new(), String::new()],
        };
        let pace = PacketPace::NONE;
        [JourneySetup { pace, ..self.setup }.dimensions(), load.into()].concat()
    }

    fn name(&self) -> String {
        let JourneySetup { kind, six, checksum, mode, v2, counts, ids, .. } = self.setup;
        let ip = match ids {
            _ if six => "v6",
            IdKind::Counts => "v4",
            IdKind::Steps(_) => "v4-steps",
            IdKind::Random => "v4-random",
            IdKind::Swapped => "v4-swapped",
            IdKind::Constant => "v4-zero",
        };
        let checksum = if checksum == ChecksumUse::Elided { "elided" } else { "" };
        let profile = v2.map_or("", |ratio| match ratio {
            ReorderRatio::None => "v2",
            ReorderRatio::Quarter => "v2-1/4",
            ReorderRatio::Half => "v2-1/2",
            ReorderRatio::ThreeQuarters => "v2-3/4",
        });
        let load = match self.load {
            Load::Pauses(Pauses { micros, shape, clock, lost }) => {
                let clock = if clock == PausedClock::Stops { " stops" } else { "" };
                let shape = format!("{shape:?}").to_lowercase();
                format!("{shape} {} lost={lost}{clock}", duration(micros))
            }
            Load::Steady(losses) => format!("{losses:?}").to_lowercase(),
            Load::Bursty => "bursty, loss 20 %".into(),
        };
        let kind = format!("{kind:?}");
        let count = if counts { "count" } else { "" };
        format!("{kind:<12} {ip:<10} {checksum:<6} {profile:<6} {} {count:<5} {load}", mode.letter())
    }

    /// Reason for which the outcome misses a limit.
    fn miss(&self, outcome: &JourneyOutcome) -> Option<String> {
        let JourneyOutcome { undelivered, gaps, overdue, wait, .. } = *outcome;
        let is_one_way = self.setup.mode == Mode::Unidirectional;
        let is_slow = if is_one_way { overdue > 0 } else { undelivered > gaps };
        let slow = || match is_one_way {
            true => format!("{overdue} of {gaps} gaps without service for too long, {:.1} s", seconds(wait)),
            false => format!("{undelivered} undelivered behind {gaps} gaps"),
        };
        wrong(outcome).or_else(|| is_slow.then(slow))
    }
}

/// The cells that are measured: [`Size::part`], in groups of `len` that are compared with each other.
fn part(cells: Vec<PauseCell>, len: usize, size: &Size) -> Vec<PauseCell> {
    let mut groups: Vec<&[PauseCell]> = cells.chunks(len).collect();
    groups.retain(|group| group.iter().any(|cell| size.has(&cell.name())));
    let values: Vec<_> = groups.iter().map(|group| group[0].dimensions()).collect();
    size.part(&values).into_iter().flat_map(|at| groups[at]).copied().collect()
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

fn duration(micros: u64) -> String {
    match micros / 1_000 {
        millis if millis < 1_000 => format!("{millis}ms"),
        millis => format!("{}s", millis as f64 / 1_000.0),
    }
}

fn octets(outcome: &JourneyOutcome) -> f64 {
    outcome.octets as f64 / outcome.sent as f64
}

/// Measures the cells of a table, prints them, and returns what misses a limit.
fn measured(table: &str, cells: &[PauseCell], size: &Size) -> (Vec<JourneyOutcome>, Vec<String>) {
    let names: Vec<String> = cells.iter().map(PauseCell::name).collect();
    let outcomes = measure(table, &names, size, |cell| cells[cell].run(size, None));
    let peers = measured_peers(table, cells, size);
    let width = names.iter().map(String::len).max().unwrap_or(0);
    println!(
        "\n{table:<width$} {:>7} {:>8} {:>9} {:>9} {:>7} {:>7} {:>9} {:>5} {:>7}{}",
        "wrong",
        "bound",
        "not deliv",
        "arrived",
        "gaps",
        "outage",
        "s",
        "late",
        "octets",
        if peers.is_empty() { "" } else { "  rohc-lib: wrong, not delivered, outage" }
    );
    for (name, outcome) in names.iter().zip(&outcomes) {
        let beside = peers.get(name).map_or(String::new(), |peer| {
            format!("{:>11} {:>9} {:>7}", peer.wrong, peer.undelivered, peer.outage)
        });
        let JourneyOutcome { wrong, bound, undelivered, arrived, gaps, outage, wait, overdue, .. } = *outcome;
        println!(
            "{name:<width$} {wrong:>7} {bound:>8.0} {undelivered:>9} {arrived:>9} {gaps:>7} {outage:>7} {:>9.2} {overdue:>5} {:>7.3}{beside}",
            seconds(wait),
            octets(outcome)
        );
    }
    println!();
    summary(table, cells, &outcomes, &peers).iter().for_each(|line| println!("{line}"));
    let of_cells = |(cell, outcome): (&PauseCell, &JourneyOutcome)| {
        let name = cell.name();
        let more = peers.get(&name).filter(|peer| peer.wrong < outcome.wrong);
        let more = more.map(|peer| format!("{} wrong, {} by rohc-lib", outcome.wrong, peer.wrong));
        cell.miss(outcome).or(more).map(|reason| format!("{name}: {reason}"))
    };
    let mut missed: Vec<String> = cells.iter().zip(&outcomes).filter_map(of_cells).collect();
    missed.extend(above_record(table, &names, &outcomes, size));
    (outcomes, missed)
}

/// Fails with every line that is not [`OPEN`], and where more lines are open than are known.
fn hold_open(missed: Vec<String>, size: &Size) {
    let mut unknown = Vec::new();
    let mut known = vec![0; OPEN.len()];
    for line in missed {
        let words: Vec<&str> = line.split([' ', ',', ':']).collect();
        match OPEN.iter().position(|(open, _)| open.split(' ').all(|word| words.contains(&word))) {
            Some(at) => known[at] += 1,
            None => unknown.push(line),
        }
    }
    for ((words, most), cells) in OPEN.iter().zip(known) {
        println!("open: {words}: {cells} cells");
        if size.packets.is_none() && cells > *most {
            unknown.push(format!("{words}: {cells} cells, {most} on record"));
        }
    }
    hold(&[], unknown.into_iter());
}

/// Rows of a table in Markdown: the cells of a flow and a mode together.
fn summary(
    table: &str,
    cells: &[PauseCell],
    outcomes: &[JourneyOutcome],
    peers: &BTreeMap<String, JourneyOutcome>,
) -> Vec<String> {
    let mut rows: BTreeMap<String, (u32, JourneyOutcome, u32, [JourneyOutcome; 2])> = BTreeMap::new();
    for (cell, outcome) in cells.iter().zip(outcomes) {
        let JourneySetup { kind, checksum, mode, v2, counts, .. } = cell.setup;
        let checksum = if checksum == ChecksumUse::Elided { " without checksum" } else { "" };
        let version = if v2.is_some() { " ROHCv2" } else { "" };
        let count = if counts { ", counted" } else { "" };
        let name = format!("{kind:?}{checksum}{version}{count} | {}", mode.letter().to_ascii_uppercase());
        let row = rows.entry(name).or_default();
        row.0 += 1;
        row.1.add(outcome);
        if let Some(peer) = peers.get(&cell.name()) {
            row.2 += 1;
            row.3[0].add(outcome);
            row.3[1].add(peer);
        }
    }
    let mut lines = vec![
        format!(
            "| {table} | mode | cells | wrong | bound | not delivered | arrived | gaps | late | longest, s | same cells: wrong, not delivered | rohc-lib: wrong, not delivered |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|---|---|".into(),
    ];
    for (name, (count, all, compared, [ours, theirs])) in rows {
        let JourneyOutcome { wrong, bound, undelivered, arrived, gaps, overdue, wait, .. } = all;
        let beside = match compared {
            0 => "| |".into(),
            _ => format!(
                "{}, {} of {} | {}, {} |",
                ours.wrong, ours.undelivered, ours.arrived, theirs.wrong, theirs.undelivered
            ),
        };
        lines.push(format!(
            "| {name} | {count} | {wrong} | {bound:.0} | {undelivered} | {arrived} | {gaps} | {overdue} | {:.1} | {beside}",
            seconds(wait)
        ));
    }
    lines
}

/// The cells through rohc-lib, by name, where it is at hand, and the run is none of those that `make test` has.
fn measured_peers(table: &str, cells: &[PauseCell], size: &Size) -> BTreeMap<String, JourneyOutcome> {
    let Some(peer) = Peer::at_hand().filter(|_| size.packets.is_some()) else { return BTreeMap::new() };
    let cells: Vec<&PauseCell> = cells.iter().filter(|cell| Peer::has(&cell.setup)).collect();
    let names: Vec<String> = cells.iter().map(|cell| cell.name()).collect();
    let table = format!("{table}_rohc-lib");
    let outcomes = measure(&table, &names, size, |cell| cells[cell].run(size, Some(&peer)));
    names.into_iter().zip(outcomes).collect()
}

/// Cells with more than 1.02 of the octets on record, which are those of a short run with the first seed.
fn above_record(table: &str, names: &[String], outcomes: &[JourneyOutcome], size: &Size) -> Vec<String> {
    if size.packets.is_some() || size.seed != 1 {
        return Vec::new();
    }
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/pause_matrix");
    let path = folder.join(format!("{table}.txt"));
    let name_of = |name: &String| name.split_whitespace().collect::<Vec<_>>().join(" ");
    if std::env::var_os("THINAIR_BLESS").is_some() {
        let rows = names.iter().zip(outcomes);
        let lines: String =
            rows.map(|(name, outcome)| format!("{:.3} {}\n", octets(outcome), name_of(name))).collect();
        let head = "# Octets of headers a packet, and the cell: of `cargo test -p thinair-rohc --test pause_matrix` with THINAIR_BLESS=1.\n";
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&path, format!("{head}{lines}")).unwrap();
        return Vec::new();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let record: BTreeMap<&str, f64> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap())
        .map(|(octets, name)| (name, octets.parse().unwrap()))
        .collect();
    let above = names.iter().zip(outcomes).filter_map(|(name, outcome)| {
        let (short, now) = (name_of(name), octets(outcome));
        match record.get(short.as_str()) {
            None => Some(format!("{name}: no octets on record")),
            Some(before) if now > before * 1.02 + 0.001 => {
                Some(format!("{name}: {now:.3} octets a packet, {before:.3} on record"))
            }
            Some(_) => None,
        }
    });
    above.collect()
}

/// Reason for which the count of a carrier is worse than none, for each pair of cells.
fn worse(cells: &[PauseCell], outcomes: &[JourneyOutcome]) -> Vec<String> {
    let pairs = cells.chunks(2).zip(outcomes.chunks(2));
    let worse = pairs.filter_map(|(cells, outcomes)| {
        let [without, with] = outcomes else { return None };
        let sums = [without, with].map(|outcome| outcome.wrong + outcome.undelivered);
        let is_worse = with.wrong > without.wrong || sums[1] > sums[0];
        let figures = format!("{} wrong, {} not delivered", with.wrong, with.undelivered);
        let others = format!("{} and {} without a count", without.wrong, without.undelivered);
        is_worse.then(|| format!("{}: {figures}, {others}", cells[1].name()))
    });
    worse.collect()
}

/// Flows of every profile with a pause of 1 to 25 s, and 6 packets lost behind it.
#[test]
fn first_packets_behind_a_pause_are_lost() {
    let size = Size::from_environment();
    let mut cells = Vec::new();
    for flow in FlowKind::all() {
        for &mode in flow.modes() {
            for ip in [Some(IdKind::Counts), None] {
                let shape = PauseShape::Uniform;
                let pauses = Pauses { micros: 1_000_000, shape, clock: flow.clock, lost: 6 };
                cells.push(PauseCell::paused(flow.setup(mode, ip), pauses));
            }
        }
    }
    let cells = part(cells, 1, &size);
    let (_, missed) = measured("pauses", &cells, &size);
    hold_open(missed, &size);
}

/// Each flow, mode, IP header, pause and loss, each with each: the same streams without and with a count.
#[test]
fn pauses_of_every_kind_are_survived() {
    let size = Size::from_environment();
    let flows = FlowKind::all();
    let values = [flows.len(), 3, RATIOS.len(), IDS.len() + 1, SHAPES.len(), PAUSES.len(), LOST.len(), 2];
    // Values that a flow has, of the mode, the ratio and the IP header.
    let rows = covering(&values, size.seed, |row| {
        flows.iter().enumerate().any(|(number, flow)| {
            let has = |at: usize, count: usize| row[at].is_none_or(|value| value < count);
            let has_ip = row[3].is_none_or(|ip| ip == IDS.len() || ip < flow.ids().len());
            row[0].is_none_or(|chosen| chosen == number)
                && has(1, flow.modes().len())
                && has(2, if flow.is_v2 { RATIOS.len() } else { 1 })
                && has_ip
        })
    });
    let mut cells = Vec::new();
    for row in rows {
        let [flow, mode, ratio, ip, shape, pause, lost, count] = row[..] else { unreachable!() };
        let flow = flows[flow];
        let setup = flow.setup(MODES[mode], IDS.get(ip).copied());
        let setup = JourneySetup { v2: flow.is_v2.then_some(RATIOS[ratio]), ..setup };
        let (micros, shape) = (1_000 * PAUSES[pause], SHAPES[shape]);
        let pauses = Pauses { micros, shape, clock: flow.clock, lost: LOST[lost] };
        let cell = PauseCell::paused(setup, pauses);
        cells.push((cell, count == 1));
    }
    cells.retain(|(cell, _)| size.has(&cell.name()));
    let (counted, others): (Vec<_>, Vec<_>) = cells.into_iter().partition(|(_, is_counted)| *is_counted);
    let others: Vec<PauseCell> = others.into_iter().map(|(cell, _)| cell).collect();
    let counted: Vec<PauseCell> = counted.into_iter().flat_map(|(cell, _)| cell.compared()).collect();
    let (_, mut missed) = measured("pairs", &others, &size);
    let (outcomes, missed_with_count) = measured("pairs_counted", &counted, &size);
    missed.extend(missed_with_count);
    missed.extend(worse(&counted, &outcomes));
    hold_open(missed, &size);
}

/// Each stream of RTP without and with the count of a carrier.
#[test]
fn a_count_never_delivers_less() {
    let size = Size::from_environment();
    let losses =
        [Losses::Behind(64), Losses::Behind(256), Losses::Bursts, Losses::NineTenths, Losses::LongBursts];
    let mut cells = Vec::new();
    for kind in [SourceKind::Rtp, SourceKind::RtpTalk, SourceKind::RtpPause] {
        for (checksum, is_v2) in kind.checksums().iter().flat_map(|sum| [(*sum, false), (*sum, true)]) {
            let flow = FlowKind { kind, checksum, is_v2, clock: PausedClock::GoesOn };
            for &mode in flow.modes() {
                for (ip, losses) in
                    [Some(IdKind::Counts), None].into_iter().flat_map(|ip| losses.map(|losses| (ip, losses)))
                {
                    cells.extend(PauseCell::steady(flow.setup(mode, ip), losses).compared());
                }
            }
        }
    }
    let cells = part(cells, 2, &size);
    let (outcomes, mut missed) = measured("counts", &cells, &size);
    missed.extend(worse(&cells, &outcomes));
    hold_open(missed, &size);
}

/// Busy hosts, bursty flows, and TCP behind bursts of losses.
#[test]
fn busy_hosts_and_bursty_flows_are_right() {
    let size = Size::from_environment();
    let mut cells = Vec::new();
    for flow in FlowKind::all().into_iter().filter(|flow| flow.clock == PausedClock::GoesOn) {
        for &mode in flow.modes() {
            for ip in [Some(IdKind::Counts), None] {
                cells.push(PauseCell::bursty(flow.setup(mode, ip)));
                if flow.kind.is_tcp() {
                    cells.push(PauseCell::steady(flow.setup(mode, ip), Losses::Bursts));
                }
            }
            if flow.ids().len() > 1 {
                for losses in [Losses::Bursts, Losses::Behind(64)] {
                    cells.push(PauseCell::steady(flow.setup(mode, Some(IdKind::Steps(12))), losses));
                }
            }
        }
    }
    let cells = part(cells, 1, &size);
    let (_, missed) = measured("hosts", &cells, &size);
    hold_open(missed, &size);
}

/// Cells that had wrong headers: behind a gap, an IP-ID or a timestamp that may have moved in lost packets excludes no candidate, nor do the
/// octets of a flow that pauses, nor a count of more packets than a checksum tells apart.
#[test]
fn what_lost_packets_may_have_changed_excludes_nothing() {
    use SourceKind::{Esp, Ip, Rtp, RtpPause, RtpTalk, TcpChat, Udp};
    let flow = |kind, checksum, is_v2| FlowKind { kind, checksum, is_v2, clock: PausedClock::GoesOn };
    let (carried, elided, busy) = (ChecksumUse::Carried, ChecksumUse::Elided, Some(IdKind::Steps(12)));
    let cells = [
        (flow(Rtp, carried, false), busy, Losses::Bursts),
        (flow(Esp, carried, false), busy, Losses::Bursts),
        (flow(Rtp, carried, false), busy, Losses::Behind(64)),
        (flow(Esp, carried, true), busy, Losses::Bursts),
        (flow(Udp, carried, true), busy, Losses::Behind(64)),
        (flow(Ip, carried, true), busy, Losses::Bursts),
        (flow(RtpPause, elided, false), Some(IdKind::Counts), Losses::Behind(64)),
        (flow(RtpTalk, elided, false), None, Losses::Bursts),
        (flow(RtpTalk, elided, true), None, Losses::Bursts),
    ];
    let mut size = Size::from_environment();
    (size.packets, size.seed) = (Some(40_000), 3);
    let mut cells =
        cells.map(|(flow, ip, losses)| PauseCell::steady(flow.setup(MODES[0], ip), losses)).to_vec();
    let pauses =
        |millis: u64, shape, lost| Pauses { micros: 1_000 * millis, shape, clock: PausedClock::GoesOn, lost };
    let chat = flow(TcpChat, carried, false).setup(Mode::Optimistic, Some(IdKind::Swapped));
    cells.push(PauseCell::paused(chat, pauses(1_600, PauseShape::Fixed, 4)));
    let counted =
        JourneySetup { counts: true, ..flow(Rtp, carried, false).setup(MODES[0], Some(IdKind::Counts)) };
    cells.push(PauseCell::paused(counted, pauses(60_000, PauseShape::Exponential, 1_024)));
    let names: Vec<String> = cells.iter().map(PauseCell::name).collect();
    let outcomes = measure("excluded", &names, &size, |cell| cells[cell].run(&size, None));
    let wrong = names.iter().zip(&outcomes).filter(|(_, outcome)| outcome.wrong > 0);
    hold(&[], wrong.map(|(name, outcome)| format!("{name}: {} wrong of {}", outcome.wrong, outcome.arrived)));
}

/// Flows of busy hosts that pause, on a channel without loss.
#[test]
fn pauses_of_busy_hosts_cost_nothing() {
    let size = Size::from_environment();
    let mut cells = Vec::new();
    for flow in FlowKind::all().into_iter().filter(|flow| flow.ids().len() > 1) {
        for &mode in flow.modes() {
            for (shape, pause) in SHAPES.into_iter().flat_map(|shape| PAUSES.map(|pause| (shape, pause))) {
                let pauses = Pauses { micros: 1_000 * pause, shape, clock: flow.clock, lost: 0 };
                cells.push(PauseCell::paused(flow.setup(mode, Some(IdKind::Steps(12))), pauses));
            }
        }
    }
    let cells = part(cells, 1, &size);
    let names: Vec<String> = cells.iter().map(PauseCell::name).collect();
    let outcomes = measure("busy", &names, &size, |cell| cells[cell].run(&size, None));
    let missed = names.iter().zip(&outcomes).filter(|(_, outcome)| outcome.undelivered > 0);
    hold(
        &[],
        missed.map(|(name, outcome)| format!("{name}: {} of {}", outcome.undelivered, outcome.arrived)),
    );
}

/// One packet in so many may be refused: a clock that is set back in a pause hides the pause from the sender.
const SET_BACK: u64 = SMALL + 1;

/// Packets of a channel without loss that are not delivered as they were sent, where the clocks of both ends go backwards now and then.
fn lost_by_clocks(flow: &FlowKind, mode: Mode, six: bool, packets: u64) -> u64 {
    let profiles = if flow.is_v2 { ProfileSet::v2() } else { flow.kind.profiles() };
    let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
    let channel = channel.with_integrity_below(flow.kind.integrity(flow.checksum));
    let ports: &[u16] = if flow.kind.is_rtp() { &[5004] } else { &[] };
    let end = || {
        let rtp = RtpDetection::of_ports(ports).unwrap();
        let config = CompressorConfig { rtp, ..CompressorConfig::new(channel) };
        let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4)));
        let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        Endpoint::new(
            compressor,
            Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(4))),
        )
    };
    let (mut near, mut far) = (end(), end());
    let mut source = PacketSource::new(flow.kind, six, flow.checksum, 160, 3);
    let (mut random, mut rohc, mut back) = (SplitMix64(4), [0; 2_048], [0; 2_048]);
    let mut clocks = [100_000_000_u64; 2];
    let mut lost = 0;
    for _ in 0..packets {
        let passed = if random.once_in(50) { 2_000_000 } else { 20_000 };
        for clock in &mut clocks {
            *clock += passed;
            if random.once_in(50) {
                *clock = clock.saturating_sub(1 << random.below(24));
            }
        }
        let [sender, receiver] = clocks.map(|clock| Instant::ZERO + Duration::from_micros(clock));
        for (_, packet) in source.next(&mut random) {
            let len = near.send(sender, &packet, &mut rohc).unwrap().len;
            let received = far.receive(receiver, &rohc[..len], &mut back);
            lost += u64::from(!received.is_ok_and(|done| back[..done.len] == packet));
            while let Some(len) = far.poll_feedback(&mut rohc) {
                let _ = near.receive(sender, &rohc[..len], &mut back);
            }
        }
    }
    lost
}

#[test]
fn a_clock_that_goes_backwards_loses_nothing() {
    let size = Size::from_environment();
    let packets = size.packets.map_or(SMALL, |packets| packets / 5);
    let mut missed = Vec::new();
    for flow in FlowKind::all().into_iter().filter(|flow| flow.clock == PausedClock::GoesOn) {
        for (mode, six) in flow.modes().iter().flat_map(|mode| [(*mode, false), (*mode, true)]) {
            let lost = lost_by_clocks(&flow, mode, six, packets);
            if lost * SET_BACK > packets {
                missed.push(format!("{flow:?} {} six: {six}: {lost} of {packets}", mode.letter()));
            }
        }
    }
    hold_open(missed, &size);
}
