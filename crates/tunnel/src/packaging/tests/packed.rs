//! Packed bodies, octet by octet.

use super::*;

fn config(bridged: bool, pad: u16) -> PackagerConfig {
    PackagerConfig { bridged, pad, ..PackagerConfig::new(1_400) }
}

fn bodies(config: PackagerConfig, units: &[Unit<'_>]) -> Vec<SentBody> {
    packed(&mut packager(&Packaging::Packed, &mesh(1), config), units)
}

fn received(bridged: bool, octets: &[u8], several: bool, addressed: bool) -> Result<Vec<Came>, UnpackError> {
    let mut unpackager = Unpackager::new(&Packaging::Packed, &peers(), LARGEST, bridged).unwrap();
    let mut came = Vec::new();
    let body = BodyIn { octets, several, addressed };
    unpackager.receive(body, &mut |from, unit| {
        let to = unit.to.map(SiteId::number);
        came.push((from.map(SiteId::number), unit.protocol, to, unit.octets.to_vec()));
    })?;
    Ok(came)
}

#[test]
fn one_alone_costs_nothing_and_several_have_lengths() {
    let one = bodies(config(false, 0), &[rohc(b"one")]);
    assert_eq!(one, [SentBody { octets: b"one".to_vec(), several: false, to: None, units: 1 }]);
    // M is set if the next unit has a length; 100 octets need a length of two octets.
    let long = [b'x'; 100];
    let four = [rohc(b"one"), rohc(&long), rohc(b"three"), rohc(b"last")];
    let expected = [&b"\x83one\xc0\x64"[..], &long, b"\x05threelast"].concat();
    assert_eq!(
        bodies(config(false, 0), &four),
        [SentBody { octets: expected, several: true, to: None, units: 4 }]
    );
    let two = bodies(config(false, 0), &four[2..]);
    assert_eq!(two, [SentBody { octets: b"\x05threelast".to_vec(), several: true, to: None, units: 2 }]);
}

#[test]
fn units_go_together_up_to_what_was_said() {
    let long = [b'x'; 100];
    let units = [rohc(&long), rohc(b"one"), rohc(b"two"), rohc(&long), rohc(&long)];
    let mut packager = packager(&Packaging::Packed, &mesh(1), config(false, 0));
    let mut together = |octets| {
        packager.keep_together(octets);
        packed(&mut packager, &units).iter().map(|body| body.octets.len()).collect::<Vec<_>>()
    };
    assert_eq!(together(50), [100, 7, 100, 100], "what is longer goes alone");
    assert_eq!(together(9_000), [2 + 100 + 4 + 4 + 2 + 100 + 100], "as much as there is room for");
}

/// The path may turn out to be narrower while units wait for the end of their body.
#[test]
fn a_limit_below_the_size_of_an_unfinished_body_changes_no_unit() {
    let frame = |octet: u8, octets| vec![octet; octets];
    let units = [frame(1, 100), frame(2, 14), frame(3, 90), frame(4, 60), frame(5, 99)];
    for (bridged, pad, before) in [false, true]
        .iter()
        .flat_map(|b| [0, 16].map(|p| (*b, p)))
        .flat_map(|(b, p)| (0..6).map(move |n| (b, p, n)))
    {
        let protocol = if bridged { Protocol::Bridged } else { Protocol::Rohc };
        let mut packager = packager(&Packaging::Packed, &mesh(1), config(bridged, pad));
        let mut bodies = Vec::new();
        for (octets, number) in units.iter().zip(0..) {
            if number == before {
                packager.limit(120);
            }
            let unit = Unit { protocol, ..rohc(octets) };
            packager.push(Instant::ZERO, unit, &mut |body| bodies.push(SentBody::of(body))).unwrap();
        }
        packager.limit(110);
        packager.pause(Instant::ZERO, &mut |body| bodies.push(SentBody::of(body)));
        let came =
            bodies.iter().flat_map(|body| received(bridged, &body.octets, body.several, false).unwrap());
        assert!(came.map(|came| came.3).eq(units.clone()), "{bridged} {pad} {before}");
        assert!(before > 0 || bodies.iter().all(|body| body.octets.len() <= 120), "{bridged} {pad}");
    }
    let mut packager = packager(&Packaging::Packed, &mesh(1), config(true, 0));
    packager.limit(0);
    assert!(packager.push(Instant::ZERO, rohc(&[1; 9]), &mut |_| {}).is_err());
}

#[test]
fn a_unit_for_one_site_is_alone_behind_its_number() {
    let to = Unit { to: SiteId::new(3), ..rohc(b"feedback") };
    let got = bodies(config(false, 0), &[rohc(b"one"), to, rohc(b"two")]);
    let expected = [(&b"one"[..], None), (b"\x03feedback", SiteId::new(3)), (b"two", None)];
    let expected =
        expected.map(|(octets, to)| SentBody { octets: octets.to_vec(), several: false, to, units: 1 });
    assert_eq!(got, expected);
    let came = received(false, &got[1].octets, false, true).unwrap();
    assert_eq!(came, [(None, Protocol::Rohc, Some(3), b"feedback".to_vec())]);
}

/// A unit of maximum size may be padded, and padding alone is no unit.
#[test]
fn padding_is_taken_off_again() {
    let units = [vec![1; LARGEST], vec![2; 3], vec![3; 9]];
    for count in 1..=3 {
        let config = PackagerConfig { pad: 512, ..PackagerConfig::new(9_000) };
        let units: Vec<_> = units[3 - count..].iter().rev().map(|octets| rohc(octets)).collect();
        let bodies = packed(&mut packager(&Packaging::Packed, &peers(), config), &units);
        assert_eq!(bodies[0].octets.len() % 512, 0);
        let mut unpackager = Unpackager::new(&Packaging::Packed, &peers(), LARGEST, false).unwrap();
        let came = unpacked(&mut unpackager, &bodies);
        assert!(came.iter().map(|came| &came.3[..]).eq(units.iter().map(|unit| unit.octets)));
    }
    assert_eq!(received(false, &[0xE0; 9], false, false), Ok(Vec::new()));
}

/// RFC 5795, section 5.2: padding octets precede a ROHC packet; with several units, the last one.
#[test]
fn padding_is_that_of_rohc() {
    let octets = |units: &[Unit<'_>]| bodies(config(false, 8), units).remove(0).octets;
    assert_eq!(octets(&[rohc(b"\x0112345")]), b"\xe0\xe0\x0112345");
    assert_eq!(octets(&[rohc(b"\x011234567")]), b"\x011234567");
    assert_eq!(octets(&[rohc(b"\x011"), rohc(b"\x012")]), b"\x02\x011\xe0\xe0\xe0\x012");
    let to = Unit { to: SiteId::new(3), ..rohc(b"\xf0") };
    assert_eq!(octets(&[to]), b"\x03\xe0\xe0\xe0\xe0\xe0\xe0\xf0");
    // Not beyond the maximum size of a body.
    let long = [1; 1_399];
    assert_eq!(octets(&[rohc(&long)]), [&[0xE0][..], &long].concat());
}

/// Padding of a compressor is removed, too: receivers do not know whether senders pad.
#[test]
fn padding_of_a_sender_that_does_not_pad_is_removed() {
    let bodies = bodies(config(false, 0), &[rohc(b"\xe0\xe0\x011"), rohc(b"\xe0\x012")]);
    assert_eq!(bodies[0].octets, b"\x04\xe0\xe0\x011\xe0\x012");
    // Only before the last unit of a body is it padding of the body.
    let came = received(false, &bodies[0].octets, true, false).unwrap();
    let came: Vec<_> = came.iter().map(|came| &came.3[..]).collect();
    assert_eq!(came, [&b"\xe0\xe0\x011"[..], b"\x012"]);
}

#[test]
fn frames_are_told_from_rohc_packets_and_from_padding() {
    let frame = |octets| Unit { protocol: Protocol::Bridged, ..rohc(octets) };
    let feedback = rohc(b"\xf4\0\0\0");
    let ethernet = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x22\xf1\xfd";
    let got = bodies(config(true, 0), &[feedback]);
    assert_eq!(got[0].octets, b"\0\0\0\0\0\0\0\0\0\0\0\0\x22\xf1\xf4\0\0\0");
    assert_eq!(received(true, &got[0].octets, false, false).unwrap()[0].1, Protocol::Rohc);
    let padded = bodies(config(true, 20), &[frame(ethernet)]);
    let expected = [&b"\x0f"[..], ethernet, &[0; 4]].concat();
    assert_eq!(padded, [SentBody { octets: expected, several: true, to: None, units: 1 }]);
    let came = received(true, &padded[0].octets, true, false).unwrap();
    assert_eq!(came, [(None, Protocol::Bridged, None, ethernet.to_vec())]);
    // A body with a multiple of octets is not padded.
    assert_eq!(bodies(config(true, 15), &[frame(ethernet)])[0].octets, ethernet);

    let mut packager = packager(&Packaging::Packed, &peers(), config(true, 0));
    let mut refused = |unit| packager.push(Instant::ZERO, unit, &mut |_| {}).unwrap_err();
    assert_eq!(refused(frame(&ethernet[..13])), PushError::NotAFrame { octets: 13 });
    assert_eq!(refused(frame(&[0; 60])), PushError::NotAFrame { octets: 60 });
    assert_eq!(refused(rohc(b"")), PushError::Empty);
    assert_eq!(refused(rohc(&[1; 1_390])), PushError::TooLong { octets: 1_390, most: 1_385 });
    let ipv4 = Unit { protocol: Protocol::Ipv4, ..rohc(b"E") };
    assert_eq!(refused(ipv4), PushError::NotTold(Protocol::Ipv4));
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_nothing_is_delivered() {
    use UnpackError::{BadLength, Ends, NoSite, NotAFrame, TooLong, TooShort};
    let cases: [(&[u8], bool, bool, UnpackError); 12] = [
        (b"", false, false, Ends { offset: 0 }),
        (b"", true, false, BadLength { offset: 0 }),
        (b"", false, true, Ends { offset: 0 }),
        (b"\x03", false, true, Ends { offset: 1 }),
        (b"\0one", false, true, NoSite),
        (b"\x03one", true, false, Ends { offset: 4 }),
        (b"\x04one", true, false, TooShort { offset: 0, length: 4, left: 3 }),
        (b"\x83one\x09two", true, false, TooShort { offset: 4, length: 9, left: 3 }),
        (b"\x83one\0two", true, false, BadLength { offset: 4 }),
        (b"\x83one\x40\x3ftwo", true, false, BadLength { offset: 4 }),
        (b"\x83one\x40", true, false, BadLength { offset: 4 }),
        (&[1; LARGEST + 1], false, false, TooLong { offset: 0, octets: LARGEST + 1, most: LARGEST }),
    ];
    for (octets, several, addressed, error) in cases {
        assert_eq!(received(false, octets, several, addressed), Err(error), "{octets:?}");
    }
    let error = NotAFrame { offset: 0, octets: 13 };
    assert_eq!(received(true, &[1; 13], false, false), Err(error));
    assert_eq!(received(true, &[0; 60], false, false), Err(NotAFrame { offset: 0, octets: 60 }));
}

/// Only the last unit of a body may exceed the maximum of a length field.
#[test]
fn a_body_of_many_octets_is_told_apart() {
    let config = PackagerConfig::new(60_000);
    let mut packager = packager(&Packaging::Packed, &peers(), config);
    let lengths = [63, 64, 16_383, 16_384, 20_000, 5, 30_000];
    let units: Vec<Vec<u8>> = lengths.iter().map(|len| vec![*len as u8 | 1; *len]).collect();
    let units: Vec<_> = units.iter().map(|octets| rohc(octets)).collect();
    let bodies = packed(&mut packager, &units);
    let octets: Vec<_> = bodies.iter().map(|body| (body.octets.len(), body.several)).collect();
    assert_eq!(octets, [(1 + 63 + 2 + 64 + 2 + 16_383 + 16_384, true), (20_000, false), (30_006, true)]);
    let mut unpackager = Unpackager::new(&Packaging::Packed, &peers(), 60_000, false).unwrap();
    let came = unpacked(&mut unpackager, &bodies);
    assert!(came.iter().map(|came| &came.3[..]).eq(units.iter().map(|unit| unit.octets)));
}
