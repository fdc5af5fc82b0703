//! Sizes known from other sources, and round trips of generated and captured packets.

pub(super) mod packets;

use proptest::collection::vec;
use proptest::prelude::*;
use thinair_wire::header::chain::HeaderChain;
use thinair_wire::header::coap::{Code, Type};

use self::packets::{Addressing, DW6, DirectedPacket, UP6, captured, coap, packet};
use super::fields::Parsed;
use super::{
    Checksum, Direction, FieldRoom, Learner, NO_COMPRESSION, Ports, Reading, Rule, RuleSet, SchcError,
};

pub(super) fn learned(packets: &[DirectedPacket]) -> RuleSet {
    let mut learner = Learner::default();
    for (direction, packet) in packets {
        learner.observe(*direction, packet);
    }
    learner.finish()
}

/// Returns the SCHC packets, after checking that each is restored bit for bit.
fn proven(rules: &RuleSet, packets: &[DirectedPacket]) -> Vec<Vec<u8>> {
    let there_and_back = |(direction, packet): &DirectedPacket| {
        let (mut schc, mut back) = (vec![7], vec![9]);
        let id = rules.compress(*direction, packet, &mut schc);
        let schc = schc.split_off(1);
        assert_eq!(schc[0], id);
        rules.decompress(*direction, &schc, &mut back).unwrap();
        assert_eq!(back[1..], *packet);
        schc
    };
    packets.iter().map(there_and_back).collect()
}

/// Returns captured packets, and others of which two kinds have a rule each, and two share one with a list.
fn captured_and_listed() -> Vec<(String, Vec<DirectedPacket>)> {
    let get = |path: &u8, mid| UP6.packet(&coap(CON, Code::GET, mid, &[], &[(11, &[*path])], b""));
    let paths = [[b'a'].repeat(5), [b'b'].repeat(7), [b'c'].repeat(20), [b'd'].repeat(20)].concat();
    let listed = paths.iter().zip(0..).map(|(path, at)| get(path, at * 1_237)).collect();
    let mut all = captured();
    all.push(("listed".to_owned(), listed));
    all
}

#[test]
fn packets_of_known_kinds_count_like_new_ones() {
    for (name, packets) in captured_and_listed() {
        let mut learner = Learner::default();
        for (direction, packet) in &packets {
            learner.forget_kinds();
            learner.observe(*direction, packet);
        }
        let (rules, without_kinds) = (learned(&packets), learner.finish());
        for direction in [Direction::Up, Direction::Dw] {
            assert_eq!(rules.rules(direction), without_kinds.rules(direction), "{name}");
        }
    }
}

#[test]
fn the_rule_of_a_packet_is_the_best_of_all() {
    for (name, packets) in captured_and_listed() {
        let rules = learned(&packets);
        for (direction, packet) in &packets {
            let mut room = FieldRoom::new();
            let parsed = Parsed::parse(&Reading::default(), *direction, packet, &mut room);
            let best = parsed.and_then(|parsed| {
                let alike = rules.rules(*direction).iter().filter(|rule| rule.labels() == parsed.labels());
                let bits = |rule: &Rule| Some((rule.residue_bits(&parsed)?, rule.id));
                alike.filter_map(bits).min().map(|(_, id)| id)
            });
            let mut schc = Vec::new();
            assert_eq!(
                rules.compress(*direction, packet, &mut schc),
                best.unwrap_or(NO_COMPRESSION),
                "{name}"
            );
        }
    }
}

/// Octets of the first and the last packet, with rules derived from all of them.
fn sizes(packets: &[DirectedPacket]) -> (usize, usize) {
    let schc = proven(&learned(packets), packets);
    (schc[0].len(), schc[schc.len() - 1].len())
}

/// Returns 300 packets; the Message ID and token of each look random.
fn flow(make: impl Fn(u16, [u8; 4]) -> DirectedPacket) -> Vec<DirectedPacket> {
    let packet = |i: u32| {
        let noise = (i + 1).wrapping_mul(0x9E37_79B1);
        make((noise >> 7) as u16, (noise ^ noise >> 15).to_be_bytes())
    };
    (0..300).map(packet).collect()
}

const CON: Type = Type::Confirmable;
const TIME: (u16, &[u8]) = (11, b"time");

/// Uncompressed octets of the last packet, and compressed octets of the first and the last one.
fn reference(packets: &[DirectedPacket]) -> (usize, (usize, usize)) {
    (packets[packets.len() - 1].1.len(), sizes(packets))
}

#[test]
fn a_get_is_the_rule_and_the_message_id() {
    let get = flow(|mid, _| UP6.packet(&coap(CON, Code::GET, mid, &[], &[TIME], b"")));
    assert_eq!(reference(&get), (57, (3, 3)));
    // 20 descriptors of 6 octets; values: 7 octets of other fields of IPv6, 32 of addresses, 4 of ports, 8 of CoAP.
    assert_eq!(learned(&get).provisioning_octets(), 2 + 20 * 6 + 7 + 32 + 4 + 8);
    let get4 = flow(|mid, noise| {
        let id = u16::from_be_bytes([noise[0], noise[1]]);
        Addressing { v4: true, id, ..UP6 }.packet(&coap(CON, Code::GET, mid, &[], &[TIME], b""))
    });
    assert_eq!(reference(&get4), (37, (5, 5)));
}

#[test]
fn a_response_is_that_and_its_payload() {
    let response = flow(|mid, noise| {
        let payload = [&noise[..], &noise, &noise, b"now"].concat();
        let options: [(u16, &[u8]); 2] = [(12, &[60]), (14, b"")];
        DW6.packet(&coap(Type::Acknowledgement, Code::CONTENT, mid, &[], &options, &payload))
    });
    assert_eq!(reference(&response), (71, (18, 18)));
}

#[test]
fn a_random_token_is_sent() {
    for (len, plain, schc) in [(2, 59, 5), (4, 61, 7)] {
        let get = flow(|mid, noise| UP6.packet(&coap(CON, Code::GET, mid, &noise[..len], &[TIME], b"")));
        assert_eq!(reference(&get), (plain, (schc, schc)));
    }
}

#[test]
fn a_notification_sends_its_token_and_observe() {
    let notify = flow(|mid, noise| {
        let observe = (mid | 0x100).to_be_bytes();
        let options: [(u16, &[u8]); 2] = [(6, &observe), (12, &[60])];
        DW6.packet(&coap(Type::NonConfirmable, Code::CONTENT, mid, &noise, &options, &[noise; 5].concat()))
    });
    assert_eq!(reference(&notify), (82, (29, 29)));
}

#[test]
fn a_block_is_sent() {
    let request = flow(|mid, noise| {
        let block = [noise[0] | 1, 2];
        UP6.packet(&coap(CON, Code::GET, mid, &noise[..2], &[(11, b"fw"), (23, &block)], b""))
    });
    assert_eq!(reference(&request), (60, (7, 7)));
    let response = flow(|mid, noise| {
        let block = [noise[0] | 1, 10];
        let options: [(u16, &[u8]); 3] = [(4, &noise), (12, &[42]), (23, &block)];
        DW6.packet(&coap(
            Type::Acknowledgement,
            Code::CONTENT,
            mid,
            &noise[..2],
            &options,
            &[noise; 16].concat(),
        ))
    });
    assert_eq!(reference(&response), (129, (75, 75)));
}

#[test]
fn what_a_query_starts_with_is_in_the_rule() {
    let get = flow(|mid, noise| {
        let query = format!("t={:04}", u32::from_be_bytes(noise) % 10_000);
        UP6.packet(&coap(CON, Code::GET, mid, &[], &[TIME, (15, query.as_bytes())], b""))
    });
    assert_eq!(reference(&get), (64, (7, 7)));
    let rows: Vec<_> = learned(&get).rules(Direction::Up)[0].rows().collect();
    let query = rows.iter().find(|row| row.field == "CoAP.Uri-Query").unwrap();
    assert_eq!((query.fl.as_str(), query.fp, query.di), ("48", 1, "Up"));
    assert_eq!(
        (query.tv.as_str(), query.mo.as_str(), query.cda, query.sent),
        ("743d", "MSB(16)", "LSB", Some(32))
    );
}

/// The Message IDs of a short capture are close together; still all their bits are sent.
#[test]
fn what_is_chosen_at_run_time_is_sent_in_full() {
    let gets = |count| -> Vec<_> {
        (0..count).map(|i| UP6.packet(&coap(CON, Code::GET, 0x5A00 + i, b"\x07", &[TIME], b""))).collect()
    };
    // Eight packets with one token: the token of this deployment. With seven, token and port are coincidence.
    assert_eq!(sizes(&gets(8)), (3, 3));
    assert_eq!(sizes(&gets(7)), (6, 6));
}

#[test]
fn a_wrong_checksum_is_sent() {
    let packets = flow(|mid, noise| {
        let (direction, mut packet) = UP6.packet(&coap(CON, Code::GET, mid, &[], &[TIME], b""));
        packet[46] ^= noise[0] | 1;
        (direction, packet)
    });
    assert_eq!(sizes(&packets), (5, 5));
}

#[test]
fn a_right_checksum_is_sent_where_nothing_else_vouches_for_the_packet() {
    let packets = flow(|mid, _| UP6.packet(&coap(CON, Code::GET, mid, &[], &[TIME], b"")));
    let mut learner = Learner::new(Reading { checksum: Checksum::Sent, ..Reading::default() });
    packets.iter().for_each(|(direction, packet)| learner.observe(*direction, packet));
    assert_eq!(proven(&learner.finish(), &packets)[0].len(), sizes(&packets).0 + 2);
}

#[test]
fn coap_is_where_ports_say_so() {
    let packets = flow(|mid, _| UP6.packet(&coap(CON, Code::GET, mid, &[], &[TIME], b"")));
    let mut learner = Learner::new(Reading { ports: Ports::of(&[61_616]).unwrap(), ..Reading::default() });
    packets.iter().for_each(|(direction, packet)| learner.observe(*direction, packet));
    // The RuleID, and the complete message.
    let message = packets[0].1.len() - 48;
    assert_eq!(proven(&learner.finish(), &packets)[0].len(), 1 + message);
}

#[test]
fn clients_with_a_new_port_each_share_a_rule() {
    let packets = flow(|mid, noise| {
        let dev_port = 0x8000 | u16::from_be_bytes([noise[0], noise[1]]);
        Addressing { dev_port, ..UP6 }.packet(&coap(CON, Code::GET, mid, &[], &[TIME], b""))
    });
    assert_eq!(sizes(&packets), (5, 5));
    assert_eq!(learned(&packets).rules(Direction::Up).len(), 1);
}

#[test]
fn groups_share_rules_when_there_are_not_enough() {
    let paths = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut packets = Vec::new();
    for (host, mid) in (0..64_u8).cycle().zip(0..64 * 8 * 10) {
        let path = paths[usize::from(mid / 64) % 8].as_bytes();
        let message = coap(CON, Code::GET, mid, &[], &[(11, path)], b"");
        packets.push(Addressing { host, ..UP6 }.packet(&message));
    }
    let rules = learned(&packets);
    assert!(rules.rules(Direction::Up).len() <= 255);
    let octets: usize = proven(&rules, &packets).iter().map(Vec::len).sum();
    // A rule per path, with 6 bits of the host, needs 4 octets. The other 247 RuleIDs each serve ten packets
    // of a host and a path, which then need 3.
    assert_eq!(octets, 4 * packets.len() - 247 * 10);
    assert!(rules.provisioning_octets() > 255 * 150);
}

#[test]
fn more_groups_than_are_remembered_come_back() {
    let packets: Vec<_> = (0..4_000)
        .map(|i: u16| {
            let path = format!("{}", i % 1_500);
            let message =
                coap(CON, Code::GET, i, &[7; 8][..usize::from(i % 9)], &[(11, path.as_bytes())], b"");
            Addressing { dev_port: 0x8000 + i, ..UP6 }.packet(&message)
        })
        .collect();
    let octets: usize = proven(&learned(&packets), &packets).iter().map(Vec::len).sum();
    // RuleID, port, Message ID, up to 8 octets of token, up to 4 of path with their size.
    assert!(octets < packets.len() * (1 + 2 + 2 + 8 + 5));
}

#[test]
fn a_length_that_no_rule_knows_is_sent() {
    let lengths = (0..40).chain(240..280_usize);
    let packets: Vec<_> = (0..8_u8)
        .flat_map(|host| lengths.clone().map(move |len| (host, len)))
        .zip(0..)
        .map(|((host, len), mid)| {
            let path = [&b"p/"[..], &vec![host; len]].concat();
            Addressing { host, ..UP6 }.packet(&coap(
                CON,
                Code::GET,
                mid,
                &[],
                &[(11, &path), (60, b"12")],
                b"",
            ))
        })
        .collect();
    let rules = learned(&packets);
    proven(&rules, &packets);
    let up = rules.rules(Direction::Up);
    let variable = up.iter().flat_map(|rule| rule.rows()).find(|row| row.fl == "var").unwrap();
    assert_eq!(
        (variable.field.as_str(), variable.tv.as_str(), variable.sent),
        ("CoAP.Uri-Path", "702f", None)
    );
    // The row has no lengths, so other ones match as well.
    let other = [0, 60, 250, 400].map(|len| {
        let path = [&b"p/"[..], &vec![b'x'; len]].concat();
        UP6.packet(&coap(CON, Code::GET, 7, &[], &[(11, &path), (60, b"12")], b""))
    });
    let sizes: Vec<_> = proven(&rules, &other).iter().map(Vec::len).collect();
    let expected = |len: usize, size: usize| (8 + 16 + size + 8 * len).div_ceil(8);
    assert_eq!(sizes, [expected(0, 4), expected(60, 12), expected(250, 12), expected(400, 28)]);
}

#[test]
fn a_rule_is_not_for_what_it_does_not_match() {
    // Content-Format is a list of two, Uri-Query begins with "t=", Uri-Path is constant, all of equal length.
    let get = |mid: u16, path: &[u8], format: u8, query: &[u8]| {
        UP6.packet(&coap(CON, Code::GET, mid, &[], &[(11, path), (12, &[format]), (15, query)], b""))
    };
    let packets = flow(|mid, noise| {
        let format = [40, 42][usize::from(noise[1] & 1)];
        get(mid, b"time", format, format!("t={:04}", u32::from_be_bytes(noise) % 10_000).as_bytes())
    });
    let rules = learned(&packets);
    let by_rule = |packet: DirectedPacket| proven(&rules, &[packet])[0][0] != NO_COMPRESSION;
    assert!(by_rule(get(1, b"time", 42, b"t=zzzz")));
    assert!(!by_rule(get(1, b"time", 42, b"u=1234")));
    assert!(!by_rule(get(1, b"time", 42, b"t=12345")));
    assert!(!by_rule(get(1, b"time", 41, b"t=1234")));
    assert!(!by_rule(get(1, b"tine", 42, b"t=1234")));
}

#[test]
fn other_packets_go_without_compression() {
    let (direction, good) = UP6.packet(&coap(CON, Code::GET, 1, &[], &[TIME], b""));
    let changed = |change: fn(&mut Vec<u8>)| {
        let mut packet = good.clone();
        change(&mut packet);
        (direction, packet)
    };
    let packets = [
        changed(|packet| packet.truncate(20)),
        changed(|packet| packet.push(0)),
        changed(|packet| packet[45] += 1),
        changed(|packet| packet[6] = 6),
        changed(|packet| packet.clear()),
    ];
    let rules = learned(&packets);
    assert!(rules.rules(Direction::Up).is_empty());
    for (schc, (_, packet)) in proven(&rules, &packets).iter().zip(&packets) {
        assert_eq!((schc[0], &schc[1..]), (NO_COMPRESSION, &packet[..]));
    }
}

#[test]
fn a_message_with_a_format_error_is_payload_of_udp() {
    let mut message = coap(CON, Code::GET, 1, &[], &[TIME], b"");
    message.push(0xFF);
    let packets = vec![UP6.packet(&message); 8];
    assert_eq!(sizes(&packets), (1 + message.len(), 1 + message.len()));
}

#[test]
fn all_captures_come_back() {
    for (name, packets) in captured() {
        let rules = learned(&packets);
        let schc = proven(&rules, &packets);
        let plain: usize = packets.iter().map(|(_, packet)| packet.len()).sum();
        let octets: usize = schc.iter().map(Vec::len).sum();
        let [up, dw] = [Direction::Up, Direction::Dw].map(|direction| rules.rules(direction).len());
        let without = schc.iter().filter(|schc| schc[0] == NO_COMPRESSION).count();
        println!(
            "{name}: {} packets ({without} by no rule), {plain} -> {octets} octets, {up} + {dw} rules of {} octets",
            packets.len(),
            rules.provisioning_octets()
        );
        let fits = |packet: &Vec<u8>| {
            let chain = HeaderChain::parse(packet).unwrap();
            matches!(chain.ips(), [ip] if ip.extensions.is_empty()) && chain.udp().is_some()
        };
        let fitting = packets.iter().filter(|(_, packet)| fits(packet)).count();
        assert_eq!(fitting + without, packets.len(), "{name}");
    }
}

/// Rules derived from other packets may not match; those that match restore the packet.
#[test]
fn rules_of_one_capture_carry_any_other() {
    let captures = captured();
    for (_, packets) in &captures {
        let rules = learned(packets);
        for (_, others) in &captures {
            proven(&rules, &others[..others.len().min(20)]);
        }
    }
}

proptest! {
    #[test]
    fn generated_packets_come_back(packets in vec(packet(), 1..80), others in vec(packet(), 0..10)) {
        let rules = learned(&packets);
        proven(&rules, &packets);
        proven(&rules, &others);
    }

    #[test]
    fn noise_is_refused_or_restored(packets in vec(packet(), 1..40), noise in vec(vec(any::<u8>(), 0..40), 1..20)) {
        let rules = learned(&packets);
        for (noise, id) in noise.iter().zip(0..) {
            for direction in [Direction::Up, Direction::Dw] {
                let schc = [&[id], &noise[..]].concat();
                let mut out = vec![5];
                match rules.decompress(direction, &schc, &mut out) {
                    Ok(()) => prop_assert_eq!(out[0], 5),
                    Err(_) => prop_assert_eq!(&out, &[5]),
                }
            }
        }
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let get = flow(|mid, _| UP6.packet(&coap(CON, Code::GET, mid, &[], &[TIME], b"")));
    let rules = learned(&get);
    let error = |schc: &[u8]| rules.decompress(Direction::Up, schc, &mut Vec::new()).unwrap_err();
    assert_eq!(error(&[]), SchcError::Empty);
    assert_eq!(error(&[2, 0, 0]), SchcError::UnknownRule(2));
    assert_eq!(error(&[1, 0]), SchcError::Short);
    assert_eq!(error(&[1, 0, 0, 0]), SchcError::Payload);
    assert_eq!(rules.decompress(Direction::Dw, &[1, 0, 0], &mut Vec::new()), Err(SchcError::UnknownRule(1)));
}
