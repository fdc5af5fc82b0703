//! Instructions of ten requests of 9 octets that a client protects by OSCORE and a server unprotects, beside those of AES-CCM alone.
//!
//! `cargo bench -p thinair-coap --features oscore --bench oscore` has valgrind count the instructions. `protect` and `unprotect` prepare
//! the key of each message: a context has 400 octets at most, and a prepared key alone has more. `encrypt` and `decrypt` are AES-CCM with
//! a prepared key over the same octets. It needs valgrind and `gungraun-runner` in the version of the `gungraun` crate; `make bench`
//! installs both.
//!
//! A message takes about 1,000 instructions more than AES-CCM in each step: 220 prepare the key and overwrite it, 120 allocate the result.

// `main!` and the attributes of gungraun write modules and functions without documentation.
#![allow(missing_docs, unreachable_pub)]

use std::hint::black_box;

use aes::Aes128Enc;
use callgrind::instructions_alone;
use ccm::Ccm;
use ccm::aead::consts::{U8, U13};
use ccm::aead::{AeadInOut, KeyInit, Tag};
use gungraun::{library_benchmark, library_benchmark_group, main};
use thinair_coap::Request;
use thinair_coap::oscore::{Context, ContextParameters, Protected};

#[path = "../../rohc/benches/common/callgrind.rs"]
mod callgrind;

const MESSAGES: usize = 10;

type Aead = Ccm<Aes128Enc, U8, U13>;

/// Code, Uri-Path `time`, payload marker, payload.
const PLAINTEXT: [u8; 9] = *b"\x03\xb4time\xffxx";

/// `Enc_structure` of a kid and a Partial IV of one octet each.
const AAD: [u8; 21] = *b"\x83\x68Encrypt0\x40\x49\x85\x01\x81\x0a\x41c\x41\x01\x40";

struct Ends {
    client: Context,
    server: Context,
    request: Request<'static>,
    protected: Vec<Protected>,
}

impl Ends {
    /// Both ends after a first request. They are leaked, so that the measurement does not free them.
    fn ready() -> &'static mut Self {
        let context = |sender_id, recipient_id| {
            let master_secret = b"a secret of both";
            let parameters = ContextParameters {
                master_secret,
                master_salt: b"",
                id_context: None,
                sender_id,
                recipient_id,
            };
            Context::new(&parameters, 0, true, |_| Some(u64::MAX)).expect("these are allowed")
        };
        let request = Request::put("/time", &b"xx"[..]);
        let protected = Vec::with_capacity(MESSAGES);
        let mut ends = Self { client: context(b"c", b"s"), server: context(b"s", b"c"), request, protected };
        ends.protect(1);
        ends.unprotect();
        ends.protected.clear();
        Box::leak(Box::new(ends))
    }

    fn with_requests() -> &'static mut Self {
        let ends = Self::ready();
        ends.protect(MESSAGES);
        ends
    }

    fn protect(&mut self, messages: usize) {
        let Self { client, request, protected, .. } = self;
        let options = request.options.as_options();
        protected.extend((0..messages).map(|_| {
            let done = client.protect_request(request.method, &options, black_box(&request.payload));
            done.expect("there are numbers").0
        }));
    }

    fn unprotect(&mut self) {
        for request in &self.protected {
            let options = request.options.as_options();
            black_box(
                self.server.unprotect_request(&options, black_box(&request.payload)).expect("it is sound"),
            );
        }
    }
}

#[library_benchmark]
#[bench::messages(Ends::ready())]
fn protect(ends: &'static mut Ends) {
    ends.protect(MESSAGES);
}

#[library_benchmark]
#[bench::messages(Ends::with_requests())]
fn unprotect(ends: &'static mut Ends) {
    ends.unprotect();
}

fn prepared() -> &'static Aead {
    Box::leak(Box::new(Aead::new(&(*b"a key of 16 octs").into())))
}

fn encrypted() -> (&'static Aead, [u8; 9], Tag<Aead>) {
    let (cipher, mut octets) = (prepared(), PLAINTEXT);
    let tag = cipher.encrypt_inout_detached(&[7; 13].into(), &AAD, octets.as_mut_slice().into());
    (cipher, octets, tag.expect("it is short"))
}

#[library_benchmark]
#[bench::messages(prepared())]
fn encrypt(cipher: &'static Aead) {
    for _ in 0..MESSAGES {
        let mut octets = black_box(PLAINTEXT);
        let tag = cipher.encrypt_inout_detached(&[7; 13].into(), &AAD, octets.as_mut_slice().into());
        black_box((octets, tag.expect("it is short")));
    }
}

#[library_benchmark]
#[bench::messages(encrypted())]
fn decrypt((cipher, octets, tag): (&'static Aead, [u8; 9], Tag<Aead>)) {
    for _ in 0..MESSAGES {
        let mut octets = black_box(octets);
        let sound = cipher.decrypt_inout_detached(&[7; 13].into(), &AAD, octets.as_mut_slice().into(), &tag);
        sound.expect("it is sound");
        black_box(octets);
    }
}

library_benchmark_group!(name = ten_messages, benchmarks = [protect, unprotect, encrypt, decrypt]);

main!(config = instructions_alone(), library_benchmark_groups = ten_messages);
