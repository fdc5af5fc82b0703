//! Two connections and a wire between them, in virtual time.

use core::time::Duration;

use proptest::prelude::*;
use thinair_wire::time::Instant;

use super::*;
use crate::{EventQueue, Purpose, RandomStreams};

/// Delivery of segment number `n` of a side (0: client, 1: server): delays of its copies; empty if it is lost.
type WireFate = Box<dyn FnMut(usize, u64, &TcpSegment) -> Vec<Duration>>;

struct Wire {
    ends: [TcpConnection; 2],
    queue: EventQueue<(usize, Option<TcpSegment>)>,
    fate: WireFate,
    count: [u64; 2],
    /// Sent segments: time, side, segment.
    log: Vec<(Duration, usize, TcpSegment)>,
    events: [Vec<TcpEvent>; 2],
}

const DELAY: Duration = Duration::from_millis(50);

impl Wire {
    fn new(client: TcpConfig, server: TcpConfig) -> Self {
        let mut wire = Self {
            ends: [
                TcpConnection::connect(client, Instant::ZERO, 0xFFFF_FF00),
                TcpConnection::listen(server, 0x7FFF_FFFF),
            ],
            queue: EventQueue::new(),
            fate: Box::new(|_, _, _| vec![DELAY]),
            count: [0; 2],
            log: Vec::new(),
            events: [Vec::new(), Vec::new()],
        };
        wire.queue.schedule(Instant::ZERO, (0, None));
        wire
    }

    fn of(config: TcpConfig) -> Self {
        Self::new(config, config)
    }

    /// Loses segments `n` of `side`, counted from 0.
    fn lose(mut self, side: usize, lost: &'static [u64]) -> Self {
        self.fate =
            Box::new(move |from, n, _| if from == side && lost.contains(&n) { vec![] } else { vec![DELAY] });
        self
    }

    /// Performs an action of the application at `end` now.
    fn act<T>(&mut self, end: usize, act: impl FnOnce(&mut TcpConnection, Instant) -> T) -> T {
        let now = self.queue.now();
        let result = act(&mut self.ends[end], now);
        self.flush(end);
        result
    }

    fn flush(&mut self, end: usize) {
        let now = self.queue.now();
        while let Some(event) = self.ends[end].poll_event() {
            self.events[end].push(event);
        }
        while let Some(segment) = self.ends[end].poll_transmit(now) {
            self.log.push((now.since(Instant::ZERO), end, segment.clone()));
            for delay in (self.fate)(end, self.count[end], &segment) {
                self.queue.schedule(now + delay, (1 - end, Some(segment.clone())));
            }
            self.count[end] += 1;
            assert!(self.count[end] < 200_000, "it never ends");
        }
        if let Some(at) = self.ends[end].poll_timeout() {
            self.queue.schedule(at, (end, None));
        }
    }

    /// Runs until `time`, or until no event is left.
    fn run(&mut self, until: Duration) {
        let end = Instant::ZERO + until;
        while let Some((now, (to, segment))) = self.queue.next_before(end) {
            match segment {
                Some(segment) => self.ends[to].handle_segment(now, &segment),
                None if self.ends[to].poll_timeout().is_some_and(|at| at <= now) => {
                    self.ends[to].handle_timeout(now)
                }
                None if now == Instant::ZERO => {}
                None => continue,
            }
            self.flush(to);
        }
    }

    /// Milliseconds and payload octets of `side`'s segments after its SYN, without empty ones.
    fn data(&self, side: usize) -> Vec<(u128, usize)> {
        let sent = self.log.iter().filter(|(_, from, segment)| *from == side && !segment.payload.is_empty());
        sent.map(|(at, _, segment)| (at.as_millis(), segment.payload.len())).collect()
    }
}

fn plain() -> TcpConfig {
    TcpConfig {
        timestamps: false,
        tail_loss_probe: false,
        delayed_ack: None,
        algorithm: CongestionAlgorithm::Reno,
        mss: 1_000,
        floor: Floor::Timeout(Duration::from_millis(200)),
        ..TcpConfig::default()
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn three_segments_open_and_four_close() {
    let mut wire = Wire::of(plain());
    wire.run(SECOND);
    assert_eq!(wire.log.len(), 3);
    assert_eq!(wire.events, [vec![TcpEvent::Connected], vec![TcpEvent::Connected]]);
    wire.act(0, |client, now| client.close(now));
    wire.run(2 * SECOND);
    assert!(wire.ends[1].is_finished() && !wire.ends[1].is_closed());
    wire.act(1, |server, now| server.close(now));
    wire.run(3 * SECOND);
    assert!(wire.ends.iter().all(TcpConnection::is_closed));
    assert_eq!(wire.log.len(), 7);
    assert_eq!(wire.events[0], [TcpEvent::Connected, TcpEvent::PeerClosed, TcpEvent::Finished]);
}

/// Slow start: 10 segments, then twice as many each round trip. RFC 6928, RFC 5681.
#[test]
fn a_window_doubles_each_round_trip() {
    let mut wire = Wire::of(plain());
    wire.run(SECOND);
    wire.act(0, |client, now| client.write(now, &[1; 50_000]));
    wire.run(10 * SECOND);
    let mut rounds: Vec<(u128, usize)> = Vec::new();
    for (at, _) in wire.data(0) {
        match rounds.last_mut() {
            Some((last, count)) if *last == at => *count += 1,
            _ => rounds.push((at, 1)),
        }
    }
    assert_eq!(rounds, [(1_000, 10), (1_100, 20), (1_200, 20)]);
    assert_eq!(wire.ends[1].read(usize::MAX).len(), 50_000);
}

/// RFC 2018 and RFC 6675: one segment of a flight is lost, and alone retransmitted, a round trip later.
#[test]
fn a_lost_segment_is_sent_again_at_the_third_sack() {
    let mut wire = Wire::of(plain()).lose(0, &[4]);
    wire.run(SECOND);
    wire.act(0, |client, now| client.write(now, &[1; 10_000]));
    wire.run(10 * SECOND);
    let again: Vec<_> = wire.data(0).into_iter().skip(10).collect();
    assert_eq!(again, [(1_100, 1_000)]);
    let blocks = |(_, from, segment): &(Duration, usize, TcpSegment)| {
        (*from == 1).then(|| segment.options.sack.as_slice().len())
    };
    assert_eq!(wire.log.iter().filter_map(blocks).max(), Some(1));
    assert!(wire.events[0].contains(&TcpEvent::Lost(LossDetection::Fast)));
    // Half of the 8 that were in flight when the loss was detected.
    assert_eq!(wire.events[0].iter().filter(|event| matches!(event, TcpEvent::Lost(_))).count(), 1);
    assert_eq!(wire.ends[0].status().window, 4);
    assert_eq!(wire.ends[1].read(usize::MAX).len(), 10_000);
}

/// RFC 6582: without SACK, one round trip for each lost segment.
#[test]
fn new_reno_mends_a_hole_each_round_trip() {
    let mut wire = Wire::of(TcpConfig { sack: false, limited_transmit: false, ..plain() }).lose(0, &[3, 5]);
    wire.run(SECOND);
    wire.act(0, |client, now| client.write(now, &[1; 10_000]));
    wire.run(10 * SECOND);
    let again: Vec<_> = wire.data(0).into_iter().skip(10).collect();
    assert_eq!(again, [(1_100, 1_000), (1_200, 1_000)]);
    assert_eq!(wire.events[0].iter().filter(|event| matches!(event, TcpEvent::Lost(_))).count(), 1);
    assert_eq!(wire.ends[1].read(usize::MAX).len(), 10_000);
}

/// RFC 6298, section 5, and RFC 3042.
#[test]
fn the_end_of_a_flight_is_mended_by_the_timer_and_limited_transmit_saves_it() {
    let run = |limited_transmit| {
        let config = TcpConfig { limited_transmit, initial_window: 3, ..plain() };
        let mut wire = Wire::of(config).lose(0, &[2]);
        wire.run(SECOND);
        wire.act(0, |client, now| client.write(now, &[1; 6_000]));
        wire.run(10 * SECOND);
        assert_eq!(wire.ends[1].read(usize::MAX).len(), 6_000);
        wire.events[0]
            .iter()
            .filter_map(|event| match event {
                TcpEvent::Lost(loss) => Some(*loss),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(run(false), [LossDetection::Timeout]);
    assert_eq!(run(true), [LossDetection::Fast]);
}

#[test]
fn timeouts_double_until_the_other_side_is_given_up() {
    let config = TcpConfig { retries: 3, ..plain() };
    let mut wire = Wire::of(config).lose(0, &[2, 3, 4, 5, 6, 7, 8]);
    wire.run(SECOND);
    wire.act(0, |client, now| client.write(now, b"x"));
    wire.run(60 * SECOND);
    // One sample of 100 ms: RTO is 100 + 4 * 50.
    assert_eq!(wire.data(0), [(1_000, 1), (1_300, 1), (1_900, 1), (3_100, 1)]);
    assert_eq!(wire.events[0].last(), Some(&TcpEvent::TimedOut));
    assert!(wire.ends[0].is_closed());
}

#[test]
fn a_syn_is_sent_again_after_one_second() {
    let mut wire = Wire::of(plain()).lose(0, &[0, 1]);
    wire.run(60 * SECOND);
    let syns = wire.log.iter().filter(|(_, from, segment)| *from == 0 && segment.syn);
    assert_eq!(syns.map(|(at, ..)| at.as_secs()).collect::<Vec<_>>(), [0, 1, 3]);
    assert!(wire.ends.iter().all(TcpConnection::is_open));
}

/// RFC 896; RFC 1122, section 4.2.3.2.
#[test]
fn nagle_holds_what_is_small_and_acknowledgments_wait_for_company() {
    let sent = |nagle| {
        let config =
            TcpConfig { nagle, delayed_ack: Some(Duration::from_millis(100)), quick_acks: 0, ..plain() };
        let mut wire = Wire::of(config);
        for tick in 0..4 {
            wire.run(SECOND + tick * Duration::from_millis(20));
            wire.act(0, |client, now| client.write(now, b"1234"));
        }
        wire.run(9 * SECOND);
        wire.data(0)
    };
    assert_eq!(sent(Nagle::Off), [(1_000, 4), (1_020, 4), (1_040, 4), (1_060, 4)]);
    // The first is acknowledged after 50 + 100 + 50 ms.
    assert_eq!(sent(Nagle::Minshall), [(1_000, 4), (1_200, 12)]);
    assert_eq!(sent(Nagle::On), [(1_000, 4), (1_200, 12)]);
}

/// Minshall's variant sends the rest of a write at once, RFC 896 a round trip later.
#[test]
fn the_rest_of_a_large_write_waits_with_rfc_896_alone() {
    let sent = |nagle| {
        let mut wire = Wire::of(TcpConfig { nagle, ..plain() });
        wire.run(SECOND);
        wire.act(0, |client, now| client.write(now, &[0; 1_200]));
        wire.run(9 * SECOND);
        wire.data(0)
    };
    assert_eq!(sent(Nagle::On), [(1_000, 1_000), (1_100, 200)]);
    assert_eq!(sent(Nagle::Minshall), [(1_000, 1_000), (1_000, 200)]);
}

/// RFC 8985, section 7: the last segment of a flight is lost, and retransmitted after two round trips and 200 ms.
#[test]
fn a_lost_tail_is_probed() {
    let config = TcpConfig { tail_loss_probe: true, floor: Floor::Timeout(SECOND), ..plain() };
    let mut wire = Wire::of(config).lose(0, &[2]);
    wire.run(SECOND);
    wire.act(0, |client, now| client.write(now, b"x"));
    wire.run(9 * SECOND);
    assert_eq!(wire.data(0), [(1_000, 1), (1_400, 1)]);
    assert_eq!(wire.ends[1].read(9), b"x");
}

/// Retransmissions are cut to the current size.
#[test]
fn a_segment_size_holds_for_what_is_sent_again_too() {
    let mut wire = Wire::of(plain()).lose(0, &[2]);
    wire.run(SECOND);
    wire.act(0, |client, now| client.write(now, &[7; 900]));
    wire.act(0, |client, _| client.set_segment_size(400));
    wire.run(9 * SECOND);
    assert_eq!(wire.data(0).iter().map(|(_, octets)| *octets).collect::<Vec<_>>(), [900, 400, 400, 100]);
    assert_eq!(wire.ends[1].read(usize::MAX), [7; 900]);
}

#[test]
fn a_window_of_segments_is_kept() {
    let mut wire = Wire::of(TcpConfig { window: Some(1), ..plain() });
    wire.run(SECOND);
    wire.act(0, |client, now| client.write(now, &[7; 3_000]));
    wire.run(9 * SECOND);
    assert_eq!(wire.data(0), [(1_000, 1_000), (1_100, 1_000), (1_200, 1_000)]);
}

/// RFC 9293, section 3.8.6.1.
#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let mut wire = Wire::new(plain(), TcpConfig { receive_buffer: 2_000, ..plain() });
    wire.run(SECOND);
    wire.act(0, |client, now| client.write(now, &[7; 5_000]));
    wire.run(20 * SECOND);
    assert!(
        wire.ends[1].readable() >= 2_000 && wire.ends[1].readable() < 2_020,
        "{}",
        wire.ends[1].readable()
    );
    let mut read = 0;
    for second in 20..60 {
        wire.run(second * SECOND);
        read += wire.act(1, |server, _| server.read(700)).len();
    }
    assert_eq!(read, 5_000);
}

fn fast_open(client: FastOpen, server: FastOpen) -> (Wire, Vec<u128>) {
    let config = |fast_open| TcpConfig { fast_open, mss: 88, nagle: Nagle::Off, ..plain() };
    let mut wire = Wire::new(config(client), config(server));
    // The request is written before the first segment is sent.
    wire.ends[0].write(Instant::ZERO, &[1; 72]);
    let mut answered = false;
    let mut read = Vec::new();
    for step in 0..200 {
        wire.run(Duration::from_millis(5 * step));
        if !answered && wire.ends[1].readable() == 72 {
            answered = true;
            wire.act(1, |server, now| server.write(now, &[2; 10]));
        }
        if wire.ends[0].readable() == 10 {
            read.push(wire.queue.now().since(Instant::ZERO).as_millis());
            wire.ends[0].read(10);
        }
    }
    (wire, read)
}

/// RFC 7413. 72 octets in segments of 88: the SYN has room for the octets beside 24 octets of options.
#[test]
fn fast_open_saves_a_round_trip_once_there_is_a_cookie() {
    let cookie = Cookie::new(b"12345678");
    let (wire, read) = fast_open(FastOpen::Off, FastOpen::Cookie(cookie));
    assert_eq!((read, wire.log[0].2.payload.len()), (vec![210], 0));
    // The client first requests a cookie, then the server grants it.
    let (wire, read) = fast_open(FastOpen::Cookie(None), FastOpen::Cookie(cookie));
    assert_eq!((read, wire.log[0].2.payload.len()), (vec![210], 0));
    assert!(wire.events[0].contains(&TcpEvent::Cookie(cookie.unwrap())));
    let (wire, _) = fast_open(FastOpen::Cookie(cookie), FastOpen::Cookie(cookie));
    let syn = &wire.log[0].2;
    assert_eq!((syn.header_len(), syn.payload.len()), (44, 64));
    // Wrong cookie: the data of the SYN is retransmitted, and the right cookie is granted.
    let (wire, read) = fast_open(FastOpen::Cookie(Cookie::new(b"wrong!")), FastOpen::Cookie(cookie));
    assert_eq!(read, [210]);
    assert!(wire.events[0].contains(&TcpEvent::Cookie(cookie.unwrap())));
}

/// The request is sent in the SYN and the response in the SYN-ACK.
#[test]
fn without_a_cookie_request_and_reply_take_one_round_trip() {
    let config = TcpConfig { fast_open: FastOpen::Cookieless, mss: 500, ..plain() };
    let mut wire = Wire::of(config);
    wire.ends[0].write(Instant::ZERO, &[1; 72]);
    wire.fate = Box::new(|_, _, _| vec![DELAY]);
    wire.act(0, |_, _| ());
    // The server's application responds while the SYN is handled.
    let (now, (_, segment)) = loop {
        let next = wire.queue.next().unwrap();
        if next.1.1.is_some() {
            break next;
        }
    };
    wire.ends[1].handle_segment(now, &segment.unwrap());
    assert_eq!(wire.ends[1].read(100).len(), 72);
    wire.ends[1].write(now, &[2; 10]);
    wire.flush(1);
    wire.run(Duration::from_millis(101));
    assert_eq!(wire.ends[0].read(100), [2; 10]);
    let syn_ack = &wire.log[1].2;
    assert!(syn_ack.syn && syn_ack.payload.len() == 10);
    wire.run(SECOND);
    assert_eq!(wire.log.len(), 3);
}

#[test]
fn nobody_answers_a_wrong_segment_of_a_handshake() {
    let mut client = TcpConnection::connect(plain(), Instant::ZERO, 1);
    let syn = client.poll_transmit(Instant::ZERO).unwrap();
    let wrong = TcpSegment {
        syn: true,
        acknowledgment: Some(syn.sequence_number.wrapping_add(7)),
        ..TcpSegment::default()
    };
    client.handle_segment(Instant::ZERO, &wrong);
    assert!(!client.is_open() && client.poll_event().is_none());
    let refused = TcpSegment {
        rst: true,
        acknowledgment: Some(syn.sequence_number.wrapping_add(1)),
        ..TcpSegment::default()
    };
    client.handle_segment(Instant::ZERO, &refused);
    assert_eq!(client.poll_event(), Some(TcpEvent::Reset));
    assert!(client.is_closed() && client.poll_transmit(Instant::ZERO).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Over a wire that loses, duplicates and reorders, octets arrive unaltered, in both directions, and both sides
    /// end.
    #[test]
    fn octets_arrive_in_their_order_whatever_the_wire_does(
        seed: u64,
        loss in 0..30_u64,
        doubled in 0..20_u64,
        mixed in 0..40_u64,
        (sack, timestamps, tail_loss_probe, limited_transmit) in any::<(bool, bool, bool, bool)>(),
        cubic: bool,
        sizes in (1..40_000_usize, 0..3_000_usize),
        mss in 40..1_460_u16,
        receive_buffer in 500..90_000_u32,
        window in proptest::option::of(1..5_u32),
    ) {
        let algorithm = if cubic { CongestionAlgorithm::Cubic } else { CongestionAlgorithm::Reno };
        let config = TcpConfig {
            sack, timestamps, tail_loss_probe, limited_transmit, algorithm, mss, receive_buffer, window, ..TcpConfig::default()
        };
        let mut wire = Wire::of(config);
        let mut draws = RandomStreams::new(seed).stream(0, 0, Purpose::Link);
        wire.fate = Box::new(move |_, _, _| {
            let mut copies = vec![];
            if draws.below(100) >= loss {
                copies.push(DELAY + Duration::from_millis(if draws.below(100) < mixed { draws.below(80) } else { 0 }));
            }
            if draws.below(100) < doubled {
                copies.push(DELAY + Duration::from_millis(draws.below(50)));
            }
            copies
        });
        let content = |len: usize, salt: usize| (0..len).map(|i| (i * 31 + salt + i / 251) as u8).collect::<Vec<u8>>();
        let data = [content(sizes.0, 1), content(sizes.1, 2)];
        let mut written = [0; 2];
        let mut read = [Vec::new(), Vec::new()];
        for step in 0..60_000_u32 {
            wire.run(step * Duration::from_millis(100));
            for end in 0..2 {
                let rest = data[end][written[end]..].to_vec();
                if !rest.is_empty() {
                    written[end] += wire.act(end, |connection, now| connection.write(now, &rest));
                } else {
                    wire.act(end, |connection, now| connection.close(now));
                }
                read[end].extend(wire.act(end, |connection, _| connection.read(usize::MAX)));
            }
            if wire.ends.iter().all(TcpConnection::is_closed) {
                break;
            }
        }
        prop_assert!(read[1] == data[0], "{} of {} octets", read[1].len(), data[0].len());
        prop_assert!(read[0] == data[1], "{} of {} octets", read[0].len(), data[1].len());
        prop_assert!(wire.ends.iter().all(TcpConnection::is_closed));
    }

    /// No segment causes a panic, and octets already read do not change.
    #[test]
    fn any_segment_is_survived(
        segments in proptest::collection::vec((any::<[u32; 2]>(), 0..64_u8, any::<u16>(), 0..20_usize, any::<(u32, u32)>()), 0..40),
        near: bool,
    ) {
        let mut wire = Wire::of(plain());
        wire.run(SECOND);
        wire.act(0, |client, now| client.write(now, &[5; 3_000]));
        let now = wire.queue.now();
        for ([sequence_number, acknowledgment], flags, window, len, block) in segments {
            let mut options = SegmentOptions::default();
            options.sack.push(block.0, block.1);
            let base: (u32, u32) = if near { (0x8000_0000, 0xFFFF_FF01) } else { (0, 0) };
            let segment = TcpSegment {
                sequence_number: base.0.wrapping_add(if near { sequence_number % 3_000 } else { sequence_number }),
                acknowledgment: (flags & 1 > 0).then_some(base.1.wrapping_add(if near { acknowledgment % 4_000 } else { acknowledgment })),
                syn: flags & 6 == 6, fin: flags & 24 == 24, rst: flags & 48 == 48,
                psh: false, window, options, payload: vec![9; len],
            };
            wire.ends[0].handle_segment(now, &segment);
            wire.flush(0);
        }
    }
}
