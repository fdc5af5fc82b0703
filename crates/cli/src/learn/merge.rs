//! One base for many flows: those that differ in what an IR-CR packet says anyway, ports above all.

use std::collections::BTreeSet;

use thinair_rohc::profile::coap::{Base, BaseEnd, BasePath, BaseTemplate, MessageIdMode, TokenMode};
use thinair_wire::header::coap::{Code, Type};

/// Ports from here on are a client's, and its next flow has another one: systems that follow RFC 6335, section 6,
/// take them from 49152 on, Linux from 32768 on.
const EPHEMERAL: u16 = 32_768;

/// A token that is sent in every packet of a flow may take so many octets in all: about what plain IR packets would
/// have cost more than IR-CR packets.
const WORTH: u64 = 128;

/// The first message of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct First {
    head: [u8; 2],
    options: Vec<u8>,
}

impl First {
    /// Of the octets of a CoAP message.
    pub(super) fn of(message: &[u8]) -> Self {
        let (Some(&first), Some(&code)) = (message.first(), message.get(1)) else { return Self::default() };
        let options = message.get(4 + usize::from(first & 0x0F)..).unwrap_or_default();
        Self { head: [first >> 4 & 0b11, code], options: options.to_vec() }
    }

    /// How well a template fits, more for better.
    fn fits(&self, template: &Template) -> u8 {
        let same_head = self.head == [template.message_type as u8, template.code.0];
        let same_options = self.options.starts_with(&template.outline);
        u8::from(same_head) + u8::from(same_head && same_options)
    }
}

/// A template that can be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Template {
    message_type: Type,
    code: Code,
    message_id: MessageIdMode,
    token_mode: TokenMode,
    token: Vec<u8>,
    outline: Vec<u8>,
}

impl Template {
    /// What must be the same in templates that become one.
    fn shape(&self) -> (u8, u8, &[u8]) {
        (self.message_type as u8, self.code.0, &self.outline)
    }

    /// The token of both, with the mode of `self` where they differ; `None` if no mode takes both. A token of
    /// `packets` packets a flow may become irregular, if that is worth it.
    fn token_with(&self, other: &Self, packets: u64) -> Option<(TokenMode, Vec<u8>)> {
        let length = self.token.len();
        let kept = Some((self.token_mode, self.token.clone()));
        match (self.token_mode, other.token_mode) {
            (TokenMode::CountedUint | TokenMode::OfRequest, _) => kept,
            (_, TokenMode::CountedUint | TokenMode::OfRequest) => None,
            _ if length != other.token.len() => None,
            (TokenMode::Static, TokenMode::Static) if self.token == other.token => kept,
            (TokenMode::Static, _) => {
                let is_worth_it = packets * length as u64 <= WORTH;
                is_worth_it.then(|| (TokenMode::Irregular, vec![0; length]))
            }
            (TokenMode::Counted | TokenMode::Irregular, _) => kept,
        }
    }
}

/// What was learned of some flows that are alike.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    path: BasePath,
    templates: Vec<Template>,
    /// Flows and packets that it is learned from, and packets of the flow that it is like.
    flows: u64,
    packets: u64,
    heaviest: u64,
    captures: BTreeSet<String>,
}

impl Flow {
    /// Of one flow; `None` if nothing was learned.
    pub(super) fn new(base: &Base, packets: u64, first: &First, capture: &str) -> Option<Self> {
        let mut templates: Vec<_> = base
            .templates()
            .map(|template| Template {
                message_type: template.message_type,
                code: template.code,
                message_id: template.message_id,
                token_mode: template.token_mode,
                token: template.token.to_vec(),
                outline: template.outline.to_vec(),
            })
            .collect();
        // The others stay in the order of their use.
        if let Some(best) = (0..templates.len()).rev().max_by_key(|&at| first.fits(&templates[at])) {
            templates[..=best].rotate_right(1);
        }
        let captures = BTreeSet::from([capture.to_owned()]);
        let flow = Self { path: base.base_path(), templates, flows: 1, packets, heaviest: packets, captures };
        (!flow.templates.is_empty()).then_some(flow)
    }

    /// Takes another flow in, if one base does for both; `hosts` may differ if IR-CR packets can say them.
    fn take(&mut self, other: &Self, hosts: bool) -> bool {
        if !is_alike(&self.path, &other.path, hosts) || self.templates.len() != other.templates.len() {
            return false;
        }
        let packets = (self.packets + other.packets) / (self.flows + other.flows);
        let (heavy, light) = if other.heaviest > self.heaviest { (other, &*self) } else { (&*self, other) };
        let joined: Option<Vec<_>> = heavy
            .templates
            .iter()
            .map(|template| {
                let twin = light.templates.iter().find(|twin| twin.shape() == template.shape())?;
                let (token_mode, token) = template.token_with(twin, packets)?;
                Some(Template { token_mode, token, ..template.clone() })
            })
            .collect();
        let Some(templates) = joined else { return false };
        let (path, heaviest) = (heavy.path, heavy.heaviest);
        (self.path, self.heaviest, self.templates) = (path, heaviest, templates);
        self.flows += other.flows;
        self.packets += other.packets;
        self.captures.extend(other.captures.iter().cloned());
        true
    }

    pub(super) fn to_base(&self) -> Base {
        let mut base = Base::new(&self.path);
        for template in &self.templates {
            // They have had room in a base before.
            base.push(&BaseTemplate {
                message_type: template.message_type,
                code: template.code,
                message_id: template.message_id,
                token_mode: template.token_mode,
                token: &template.token,
                outline: &template.outline,
            });
        }
        base
    }

    /// Where it comes from.
    pub(super) fn comment(&self) -> String {
        let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let captures: Vec<_> = self.captures.iter().map(|name| name.replace(char::is_control, "?")).collect();
        format!("{}, {}: {}", count(self.flows, "flow"), count(self.packets, "packet"), captures.join(", "))
    }
}

/// Flows that one base does for, as one; those for most flows first. Ports of clients cost two octets and are always
/// merged. Hosts cost four or eight, so they are merged only if there are more than `most` bases otherwise.
pub(super) fn merged(flows: Vec<Flow>, most: usize) -> Vec<Flow> {
    let mut merged = join(flows, false);
    if merged.len() > most {
        merged = join(merged, true);
    }
    // What is equal stays in the order in which it was seen.
    merged.sort_by_key(|flow| std::cmp::Reverse((flow.flows, flow.packets)));
    merged
}

fn join(flows: Vec<Flow>, hosts: bool) -> Vec<Flow> {
    let mut joined: Vec<Flow> = Vec::new();
    for flow in flows {
        if !joined.iter_mut().any(|one| one.take(&flow, hosts)) {
            joined.push(flow);
        }
    }
    joined
}

/// Whether an IR-CR packet can say what one path differs in from the other. Flow Labels are told apart by nothing: a
/// host gives each of its flows another one (RFC 6437, section 3).
fn is_alike(a: &BasePath, b: &BasePath, hosts: bool) -> bool {
    let prefix = match (hosts, a.v6) {
        (false, _) => 16,
        (true, true) => 8,
        (true, false) => 0,
    };
    let end = |a: &BaseEnd, b: &BaseEnd| {
        let same_port = a.port == b.port || a.port >= EPHEMERAL && b.port >= EPHEMERAL;
        a.address[..prefix] == b.address[..prefix] && same_port
    };
    let rest = |path: &BasePath| (path.v6, path.tos, path.ttl, path.df, path.checksum as u8);
    rest(a) == rest(b) && end(&a.source, &b.source) && end(&a.destination, &b.destination)
}
