//! Selection of rules: the descriptor of each field for a group of packets, and the groups that get a rule.
//!
//! Every group of packets that agree in all fields that a rule may contain is a candidate for a rule of its
//! own, and for rules shared with groups that differ in ports, addresses, lengths of options, type, code and
//! TKL, or values. Candidates are selected as long as they save octets that no earlier rule saves, largest
//! savings first. A rule that later ones make superfluous is dropped, and its RuleID becomes free.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::Direction;
use super::bits::Bits;
use super::fields::{FieldId, FieldLabel, Knowledge};
use super::learn::{Census, ESTABLISHED, FieldValues, Group, GroupKey};
use super::rule::{Action, Descriptor, Length, Rule, index_bits};

/// Maximum number of rules per direction: RuleIDs have 8 bits, and one means no compression.
const MAX_RULES: usize = 255;

/// Minimum mean number of packets per value of a list. With fewer, the field has too many values for a list.
const PACKETS_PER_VALUE: u64 = 4;

/// A candidate for a rule.
struct Candidate {
    descriptors: Vec<Descriptor>,
    /// The groups that it matches, with the octets of the headers of all their packets when it compresses
    /// them.
    members: Vec<(usize, u64)>,
}

/// Returns the rules for groups of packets of one direction.
pub(super) fn rules(direction: Direction, groups: Vec<(GroupKey, Group)>, census: &Census) -> Vec<Rule> {
    let mut wider: BTreeMap<GroupKey, Vec<usize>> = BTreeMap::new();
    for (i, (key, _)) in groups.iter().enumerate() {
        for key in key.wider() {
            wider.entry(key).or_default().push(i);
        }
    }
    let packets =
        |members: &[usize]| members.iter().filter_map(|i| Some(groups.get(*i)?.1.packets)).sum::<u64>();
    // Few packets with some values do not justify a rule.
    wider.retain(|key, members| key.values.is_none() || packets(members) >= ESTABLISHED);
    let candidates: Vec<_> =
        wider.into_iter().map(|(key, members)| candidate(&key.labels, &members, &groups, census)).collect();
    let uncompressed: Vec<_> = groups.iter().map(|(_, group)| group.packets * (1 + group.header)).collect();

    let mut taken = Vec::new();
    let assigned = loop {
        take(&candidates, &mut taken, &uncompressed);
        let before = taken.len();
        let assigned = assign(&candidates, &mut taken, &uncompressed);
        if taken.len() == before {
            break assigned;
        }
    };
    let mut rules = Vec::new();
    for (candidate, members) in assigned {
        // Groups with a better rule are ignored.
        let Some((key, _)) = members.first().and_then(|first| groups.get(*first)) else { continue };
        let narrow = self::candidate(&key.labels, &members, &groups, census);
        let before = candidate.octets_of(&members);
        let (octets, descriptors) = match narrow.octets_of(&members) {
            octets if octets <= before => (octets, narrow.descriptors),
            _ => (before, candidate.descriptors.clone()),
        };
        let without: u64 = members.iter().filter_map(|member| uncompressed.get(*member)).sum();
        rules.push((without.saturating_sub(octets), descriptors));
    }
    // A stable sort keeps rules with equal savings in the order of their keys.
    rules.sort_by_key(|(saved, _)| Reverse(*saved));
    let ids = 1..=u8::MAX;
    ids.zip(rules).map(|(id, (_, descriptors))| Rule { id, direction, descriptors }).collect()
}

/// Selects further candidates while they save octets.
fn take(candidates: &[Candidate], taken: &mut Vec<usize>, uncompressed: &[u64]) {
    let mut octets = uncompressed.to_vec();
    for i in taken.iter() {
        lower(&mut octets, candidates.get(*i));
    }
    // The first one of candidates with equal gains.
    let gain =
        |i: usize, octets: &[u64]| candidates.get(i).map(|candidate| (candidate.gain(octets), Reverse(i)));
    let mut gains: BinaryHeap<_> = (0..candidates.len()).filter_map(|i| gain(i, &octets)).collect();
    while let (true, Some((_, Reverse(i)))) = (taken.len() < MAX_RULES, gains.pop()) {
        // Each selection only lowers the gains of others, so a gain that is still the largest is the maximum.
        let Some(now) = gain(i, &octets).filter(|(gain, _)| *gain > 0) else { continue };
        if gains.peek().is_some_and(|next| *next > now) {
            gains.push(now);
            continue;
        }
        lower(&mut octets, candidates.get(i));
        taken.push(i);
    }
}

fn lower(octets: &mut [u64], candidate: Option<&Candidate>) {
    for (member, cost) in candidate.into_iter().flat_map(|candidate| &candidate.members) {
        if let Some(octets) = octets.get_mut(*member) {
            *octets = (*octets).min(*cost);
        }
    }
}

/// Drops superfluous candidates, and assigns each group to the best remaining one.
fn assign<'c>(
    candidates: &'c [Candidate],
    taken: &mut Vec<usize>,
    uncompressed: &[u64],
) -> Vec<(&'c Candidate, Vec<usize>)> {
    loop {
        let mut best: Vec<_> = uncompressed.iter().map(|octets| (*octets, None)).collect();
        let mut second = best.clone();
        for i in taken.iter() {
            for (member, octets) in candidates.get(*i).into_iter().flat_map(|candidate| &candidate.members) {
                let (Some(best), Some(second)) = (best.get_mut(*member), second.get_mut(*member)) else {
                    continue;
                };
                if *octets < best.0 {
                    *second = *best;
                    *best = (*octets, Some(*i));
                } else if *octets < second.0 {
                    *second = (*octets, Some(*i));
                }
            }
        }
        // A rule is superfluous if others compress its groups equally well. One is removed at a time, since
        // they may depend on each other.
        let needed = |i: &usize| {
            best.iter().zip(&second).any(|(best, second)| best.1 == Some(*i) && best.0 < second.0)
        };
        if let Some(superfluous) = taken.iter().rposition(|i| !needed(i)) {
            taken.remove(superfluous);
            continue;
        }
        let members = |i: usize| {
            (0..best.len()).filter(|at| best.get(*at).is_some_and(|best| best.1 == Some(i))).collect()
        };
        return taken.iter().filter_map(|i| Some((candidates.get(*i)?, members(*i)))).collect();
    }
}

impl Candidate {
    fn gain(&self, octets: &[u64]) -> u64 {
        let gain =
            |(member, cost): &(usize, u64)| octets.get(*member).map_or(0, |now| now.saturating_sub(*cost));
        self.members.iter().map(gain).sum()
    }

    fn octets_of(&self, members: &[usize]) -> u64 {
        self.members
            .iter()
            .filter(|(member, _)| members.binary_search(member).is_ok())
            .map(|(_, octets)| octets)
            .sum()
    }
}

impl GroupKey {
    /// Returns the key, and the keys of larger groups that include its packets.
    fn wider(&self) -> Vec<Self> {
        let mut keys = vec![self.clone()];
        keys.push(Self { flow: None, ..self.clone() });
        keys.push(Self { flow: None, addresses: None, ..self.clone() });
        keys.extend(keys.clone().into_iter().map(|key| Self { lengths: None, ..key }));
        keys.extend(keys.clone().into_iter().map(|key| Self { message: None, ..key }));
        keys.extend(keys.clone().into_iter().map(|key| Self { values: None, ..key }));
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

fn candidate(
    labels: &[FieldLabel],
    members: &[usize],
    groups: &[(GroupKey, Group)],
    census: &Census,
) -> Candidate {
    let mut all = Group::default();
    let members: Vec<_> = members.iter().filter_map(|i| Some((*i, &groups.get(*i)?.1))).collect();
    for (_, group) in &members {
        all.merge(group);
    }
    let fields = labels.iter().zip(&all.seen);
    let descriptors: Vec<_> =
        fields.map(|(label, seen)| descriptor(*label, seen, all.packets, census)).collect();
    let octets = |group: &Group| {
        // All packets of a group have equal field lengths.
        let bits = descriptors.iter().zip(&group.seen).map(|(field, seen)| field.residue_bits(seen.len.1));
        group.packets * (8 + bits.sum::<usize>()).div_ceil(8) as u64
    };
    let members = members.iter().map(|(i, group)| (*i, octets(group))).collect();
    Candidate { descriptors, members }
}

/// Returns the cheapest descriptor for a field with these values in this number of packets.
fn descriptor(label: FieldLabel, seen: &FieldValues, packets: u64, census: &Census) -> Descriptor {
    let length = match label.id {
        FieldId::CoapToken => Length::Tkl,
        _ if seen.len.0 != seen.len.1 => Length::Variable,
        _ => Length::Fixed(seen.len.0),
    };
    let knowledge = seen.values.keys().map(|value| match label.id.knowledge(value) {
        Knowledge::PerFlow if seen.complete && census.is_established(label.id, value) => Knowledge::Plain,
        knowledge => knowledge,
    });
    let only = seen.values.keys().next().filter(|_| seen.complete && seen.values.len() == 1);
    let action = match knowledge.max() {
        _ if label.computable => Action::Compute,
        Some(Knowledge::Plain) | None => plain(label.id, length, seen, only, packets),
        Some(Knowledge::PerFlow) => Action::ValueSent,
        // Constant in all packets, such as an IP-ID of zero or the token of an observation.
        Some(Knowledge::Any) => match only {
            Some(value) if packets >= ESTABLISHED => Action::NotSent(value.clone()),
            _ => Action::ValueSent,
        },
    };
    Descriptor { label, length, action }
}

fn plain(id: FieldId, length: Length, seen: &FieldValues, only: Option<&Bits>, packets: u64) -> Action {
    if let Some(value) = only {
        return Action::NotSent(value.clone());
    }
    let unit = if id.is_option() { 8 } else { 1 };
    let known = seen.prefix.len() / unit * unit;
    let is_list = seen.complete && seen.values.len() as u64 * PACKETS_PER_VALUE <= packets;
    let size = if length == Length::Variable { 4 } else { 0 };
    if is_list && index_bits(seen.values.len()) <= size + seen.len.0.saturating_sub(known) {
        // Most frequent value first, as a person would write it.
        let mut values: Vec<_> = seen.values.iter().collect();
        values.sort_by_key(|(_, packets)| Reverse(**packets));
        return Action::Mapping(values.into_iter().map(|(value, _)| value.clone()).collect());
    }
    match known {
        0 => Action::ValueSent,
        known => Action::Lsb(seen.prefix.prefix(known)),
    }
}
