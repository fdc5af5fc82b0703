//! Behavior of each congestion control when a path is silent for some time, as a table.
//!
//! `cargo run --profile optimized -p thinair-coap --example pauses` sends requests in virtual time over a path whose round trip is
//! known, and loses every datagram for the length of a pause. It prints the longest time from the end of the pause to the
//! first datagram behind it, over four kinds of exchange and several beginnings of the pause.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use thinair_coap::congestion::Algorithm;
use thinair_coap::{CallId, Code, Config, Endpoint, Event, ObserverId, Request, RequestId, Response, Timing};
use thinair_link::Random;
use thinair_wire::time::Instant;

/// Lengths of a pause, in milliseconds.
pub(crate) const PAUSES: [u64; 6] = [500, 2_000, 5_000, 15_000, 40_000, 60_000];
/// Round-trip times, in milliseconds.
pub(crate) const ROUND_TRIPS: [u64; 4] = [10, 60, 300, 1_500];
/// Beginnings of a pause: time from the first datagram that can be lost, in thousandths of a round trip.
pub(crate) const PHASES: [u64; 3] = [0, 400, 900];
const SEEDS: u64 = 5;
/// Exchanges of each kind before the pause.
const WARM_UP: u64 = 12;
/// Time that a server takes for a separate response, in milliseconds.
const THINKING: u64 = 400;

fn main() -> ExitCode {
    print!("{}", table());
    ExitCode::SUCCESS
}

/// Kind of the exchange that meets the pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// GET with a piggybacked response.
    Get,
    /// PUT of 20 kB in blocks; the pause begins with the eighth.
    Put,
    /// Confirmable notification.
    Observe,
    /// GET whose response is a Confirmable message of its own, which meets the pause.
    Separate,
}

impl Exchange {
    pub(crate) const ALL: [Self; 4] = [Self::Get, Self::Put, Self::Observe, Self::Separate];
}

/// A path with a pause, and what one exchange meets there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) algorithm: Algorithm,
    pub(crate) exchange: Exchange,
    pub(crate) round_trip: u64,
    pub(crate) pause: u64,
    pub(crate) phase: u64,
    pub(crate) seed: u64,
}

/// Outcome of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// True if the exchange was complete at both ends.
    pub(crate) is_complete: bool,
    /// Time from the end of the pause to the next datagram, unless none was sent.
    pub(crate) after: Option<Duration>,
    /// Retransmissions of the end that lost its messages, from the beginning of the pause to the end of the exchange.
    pub(crate) retransmissions: u64,
    /// RTO of the end that retransmits at the beginning of the pause.
    pub(crate) rto: Duration,
}

/// Returns the longest time from the end of a pause to the first datagram, in seconds: a line for each algorithm and
/// round-trip time.
pub(crate) fn table() -> String {
    let mut table = String::from("| congestion control | round trip |");
    for pause in PAUSES {
        let _ = write!(table, " {} s |", pause as f64 / 1_000.0);
    }
    table.push_str("\n|---|---|");
    PAUSES.iter().for_each(|_| table.push_str("---|"));
    table.push('\n');
    for name in Algorithm::NAMES {
        let Ok(algorithm) = name.parse() else { continue };
        for round_trip in ROUND_TRIPS {
            let _ = write!(table, "| `{name}` | {round_trip} ms |");
            for pause in PAUSES {
                let outcomes: Vec<_> = cells(algorithm, round_trip, pause).map(Cell::run).collect();
                let failed = outcomes.iter().filter(|outcome| !outcome.is_complete).count();
                let longest = outcomes.iter().filter_map(|outcome| outcome.after).max().unwrap_or_default();
                let _ = match failed {
                    0 => write!(table, " {:.1} |", longest.as_secs_f64()),
                    _ if failed == outcomes.len() => write!(table, " fails |"),
                    _ => write!(
                        table,
                        " {:.1}, {} % fail |",
                        longest.as_secs_f64(),
                        failed * 100 / outcomes.len()
                    ),
                };
            }
            table.push('\n');
        }
    }
    table
}

/// Returns all exchanges, beginnings and seeds.
pub(crate) fn cells(algorithm: Algorithm, round_trip: u64, pause: u64) -> impl Iterator<Item = Cell> {
    Exchange::ALL.into_iter().flat_map(move |exchange| {
        PHASES.into_iter().flat_map(move |phase| {
            (0..SEEDS).map(move |seed| Cell { algorithm, exchange, round_trip, pause, phase, seed })
        })
    })
}

impl Cell {
    pub(crate) fn run(self) -> Outcome {
        let mut world = PausedPath::new(&self);
        world.warm_up();
        let (complete, sender) = match self.exchange {
            Exchange::Get => {
                world.pause_from(self.phase);
                let call = world.request(&Request::get("/now"));
                (world.run_until(|world| world.answered.contains_key(&call)), 0)
            }
            Exchange::Put => {
                let body: Vec<u8> = (0..20_000_u32).map(|i| (i % 251) as u8).collect();
                world.pause_at_block = Some((7, self.phase));
                let call = world.request(&Request::put("/stored", body.clone()));
                let is_complete = world.run_until(|world| world.answered.contains_key(&call));
                (is_complete && world.stored.as_ref() == Some(&body), 0)
            }
            Exchange::Observe => {
                let call = world.request(&Request { observe: true, ..Request::get("/observed") });
                world.run_until(|world| world.answered.contains_key(&call));
                world.pause_from(self.phase);
                world.notify(b"behind the pause");
                let is_complete = world.run_until(|world| {
                    world.answered.get(&call).is_some_and(|state| state == b"behind the pause")
                        && world.is_quiet(1)
                });
                (is_complete && !world.is_gone, 1)
            }
            Exchange::Separate => {
                let call = world.request(&Request::get("/later"));
                world.run_until(|world| world.late.is_none() && world.thought);
                world.pause_from(self.phase);
                world.respond_late();
                let is_complete =
                    world.run_until(|world| world.answered.contains_key(&call) && world.is_quiet(1));
                (is_complete && !world.is_gone, 1)
            }
        };
        Outcome {
            is_complete: complete,
            after: world.first_after,
            retransmissions: world.ends[sender].counters().retransmissions - world.before[sender],
            rto: world.rto[sender],
        }
    }
}

/// A client, 0, and a server, 1; the path between them loses everything during the pause.
struct PausedPath {
    ends: [Endpoint<u8>; 2],
    one_way: Duration,
    length: Duration,
    pause: Option<(Instant, Instant)>,
    /// Number of the block with which the pause begins, and its phase.
    pause_at_block: Option<(usize, u64)>,
    round_trip: u64,
    now: Instant,
    /// Datagrams under way, by their arrival: receiver, departure, octets.
    wire: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    count: u64,
    /// Latest body of each call.
    answered: BTreeMap<CallId, Vec<u8>>,
    stored: Option<Vec<u8>>,
    observer: Option<ObserverId>,
    late: Option<(Instant, RequestId)>,
    /// Request whose separate response waits for the pause.
    held: Option<RequestId>,
    is_warm: bool,
    thought: bool,
    is_gone: bool,
    blocks: usize,
    first_after: Option<Duration>,
    /// Retransmissions of both ends before the pause.
    before: [u64; 2],
    rto: [Duration; 2],
}

impl PausedPath {
    fn new(cell: &Cell) -> Self {
        let config = Config {
            timing: Timing { congestion: cell.algorithm, ..Timing::default() },
            ..Config::default()
        };
        let mut random = Random::new(cell.seed * 1_000 + cell.round_trip + cell.phase);
        let ends = [random.split(), random.split()]
            .map(|mut random| Endpoint::new(config, move || random.next_u64()));
        Self {
            ends,
            one_way: Duration::from_micros(cell.round_trip * 500),
            length: Duration::from_millis(cell.pause),
            pause: None,
            pause_at_block: None,
            round_trip: cell.round_trip,
            now: Instant::ZERO,
            wire: BTreeMap::new(),
            count: 0,
            answered: BTreeMap::new(),
            stored: None,
            observer: None,
            late: None,
            held: None,
            is_warm: false,
            thought: false,
            is_gone: false,
            blocks: 0,
            first_after: None,
            before: [0; 2],
            rto: [Duration::ZERO; 2],
        }
    }

    /// Measures the path at both ends: by requests, and by separate responses.
    fn warm_up(&mut self) {
        // The client measures last, since the acknowledgement of the others waits for the server.
        for path in ["/later", "/now", "/now"].into_iter().flat_map(|path| (0..WARM_UP).map(move |_| path)) {
            let call = self.request(&Request::get(path));
            self.run_until(|world| world.answered.contains_key(&call) && world.is_quiet(1));
        }
        self.is_warm = true;
    }

    fn request(&mut self, request: &Request<'_>) -> CallId {
        let call = self.ends[0].request(self.now, 1, request).expect("there is room for a request");
        self.transmit();
        call
    }

    fn notify(&mut self, state: &[u8]) {
        let Some(observer) = self.observer else { return };
        let _ = self.ends[1].notify(self.now, observer, &Response::content(state), true);
        self.transmit();
    }

    fn respond_late(&mut self) {
        let Some(request) = self.held.take() else { return };
        let _ = self.ends[1].respond(self.now, request, &Response::content(&b"late"[..]));
        self.transmit();
    }

    /// Begins the pause `phase` thousandths of a round trip from now.
    fn pause_from(&mut self, phase: u64) {
        let from = self.now + Duration::from_micros(self.round_trip * phase);
        self.pause = Some((from, from + self.length));
        let now = self.now;
        self.rto = [0, 1].map(|end| self.ends[end].peer(now, &1).map_or(Duration::ZERO, |peer| peer.rto));
        self.before = [0, 1].map(|end| self.ends[end].counters().retransmissions);
    }

    /// True if an end waits for no acknowledgement.
    fn is_quiet(&self, end: usize) -> bool {
        self.ends[end].peer(self.now, &1).is_none_or(|peer| peer.in_flight + peer.waiting == 0)
    }

    fn is_down(&self, at: Instant) -> bool {
        self.pause.is_some_and(|(from, to)| from <= at && at < to)
    }

    fn transmit(&mut self) {
        for from in 0..2 {
            let mut buffer = [0; 1_152];
            while let Some(transmit) = self.ends[from].poll_transmit(self.now, &mut buffer) {
                if from == 0 && self.is_warm && buffer[1] == Code::PUT.0 {
                    self.blocks += 1;
                    if let Some((_, phase)) =
                        self.pause_at_block.filter(|(block, _)| *block + 1 == self.blocks)
                    {
                        self.pause_from(phase);
                    }
                }
                if let Some((_, to)) = self.pause.filter(|(_, to)| self.now >= *to) {
                    self.first_after.get_or_insert(self.now.since(to));
                }
                self.count += 1;
                let arrival = self.now + self.one_way;
                if !self.is_down(self.now) {
                    self.wire.insert((arrival, self.count), (1 - from, buffer[..transmit.len].to_vec()));
                }
            }
        }
    }

    fn handle(&mut self, event: Event<'_, u8>) {
        match event {
            Event::Request { id, message, .. } => {
                if message.options.is_path("/later") {
                    self.late = Some((self.now + Duration::from_millis(THINKING), id));
                    return;
                }
                if message.options.is_path("/observed") {
                    self.observer = self.ends[1].accept(self.now, id);
                }
                if message.options.is_path("/stored") {
                    self.stored = Some(message.payload.into_owned());
                }
                let _ = self.ends[1].respond(self.now, id, &Response::content(&b"now"[..]));
            }
            Event::Response { call, message } | Event::Notification { call, message } => {
                self.answered.insert(call, message.payload.into_owned());
            }
            Event::Failed { .. } | Event::NotDelivered { .. } | Event::ObserverGone { .. } => {
                self.is_gone = true
            }
            _ => {}
        }
    }

    /// Runs until a condition holds; false if an exchange has failed or nothing is left to do before.
    fn run_until(&mut self, is_done: impl Fn(&Self) -> bool) -> bool {
        while !is_done(self) {
            let next = self
                .ends
                .iter()
                .filter_map(Endpoint::poll_timeout)
                .chain(self.wire.keys().next().map(|(at, _)| *at))
                .chain(self.late.map(|(at, _)| at))
                .min();
            let Some(next) = next.filter(|_| !self.is_gone) else { return false };
            self.now = self.now.max(next);
            let now = self.now;
            while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= now) {
                let (to, datagram) = entry.remove();
                if self.is_down(now) {
                    continue;
                }
                let event = self.ends[to].handle_datagram(now, 1, &datagram).map(Event::into_owned);
                event.into_iter().for_each(|event| self.handle(event));
            }
            if let Some((_, id)) = self.late.take_if(|(at, _)| *at <= now) {
                self.held = Some(id);
                self.thought = self.is_warm;
                if !self.is_warm {
                    self.respond_late();
                }
            }
            for end in 0..2 {
                self.ends[end].handle_timeout(now);
                while let Some(event) = self.ends[end].poll_event() {
                    self.handle(event);
                }
            }
            self.transmit();
        }
        true
    }
}
