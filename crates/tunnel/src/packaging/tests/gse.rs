//! BBFrames of GSE Packets.

use thinair_ule::gse::{BadBbHeader, BbHeader};

use super::*;

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
    let packaging = Packaging::Gse { flush: Duration::from_millis(5), npa: None };
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
    let packaging = |own| Packaging::Gse { flush: Duration::ZERO, npa: npa(own) };
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
