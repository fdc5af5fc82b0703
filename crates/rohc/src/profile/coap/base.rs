//! Provisioned bases: contexts of expected flows that both ends have before the first packet. Section 10 of
//! `docs/coap-profile.md`.

use thinair_wire::coder::Word;
use thinair_wire::header::coap::{Code, Type};

use super::outline::is_outline;
use super::state::{
    ChecksumMode, CoapPath, CoapState, CoapToken, FlowLabel, IpIdMode, MessageIdMode, PortMode, Template,
    Templates, TokenMode,
};
use crate::compressor::Ports;

/// Largest number of templates of a base.
const MOST: usize = 6;

/// Octets for the outlines of a base.
const OCTETS: usize = 144;

/// One end of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BaseEnd {
    /// Address. IPv4 uses the first four octets, the others are zero.
    pub address: [u8; 16],
    /// The UDP port.
    pub port: u16,
}

/// The IP and UDP fields of a base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BasePath {
    /// True for IPv6, false for IPv4.
    pub v6: bool,
    /// Sender.
    pub source: BaseEnd,
    /// Receiver.
    pub destination: BaseEnd,
    /// Type of Service, or Traffic Class.
    pub tos: u8,
    /// Time to Live, or Hop Limit.
    pub ttl: u8,
    /// Don't Fragment; false in IPv6.
    pub df: bool,
    /// Flow Label of IPv6, 20 bits.
    pub flow_label: u32,
    /// Treatment of the UDP checksum.
    pub checksum: ChecksumMode,
    /// Behavior of the IP-ID.
    pub ip_id: IpIdMode,
}

/// Messages of one kind in a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseTemplate<'b> {
    /// Type (T).
    pub message_type: Type,
    /// Code.
    pub code: Code,
    /// Behavior of the Message ID.
    pub message_id: MessageIdMode,
    /// Behavior of the token.
    pub token_mode: TokenMode,
    /// The token if it is static; otherwise any octets of its length.
    pub token: &'b [u8],
    /// The options, with holes for dynamic ones: see [`outline`](super::outline).
    pub outline: &'b [u8],
}

/// A provisioned base.
#[derive(Clone, Copy, Debug)]
pub struct Base {
    path: CoapPath,
    templates: [Template; MOST],
    count: u8,
    octets: [u8; OCTETS],
    len: u8,
}

impl PartialEq for Base {
    /// Compares the content, not its place in memory.
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path && self.templates().eq(other.templates())
    }
}

impl Eq for Base {}

impl Base {
    const EMPTY: Self = Self {
        path: CoapState::new().path,
        templates: [Template::EMPTY; MOST],
        count: 0,
        octets: [0; OCTETS],
        len: 0,
    };

    /// Creates a base without templates. [`push`](Self::push) them, beginning with that of the first packet of
    /// a flow.
    pub fn new(path: &BasePath) -> Self {
        let is_server = [path.source.port, path.destination.port].map(|port| Ports::COAP.has(port));
        let path = CoapPath {
            source: path.source.address,
            destination: path.destination.address,
            source_port: path.source.port,
            destination_port: path.destination.port,
            v6: path.v6,
            tos: path.tos,
            ttl: path.ttl,
            df: path.df,
            flow_label: FlowLabel::from_u32(path.flow_label & 0xF_FFFF),
            checksum: path.checksum,
            ip_id_mode: path.ip_id,
            port_mode: PortMode::of_servers(is_server),
            ..CoapPath::default()
        };
        Self { path, ..Self::EMPTY }
    }

    /// Adds a template. False if there is no room for it, or its outline is invalid.
    pub fn push(&mut self, template: &BaseTemplate<'_>) -> bool {
        let (at, len) = (usize::from(self.len), template.outline.len());
        let count = usize::from(self.count);
        let fits = is_outline(template.outline) && template.token.len() <= 8;
        let (Some(slot), Some(room)) = (self.templates.get_mut(count), self.octets.get_mut(at..at + len))
        else {
            return false;
        };
        if !fits {
            return false;
        }
        room.copy_from_slice(template.outline);
        let token = CoapToken::of(template.token);
        *slot = Template {
            // Only the length of a token that is not static is used.
            token: if template.token_mode == TokenMode::Static {
                token
            } else {
                CoapToken::of_uint(0, token.len)
            },
            message_type: template.message_type,
            code: template.code,
            token_mode: template.token_mode,
            message_id: template.message_id,
            at: at as u8,
            ..Template::EMPTY
        };
        slot.settle(template.outline);
        self.len += len as u8;
        self.count += 1;
        true
    }

    /// The IP and UDP fields.
    pub fn base_path(&self) -> BasePath {
        let path = &self.path;
        BasePath {
            v6: path.v6,
            source: BaseEnd { address: path.source, port: path.source_port },
            destination: BaseEnd { address: path.destination, port: path.destination_port },
            tos: path.tos,
            ttl: path.ttl,
            df: path.df,
            flow_label: path.flow_label.to_u32(),
            checksum: path.checksum,
            ip_id: path.ip_id_mode,
        }
    }

    /// Iterates over the templates, in their order.
    pub fn templates(&self) -> impl Iterator<Item = BaseTemplate<'_>> {
        (0..self.count).filter_map(|number| {
            let template = self.templates.get(usize::from(number))?;
            Some(BaseTemplate {
                message_type: template.message_type,
                code: template.code,
                message_id: template.message_id,
                token_mode: template.token_mode,
                token: template.token.octets.get(..usize::from(template.token.len))?,
                outline: self.outline(template),
            })
        })
    }

    fn outline(&self, template: &Template) -> &[u8] {
        let at = usize::from(template.at);
        self.octets.get(at..at + usize::from(template.len)).unwrap_or_default()
    }

    pub(super) fn path(&self) -> CoapPath {
        self.path
    }

    /// Returns a template, settled, and its outline.
    pub(super) fn template(&self, number: u8) -> Option<(Template, &[u8])> {
        let template = self.templates.get(..usize::from(self.count))?.get(usize::from(number))?;
        Some((*template, self.outline(template)))
    }

    /// Defines every template of the base in a context.
    pub(super) fn define_all(&self, state: &mut CoapState, pool: &mut Templates<'_>) -> bool {
        (0..self.count).all(|number| {
            self.template(number)
                .is_some_and(|(template, outline)| state.define(number, &template, outline, pool))
        })
    }

    /// Returns the templates of a context as a base: the most used ones that fit.
    pub(super) fn of(state: &CoapState, pool: &Templates<'_>) -> Self {
        let mut base = Self { path: state.path, ..Self::EMPTY };
        base = Self::new(&base.base_path());
        let mut left: [bool; super::state::TEMPLATES] = [false; super::state::TEMPLATES];
        for number in state.numbers() {
            left[usize::from(number)] = true;
        }
        while let Some(number) = (0..left.len() as u8)
            .filter(|&number| left[usize::from(number)])
            .max_by_key(|&number| (state.template(number, pool).map_or(0, |t| t.uses), u8::MAX - number))
        {
            left[usize::from(number)] = false;
            let Some(template) = state.template(number, pool) else { continue };
            let token = template.token;
            base.push(&BaseTemplate {
                message_type: template.message_type,
                code: template.code,
                message_id: template.message_id,
                token_mode: template.token_mode,
                token: token.octets.get(..usize::from(token.len)).unwrap_or_default(),
                outline: state.outline(template),
            });
        }
        base
    }
}
