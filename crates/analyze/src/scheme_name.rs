//! Names of schemes, as in reports and on command lines.

use std::str::FromStr;

use thinair_rohc::{Channel, ChannelError, CidSpace, Mode, ProfileId, ProfileSet};

use crate::settings::SchemeSpec;

/// Name of a scheme, apart from its CIDs and its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemeName {
    /// `rohc-v1`
    RohcV1,
    /// `rohc-v2`
    RohcV2,
    /// `coap`
    Coap,
    /// `dtls`
    Dtls,
    /// `tcp`
    Tcp,
    /// `schc`
    Schc,
    /// `6lowpan`
    Lowpan,
}

/// Reason why a text does not name a scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemeError {
    /// No scheme has that name.
    #[error("unknown scheme `{0}`: expected {names}", names = SchemeName::ALL.map(SchemeName::name).join(", "))]
    Name(String),
    /// The name is not followed by a mode and CIDs.
    #[error(
        "invalid scheme `{0}`: expected NAME, NAME/MODE or NAME/MODE/CIDS, with MODE u, o or r, and CIDS such as small-15 or \
         large-127; schc and 6lowpan have no mode"
    )]
    Variant(String),
    /// The scheme has no such channel.
    #[error("invalid scheme `{0}`: {1}")]
    Channel(String, ChannelError),
}

impl SchemeName {
    /// All names.
    pub const ALL: [Self; 7] =
        [Self::RohcV1, Self::RohcV2, Self::Coap, Self::Dtls, Self::Tcp, Self::Schc, Self::Lowpan];

    /// Schemes of a default comparison, as far as they [apply](crate::Survey::applicable) to the captures.
    pub const USUAL: [Self; 6] = [Self::RohcV1, Self::Coap, Self::Dtls, Self::Tcp, Self::Schc, Self::Lowpan];

    /// The name, as in [`SchemeSpec::name`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::RohcV1 => "rohc-v1",
            Self::RohcV2 => "rohc-v2",
            Self::Coap => "coap",
            Self::Dtls => "dtls",
            Self::Tcp => "tcp",
            Self::Schc => SchemeSpec::Schc.name(),
            Self::Lowpan => SchemeSpec::Lowpan.name(),
        }
    }

    /// Description on one line.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::RohcV1 => {
                "ROHC with the profiles RTP, UDP, UDP-Lite, ESP and IP (RFC 3095, RFC 3843, RFC 4019)"
            }
            Self::RohcV2 => "ROHC with the profiles RTP, UDP, UDP-Lite, ESP and IP of RFC 5225",
            Self::Coap => "rohc-v1 and the profile for CoAP (`coap`)",
            Self::Dtls => "coap and the profile for DTLS records (`dtls`)",
            Self::Tcp => "coap and the profile for TCP (RFC 6846)",
            Self::Schc => "SCHC (RFC 8724, RFC 8824) with the best rules for the capture at both ends",
            Self::Lowpan => "6LoWPAN (RFC 6282) with the prefixes of the capture as contexts; IPv6 only",
        }
    }

    /// Returns one specification for each mode, or a single one for a scheme without modes. `cids` sets the
    /// CID space of ROHC.
    ///
    /// # Errors
    /// A profile is not in this build.
    pub fn specs(self, cids: &Channel, modes: &[Mode]) -> Result<Vec<SchemeSpec>, ChannelError> {
        let rohc = |set: ProfileSet, more: &[ProfileId]| {
            let profiles = more.iter().try_fold(set, |set, profile| set.with(*profile))?;
            let channel = Channel::new(cids.cids(), cids.max_cid(), profiles)?;
            let spec = |&mode| SchemeSpec::Rohc { name: self.name(), channel, mode, learned: false };
            Ok(modes.iter().map(spec).collect())
        };
        let v1 = ProfileSet::v1();
        match self {
            Self::RohcV1 => rohc(v1, &[]),
            Self::RohcV2 => rohc(ProfileSet::v2(), &[]),
            Self::Coap => rohc(v1, &[ProfileId::Coap]),
            Self::Dtls => rohc(v1, &[ProfileId::Coap, ProfileId::Dtls]),
            Self::Tcp => rohc(v1, &[ProfileId::Coap, ProfileId::Tcp]),
            Self::Schc => Ok(vec![SchemeSpec::Schc]),
            Self::Lowpan => Ok(vec![SchemeSpec::Lowpan]),
        }
    }
}

impl FromStr for SchemeName {
    type Err = SchemeError;

    fn from_str(text: &str) -> Result<Self, SchemeError> {
        let named = Self::ALL.into_iter().find(|name| name.name() == text);
        named.ok_or_else(|| SchemeError::Name(text.to_owned()))
    }
}

impl SchemeSpec {
    /// Reads an identifier such as `coap`, `coap/o` or `coap/o/large-127`, see
    /// [`Scheme::id`](crate::outcome::Scheme::id). A name alone stands for each of `modes`; without CIDs those
    /// of `cids` are used.
    ///
    /// # Errors
    /// The text is no such identifier.
    pub fn read(text: &str, cids: &Channel, modes: &[Mode]) -> Result<Vec<Self>, SchemeError> {
        let invalid = || SchemeError::Variant(text.to_owned());
        let of_channel = |error| SchemeError::Channel(text.to_owned(), error);
        let mut parts = text.split('/');
        let name: SchemeName = parts.next().unwrap_or_default().parse()?;
        let has_modes = !matches!(name, SchemeName::Schc | SchemeName::Lowpan);
        let mode = match parts.next() {
            None => None,
            Some(letter) => Some(Mode::from_letter(letter).filter(|_| has_modes).ok_or_else(invalid)?),
        };
        let cids = match parts.next() {
            None => *cids,
            Some(text) => read_cids(text).ok_or_else(invalid)?.map_err(of_channel)?,
        };
        match (parts.next(), mode) {
            (Some(_), _) => Err(invalid()),
            (None, Some(mode)) => name.specs(&cids, &[mode]).map_err(of_channel),
            (None, None) => name.specs(&cids, modes).map_err(of_channel),
        }
    }
}

/// Reads a CID space and MAX_CID, such as `large-127`; `None` if the text has another form.
fn read_cids(text: &str) -> Option<Result<Channel, ChannelError>> {
    let (space, max_cid) = text.split_once('-')?;
    let space = match space {
        "small" => CidSpace::Small,
        "large" => CidSpace::Large,
        _ => return None,
    };
    Some(Channel::new(space, max_cid.parse().ok()?, ProfileSet::UNCOMPRESSED))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MODES: [Mode; 2] = [Mode::Unidirectional, Mode::Optimistic];

    fn read(text: &str) -> Result<Vec<SchemeSpec>, SchemeError> {
        SchemeSpec::read(text, &Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap(), &MODES)
    }

    #[test]
    fn identifiers_of_results_are_read() {
        let ids = |text| -> Vec<_> {
            let specs = read(text).unwrap();
            let of = |spec: &SchemeSpec| {
                let contexts = spec.channel().map(|channel| crate::outcome::Contexts::of(&channel));
                crate::outcome::id(spec.name(), spec.mode(), contexts)
            };
            specs.iter().map(of).collect()
        };
        assert_eq!(ids("coap"), ["coap/u/small-15", "coap/o/small-15"]);
        assert_eq!(ids("rohc-v2/r"), ["rohc-v2/r/small-15"]);
        assert_eq!(ids("tcp/o/large-127"), ["tcp/o/large-127"]);
        assert_eq!(ids("schc"), ["schc"]);
    }

    #[test]
    fn other_texts_are_errors() {
        for text in ["", "rohc", "coap-learned", "COAP"] {
            assert_eq!(read(text), Err(SchemeError::Name(text.to_owned())));
        }
        for text in [
            "coap/x",
            "coap/",
            "schc/o",
            "coap/o/small",
            "coap/o/huge-1",
            "coap/o/small-x",
            "coap/o/small-1/",
        ] {
            assert_eq!(read(text), Err(SchemeError::Variant(text.to_owned())));
        }
        let error = read("coap/o/small-20").unwrap_err().to_string();
        assert!(error.starts_with("invalid scheme `coap/o/small-20`: ") && error.contains("15"), "{error}");
    }
}
