//! Section `[channel]`: header compression, equal at all ends.

use std::time::Duration;

use thinair_rohc::{
    Channel, CidSpace, Mode, Ports, ProfileId, ProfileSet, Refresh, ReorderRatio, RtpDetection,
};

use super::setting::ConfigError;
use super::settings::{Settings, SettingsSection};
use super::{Surroundings, words};
use crate::site_config::ChannelConfig;

/// Maximum waiting time of feedback: after a longer time, refreshes repair contexts.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Default MAX_CID of large CIDs if `cid` is auto: contexts for a thousand flows, which take about 1.2 MB per
/// peer.
const LARGE_MAX_CID: u16 = 1_023;

/// Reads the channel. `has_two_ends`: datagrams between two ends contain flags; `answers`: the receiver can
/// answer; `has_types`: units have a Type.
pub(super) fn channel(
    settings: &Settings,
    answers: Result<(), &str>,
    has_types: bool,
    has_two_ends: bool,
    surroundings: &Surroundings<'_>,
) -> Result<ChannelConfig, ConfigError> {
    let section = settings.section("channel");
    let default = ChannelConfig::new();
    let spaces = [("auto", None), ("small", Some(CidSpace::Small)), ("large", Some(CidSpace::Large))];
    let asked = section.read("cid", words::word(&spaces))?;
    if let (Some(None), false, Some(setting)) = (asked, has_two_ends, section.setting("cid")) {
        return Err(
            setting.error("auto needs two ends with a key or `insecure`; give small or large, or remove it")
        );
    }
    let profiles = profiles(&section)?.unwrap_or(default.profiles);
    // Each large CID costs memory: the default is the number of small CIDs.
    let max_cid = section.read("max_cid", words::number(0..=u16::MAX))?;
    let few = max_cid.is_some_and(|max_cid| max_cid <= CidSpace::Small.highest());
    // A small MAX_CID without `cid` selects small CIDs.
    let is_auto = asked.map_or(has_two_ends && !few, |asked| asked.is_none());
    let (cids, max_cid, large_max_cid) = match (is_auto, asked.flatten()) {
        (true, _) => (CidSpace::Small, default.max_cid, Some(max_cid.unwrap_or(LARGE_MAX_CID))),
        (false, asked) => (asked.unwrap_or(default.cids), max_cid.unwrap_or(default.max_cid), None),
    };
    if let (true, true, Some(setting)) = (is_auto, few, section.setting("max_cid")) {
        return Err(
            setting.error("applies to large CIDs with `cid` \"auto\": give at least 16, or `cid` \"small\"")
        );
    }
    let large = large_max_cid.map(|max_cid| Channel::new(CidSpace::Large, max_cid, profiles));
    if let Err(error) = large.unwrap_or_else(|| Channel::new(cids, max_cid, profiles)) {
        let place = section.place_of("max_cid").or(section.place_of("profiles"));
        let large = if cids == CidSpace::Small { "; `cid` \"large\" has more" } else { "" };
        let large = if is_auto { "" } else { large };
        return Err(ConfigError::maybe_at(place, format!("{error}{large}")));
    }
    let by_type = section.is_true("by_type")?;
    if let (true, false, Some(setting)) = (by_type, has_types, section.setting("by_type")) {
        return Err(setting.error(
            "needs ULE or GSE, whose units have a Type; this carrier sends such packets in the \
             uncompressed profile; remove it",
        ));
    }
    Ok(ChannelConfig {
        cids,
        max_cid,
        large_max_cid,
        profiles,
        mrru: section.read("mrru", words::number(0..=u16::MAX))?,
        mode: mode(&section, answers)?,
        refresh: section
            .read("refresh", |text| text.parse::<Refresh>().map_err(|error| error.to_string()))?,
        rtp: rtp(&section, profiles)?,
        repetitions: section.read("repetitions", words::number(1..=255))?.unwrap_or(default.repetitions),
        reorder_ratio: section
            .read("reorder_ratio", words::word(&ReorderRatio::NAMES))?
            .unwrap_or(default.reorder_ratio),
        window: section.read("window", words::number(1..=16))?.unwrap_or(default.window),
        bases: bases(&section, surroundings)?,
        by_type,
        feedback_wait: section.read("feedback_wait", wait)?.unwrap_or(default.feedback_wait),
        pad: section.read("pad", words::number(0..=1_024))?.unwrap_or(default.pad),
    })
}

fn wait(text: &str) -> Result<Duration, String> {
    let span = words::span(text)?;
    if span > LONGEST_WAIT { Err("give at most 10s".to_owned()) } else { Ok(span) }
}

/// Mode of operation: as given, or O if the receiver can answer, otherwise U.
fn mode(section: &SettingsSection, answers: Result<(), &str>) -> Result<Mode, ConfigError> {
    let modes = [("u", Mode::Unidirectional), ("o", Mode::Optimistic), ("r", Mode::Reliable)];
    let asked = section.read("mode", words::word(&modes))?;
    match (asked, answers) {
        (None, Ok(())) => Ok(Mode::Optimistic),
        (None, Err(_)) | (Some(Mode::Unidirectional), _) => Ok(Mode::Unidirectional),
        (Some(mode), Ok(())) => Ok(mode),
        (Some(mode), Err(why)) => {
            let what = format!("{}-mode needs feedback, and {why}", mode.letter());
            Err(ConfigError::maybe_at(section.place_of("mode"), what))
        }
    }
}

fn profiles(section: &SettingsSection) -> Result<Option<ProfileSet>, ConfigError> {
    let Some(setting) = section.setting("profiles") else { return Ok(None) };
    let mut named = Vec::new();
    for profiles in setting.read_all(profile)? {
        named.extend(profiles);
    }
    ProfileSet::of(&named).map(Some).map_err(|error| setting.error(error.to_string()))
}

fn profile(name: &str) -> Result<Vec<ProfileId>, String> {
    match ProfileId::by_name(name) {
        Some(profile) => Ok(vec![profile]),
        None if name == "v1" => Ok(ProfileSet::v1().iter().collect()),
        None if name == "v2" => Ok(ProfileSet::v2().iter().collect()),
        None => {
            let known = ProfileId::ALL.map(ProfileId::name).join(", ");
            Err(format!("the profiles are {known}, and the sets v1 and v2"))
        }
    }
}

fn rtp(section: &SettingsSection, profiles: ProfileSet) -> Result<RtpDetection, ConfigError> {
    let how = section.read("rtp", words::word(&[("guess", 'g'), ("ports", 'p'), ("never", 'n')]))?;
    let ports = section.read_all("rtp_ports", words::number(1..=u16::MAX))?;
    let Some(rule) = RtpDetection::of_ports(&ports) else {
        let place = section.place_of("rtp_ports");
        let what = format!("has {} ports; the maximum is {}", ports.len(), Ports::MOST);
        return Err(ConfigError::maybe_at(place, what));
    };
    let has_rtp = profiles.has(ProfileId::Rtp) || profiles.has(ProfileId::RtpUdpLite);
    match (how.unwrap_or('g'), section.setting("rtp"), section.setting("rtp_ports")) {
        ('p', Some(setting), None) => {
            Err(setting.error("needs a list of ports in `rtp_ports`, such as 5004"))
        }
        ('n', _, Some(setting)) => Err(setting.error("contradicts `rtp` = \"never\"; remove one")),
        (_, _, Some(setting)) if !has_rtp => {
            Err(setting.error("needs profile rtp or rtp-udp-lite; add one in `profiles`, or remove it"))
        }
        ('g', ..) => Ok(rule.or_guess()),
        _ => Ok(rule),
    }
}

fn bases(
    section: &SettingsSection,
    surroundings: &Surroundings<'_>,
) -> Result<Vec<thinair_rohc::profile::coap::Base>, ConfigError> {
    let (Some(setting), Some(path)) = (section.setting("coap_template"), section.path("coap_template")?)
    else {
        return Ok(Vec::new());
    };
    (surroundings.templates)(&path).map_err(|error| setting.error(error))
}
