#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use thinair_coap::oscore::{Established, KeyExchange as _};
use thinair_coap::{Code, Config, Endpoint, OptionList, Options, Received, Response};
use thinair_wire::time::Instant;

use super::*;

const NOW: Instant = Instant::from_millis(5);

/// Folders of a client and a server with the credentials of each other, removed after the test.
struct Ends {
    folder: tempfile::TempDir,
    client: Identity,
    server: Identity,
}

impl Ends {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (client, server) = (folder.path().join("phone"), folder.path().join("sensor"));
        pair(&client, &server).unwrap();
        let [client, server] = [client, server].map(|end| Identity::read(&end.join("own.key")).unwrap());
        Self { folder, client, server }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn endpoint() -> Endpoint<u8> {
    Endpoint::new(Config::default(), || 7)
}

/// Sends a payload to the resource of a Responder.
fn post(
    responder: &Responder,
    endpoint: &mut Endpoint<u8>,
    now: Instant,
    payload: &[u8],
) -> Response<'static> {
    let request = Received { code: Code::POST, options: Options::default(), payload: payload.into() };
    responder.handle(now, endpoint, &request)
}

/// Message 3 as the client sends it with its first request, the connection identifier of the server, and the ciphertext.
fn first_request(context: &mut Context) -> (Vec<u8>, Vec<u8>, OptionList, Vec<u8>) {
    let (request, _) = context.protect_request(Code::GET, &Options::default(), b"first").unwrap();
    let len = 1 + usize::from(request.payload[0] & 0x1F);
    let (message_3, ciphertext) = request.payload.split_at(len);
    (message_3.to_vec(), context.sender_id().to_vec(), request.options, ciphertext.to_vec())
}

/// True if an error message says so.
fn refuses(response: &Response<'_>, why: &str) -> bool {
    response.code == thinair_coap::code::BAD_REQUEST
        && refusal_of(&response.payload).is_some_and(|refusal| refusal.to_string().contains(why))
}

#[test]
fn both_ends_agree_with_message_3_in_the_first_request() {
    let ends = Ends::new();
    let (mut responder, mut endpoint) = (Responder::new(ends.server, 3), endpoint());
    let (initiator, message_1) = Initiator::new(0x17);
    assert_eq!(message_1.len(), 1 + 37);
    let message_2 = post(&responder, &mut endpoint, NOW, &message_1);
    assert_eq!((message_2.code, message_2.payload.len()), (Code::CHANGED, 45));
    let (mut client, peer) = initiator.complete(&message_2.payload, &ends.client).unwrap();
    assert_eq!((&*peer, client.recipient_id()), ("sensor", &[0x17][..]));
    let (message_3, id, options, ciphertext) = first_request(&mut client);
    assert_eq!((message_3.len(), id.len()), (19, 1));
    let Established { context: mut server, replaced } = responder.complete(NOW, &id, &message_3).unwrap();
    assert_eq!((server.owner(), server.sender_id(), replaced), (3, &[0x17][..], None));
    let (request, _) = server.unprotect_request(&options.as_options(), &ciphertext).unwrap();
    assert_eq!(request.payload(), b"first");
    // An exchange is completed once.
    assert!(refuses(&responder.complete(NOW, &id, &message_3).unwrap_err(), "no such exchange"));
}

#[test]
fn message_3_by_itself_is_answered_with_message_4() {
    let ends = Ends::new();
    let (responder, mut endpoint) = (Responder::new(ends.server, 0), endpoint());
    let (initiator, message_1) = Initiator::new(0);
    let message_2 = post(&responder, &mut endpoint, NOW, &message_1);
    let (mut client, _) = initiator.complete(&message_2.payload, &ends.client).unwrap();
    let (message_3, id, ..) = first_request(&mut client);
    let message_4 = post(&responder, &mut endpoint, NOW, &[&id[..], &message_3].concat());
    assert_eq!((message_4.code, message_4.payload.len()), (Code::CHANGED, 9));
    assert!(endpoint.context_with(&id).is_some() && responder.exchanges() == 0);
}

#[test]
fn a_peer_without_the_right_key_or_credential_is_refused_with_a_reason() {
    let (ends, others) = (Ends::new(), Ends::new());
    let (responder, mut endpoint) = (Responder::new(ends.server.clone(), 0), endpoint());
    let mut ask = |identity: &Identity| {
        let (initiator, message_1) = Initiator::new(1);
        let message_2 = post(&responder, &mut endpoint, NOW, &message_1);
        let (mut client, _) = initiator.complete(&message_2.payload, identity)?;
        let (message_3, id, ..) = first_request(&mut client);
        Ok::<_, ExchangeError>(post(&responder, &mut endpoint, NOW, &[&id[..], &message_3].concat()))
    };
    // The client has another credential of the server, with its kid or with another one.
    let mut wrong = ends.client.clone();
    let kid = wrong.peers[0].credential.kid().to_vec();
    wrong.peers[0].credential = PrivateKey::random().credential(&kid, "sensor").unwrap();
    assert_eq!(ask(&wrong).unwrap_err(), ExchangeError::NotAuthentic("sensor".to_owned()));
    wrong.peers[0].credential = PrivateKey::random().credential(b"other", "sensor").unwrap();
    let named: String = kid.iter().map(|octet| format!("{octet:02x}")).collect();
    assert_eq!(ask(&wrong).unwrap_err(), ExchangeError::UnknownCredential(named));
    // The server does not have the credential of the client, or another one with its kid.
    let stranger = Identity { peers: ends.client.peers.clone(), ..others.client };
    let own = PrivateKey::random();
    let unknown =
        Identity { credential: own.credential(b"new", "").unwrap(), key: own.clone(), ..stranger.clone() };
    assert!(refuses(&ask(&unknown).unwrap(), "does not have the credential"));
    let kid = ends.client.credential.kid();
    let impostor = Identity { credential: own.credential(kid, "phone").unwrap(), key: own, ..stranger };
    assert!(refuses(&ask(&impostor).unwrap(), "not authentic"));
    assert!(ask(&ends.client).unwrap().code == Code::CHANGED);
}

#[test]
fn other_methods_suites_and_points_are_refused() {
    let ends = Ends::new();
    let (responder, mut endpoint) = (Responder::new(ends.server, 0), endpoint());
    let (_, good) = Initiator::new(1);
    let mut ask = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut message_1 = good.clone();
        change(&mut message_1);
        post(&responder, &mut endpoint, NOW, &message_1)
    };
    assert!(refuses(&ask(&|octets| octets[1] = 0), "method 3 only"));
    assert!(refuses(&ask(&|octets| octets[2] = 0), "cipher suite 2"));
    // [2, 3]: suite 3 is selected; [3, 2]: suite 2.
    assert!(refuses(&ask(&|octets| drop(octets.splice(2..3, [0x82, 2, 3]))), "cipher suite 2"));
    assert_eq!(ask(&|octets| drop(octets.splice(2..3, [0x82, 3, 2]))).code, Code::CHANGED);
    for head in [[0x80, 0x98], [0x98, 0x00], [0x9F, 0x02]] {
        assert!(refuses(&ask(&|octets| drop(octets.splice(2..3, head))), "malformed"));
    }
    // No point has this x-coordinate.
    assert!(refuses(&ask(&|octets| octets[5..37].fill(0xFF)), "malformed"));
    // Critical external authorization data.
    assert!(refuses(&ask(&|octets| octets.push(0x20)), "malformed"));
    assert_eq!(ask(&|octets| octets.push(0x01)).code, Code::CHANGED);
}

#[test]
fn exchanges_and_contexts_are_bounded() {
    let ends = Ends::new();
    let (responder, mut endpoint) = (Responder::new(ends.server, 0), endpoint());
    let begin = |endpoint: &mut Endpoint<u8>, now| {
        let (initiator, message_1) = Initiator::new(1);
        (initiator, post(&responder, endpoint, now, &message_1))
    };
    let (first, answer) = begin(&mut endpoint, NOW);
    for _ in 0..MAX_EXCHANGES {
        begin(&mut endpoint, NOW + Duration::from_secs(1));
    }
    assert_eq!(responder.exchanges(), MAX_EXCHANGES);
    let complete = |endpoint: &mut Endpoint<u8>, now, initiator: Initiator, answer: Response<'_>| {
        let (mut client, _) = initiator.complete(&answer.payload, &ends.client).unwrap();
        let (message_3, id, ..) = first_request(&mut client);
        (post(&responder, endpoint, now, &[&id[..], &message_3].concat()), id)
    };
    assert!(refuses(&complete(&mut endpoint, NOW, first, answer).0, "no such exchange"));
    // They end by themselves.
    let late = NOW + Duration::from_secs(200);
    let (initiator, answer) = begin(&mut endpoint, late);
    assert_eq!(responder.exchanges(), 1);
    let later = late + Duration::from_secs(93);
    assert!(refuses(&complete(&mut endpoint, later, initiator, answer).0, "no such exchange"));
    let mut ids = Vec::new();
    for _ in 0..3 * MAX_CONTEXTS {
        let (initiator, answer) = begin(&mut endpoint, late);
        let (answer, id) = complete(&mut endpoint, late, initiator, answer);
        assert_eq!(answer.code, Code::CHANGED);
        ids.push(id);
        ids.dedup();
        let kept = ids.iter().rev().take(MAX_CONTEXTS).filter(|id| endpoint.context_with(id).is_some());
        assert_eq!(kept.count(), ids.len().min(MAX_CONTEXTS));
    }
}

#[test]
fn files_are_those_of_others_and_are_checked() {
    let ends = Ends::new();
    let (key, own) = (ends.path("phone/own.key"), ends.path("phone/own.ccs"));
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let error = |path: &Path| Identity::read(path).unwrap_err().to_string();
    // The form that holds a credential elsewhere: {14: ...}.
    let bare = fs::read(ends.path("phone/sensor.ccs")).unwrap();
    fs::write(ends.path("phone/sensor.ccs"), [&b"\xa1\x0e"[..], &bare].concat()).unwrap();
    assert_eq!(Identity::read(&key).unwrap().peers[0].credential.encode(), bare);
    fs::write(ends.path("phone/twin.ccs"), &bare).unwrap();
    assert!(error(&key).contains("same kid"));
    fs::write(ends.path("phone/twin.ccs"), fs::read(&own).unwrap()).unwrap();
    assert!(error(&key).contains("not of a peer"));
    fs::write(ends.path("phone/twin.ccs"), &bare[..40]).unwrap();
    assert!(error(&key).contains("no credential"));
    fs::remove_file(ends.path("phone/twin.ccs")).unwrap();
    fs::remove_file(ends.path("phone/sensor.ccs")).unwrap();
    assert!(error(&key).contains("no credential of a peer"));
    fs::write(&own, &bare).unwrap();
    assert!(error(&key).contains("private key beside it"));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(error(&key).contains("chmod 600"));
    assert!(create(&key, b"x", "").unwrap_err().to_string().contains("there is such a file"));
}

#[test]
fn a_credential_has_the_notation_of_others() {
    let credential = PrivateKey::random().credential(&[0x05], "phone").unwrap();
    let text = credential.to_string();
    assert!(text.starts_with("{14: {2: \"phone\", 8: {1: {1: 2, 2: h'05', -1: 1, -2: h'"), "{text}");
    let strings: Vec<_> = text.split('\'').skip(1).step_by(2).map(str::len).collect();
    assert!(text.ends_with("'}}}}") && strings == [2, 64, 64], "{text}");
}

/// The credentials and private keys of RFC 9529, section 3.
#[test]
fn the_credential_of_the_trace_is_read() {
    const OCTETS: &str = "a2027734322d35302d33312d46462d45462d33372d33322d333908a101a5010202412b2001215820ac75e9ece3e50bfc8ed60399889522405c47bf16df96660a41298cb4307f7eb62258206e5de611388a4b8a8211334ac7d37ecb52a387d257e6db3c2a93df21ff3affc8";
    const KEY: &str = "fb13adeb6518cee5f88417660841142e830a81fe334380a953406a1305e8706b";
    let octets = |text: &str| -> Vec<u8> {
        let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    };
    let credential = Credential::decode(&octets(OCTETS)).unwrap();
    assert_eq!((credential.kid(), credential.encode()), (&b"\x2b"[..], &octets(OCTETS)[..]));
    let key = PrivateKey::decode(&octets(&format!("a3010220012358 20{KEY}").replace(' ', ""))).unwrap();
    assert!(key.is_of(&credential));
    assert_eq!(key.credential(b"\x2b", "42-50-31-FF-EF-37-32-39").unwrap().encode(), octets(OCTETS));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Octets from outside, also behind a sound beginning, end an exchange at most.
    #[test]
    fn no_octets_panic(mut octets in vec(any::<u8>(), 0..200), sound in 0..40_usize, place in any::<Index>()) {
        let ends = Ends::new();
        let (mut responder, mut endpoint) = (Responder::new(ends.server, 0), endpoint());
        let (initiator, message_1) = Initiator::new(1);
        post(&responder, &mut endpoint, NOW, &octets);
        let message_2 = post(&responder, &mut endpoint, NOW, &message_1);
        let id = responder.ids().remove(0);
        let _ = responder.complete(NOW, &id, &octets);
        post(&responder, &mut endpoint, NOW, &[&[0xF5], &octets[..]].concat());
        octets.splice(..sound.min(octets.len()), message_1[1..].iter().take(sound).copied());
        post(&responder, &mut endpoint, NOW, &[&[0xF5], &octets[..]].concat());
        let mut changed = message_2.payload.to_vec();
        let place = place.index(changed.len());
        changed[place] ^= 1 << (sound % 8);
        prop_assert!(initiator.complete(&changed, &ends.client).is_err());
        let _ = Initiator::new(2).0.complete(&octets, &ends.client);
        prop_assert_eq!(endpoint.context_with(&id), None);
    }
}
