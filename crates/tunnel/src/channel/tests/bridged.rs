use super::*;

fn frame(ether_type: &[u8], payload: &[u8]) -> Vec<u8> {
    [&[0x02, 0, 0, 0, 0, 1][..], &[0x02, 0, 0, 0, 0, 2], ether_type, payload].concat()
}

fn ends(config: &ChannelConfig) -> [Channel; 2] {
    pair(&Setup { bridged: true, ..setup(config) })
}

#[test]
fn frames_come_through_bit_for_bit() {
    let config = config(Mode::Optimistic);
    let mut ends = ends(&config);
    for i in 0..60 {
        let now = ms(20 * u64::from(i));
        let six = udp6(1, i, 60);
        let frames = [
            (true, frame(&[0x86, 0xDD], &six)),
            // Padded, with VLAN tag, of another EtherType, truncated, with a wrong length, and not IP.
            (false, frame(&[0x08, 0x00], &[&fragment(28)[..], &[0; 18]].concat())),
            (false, frame(&[0x81, 0x00, 0, 5, 0x86, 0xDD], &six)),
            (false, frame(&[0x08, 0x00], &six)),
            (false, frame(&[0x86, 0xDD], &six[..50])),
            (false, frame(&[0x08, 0x06], &[7; 46])),
            (false, frame(&[0x00, 0x26], &[0x42; 38])),
            (false, frame(&[0x08, 0x00], &[])),
            // Supported by the uncompressed profile only.
            (false, frame(&[0x08, 0x00], &fragment(200))),
        ];
        for (is_compressed, frame) in frames {
            let [a, b] = &mut ends;
            let (sent, units) = send(a, now, &frame);
            let sent = sent.unwrap();
            assert_eq!(sent.compressed.is_some(), is_compressed);
            assert_eq!((units.len(), units[0].protocol), (1, Protocol::Bridged));
            assert_eq!(units[0].octets != frame, is_compressed);
            assert_eq!(receive(b, now, None, &units[0]), (Ok(()), vec![frame.clone()]));
            // In the other direction, with feedback.
            assert_eq!(carry(b, a, now, &frame), [frame]);
        }
        settle(&mut ends, now);
    }
    let counters = ends[0].counters();
    assert_eq!((counters.as_they_are, counters.not_compressible), (480, 480));
    assert!(counters.feedback_sent.in_front > 0 && counters.sent.unit_octets < counters.sent.octets);
}

#[test]
fn what_is_no_frame_goes_nowhere() {
    let config = config(Mode::Optimistic);
    let [mut a, mut b] = ends(&config);
    assert_eq!(send(&mut a, ms(0), &[2; 13]), (Err(NotSent::ShortFrame(13)), Vec::new()));
    let rohc = frame(&[0x22, 0xF1], &[0xFD, 0, 0]);
    assert_eq!(send(&mut a, ms(0), &rohc), (Err(NotSent::RohcFrame), Vec::new()));
    let unit = |protocol, octets: &[u8]| Owned { protocol, to: None, large: false, octets: octets.to_vec() };
    for (unit, error) in [
        (unit(Protocol::Bridged, &[0; 13]), NotReceived::Malformed(Protocol::Bridged)),
        (unit(Protocol::Ipv4, &fragment(100)), NotReceived::Unexpected(Protocol::Ipv4)),
        (unit(Protocol::Bridged, &rohc), NotReceived::Decompress(DecompressError::Malformed(cid(0)))),
    ] {
        let (received, frames) = receive(&mut b, ms(0), None, &unit);
        assert!(frames.is_empty());
        let is_same_kind = match (received.unwrap_err(), error) {
            (NotReceived::Decompress(_), NotReceived::Decompress(_)) => true,
            (a, b) => a == b,
        };
        assert!(is_same_kind, "{unit:?}");
    }
    // A packet without a frame around it.
    let (_, units) = send(&mut a, ms(0), &frame(&[0x86, 0xDD], &udp6(1, 0, 20)));
    let bare = unit(Protocol::Rohc, &units[0].octets[14..]);
    assert_eq!(receive(&mut b, ms(0), None, &bare).1, Vec::<Vec<u8>>::new());
    // Frames on a channel for packets.
    let [_, mut c] = pair(&setup(&config));
    let unexpected = Err(NotReceived::Unexpected(Protocol::Bridged));
    assert_eq!(receive(&mut c, ms(0), None, &units[0]), (unexpected, Vec::new()));
}

#[test]
fn long_frames_of_ip_go_in_segments() {
    let config = config(Mode::Optimistic);
    let [mut a, mut b] =
        pair(&Setup { bridged: true, mtu: 1_280, largest_unit: 200, mrru: 1_412, ..setup(&config) });
    for i in 0..10 {
        let frame = frame(&[0x86, 0xDD], &udp6(1, i, 1_232));
        let (sent, units) = send(&mut a, ms(u64::from(i)), &frame);
        assert!(sent.unwrap().units > 6 && units.iter().all(|unit| unit.octets.len() <= 200));
        let frames: Vec<_> =
            units.iter().flat_map(|unit| receive(&mut b, ms(u64::from(i)), None, unit).1).collect();
        assert_eq!(frames, [frame]);
    }
    let arp = frame(&[0x08, 0x06], &[7; 187]);
    assert_eq!(send(&mut a, ms(20), &arp).0, Err(NotSent::TooLong { octets: 201, most: 200 }));
}

fn cid(value: u16) -> thinair_rohc::Cid {
    thinair_rohc::Cid::new(value).unwrap()
}
