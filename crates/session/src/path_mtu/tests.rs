use super::*;

const ROUND_TRIP: Duration = Duration::from_millis(600);

/// A path between two ends.
struct SimulatedPath {
    mtu: u16,
    /// True if routers report dropped datagrams.
    reports: bool,
    /// Loss of probes and confirmations, in percent.
    loss: u64,
    /// True if the peer confirms probes.
    confirms: bool,
    random: u64,
}

impl SimulatedPath {
    fn new(mtu: u16) -> Self {
        Self { mtu, reports: false, loss: 0, confirms: true, random: 1 }
    }

    fn draw(&mut self) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 100 >= self.loss
    }
}

/// One end, its path, and confirmations and reports in transit to it.
struct PathEnd {
    engine: PathMtu,
    path: SimulatedPath,
    now: Instant,
    coming: Vec<(Instant, u16, bool)>,
    /// Sizes of probes, and of datagrams that exceeded the path MTU.
    probes: Vec<u16>,
    lost: u32,
}

impl PathEnd {
    fn new(path: SimulatedPath) -> Self {
        let engine = PathMtu::new(Least::IPV4, 1_500, true);
        Self { engine, path, now: Instant::from_millis(1), coming: Vec::new(), probes: Vec::new(), lost: 0 }
    }

    /// Sends a datagram on the path.
    fn carry(&mut self, octets: u16, asks: bool) {
        if octets > self.path.mtu {
            if self.path.reports {
                self.coming.push((self.now + ROUND_TRIP / 2, self.path.mtu, true));
            }
        } else if asks && self.path.confirms && self.path.draw() && self.path.draw() {
            self.coming.push((self.now + ROUND_TRIP, octets, false));
        }
    }

    fn poll(&mut self) {
        let now = self.now;
        let (due, later) = self.coming.drain(..).partition(|(at, ..)| *at <= now);
        self.coming = later;
        for (_, octets, is_report) in Vec::into_iter(due) {
            if is_report {
                self.engine.handle_report(now, octets.into());
            } else {
                self.engine.handle_confirmation(now, octets);
            }
        }
        while let Some(octets) = self.engine.poll(now) {
            self.probes.push(octets);
            self.carry(octets, true);
        }
    }

    /// Sends a datagram of maximum size every 50 ms.
    fn stream(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.now < end {
            let octets = self.engine.size();
            let asks = self.engine.sent(self.now, octets);
            self.lost += u32::from(octets > self.path.mtu);
            self.carry(octets, asks);
            self.poll();
            self.now = self.now + Duration::from_millis(50);
        }
    }

    /// Sends only probes.
    fn idle(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.now < end {
            self.poll();
            self.now = self.now + Duration::from_millis(50);
        }
    }

    fn is_complete(&self, size: u16) -> bool {
        (self.engine.state(), self.engine.size(), self.engine.settled())
            == (SearchState::SearchComplete, size, size)
    }
}

#[test]
fn the_usual_path_costs_one_probe_when_it_is_first_needed() {
    let mut end = PathEnd::new(SimulatedPath::new(1_500));
    end.idle(Duration::from_secs(3_600));
    assert!(!end.engine.sent(end.now, 1_000));
    end.idle(Duration::from_secs(3_600));
    assert!(end.probes.is_empty(), "short datagrams need none");
    end.stream(Duration::from_secs(60));
    assert_eq!(end.probes, [1_500]);
    assert!(end.is_complete(1_500));
    assert_eq!(end.lost, 0);
    let confirmations = end.engine.counters().confirmations;
    assert!((5..=7).contains(&confirmations), "one in 10 s: {confirmations}");
    end.idle(Duration::from_secs(3_600));
    assert_eq!((end.probes.len(), end.engine.poll_at()), (1, None));
}

#[test]
fn a_narrow_path_is_found_without_any_loss() {
    for mtu in [1_210, 1_280, 1_300, 1_400, 1_420, 1_480, 1_492, 1_499] {
        let mut end = PathEnd::new(SimulatedPath::new(mtu));
        end.stream(Duration::from_secs(60));
        let expected = CANDIDATES.into_iter().filter(|size| *size <= mtu).max().unwrap_or(1_200);
        assert!(end.is_complete(expected), "{mtu}: {:?}", end.engine);
        assert_eq!(end.lost, 0, "{mtu}");
        assert!(end.probes.len() <= 20, "{mtu}: {:?}", end.probes);
    }
}

#[test]
fn a_report_ends_the_search_at_its_size() {
    let mut end = PathEnd::new(SimulatedPath { reports: true, ..SimulatedPath::new(1_337) });
    end.stream(Duration::from_secs(10));
    assert!(end.is_complete(1_337), "{:?}", end.engine);
    assert_eq!(end.probes, [1_500, 1_337]);
}

#[test]
fn a_black_hole_is_found_without_a_report() {
    let mut end = PathEnd::new(SimulatedPath::new(1_500));
    end.stream(Duration::from_secs(30));
    end.path.mtu = 1_300;
    let before = end.now;
    while end.engine.size() > 1_300 {
        end.stream(Duration::from_millis(50));
    }
    let seconds = end.now.since(before).as_secs_f64();
    println!("the black hole is found after {seconds} s");
    assert!(seconds < 10.0 + 3.0 * 1.2 + 0.6 + 0.2);
    end.stream(Duration::from_secs(60));
    assert!(end.is_complete(1_300), "{:?}", end.engine);
    assert_eq!(end.engine.counters().black_holes, 1);
}

#[test]
fn a_report_of_a_path_that_has_shrunk_counts_at_once() {
    let mut end = PathEnd::new(SimulatedPath { reports: true, ..SimulatedPath::new(1_500) });
    end.stream(Duration::from_secs(30));
    end.path.mtu = 1_300;
    end.stream(Duration::from_secs(2));
    assert!(end.engine.size() <= 1_300 && end.lost <= 7, "{} {:?}", end.lost, end.engine);
    end.stream(Duration::from_secs(10));
    assert!(end.is_complete(1_300), "{:?}", end.engine);
    // The reported size, and a test whether it is true.
    assert_eq!(end.probes, [1_500, 1_300, 1_500]);
}

#[test]
fn a_path_that_grows_is_used_after_a_while() {
    let mut end = PathEnd::new(SimulatedPath::new(1_300));
    end.stream(Duration::from_secs(60));
    let probes = end.probes.len();
    end.path.mtu = 1_500;
    end.stream(Duration::from_secs(500));
    assert_eq!((end.probes.len(), end.engine.size()), (probes, 1_300));
    end.stream(Duration::from_secs(100));
    assert!(end.is_complete(1_500), "{:?}", end.engine);
    assert_eq!(end.probes.len(), probes + 1);
}

#[test]
fn an_outage_is_no_black_hole_and_the_size_is_back_after_it() {
    let mut end = PathEnd::new(SimulatedPath::new(1_500));
    end.stream(Duration::from_secs(30));
    end.path.mtu = 0;
    end.stream(Duration::from_secs(60));
    assert_eq!((end.engine.state(), end.engine.size()), (SearchState::Error, 576));
    assert_eq!((end.engine.counters().black_holes, end.engine.settled()), (0, 1_500));
    end.path.mtu = 1_500;
    end.stream(Duration::from_secs(8));
    assert!(end.is_complete(1_500), "{:?}", end.engine);
}

#[test]
fn a_peer_that_confirms_nothing_gets_datagrams_as_long_as_configured() {
    let mut end = PathEnd::new(SimulatedPath { confirms: false, ..SimulatedPath::new(1_500) });
    end.stream(Duration::from_secs(30));
    assert_eq!((end.engine.state(), end.engine.size()), (SearchState::Disabled, 1_500));
    assert_eq!(end.probes, [1_500, 1_500, 1_500, 1_200, 1_200, 1_200]);
    end.stream(Duration::from_secs(3_600));
    assert_eq!(end.probes.len(), 6);
}

#[test]
fn probes_that_are_lost_by_chance_do_little_harm() {
    let (mut sizes, mut probes) = (Vec::new(), 0);
    for seed in 1..=50 {
        let mut end =
            PathEnd::new(SimulatedPath { loss: 20, random: seed * 0x9E37_79B9, ..SimulatedPath::new(1_500) });
        end.stream(Duration::from_secs(1_800));
        sizes.push(end.engine.size());
        probes += end.probes.len();
    }
    let full = sizes.iter().filter(|size| **size == 1_500).count();
    println!("20 % loss each way, 30 min: {full} of 50 at 1500, {} probes each", probes / 50);
    assert!(full >= 48, "{sizes:?}");
}

#[test]
fn forged_reports_lower_nothing_below_the_base_and_not_for_long() {
    let mut end = PathEnd::new(SimulatedPath::new(1_500));
    end.stream(Duration::from_secs(30));
    for mtu in [0, 68, 576, 1_199, 70_000] {
        end.engine.handle_report(end.now, mtu);
        end.stream(Duration::from_millis(50));
        assert_eq!(end.engine.size(), 1_500, "{mtu}");
    }
    end.engine.handle_report(end.now, 1_210);
    assert_eq!(end.engine.size(), 1_200);
    end.stream(Duration::from_secs(3));
    assert!(end.is_complete(1_500), "{:?}", end.engine);
    // Regardless of their number: at most one search in 10 s.
    let probes = end.probes.len();
    for _ in 0..1_200 {
        end.engine.handle_report(end.now, 1_210);
        end.stream(Duration::from_millis(50));
        assert!(end.engine.size() >= 1_200);
    }
    assert!(end.probes.len() - probes <= 3 * 7, "{:?}", end.probes);
    end.stream(Duration::from_secs(700));
    assert!(end.is_complete(1_500), "{:?}", end.engine);
}

#[test]
fn the_own_interface_is_believed_at_once() {
    let mut end = PathEnd::new(SimulatedPath::new(1_300));
    assert!(!end.engine.sent(end.now, 1_200));
    assert_eq!(end.engine.poll(end.now), Some(1_500));
    assert!(end.engine.handle_refusal(end.now, 1_500, Some(1_300)), "it was a probe");
    end.stream(Duration::from_secs(2));
    assert!(end.is_complete(1_300), "{:?}", end.engine);
    assert_eq!(end.probes, [1_300]);
    // The path MTU falls again, below the base.
    end.path.mtu = 1_000;
    assert!(!end.engine.handle_refusal(end.now, 1_250, Some(1_000)));
    assert!(end.is_complete(1_000), "{:?}", end.engine);
}

/// A body may have been begun before the size fell.
#[test]
fn a_datagram_above_the_size_asks_for_no_confirmation() {
    let mut end = PathEnd::new(SimulatedPath::new(1_500));
    end.stream(Duration::from_secs(30));
    end.now = end.now + CONFIRMATION_TIMER;
    assert!(!end.engine.handle_refusal(end.now, 1_500, Some(1_400)));
    assert!(!end.engine.sent(end.now, 1_450), "it cannot arrive");
    assert!(end.engine.sent(end.now, 1_400));
}

#[test]
fn a_path_below_the_base_still_carries_something() {
    let mut end = PathEnd::new(SimulatedPath::new(1_500));
    end.stream(Duration::from_secs(30));
    end.path.mtu = 900;
    end.stream(Duration::from_secs(60));
    assert_eq!((end.engine.state(), end.engine.size()), (SearchState::Error, 576));
}

#[test]
fn a_peer_that_starts_anew_is_probed_anew() {
    let mut end = PathEnd::new(SimulatedPath::new(1_400));
    end.stream(Duration::from_secs(60));
    end.engine.restart();
    assert_eq!(
        (end.engine.state(), end.engine.size(), end.engine.settled()),
        (SearchState::Base, 1_200, 1_400)
    );
    end.stream(Duration::from_secs(60));
    assert!(end.is_complete(1_400), "{:?}", end.engine);
}

#[test]
fn without_segments_datagrams_are_as_long_as_configured_until_probes_fail() {
    let engine = PathMtu::new(Least::IPV4, 1_500, false);
    let mut end = PathEnd { engine, ..PathEnd::new(SimulatedPath::new(1_400)) };
    assert_eq!(end.engine.size(), 1_500);
    end.stream(Duration::from_secs(60));
    assert!(end.is_complete(1_400), "{:?}", end.engine);
}

#[test]
fn what_is_configured_below_the_base_is_never_probed() {
    let engine = PathMtu::new(Least::IPV6, 1_100, true);
    let mut end = PathEnd { engine, ..PathEnd::new(SimulatedPath::new(1_500)) };
    end.stream(Duration::from_secs(60));
    assert!(end.is_complete(1_100), "{:?}", end.engine);
    assert!(end.probes.is_empty());
}
