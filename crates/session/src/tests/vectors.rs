//! Handshakes and datagrams on record: `tests/vectors/tunnel.json`, which a second implementation checks
//! (`tests/workspace/tests/tunnel_vectors.rs`). `THINAIR_BLESS=1` writes the file anew.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::handshake::{EndIdentity, Initiation, OpenedRequest, ProofKey, SharedSecrets};
use crate::header::{Index, Whose};
use crate::{BodyFlags, Key, PublicKeys, Suite};

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}

fn secret(octet: u8) -> [u8; 32] {
    std::array::from_fn(|i| octet.wrapping_mul(17).wrapping_add(i as u8 * 7))
}

/// Random octets that are known.
fn known(octet: u8) -> impl FnMut(&mut [u8]) + Send {
    move |octets: &mut [u8]| octets.copy_from_slice(&secret(octet)[..octets.len()])
}

fn end(suite: Suite, octet: u8) -> EndIdentity {
    EndIdentity {
        suite: suite.number(),
        instance: [octet; 8],
        digest: *b"channels",
        offers_aes: false,
        asks: false,
        takes_long: false,
    }
}

const INDICES: [Index; 2] = [Index::Short(0x7b), Index::Short(0xe4)];
const NUMBER: u32 = 5;
const EPHEMERAL: [u8; 2] = [1, 2];

/// Datagrams of both directions, the first of each with the whole counter.
fn datagrams(suite: Suite, ends: &[SharedSecrets; 2]) -> Value {
    let mut all = Vec::new();
    for (from, shared) in ends.iter().enumerate() {
        let name = ["initiator", "responder"][from];
        let (mut sealer, _) = shared.directions(suite, from == 0);
        sealer.send_first_whole();
        let (_, mut opener) = ends[1 - from].directions(suite, from == 1);
        for body in [&b"the first"[..], b"", b"\x45 and so on, a packet with its header compressed"] {
            let flags = BodyFlags { several: body.is_empty(), addressed: false };
            let mut out = Vec::new();
            let index = Whose::Index(INDICES[1 - from]);
            sealer.seal(index, flags, body, &mut out).expect("a counter");
            all.push(json!({ "from": name, "body": hex(body), "datagram": hex(&out) }));
            let (header, length) = crate::header::ClearHeader::read(&out, true).expect("a header");
            let plain = opener.open(&header, length, &mut out).expect("its own");
            assert_eq!(&out[plain.body], body);
        }
    }
    all.into()
}

fn public(suite: Suite, psk: Option<u8>) -> Value {
    let [private, other] = [3, 4].map(|octet| Key::new(secret(octet)));
    let psk = psk.map(|octet| Key::new(secret(octet)));
    let ours = PublicKeys::new(private.clone(), other.public(), psk.clone()).expect("two ends");
    let theirs = PublicKeys::new(other.clone(), private.public(), psk.clone()).expect("two ends");
    let (mut request, mut answer) = (Vec::new(), Vec::new());
    let proof = ProofKey::of(&other.public().gate());
    let mut initiation = Initiation::start_public(
        (&ours, &proof),
        INDICES[0],
        &end(suite, 0x11),
        NUMBER,
        &mut known(EPHEMERAL[0]),
        &mut request,
    );
    let opened = OpenedRequest::open_public(&other, &request, &mut known(EPHEMERAL[1]));
    let (initiator, mut opened) = opened.expect("its own");
    assert_eq!(initiator, private.public());
    opened.set_psk(&theirs);
    let there = opened.answer(&end(suite, 0x22), INDICES[0], INDICES[1], &mut answer).expect("a point");
    let (_, _, here) = initiation.finish(&answer).expect("its own");
    json!({
        "pattern": "Noise_IKpsk2_25519_ChaChaPoly_SHA256",
        "suite": suite.number(),
        "initiator_private": hex(private.octets()),
        "responder_private": hex(other.octets()),
        "psk": hex(theirs.psk().octets()),
        "initiator_ephemeral": hex(&secret(EPHEMERAL[0])),
        "responder_ephemeral": hex(&secret(EPHEMERAL[1])),
        "request": hex(&request),
        "answer": hex(&answer),
        "datagrams": datagrams(suite, &[here, there]),
    })
}

fn shared(suite: Suite) -> Value {
    let key = Key::new(secret(9));
    let (mut request, mut answer) = (Vec::new(), Vec::new());
    let mut initiation = Initiation::start(
        (&key, &ProofKey::of(&key)),
        INDICES[0],
        &end(suite, 0x11),
        NUMBER,
        &mut known(EPHEMERAL[0]),
        &mut request,
    );
    let opened = OpenedRequest::open(&key, &request, &mut known(EPHEMERAL[1])).expect("its own");
    let there = opened.answer(&end(suite, 0x22), INDICES[0], INDICES[1], &mut answer).expect("a point");
    let (_, _, here) = initiation.finish(&answer).expect("its own");
    json!({
        "pattern": "Noise_NNpsk0_25519_ChaChaPoly_SHA256",
        "suite": suite.number(),
        "psk": hex(key.octets()),
        "initiator_ephemeral": hex(&secret(EPHEMERAL[0])),
        "responder_ephemeral": hex(&secret(EPHEMERAL[1])),
        "request": hex(&request),
        "answer": hex(&answer),
        "datagrams": datagrams(suite, &[here, there]),
    })
}

#[test]
fn handshakes_and_datagrams_are_those_on_record() {
    let suites = [Suite::ChaCha20Poly1305, Suite::AesGcm, Suite::AesCcm8];
    let all: Vec<_> = suites
        .into_iter()
        .flat_map(|suite| [shared(suite), public(suite, None), public(suite, Some(9))])
        .collect();
    let text = serde_json::to_string_pretty(&all).expect("JSON") + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/tunnel.json");
    if std::env::var_os("THINAIR_BLESS").is_some() {
        std::fs::write(&file, &text).expect("writable");
    }
    let recorded = std::fs::read_to_string(&file).expect("tests/vectors/tunnel.json");
    assert!(text == recorded, "handshakes and datagrams have changed: other versions do not understand them");
}
