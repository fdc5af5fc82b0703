//! Frames octet by octet, and every combination of the fields of Frame Control.

use std::vec::Vec;

use super::*;

const SHORT_A: LinkAddress = LinkAddress::Short(0x0102);
const SHORT_B: LinkAddress = LinkAddress::Short(0x0304);
const LONG_A: LinkAddress = LinkAddress::Extended([0x02, 1, 2, 3, 4, 5, 6, 7]);

fn written(frame: &WpanFrame<'_>) -> Vec<u8> {
    let mut out = [0xAA; 200];
    let end = frame.write(&mut out).unwrap();
    assert_eq!(WpanFrame::read(&out[..end]).as_ref(), Ok(frame));
    for len in 0..end {
        let short = frame.write(&mut [0; 200][..len]);
        assert_eq!(short, Err(WpanFrameWriteError::OutputTooSmall { have: len }));
    }
    out[..end].to_vec()
}

#[test]
fn a_data_frame_within_a_pan() {
    let links = Links { source: SHORT_A, destination: SHORT_B };
    let frame = WpanFrame::data(0xABCD, links, 7, b"hi");
    assert_eq!(written(&frame), b"\x61\x88\x07\xcd\xab\x04\x03\x02\x01hi");
    let frame = WpanFrame::data(0xABCD, Links { source: LONG_A, destination: BROADCAST }, 7, b"hi");
    assert_eq!(written(&frame), b"\x41\xc8\x07\xcd\xab\xff\xff\x07\x06\x05\x04\x03\x02\x01\x02hi");
}

#[test]
fn an_acknowledgement_is_three_octets() {
    assert_eq!(written(&WpanFrame::acknowledgment(0x56)), [0x02, 0x00, 0x56]);
    let pending = WpanFrame { frame_pending: true, ..WpanFrame::acknowledgment(0x56) };
    assert_eq!(written(&pending), [0x12, 0x00, 0x56]);
}

/// PAN IDs by version, destination, source and PAN ID Compression, typed off 2006, section 7.2.1.1.5, and 2015, table
/// 7-2: `d` for the destination's, `s` for the source's, `-` for an invalid frame.
#[test]
fn pan_ids_are_where_the_tables_have_them() {
    let (none, short, long) = (0_u8, 2, 3);
    let old = [
        (none, none, ["", "-"]),
        (short, none, ["d", "-"]),
        (none, long, ["s", "-"]),
        (short, short, ["ds", "d"]),
        (long, long, ["ds", "d"]),
        (long, short, ["ds", "d"]),
    ];
    let new = [
        (none, none, ["", "d"]),
        (short, none, ["d", ""]),
        (long, none, ["d", ""]),
        (none, short, ["s", ""]),
        (none, long, ["s", ""]),
        (long, long, ["d", ""]),
        (short, short, ["ds", "d"]),
        (short, long, ["ds", "d"]),
        (long, short, ["ds", "d"]),
    ];
    for (version, table) in [(0, &old[..]), (1, &old), (2, &new)] {
        for (destination, source, pans) in table {
            for (compression, pans) in pans.iter().enumerate() {
                let mut octets = Vec::from([
                    1 | (compression as u8) << 6,
                    destination << 2 | version << 4 | source << 6,
                    9,
                ]);
                let mut expected = 3;
                for (name, mode) in [('d', *destination), ('s', *source)] {
                    expected += if pans.contains(name) { 2 } else { 0 };
                    expected += [0, 0, 2, 8][usize::from(mode)];
                }
                octets.resize(expected, 0x11);
                octets.extend(b"payload");
                match WpanFrame::read(&octets) {
                    Ok(frame) => {
                        assert_eq!(frame.payload, b"payload");
                        assert_eq!(frame.destination_pan.is_some(), pans.contains('d'));
                        assert_eq!(frame.source_pan.is_some(), pans.contains('s'));
                        assert_eq!(written(&frame), octets);
                    }
                    Err(error) => {
                        assert_eq!((*pans, error), ("-", WpanFrameError::Malformed { offset: 3 }));
                    }
                }
            }
        }
    }
}

#[test]
fn the_security_header_and_the_integrity_code_are_reported() {
    let modes = [KeyIdMode::Implicit, KeyIdMode::Index, KeyIdMode::Source4, KeyIdMode::Source8];
    for (level, mic) in (0..8).zip([0, 4, 8, 16, 0, 4, 8, 16]) {
        for (key_id_mode, key) in modes.into_iter().zip([0, 1, 5, 9]) {
            let mut key_identifier = [0; 9];
            key_identifier[..key].fill(0x77);
            let frame_counter = Some(0x0403_0201);
            let is_asn_in_nonce = false;
            let security =
                AuxSecurityHeader { level, key_id_mode, frame_counter, is_asn_in_nonce, key_identifier };
            let frame = WpanFrame {
                version: FrameVersion::V2006,
                security: Some(security),
                mic: &[0x99; 16][..mic],
                ..WpanFrame::data(1, Links { source: SHORT_A, destination: SHORT_B }, 7, b"hi")
            };
            let octets = written(&frame);
            assert_eq!(octets.len(), 9 + 5 + key + 2 + mic);
            assert_eq!(octets[9..14], [level | (key_id_mode as u8) << 3, 1, 2, 3, 4]);
            assert_eq!(security.is_encrypted(), level >= 4);
            let suppressed = AuxSecurityHeader { frame_counter: None, ..security };
            let frame = WpanFrame { version: FrameVersion::V2015, security: Some(suppressed), ..frame };
            assert_eq!(written(&frame).len(), octets.len() - 4);
        }
    }
}

#[test]
fn information_elements_are_stepped_over() {
    // A CSL element of 4 octets, HT1, a payload element of group 5 with 3 octets, its termination.
    let elements = b"\x04\x0d\x01\x02\x03\x04\x00\x3f\x03\xa8abc\x00\xf8";
    let frame = WpanFrame {
        version: FrameVersion::V2015,
        sequence_number: None,
        information_elements: elements,
        ..WpanFrame::data(1, Links { source: SHORT_A, destination: SHORT_B }, 7, b"payload")
    };
    let octets = written(&frame);
    assert_eq!(octets[..2], [0x61, 0xab]);
    for len in octets.len() - 7 - elements.len() + 1..octets.len() - 7 {
        let cut = WpanFrame::read(&octets[..len]);
        assert!(!cut.is_ok_and(|frame| !frame.payload.is_empty()), "{len}");
    }
    // HT2 alone.
    let frame = WpanFrame { information_elements: b"\x80\x3f", ..frame };
    written(&frame);
}

#[test]
fn what_cannot_be_read_is_reported() {
    for (value, octet) in [(4, 0x44), (5, 0x05), (6, 0x06), (7, 0x47)] {
        assert_eq!(WpanFrame::read(&[octet, 0x88, 0]), Err(WpanFrameError::Type { value }));
    }
    assert_eq!(WpanFrame::read(&[]), Err(WpanFrameError::Malformed { offset: 0 }));
    // Frame version 3; addressing mode 1.
    assert_eq!(WpanFrame::read(&[0x41, 0xb8, 0, 0, 0]), Err(WpanFrameError::Malformed { offset: 2 }));
    assert_eq!(WpanFrame::read(&[0x41, 0x84, 0, 1, 1, 2, 2]), Err(WpanFrameError::Malformed { offset: 5 }));
    let secured = WpanFrame::read(b"\x49\x88\x07\xcd\xab\x04\x03\x02\x01\x05\0\0\0\0data");
    assert_eq!(secured, Err(WpanFrameError::Security2003));
    // An integrity code that is cut off.
    let secured = WpanFrame::read(b"\x49\x98\x07\xcd\xab\x04\x03\x02\x01\x01\0\0\0\0abc");
    assert_eq!(secured, Err(WpanFrameError::Malformed { offset: 17 }));
}

#[test]
fn what_no_frame_can_have_is_not_written() {
    let frame = WpanFrame::data(1, Links { source: SHORT_A, destination: SHORT_B }, 7, b"");
    let mut out = [0; 64];
    let without = WpanFrame { destination_pan: None, ..frame };
    assert_eq!(without.write(&mut out), Err(WpanFrameWriteError::Pan));
    let without = WpanFrame { sequence_number: None, ..frame };
    assert_eq!(without.write(&mut out), Err(WpanFrameWriteError::Version));
    let secured = WpanFrame { security: Some(AuxSecurityHeader::default()), ..frame };
    assert_eq!(secured.write(&mut out), Err(WpanFrameWriteError::Version));
    let coded = WpanFrame { mic: b"1234", ..frame };
    assert_eq!(coded.write(&mut out), Err(WpanFrameWriteError::Mic));
}
