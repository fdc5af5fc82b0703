//! BBFrames of GSE Packets.

use thinair_ule::crc::Crc32;
use thinair_ule::gse::{BadBbHeader, BbHeader};

use super::*;

fn with(flush: Duration, npa: Option<Npa>, total_length: TotalLength, divided: bool) -> Packaging {
    Packaging::Gse { flush, npa, total_length, divided }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// The header is that of modulators (`crates/ule`), the GSE Packet that of TS 102 606-1 with LT 0b10.
#[test]
fn a_bb_frame_octet_by_octet() {
    let mut packager = packager(&gse(), &peers(), PackagerConfig::new(1_400));
    let unit = [7; 90];
    let bodies = packed(&mut packager, &[rohc(&unit)]);
    let expected = [&b"\x72\0\0\0\x02\xf0\0\0\0\x15\xe0\x5c\x22\xf1"[..], &unit].concat();
    assert_eq!(bodies, [SentBody { octets: expected, several: false, to: None, units: 1 }]);
}

#[test]
fn a_unit_is_torn_only_if_it_has_to_be() {
    let mut packager = packager(&gse(), &peers(), PackagerConfig::new(510));
    let units = [vec![1; 300], vec![2; 300], vec![3; 1_200], vec![4; 20]];
    let bodies = packed(&mut packager, &units.each_ref().map(|octets| rohc(octets)));
    assert_eq!(packager.counters().fragmented, 1);
    let mut unpackager = Unpackager::new(&gse(), &peers(), LARGEST, false).unwrap();
    let came = unpacked(&mut unpackager, &bodies);
    assert!(came.iter().map(|came| &came.3).eq(&units));
    let counters = unpackager.counters().gse;
    assert_eq!((counters.whole, counters.reassembled), (3, 1));
    // The first two take a BBFrame each; the long one fills the second, two more, and begins the last.
    let octets: Vec<_> = bodies.iter().map(|body| body.octets.len()).collect();
    assert_eq!(octets, [314, 510, 510, 510, 58]);
    for lost in 0..bodies.len() {
        let mut some = bodies.clone();
        some.remove(lost);
        let mut unpackager = Unpackager::new(&gse(), &peers(), LARGEST, false).unwrap();
        let came = unpacked(&mut unpackager, &some);
        assert!(came.len() < units.len() && came.iter().all(|came| units.contains(&came.3)));
    }
}

#[test]
fn what_is_not_full_waits_as_long_as_it_may() {
    let packaging = with(Duration::from_millis(5), None, TotalLength::Checked, false);
    let mut packager = packager(&packaging, &peers(), PackagerConfig::new(510));
    let mut bodies = Vec::new();
    let mut sink = |body: Body<'_>| bodies.push(body.octets.len());
    packager.push(at(10), rohc(&[1; 100]), &mut sink).unwrap();
    packager.push(at(12), rohc(&[1; 100]), &mut sink).unwrap();
    packager.pause(at(12), &mut sink);
    assert_eq!(packager.poll_at(), Some(at(15)));
    packager.poll(at(14), &mut sink);
    packager.poll(at(15), &mut sink);
    assert_eq!(packager.poll_at(), None);
    packager.push(at(20), rohc(&[1; 100]), &mut sink).unwrap();
    packager.push(at(22), rohc(&[1; 490]), &mut sink).unwrap();
    assert_eq!(packager.poll_at(), Some(at(27)));
    assert_eq!(bodies, [10 + 2 * 104, 10 + 104]);
}

#[test]
fn padding_is_part_of_the_data_field() {
    let config = PackagerConfig { pad: 100, ..PackagerConfig::new(1_400) };
    let bodies = packed(&mut packager(&gse(), &peers(), config), &[rohc(&[1; 110])]);
    assert_eq!(bodies[0].octets.len(), 200);
    assert_eq!(BbHeader::read(&bodies[0].octets).unwrap().data_field(), 190);
    let mut unpackager = Unpackager::new(&gse(), &peers(), LARGEST, false).unwrap();
    assert_eq!(unpacked(&mut unpackager, &bodies).len(), 1);
    assert_eq!(unpackager.counters().gse.padding, 76);
}

#[test]
fn sites_are_told_by_the_input_stream_identifier() {
    let packaging = |own| with(Duration::ZERO, npa(own), TotalLength::Checked, false);
    let bodies = |own: u8| {
        packed(&mut packager(&packaging(own), &mesh(own), PackagerConfig::new(500)), &[rohc(&[own; 700])])
    };
    // Interleaved fragments of two sites with equal Frag_IDs.
    let (two, three) = (bodies(2), bodies(3));
    let mixed: Vec<_> = two.into_iter().zip(three).flat_map(|(two, three)| [two, three]).collect();
    let mut unpackager = Unpackager::new(&packaging(1), &mesh(1), LARGEST, false).unwrap();
    let came: Vec<_> = unpacked(&mut unpackager, &mixed).iter().map(|came| (came.0, came.3[0])).collect();
    assert_eq!(came, [(Some(2), 2), (Some(3), 3)]);
    // Its own BBFrames are received, too; unknown ones are reported.
    assert_eq!(unpacked(&mut unpackager, &bodies(1)), []);
    let mut receive = |octets: &[u8]| {
        let body = BodyIn { octets, several: false, addressed: false };
        unpackager.receive(body, &mut |_, _| panic!("nothing is delivered"))
    };
    let mut stranger = BbHeader::new(0).unwrap();
    stranger.isi = Some(9);
    assert_eq!(receive(&stranger.write()), Err(UnpackError::Stream(9)));
    stranger.isi = None;
    assert_eq!(receive(&stranger.write()), Err(UnpackError::SingleStream));
    assert_eq!(receive(b"short"), Err(UnpackError::BbHeader(BadBbHeader::Truncated)));
    stranger = BbHeader::new(40).unwrap();
    stranger.isi = Some(2);
    let short = [&stranger.write()[..], &[0; 39]].concat();
    assert_eq!(receive(&short), Err(UnpackError::DataField { announced: 40, left: 39 }));
}

/// A modulator that counts two octets too many in Total_Length (dvb-gse, issue 11): its CRC-32 covers that field.
#[test]
fn a_wrong_total_length_is_ignored_if_the_settings_ask_for_it() {
    let unit: Vec<u8> = (0..300_u16).map(|octet| octet as u8).collect();
    let mut sender = packager(&gse(), &peers(), PackagerConfig::new(200));
    let mut bodies = packed(&mut sender, &[rohc(&unit)]);
    // S, Length, Frag_ID, Total_Length and Type; the last fragment ends with the CRC-32.
    let first = BbHeader::OCTETS;
    let total_length = 2 + 300 + 2_u16;
    assert_eq!(bodies[0].octets[first + 3..first + 5], 302_u16.to_be_bytes());
    bodies[0].octets[first + 3..first + 5].copy_from_slice(&total_length.to_be_bytes());
    let crc = Crc32::of(&[&total_length.to_be_bytes()[..], b"\x22\xf1", &unit].concat());
    let last = &mut bodies.last_mut().unwrap().octets;
    let end = last.len();
    last[end - 4..].copy_from_slice(&crc.to_be_bytes());

    let mut strict = Unpackager::new(&gse(), &peers(), LARGEST, false).unwrap();
    assert_eq!(unpacked(&mut strict, &bodies), []);
    assert_eq!(strict.counters().gse.crc_errors, 1);
    let ignored = with(Duration::ZERO, None, TotalLength::Ignored, false);
    let mut unpackager = Unpackager::new(&ignored, &peers(), LARGEST, false).unwrap();
    assert_eq!(unpacked(&mut unpackager, &bodies), [(None, Protocol::Rohc, None, unit)]);
    assert_eq!(unpackager.counters().gse.crc_errors, 0);
}

fn divided() -> Unpackager {
    let packaging = with(Duration::ZERO, None, TotalLength::Checked, true);
    Unpackager::new(&packaging, &peers(), LARGEST, false).unwrap()
}

/// Returns what was delivered by each datagram, and the number of malformed ones.
fn delivered(unpackager: &mut Unpackager, datagrams: &[&[u8]]) -> (Vec<usize>, u64) {
    let mut came = Vec::new();
    for octets in datagrams {
        let body = BodyIn { octets, several: false, addressed: false };
        let mut units = 0;
        let _ = unpackager.receive(body, &mut |_, unit| {
            assert!(unit.octets.iter().all(|octet| *octet == unit.octets[0]));
            units += 1;
        });
        came.push(units);
    }
    (came, unpackager.counters().bad_bodies)
}

/// A receiver of DVB-S2 passes on BBFrames in datagrams of 510 octets.
#[test]
fn a_bb_frame_over_several_datagrams_is_put_together() {
    let unit = |value: u8| vec![value; 700];
    let frame = |values: &[u8]| {
        let units: Vec<_> = values.iter().map(|value| unit(*value)).collect();
        let units: Vec<_> = units.iter().map(|unit| rohc(unit)).collect();
        packed(&mut packager(&gse(), &peers(), PackagerConfig::new(3_000)), &units).remove(0).octets
    };
    let (one, two) = (frame(&[1, 2]), frame(&[3, 4, 5]));
    assert_eq!((one.len(), two.len()), (10 + 2 * 704, 10 + 3 * 704));
    let parts = |frame: &'static [u8]| frame.chunks(510).collect::<Vec<_>>();
    let (one, two) = (parts(one.leak()), parts(two.leak()));

    // Without the option the first datagram is too short, and the others have no header.
    let mut whole = Unpackager::new(&gse(), &peers(), LARGEST, false).unwrap();
    assert_eq!(delivered(&mut whole, &one), (vec![0, 0, 0], 3));

    let both = [&one[..], &two].concat();
    assert_eq!(delivered(&mut divided(), &both), (vec![0, 0, 2, 0, 0, 0, 0, 3], 0));
    // BBFrames of one datagram are processed as before, and so are those in equal parts.
    let small = packed(&mut packager(&gse(), &peers(), PackagerConfig::new(500)), &[rohc(b"1")]);
    assert_eq!(delivered(&mut divided(), &[&small[0].octets, one[0], one[1], one[2]]).0, [1, 0, 0, 2]);
    // Padding of the BBFrame after its data field belongs to no PDU.
    let padded = [one[2], &[0; 112]].concat();
    assert_eq!(
        delivered(&mut divided(), &[one[0], one[1], &padded, one[0], one[1], one[2]]).0,
        [0, 0, 2, 0, 0, 2]
    );

    // A missing datagram costs its BBFrame, and no other one.
    for missing in 0..3 {
        let mut some = both.clone();
        some.remove(missing);
        let mut unpackager = divided();
        let (units, bad) = delivered(&mut unpackager, &some);
        assert_eq!(units, [0, 0, 0, 0, 0, 0, 3], "{missing}");
        let incomplete = unpackager.counters().gse.incomplete;
        assert_eq!((bad, incomplete), if missing == 0 { (2, 0) } else { (0, 1) }, "{missing}");
    }
    // More than one: parts of two BBFrames do not have the announced length.
    let first = [&one[..1], &two[1..], &one].concat();
    assert_eq!(delivered(&mut divided(), &first), (vec![0, 0, 0, 0, 0, 0, 0, 2], 3));
    let (units, bad) = delivered(&mut divided(), &[one[0], one[1], two[1], one[0], one[1], one[2]]);
    assert_eq!((units, bad), (vec![0, 0, 0, 0, 0, 2], 1));

    // Where the carrier reports a gap, the rest is not appended to the beginning.
    let mut unpackager = divided();
    delivered(&mut unpackager, &one[..1]);
    unpackager.resynchronize();
    assert_eq!(unpackager.counters().gse.incomplete, 1);
    assert_eq!(delivered(&mut unpackager, &both[1..]), (vec![0, 0, 0, 0, 0, 0, 3], 2));
}
