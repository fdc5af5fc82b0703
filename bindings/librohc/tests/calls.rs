//! Calls as C makes them, but from Rust, so that Miri can watch what becomes of the pointers: it runs no C.
//!
//! `scripts/sanitize-c` runs these tests by Miri.

#![allow(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "every call is one of C")]

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{null_mut, without_provenance_mut};

use rohc::abi::{
    Buf, CompGeneral, CompLastPacket, DecompContext, DecompGeneral, DecompLastPacket, ERROR, OK,
    OUTPUT_TOO_SMALL, SEGMENT, SMALL_CID, Time,
};
use rohc::comp::Comp;
use rohc::comp::functions::*;
use rohc::decomp::Decomp;
use rohc::decomp::functions::*;

/// A UDP/IPv6 packet.
const PACKET: &[u8] =
    b"\x60\0\0\0\0\x11\x11\x40\xFD\0\x0E\xC0\0\0\0\0\0\0\0\0\0\0\0\x01\xFD\0\x0E\xC0\0\0\0\0\
    \0\0\0\0\0\0\0\x02\xE0\x01\x16\x33\0\x11\x23\x44\0\x11\x23\x4B\x47\x46\x96\xD6\x50";

const O_MODE: c_uint = 2;

unsafe extern "C" fn random(_: *const Comp, private: *mut c_void) -> c_int {
    let calls = private.cast::<c_int>();
    unsafe {
        *calls += 1;
        *calls
    }
}

unsafe extern "C" fn is_rtp(
    ip: *const u8,
    udp: *const u8,
    payload: *const u8,
    size: c_uint,
    _: *mut c_void,
) -> bool {
    unsafe { *ip == 0x60 && *udp == 0xE0 && payload.add(size as usize - 1).read() == 0 }
}

fn open() -> (*mut Comp, *mut Decomp) {
    let mut calls: c_int = 0;
    let comp = unsafe { rohc_comp_new2(SMALL_CID, 3, Some(random), (&raw mut calls).cast()) };
    let decomp = rohc_decomp_new2(SMALL_CID, 3, O_MODE);
    assert_eq!(calls, 5);
    for profile in [0, 1, 2, 4] {
        assert!(unsafe {
            rohc_comp_enable_profile(comp, profile) && rohc_decomp_enable_profile(decomp, profile)
        });
    }
    (comp, decomp)
}

fn close((comp, decomp): (*mut Comp, *mut Decomp)) {
    unsafe {
        rohc_comp_free(comp);
        rohc_decomp_free(decomp);
    }
}

/// A buffer with `len` octets at `offset`.
fn buf(octets: &mut [u8], offset: usize, len: usize) -> Buf {
    Buf { time: Time { sec: 0, nsec: 0 }, data: octets.as_mut_ptr(), max_len: octets.len(), offset, len }
}

/// Carries a packet from one side to the other, and feedback back. Returns the octets between them.
fn carry((comp, decomp): (*mut Comp, *mut Decomp)) -> usize {
    let (mut packet, mut rohc, mut back, mut sent, mut received) =
        (PACKET.to_vec(), [0; 300], [0; 300], [0; 99], [0; 99]);
    let (mut rohc, mut back) = (buf(&mut rohc, 40, 0), buf(&mut back, 1, 0));
    let (mut send, mut rcvd) = (buf(&mut sent, 0, 0), buf(&mut received, 9, 0));
    unsafe {
        assert_eq!(rohc_compress4(comp, buf(&mut packet, 0, PACKET.len()), &mut rohc), OK);
        let len = rohc.len;
        assert_eq!(rohc_comp_pad(comp, &mut rohc, len + 2), OK);
        assert_eq!(rohc_decompress3(decomp, rohc, &mut back, &mut rcvd, &mut send), OK);
        assert_eq!(std::slice::from_raw_parts(back.data.add(1), back.len), PACKET);
        assert!(rohc_comp_deliver_feedback2(comp, send));
        len
    }
}

#[test]
fn packets_come_back() {
    let pair = open();
    assert!(carry(pair) > 50);
    (0..5).for_each(|_| _ = carry(pair));
    assert!(carry(pair) < 20);
    unsafe {
        assert!(rohc_comp_force_contexts_reinit(pair.0) && carry(pair) > 50);
        assert!(rohc_comp_set_rtp_detection_cb(pair.0, Some(is_rtp), null_mut()));
        (0..3).for_each(|_| _ = carry(pair));
    }
    close(pair);
}

#[test]
fn requests_for_repair_are_repeated() {
    let pair = open();
    (0..6).for_each(|_| _ = carry(pair));
    let mut requests = 0;
    for sec in 1..20 {
        let (mut packet, mut rohc, mut back, mut sent) = (PACKET.to_vec(), [0; 300], [0; 300], [0; 99]);
        let (mut rohc, mut back, mut send) =
            (buf(&mut rohc, 0, 0), buf(&mut back, 0, 0), buf(&mut sent, 0, 0));
        unsafe {
            assert_eq!(rohc_compress4(pair.0, buf(&mut packet, 0, PACKET.len()), &mut rohc), OK);
            *rohc.data ^= 1;
            rohc.time = Time { sec, nsec: 0 };
            assert_ne!(rohc_decompress3(pair.1, rohc, &mut back, null_mut(), &mut send), OK);
        }
        requests += usize::from(send.len > 0);
    }
    assert!(requests > 9, "{requests} of 19 damaged packets, one a second, were reported");
    close(pair);
}

#[test]
fn structures_are_written_as_far_as_their_version_goes() {
    let pair = open();
    carry(pair);
    let (mut a, mut b) = (CompLastPacket::default(), CompGeneral::default());
    let (mut c, mut d, mut e) =
        (DecompLastPacket::default(), DecompContext::default(), DecompGeneral::default());
    unsafe {
        assert!(
            rohc_comp_get_last_packet_info2(pair.0, &mut a) && rohc_comp_get_general_info(pair.0, &mut b)
        );
        assert!(
            rohc_decomp_get_context_info(pair.1, 0, &mut d) && rohc_decomp_get_general_info(pair.1, &mut e)
        );
        for minor in 0..3 {
            // No more octets than this version has.
            let mut place = vec![0_u8; [33, 61, 93][minor]];
            place[2] = minor as u8;
            assert!(rohc_decomp_get_last_packet_info(pair.1, place.as_mut_ptr().cast()));
        }
        c.version = [0, 3];
        assert!(!rohc_decomp_get_last_packet_info(pair.1, &mut c));
    }
    assert_eq!({ a.total_last_uncomp_size }, PACKET.len() as u64);
    assert_eq!([b.packets_nr, d.packets_nr, e.packets_nr], [1; 3]);
    close(pair);
}

#[test]
fn segments_are_put_together() {
    let pair = open();
    let (mut packet, mut rohc, mut back) = (PACKET.to_vec(), [0; 20], [0; 300]);
    let (mut segment, mut back) = (buf(&mut rohc, 0, 0), buf(&mut back, 0, 0));
    unsafe {
        assert!(rohc_comp_set_mrru(pair.0, 100) && rohc_decomp_set_mrru(pair.1, 100));
        assert_eq!(rohc_compress4(pair.0, buf(&mut packet, 0, PACKET.len()), &mut segment), SEGMENT);
        loop {
            segment.len = 0;
            let status = rohc_comp_get_segment2(pair.0, &mut segment);
            assert_eq!(rohc_decompress3(pair.1, segment, &mut back, null_mut(), null_mut()), OK);
            if status == OK {
                break;
            }
            assert_eq!((status, back.len), (SEGMENT, 0));
        }
        assert_eq!(std::slice::from_raw_parts(back.data, back.len), PACKET);
    }
    close(pair);
}

#[test]
fn buffers_that_cannot_be_used_are_refused() {
    let pair = open();
    let (mut packet, mut rohc) = (PACKET.to_vec(), [0; 300]);
    let (input, out) = (buf(&mut packet, 0, PACKET.len()), buf(&mut rohc, 0, 0));
    let unfit = [
        Buf { data: null_mut(), ..input },
        Buf { max_len: 0, ..input },
        Buf { max_len: usize::MAX, ..input },
        Buf { offset: 1, ..input },
        Buf { offset: usize::MAX, ..input },
        Buf { len: 0, ..input },
        // The output lies within it.
        Buf { data: without_provenance_mut(out.data.addr() + 1), max_len: 299, ..input },
    ];
    unsafe {
        for unfit in unfit {
            assert_eq!(rohc_compress4(pair.0, unfit, &mut out.clone()), ERROR);
        }
        assert_eq!(rohc_compress4(pair.0, input, &mut Buf { len: 1, ..out }), ERROR);
        assert_eq!(rohc_compress4(pair.0, input, null_mut()), ERROR);
        assert_eq!(rohc_compress4(null_mut(), input, &mut out.clone()), ERROR);
        assert_eq!(rohc_compress4(pair.0, input, &mut Buf { max_len: 9, ..out }), OUTPUT_TOO_SMALL);
        assert_eq!(rohc_comp_pad(pair.0, &mut input.clone(), 100), ERROR);
        assert!(!rohc_comp_get_mrru(pair.0, null_mut()));
    }
    close(pair);
}

#[test]
fn outputs_must_be_apart() {
    let pair = open();
    let (mut packet, mut rohc, mut back, mut apart) = (PACKET.to_vec(), [0; 300], [0; 300], [0; 90]);
    let mut rohc = buf(&mut rohc, 0, 0);
    let (mut output, mut apart) = (buf(&mut back, 0, 0), buf(&mut apart, 0, 0));
    let mut within = Buf { data: unsafe { output.data.add(200) }, max_len: 100, ..output };
    let (output, within, apart, none) = (&raw mut output, &raw mut within, &raw mut apart, null_mut());
    unsafe {
        assert_eq!(rohc_compress4(pair.0, buf(&mut packet, 0, PACKET.len()), &mut rohc), OK);
        // With feedback in front.
        std::ptr::copy(rohc.data, rohc.data.add(2), rohc.len);
        rohc.data.copy_from_nonoverlapping(b"\xF1\x05".as_ptr(), 2);
        rohc.len += 2;
        for (received, send) in [(output, none), (none, output), (apart, apart)] {
            assert_eq!(rohc_decompress3(pair.1, rohc, output, received, send), ERROR);
        }
        assert_eq!(rohc_decompress3(pair.1, rohc, output, within, none), OUTPUT_TOO_SMALL);
        assert_eq!([(*output).len, (*within).len, (*apart).len], [0; 3]);
        assert_eq!(rohc_decompress3(pair.1, rohc, output, none, within), OK);
        assert_eq!(std::slice::from_raw_parts((*output).data, (*output).len), PACKET);
        assert!((*within).len > 0);
    }
    close(pair);
}

/// A callback that calls back: what the handles of its own call answer to it.
struct CallsBack {
    comp: *mut Comp,
    answers: [bool; 4],
    is_done: bool,
}

unsafe extern "C" fn calls_back(
    _: *const u8,
    _: *const u8,
    _: *const u8,
    _: c_uint,
    private: *mut c_void,
) -> bool {
    let this = private.cast::<CallsBack>();
    unsafe {
        let comp = (*this).comp;
        let (mut packet, mut rohc, mut mrru) = (PACKET.to_vec(), [0; 300], 0);
        let mut out = buf(&mut rohc, 0, 0);
        (*this).answers = [
            rohc_compress4(comp, buf(&mut packet, 0, PACKET.len()), &mut out) == ERROR,
            !rohc_comp_set_mrru(comp, 100),
            !rohc_comp_get_mrru(comp, &mut mrru),
            !rohc_comp_force_contexts_reinit(comp),
        ];
        // Nothing is freed.
        rohc_comp_free(comp);
        (*this).is_done = true;
    }
    false
}

#[test]
fn a_callback_that_calls_back_gets_an_error() {
    let pair = open();
    let mut seen = CallsBack { comp: pair.0, answers: [false; 4], is_done: false };
    let seen = &raw mut seen;
    unsafe {
        assert!(rohc_comp_set_rtp_detection_cb(pair.0, Some(calls_back), seen.cast()));
        // With a payload as long as the header of RTP, so that the callback is asked.
        let (mut input, mut rohc) = ([PACKET, &[0; 3]].concat(), [0; 300]);
        (input[5], input[45]) = (20, 20);
        let len = input.len();
        assert_eq!(rohc_compress4(pair.0, buf(&mut input, 0, len), &mut buf(&mut rohc, 0, 0)), OK);
        assert!((*seen).is_done);
        assert_eq!((*seen).answers, [true; 4]);
        // Behind the call everything works.
        assert!(rohc_comp_set_rtp_detection_cb(pair.0, None, null_mut()));
        assert!(rohc_comp_force_contexts_reinit(pair.0));
        carry(pair);
    }
    close(pair);
}
