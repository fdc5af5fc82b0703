//! Reasons for dropping packets: a counter for each, all known at compile time.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use thinair_rohc::DecompressError;

/// A set of reasons with counters.
pub trait Reason: Copy + 'static {
    /// All reasons, in the order of their [numbers](Self::index).
    const ALL: &'static [Self];

    /// Number, from 0 on, without gaps.
    fn index(self) -> usize;

    /// Name in JSON and metrics.
    fn name(self) -> &'static str;

    /// Description for users.
    fn words(self) -> &'static str;
}

/// Defines reasons with variant, name, and description.
macro_rules! reasons {
    ($(#[$of_type:meta])* $type:ident { $($variant:ident $name:literal $words:literal,)* }) => {
        $(#[$of_type])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type { $(#[doc = $words] $variant,)* }

        impl Reason for $type {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            fn index(self) -> usize {
                self as usize
            }

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            fn words(self) -> &'static str {
                match self { $(Self::$variant => $words,)* }
            }
        }
    };
}

reasons! {
    /// Reason why a packet or datagram was dropped.
    Drop {
        Forged "forged" "The tag is wrong: damaged, forged, or encrypted with another key.",
        Replayed "replayed" "Received before, or too late for the replay window.",
        Reflected "reflected" "Our own datagram, reflected.",
        UnknownSession "unknown_session" "Unknown session.",
        StaleEpoch "stale_epoch" "Older epoch than the newest one.",
        NotKept "not_kept" "Not accepted, as the folder of epochs is full or read-only.",
        Handshake "handshake" "Rejected handshake.",
        OtherChannel "other_channel" "The peer has other channel parameters.",
        UnknownSender "unknown_sender" "Unknown sender.",
        NotForUs "not_for_us" "Addressed to another site.",
        MalformedDatagram "malformed_datagram" "Malformed datagram.",
        LineFrame "line_frame" "Malformed or too long frame on the line.",
        LineCrc "line_crc" "Wrong CRC of a frame on the line.",
        Packaging "packaging" "Malformed SNDUs, GSE Packets or packed units.",
        Decompression "decompression" "Not decompressed; see the failures of the peer.",
        NotAllowedSource "not_allowed_source" "Source address that the peer may not use.",
        InterfaceRefused "interface_refused" "Rejected by the interface.",
        NotIp "not_ip" "Not an IP packet.",
        NoRoute "no_route" "Destination of no peer.",
        TooLong "too_long" "Too long for the carrier.",
        NoSession "no_session" "No session with the peer yet.",
        NotCompressed "not_compressed" "Not supported by any profile.",
        CarrierFull "carrier_full" "The carrier was congested.",
        CarrierTooLong "carrier_too_long" "Too long for an interface of this machine.",
        CarrierRefused "carrier_refused" "Rejected by the system.",
        HostMulticast "host_multicast" "Multicast of this host for itself, such as mDNS, which no other end needs.",
    }
}

reasons! {
    /// Reason why a packet was not decompressed: [`DecompressError`], except the variant that is not a
    /// failure.
    Failure {
        Packet "bad_packet" "Malformed packet.",
        Segment "bad_segment" "Discarded segments of a unit.",
        Cid "bad_cid" "The CID exceeds MAX_CID.",
        NoContext "no_context" "No context.",
        UnsupportedProfile "unsupported_profile" "The profile is not in PROFILES.",
        Malformed "malformed" "Invalid packet of the profile.",
        NotAllowed "not_allowed_in_state" "The state of the context does not allow the format.",
        Crc "bad_crc" "The CRC does not match.",
        UnknownItem "unknown_list_item" "A list refers to an item that was not received.",
        UnknownTemplate "unknown_template" "Reference to a template that was not received.",
        UnknownRequest "unknown_request" "Reference to an unknown message of the other direction.",
        Ambiguous "ambiguous_sn" "Late or duplicate, with ambiguous content.",
        OnTrial "on_trial_after_repair" "Held back after repair of the context.",
        NoMemory "no_memory" "No memory for extension headers.",
        OutputTooSmall "output_too_small" "Too long for the interface.",
    }
}

impl Failure {
    /// Returns the reason of this error; `None` if it is not a failure.
    pub const fn of(error: &DecompressError) -> Option<Self> {
        Some(match error {
            DecompressError::NothingYet => return None,
            DecompressError::Packet(_) => Self::Packet,
            DecompressError::Segment(_) => Self::Segment,
            DecompressError::Cid => Self::Cid,
            DecompressError::NoContext(_) => Self::NoContext,
            DecompressError::UnsupportedProfile(..) => Self::UnsupportedProfile,
            DecompressError::Malformed(_) => Self::Malformed,
            DecompressError::NotAllowed(..) => Self::NotAllowed,
            DecompressError::Crc(..) => Self::Crc,
            DecompressError::UnknownItem(..) => Self::UnknownItem,
            DecompressError::UnknownTemplate(..) => Self::UnknownTemplate,
            DecompressError::UnknownRequest(..) => Self::UnknownRequest,
            DecompressError::Ambiguous(..) => Self::Ambiguous,
            DecompressError::OnTrial(..) => Self::OnTrial,
            DecompressError::NoMemory(_) => Self::NoMemory,
            DecompressError::OutputTooSmall { .. } => Self::OutputTooSmall,
        })
    }
}

/// Upper limit for the number of reasons of any type.
const MOST: usize = 26;

/// A counter for each reason. In JSON an object with all names, including those with zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tally<R> {
    counts: [u64; MOST],
    of: PhantomData<R>,
}

impl<R: Reason> Tally<R> {
    /// Returns zero counters.
    pub const fn new() -> Self {
        assert!(R::ALL.len() <= MOST, "every reason has its place");
        Self { counts: [0; MOST], of: PhantomData }
    }

    /// Adds one.
    pub fn count(&mut self, reason: R) {
        self.add(reason, 1);
    }

    /// Adds a number.
    pub fn add(&mut self, reason: R, times: u64) {
        self.counts[reason.index()] += times;
    }

    /// Returns the count of a reason.
    pub fn of(&self, reason: R) -> u64 {
        self.counts[reason.index()]
    }

    /// Returns the sum of all counts.
    pub fn sum(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns every reason with its count, in order.
    pub fn iter(&self) -> impl Iterator<Item = (R, u64)> + '_ {
        R::ALL.iter().map(|&reason| (reason, self.of(reason)))
    }
}

impl<R: Reason> Default for Tally<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Reason> fmt::Debug for Tally<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().filter(|&(_, n)| n > 0).map(|(r, n)| (r.name(), n))).finish()
    }
}

impl<R: Reason> Serialize for Tally<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(R::ALL.len()))?;
        for (reason, count) in self.iter() {
            map.serialize_entry(reason.name(), &count)?;
        }
        map.end()
    }
}

impl<'de, R: Reason> Deserialize<'de> for Tally<R> {
    /// Unknown names are those of a later version, and are ignored.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TallyVisitor<R>(PhantomData<R>);

        impl<'de, R: Reason> Visitor<'de> for TallyVisitor<R> {
            type Value = Tally<R>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("counts by reason")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Tally<R>, M::Error> {
                let mut tally = Tally::new();
                while let Some((name, count)) = map.next_entry::<String, u64>()? {
                    if let Some(reason) = R::ALL.iter().find(|reason| reason.name() == name) {
                        tally.counts[reason.index()] = count;
                    }
                }
                Ok(tally)
            }
        }

        deserializer.deserialize_map(TallyVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thinair_rohc::Cid;

    fn names_are_fit_for_metrics<R: Reason>() {
        let mut seen = std::collections::BTreeSet::new();
        for (at, reason) in R::ALL.iter().enumerate() {
            assert_eq!(reason.index(), at);
            assert!(reason.name().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", reason.name());
            assert!(reason.words().ends_with('.'), "{}", reason.words());
            assert!(seen.insert(reason.name()), "{} twice", reason.name());
        }
    }

    #[test]
    fn every_reason_has_a_place_and_a_name_of_its_own() {
        names_are_fit_for_metrics::<Drop>();
        names_are_fit_for_metrics::<Failure>();
    }

    #[test]
    fn failures_are_called_what_the_decompressor_calls_them() {
        let errors = [
            DecompressError::Cid,
            DecompressError::NoContext(Cid::ZERO),
            DecompressError::UnsupportedProfile(Cid::ZERO, 9),
            DecompressError::Malformed(Cid::ZERO),
            DecompressError::NoMemory(Cid::ZERO),
            DecompressError::OutputTooSmall { need: 2, have: 1 },
        ];
        for error in errors {
            assert_eq!(Failure::of(&error).map(Reason::name), Some(error.name()));
        }
        assert_eq!(Failure::of(&DecompressError::NothingYet), None);
    }
}
