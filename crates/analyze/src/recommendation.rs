//! Recommended scheme and settings for traffic like that of the captures.

use serde::Serialize;
use thinair_rohc::exchange::Exchanges;
use thinair_rohc::{Channel, CidSpace, CompressorMemory, DecompressorMemory, Mode, ProfileId, ProfileSet};

use crate::merge::RunSums;
use crate::outcome::{Contexts, LateWait, Scheme, Totals};
use crate::scheme::BLOCKS;
use crate::settings::SchemeSpec;
use crate::survey::Facts;

/// Length of a month for the extrapolation of traffic: 30 days, in seconds.
pub const MONTH_SECONDS: f64 = 30.0 * 86_400.0;

/// Minimum additional saving for which more contexts are recommended, as a share of the uncompressed octets, or of
/// their billing units.
const WORTH_MORE_CONTEXTS: f64 = 0.01;

/// Minimum additional saving for which learned bases are recommended, as a share of the uncompressed octets, or of
/// their billing units.
const WORTH_LEARNING: f64 = 0.05;

/// Minimum saving for which any scheme is recommended, as a share of the uncompressed octets, or of their billing
/// units.
pub const WORTH_COMPRESSING: f64 = 0.01;

/// Number of contexts that one octet of large CIDs can identify.
const CIDS_OF_ONE_OCTET: u16 = 128;

/// The ROHC scheme with fewest octets sent among those that two ends can be configured for, and its settings. Where
/// the link bills units, the one with fewest units. There is none if it saves less than [`WORTH_COMPRESSING`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// Name of the scheme, as in [`Scheme::scheme`].
    pub scheme: &'static str,
    /// Mode of operation: `u`, `o` or `r`.
    pub mode: &'static str,
    /// PROFILES of the channel, except `uncompressed`.
    pub profiles: Vec<&'static str>,
    /// LARGE_CIDS and MAX_CID of the channel.
    #[serde(flatten)]
    pub contexts: Contexts,
    /// True if both ends need bases of profile `coap` learned from the captures.
    pub learned: bool,
    /// Octets of all IP packets.
    pub bytes_in: u64,
    /// Octets sent for them in both directions, feedback included.
    pub bytes_out: u64,
    /// Octets of feedback among `bytes_out`.
    pub feedback_bytes: u64,
    /// 1 - `bytes_out` / `bytes_in`.
    pub saved_ratio: f64,
    /// Waiting time of a decompressor that starts late; `None` if feedback requests the context.
    #[serde(flatten)]
    pub late_wait: Option<LateWait>,
    /// Memory at each end in octets: a compressor and a decompressor with all their contexts, for each
    /// partition.
    pub memory_bytes: usize,
    /// Sum of the durations of all captures, in seconds: from the first packet to the last, or
    /// [`Settings::duration`](crate::Settings::duration).
    pub seconds: f64,
    /// Traffic of 30 days at the rate of the captures; `None` if they last less than a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub month: Option<Month>,
    /// Traffic and price on each of [`Settings::carriers`](crate::Settings::carriers).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carriers: Vec<CarrierCost>,
    /// Channel parameters.
    #[serde(skip)]
    pub channel: Channel,
}

/// Traffic of [`MONTH_SECONDS`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Month {
    /// Octets of IP packets.
    pub bytes_in: u64,
    /// Octets sent for them, feedback included.
    pub bytes_out: u64,
    /// Price of `bytes_in`, if the link has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_in: Option<f64>,
    /// Price of `bytes_out`, if the link has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_out: Option<f64>,
}

/// Traffic and price in a tunnel over one carrier.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CarrierCost {
    /// Name of the carrier.
    pub carrier: &'static str,
    /// Octets that it adds to each packet.
    pub overhead_bytes: u32,
    /// Octets sent for all packets, overhead and feedback included.
    pub bytes_out: u64,
    /// 1 - `bytes_out` / octets of the IP packets; negative if they are more.
    pub saved_ratio: f64,
    /// Price of `bytes_out`, if the link has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_out: Option<f64>,
    /// Traffic of 30 days; `None` if the captures last less than a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub month: Option<Month>,
}

/// Returns channels with more contexts for this number of flows: as many as CIDs of one octet can identify,
/// and as many as are needed. Empty if the contexts of the channel suffice.
pub fn more_contexts(channel: &Channel, flows: usize) -> Vec<Channel> {
    let highest = CidSpace::Large.highest();
    let needed = flows.next_power_of_two().min(usize::from(highest) + 1);
    let max_cids = match flows {
        _ if flows <= channel.contexts() => vec![],
        _ if needed <= usize::from(CIDS_OF_ONE_OCTET) => vec![CIDS_OF_ONE_OCTET - 1],
        _ => vec![CIDS_OF_ONE_OCTET - 1, u16::try_from(needed - 1).unwrap_or(highest)],
    };
    let with = |max_cid| Channel::new(CidSpace::Large, max_cid, channel.profiles()).ok();
    max_cids.into_iter().filter_map(with).collect()
}

impl Recommendation {
    pub(crate) fn of(sums: &RunSums, totals: &Totals) -> Option<Self> {
        let settings = &sums.settings;
        let results = totals.schemes.iter().zip(&sums.carried);
        let rohc = settings.schemes.iter().zip(results).filter_map(|(spec, (scheme, carried))| match *spec {
            SchemeSpec::Rohc { channel, mode, learned, .. } => {
                let billed = settings.billing.map_or(scheme.sent_bytes(), |_| carried.units);
                let units_around = settings.billing.map_or(&[][..], |_| &carried.units_around);
                Some(Candidate { units_around, channel, mode, learned, scheme, billed })
            }
            SchemeSpec::Schc | SchemeSpec::Lowpan => None,
        });
        let mut candidates: Vec<_> = rohc.filter(|one| one.scheme.roundtrip_mismatches == 0).collect();
        let before = settings.billing.map_or(totals.traffic.bytes_in, |_| sums.traffic.units);
        let fewest =
            |learned| candidates.iter().filter(|one| one.learned == learned).map(|one| one.billed).min();
        let worth = (before as f64 * WORTH_LEARNING) as u64;
        let is_learned = match (fewest(false), fewest(true)) {
            (Some(plain), Some(learned)) => learned + worth < plain,
            (plain, _) => plain.is_none(),
        };
        candidates.retain(|one| one.learned == is_learned);
        let fewest = candidates.iter().map(|one| one.billed).min()?;
        let bearable = fewest + (before as f64 * WORTH_MORE_CONTEXTS) as u64;
        let chosen = candidates
            .iter()
            .filter(|one| one.billed <= bearable)
            .min_by_key(|one| (one.channel.contexts(), one.billed, one.sent()))?;
        let is_worth_it = chosen.billed as f64 <= before as f64 * (1.0 - WORTH_COMPRESSING);
        (is_worth_it && chosen.billed < before).then(|| chosen.recommended(sums, totals))
    }
}

/// A ROHC scheme with its results.
struct Candidate<'t> {
    units_around: &'t [u64],
    channel: Channel,
    mode: Mode,
    learned: bool,
    scheme: &'t Scheme,
    /// Billing units of what it sends; octets, if the link has no price.
    billed: u64,
}

impl Candidate<'_> {
    fn sent(&self) -> u64 {
        self.scheme.sent_bytes()
    }

    fn recommended(&self, sums: &RunSums, totals: &Totals) -> Recommendation {
        let settings = &sums.settings;
        let profiles = self.profiles(&sums.facts);
        let channel = Channel::new(self.channel.cids(), self.channel.max_cid(), profiles)
            .map_or(self.channel, |channel| channel.with_integrity_below(settings.channel.integrity_below()));
        let bytes_in = totals.traffic.bytes_in;
        let seconds = sums.nanos as f64 / 1e9;
        let (months, sessions) = (MONTH_SECONDS / seconds, totals.session_cost.unwrap_or(0.0));
        let month = |bytes_out: u64, cost_out: Option<f64>| {
            (seconds >= 1.0).then(|| Month {
                bytes_in: (bytes_in as f64 * months) as u64,
                bytes_out: (bytes_out as f64 * months) as u64,
                cost_in: totals.traffic.cost_in.map(|cost| settings.month_price(cost, sessions, months)),
                cost_out: cost_out.map(|cost| settings.month_price(cost, sessions, months)),
            })
        };
        let carriers = settings.carriers.iter().enumerate().map(|(at, carrier)| {
            let bytes_out = self.sent() + u64::from(carrier.octets) * totals.packets;
            let units = self.units_around.get(at).copied().unwrap_or_default();
            let cost_out = settings.billing.map(|billing| units as f64 * billing.price + sessions);
            CarrierCost {
                carrier: carrier.name,
                overhead_bytes: carrier.octets,
                bytes_out,
                saved_ratio: 1.0 - bytes_out as f64 / bytes_in.max(1) as f64,
                cost_out,
                month: month(bytes_out, cost_out),
            }
        });
        let named = profiles.iter().filter(|profile| *profile != ProfileId::Uncompressed);
        Recommendation {
            scheme: self.scheme.scheme,
            mode: self.mode.letter(),
            profiles: named.map(ProfileId::name).collect(),
            contexts: Contexts::of(&channel),
            learned: self.learned,
            bytes_in,
            bytes_out: self.sent(),
            feedback_bytes: self.scheme.feedback_bytes,
            saved_ratio: self.scheme.saved_ratio,
            late_wait: self.scheme.late_wait,
            memory_bytes: settings.partitions() as usize
                * (CompressorMemory::owned(channel.sizes().blocks(BLOCKS)).octets()
                    + DecompressorMemory::owned(channel.sizes().blocks(BLOCKS)).octets()
                    + 2 * Exchanges::for_channel(&channel).octets()),
            seconds,
            month: month(self.sent(), self.scheme.cost_out),
            carriers: carriers.collect(),
            channel,
        }
    }

    /// Returns the default profiles if other ones make no difference.
    fn profiles(&self, facts: &Facts) -> ProfileSet {
        let (own, usual) = (self.channel.profiles(), ProfileSet::default());
        if facts.useful(usual) == facts.useful(own) { usual } else { own }
    }
}
