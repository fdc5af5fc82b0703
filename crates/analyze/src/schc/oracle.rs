//! Comparison of our residues with those of another implementation: the crate `schc`, which has no parser, no
//! rule selection, no RuleID, no variable lengths and no fields of more than 128 bits.

use ::schc::compress::{Cda, FieldDescriptor, Mo, Rule as Theirs, compress, decompress};

use super::bits::{BitReader, Bits};
use super::fields::Parsed;
use super::rule::{Action, Descriptor, Length};
use super::tests::learned;
use super::tests::packets::captured;
use super::{Direction, FieldRoom, Reading, RuleSet};

/// Converts a descriptor to that of the crate, if possible: bits, MO, CDA, TV, x and list. The crate needs a
/// static lifetime.
///
/// It has no length that follows from another field, so the token length is that of this packet.
fn theirs(descriptor: &Descriptor, bits: usize) -> Option<FieldDescriptor> {
    if descriptor.length == Length::Variable || bits > 128 {
        return None;
    }
    let width = |value: &Bits| value.to_uint();
    let (mo, cda, tv, x, list) = match &descriptor.action {
        Action::NotSent(tv) => (Mo::Equal, Cda::NotSent, width(tv)?, None, None),
        Action::Mapping(tv) => {
            let list: Option<Vec<_>> = tv.iter().map(width).collect();
            (Mo::MatchMapping, Cda::MappingSent, 0, None, Some(&*list?.leak()))
        }
        Action::Lsb(msb) => {
            let tv = width(msb)? << (bits - msb.len());
            (Mo::Msb, Cda::Lsb, tv, Some(msb.len() as u16), None)
        }
        Action::ValueSent => (Mo::Ignore, Cda::ValueSent, 0, None, None),
        Action::Compute => (Mo::Ignore, Cda::Compute, 0, None, None),
    };
    let name = descriptor.label.id.to_string().leak();
    Some(FieldDescriptor::new(name, bits as u16, mo, cda, tv, x, list))
}

/// Returns true if the crate supports the rule, after checking that it agrees.
fn agrees(rules: &RuleSet, direction: Direction, packet: &[u8]) -> bool {
    let mut room = FieldRoom::new();
    let Some((rule, parsed)) = rules.select(direction, packet, &mut room) else { return false };
    let pairs = rule.descriptors.iter().zip(parsed.fields);
    let fields: Option<Vec<_>> = pairs.map(|(descriptor, field)| theirs(descriptor, field.len)).collect();
    let Some(fields) = fields else { return false };
    let their_rule = Theirs::new(rule.id, fields.leak());
    let values: Vec<_> = parsed.fields.iter().map(|field| parsed.value(field).to_uint().unwrap()).collect();

    let mut residue = [0; 600];
    let len = compress(&their_rule, &values, &mut residue).unwrap();

    let mut ours = Vec::new();
    assert_eq!(rules.compress(direction, packet, &mut ours), rule.id);
    let bits = rule.residue_bits(&parsed).unwrap();
    assert_eq!(len, bits.div_ceil(8));
    assert_eq!(BitReader::new(&ours[1..]).bits(bits), BitReader::new(&residue[..len]).bits(bits));
    assert_eq!(ours.len(), 1 + (bits + parsed.payload.len() * 8).div_ceil(8));

    let mut restored = vec![0; values.len()];
    decompress(&their_rule, &ours[1..], &mut restored).unwrap();
    for ((descriptor, value), restored) in rule.descriptors.iter().zip(values).zip(restored) {
        let expected = if descriptor.action == Action::Compute { 0 } else { value };
        assert_eq!(restored, expected, "{}", descriptor.label.id);
    }
    true
}

#[test]
fn residues_are_those_of_another_implementation() {
    let (mut followed, mut by_rules) = (0, 0);
    for (name, packets) in captured() {
        let rules = learned(&packets);
        // The crate never frees its rules, so not all packets are compared.
        for (direction, packet) in packets.iter().take(60) {
            let mut room = FieldRoom::new();
            followed += usize::from(agrees(&rules, *direction, packet));
            by_rules +=
                usize::from(Parsed::parse(&Reading::default(), *direction, packet, &mut room).is_some());
        }
        println!("{name}: {followed} of {by_rules} packets so far");
    }
    assert!(followed > 500, "{followed} of {by_rules}");
}
