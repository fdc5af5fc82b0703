//! Calls as C makes them, but from Rust, so that Miri can watch what becomes of the pointers: it runs no C.
//!
//! `scripts/sanitize-c` runs these tests by Miri.

#![allow(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "every call is one of C")]
#![allow(clippy::unwrap_used)]

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use thinair_c::Handle;
use thinair_c::abi::{COMPRESSOR, Config, DECOMPRESSOR, Error, NOT_COUNTED, Packet};
use thinair_c::functions::*;

/// A UDP/IPv6 packet.
const PACKET: &[u8] =
    b"\x60\0\0\0\0\x11\x11\x40\xFD\0\x0E\xC0\0\0\0\0\0\0\0\0\0\0\0\x01\xFD\0\x0E\xC0\0\0\0\0\
    \0\0\0\0\0\0\0\x02\xE0\x01\x16\x33\0\x11\x23\x44\0\x11\x23\x4B\x47\x46\x96\xD6\x50";

/// Octets that suffice for each result.
const ROOM: usize = 400;

/// The value that `fill` writes, if it succeeds.
fn filled<T>(fill: impl FnOnce(*mut T) -> Error) -> Result<T, Error> {
    let mut place = MaybeUninit::uninit();
    match fill(place.as_mut_ptr()) {
        Error::OK => Ok(unsafe { place.assume_init() }),
        error => Err(error),
    }
}

fn config() -> Config {
    let config = filled(|place| unsafe { thinair_rohc_config_init(place) }).unwrap();
    Config { mode: 2, max_cid: 3, ..config }
}

fn create(config: &Config, memory: *mut c_void, size: usize) -> *mut Handle {
    filled(|handle| unsafe { thinair_rohc_create(config, memory, size, handle) }).unwrap()
}

fn compress(handle: *mut Handle, packet: &[u8]) -> Vec<u8> {
    let mut out = vec![0; ROOM];
    let (packet_at, out_at) = (packet.as_ptr(), out.as_mut_ptr());
    let len =
        filled(|len| unsafe { thinair_rohc_compress(handle, 0, packet_at, packet.len(), out_at, ROOM, len) });
    out.truncate(len.unwrap());
    out
}

fn decompress(handle: *mut Handle, rohc: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = vec![0; ROOM];
    let (rohc_at, out_at) = (rohc.as_ptr(), out.as_mut_ptr());
    let len = filled(|len| unsafe {
        thinair_rohc_decompress(handle, 0, NOT_COUNTED, rohc_at, rohc.len(), out_at, ROOM, len)
    });
    out.truncate(len?);
    Ok(out)
}

/// Carries a packet from one handle to another, and feedback back. Returns the octets between them.
fn carry(from: *mut Handle, to: *mut Handle, packet: &[u8]) -> usize {
    let rohc = compress(from, packet);
    assert_eq!(decompress(to, &rohc).unwrap(), packet);
    let mut element = [0; 32];
    loop {
        let len = unsafe { thinair_rohc_poll_feedback(to, element.as_mut_ptr(), element.len()) };
        if len == 0 {
            return rohc.len();
        }
        assert_eq!(unsafe { thinair_rohc_give_feedback(from, 0, element.as_ptr(), len) }, Error::OK);
    }
}

#[test]
fn a_handle_lives_in_lent_memory_at_any_address() {
    let config = config();
    let size = unsafe { thinair_rohc_size(&config) };
    let mut memory = vec![0; size + 16];
    for offset in [0, 1, 16] {
        let lent = create(&config, memory[offset..].as_mut_ptr().cast(), size);
        let allocated = create(&config, null_mut(), 0);
        for _ in 0..2 {
            for (from, to) in [(lent, allocated), (allocated, lent)] {
                assert!(carry(from, to, PACKET) > 50);
                (0..3).for_each(|_| _ = carry(from, to, PACKET));
                assert_eq!(unsafe { thinair_rohc_keep(from) }, Error::OK);
                assert!(carry(from, to, PACKET) < 20);
                carry(from, to, b"no IP packet");
            }
            let statistics = filled(|place| unsafe { thinair_rohc_get_statistics(lent, place) }).unwrap();
            assert_eq!((statistics.compress_errors, statistics.decompress_errors), (0, 0));
            for side in [COMPRESSOR, DECOMPRESSOR] {
                let context = filled(|place| unsafe { thinair_rohc_get_context(lent, side, 0, place) });
                assert_eq!(context.unwrap().mode, 2);
            }
            for handle in [lent, allocated] {
                assert_eq!(unsafe { thinair_rohc_reset(handle) }, Error::OK);
            }
        }
        unsafe {
            thinair_rohc_destroy(lent);
            thinair_rohc_destroy(allocated);
        }
    }
}

#[test]
fn packets_of_a_batch_are_apart() {
    let (from, to) = (create(&config(), null_mut(), 0), create(&config(), null_mut(), 0));
    let (mut rohc, mut back) = ([[0; ROOM]; 3], [[0; ROOM]; 3]);
    let batch = |outputs: &mut [[u8; ROOM]; 3], inputs: [&[u8]; 3]| {
        let mut outputs = outputs.iter_mut();
        inputs.map(|input| Packet {
            input: input.as_ptr(),
            input_len: input.len(),
            output: outputs.next().unwrap().as_mut_ptr(),
            output_size: ROOM,
            output_len: 0,
            lost: 0,
            error: -1,
            cid: 0,
            profile: 0,
            header_in: 0,
            header_out: 0,
        })
    };
    let mut packets = batch(&mut rohc, [PACKET, b"no IP packet", PACKET]);
    packets[1].input = null();
    assert_eq!(unsafe { thinair_rohc_compress_batch(from, 0, packets.as_mut_ptr(), 3) }, 2);
    assert_eq!(packets.map(|packet| packet.error), [0, Error::ARGUMENT.0, 0]);
    let [a, _, c] = packets.map(|packet| packet.output_len);
    let mut packets = batch(&mut back, [&rohc[0][..a], b"\xE3", &rohc[2][..c]]);
    assert_eq!(unsafe { thinair_rohc_decompress_batch(to, 0, packets.as_mut_ptr(), 3) }, 2);
    assert_eq!(&back[2][..packets[2].output_len], PACKET);
    unsafe {
        thinair_rohc_destroy(from);
        thinair_rohc_destroy(to);
    }
}

#[test]
fn feedback_in_front_is_a_part_of_the_packet() {
    let packet = b"\xE0\xF1\x05\xFD";
    let mut len = 9;
    let elements = unsafe { thinair_rohc_feedback_in_front(packet.as_ptr(), packet.len(), &mut len) };
    assert_eq!(unsafe { std::slice::from_raw_parts(elements, len) }, b"\xF1\x05");
}

#[test]
fn pointers_that_cannot_be_used_are_refused() {
    let handle = create(&config(), null_mut(), 0);
    let mut octets = [0_u64; 40];
    let (octets, mut len) = (octets.as_mut_ptr().cast::<u8>(), 7);
    unsafe {
        let odd = octets.add(1);
        assert_eq!(thinair_rohc_config_init(odd.cast()), Error::ARGUMENT);
        assert_eq!(thinair_rohc_reset(odd.cast()), Error::ARGUMENT);
        assert_eq!(thinair_rohc_compress_batch(handle, 0, odd.cast(), 1), 0);
        assert_eq!(thinair_rohc_get_statistics(handle, odd.cast()), Error::ARGUMENT);
        let room = |input: *const u8, output: *mut u8, size: usize, len: *mut usize| {
            thinair_rohc_compress(handle, 0, input, 50, output, size, len)
        };
        assert_eq!(room(octets, odd, 50, &mut len), Error::OVERLAP);
        assert_eq!((len, room(octets, odd.add(50), usize::MAX, &mut len)), (0, Error::ARGUMENT));
        assert_eq!(room(null(), odd.add(50), 50, &mut len), Error::ARGUMENT);
        assert_eq!(room(octets, odd.add(50), 50, null_mut()), Error::ARGUMENT);
        assert_eq!(room(octets, odd.add(50), 9, &mut len), Error::OUTPUT_TOO_SMALL);
        assert!(thinair_rohc_feedback_in_front(null(), 9, &mut len).is_null());
        thinair_rohc_destroy(handle);
        thinair_rohc_destroy(null_mut());
    }
    let too_small =
        filled::<*mut Handle>(|handle| unsafe { thinair_rohc_create(&config(), octets.cast(), 40, handle) });
    assert_eq!(too_small.unwrap_err(), Error::MEMORY);
}
