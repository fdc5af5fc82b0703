//! Merging of bases that differ only in fields an IR-CR packet sends anyway, above all ports.

use std::collections::BTreeSet;

use thinair_rohc::profile::coap::{Base, BaseEnd, BasePath, BaseTemplate, MessageIdMode, TokenMode};
use thinair_wire::header::coap::{Code, Type};

/// Lowest port that is assumed to be ephemeral, different for each flow of a client. Systems that follow RFC
/// 6335, section 6, use ports from 49152, Linux from 32768.
const EPHEMERAL: u16 = 32_768;

/// Maximum total of token octets that a merged base may add to a flow, if it sends the token in every packet:
/// about the extra cost of IR packets over IR-CR packets.
const WORTH: u64 = 128;

/// The first message of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct FirstMessage {
    head: [u8; 2],
    options: Vec<u8>,
}

impl FirstMessage {
    /// Reads the header of a CoAP message.
    pub(super) fn of(message: &[u8]) -> Self {
        let (Some(&first), Some(&code)) = (message.first(), message.get(1)) else { return Self::default() };
        let options = message.get(4 + usize::from(first & 0x0F)..).unwrap_or_default();
        Self { head: [first >> 4 & 0b11, code], options: options.to_vec() }
    }

    /// Quality of a template for this message; higher is better.
    fn fits(&self, template: &EditableTemplate) -> u8 {
        let same_head = self.head == [template.message_type as u8, template.code.0];
        let same_options = self.options.starts_with(&template.outline);
        u8::from(same_head) + u8::from(same_head && same_options)
    }
}

/// An editable template.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EditableTemplate {
    message_type: Type,
    code: Code,
    message_id: MessageIdMode,
    token_mode: TokenMode,
    token: Vec<u8>,
    outline: Vec<u8>,
}

impl EditableTemplate {
    /// Properties that must be equal in templates that are merged.
    fn shape(&self) -> (u8, u8, &[u8]) {
        (self.message_type as u8, self.code.0, &self.outline)
    }

    /// Token of the merged template, with the mode of `self` if the modes differ; `None` if no mode fits
    /// both. With `packets` packets per flow, an irregular token is accepted if it costs little enough.
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

/// A base learned from one or several similar flows.
#[derive(Clone, Debug)]
pub(super) struct LearnedFlow {
    path: BasePath,
    templates: Vec<EditableTemplate>,
    /// Number of flows and packets it was learned from, and packets of the flow that is its model.
    flows: u64,
    packets: u64,
    heaviest: u64,
    captures: BTreeSet<String>,
}

impl LearnedFlow {
    /// Returns the base of one flow; `None` if nothing was learned.
    pub(super) fn new(base: &Base, packets: u64, first: &FirstMessage, capture: &str) -> Option<Self> {
        let mut templates: Vec<_> = base
            .templates()
            .map(|template| EditableTemplate {
                message_type: template.message_type,
                code: template.code,
                message_id: template.message_id,
                token_mode: template.token_mode,
                token: template.token.to_vec(),
                outline: template.outline.to_vec(),
            })
            .collect();
        // The others keep the order of their use.
        if let Some(best) = (0..templates.len()).rev().max_by_key(|&at| first.fits(&templates[at])) {
            templates[..=best].rotate_right(1);
        }
        let captures = BTreeSet::from([capture.to_owned()]);
        let flow = Self { path: base.base_path(), templates, flows: 1, packets, heaviest: packets, captures };
        (!flow.templates.is_empty()).then_some(flow)
    }

    /// Merges another flow into this one, if one base suits both. `hosts` allows different hosts if IR-CR
    /// packets can send them.
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
                Some(EditableTemplate { token_mode, token, ..template.clone() })
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
            // The template had room in a base before.
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

    /// Comment that names the origin of the base.
    pub(super) fn comment(&self) -> String {
        let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let captures: Vec<_> = self.captures.iter().map(|name| name.replace(char::is_control, "?")).collect();
        format!("{}, {}: {}", count(self.flows, "flow"), count(self.packets, "packet"), captures.join(", "))
    }
}

/// Merges flows that one base suits, and sorts them by number of flows, largest first. Ports of clients cost
/// two octets and are always merged. Hosts cost four or eight octets and are merged only if more than `most`
/// bases would remain.
pub(super) fn merged(flows: Vec<LearnedFlow>, most: usize) -> Vec<LearnedFlow> {
    let mut merged = join(flows, false);
    if merged.len() > most {
        merged = join(merged, true);
    }
    // Equal elements keep their order of appearance.
    merged.sort_by_key(|flow| std::cmp::Reverse((flow.flows, flow.packets)));
    merged
}

fn join(flows: Vec<LearnedFlow>, hosts: bool) -> Vec<LearnedFlow> {
    let mut joined: Vec<LearnedFlow> = Vec::new();
    for flow in flows {
        if !joined.iter_mut().any(|one| one.take(&flow, hosts)) {
            joined.push(flow);
        }
    }
    joined
}

/// True if an IR-CR packet can send all differences between two paths. Flow Labels are ignored: a host uses a
/// new one for each flow (RFC 6437, section 3).
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
