//! TD_COAP_BLOCK_01 to 06.

use super::wire::{Down, PlugtestBench, SeenMessage, Up};
use super::{ACK, CON, Code, Request, code, number};

/// Text of `octets` octets.
fn text(octets: usize) -> Vec<u8> {
    (0..octets).map(|index| b'a' + (index % 26) as u8).collect()
}

/// Asserts that messages are requests, each followed by its answer, and returns them in pairs.
#[track_caller]
fn exchanges(seen: &[SeenMessage], method: Code) -> Vec<[&SeenMessage; 2]> {
    let pairs: Vec<_> = seen.chunks(2).map(|pair| [&pair[0], &pair[1]]).collect();
    for [asked, answered] in &pairs {
        asked.is(Up, CON, method);
        assert_eq!((answered.way, answered.kind), (Down, ACK), "{answered:?}");
        assert_eq!((answered.mid, &answered.token), (asked.mid, &asked.token));
    }
    let mut mids: Vec<_> = pairs.iter().map(|[asked, _]| asked.mid).collect();
    mids.dedup();
    assert_eq!(mids.len(), pairs.len(), "every block is a message of its own");
    pairs
}

/// Asserts that Block2 goes from 0 to the end in blocks of this size, requested one by one from the `first` request on.
#[track_caller]
fn downloaded(pairs: &[[&SeenMessage; 2]], first: usize, size: usize, body: &[u8]) {
    let mut octets = Vec::new();
    for (num, [asked, answered]) in (0..).zip(pairs) {
        let more = octets.len() + size < body.len();
        let wanted = (num as usize >= first).then_some((num, false, size));
        assert_eq!(asked.block(number::BLOCK2), wanted, "{asked:?}");
        assert_eq!(answered.block(number::BLOCK2), Some((num, more, size)), "{answered:?}");
        octets.extend_from_slice(&answered.payload);
    }
    assert_eq!(octets, body);
}

/// Asserts that Block1 goes from 0 to the end in blocks of this size, and that each is echoed; 2.31, except for the last
/// one.
#[track_caller]
fn uploaded(pairs: &[[&SeenMessage; 2]], size: usize, body: &[u8], answer: Code) {
    let mut octets = Vec::new();
    for (num, [asked, answered]) in (0..).zip(pairs) {
        octets.extend_from_slice(&asked.payload);
        let more = octets.len() < body.len();
        assert_eq!(asked.block(number::BLOCK1), Some((num, more, size)), "{asked:?}");
        assert!(asked.payload.len() == size || !more);
        assert_eq!(answered.block(number::BLOCK1).map(|(num, ..)| num), Some(num), "{answered:?}");
        assert_eq!(answered.code, if more { code::CONTINUE } else { answer });
    }
    assert_eq!(octets, body);
}

fn large(bench: &mut PlugtestBench, size: usize, first: usize) {
    let response = bench.ask(&Request::get("/large"));
    assert!(response.payload.len() > 1_024);
    let seen = bench.all();
    let pairs = exchanges(&seen, Code::GET);
    assert_eq!(pairs.len(), response.payload.len().div_ceil(size));
    assert!(pairs.iter().all(|[_, answered]| answered.code == Code::CONTENT));
    assert!(pairs.iter().all(|[_, answered]| answered.uint(number::CONTENT_FORMAT) == Some(0)));
    downloaded(&pairs, first, size, &response.payload);
}

#[test]
fn cb01_get_with_early_negotiation() {
    large(&mut PlugtestBench::with_blocks(64, 1_024), 64, 0);
}

#[test]
fn cb02_get_with_late_negotiation() {
    // The client states no preference, and continues with the size of the server.
    large(&mut PlugtestBench::with_blocks(1_024, 64), 64, 1);
    large(&mut PlugtestBench::new(), 1_024, 1);
}

#[test]
fn cb03_put_in_blocks() {
    let mut bench = PlugtestBench::with_blocks(64, 1_024);
    let body = text(1_500);
    bench.ask(&Request::put("/large-update", body.clone()).format(0));
    let seen = bench.all();
    let pairs = exchanges(&seen, Code::PUT);
    assert_eq!(pairs.len(), 24);
    assert!(pairs.iter().all(|[asked, _]| asked.uint(number::CONTENT_FORMAT) == Some(0)));
    uploaded(&pairs, 64, &body, Code::CHANGED);
    // The resource exists.
    let response = bench.ask(&Request::get("/large-update"));
    assert_eq!(*response.payload, body);
}

#[test]
fn cb04_post_in_blocks_creates() {
    let mut bench = PlugtestBench::with_blocks(64, 1_024);
    let body = text(1_280);
    bench.ask(&Request::post("/large-create", body.clone()).format(0));
    let seen = bench.all();
    let pairs = exchanges(&seen, Code::POST);
    uploaded(&pairs, 64, &body, code::CREATED);
    let [_, last] = pairs[pairs.len() - 1];
    let location = last.texts(number::LOCATION_PATH).join("/");
    assert!(location.starts_with("large-create/"), "{last:?}");
    let response = bench.ask(&Request::get(&location));
    assert_eq!((response.code, &*response.payload), (Code::CONTENT, &body[..]));
}

#[test]
fn cb05_post_in_blocks_is_answered_in_blocks() {
    let mut bench = PlugtestBench::with_blocks(64, 1_024);
    let body = text(640);
    let response = bench.ask(&Request::post("/large-post", body.clone()).format(0));
    assert_eq!((response.code, &*response.payload), (Code::CHANGED, &body.to_ascii_uppercase()[..]));
    let seen = bench.all();
    let pairs = exchanges(&seen, Code::POST);
    let (up, down) = pairs.split_at(10);
    uploaded(up, 64, &body, Code::CHANGED);
    // The last answer to a block of the body has the first block of the response; the others are requested.
    assert_eq!(up[9][1].block(number::BLOCK2), Some((0, true, 64)));
    assert_eq!(down.len(), 9);
    for (num, [asked, answered]) in (1..).zip(down) {
        assert_eq!(asked.block(number::BLOCK2), Some((num, false, 64)));
        assert_eq!((asked.block(number::BLOCK1), asked.payload.len()), (None, 0));
        assert_eq!(answered.block(number::BLOCK2), Some((num, num < 9, 64)));
        assert_eq!(answered.code, Code::CHANGED);
    }
}

#[test]
fn cb06_get_with_blocks_of_16_octets() {
    large(&mut PlugtestBench::with_blocks(16, 1_024), 16, 0);
}
