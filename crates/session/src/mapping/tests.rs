use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use thinair_wire::time::Instant;

use super::*;

const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const ROUND_TRIP: Duration = Duration::from_millis(100);
const DAY: Duration = Duration::from_secs(86_400);

/// A NAT as that of Linux: 30 s until it has seen an answer, and traffic 2 s later; an answer keeps a mapping, too.
struct Nat {
    timeout: Duration,
    since: Instant,
    until: Instant,
    is_answered: bool,
}

impl Nat {
    fn new(timeout: Duration) -> Self {
        Self { timeout, since: Instant::ZERO, until: Instant::ZERO, is_answered: false }
    }

    fn keep(&mut self, now: Instant) {
        let is_stream = self.is_answered && now.since(self.since) > Duration::from_secs(2);
        self.until = now + if is_stream { self.timeout } else { self.timeout.min(Duration::from_secs(30)) };
    }

    fn out(&mut self, now: Instant) {
        if now > self.until {
            (self.since, self.is_answered) = (now, false);
        }
        self.keep(now);
    }

    fn back(&mut self, now: Instant) -> bool {
        let has_mapping = now <= self.until;
        if has_mapping {
            self.is_answered = true;
            self.keep(now);
        }
        has_mapping
    }
}

/// A search behind a NAT, until a time. `lost`: percentage of lost datagrams.
struct Trial {
    search: MappingSearch,
    nat: Nat,
    answers: VecDeque<(Instant, u16)>,
    now: Instant,
    lost: u64,
    seed: u64,
    address: IpAddr,
    sent: u32,
    /// True if the other end answers.
    answers_probes: bool,
}

impl Trial {
    fn new(timeout: Duration, lost: u64, seed: u64) -> Self {
        Self {
            search: MappingSearch::new(Instant::ZERO, None),
            nat: Nat::new(timeout),
            answers: VecDeque::new(),
            now: Instant::ZERO,
            lost,
            seed: seed.wrapping_mul(2) + 1,
            address: HOME,
            sent: 0,
            answers_probes: true,
        }
    }

    fn is_lost(&mut self) -> bool {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed >> 32) % 100 < self.lost
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            while let Some(MappingProbe { id, delay }) = self.search.poll(self.now) {
                self.sent += 1;
                self.nat.out(self.now);
                if self.answers_probes && !self.is_lost() {
                    // One answer is pending at most.
                    self.answers = [(self.now + ROUND_TRIP + delay, id)].into();
                }
            }
            let answer = self.answers.front().map(|(at, _)| *at);
            let due = [self.search.poll_at(), answer].into_iter().flatten().min();
            let Some(due) = due.filter(|due| *due <= end) else { break };
            self.now = due.max(self.now);
            if answer.is_some_and(|at| at <= self.now)
                && let Some((_, id)) = self.answers.pop_front()
                && self.nat.back(self.now)
                && !self.is_lost()
            {
                self.search.handle_answer(self.now, id, self.address);
            }
        }
        self.now = end;
    }
}

#[test]
fn timeouts_are_learned_within_a_tenth_and_never_exceeded() {
    for seconds in [15, 16, 17, 23, 25, 30, 47, 60, 90, 120, 180, 193, 240, 300, 391, 600, 1_800] {
        let timeout = Duration::from_secs(seconds);
        let mut trial = Trial::new(timeout, 0, 1);
        trial.run(DAY);
        let LearnedTimeout { address, timeout: learned } = trial.search.learned().expect("a result");
        println!(
            "NAT of {seconds} s: learned {:.1} s, keepalive every {:.1} s, {} datagrams",
            learned.as_secs_f64(),
            trial.search.keepalive().as_secs_f64(),
            2 * trial.sent
        );
        assert_eq!(address, HOME);
        assert!(learned <= timeout && learned * 10 >= timeout * 9, "{seconds}: {learned:?}");
        assert!(trial.search.keepalive() < learned && 2 * trial.sent <= 60, "{}", trial.sent);
    }
    // Without a NAT, or with a patient one.
    let mut trial = Trial::new(DAY, 0, 1);
    trial.run(DAY);
    assert_eq!(trial.search.learned().map(|learned| learned.timeout), Some(LONGEST));
}

#[test]
fn lost_datagrams_make_the_result_smaller_at_most() {
    let (mut close, mut all) = (0, 0);
    for seconds in [15, 30, 120, 300] {
        for seed in 0..50 {
            let timeout = Duration::from_secs(seconds);
            let mut trial = Trial::new(timeout, 3, seed + seconds * 100);
            for _ in 0..24 * 60 {
                trial.run(Duration::from_secs(60));
                assert!(trial.search.keepalive() < timeout);
            }
            let learned = trial.search.learned().expect("a result").timeout;
            assert!(learned <= timeout && trial.sent <= REQUESTS, "{seconds}: {learned:?}, {}", trial.sent);
            close += u32::from(learned * 10 >= timeout * 9);
            all += 1;
        }
    }
    println!("within a tenth with 3 % of datagrams lost in each direction: {close} of {all}");
    assert!(close * 100 >= all * 95, "{close} of {all}");
}

#[test]
fn a_peer_that_does_not_answer_leaves_the_usual_interval() {
    let mut trial = Trial::new(DAY, 0, 1);
    trial.answers_probes = false;
    assert!(trial.search.keepalive() < LEAST, "nothing is known yet");
    trial.run(DAY);
    assert!(trial.search.is_unanswered() && trial.sent == FIRST_REQUESTS);
    assert_eq!((trial.search.keepalive(), trial.search.learned()), (UNKNOWN, None));
    // It starts again, with a newer version.
    trial.answers_probes = true;
    trial.search.handle_session(trial.now, false);
    assert!(trial.search.is_unanswered());
    trial.search.handle_session(trial.now, true);
    trial.run(DAY);
    assert!(trial.search.learned().is_some());
}

#[test]
fn a_result_is_valid_at_its_address_and_forgotten_at_another_one() {
    let timeout = Duration::from_secs(300);
    let mut trial = Trial::new(timeout, 0, 1);
    trial.run(DAY);
    let first = trial.search.learned();
    let keepalive = trial.search.keepalive();
    // After a restart of this end one request is enough.
    let mut again = Trial::new(timeout, 0, 1);
    again.search = MappingSearch::new(Instant::ZERO, first);
    again.run(Duration::from_secs(5));
    assert_eq!((again.search.learned(), again.sent), (first, 1));
    // So it is when the route has changed, and meanwhile keepalives are frequent.
    again.search.restart(again.now);
    assert!(again.search.keepalive() < LEAST);
    again.run(Duration::from_secs(5));
    assert_eq!((again.search.learned(), again.sent, again.search.keepalive()), (first, 2, keepalive));
    // New keys after half a day show another address, and another NAT.
    again.address = IpAddr::from([198, 51, 100, 9]);
    again.nat = Nat::new(Duration::from_secs(30));
    again.search.handle_session(again.now, false);
    assert_eq!(again.search.poll_at(), None, "too early");
    again.run(CHECKED);
    again.search.handle_session(again.now, false);
    again.run(Duration::from_secs(5));
    assert!(again.search.keepalive() < LEAST);
    again.run(DAY);
    let second = again.search.learned().expect("a result");
    assert!(second.address == again.address && second.timeout <= Duration::from_secs(30));
}

#[test]
fn a_silence_of_the_path_is_no_timeout() {
    let mut trial = Trial::new(Duration::from_secs(300), 0, 1);
    trial.run(Duration::from_secs(20));
    trial.answers_probes = false;
    trial.run(Duration::from_secs(600));
    trial.answers_probes = true;
    trial.run(DAY);
    let learned = trial.search.learned().expect("a result").timeout;
    assert!(learned * 10 >= Duration::from_secs(300) * 9, "{learned:?}");
}
