//! RTP headers before TS Packets.

use thinair_wire::header::rtp::{HeaderExtension, Rtp};

use super::*;
use crate::packaging::rtp::{BadRtp, Start};

const CONFIG: PackagerConfig = PackagerConfig {
    rtp: Some(Start { ssrc: 0xCAFE_BABE, sequence_number: 0xFFFF }),
    ..PackagerConfig::new(1_328)
};

fn datagram(header: Rtp<'_>, behind: &[u8]) -> Vec<u8> {
    let mut octets = vec![0; header.len()];
    header.write(&mut octets, 0).unwrap();
    octets.extend(behind);
    octets
}

/// TS Packets of one unit.
fn packets() -> Vec<u8> {
    packed(&mut packager(&ts(), &peers(), PackagerConfig::new(1_316)), &[rohc(b"unit")]).remove(0).octets
}

fn receive(unpackager: &mut Unpackager, octets: &[u8]) -> Result<usize, UnpackError> {
    let mut units = 0;
    let body = BodyIn { octets, several: false, addressed: false };
    unpackager.receive(body, &mut |_, _| units += 1).map(|()| units)
}

fn unpackager() -> Unpackager {
    Unpackager::new(&ts(), &peers(), LARGEST, false).unwrap()
}

/// RFC 3550, section 5.1, with the payload type of RFC 3551 and the clock of RFC 2250.
#[test]
fn headers_are_those_of_the_rfc() {
    let mut packager = packager(&ts(), &peers(), CONFIG);
    let mut starts = Vec::new();
    for millis in [0, 1_000] {
        let now = Instant::from_millis(millis);
        packager.push(now, rohc(b"unit"), &mut |_| {}).unwrap();
        packager.pause(now, &mut |body| starts.push(body.octets[..13].to_vec()));
    }
    assert_eq!(starts[0], b"\x80\x21\xff\xff\0\0\0\0\xca\xfe\xba\xbe\x47");
    // 90,000 clock ticks later.
    assert_eq!(starts[1], b"\x80\x21\0\0\0\x01\x5f\x90\xca\xfe\xba\xbe\x47");
}

#[test]
fn every_part_of_a_header_is_taken_off() {
    let packets = packets();
    let plain = Rtp { payload_type: 33, ..Rtp::default() };
    let with = HeaderExtension { defined_by_profile: 0xBEDE, data: &[1; 8] };
    let headers = [
        plain,
        Rtp { csrc: &[9; 12], marker: true, sequence_number: 1, ..plain },
        Rtp { extension: Some(with), sequence_number: 2, ..plain },
        Rtp { csrc: &[9; 60], extension: Some(with), sequence_number: 3, ..plain },
    ];
    let mut unpackager = unpackager();
    for header in headers {
        assert_eq!(receive(&mut unpackager, &datagram(header, &packets)), Ok(1));
        // The next one would be a duplicate, which cannot be distinguished from an uncounted one.
        let mut next = unpackager_of(header, &packets);
        assert_eq!(next.counters().rtp.packets, 1);
        assert_eq!(
            receive(&mut next, &packets[..100]).unwrap_err(),
            UnpackError::NotTs { offset: 0, octets: 100 }
        );
        unpackager = self::unpackager();
    }
    let padded = Rtp { padding: true, ..plain };
    assert_eq!(receive(&mut unpackager, &datagram(padded, &[&packets[..], &[0, 0, 3]].concat())), Ok(1));
}

fn unpackager_of(header: Rtp<'_>, packets: &[u8]) -> Unpackager {
    let mut unpackager = unpackager();
    receive(&mut unpackager, &datagram(header, packets)).unwrap();
    unpackager
}

#[test]
fn what_is_no_header_of_ts_packets_is_told() {
    let packets = packets();
    let plain = Rtp { payload_type: 33, ..Rtp::default() };
    let refused = |octets: &[u8]| receive(&mut unpackager(), octets).unwrap_err();
    let other = datagram(Rtp { payload_type: 96, ..plain }, &packets);
    assert_eq!(refused(&other), UnpackError::Rtp(BadRtp::PayloadType(96)));
    assert_eq!(refused(&datagram(plain, b"")[..11]), UnpackError::Rtp(BadRtp::CutShort));
    let csrc = datagram(Rtp { csrc: &[9; 60], ..plain }, b"");
    assert_eq!(refused(&csrc[..71]), UnpackError::Rtp(BadRtp::CutShort));
    assert_eq!(refused(&datagram(plain, &packets[1..])), UnpackError::NotTs { offset: 12, octets: 187 });
    let padded = Rtp { padding: true, ..plain };
    assert_eq!(refused(&datagram(padded, &[1, 2, 0])), UnpackError::Rtp(BadRtp::Padding(0)));
    assert_eq!(refused(&datagram(padded, &[1, 2, 9])), UnpackError::Rtp(BadRtp::Padding(9)));
}

#[test]
fn gaps_are_counted_and_what_is_late_is_dropped() {
    let mut packager = packager(&ts(), &peers(), CONFIG);
    let bodies: Vec<_> = (0..8).map(|i| packed(&mut packager, &[rohc(&[i + 1; 30])]).remove(0)).collect();
    let mut unpackager = unpackager();
    // 3 and 4 are swapped, 5 is duplicated, 6 is lost.
    let order = [0, 1, 2, 4, 3, 5, 5, 7].map(|i: usize| bodies[i].clone());
    let came: Vec<_> = unpacked(&mut unpackager, &order).iter().map(|came| came.3[0] - 1).collect();
    assert_eq!(came, [0, 1, 2, 4, 5, 7]);
    let rtp = unpackager.counters().rtp;
    assert_eq!((rtp.packets, rtp.lost, rtp.late, rtp.sources), (8, 2, 2, 1));
    // A restart with a distant sequence number, or as another source.
    let plain = Rtp { payload_type: 33, ssrc: 0xCAFE_BABE, ..Rtp::default() };
    for (header, sources) in [
        (Rtp { sequence_number: 0x7000, ..plain }, 2),
        (Rtp { sequence_number: 0x6000, ..plain }, 3),
        (Rtp { ssrc: 1, ..plain }, 4),
    ] {
        assert_eq!(receive(&mut unpackager, &datagram(header, &packets())).map(|_| ()), Ok(()));
        assert_eq!(unpackager.counters().rtp.sources, sources);
    }
    assert_eq!(unpackager.counters().rtp.late, 2);
}
