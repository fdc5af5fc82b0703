//! A rule prepared for decompression: fields that need no residue are joined to strings of bits, with the headers of options
//! among them.

use std::ops::Range;

use thinair_wire::coder::Writer;
use thinair_wire::header::coap::option_header;

use super::SchcError;
use super::bits::Bits;
use super::fields::FieldId;
use super::rule::{Action, Descriptor, Length, Rule};

/// Parts of the header, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub(super) parts: Vec<Part>,
    /// Computed fields.
    pub(super) computed: Vec<FieldId>,
    /// TKL, if the rule contains it.
    pub(super) tkl: usize,
    /// True if the rule is for CoAP.
    pub(super) is_coap: bool,
    /// True if the rule has a Payload Marker.
    pub(super) has_end: bool,
}

/// Part of a header.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// Bits that all packets have; zeros for a field that is computed later.
    Known(Bits),
    /// Field by its index.
    Field(usize),
    /// Fields of an option by their indices, and its delta: its length is known when they are read.
    Option(Range<usize>, u32),
}

impl Layout {
    pub(super) fn of(rule: &Rule) -> Self {
        let ids = || rule.descriptors.iter().map(|descriptor| descriptor.label.id);
        let computed = rule.descriptors.iter().filter(|descriptor| descriptor.action == Action::Compute);
        let tkl = rule.descriptors.iter().find(|descriptor| descriptor.label.id == FieldId::CoapTkl);
        let mut layout = Self {
            parts: Vec::new(),
            computed: computed.map(|descriptor| descriptor.label.id).collect(),
            tkl: tkl.and_then(known).and_then(|tkl| tkl.to_uint()).unwrap_or(0) as usize,
            is_coap: ids().any(|id| id == FieldId::CoapVersion),
            has_end: ids().next_back() == Some(FieldId::CoapOptionEnd),
        };
        let (mut at, mut before) = (0, 0);
        while let Some(first) = rule.descriptors.get(at) {
            let Some((number, _)) = first.label.id.option() else {
                layout.field(at, first);
                at += 1;
                continue;
            };
            let parts = rule.descriptors.get(at..).unwrap_or_default();
            let is_last = |part: &Descriptor| part.label.id.option().is_some_and(|(_, is_last)| is_last);
            let count = parts.iter().position(is_last).map_or(parts.len(), |last| last + 1);
            let delta = u32::from(number).saturating_sub(before);
            let bits: Option<usize> = parts.iter().take(count).map(length).sum();
            match bits.and_then(|bits| header(delta, bits / 8).ok()) {
                Some(header) => {
                    layout.know(&header);
                    parts.iter().take(count).zip(at..).for_each(|(part, at)| layout.field(at, part));
                }
                None => layout.parts.push(Part::Option(at..at + count, delta)),
            }
            before = number.into();
            at += count;
        }
        layout
    }

    fn field(&mut self, at: usize, descriptor: &Descriptor) {
        match known(descriptor) {
            Some(bits) => self.know(&bits),
            None => self.parts.push(Part::Field(at)),
        }
    }

    /// Appends known bits.
    fn know(&mut self, more: &Bits) {
        let before = match self.parts.pop() {
            Some(Part::Known(before)) => before,
            Some(other) => {
                self.parts.push(other);
                Bits::default()
            }
            None => Bits::default(),
        };
        self.parts.push(Part::Known(before.followed_by(more)));
    }
}

/// Bits of a field that need no residue; zeros for a computed one.
fn known(descriptor: &Descriptor) -> Option<Bits> {
    match &descriptor.action {
        Action::NotSent(value) => Some(value.clone()),
        Action::Compute => Some(Bits::of(&[], 0, 16)),
        Action::Mapping(_) | Action::Lsb(_) | Action::ValueSent => None,
    }
}

/// Length in bits, if the rule contains it.
fn length(descriptor: &Descriptor) -> Option<usize> {
    match (&descriptor.action, descriptor.length) {
        (Action::NotSent(value), _) => Some(value.len()),
        (_, Length::Fixed(bits)) => Some(bits),
        (_, Length::Tkl | Length::Variable) => None,
    }
}

/// Header of an option with a value of so many octets.
pub(super) fn header(mut delta: u32, octets: usize) -> Result<Bits, SchcError> {
    let mut header = [0; 5];
    let mut coder = Writer::new(&mut header, 0);
    let mut length = u32::try_from(octets).map_err(|_| SchcError::Length)?;
    option_header(&mut coder, &mut delta, &mut length).map_err(|_| SchcError::Length)?;
    let end = coder.finish().map_err(|_| SchcError::Length)?;
    Ok(Bits::of(&header, 0, end * 8))
}
