//! Changes that a packet makes in its context: how often each has to be sent, and the count after a packet was sent. Section 9 of
//! `docs/coap-profile.md`.

use super::HeaderFields;
use super::compress::CoapSenderContext;
use super::header;
use super::message::CoapMessage;
use super::state::{
    ChecksumMode, FlowLabel, IpIdMode, MessageIdMode, PortMode, Template, Templates, TokenMode,
};
use crate::channel::Integrity;
use crate::compressor::{CompressorConfig, FormatPolicy};
use crate::id::Format;

/// Numbers of template changes in the last 32 packets from which on every short format carries its template, and up to which that
/// ends.
const SWITCHING: (u32, u32) = (6, 1);

/// Fields that a packet carries only after a change: indices in [`Pending`](crate::flow::pending::Pending).
pub(super) mod changes {
    /// The dynamic part of the IP header.
    pub(in super::super) const IP: usize = 0;
    /// The control fields.
    pub(in super::super) const CONTROL: usize = 1;
    /// Anchors of own and of echoed Message IDs.
    pub(in super::super) const OWN: usize = 2;
    pub(in super::super) const ECHOED: usize = 3;
    /// MSN of the other direction minus the own one.
    pub(in super::super) const REQUEST: usize = 4;
    pub(in super::super) const IP_ID: usize = 5;
    /// The template.
    pub(in super::super) const SWITCH: usize = 6;
    /// The port of the client.
    pub(in super::super) const PORT: usize = 7;
    pub(in super::super) const COUNT: usize = 8;
}

impl CoapSenderContext {
    /// Requires that the templates are defined again at a refresh.
    #[cold]
    pub(super) fn refresh_templates(&mut self, templates: &mut Templates<'_>) {
        self.base = None;
        for number in self.shared.numbers() {
            let template = self.shared.template(number, templates);
            let is_known = template.is_some_and(|template| template.left == 0);
            self.again |= u16::from(is_known) << (number & 0xF);
        }
        self.define_again(1, templates);
    }

    /// Requires that every template is defined again at its next use.
    pub(super) fn define_again(&mut self, times: u8, templates: &mut Templates<'_>) {
        for number in self.shared.numbers() {
            if let Some(template) = self.shared.template_mut(number, templates) {
                template.left = template.left.max(times);
            }
        }
    }

    /// Records changes of TOS, TTL, DF and flow label.
    #[inline]
    pub(super) fn note_path(&mut self, message: &CoapMessage<'_>, config: &CompressorConfig) {
        let new = &message.path;
        if new.v6 {
            self.note_label(message, config);
        }
        let kept = &self.shared.path;
        let label = if kept.has_label_in_each() { FlowLabel::ZERO } else { new.flow_label };
        let same = (kept.tos, kept.ttl, kept.df, kept.flow_label) == (new.tos, new.ttl, new.df, label);
        if !same {
            let path = &mut self.shared.path;
            (path.tos, path.ttl, path.df, path.flow_label) = (new.tos, new.ttl, new.df, label);
            self.shared.settle();
            self.pending.require(changes::IP, config.repetitions);
            self.changed();
        }
    }

    /// Sets whether every packet carries its flow label.
    #[inline]
    fn note_label(&mut self, message: &CoapMessage<'_>, config: &CompressorConfig) {
        let mode = self.ip_id.watch_label(self.shared.path.ip_id_mode, message.ip_id);
        if mode != self.shared.path.ip_id_mode {
            self.shared.path.ip_id_mode = mode;
            self.shared.settle();
            self.pending.require(changes::CONTROL, config.repetitions);
            self.changed();
        }
    }

    /// Sets the control fields by a packet, and records its template.
    #[inline]
    pub(super) fn note_controls(
        &mut self,
        message: &CoapMessage<'_>,
        x: &mut HeaderFields<'_>,
        config: &CompressorConfig,
    ) {
        let kept = (
            self.shared.path.checksum,
            self.shared.path.ip_id_mode,
            self.shared.path.switching,
            self.shared.path.pt_0,
            self.shared.path.port_mode,
        );
        let checksum = self.checksum_mode(message.checksum, x.port, message.coap(), config);
        let (_, mut ip_id_mode, mut switching, had_pt_0, mut port_mode) = kept;
        let begins = x.carries.port && !self.former.has_singles();
        if port_mode == PortMode::Source && self.former.has_singles() && x.carries.port {
            port_mode = PortMode::SourceInEach;
            x.carries.port = false;
        } else if port_mode == PortMode::SourceInEach && self.former.is_long() {
            port_mode = PortMode::Source;
            x.carries.port = x.port != self.shared.path.port();
        }
        if self.shared.path.v6 {
            x.carries.ip_id = false;
        } else {
            let mode = self.ip_id.watch(ip_id_mode, x.ip_id, x.msn as u16, self.is_unsettled(), begins);
            ip_id_mode = mode;
        }
        let pt_0 = self.uses_pt_0(config) && checksum != ChecksumMode::Carried && !switching;
        // Short formats carry their template if it changed often among the last packets.
        let other = x.template != self.shared.current;
        self.switches = self.switches << 1 | u32::from(other);
        if self.switches != 0 || switching {
            let (many, few) = SWITCHING;
            let count = self.switches.count_ones();
            switching = count >= many || switching && count > few;
            if other {
                self.pending.require(changes::SWITCH, config.repetitions);
            }
        }
        let new = (checksum, ip_id_mode, switching, pt_0, port_mode);
        if new != kept {
            if pt_0 != had_pt_0 {
                // A decompressor that has missed that could not read any of the next packets.
                self.knows_pt_0 = config.coap.format == FormatPolicy::Pt0;
            }
            let path = &mut self.shared.path;
            (path.checksum, path.ip_id_mode, path.switching, path.pt_0, path.port_mode) = new;
            self.pending.require(changes::CONTROL, config.repetitions);
            self.changed();
        }
    }

    /// Returns the encoding of a UDP checksum, by the CoAP message behind it.
    #[inline]
    pub(super) fn checksum_mode(
        &self,
        checksum: u16,
        port: u16,
        coap: &[u8],
        config: &CompressorConfig,
    ) -> ChecksumMode {
        match checksum {
            0 => ChecksumMode::Zero,
            // Carried unchanged, neither corrected nor elided.
            sent if sent != header::udp_checksum(&self.shared, port, coap, header::Payload::NONE) => {
                ChecksumMode::Raw
            }
            _ if config.channel.integrity_below() == Integrity::None => ChecksumMode::Carried,
            _ => ChecksumMode::Elided,
        }
    }

    /// True if the shortest format is in use where checksum and templates allow it.
    #[inline]
    pub(super) fn uses_pt_0(&self, config: &CompressorConfig) -> bool {
        match config.coap.format {
            FormatPolicy::Pt0 => true,
            FormatPolicy::Pt1 | FormatPolicy::Pt0c => false,
            FormatPolicy::Auto => self.is_clean(),
        }
    }

    /// Records that a change has to be sent from the next packet on.
    pub(super) fn changed(&mut self) {
        // The first packet has the MSN that the context begins with.
        self.since = self.shared.msn.wrapping_add(u32::from(!self.is_first()));
        self.establishment.changed();
        if !self.is_first() {
            self.base = None;
        }
    }

    /// Adds fields that have to be repeated, and records fields that are carried because they have changed.
    #[inline(never)]
    pub(super) fn repeat(
        &mut self,
        x: &mut HeaderFields<'_>,
        config: &CompressorConfig,
        templates: &mut Templates<'_>,
    ) {
        let repetitions = config.repetitions;
        let missed = x.carries;
        let msn = x.msn;
        let Some(template) = self.shared.template(x.template, templates) else { return };
        let counts_token = matches!(template.token_mode, TokenMode::Counted | TokenMode::CountedUint);
        let counts_message_id = template.message_id == MessageIdMode::Counted;
        let is_plain = template.is_plain();
        // After an unexpected step the next ones are regular again, so that a repetition gains nothing.
        let repeats_numbers = !is_plain && !x.holes.has_step();
        let is_own = Template::is_own(x.message_type);
        let mut changed = false;
        let mut is_due = |field: usize, missed: bool| {
            if missed {
                self.pending.require(field, repetitions);
                changed = true;
            }
            self.pending.has(field)
        };
        let repairs = !self.establishment.is_established() && self.former.is_recent();
        x.carries.port = match self.shared.path.port_mode {
            PortMode::Fixed | PortMode::SourceInEach => false,
            PortMode::Source | PortMode::Destination => is_due(changes::PORT, missed.port) || repairs,
        };
        if counts_message_id {
            let anchor = if is_own { changes::OWN } else { changes::ECHOED };
            x.carries.message_id = is_due(anchor, missed.message_id);
        }
        if !self.shared.path.v6 {
            let is_kept = self.shared.path.ip_id_mode != IpIdMode::Irregular;
            x.carries.ip_id = is_due(changes::IP_ID, missed.ip_id && is_kept) && is_kept;
        }
        if is_due(changes::REQUEST, false) || missed.request {
            let template = self.shared.template(x.template, templates);
            if template.is_some_and(|t| !t.names && t.refers) {
                x.carries.request = is_due(changes::REQUEST, missed.request);
            }
        }
        if let Some(template) = self.shared.template_mut(x.template, templates) {
            let missed_anchor = missed.token && counts_token || missed.numbers && repeats_numbers;
            if missed_anchor {
                template.anchors_left = repetitions;
                changed = true;
            }
            if template.anchors_left > 0 {
                x.carries.token |= counts_token;
                x.carries.numbers |= repeats_numbers;
            }
        }
        if changed {
            let is_new = self.is_first() || msn.wrapping_sub(self.shared.msn) as i32 > 0;
            self.since = if is_new { msn } else { self.shared.msn.wrapping_add(1) };
            self.base = self.base.filter(|_| self.msns.is_empty());
        }
    }

    /// Requires what the next packets have to carry of other templates behind a packet that has initialized the context.
    #[cold]
    fn note_initialization(
        &mut self,
        x: &HeaderFields<'_>,
        format: Format,
        config: &CompressorConfig,
        templates: &mut Templates<'_>,
    ) {
        for number in self.shared.numbers().filter(|&number| number != x.template) {
            let Some(template) = self.shared.template_mut(number, templates) else { continue };
            if format == Format::IrCr {
                // It also restarts the other templates of the base, which then have no anchors.
                template.anchors_left = config.repetitions;
            } else if !x.keep {
                // It restarts the context: templates defined by a base or by previous packets are dropped.
                template.left = config.repetitions;
            }
        }
    }

    /// Counts the fields that a packet has carried, and returns true if it was a refresh.
    #[inline(never)]
    pub(super) fn note_sent(
        &mut self,
        x: &HeaderFields<'_>,
        format: Format,
        config: &CompressorConfig,
        templates: &mut Templates<'_>,
    ) -> bool {
        let initializes = format.is_initialization();
        let whole = format.carries_dynamic();
        let again = if whole || x.has_definition { 1 << (x.template & 0xF) } else { 0 };
        let refresh = self.establishment.is_refresh() && matches!(format, Format::Ir | Format::CoRepair)
            || self.again & again != 0 && !initializes;
        self.again &= !again;
        self.opened |= initializes;
        if initializes {
            self.note_initialization(x, format, config, templates);
        }
        let anchor = if Template::is_own(x.message_type) { changes::OWN } else { changes::ECHOED };
        let pending = &mut self.pending;
        pending.count(changes::IP, x.has_ip || whole);
        pending.count(changes::CONTROL, x.has_control || whole);
        pending.count(anchor, x.carries.message_id);
        pending.count(changes::REQUEST, x.carries.request && x.names_request);
        pending.count(changes::IP_ID, x.carries.ip_id);
        pending.count(changes::SWITCH, true);
        // Where no checksum proves the port, it is repeated until an answer or feedback confirms it, or the flow has lasted.
        let is_proved = self.shared.path.checksum == ChecksumMode::Carried || !self.former.is_short();
        pending.count(changes::PORT, (x.carries.port || initializes) && is_proved);
        self.establishment.count(format);
        if let Some(template) = self.shared.template_mut(x.template, templates) {
            let count_down = |left: &mut u8, is: bool| *left -= u8::from(is && *left > 0);
            count_down(&mut template.left, x.has_definition || whole);
            count_down(&mut template.anchors_left, x.carries.token || x.carries.numbers);
        }
        refresh
    }
}
