//! Protection of messages. RFC 8613, sections 4, 5 and 8.

use alloc::vec::Vec;

use ccm::aead::{AeadInOut, Tag};

use super::context::Context;
use super::keys::{Aead, with_cipher};
use super::nonce::{Aad, Id, NONCE, nonce};
use super::window::ReplayWindow;
use super::{OscoreError, OscoreOption, key_exchange};
use crate::code::{self, Code};
use crate::message::split;
use crate::number;
use crate::option::{OptionList, Options};

/// Octets of the tag.
const TAG: usize = 8;

/// Binding of a response to its request: the Partial IV of the request. RFC 8613, section 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding(pub(super) u64);

/// A protected message: outer code, outer options, ciphertext.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// Outer code.
    pub code: Code,
    /// Outer options, with the OSCORE option.
    pub options: OptionList,
    /// Ciphertext.
    pub payload: Vec<u8>,
}

/// An unprotected message: code, options and payload as the other end has written them, and options of the outer message that
/// are not protected (Class U).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unprotected {
    /// Code.
    pub code: Code,
    /// Plaintext, with the code in front.
    octets: Vec<u8>,
    /// End of the options.
    options: usize,
    /// Start of the payload.
    payload: usize,
    /// Partial IV, if the message has one.
    pub partial_iv: Option<u64>,
}

impl Unprotected {
    /// Returns the options.
    pub fn options(&self) -> Options<'_> {
        Options::walked(self.octets.get(1..self.options).unwrap_or_default())
    }

    /// Returns the payload; empty if there is none.
    pub fn payload(&self) -> &[u8] {
        self.octets.get(self.payload..).unwrap_or_default()
    }
}

impl Context {
    /// Returns the largest number of octets that protection adds to a message.
    pub(crate) fn overhead(&self) -> usize {
        // The head of the option, the code within, the tag, and the marker of the ciphertext; an outer Observe; EDHOC.
        let message_3 = self.message_3.as_ref().map_or(0, |message_3| 1 + message_3.len());
        3 + OscoreOption::MOST + self.id_context().map_or(0, <[u8]>::len) + 1 + TAG + 1 + 4 + message_3
    }

    /// Protects a request. `None` if no Sender Sequence Number is left, none could be reserved, or the message has more than
    /// 65,535 octets. RFC 8613, section 8.1.
    pub fn protect_request(
        &mut self,
        method: Code,
        options: &Options<'_>,
        payload: &[u8],
    ) -> Option<(Protected, Binding)> {
        let number = self.take_number()?;
        let value = OscoreOption {
            partial_iv: Some(number),
            kid_context: self.id_context(),
            kid: Some(self.sender_id.octets()),
        };
        let aad = Aad::new(&self.sender_id, number);
        let nonce = nonce(self.keys.common_iv, &self.sender_id, number);
        let mut protected = self.protect(method, options, payload, &value, &nonce, &aad)?;
        if let Some(message_3) = &self.message_3 {
            protected.options.push(number::EDHOC, &[]);
            protected.payload = key_exchange::join(message_3, &protected.payload);
        }
        Some((protected, Binding(number)))
    }

    /// Protects a response: with the nonce of the request if that has protected none yet, otherwise with a Partial IV of its
    /// own. `None` as for a request. RFC 8613, section 8.3.
    pub fn protect_response(
        &mut self,
        request: Binding,
        response: Code,
        options: &Options<'_>,
        payload: &[u8],
    ) -> Option<Protected> {
        let Binding(number) = request;
        let aad = Aad::new(&self.recipient_id, number);
        let is_first = self.window.as_mut().is_some_and(|window| window.answer(number));
        let (value, nonce) = if is_first {
            (OscoreOption::default(), nonce(self.keys.common_iv, &self.recipient_id, number))
        } else {
            let number = self.take_number()?;
            let value = OscoreOption { partial_iv: Some(number), ..OscoreOption::default() };
            (value, nonce(self.keys.common_iv, &self.sender_id, number))
        };
        self.protect(response, options, payload, &value, &nonce, &aad)
    }

    #[inline]
    fn protect(
        &self,
        code: Code,
        options: &Options<'_>,
        payload: &[u8],
        value: &OscoreOption<'_>,
        nonce: &[u8; NONCE],
        aad: &Aad,
    ) -> Option<Protected> {
        // Most messages have inner options alone, which are copied as they are.
        let is_inner =
            options.iter().all(|option| option.number != number::OBSERVE && !is_outer(option.number));
        let (mut list, mut divided, mut is_observed) = (OptionList::new(), None, false);
        if !is_inner {
            let inner = divided.insert(OptionList::new());
            for option in options.iter() {
                match option.number {
                    number::OBSERVE => {
                        is_observed = true;
                        list.push(number::OBSERVE, option.value);
                        // Its value in a notification is empty: section 4.1.3.5.2.
                        let value = if code.class() == 0 { option.value } else { &[] };
                        inner.push(number::OBSERVE, value);
                    }
                    number if is_outer(number) => list.push(number, option.value),
                    number => inner.push(number, option.value),
                }
            }
        }
        let inner = divided.as_ref().map_or(options.octets(), OptionList::octets);
        // Section 4.2.
        let outer = match (code.class(), is_observed) {
            (0, false) => Code::POST,
            (0, true) => code::FETCH,
            (_, false) => Code::CHANGED,
            (_, true) => Code::CONTENT,
        };
        list.push(number::OSCORE, value.encode(&mut [0; OscoreOption::ROOM])?);
        let mut octets = Vec::with_capacity(1 + inner.len() + 1 + payload.len() + TAG);
        octets.push(code.0);
        octets.extend_from_slice(inner);
        if !payload.is_empty() {
            octets.push(0xFF);
            octets.extend_from_slice(payload);
        }
        let plaintext = octets.as_mut_slice().into();
        let tag = with_cipher(&self.keys.sender, |cipher| {
            cipher.encrypt_inout_detached(&(*nonce).into(), aad.octets(), plaintext)
        });
        octets.extend_from_slice(&tag.ok()?);
        Some(Protected { code: outer, options: list, payload: octets })
    }

    /// Unprotects a request, and marks its Partial IV as received. RFC 8613, section 8.2.
    ///
    /// **While the context [`is_unsynchronized`](Self::is_unsynchronized), the request may be a repetition**: it is fresh only
    /// if it echoes a value that was sent after the restart, and then [`synchronize`](Self::synchronize) follows.
    ///
    /// # Errors
    /// The request is to be rejected.
    pub fn unprotect_request(
        &mut self,
        options: &Options<'_>,
        payload: &[u8],
    ) -> Result<(Unprotected, Binding), OscoreError> {
        let (value, others) = outer_options(options)?;
        let number = value.partial_iv.ok_or(OscoreError::Malformed)?;
        if self.window.is_some_and(|window| !window.allows(number)) {
            return Err(OscoreError::Replayed);
        }
        let nonce = nonce(self.keys.common_iv, &self.recipient_id, number);
        let aad = Aad::new(&self.recipient_id, number);
        let request = self.unprotect(others, payload, &nonce, &aad)?;
        if let Some(window) = &mut self.window {
            window.receive(number);
        }
        Ok((Unprotected { partial_iv: Some(number), ..request }, Binding(number)))
    }

    /// True if a restart has lost the replay window: a request may be a repetition.
    pub const fn is_unsynchronized(&self) -> bool {
        self.window.is_none()
    }

    /// Starts the replay window with a request that is known to be fresh. RFC 8613, appendix B.1.2.
    pub const fn synchronize(&mut self, request: Binding) {
        self.window = Some(ReplayWindow::starting_at(request.0));
    }

    /// Unprotects the response to a request: it shows that the other end has the keys. RFC 8613, section 8.4.
    ///
    /// # Errors
    /// The response is to be ignored.
    pub fn unprotect_response(
        &mut self,
        request: Binding,
        options: &Options<'_>,
        payload: &[u8],
    ) -> Result<Unprotected, OscoreError> {
        let (value, others) = outer_options(options)?;
        let nonce = match value.partial_iv {
            Some(number) => nonce(self.keys.common_iv, &self.recipient_id, number),
            None => nonce(self.keys.common_iv, &self.sender_id, request.0),
        };
        let aad = Aad::new(&self.sender_id, request.0);
        let response = self.unprotect(others, payload, &nonce, &aad)?;
        self.message_3 = None;
        Ok(Unprotected { partial_iv: value.partial_iv, ..response })
    }

    /// Unprotects a message. `outer`: its options, unless there is the OSCORE option alone.
    #[inline]
    fn unprotect(
        &self,
        outer: Option<&Options<'_>>,
        payload: &[u8],
        nonce: &[u8; NONCE],
        aad: &Aad,
    ) -> Result<Unprotected, OscoreError> {
        let (ciphertext, tag) = payload.split_last_chunk::<TAG>().ok_or(OscoreError::Malformed)?;
        let mut octets = ciphertext.to_vec();
        let (buffer, tag) = (octets.as_mut_slice().into(), Tag::<Aead>::from(*tag));
        let opened = with_cipher(&self.keys.recipient, |cipher| {
            cipher.decrypt_inout_detached(&(*nonce).into(), aad.octets(), buffer, &tag)
        });
        opened.map_err(|_| OscoreError::Forged)?;
        let (code, rest) = octets.split_first().ok_or(OscoreError::Malformed)?;
        let (inner, inner_payload) = split(rest, |_| {}).map_err(|_| OscoreError::Malformed)?;
        // An outer option of which there is an inner one is discarded: section 8.2.
        let unprotected =
            |number| is_outer(number) && number != number::OSCORE && inner.first(number).is_none();
        let (code, payload) = (Code(*code), inner_payload.len());
        if let Some(outer) = outer.filter(|outer| outer.iter().any(|option| unprotected(option.number))) {
            let mut merged = OptionList::copied(&inner);
            let outer = outer.iter().filter(|option| unprotected(option.number));
            outer.for_each(|option| merged.push(option.number, option.value));
            octets = [&[code.0], merged.octets(), inner_payload].concat();
            let options = octets.len() - payload;
            return Ok(Unprotected { code, options, payload: options, octets, partial_iv: None });
        }
        let options = 1 + inner.octets().len();
        Ok(Unprotected { code, options, payload: octets.len() - payload, octets, partial_iv: None })
    }
}

/// Returns the value of the OSCORE option, and the options if there are others.
fn outer_options<'o>(
    options: &'o Options<'_>,
) -> Result<(OscoreOption<'o>, Option<&'o Options<'o>>), OscoreError> {
    let (mut value, mut others) = (None, None);
    for option in options.iter() {
        match option.number {
            number::OSCORE if value.is_none() => value = Some(option.value),
            _ => others = Some(options),
        }
    }
    Ok((OscoreOption::read(value.ok_or(OscoreError::Malformed)?)?, others))
}

/// True for an option of Class U alone: it is read by proxies, and not protected. RFC 8613, figure 5; RFC 8768, section 5.
const fn is_outer(number: u16) -> bool {
    matches!(
        number,
        number::URI_HOST
            | number::URI_PORT
            | number::OSCORE
            | number::HOP_LIMIT
            | number::PROXY_URI
            | number::PROXY_SCHEME
    )
}

/// Returns the ID in an option, if it is short enough to be that of a context.
pub(super) fn kid(value: &OscoreOption<'_>) -> Option<Id> {
    Id::new(value.kid?)
}
