//! What two ends must agree on, as nothing is negotiated.

use std::fmt;

use thinair_rohc::ProfileId;

use super::suite_name;
use crate::plan::{Carrier, Framing, Others, Packaging, Plan, Security, Site};
use crate::unit::SiteId;

/// Something that two ends must agree on, and do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// What it is, by its key: `[channel] max_cid`.
    pub what: String,
    /// What it is at this end.
    pub here: String,
    /// What it is at the other one.
    pub there: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the ends do not agree on {}: {} here, {} there", self.what, self.here, self.there)
    }
}

/// What two ends do not agree on.
pub fn disagreements(here: &Plan, there: &Plan) -> Vec<Disagreement> {
    let (mut found, other) = (Vec::new(), facts(there));
    for ((what, mine), (_, theirs)) in facts(here).into_iter().zip(other) {
        if mine != theirs {
            found.push(Disagreement { what: what.to_owned(), here: mine, there: theirs });
        }
    }
    crossed(here, there, &mut found);
    found
}

/// What is the same at all ends, in one order.
fn facts(plan: &Plan) -> [(&'static str, String); 13] {
    let channel = &plan.channel;
    let profiles: Vec<_> = channel.profiles.iter().map(ProfileId::name).collect();
    let (framing, speed, rtp) = match &plan.carrier {
        Carrier::Serial { framing, crc, speed, .. } => {
            let framing = match framing {
                Framing::Slip => "slip",
                Framing::Cobs => "cobs",
            };
            let crc = if *crc { " with CRC-32" } else { " without CRC" };
            let speed = speed.map_or("as the line is set".to_owned(), |speed| speed.to_string());
            (format!("{framing}{crc}"), speed, String::new())
        }
        Carrier::Udp { .. } | Carrier::File { .. } => Default::default(),
    };
    let mrru = channel.mrru.map_or("what is needed".to_owned(), |mrru| mrru.to_string());
    let bases = format!("{} bases, {:016x}", channel.bases.len(), digest(plan));
    [
        ("the carrier", kind(&plan.carrier).to_owned()),
        ("[inside] tap", plan.inside.bridged.to_string()),
        ("[carrier] framing", framing),
        ("[carrier] speed", speed),
        ("[carrier] rtp", rtp),
        ("[security]", security(&plan.security).to_owned()),
        ("[channel] cid", format!("{:?}", channel.cids).to_lowercase()),
        ("[channel] max_cid", channel.max_cid.to_string()),
        ("[channel] profiles", profiles.join(",")),
        ("[channel] mrru", mrru),
        ("[channel] mode", channel.mode.letter().to_owned()),
        ("[channel] coap_template", bases),
        ("[mesh]", mesh(&plan.others).to_owned()),
    ]
}

fn kind(carrier: &Carrier) -> &'static str {
    match carrier {
        Carrier::Udp { packaging, .. } | Carrier::File { packaging, .. } => match packaging {
            Packaging::Packed => "udp",
            Packaging::Ts { .. } => "ule",
            Packaging::Gse { .. } => "gse",
        },
        Carrier::Serial { .. } => "serial",
    }
}

fn security(security: &Security) -> &'static str {
    match security {
        Security::Key { suite, .. } => suite_name(*suite),
        Security::Open => "open",
        Security::Insecure => "insecure",
    }
}

fn mesh(others: &Others) -> &'static str {
    match others {
        Others::Peers(_) => "peers",
        Others::Mesh(mesh) if mesh.feedback => "a mesh with feedback",
        Others::Mesh(_) => "a mesh without feedback",
    }
}

/// A number that is another one for other bases: FNV-1a of how they are shown.
fn digest(plan: &Plan) -> u64 {
    let shown = format!("{:?}", plan.channel.bases);
    shown.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// What one end sends as, and the other hears as.
fn crossed(here: &Plan, there: &Plan, found: &mut Vec<Disagreement>) {
    match (&here.others, &there.others) {
        (Others::Mesh(mine), Others::Mesh(theirs)) => {
            if let (Some(a), Some(b)) = (mine.own, theirs.own) {
                if a == b {
                    let number = a.number().to_string();
                    found.push(Disagreement {
                        what: "[mesh] own, which must differ".to_owned(),
                        here: number.clone(),
                        there: number,
                    });
                }
            }
            known(mine.own, here, &theirs.sites, "hears it on", found);
            known(theirs.own, there, &mine.sites, "is heard on", found);
            for site in &mine.sites {
                let other = theirs.sites.iter().find(|other| other.id == site.id);
                if let Some(other) = other.filter(|other| other.pid != site.pid) {
                    found.push(Disagreement {
                        what: format!("the PID of site {}", site.id.number()),
                        here: shown(site.pid),
                        there: shown(other.pid),
                    });
                }
            }
        }
        (Others::Peers(mine), Others::Peers(theirs)) => {
            let (Some(a), Some(b)) = (pid(&here.carrier), pid(&there.carrier)) else { return };
            for (sends, hears, way) in [(a, theirs, "from here to there"), (b, mine, "from there to here")] {
                if !hears.iter().any(|peer| peer.pid == Some(sends)) {
                    let heard: Vec<_> = hears.iter().map(|peer| shown(peer.pid)).collect();
                    found.push(Disagreement {
                        what: format!("the PID {way}"),
                        here: if way.starts_with("from here") { sends.to_string() } else { heard.join(",") },
                        there: if way.starts_with("from here") { heard.join(",") } else { sends.to_string() },
                    });
                }
            }
        }
        // Told already.
        (Others::Mesh(_), Others::Peers(_)) | (Others::Peers(_), Others::Mesh(_)) => {}
    }
}

/// Whether a site that sends is among those that another one hears, and by the PID that it has.
fn known(own: Option<SiteId>, plan: &Plan, heard: &[Site], how: &str, found: &mut Vec<Disagreement>) {
    let Some(own) = own else { return };
    let what = format!("site {}", own.number());
    match heard.iter().find(|site| site.id == own) {
        None => {
            found.push(Disagreement { what, here: "is one end".to_owned(), there: "is not known".to_owned() })
        }
        Some(site) if site.pid.is_some() && site.pid != pid(&plan.carrier) => found.push(Disagreement {
            what,
            here: format!("sends on {}", shown(pid(&plan.carrier))),
            there: format!("{how} {}", shown(site.pid)),
        }),
        Some(_) => {}
    }
}

fn pid(carrier: &Carrier) -> Option<thinair_ule::Pid> {
    match carrier {
        Carrier::Udp { packaging: Packaging::Ts { pid, .. }, .. }
        | Carrier::File { packaging: Packaging::Ts { pid, .. }, .. } => Some(*pid),
        _ => None,
    }
}

fn shown(pid: Option<thinair_ule::Pid>) -> String {
    pid.map_or("none".to_owned(), |pid| pid.to_string())
}
