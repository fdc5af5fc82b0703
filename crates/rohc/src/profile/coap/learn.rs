//! Learning from traffic at the compressor: the template of a packet, and the behavior of its fields. Section 5 of
//! `docs/coap-profile.md`.
//!
//! Learning never changes the meaning of a packet: the context defines the behavior of fields, and packets define the
//! context.

use thinair_wire::header::coap::{CoapOption, CoapOptions, CoapOptionsEnd};

use super::compress::{CoapSenderContext, CoapSenderMemory};
use super::header::{self, near};
use super::message::{CoapMessage, partial_iv, uint};
use super::outline::{Class, Entries, HoleKind, Holes, MAX_DYNAMIC, MAX_OUTLINE, OBSERVE_MASK, append};
use super::state::{CoapToken, MessageIdMode, Template, TokenMode};
use super::trial::Trial;
use super::{Carries, HeaderFields, OBSERVE};
use crate::compressor::CompressorConfig;
use crate::compressor::Refused;
use crate::exchange::CoapExchange;

/// Option Numbers. RFC 7959, section 2.1; RFC 8613, section 2.
const BLOCK2: u16 = 23;
const BLOCK1: u16 = 27;
const OSCORE: u16 = 9;

/// Options that change with the content of a resource: ETag, Max-Age, Size2, Size1. RFC 7252, section 5.10; RFC 7959, section 4.
const OF_CONTENT: [u16; 4] = [4, 14, 28, 60];

/// Increase of the misses of a template for a wrong prediction; a correct one subtracts 1.
pub(super) const MISS: u8 = 4;

/// Number of misses from which on a field counts as behaving in another way.
pub(super) const TOO_MANY: u8 = 10;

/// Number of packets with equal unexpected steps after which a template is created for them.
const STEPS: u8 = 3;

/// Number of templates of one shape, each used once, that show that an option changes from packet to packet; and number of those
/// that differ, used once or more, in options alone that change with the content.
const USED_ONCE: usize = 8;
const OTHER_CONTENTS: usize = 1;

/// Number of blocks of a transfer up to which an octet for the Block option in each costs less than a template for the last one, which is
/// defined anew in each of several packets as long as nothing acknowledges it.
const SHORT_TRANSFER: u8 = 12;

impl CoapSenderContext {
    /// Chooses the template that encodes a packet best. Creates or changes one if none is good.
    #[inline]
    pub(super) fn choose<'p>(
        &mut self,
        message: &CoapMessage<'p>,
        trial: &mut Trial<'p>,
        config: &CompressorConfig,
        memory: &mut CoapSenderMemory<'_, '_>,
    ) -> Result<(), Refused> {
        let fits = self.try_on(message, trial, memory);
        if fits && trial.is_as_good_as_any() {
            if !trial.x.carries.port {
                self.hit(trial, config, memory);
            }
            return Ok(());
        }
        self.choose_among_all(fits, message, trial, config, memory)
    }

    /// [`choose`](Self::choose) if the template of the last packet is not perfect, or does not fit at all.
    #[inline(never)]
    fn choose_among_all<'p>(
        &mut self,
        fits: bool,
        message: &CoapMessage<'p>,
        trial: &mut Trial<'p>,
        config: &CompressorConfig,
        memory: &mut CoapSenderMemory<'_, '_>,
    ) -> Result<(), Refused> {
        let current = self.shared.current;
        let mut best = fits.then_some(*trial);
        for number in self.shared.numbers().filter(|&number| number != current) {
            let Some(trial) = self.trial(number, message, memory) else { continue };
            if best.is_none_or(|best| trial.cost() < best.cost()) {
                best = Some(trial);
            }
        }
        let number = match best {
            Some(mut best) if !best.other_token => {
                let changed = if best.is_perfect() {
                    self.hit(&mut best, config, memory);
                    None
                } else {
                    self.miss(&best, message, config, memory)
                };
                *trial = best;
                let Some(number) = changed else { return Ok(()) };
                number
            }
            near => self.adopt(message, near.map(|trial| trial.x.template), config, memory)?,
        };
        let changed = self.trial(number, message, memory).filter(|trial| !trial.other_token);
        *trial = changed.ok_or(Refused::ByThisPacket)?;
        Ok(())
    }

    /// Records a correct prediction.
    #[inline(always)]
    fn hit(
        &mut self,
        trial: &mut Trial<'_>,
        config: &CompressorConfig,
        memory: &mut CoapSenderMemory<'_, '_>,
    ) {
        let Some(template) = self.shared.template_mut(trial.x.template, memory.templates) else { return };
        template.misses = template.misses.saturating_sub(1);
        if template.is_plain() && template.message_id != MessageIdMode::Irregular {
            return;
        }
        self.promote(&mut trial.x, config, memory);
    }

    /// Checks whether a field that every packet carries has begun to count.
    fn promote(
        &mut self,
        x: &mut HeaderFields<'_>,
        config: &CompressorConfig,
        memory: &mut CoapSenderMemory<'_, '_>,
    ) {
        let before = core::mem::replace(&mut self.last_message_id, x.message_id);
        let Some(template) = self.shared.template(x.template, memory.templates) else { return };
        let steps = x.msn.wrapping_sub(template.used);
        if template.message_id == MessageIdMode::Irregular && Template::is_own(x.message_type) {
            let counts = u32::from(x.message_id.wrapping_sub(before)) == steps & 0xFFFF;
            if self.runs(x.template, counts, memory) {
                self.redefine(x.template, config, memory, |template| {
                    template.message_id = MessageIdMode::Counted;
                });
            }
            return;
        }
        let mut dynamic = x.holes.as_slice().iter().zip(x.numbers);
        let Some((hole, number)) =
            dynamic.find(|(hole, _)| matches!(hole.kind, HoleKind::Lsb | HoleKind::Step(_)))
        else {
            return;
        };
        if hole.kind != HoleKind::Lsb {
            if !self.is_trusted() {
                x.holes = self
                    .reclass(x.template, config, memory, |class, _| is_step(&class).then_some(Class::Lsb));
            }
            return;
        }
        let counts = number == template.last.wrapping_add(steps) & OBSERVE_MASK;
        let step = number.wrapping_sub(self.shared.last_number) & OBSERVE_MASK;
        let same_step = step == u32::from(template.step);
        if let Some(template) = self.shared.template_mut(x.template, memory.templates) {
            template.last = number;
            template.step = step.min(255) as u8;
        }
        if self.is_clean() && self.shared.path.switching {
            if self.steps(x.template, same_step && step < 255, memory) {
                x.holes = self.reclass(x.template, config, memory, |class, _| {
                    (class == Class::Lsb).then_some(Class::Step(step as u8))
                });
            }
        } else if self.runs(x.template, counts, memory) {
            x.holes = self.reclass(x.template, config, memory, |class, _| {
                (class == Class::Lsb).then_some(Class::Counted)
            });
        }
    }

    /// Counts a run of a template, and returns true if it is long enough.
    fn runs(&mut self, number: u8, goes_on: bool, memory: &mut CoapSenderMemory<'_, '_>) -> bool {
        let Some(template) = self.shared.template_mut(number, memory.templates) else { return false };
        template.run = if goes_on { template.run.saturating_add(1) } else { 0 };
        let is_long = template.run >= 1 << template.patience;
        if is_long {
            template.run = 0;
            template.patience = (template.patience + 1).min(7);
        }
        is_long
    }

    /// Counts a run of equal steps, and returns true if it is long enough.
    fn steps(&mut self, number: u8, goes_on: bool, memory: &mut CoapSenderMemory<'_, '_>) -> bool {
        let Some(template) = self.shared.template_mut(number, memory.templates) else { return false };
        template.run = if goes_on { template.run.saturating_add(1) } else { 0 };
        let is_long = template.run >= STEPS;
        if is_long {
            template.run = 0;
        }
        is_long
    }

    /// Handles a number with another step from the last one. If that is repeated, the packets get a template of their
    /// own.
    fn other_step(
        &mut self,
        trial: &Trial<'_>,
        config: &CompressorConfig,
        memory: &mut CoapSenderMemory<'_, '_>,
    ) -> Option<u8> {
        let x = &trial.x;
        let mut dynamic = x.holes.as_slice().iter().zip(x.numbers);
        let (_, number) = dynamic.find(|(hole, _)| matches!(hole.kind, HoleKind::Step(_)))?;
        let step = number.wrapping_sub(self.shared.last_number) & OBSERVE_MASK;
        let template = self.shared.template_mut(x.template, memory.templates)?;
        let again = u32::from(template.step) == step;
        template.run = if again { template.run.saturating_add(1) } else { 1 };
        template.step = step.min(255) as u8;
        if template.run < STEPS || step >= 255 {
            return None;
        }
        template.run = 0;
        let template = *template;
        let mut room = [0; MAX_OUTLINE];
        let mut len = 0;
        for entry in Entries::new(self.shared.outline(&template)) {
            let class = if is_step(&entry.class) { Class::Step(step as u8) } else { entry.class };
            append(&mut room, &mut len, entry.delta, &class);
        }
        let free = self.shared.free_number()?;
        let template = Template { left: config.repetitions, uses: 0, misses: 0, ..template };
        self.define(free, &template, &room[..len], memory).then_some(free)
    }

    /// Records a wrong prediction. After several, the field gets another encoding; returns the number of the template
    /// that was changed.
    fn miss(
        &mut self,
        trial: &Trial<'_>,
        message: &CoapMessage<'_>,
        config: &CompressorConfig,
        memory: &mut CoapSenderMemory<'_, '_>,
    ) -> Option<u8> {
        let x = &trial.x;
        let number = x.template;
        let unsettled = self.is_unsettled();
        let first = self.is_first();
        let template = self.shared.template(number, memory.templates)?;
        let carries = x.carries;
        if template.refers && self.request(message, memory).is_none() {
            // The message that it answers was lost, which does not predict later answers.
            return None;
        }
        let renames = carries.request && !template.names;
        // Where a flow begins, nothing predicts its values; but if each flow ends at once, this shows it.
        let begins = carries.port || self.former.is_new(template.used);
        let first = first || begins && !self.former.has_singles();
        if !(carries.message_id || carries.token || carries.numbers || renames) || first {
            return None;
        }
        let numbers_alone = carries == (Carries { numbers: true, ip_id: carries.ip_id, ..Carries::NOTHING });
        if numbers_alone && x.holes.has_step() && self.is_trusted() {
            return self.other_step(trial, config, memory);
        }
        let template = self.shared.template_mut(number, memory.templates)?;
        template.misses = template.misses.saturating_add(MISS);
        if template.misses < TOO_MANY && !unsettled {
            return None;
        }
        template.misses = 0;
        if renames && !(carries.message_id || carries.token || carries.numbers) {
            self.redefine(number, config, memory, |template| template.names = true);
            return Some(number);
        }
        let request = self.request(message, memory).copied();
        if carries.message_id {
            let mode = match self.shared.template(number, memory.templates)?.message_id {
                MessageIdMode::Counted if request.is_some() && !Template::is_own(x.message_type) => {
                    MessageIdMode::OfRequest
                }
                _ => MessageIdMode::Irregular,
            };
            self.redefine(number, config, memory, |template| {
                template.message_id = mode;
                template.names &= mode == MessageIdMode::OfRequest;
            });
        }
        if carries.token {
            let of_request = request.is_some_and(|request| request.token() == message.token);
            let (msn, new) = (x.msn, message.token);
            self.redefine(number, config, memory, |template| {
                let counted = CoapToken::of_uint(header::counted_token(template, msn), new.len);
                template.token_mode = match template.token_mode {
                    // It has wrapped around, and has kept its length.
                    TokenMode::CountedUint if counted == new && new.len > 0 => TokenMode::Counted,
                    TokenMode::Counted | TokenMode::CountedUint if of_request => TokenMode::OfRequest,
                    _ => TokenMode::Irregular,
                };
                template.token = match template.token_mode {
                    TokenMode::Counted => CoapToken { len: new.len, ..template.token },
                    _ => CoapToken::of_uint(0, new.len),
                };
            });
        }
        if carries.numbers {
            let block = request.and_then(|request| request.block());
            let last = self.shared.last_number;
            self.reclass(number, config, memory, |class, value| match class {
                Class::Counted | Class::Step(_) => Some(Class::Lsb),
                Class::Lsb if near(value, last) != value => Some(Class::Variable),
                Class::Block(low) if block == Some(value) => Some(Class::BlockOfRequest(low)),
                Class::BlockOfRequest(low) if block.is_none_or(|block| block != value) => {
                    Some(Class::Block(low))
                }
                Class::Block(_) | Class::PartialIv(..) => Some(Class::Variable),
                _ => None,
            });
        }
        Some(number)
    }

    /// Sets the new definition of a number. False if there is no room for it.
    fn define(
        &mut self,
        number: u8,
        template: &Template,
        outline: &[u8],
        memory: &mut CoapSenderMemory<'_, '_>,
    ) -> bool {
        self.again &= !(1 << (number & 0xF));
        self.changed();
        let mut template = *template;
        template.settle(outline);
        self.shared.define(number, &template, outline, memory.templates)
    }

    /// Changes a template.
    fn redefine(
        &mut self,
        number: u8,
        config: &CompressorConfig,
        memory: &mut CoapSenderMemory<'_, '_>,
        change: impl FnOnce(&mut Template),
    ) {
        let Some(&(mut template)) = self.shared.template(number, memory.templates) else { return };
        change(&mut template);
        template.left = config.repetitions;
        template.anchors_left = config.repetitions;
        let mut room = [0; MAX_OUTLINE];
        let outline = self.shared.outline(&template);
        let len = outline.len();
        room[..len].copy_from_slice(outline);
        self.define(number, &template, &room[..len], memory);
    }

    /// Changes classes of a template's options, and returns those. `change` gets the class and the last number of a
    /// packet for it.
    #[cold]
    fn reclass(
        &mut self,
        number: u8,
        config: &CompressorConfig,
        memory: &mut CoapSenderMemory<'_, '_>,
        mut change: impl FnMut(Class<'_>, u32) -> Option<Class<'static>>,
    ) -> Holes {
        let Some(&template) = self.shared.template(number, memory.templates) else { return Holes::NONE };
        let mut room = [0; MAX_OUTLINE];
        let mut len = 0;
        for entry in Entries::new(self.shared.outline(&template)) {
            let class = change(entry.class, self.shared.last_number);
            append(&mut room, &mut len, entry.delta, &class.unwrap_or(entry.class));
        }
        let template = Template { left: config.repetitions, anchors_left: config.repetitions, ..template };
        self.define(number, &template, &room[..len], memory);
        Holes::of(&room[..len], MAX_DYNAMIC as u8)
    }

    /// Creates a template for a packet that no template fits, or that one fits except for its token.
    fn adopt(
        &mut self,
        message: &CoapMessage<'_>,
        near: Option<u8>,
        config: &CompressorConfig,
        memory: &mut CoapSenderMemory<'_, '_>,
    ) -> Result<u8, Refused> {
        let mut options = CoapOptions::new(message.rest);
        let observes = options.any(|option| option.number == OBSERVE) && message.code.class() >= 2;
        if options.into_end() == CoapOptionsEnd::MarkerWithoutPayload {
            return Err(Refused::ByThisPacket);
        }
        let request = self.request(message, memory).copied();
        if let Some(number) = near.filter(|_| !observes) {
            self.other_token(number, message, request, config, memory);
            return Ok(number);
        }
        if let Some(number) = self.widen(message, config, memory) {
            return Ok(number);
        }
        let mut room = [0; MAX_OUTLINE];
        let len = outline_of(message, request.as_ref(), &mut room).ok_or(Refused::ByThisPacket)?;
        let of_request = request.filter(|_| !Template::is_own(message.message_type));
        // Similar messages show the behavior of its token.
        let like = self.shared.numbers().find_map(|number| {
            let template = self.shared.template(number, memory.templates)?;
            let alike = template.code == message.code && template.message_type == message.message_type;
            (alike && !observes && template.token_mode == TokenMode::Irregular)
                .then_some(TokenMode::Irregular)
        });
        let token_mode = match of_request {
            Some(request) if request.token() == message.token && message.token.len > 0 => {
                TokenMode::OfRequest
            }
            _ => like.unwrap_or_default(),
        };
        let template = Template {
            token: if token_mode == TokenMode::Static {
                message.token
            } else {
                CoapToken::of_uint(0, message.token.len)
            },
            message_type: message.message_type,
            code: message.code,
            token_mode,
            message_id: if of_request.is_some() { MessageIdMode::OfRequest } else { MessageIdMode::Counted },
            used: self.shared.msn,
            left: config.repetitions,
            anchors_left: config.repetitions,
            ..Template::EMPTY
        };
        let number = self.shared.free_number();
        let number = number.or_else(|| self.shared.oldest(memory.templates, [self.shared.current; 2]));
        let number = number.ok_or(Refused::ByThisPacket)?;
        let defined = self.define(number, &template, &room[..len], memory);
        if defined { Ok(number) } else { Err(Refused::ByThisPacket) }
    }

    /// Determines the behavior of a token that was static in its template.
    fn other_token(
        &mut self,
        number: u8,
        message: &CoapMessage<'_>,
        request: Option<CoapExchange>,
        config: &CompressorConfig,
        memory: &mut CoapSenderMemory<'_, '_>,
    ) {
        let Some(&template) = self.shared.template(number, memory.templates) else { return };
        let (old, new) = (template.token, message.token);
        // The MSN follows the Message ID if that counts.
        let trial = self.trial(number, message, memory);
        let msn = trial.map_or(self.shared.msn, |trial| trial.x.msn);
        let steps = u64::from(msn.wrapping_sub(template.used));
        let counts = new.uint().wrapping_sub(old.uint()) == steps && steps > 0 && steps < 256;
        let shortest = |token: &CoapToken| *token == CoapToken::of_shortest_uint(token.uint());
        let mode = if request.is_some_and(|request| request.token() == new) {
            TokenMode::OfRequest
        } else if counts && shortest(&old) && shortest(&new) {
            TokenMode::CountedUint
        } else if counts {
            TokenMode::Counted
        } else {
            TokenMode::Irregular
        };
        self.redefine(number, config, memory, |template| {
            template.token_mode = mode;
            template.token = match mode {
                TokenMode::Counted | TokenMode::CountedUint => CoapToken {
                    octets: new.uint().wrapping_sub(u64::from(msn)).to_be_bytes(),
                    len: if mode == TokenMode::Counted { new.len } else { 0 },
                },
                TokenMode::Static | TokenMode::OfRequest | TokenMode::Irregular => {
                    CoapToken::of_uint(0, new.len)
                }
            };
        });
    }

    /// Merges several templates that were used once each and differ in the value of one option, which therefore
    /// changes from packet to packet; and without feedback those of the blocks of a short transfer. One of them becomes the template of
    /// all.
    fn widen(
        &mut self,
        message: &CoapMessage<'_>,
        config: &CompressorConfig,
        memory: &mut CoapSenderMemory<'_, '_>,
    ) -> Option<u8> {
        let mut room = [0; MAX_OUTLINE];
        let mut found = None;
        let mut once = 0;
        for number in self.shared.numbers() {
            let Some(template) = self.shared.template(number, memory.templates) else { continue };
            let alike = template.code == message.code && template.message_type == message.message_type;
            if !alike {
                continue;
            }
            // The answers of the other end need the number of a request's block.
            let has_short_transfers = template.uses < SHORT_TRANSFER
                && !self.establishment.is_two_way()
                && !Template::is_own(message.message_type);
            let mut scratch = [0; MAX_OUTLINE];
            let merged = merge(self.shared.outline(template), message, has_short_transfers, &mut scratch);
            let Some(Merged { len, is_of_content }) = merged else { continue };
            if !is_of_content && template.uses > 1 {
                continue;
            }
            once += if is_of_content { USED_ONCE / OTHER_CONTENTS } else { 1 };
            let newest = found.is_none_or(|(_, used, _)| template.used.wrapping_sub(used) as i32 >= 0);
            if newest {
                found = Some((number, template.used, len));
                room = scratch;
            }
        }
        let (number, _, len) = found.filter(|_| once >= USED_ONCE)?;
        let &template = self.shared.template(number, memory.templates)?;
        let same_token = template.token_mode != TokenMode::Static || template.token == message.token;
        let same_length = template.has_token_of(message.token.len);
        let template = Template { left: config.repetitions, anchors_left: config.repetitions, ..template };
        if !same_length || !self.define(number, &template, &room[..len], memory) {
            return None;
        }
        if !same_token {
            let request = self.request(message, memory).copied();
            self.other_token(number, message, request, config, memory);
        }
        Some(number)
    }
}

fn is_step(class: &Class<'_>) -> bool {
    matches!(class, Class::Step(_))
}

/// Returns the outline of a message without previous messages.
fn outline_of(message: &CoapMessage<'_>, request: Option<&CoapExchange>, room: &mut [u8]) -> Option<usize> {
    let mut len = 0;
    let mut last = 0;
    let mut dynamic = 0;
    let mut options = CoapOptions::new(message.rest);
    for option in options.by_ref() {
        let class = first_class(&option, message, request);
        let class = if dynamic < MAX_DYNAMIC { class } else { Class::Static(option.value) };
        dynamic += usize::from(!matches!(class, Class::Static(_)));
        append(room, &mut len, u32::from(option.number - last), &class).then_some(())?;
        last = option.number;
    }
    matches!(options.end()?, CoapOptionsEnd::Payload(_) | CoapOptionsEnd::NoPayload).then_some(len)
}

/// Returns the most likely class of an option.
fn first_class<'p>(
    option: &CoapOption<'p>,
    message: &CoapMessage<'_>,
    request: Option<&CoapExchange>,
) -> Class<'p> {
    let value = option.value;
    match option.number {
        // RFC 7641, section 3.4: in notifications it is a sequence number.
        OBSERVE if message.code.class() >= 2 && uint(value, 3).is_some() => Class::Counted,
        BLOCK1 | BLOCK2 => match uint(value, 3) {
            // The first block, and the last: there is nothing to count.
            Some(0..8) => Class::Static(value),
            Some(block) => {
                let of_request = request.and_then(CoapExchange::block) == Some(block >> 4);
                let low = (block & 0x0F) as u8;
                if of_request { Class::BlockOfRequest(low) } else { Class::Block(low) }
            }
            None => Class::Static(value),
        },
        OSCORE => match partial_iv(value) {
            Some(piv) => Class::PartialIv(piv.flags, piv.behind),
            None => Class::Static(value),
        },
        _ => Class::Static(value),
    }
}

/// An outline that fits both a template and a message.
struct Merged {
    len: usize,
    /// They differ in options alone that follow the content.
    is_of_content: bool,
}

/// Returns an outline that fits both a template and a message, if they differ only in values of constant options, or in a block of a short
/// transfer.
fn merge(
    outline: &[u8],
    message: &CoapMessage<'_>,
    has_short_transfers: bool,
    room: &mut [u8],
) -> Option<Merged> {
    let mut options = CoapOptions::new(message.rest);
    let mut len = 0;
    let mut dynamic = 0;
    let (mut differs, mut is_of_content) = (false, true);
    for entry in Entries::new(outline) {
        let option = options.next().filter(|option| option.number == entry.number)?;
        let class = match entry.class {
            class if class.fits(&option) => class,
            Class::Static(value) | Class::Prefix(_, value) => {
                differs = true;
                is_of_content &= OF_CONTENT.contains(&option.number);
                let common = value.iter().zip(option.value).take_while(|(a, b)| a == b).count();
                match u8::try_from(option.value.len()) {
                    Ok(all) if usize::from(all) != entry.class.len() => Class::Variable,
                    Ok(all) if common > 0 => Class::Prefix(all, value.get(..common)?),
                    Ok(all) => Class::Irregular(all),
                    Err(_) => return None,
                }
            }
            Class::Block(_) | Class::BlockOfRequest(_) if has_short_transfers && option.value.len() == 1 => {
                differs = true;
                Class::Irregular(1)
            }
            Class::Irregular(_) if option.value.len() <= 255 => {
                differs = true;
                is_of_content &= OF_CONTENT.contains(&option.number);
                Class::Variable
            }
            _ => return None,
        };
        dynamic += usize::from(!matches!(class, Class::Static(_)));
        append(room, &mut len, entry.delta, &class).then_some(())?;
    }
    let ends = options.next().is_none()
        && matches!(options.end()?, CoapOptionsEnd::Payload(_) | CoapOptionsEnd::NoPayload);
    (ends && differs && dynamic <= MAX_DYNAMIC).then_some(Merged { len, is_of_content })
}

impl Class<'_> {
    /// True if an option has this behavior.
    fn fits(&self, option: &CoapOption<'_>) -> bool {
        let value = option.value;
        match *self {
            Self::Static(its) => its == value,
            Self::Counted | Self::Lsb | Self::Step(_) => {
                uint(value, if option.number == OBSERVE { 3 } else { 4 }).is_some()
            }
            Self::Block(low) | Self::BlockOfRequest(low) => {
                uint(value, 3).is_some_and(|block| block & 0x0F == u32::from(low))
            }
            Self::PartialIv(flags, behind) => {
                partial_iv(value).is_some_and(|piv| (piv.flags, piv.behind) == (flags, behind))
            }
            Self::Irregular(len) => value.len() == usize::from(len),
            Self::Variable => value.len() <= 255,
            Self::Prefix(len, prefix) => value.len() == usize::from(len) && value.starts_with(prefix),
        }
    }

    /// Octets of a constant value or of one with a prefix.
    fn len(&self) -> usize {
        match *self {
            Self::Static(value) => value.len(),
            Self::Prefix(len, _) => usize::from(len),
            _ => 0,
        }
    }
}
