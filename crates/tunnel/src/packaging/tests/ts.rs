//! TS Packets: content, transmission times, senders.

use thinair_ule::psi::Finder;
use thinair_ule::ts::{NULL_PACKET, TsHeader};

use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn with(change: impl FnOnce(&mut u8, &mut Duration, &mut Option<Duration>, &mut Option<u64>)) -> Packaging {
    let mut packaging = ts();
    if let Packaging::Ts { per_datagram, flush, psi, bitrate, .. } = &mut packaging {
        change(per_datagram, flush, psi, bitrate);
    }
    packaging
}

fn pids(body: &[u8]) -> Vec<u16> {
    let header = |packet: &[u8]| TsHeader::read(packet.first_chunk().unwrap()).unwrap();
    body.chunks(188).map(|packet| header(packet).pid.value()).collect()
}

/// SNDUs that the Linux receiver accepts, with an equal CRC.
#[test]
fn sndus_are_those_that_linux_takes() {
    let udp = "4500001c000040004011b6ce0a0000010a000002138813890008";
    let cases = [
        (Protocol::Ipv4, None, format!("{udp}0000"), format!("80200800{udp}0000bdddf733")),
        (Protocol::Rohc, None, "00beef68656c6c6f".to_owned(), "800c22f100beef68656c6c6f16ad2f67".to_owned()),
        (
            Protocol::Bridged,
            None,
            format!("0a0b0c0d0e0f0102030405060800{udp}0000"),
            format!("802e00010a0b0c0d0e0f0102030405060800{udp}0000aab87598"),
        ),
        (
            Protocol::Ipv4,
            SiteId::new(2),
            format!("{udp}0000"),
            format!("002608000001020304054500{}0000adffa594", &udp[4..]),
        ),
    ];
    for (protocol, to, unit, sndu) in cases {
        let mut packaging = ts();
        let mut others = mesh(1);
        if let (Packaging::Ts { npa: own, .. }, Others::Mesh(mesh)) = (&mut packaging, &mut others) {
            *own = npa(1);
            mesh.sites[0].npa = Npa::new([0, 1, 2, 3, 4, 5]);
        }
        let mut packager = packager(&packaging, &others, PackagerConfig::new(1_316));
        let bodies = packed(&mut packager, &[Unit { protocol, to, large: false, octets: &hex(&unit) }]);
        let mut expected = [hex("4740351000"), hex(&sndu)].concat();
        expected.resize(188, 0xFF);
        assert_eq!(bodies, [SentBody { octets: expected, several: false, to: None, units: 1 }]);
    }
}

/// An IPv6 packet, and a Type that units do not have; the first is that of RFC 4326, appendix B.
#[test]
fn what_others_send_is_taken() {
    let sndu = "003f86dd00010203040560000000000d3a4020010db830081965000000000000000120010db825091962000000000000000280009d8c0638000400000000007c171763";
    let mut packet = [hex("4740351000"), hex(sndu)].concat();
    packet.resize(188, 0xFF);
    let body = SentBody { octets: packet, several: false, to: None, units: 1 };
    let mut unpackager = Unpackager::new(&ts(), &peers(), LARGEST, false).unwrap();
    let came = unpacked(&mut unpackager, std::slice::from_ref(&body));
    assert_eq!((came[0].1, came[0].3.len()), (Protocol::Ipv6, 53));
    // For that NPA only.
    let mut other = ts();
    if let Packaging::Ts { npa: own, .. } = &mut other {
        *own = npa(9);
    }
    let mut unpackager = Unpackager::new(&other, &peers(), LARGEST, false).unwrap();
    assert_eq!(unpacked(&mut unpackager, &[body]), []);
    assert_eq!(unpackager.counters().ts.filtered, 1);
}

#[test]
fn what_is_not_full_waits_as_long_as_it_may() {
    let packaging = with(|_, flush, _, _| *flush = Duration::from_millis(5));
    let mut packager = packager(&packaging, &peers(), PackagerConfig::new(1_316));
    let mut bodies = Vec::new();
    let mut sink = |body: Body<'_>| bodies.push(body.octets.len());
    packager.push(at(10), rohc(&[1; 50]), &mut sink).unwrap();
    packager.pause(at(10), &mut sink);
    assert_eq!(packager.poll_at(), Some(at(15)));
    packager.push(at(12), rohc(&[1; 50]), &mut sink).unwrap();
    packager.pause(at(12), &mut sink);
    // No unit is delayed by a longer time.
    assert_eq!(packager.poll_at(), Some(at(15)));
    packager.poll(at(14), &mut sink);
    packager.poll(at(15), &mut sink);
    assert_eq!(packager.poll_at(), None);
    // A full datagram is sent at once, and the rest waits separately.
    packager.push(at(20), rohc(&[1; 50]), &mut sink).unwrap();
    packager.push(at(22), rohc(&[1; 1_300]), &mut sink).unwrap();
    assert_eq!(packager.poll_at(), Some(at(27)));
    packager.poll(at(27), &mut sink);
    assert_eq!(bodies, [188, 1_316, 188]);
    assert_eq!(packager.counters().bodies, 3);
}

#[test]
fn a_file_is_found_wherever_it_begins() {
    let mut packager = packager(&ts(), &peers(), PackagerConfig::new(1_316));
    let units: Vec<_> = (0..300_usize).map(|i| vec![i as u8 | 1; i * 7 % 700 + 1]).collect();
    let bodies = packed(&mut packager, &units.iter().map(|octets| rohc(octets)).collect::<Vec<_>>());
    let file = bodies.iter().flat_map(|body| body.octets.clone()).collect::<Vec<_>>();
    let coded: Vec<_> = file.chunks(188).flat_map(|packet| [packet, &[0x47; 16]].concat()).collect();
    for (file, piece) in [(&file, 1_000), (&file, 77), (&coded, 4_096)] {
        let mut unpackager = Unpackager::new(&ts(), &peers(), LARGEST, false).unwrap();
        let mut came = Vec::new();
        let mut sink = |_: Option<SiteId>, unit: Unit<'_>| came.push(unit.octets.to_vec());
        for piece in [b"not a TS Packet", &file[..]].concat().chunks(piece) {
            unpackager.receive_stream(piece, &mut sink);
        }
        unpackager.finish_stream(&mut sink);
        assert!(came == units);
        assert_eq!(unpackager.counters().ts.skipped, 15);
    }
}

#[test]
fn tables_say_where_the_stream_is() {
    let packaging = with(|_, _, psi, _| *psi = Some(Duration::from_millis(100)));
    let mut packager = packager(&packaging, &peers(), PackagerConfig::new(1_316));
    let mut bodies = Vec::new();
    let mut sink = |body: Body<'_>| bodies.push(body.octets.to_vec());
    assert_eq!(packager.poll_at(), Some(at(0)));
    packager.poll(at(0), &mut sink);
    assert_eq!(packager.poll_at(), Some(at(100)));
    packager.push(at(120), rohc(b"unit"), &mut sink).unwrap();
    packager.pause(at(120), &mut sink);
    assert_eq!(packager.poll_at(), Some(at(220)));
    assert_eq!(
        bodies.iter().map(|body| pids(body)).collect::<Vec<_>>(),
        [vec![0, 0x100], vec![0, 0x100, PID]]
    );
    let mut finder = Finder::<1, 1>::new();
    for packet in bodies.concat().chunks(188) {
        finder.receive(packet.first_chunk().unwrap());
    }
    assert!(finder.streams().map(|stream| stream.pid.value()).eq([PID]));
    assert_eq!(bodies[1][3] & 0xF, 1);
    assert_eq!(packager.counters().psi, 4);
    let mut unpackager = Unpackager::new(&ts(), &peers(), LARGEST, false).unwrap();
    let bodies: Vec<_> =
        bodies.into_iter().map(|octets| SentBody { octets, several: false, to: None, units: 0 }).collect();
    assert_eq!(unpacked(&mut unpackager, &bodies).len(), 1);
    assert_eq!(unpackager.counters().ts.psi, 2);
}

/// 3.507 Mbit/s are 2,331.8 TS Packets per second, 333.1 datagrams of 7.
#[test]
fn a_constant_rate_has_null_packets() {
    let packaging = with(|_, _, psi, bitrate| {
        *bitrate = Some(3_507_000);
        *psi = Some(Duration::from_millis(250));
    });
    let mut packager = packager(&packaging, &peers(), PackagerConfig::new(1_316));
    let mut bodies = Vec::new();
    let (mut pushed, mut refused) = (Vec::new(), 0);
    let mut now = Instant::ZERO;
    while now < at(2_000) {
        let mut sink = |body: Body<'_>| bodies.push(SentBody::of(body));
        packager.poll(now, &mut sink);
        let octets = vec![pushed.len() as u8 | 1; 900];
        // Nothing for half a second, then more than the stream can carry.
        if now > at(500) {
            match packager.push(now, rohc(&octets), &mut sink) {
                Ok(()) => pushed.push(octets),
                Err(error) => {
                    assert_eq!(error, PushError::Full);
                    assert!(packager.is_full());
                    refused += 1;
                }
            }
        }
        packager.pause(now, &mut sink);
        let next = packager.poll_at().unwrap();
        assert!(next > now);
        now = if now > at(500) { next.min(now + Duration::from_millis(1)) } else { next };
    }
    assert_eq!(bodies.len(), 666);
    assert!(bodies.iter().all(|body| body.octets.len() == 1_316));
    let counters = packager.counters();
    assert_eq!((counters.ts_packets / 7, counters.psi), (666, 16));
    // Half a second has 1,166 slots, four of which contain tables.
    assert!((1_158..1_170).contains(&counters.nulls), "{}", counters.nulls);
    assert!(refused > 100 && pushed.len() > 600, "{refused}, {}", pushed.len());
    let mut unpackager = Unpackager::new(&packaging, &peers(), LARGEST, false).unwrap();
    let came = unpacked(&mut unpackager, &bodies);
    assert!(came.iter().map(|came| &came.3).eq(&pushed[..came.len()]) && came.len() + 8 > pushed.len());
    assert_eq!(unpackager.counters().ts.nulls, counters.nulls);

    // The machine was suspended for an hour: missed slots are skipped.
    let mut late = 0;
    packager.poll(at(3_602_000), &mut |_| late += 1);
    assert!(late <= 1, "{late}");
    assert!(packager.poll_at().unwrap() <= at(3_602_004));
}

#[test]
fn sites_are_told_by_pid() {
    let others = Others::Peers(vec![peer(Some(pid(0x40))), peer(Some(pid(0x41)))]);
    let mut unpackager = Unpackager::new(&ts(), &others, LARGEST, false).unwrap();
    let mut from = |value: u16| {
        let mut packaging = ts();
        if let Packaging::Ts { pid: own, .. } = &mut packaging {
            *own = pid(value);
        }
        let mut packager = packager(&packaging, &peers(), PackagerConfig::new(1_316));
        let bodies = packed(&mut packager, &[rohc(&[7; 300])]);
        unpacked(&mut unpackager, &bodies).first().map(|came| came.0)
    };
    assert_eq!([0x40, 0x41, 0x42].map(&mut from), [Some(Some(1)), Some(Some(2)), None]);
    assert_eq!(unpackager.counters().ts.others, 2);
    // A peer with its own Unpackager needs no PID, and is not identified by it.
    let mut own = Unpackager::of_peer(&ts(), &peer(None), LARGEST, false).unwrap();
    let mut packager = packager(&ts(), &peers(), PackagerConfig::new(1_316));
    let bodies = packed(&mut packager, &[rohc(&[7; 300])]);
    assert_eq!(unpacked(&mut own, &bodies)[0].0, None);
}

#[test]
fn what_is_wrong_is_told_or_counted() {
    let mut unpackager = Unpackager::new(&ts(), &peers(), LARGEST, false).unwrap();
    let mut packager = packager(&ts(), &peers(), PackagerConfig::new(1_316));
    let bodies = packed(&mut packager, &[rohc(&[7; 100]), rohc(&[8; 150]), rohc(&[9; 600])]);
    let good = bodies.iter().flat_map(|body| body.octets.clone()).collect::<Vec<_>>();
    let mut receive = |octets: &[u8]| {
        let mut units = 0;
        let body = BodyIn { octets, several: false, addressed: false };
        unpackager.receive(body, &mut |_, _| units += 1).map(|()| units)
    };
    assert_eq!(receive(&good[..187]), Err(UnpackError::NotTs { offset: 0, octets: 187 }));
    assert_eq!(receive(b""), Err(UnpackError::NotTs { offset: 0, octets: 0 }));
    assert_eq!(receive(&good), Ok(3));
    let mut damaged = good.clone();
    damaged[20] ^= 1;
    assert_eq!(receive(&damaged), Ok(2));
    damaged[188] = 0;
    assert_eq!(receive(&damaged), Ok(0));
    let counters = unpackager.counters();
    assert_eq!((counters.bodies, counters.bad_bodies, counters.units), (5, 2, 5));
    assert_eq!((counters.ts.crc_errors, counters.ts.sync_errors), (2, 1));
    // Four TS Packets each, with gaps in between, one of which is a loss.
    assert_eq!((good.len() / 188, counters.ts.continuity_errors), (5, 3));
    assert_eq!(NULL_PACKET.len(), 188);
}
