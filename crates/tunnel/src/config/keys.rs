//! All keys of a configuration: their sections, and whether they are common to all ends.

use super::words::closest;

/// Scope of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// One end only: not allowed in the file that all ends share.
    OneEnd,
    /// Equal at all ends, or harmless if so.
    All,
}

use Of::{All, OneEnd};

/// A section and its keys.
pub(super) struct SectionKeys {
    pub(super) name: &'static str,
    /// True if the section can occur several times, as `[[peer]]`.
    pub(super) repeated: bool,
    pub(super) keys: &'static [(&'static str, Of)],
}

pub(super) const SECTIONS: &[SectionKeys] = &[
    SectionKeys {
        name: "inside",
        repeated: false,
        keys: &[
            ("tun", OneEnd),
            ("tap", All),
            ("namespace", OneEnd),
            ("address", OneEnd),
            ("route", OneEnd),
            ("dns", OneEnd),
            ("mtu", All),
            ("queue", OneEnd),
        ],
    },
    SectionKeys {
        name: "carrier",
        repeated: false,
        keys: &[
            ("url", All),
            ("listen", OneEnd),
            ("keepalive", All),
            ("iface", OneEnd),
            ("ttl", All),
            ("mtu", All),
            ("rtp", All),
            ("ts", All),
            ("flush", All),
            ("pid", OneEnd),
            ("peer_pid", OneEnd),
            ("npa", OneEnd),
            ("psi", All),
            ("bitrate", All),
            ("from", OneEnd),
            ("to", OneEnd),
            ("speed", All),
            ("framing", All),
        ],
    },
    SectionKeys {
        name: "security",
        repeated: false,
        keys: &[("key", OneEnd), ("suite", All), ("tag", All), ("open", All), ("insecure", All)],
    },
    SectionKeys {
        name: "channel",
        repeated: false,
        keys: &[
            ("include", OneEnd),
            ("cid", All),
            ("max_cid", All),
            ("profiles", All),
            ("mrru", All),
            ("mode", All),
            ("refresh", All),
            ("rtp", All),
            ("rtp_ports", All),
            ("repetitions", All),
            ("window", All),
            ("coap_template", All),
            ("by_type", All),
            ("feedback_wait", All),
            ("pad", All),
        ],
    },
    SectionKeys {
        name: "peer",
        repeated: true,
        keys: &[
            ("name", OneEnd),
            ("address", OneEnd),
            ("allowed", OneEnd),
            ("key", OneEnd),
            ("keepalive", OneEnd),
            ("pid", OneEnd),
        ],
    },
    SectionKeys { name: "mesh", repeated: false, keys: &[("own", OneEnd), ("to", All), ("feedback", All)] },
    SectionKeys {
        name: "site",
        repeated: true,
        keys: &[("id", All), ("name", All), ("pid", All), ("npa", All), ("allowed", All)],
    },
    SectionKeys {
        name: "segments",
        repeated: false,
        keys: &[
            ("sizer", OneEnd),
            ("frame", OneEnd),
            ("headers", OneEnd),
            ("least", OneEnd),
            ("most", OneEnd),
        ],
    },
    SectionKeys {
        name: "seeing",
        repeated: false,
        keys: &[
            ("status", OneEnd),
            ("http", OneEnd),
            ("pcap_inside", OneEnd),
            ("pcap_outside", OneEnd),
            ("billing_unit", OneEnd),
        ],
    },
    SectionKeys { name: "daemon", repeated: false, keys: &[("user", OneEnd), ("state", OneEnd)] },
];

/// True for keys of `[carrier]` that are also allowed after the `?` of a URL.
pub(super) fn is_option(key: &str) -> bool {
    key != "url" && section("carrier").is_some_and(|section| section.key(key).is_some())
}

pub(super) fn section(name: &str) -> Option<&'static SectionKeys> {
    SECTIONS.iter().find(|section| section.name == name)
}

/// Returns the title of the first section that has a key of this name.
pub(super) fn section_of(key: &str) -> Option<String> {
    SECTIONS.iter().find(|section| section.key(key).is_some()).map(SectionKeys::title)
}

impl SectionKeys {
    /// Returns the key as written in the table, and its scope.
    pub(super) fn key(&self, key: &str) -> Option<(&'static str, Of)> {
        self.keys.iter().find(|(known, _)| *known == key).copied()
    }

    /// Title of the section in a file.
    pub(super) fn title(&self) -> String {
        if self.repeated { format!("[[{}]]", self.name) } else { format!("[{}]", self.name) }
    }

    /// Message for an unknown key.
    pub(super) fn unknown(&self, key: &str) -> String {
        if let Some(meant) = closest(key, self.keys.iter().map(|(known, _)| *known)) {
            return format!("unknown key; did you mean `{meant}`?");
        }
        if let Some(title) = section_of(key) {
            return format!("unknown key; `{key}` belongs to {title}");
        }
        let known: Vec<_> = self.keys.iter().map(|(known, _)| *known).collect();
        format!("unknown key; the keys are {}", known.join(", "))
    }
}

/// Message for an unknown section.
pub(super) fn unknown_section(name: &str) -> String {
    if let Some(meant) = closest(name, SECTIONS.iter().map(|section| section.name)) {
        let meant = section(meant).map(SectionKeys::title).unwrap_or_default();
        return format!("unknown section; did you mean {meant}?");
    }
    if let Some(title) = section_of(name) {
        return format!("unknown section; `{name}` is a key of {title}");
    }
    let known: Vec<_> = SECTIONS.iter().map(SectionKeys::title).collect();
    format!("unknown section; the sections are {}", known.join(", "))
}
