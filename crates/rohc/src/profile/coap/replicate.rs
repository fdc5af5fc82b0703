//! First packets of a flow with a provisioned base. Section 10 of `docs/coap-profile.md`.

use super::compress::CoapSenderContext;
use super::message::CoapMessage;
use super::state::{ChecksumMode, CoapPath, MessageIdMode, TokenMode};
use super::{CoapMemory, Differences, HeaderFields};
use crate::channel::Integrity;
use crate::compressor::CompressorConfig;

/// Returns the differences between a flow and a base; `None` if IR-CR cannot encode them.
pub(super) fn differences(base: &CoapPath, path: &CoapPath) -> Option<Differences> {
    let prefix = if path.v6 { 8 } else { 0 };
    let like = CoapPath {
        source: path.source,
        destination: path.destination,
        source_port: path.source_port,
        destination_port: path.destination_port,
        flow_label: path.flow_label,
        ..*base
    };
    let same_prefix = base.source[..prefix] == path.source[..prefix]
        && base.destination[..prefix] == path.destination[..prefix];
    (like == *path && same_prefix).then_some(Differences {
        source_port: base.source_port != path.source_port,
        destination_port: base.destination_port != path.destination_port,
        source: base.source != path.source,
        destination: base.destination != path.destination,
        template: false,
        flow_label: !path.has_label_in_each() && base.flow_label != path.flow_label,
    })
}

/// Cost of ports and addresses that differ, about their octets in IR-CR.
fn addressing(base: &CoapPath, path: &CoapPath) -> u32 {
    u32::from(base.source_port != path.source_port)
        + u32::from(base.destination_port != path.destination_port)
        + 4 * (u32::from(base.source != path.source) + u32::from(base.destination != path.destination))
}

impl CoapSenderContext {
    /// Starts from the base with which the first packet of the flow has fewest octets. The context gets its
    /// templates.
    pub(crate) fn begin_with_base(
        &mut self,
        message: &CoapMessage<'_>,
        config: &CompressorConfig,
        memory: &mut CoapMemory<'_>,
    ) {
        let mut best: Option<(u32, u8)> = None;
        for (number, base) in memory.bases.iter().enumerate().take(256) {
            if best.is_some_and(|(least, _)| least == 0) {
                break;
            }
            // There can be one base for each of many flows, and few of them can be better.
            if best.is_some_and(|(least, _)| least <= addressing(&base.path(), &self.shared.path)) {
                continue;
            }
            let path = CoapPath {
                checksum: base.path().checksum,
                ip_id_mode: base.path().ip_id_mode,
                ..self.shared.path
            };
            let wants_elision = config.channel.integrity_below() != Integrity::None;
            let fits = match path.checksum {
                ChecksumMode::Zero => message.checksum == 0,
                ChecksumMode::Carried => message.checksum != 0 && !wants_elision,
                ChecksumMode::Elided => message.checksum != 0 && wants_elision,
                ChecksumMode::Raw => false,
            };
            let Some(differences) = differences(&base.path(), &path).filter(|_| fits) else { continue };
            let template = (0..TEMPLATES_OF_BASE).find(|&n| {
                base.template(n).is_some_and(|(template, outline)| {
                    template.message_type == message.message_type
                        && (template.token_mode != TokenMode::Static || template.token == message.token)
                        && template.message_id != MessageIdMode::OfRequest
                        && template.token_mode != TokenMode::OfRequest
                        && !template.refers
                        && message.matches(&template, outline, &mut HeaderFields::new(0)).is_some()
                })
            });
            let Some(template) = template else { continue };
            let cost =
                addressing(&base.path(), &path) + u32::from(differences.flow_label) + u32::from(template);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, number as u8));
            }
        }
        let Some((_, number)) = best else { return };
        let Some(base) = memory.bases.get(usize::from(number)) else { return };
        let CoapPath { checksum, ip_id_mode, .. } = base.path();
        if (checksum, ip_id_mode) != (self.shared.path.checksum, self.shared.path.ip_id_mode) {
            (self.shared.path.checksum, self.shared.path.ip_id_mode) = (checksum, ip_id_mode);
            self.shared.settle();
        }
        if base.define_all(&mut self.shared, &mut memory.templates) {
            self.base = Some(number);
            for number in self.shared.numbers() {
                if let Some(template) = self.shared.template_mut(number, &mut memory.templates) {
                    // Both ends have it, except for the anchors.
                    template.anchors_left = config.repetitions;
                }
            }
        } else {
            self.shared.forget_all(&mut memory.templates);
        }
    }
}

/// Number of templates of a base that a first packet may use.
const TEMPLATES_OF_BASE: u8 = 16;
