//! Encoding of a packet with a template: its MSN, and the fields that it has to carry. Section 9 of `docs/coap-profile.md`.

use super::compress::{CoapSenderContext, CoapSenderMemory};
use super::header;
use super::message::CoapMessage;
use super::state::{CoapToken, MessageIdMode, PortMode, Template, TokenMode};
use super::{Carries, HeaderFields};
use crate::exchange::CoapExchange;

/// Largest step of the MSN to follow the Message ID. After a larger step the Message ID gets a new anchor.
const REACH: i16 = 200;

/// Largest step of the MSN to follow a message of the other direction. Own Message IDs count as well, and would be left behind by
/// a larger one.
const NEAR: i16 = 8;

/// Largest reordering, in packets, that does not set a new anchor.
const LATE: i16 = -8;

/// A packet as encoded with a template.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial<'p> {
    pub(super) x: HeaderFields<'p>,
    pub(super) payload: &'p [u8],
    /// The token is static in the template, and differs.
    pub(super) other_token: bool,
}

impl Trial<'_> {
    #[inline]
    pub(super) fn new(template: u8) -> Self {
        Self { x: HeaderFields::new(template), payload: &[], other_token: false }
    }

    /// True if nothing but the IP-ID has to be carried.
    #[inline]
    pub(super) fn is_perfect(&self) -> bool {
        !self.other_token && Carries { ip_id: false, ..self.x.carries }.is_nothing()
    }

    /// True if another template would save nothing: the packet carries the IP-ID and the port of the client at most.
    #[inline]
    pub(super) fn is_as_good_as_any(&self) -> bool {
        !self.other_token && Carries { ip_id: false, port: false, ..self.x.carries }.is_nothing()
    }

    /// Approximate number of octets to carry.
    pub(super) fn cost(&self) -> u32 {
        let carries = &self.x.carries;
        u32::from(carries.message_type)
            + 2 * u32::from(carries.message_id)
            + 2 * u32::from(carries.request)
            + 3 * u32::from(carries.numbers)
            + 4 * u32::from(carries.token)
            + 100 * u32::from(self.other_token)
    }
}

impl CoapSenderContext {
    /// Encodes a packet with a template; `None` if the packet has another shape.
    #[inline(never)]
    pub(super) fn trial<'p>(
        &self,
        number: u8,
        message: &CoapMessage<'p>,
        memory: &CoapSenderMemory<'_, '_>,
    ) -> Option<Trial<'p>> {
        let mut trial = Trial::new(number);
        self.try_on(message, &mut trial, memory).then_some(trial)
    }

    /// Sets the encoding of a packet with the template of a new trial; false if the packet has another shape.
    #[inline(always)]
    pub(super) fn try_on<'p>(
        &self,
        message: &CoapMessage<'p>,
        trial: &mut Trial<'p>,
        memory: &CoapSenderMemory<'_, '_>,
    ) -> bool {
        let x = &mut trial.x;
        let Some(template) = self.shared.template(x.template, memory.templates) else { return false };
        let outline = self.shared.outline(template);
        let payload = message.matches(template, outline, x);
        let (Some(payload), true) =
            (payload, Template::is_own(template.message_type) == Template::is_own(message.message_type))
        else {
            return false;
        };
        trial.payload = payload;
        let numbers = x.numbers;
        let names_request = template.refers;
        let request = if names_request { self.request(message, memory) } else { None };
        x.msn = self.msn(x.template, template, message, request);
        x.message_id = message.message_id;
        x.ip_id = message.ip_id;
        x.flow_label = message.path.flow_label;
        x.token = message.token;
        x.checksum = message.checksum;
        x.port = message.path.port();
        x.names_request = names_request;
        if names_request {
            x.request_msn = request.map_or(0, CoapExchange::msn);
            let named = header::named(&self.shared, template, x);
            if let Some(request) = request {
                x.carries.request = request.msn() != named;
            } else {
                x.request_msn = named;
                x.carries.message_id = template.message_id == MessageIdMode::OfRequest;
                x.carries.token = template.token_mode == TokenMode::OfRequest;
                x.carries.numbers = x.holes.of_request();
                // The other end may know a message with that MSN.
                x.carries.port = self.shared.path.port_mode == PortMode::Destination;
            }
        }
        if !header::infer(&self.shared, template, request, x) {
            // The message referred to has no Block option.
            x.carries.numbers = true;
        }
        x.carries.message_type = x.message_type != message.message_type;
        x.message_type = message.message_type;
        x.carries.port |= x.port != message.path.port() || self.needs_port(x);
        x.port = message.path.port();
        x.carries.ip_id |= x.ip_id != message.ip_id && !self.shared.path.v6;
        x.ip_id = message.ip_id;
        x.carries.message_id |= x.message_id != message.message_id;
        x.message_id = message.message_id;
        if x.token != message.token {
            trial.other_token = template.token_mode == TokenMode::Static;
            x.carries.token = true;
            x.token = message.token;
        }
        if !template.is_plain() {
            x.carries.numbers |= x.numbers != numbers;
            x.numbers = numbers;
        }
        true
    }

    /// Finds the message of the other direction that a packet answers or acknowledges.
    pub(super) fn request<'e>(
        &self,
        message: &CoapMessage<'_>,
        memory: &'e CoapSenderMemory<'_, '_>,
    ) -> Option<&'e CoapExchange> {
        let received = memory.received?;
        let port = message.path.port();
        if Template::is_own(message.message_type) {
            received.by_token(self.name.answers(), port, &message.token)
        } else {
            let found = received.by_message_id(self.name.answers(), port, message.message_id);
            // A Message ID is used again; a response has the token of its request (RFC 7252, section 5.3.1).
            found.filter(|found| message.token == CoapToken::EMPTY || message.token == found.token())
        }
    }

    /// Returns the MSN with which the packet carries least: it follows the Message ID, or the message referred to.
    #[inline]
    fn msn(
        &self,
        number: u8,
        template: &Template,
        message: &CoapMessage<'_>,
        request: Option<&CoapExchange>,
    ) -> u32 {
        let last = self.shared.msn;
        let counted = match template.message_id {
            MessageIdMode::Counted if Template::is_own(message.message_type) => {
                Some(message.message_id.wrapping_sub(self.shared.own))
            }
            MessageIdMode::Counted => Some(message.message_id.wrapping_sub(self.shared.echoed)),
            // The packet carries bits for the message, so that the MSN need not follow it. A change gets an MSN of its own, so
            // that an acknowledgment of it confirms the change.
            _ if template.names => Some((last as u16).wrapping_add(u16::from(template.left > 0))),
            MessageIdMode::OfRequest | MessageIdMode::Irregular => {
                request.map(|request| request.msn().wrapping_sub(self.shared.request))
            }
        };
        let token = || match template.token_mode {
            TokenMode::Counted | TokenMode::CountedUint if !template.names => {
                let anchor = u64::from_be_bytes(template.token.octets);
                Some(message.token.uint().wrapping_sub(anchor) as u16)
            }
            _ => None,
        };
        let ahead = counted.or_else(token).map(|msn| msn.wrapping_sub(last as u16) as i16);
        let path = &self.shared.path;
        let reach = match request {
            Some(_) if self.counts_own => NEAR,
            _ => REACH,
        };
        // A Message ID of another flow is near by chance.
        let ahead = ahead.filter(|_| request.is_some() || path.port() == message.path.port());
        let late = if self.is_changing(number, template) { 0 } else { LATE };
        match ahead.filter(|ahead| (late..=reach).contains(ahead)) {
            Some(ahead) => last.wrapping_add_signed(i32::from(ahead)),
            None => last.wrapping_add(1),
        }
    }
}
