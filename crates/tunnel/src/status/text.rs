//! The status as text: savings first, then errors. Rows without information are omitted.

use thinair_report::{Cell, Column, Document, Numerals, Section, Style, Table};

use super::{
    CidsOf, CidsStatus, FeedbackTypes, Latency, PeerKind, PeerStatus, Reason, Side, SourceNotAllowed, Status,
    Tally, TrafficCounters,
};

const N: Numerals = Numerals::TERMINAL;

/// Formats the status as a few tables, with rates since `before`, if it is given.
pub fn render(before: Option<&Status>, now: &Status, style: &Style) -> String {
    let since = before.and_then(|before| Since::new(before, now));
    let mut traffic = Section::new("").text(headline(now));
    if before.is_some() && since.is_none() {
        traffic = traffic.text("The daemon has restarted.");
    }
    traffic = traffic.table(ways(since.as_ref(), now));
    let mut document = Document::new(title(now)).subtitle(subtitle(now)).section(traffic);
    for (heading, table) in [
        ("Peers", peers(since.as_ref(), now)),
        ("Carrier", carrier(now)),
        ("Problems", troubles(now)),
        ("Contexts", contexts(now)),
        ("Feedback", feedback(now)),
        ("TCP segments", segments(now)),
        ("Dropped", drops(since.as_ref(), now)),
        ("Damaged or lost on the carrier", damage(now)),
    ] {
        if !table.rows().is_empty() {
            let section = Section::new(heading).table(table);
            let text = unlisted(now).filter(|_| heading == "Peers");
            document = document.section(text.map_or(section.clone(), |text| section.text(text)));
        }
    }
    let sources =
        now.peers.iter().filter_map(not_allowed).fold(Section::new("Sources not allowed"), Section::text);
    if !sources.blocks.is_empty() {
        document = document.section(sources);
    }
    document.to_text(style)
}

/// Two statuses of one run.
struct Since<'s> {
    before: &'s Status,
    seconds: f64,
}

impl<'s> Since<'s> {
    fn new(before: &'s Status, now: &Status) -> Option<Self> {
        let seconds = now.uptime_seconds - before.uptime_seconds;
        (seconds > 0.0).then_some(Self { before, seconds })
    }

    fn rate(&self, before: u64, now: u64) -> f64 {
        now.saturating_sub(before) as f64 / self.seconds
    }
}

fn title(now: &Status) -> String {
    let site = now.site.as_ref().map_or(String::new(), |site| format!(" (site {site})"));
    let down = if now.inside.up { "" } else { " (missing)" };
    format!("{}{down}{site} over {}", now.inside.name, now.carrier.url)
}

fn subtitle(now: &Status) -> String {
    let share = if now.uptime_seconds > 0.0 { now.cpu_seconds / now.uptime_seconds } else { 0.0 };
    let offloads: Vec<_> =
        now.inside.offloads.iter().chain(&now.carrier.offloads).map(String::as_str).collect();
    format!(
        "{}. MTU {}, {} octets added to a packet. Up {}, {} of a CPU. Offloads: {}.",
        now.security,
        N.integer(now.inside.mtu.into()),
        now.carrier.overhead,
        duration(now.uptime_seconds),
        N.percent(share, 1),
        if offloads.is_empty() { "none".to_owned() } else { offloads.join(", ") },
    )
}

fn headline(now: &Status) -> String {
    let totals = &now.totals;
    let (Some(ratio), Some(compressed)) = (totals.ratio, totals.compressed_ratio) else {
        return no_share(now) + &idle(now) + &dropped_by_socket(now);
    };
    let sent = totals.arrived.unwrap_or(totals.sent);
    let inside = sent.octets + totals.received.octets;
    let carrier = sent.carrier_octets + totals.received.carrier_octets;
    let unheard = totals.sent.since(&sent).packets;
    let unheard = match unheard {
        0 => String::new(),
        count => format!(
            " {} packets sent since the other end was heard last do not count.",
            N.integer(count.into())
        ),
    };
    format!(
        "{}: {} inside, {} on the carrier. Compression alone leaves {}.{}{unheard}",
        saved(ratio),
        N.octets(inside),
        N.octets(carrier),
        N.percent(compressed, 1),
        billed(now),
    ) + &idle(now)
        + &nats(now)
        + &dropped_by_socket(now)
}

/// Describes traffic without a share of octets saved.
fn no_share(now: &Status) -> String {
    let (sent, received) = (&now.totals.sent, &now.totals.received);
    let count = |count: u64| N.integer(count.into());
    match (sent.packets, sent.datagrams, received.datagrams) {
        (0, 0, 0) => "No traffic yet.".to_owned(),
        (0, sent, 0) => format!("No packets yet; {} datagrams sent, none received.", count(sent)),
        (0, _, received) => format!("No packets yet; {} datagrams received.", count(received)),
        (packets, _, _) => {
            format!("Nothing is known to have arrived: {} packets sent, and no answer.", count(packets))
        }
    }
}

/// Effect of a budget for idle octets.
fn idle(now: &Status) -> String {
    let Some(idle) = &now.carrier.idle_budget else { return String::new() };
    let octets = N.octets(idle.octets);
    let (wanted, keepalive) = (idle.wanted_keepalive_seconds, idle.keepalive_seconds);
    if keepalive <= wanted {
        return format!(" Idle budget: {octets} a day, enough for a keepalive every {wanted:.0} s.");
    }
    format!(
        " Idle budget: {octets} a day, thus a keepalive every {keepalive:.0} s instead of {wanted:.0} s: behind a NAT that \
         needs them, this end is reached {} of the time.",
        N.percent(idle.reachable_share, 0)
    )
}

/// Timeouts of NATs before this end.
fn nats(now: &Status) -> String {
    let of_peer = |peer: &PeerStatus| {
        let nat = peer.nat.as_ref()?;
        let keepalive = nat.keepalive_seconds;
        let found = match nat.timeout_seconds {
            Some(timeout) => format!("a mapping lasts {timeout:.0} s"),
            None => "its timeout is not known".to_owned(),
        };
        Some(format!(" NAT on the way to {}: {found}, thus a keepalive every {keepalive:.0} s.", peer.name))
    };
    now.peers.iter().filter_map(of_peer).collect()
}

/// Number of datagrams that did not fit into the receive buffer.
fn dropped_by_socket(now: &Status) -> String {
    let octets = N.octets(now.carrier.receive_buffer_octets.unwrap_or_default());
    match now.carrier.receive_buffer_errors {
        None | Some(0) => String::new(),
        Some(count) => {
            format!(" {} datagrams exceeded the receive buffer ({octets}).", N.integer(count.into()))
        }
    }
}

fn billed(now: &Status) -> String {
    let billing = &now.billing;
    if billing.unit_octets == 0 {
        return String::new();
    }
    let units = |units: u64| N.integer(units.into());
    format!(
        " Billed: {} + {} units of {} octets.",
        units(billing.sent.units),
        units(billing.received.units),
        billing.unit_octets
    )
}

/// Describes a ratio of octets.
fn saved(ratio: f64) -> String {
    if ratio <= 1.0 {
        format!("{} saved", N.percent(1.0 - ratio, 1))
    } else {
        format!("{} more than inside", N.percent(ratio - 1.0, 1))
    }
}

fn ways(since: Option<&Since<'_>>, now: &Status) -> Table {
    let headings: &[&str] = match since {
        Some(_) => &["packets/s", "inside/s", "carrier/s", "packets", "inside", "carrier"],
        None => &["packets", "inside", "compressed", "carrier", "datagrams"],
    };
    let mut columns = vec![Column::text("")];
    columns.extend(headings.iter().copied().map(Column::number));
    columns.push(Column::number("p50").unit("us"));
    columns.push(Column::number("p99").unit("us"));
    let mut table = Table::new("", columns);
    let mut row = |name: &str, way: &TrafficCounters, before: Option<&TrafficCounters>, latency: &Latency| {
        let mut cells = vec![Cell::text(name)];
        if let (Some(since), Some(before)) = (since, before) {
            cells.push(Cell::number(since.rate(before.packets, way.packets), 1));
            cells.push(Cell::Octets(since.rate(before.octets, way.octets) as u64));
            cells.push(Cell::Octets(since.rate(before.carrier_octets, way.carrier_octets) as u64));
            cells.push(Cell::integer(way.packets));
            cells.extend([way.octets, way.carrier_octets].map(Cell::Octets));
        } else {
            cells.push(Cell::integer(way.packets));
            cells.extend([way.octets, way.compressed_octets, way.carrier_octets].map(Cell::Octets));
            cells.push(Cell::integer(way.datagrams));
        }
        cells.push(micros(latency.p50_nanoseconds));
        cells.push(micros(latency.p99_nanoseconds));
        table.row(cells);
    };
    let before = since.map(|since| &since.before.totals);
    row("sent", &now.totals.sent, before.map(|b| &b.sent), &now.latency.sent);
    row("received", &now.totals.received, before.map(|b| &b.received), &now.latency.received);
    table
}

fn micros(nanoseconds: Option<u64>) -> Cell {
    nanoseconds.map_or(Cell::Empty, |ns| Cell::number(ns as f64 / 1000.0, 1))
}

fn peers(since: Option<&Since<'_>>, now: &Status) -> Table {
    let number = |heading: &str| match since {
        None => Column::number(heading),
        Some(_) => Column::number(heading).unit("1/s"),
    };
    let mut table = Table::new(
        "",
        [
            Column::text("name"),
            Column::text("address"),
            Column::text("CIDs"),
            Column::number("path MTU"),
            Column::number("session"),
            Column::number("heard"),
            number("sent"),
            number("received"),
            Column::number("restarts"),
            Column::number("failures"),
        ],
    );
    let age = |seconds: Option<f64>| seconds.map_or(Cell::text("never"), |s| Cell::text(duration(s)));
    for peer in &now.peers {
        let before = since.and_then(|since| of_name(since.before, &peer.name));
        let count = |of: fn(&PeerStatus) -> u64| match (since, before) {
            (Some(since), Some(before)) => Cell::number(since.rate(of(before), of(peer)), 1),
            (Some(_), None) => Cell::Empty,
            (None, _) => Cell::integer(of(peer)),
        };
        table.row([
            Cell::text(peer.name.as_str()),
            peer.address.as_deref().map_or(Cell::Empty, Cell::text),
            peer.cids.map_or(Cell::Empty, |cids| Cell::text(spaces(cids))),
            peer.counters.path.mtu.map_or(Cell::Empty, Cell::integer),
            peer.session_seconds.map_or(Cell::Empty, |s| Cell::text(duration(s))),
            age(peer.heard_seconds),
            count(|peer| peer.counters.sent.packets),
            count(|peer| peer.counters.received.packets),
            Cell::integer(peer.counters.restarts),
            Cell::integer(peer.counters.failures.sum()),
        ]);
    }
    table
}

/// Numbers of peers, if not all of them are listed.
fn unlisted(now: &Status) -> Option<String> {
    let counts = now.peer_counts.filter(|counts| counts.listed < counts.configured)?;
    let count = |count: u64| N.integer(count.into());
    Some(format!(
        "{} peers: {} with a session, {} with contexts in memory, {} in trouble. Listed are {}: those with most traffic, and \
         those in trouble for longest.",
        count(counts.configured),
        count(counts.with_session),
        count(counts.with_contexts),
        count(counts.in_trouble),
        count(counts.listed)
    ))
}

/// CID spaces of both directions; one if they are equal.
fn spaces(cids: CidsStatus) -> String {
    let name = |of: CidsOf| match of {
        CidsOf::Small => "small",
        CidsOf::Large => "large",
    };
    match (name(cids.sent), name(cids.received)) {
        (sent, received) if sent == received => sent.to_owned(),
        (sent, received) => format!("{sent}, {received}"),
    }
}

/// Losses and round trips of the carrier, where they are known.
fn carrier(now: &Status) -> Table {
    let columns = [
        Column::text("peer"),
        Column::number("loss"),
        Column::number("lost"),
        Column::number("arrived"),
        Column::number("round trip").unit("ms"),
    ];
    let mut table = Table::new("", columns);
    for peer in &now.peers {
        let loss = peer.loss.filter(|loss| loss.share.is_some());
        if loss.is_none() && peer.round_trip_seconds.is_none() {
            continue;
        }
        table.row([
            Cell::text(peer.name.as_str()),
            loss.and_then(|loss| loss.share).map_or(Cell::Empty, |share| Cell::text(N.percent(share, 1))),
            loss.map_or(Cell::Empty, |loss| Cell::integer(loss.lost_units)),
            loss.map_or(Cell::Empty, |loss| Cell::integer(loss.received_units)),
            peer.round_trip_seconds.map_or(Cell::Empty, |seconds| Cell::number(seconds * 1_000.0, 1)),
        ]);
    }
    table
}

fn troubles(now: &Status) -> Table {
    let mut table = Table::new("", [Column::text("peer"), Column::number("since"), Column::text("reason")]);
    for peer in &now.peers {
        if let Some(trouble) = &peer.trouble {
            let since = Cell::text(duration(trouble.since_seconds));
            table.row([Cell::text(peer.name.as_str()), since, Cell::text(trouble.text.as_str())]);
        }
    }
    table
}

fn not_allowed(peer: &PeerStatus) -> Option<String> {
    let SourceNotAllowed { packets, address, line } = peer.source_not_allowed.as_ref()?;
    let section = match peer.kind {
        PeerKind::Peer => "[[peer]]",
        PeerKind::Site | PeerKind::Group => "[[site]]",
    };
    let remedy = match line {
        Some(line) => format!("To accept them, write in its {section}: {line}"),
        None => "The address belongs to another peer.".to_owned(),
    };
    let packets = N.integer((*packets).into());
    Some(format!("{}: {packets} packets dropped, the last from {address}. {remedy}", peer.name))
}

fn of_name<'s>(status: &'s Status, name: &str) -> Option<&'s PeerStatus> {
    status.peers.iter().find(|peer| peer.name == name)
}

fn contexts(now: &Status) -> Table {
    let text = ["peer", "side", "profile", "mode", "state"].map(Column::text);
    let mut table = Table::new("", text.into_iter().chain([Column::number("contexts")]));
    for peer in &now.peers {
        for context in &peer.contexts {
            let side = match context.side {
                Side::Compressor => "compressor",
                Side::Decompressor => "decompressor",
            };
            let text = [&peer.name, side, &context.profile, &context.mode, &context.state];
            table.row(text.map(Cell::text).into_iter().chain([Cell::integer(context.contexts)]));
        }
    }
    table
}

fn feedback(now: &Status) -> Table {
    let number = ["ACK", "NACK", "STATIC-NACK", "octets", "not sent", "rejected"].map(Column::number);
    let mut table = Table::new("", [Column::text("peer"), Column::text("")].into_iter().chain(number));
    for peer in &now.peers {
        let feedback = &peer.counters.feedback;
        let mut row = |way: &str, types: &FeedbackTypes, limited: Option<u64>, refused: Option<u64>| {
            let counts = [types.acks, types.nacks, types.static_nacks, types.octets];
            if counts.into_iter().chain(limited).chain(refused).all(|count| count == 0) {
                return;
            }
            let mut cells = vec![Cell::text(peer.name.as_str()), Cell::text(way)];
            cells.extend(counts.map(Cell::integer));
            cells.extend([limited, refused].map(|count| count.map_or(Cell::Empty, Cell::integer)));
            table.row(cells);
        };
        row("sent", &feedback.sent, Some(feedback.limited), None);
        row("received", &feedback.received, None, Some(feedback.refused));
    }
    table
}

fn segments(now: &Status) -> Table {
    let columns = ["size", "longest packet", "acknowledged", "retransmitted"].map(Column::number);
    let mut table = Table::new("", [vec![Column::text("to")], columns.to_vec()].concat());
    for of in &now.segments {
        table.row([
            Cell::text(&of.host),
            Cell::integer(of.size),
            of.longest_packet.map_or(Cell::Empty, Cell::integer),
            Cell::integer(of.acknowledged),
            Cell::integer(of.sent_again),
        ]);
    }
    table
}

fn drops(since: Option<&Since<'_>>, now: &Status) -> Table {
    let mut columns = vec![Column::text("reason"), Column::number("count")];
    if since.is_some() {
        columns.push(Column::number("").unit("1/s"));
    }
    columns.push(Column::text("meaning"));
    let mut table = Table::new("", columns);
    counts(&mut table, "", since, since.map(|since| &since.before.drops), &now.drops);
    for peer in &now.peers {
        let before = since.and_then(|since| of_name(since.before, &peer.name));
        let before = before.map(|peer| &peer.counters.failures);
        counts(&mut table, &format!("{}: ", peer.name), since, before, &peer.counters.failures);
    }
    table
}

/// Counters of packagings that show damage or losses: their names behind `received_`, and meanings.
const DAMAGE: [(&str, &str); 15] = [
    ("bad_bodies", "Datagrams that are no TS Packets or no BBFrame"),
    ("ts_sync_errors", "TS Packets without the sync byte"),
    ("ts_transport_errors", "TS Packets that the physical layer has marked as damaged"),
    ("ts_continuity_errors", "Gaps in Continuity Counters: TS Packets are lost"),
    ("ts_delimiting_errors", "Payload Pointers that do not match SNDUs"),
    ("ts_crc_errors", "SNDUs with a wrong CRC"),
    ("ts_cut_short", "SNDUs that a loss or an error has interrupted"),
    ("ts_type_errors", "SNDUs with unknown or truncated headers"),
    ("ts_too_long", "SNDUs that exceed the maximum size"),
    ("gse_header_errors", "GSE Packets with an invalid header or label"),
    ("gse_incomplete", "Fragments of PDUs of which others are missing"),
    ("gse_crc_errors", "PDUs with a wrong Total_Length or CRC-32"),
    ("gse_too_long", "PDUs that exceed the maximum size"),
    ("rtp_lost", "RTP sequence numbers that are missing"),
    ("unknown", "Units with a Type that is none of IP and ROHC, or too long"),
];

fn damage(now: &Status) -> Table {
    let mut table =
        Table::new("", [Column::text("counter"), Column::number("count"), Column::text("meaning")]);
    let Some(packaging) = now.parts.get("packaging") else { return table };
    for (name, meaning) in DAMAGE {
        let count = packaging.get(&format!("received_{name}")).copied().unwrap_or(0);
        if count > 0 {
            table.row([Cell::text(name), Cell::integer(count), Cell::text(meaning)]);
        }
    }
    table
}

fn counts<R: Reason>(
    table: &mut Table,
    whose: &str,
    since: Option<&Since<'_>>,
    before: Option<&Tally<R>>,
    now: &Tally<R>,
) {
    for (reason, count) in now.iter().filter(|&(_, count)| count > 0) {
        let mut cells = vec![Cell::text(format!("{whose}{}", reason.name())), Cell::integer(count)];
        if let Some(since) = since {
            let before = before.map_or(0, |before| before.of(reason));
            cells.push(Cell::number(since.rate(before, count), 1));
        }
        cells.push(Cell::text(reason.words()));
        table.row(cells);
    }
}

/// Formats the two largest units: `3 d 4 h`.
fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    let (minutes, hours, days) = (whole / 60, whole / 3600, whole / 86_400);
    match whole {
        0 => format!("{:.1} s", seconds.max(0.0)),
        1..60 => format!("{whole} s"),
        60..3600 => format!("{minutes} min {} s", whole % 60),
        3600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::specimen;
    use super::*;
    use crate::status::{Drop, TrafficTotals};

    fn plain(before: Option<&Status>, now: &Status) -> String {
        render(before, now, &Style::plain(100))
    }

    #[test]
    fn a_status_reads_so() {
        let text = plain(None, &specimen());
        let prose: Vec<&str> = text.split_whitespace().collect();
        let prose = prose.join(" ");
        for words in [
            "air0 over udp://192.0.2.1:4754 Noise NNpsk0, ChaCha20-Poly1305, tag of 16 octets. MTU 1,400, \
             48 octets added to a packet. Up 1 h 2 min, <0.1 % of a CPU. Offloads: tso, uso, udp_segment.",
            "19.9 % saved: 101 kB inside, 80.9 kB on the carrier. Compression alone leaves 40.5 %. \
             Billed: 2,000 + 15 units of 64 octets.",
            "hill: 3 packets dropped, the last from 10.1.0.9. To accept them, write in its [[peer]]: \
             allowed = [\"10.0.0.2/32\", \"10.1.0.9/32\"]",
        ] {
            assert!(prose.contains(words), "{words}\nis not in\n{text}");
        }
        for line in [
            "sent        1,000   100 kB     40.0 kB  80.0 kB      1,000",
            "hill  192.0.2.2:4754",
            "hill  2.5 %     5      195            612.0",
            "hill    9 s  nothing listens at 192.0.2.2:4754",
            "hill  compressor  udp      O     SO            3",
            "hill  received    7     0            0       0",
            "forged             1  The tag is wrong",
            "hill: bad_crc      1  The CRC does not match.",
            "10.0.0.2   278             330         1,200             33",
        ] {
            assert!(text.contains(line), "{line}\nis not in\n{text}");
        }
    }

    #[test]
    fn the_manual_names_the_table_of_troubles() {
        let manual = include_str!("../../../../docs/tunnel.md");
        let (_, rest) = manual.split_once("The text output has it below").unwrap();
        let named = rest.split('"').nth(1).unwrap();
        let text = plain(None, &specimen());
        let (_, table) =
            text.split_once(&format!("\n{named}\n")).unwrap_or_else(|| panic!("{named}\n{text}"));
        let words = "nothing listens at";
        assert!(table.split("\n\n").next().unwrap().contains(words), "{text}");
    }

    #[test]
    fn damage_of_the_carrier_is_shown_with_its_meaning() {
        let mut status = specimen();
        assert!(!plain(None, &status).contains("Damaged"));
        status.parts.get_mut("packaging").unwrap().insert("received_ts_crc_errors".to_owned(), 35);
        let text = plain(None, &status);
        assert!(text.contains("Damaged or lost on the carrier"), "{text}");
        assert!(text.contains("ts_crc_errors     35  SNDUs with a wrong CRC"), "{text}");
    }

    #[test]
    fn every_counter_of_damage_exists() {
        let mut all = std::collections::BTreeMap::new();
        crate::site::add_counters(&mut all, "", &crate::packaging::UnpackagerCounters::default());
        for (name, _) in DAMAGE {
            assert!(all.contains_key(name), "{name}");
        }
    }

    #[test]
    fn with_the_one_before_there_are_rates() {
        let before = specimen();
        let mut now = specimen();
        now.uptime_seconds += 2.0;
        now.totals.sent.packet(500, 100);
        now.peers[0].counters.sent.packet(500, 100);
        now.drops.add(Drop::Forged, 9);
        let text = plain(Some(&before), &now);
        assert!(text.contains("sent            0.5     250 B        0 B    1,001"), "{text}");
        assert!(text.contains("forged            10    4.5"), "{text}");
    }

    #[test]
    fn a_daemon_that_has_started_anew_has_no_rates() {
        let mut now = specimen();
        now.uptime_seconds = 1.0;
        let text = plain(Some(&specimen()), &now);
        assert!(text.contains("has restarted") && !text.contains("/s"), "{text}");
    }

    #[test]
    fn no_traffic_is_said_and_more_octets_than_inside_are_not_called_saved() {
        let mut status = specimen();
        status.totals = TrafficTotals::default();
        assert!(plain(None, &status).contains("No traffic yet."));
        let (mut sent, received) = (TrafficCounters::default(), TrafficCounters::default());
        sent.packet(100, 40);
        sent.datagram(112);
        status.totals = TrafficTotals::new(sent, None, received);
        assert!(plain(None, &status).contains("12.0 % more than inside"));
        status.totals = TrafficTotals::new(sent, Some(received), received);
        assert!(
            plain(None, &status).contains("Nothing is known to have arrived: 1 packets sent, and no answer.")
        );
        status.totals = TrafficTotals::default();
        status.totals.received.datagrams = 35;
        assert!(plain(None, &status).contains("No packets yet; 35 datagrams received."));
        // Sent behind the last answer.
        status.totals = TrafficTotals::new(sent, Some(sent), received);
        status.totals.sent.packet(100, 0);
        assert!(plain(None, &status).contains("12.0 % more than inside: 100 B inside"));
        let text = plain(None, &status).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("1 packets sent since the other end was heard last do not count"), "{text}");
    }

    #[test]
    fn durations_have_their_two_largest_units() {
        let texts = [0.25, 59.9, 65.0, 3725.0, 100_000.0].map(duration);
        assert_eq!(texts, ["0.2 s", "59 s", "1 min 5 s", "1 h 2 min", "1 d 3 h"]);
    }
}
