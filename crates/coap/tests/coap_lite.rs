//! Another implementation as an oracle: messages built by coap-lite are read here, and the reverse.

#![allow(clippy::unwrap_used)]

use coap_lite::{CoapOption, MessageClass, MessageType, Packet};
use proptest::collection::vec;
use proptest::prelude::*;
use thinair_coap::{Builder, Code, Message, OptionList, Token, Type};

fn types() -> impl Strategy<Value = (Type, MessageType)> {
    prop_oneof![
        Just((Type::Confirmable, MessageType::Confirmable)),
        Just((Type::NonConfirmable, MessageType::NonConfirmable)),
        Just((Type::Acknowledgement, MessageType::Acknowledgement)),
        Just((Type::Reset, MessageType::Reset)),
    ]
}

/// Codes of both: a request or a response.
fn codes() -> impl Strategy<Value = Code> {
    prop_oneof![(1..8_u8).prop_map(Code), (0x41..0x46_u8).prop_map(Code), (0x80..0x87_u8).prop_map(Code)]
}

proptest! {
    #[test]
    fn both_write_the_same_octets(
        (message_type, theirs) in types(),
        code in codes(),
        message_id: u16,
        token in vec(any::<u8>(), 0..=8),
        options in vec((1..2_000_u16, vec(any::<u8>(), 0..300)), 0..6),
        payload in vec(any::<u8>(), 0..100),
    ) {
        let mut packet = Packet::new();
        packet.header.set_type(theirs);
        packet.header.code = MessageClass::from(code.0);
        packet.header.message_id = message_id;
        packet.set_token(token.clone());
        let mut list = OptionList::new();
        for (number, value) in &options {
            packet.add_option(CoapOption::from(*number), value.clone());
            list.push(*number, value);
        }
        packet.payload = payload.clone();
        let theirs = packet.to_bytes_with_limit(4_000).unwrap();

        let mut ours = [0; 4_000];
        let token = Token::new(&token).unwrap();
        let mut builder = Builder::new(&mut ours, message_type, code, message_id, &token).unwrap();
        builder.options(&list.as_options()).unwrap();
        let len = builder.payload(&payload).unwrap();
        prop_assert_eq!(&ours[..len], &theirs[..]);

        let message = Message::read(&theirs).unwrap();
        prop_assert_eq!(message.payload, &payload[..]);
        prop_assert_eq!(message.options.octets(), list.octets());
    }

    /// Where both accept a message, they decode it identically.
    #[test]
    fn both_read_the_same_from_the_same_octets(first in 0x40..0x80_u8, octets in vec(any::<u8>(), 3..60)) {
        let mut datagram = vec![first];
        datagram.extend(octets);
        let (Ok(message), Ok(packet)) = (Message::read(&datagram), Packet::from_bytes(&datagram)) else {
            return Ok(());
        };
        prop_assert_eq!(message.message_id, packet.header.message_id);
        prop_assert_eq!(message.token.octets(), packet.get_token());
        prop_assert_eq!(message.payload, &packet.payload[..]);
        let ours: Vec<_> = message.options.iter().map(|option| (option.number, option.value.to_vec())).collect();
        let theirs: Vec<_> = packet
            .options()
            .flat_map(|(number, values)| values.iter().map(move |value| (*number, value.clone())))
            .collect();
        prop_assert_eq!(ours, theirs);
    }
}
