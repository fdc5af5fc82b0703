//! Sections `[[hold]]`: packets that wait, so that several share a datagram.

use thinair_wire::header::protocol;

use super::setting::ConfigError;
use super::settings::Settings;
use super::{carrier, words};
use crate::site_config::HoldRule;

pub(super) fn hold(settings: &Settings) -> Result<Vec<HoldRule>, ConfigError> {
    let mut rules = Vec::new();
    for section in settings.sections("hold") {
        let wrong = |what: &str| Err(ConfigError::maybe_at(section.place.as_ref(), what));
        let protocols = [("udp", protocol::UDP), ("udp-lite", protocol::UDP_LITE)];
        let rule = (
            section.read("dst_port", words::number(1..=u16::MAX))?,
            section.read("protocol", words::word(&protocols))?,
            section.read("dscp", words::number(0..=63))?,
        );
        let (dst_port, protocol, dscp) = rule;
        if rule == (None, None, None) {
            return wrong("names no packets; give `dst_port`, `protocol` or `dscp` in a [[hold]] of a file");
        }
        let Some(time) = section.read("time", carrier::positive)? else {
            return wrong("has no `time`; give how long packets may wait, such as 5min");
        };
        if settings.section("inside").is_true("tap")? {
            return wrong("needs IP packets on the interface, not Ethernet frames; remove it, or `tap`");
        }
        rules.push(HoldRule { dst_port, protocol, dscp, time });
    }
    Ok(rules)
}
