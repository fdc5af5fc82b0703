use proptest::prelude::*;
use thinair_segment::{Fixed, NetworkProperties, Tssa};

use super::*;

const HERE: [u8; 4] = [10, 9, 0, 1];
const THERE: [u8; 4] = [10, 9, 0, 2];

/// A TCP segment over IPv4, with timestamps.
fn packet(from: [u8; 4], to: [u8; 4], sequence: u32, acknowledgment: u32, payload: usize) -> Vec<u8> {
    let ports = if from == HERE { (5_000, 80) } else { (80, 5_000) };
    let mut octets = vec![0; 20 + 32 + payload];
    let ip = Ipv4 {
        total_length: octets.len() as u16,
        ttl: 64,
        protocol: 6,
        source: from,
        destination: to,
        ..Ipv4::default()
    };
    let at = ip.write(&mut octets, 0).unwrap();
    let tcp = Tcp {
        source_port: ports.0,
        destination_port: ports.1,
        sequence_number: sequence,
        acknowledgment_number: acknowledgment,
        ack: true,
        options: &[1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0],
        ..Tcp::default()
    };
    tcp.write(&mut octets, at).unwrap();
    octets
}

fn segments(sizer: impl Into<Sizer>) -> Segments {
    Segments::new(sizer.into(), vec![HERE.into()])
}

fn limit(octets: u16) -> Option<Limit> {
    Some(Limit { host: THERE.into(), own: HERE.into(), octets: Some(octets) })
}

#[test]
fn a_host_gets_the_packets_that_its_control_asks_for() {
    let mut segments = segments(Fixed::new(300));
    let now = Instant::ZERO;
    assert_eq!((segments.poll(), segments.shortest_limit()), (None, None));
    segments.sent(now, &packet(HERE, THERE, 1, 1, 0));
    assert_eq!(segments.poll(), None, "what is only acknowledged is not cut");
    segments.sent(now, &packet(HERE, THERE, 1, 1, 1_000));
    assert_eq!(segments.poll(), limit(352));
    assert_eq!((segments.poll(), segments.shortest_limit()), (None, Some(352)), "it was told");
    // Forwarded packets of other hosts are ignored.
    segments.sent(now, &packet([10, 8, 0, 1], [10, 9, 0, 3], 1, 1, 1_000));
    assert_eq!(segments.poll(), None);
    assert_eq!(segments.told().collect::<Vec<_>>(), [Limit { octets: None, ..limit(0).unwrap() }]);
}

#[test]
fn what_is_sent_again_was_lost_and_what_is_acknowledged_has_arrived() {
    let mut segments = segments(Tssa::default());
    let mut expected = Sizer::from(Tssa::default());
    let now = Instant::ZERO;
    // Sequence numbers wrap around.
    let start = u32::MAX - 100;
    for number in 0..3 {
        segments.sent(now, &packet(HERE, THERE, start.wrapping_add(number * 64), 1, 64));
    }
    segments.received(now, &packet(THERE, HERE, 1, start.wrapping_add(64), 0));
    expected.on_acked(64, None, now);
    assert_eq!(segments.hosts[0].sizer, expected);
    for _ in 0..3 {
        segments.received(now, &packet(THERE, HERE, 1, start.wrapping_add(64), 0));
    }
    segments.sent(now, &packet(HERE, THERE, start.wrapping_add(64), 1, 64));
    expected.on_lost(LossDetection::Fast, now);
    assert_eq!(segments.hosts[0].sizer, expected);
    segments.received(now, &packet(THERE, HERE, 1, start.wrapping_add(192), 0));
    expected.on_acked(64, None, now);
    expected.on_acked(64, None, now);
    assert_eq!(segments.hosts[0].sizer, expected);
    // Octets that were never sent are not acknowledged, and nothing is acknowledged twice.
    segments.received(now, &packet(THERE, HERE, 1, start.wrapping_add(500), 0));
    segments.received(now, &packet(THERE, HERE, 1, start.wrapping_add(64), 0));
    assert_eq!(segments.hosts[0].sizer, expected);
}

/// A segment that exceeds the new size is cut on retransmission: that is one loss.
#[test]
fn pieces_of_a_lost_segment_are_one_loss() {
    let mut segments = segments(Tssa::default());
    let now = Instant::ZERO;
    segments.sent(now, &packet(HERE, THERE, 1, 1, 1_000));
    segments.sent(now, &packet(HERE, THERE, 1_001, 1, 1_000));
    for at in (1..2_001).step_by(200) {
        segments.sent(now, &packet(HERE, THERE, at, 1, 200));
    }
    let lost = |segments: &Segments| segments.status()[0].sent_again;
    assert_eq!(lost(&segments), 2);
    // Its second piece is lost again, and then the next segment.
    segments.received(now, &packet(THERE, HERE, 1, 201, 0));
    segments.sent(now, &packet(HERE, THERE, 201, 1, 200));
    assert_eq!(lost(&segments), 2);
    segments.received(now, &packet(THERE, HERE, 1, 1_001, 0));
    segments.sent(now, &packet(HERE, THERE, 1_001, 1, 200));
    assert_eq!((lost(&segments), segments.status()[0].acknowledged), (3, 1));
}

#[test]
fn a_host_that_is_forgotten_gets_its_limit_taken_back() {
    let mut segments = segments(Fixed::new(100));
    for number in 0..=HOSTS as u8 {
        let there = [10, 9, 1, number];
        segments.sent(Instant::from_millis(number.into()), &packet(HERE, there, 1, 1, 500));
        assert_eq!(
            segments.poll().map(|limit| limit.octets),
            Some(if number == HOSTS as u8 { None } else { Some(152) })
        );
    }
    assert!(segments.poll().is_some_and(|limit| limit.octets == Some(152)));
    assert_eq!((segments.poll(), segments.hosts.len()), (None, HOSTS));
}

proptest! {
    /// For any packets, limits stay in the range of the control, and memory does not grow.
    #[test]
    fn any_packets_leave_it_bounded(
        packets in prop::collection::vec((any::<bool>(), any::<[u8; 2]>(), any::<u32>(), any::<u32>(), 0_usize..100, 0_usize..200), 0..300),
    ) {
        let sizer = NetworkProperties::default().configure(&"adaptive".parse().unwrap());
        let mut segments = segments(sizer);
        for (number, (sends, host, sequence, acknowledgment, payload, cut)) in packets.into_iter().enumerate() {
            let now = Instant::from_millis(number as u64);
            let there = [10, 9, host[0] & 1, host[1] & 127];
            if sends {
                let packet = packet(HERE, there, sequence, acknowledgment, payload);
                segments.sent(now, &packet[..packet.len().saturating_sub(cut)]);
            } else {
                segments.received(now, &packet(there, HERE, sequence, acknowledgment, payload));
            }
            while let Some(limit) = segments.poll() {
                prop_assert!(limit.octets.is_none_or(|octets| (SHORTEST..=1_024 + 52).contains(&octets)));
            }
            prop_assert!(segments.hosts.len() <= HOSTS && segments.flows.len() <= FLOWS);
            prop_assert!(segments.flows.iter().all(|flow| flow.ends.len() <= ENDS));
        }
    }
}
