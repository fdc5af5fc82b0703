//! CID spaces of a pair: a channel with small CIDs, and a second one with large CIDs, which is used while
//! there are many flows.
//!
//! Each channel is complete, with its own contexts, feedback and exchanges at both ends, and independent of
//! the other. Each end therefore selects the channel of its packets alone and at any time: a bit beside each
//! body identifies the channel, and packets in transit when the selection changes still belong to theirs. A
//! channel that is not in use keeps its contexts, and so does its decompressor: a flow that returns to it
//! resembles one that was silent for a while.

use std::time::Duration;

use thinair_rohc::cid::Cid;
use thinair_rohc::{Channel as Parameters, CidSpace, Compressed, Instant};
use thinair_session::Missing;

use super::counters::Counters;
use super::ends::ChannelEnds;
use super::{NotSent, Setup, SetupError};
use crate::site_config::ChannelConfig;
use crate::unit::{SiteId, Unit};

/// Time after its last packet for which a flow counts as live. A lost context costs the next packets of its
/// flow some 40 octets each until it is established again; a large CID costs one or two octets. So even a
/// flow with a packet per minute is worth a context.
pub const LIVE: Duration = Duration::from_secs(60);

/// Number of live flows below which small CIDs are used again: less than the number of small CIDs, so that
/// short flows do not change the channel each time.
pub const FEW: usize = 12;

/// Interval at which live flows are counted while large CIDs are used.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// CID space of each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cids {
    /// CID space of sent packets.
    pub sent: CidSpace,
    /// CID space of the packet received last.
    pub received: CidSpace,
    /// Number of changes of `sent`.
    pub sent_switches: u64,
    /// Number of changes of `received`.
    pub received_switches: u64,
}

/// Channels of one destination.
#[derive(Debug)]
pub(super) struct Spaces {
    /// The only channel, or the one with small CIDs.
    first: ChannelEnds,
    /// Channel with large CIDs; `None` until either end uses it.
    large: Option<Box<ChannelEnds>>,
    choice: Option<Choice>,
    cids: Cids,
}

/// State of the selection, for an end with both channels.
#[derive(Debug)]
struct Choice {
    /// Parameters of the channel with large CIDs.
    parameters: Parameters,
    /// Times of the last packets of each channel's contexts.
    first: Uses,
    large: Uses,
    /// True after a live flow has lost its context, or waits for one.
    crowded: bool,
    /// Time of the next count of live flows.
    count_at: Instant,
}

/// Time of the last packet of each context, by CID.
#[derive(Debug, Default)]
struct Uses {
    last: Vec<Instant>,
    counts: FlowCounts,
}

/// Counts of a compressor, modulo 2^32.
#[derive(Clone, Copy, Debug, Default)]
struct FlowCounts {
    displaced: u32,
    waiting: u32,
}

impl Uses {
    fn of(contexts: usize) -> Self {
        Self { last: Vec::with_capacity(contexts), counts: FlowCounts::default() }
    }

    /// Records a packet. Returns true if it has replaced the context of a live flow, or waits for one while all contexts are those of
    /// live flows.
    fn note(&mut self, now: Instant, cid: Cid, counts: FlowCounts) -> bool {
        let before = std::mem::replace(&mut self.counts, counts);
        let is_waiting = before.waiting != counts.waiting && self.live(now) == self.last.len();
        match self.last.get_mut(cid.index()) {
            Some(last) => {
                let last = std::mem::replace(last, now);
                is_waiting || before.displaced != counts.displaced && now.since(last) < LIVE
            }
            // CIDs are assigned in ascending order.
            None => {
                self.last.push(now);
                false
            }
        }
    }

    /// Number of contexts with live flows.
    fn live(&self, now: Instant) -> usize {
        self.last.iter().filter(|last| now.since(**last) < LIVE).count()
    }
}

impl Spaces {
    pub(super) fn new(setup: &Setup<'_>) -> Result<Self, SetupError> {
        let config = setup.config;
        let first = ChannelEnds::new(setup)?;
        let choice = match config.large_max_cid {
            None => None,
            Some(max_cid) => {
                let parameters = Parameters::new(CidSpace::Large, max_cid, config.profiles);
                let parameters = parameters.map_err(SetupError::Channel)?;
                let parameters = parameters.with_mrru(setup.mrru).with_integrity_below(setup.integrity);
                Some(Choice::new(parameters, config))
            }
        };
        let cids = Cids { sent: config.cids, received: config.cids, sent_switches: 0, received_switches: 0 };
        Ok(Self { first, large: None, choice, cids })
    }

    /// CID space of each direction.
    pub(super) fn cids(&self) -> Cids {
        self.cids
    }

    /// True if packets are currently sent on the second channel.
    pub(super) fn sends_large(&self) -> bool {
        self.choice.is_some() && self.cids.sent == CidSpace::Large
    }

    /// Returns the channel used for sending.
    pub(super) fn sending(&mut self) -> &mut ChannelEnds {
        match &mut self.large {
            Some(large) if self.choice.is_some() && self.cids.sent == CidSpace::Large => large,
            _ => &mut self.first,
        }
    }

    /// Records missing units, which may belong to either channel.
    pub(super) fn note_missing(&mut self, from: Option<SiteId>, missing: Missing) {
        for ends in [Some(&mut self.first), self.large.as_deref_mut()].into_iter().flatten() {
            ends.note_missing(from, missing);
        }
    }

    pub(super) fn begin_group(&mut self) {
        for ends in [Some(&mut self.first), self.large.as_deref_mut()].into_iter().flatten() {
            ends.begin_group();
        }
    }

    /// Returns the channel of a unit; `None` if there is no such channel. The channel with large CIDs is
    /// created at its first use.
    pub(super) fn receiving(&mut self, config: &ChannelConfig, large: bool) -> Option<&mut ChannelEnds> {
        if large { self.large(config) } else { Some(&mut self.first) }
    }

    fn large(&mut self, config: &ChannelConfig) -> Option<&mut ChannelEnds> {
        let parameters = self.choice.as_ref()?.parameters;
        let first = &self.first;
        Some(self.large.get_or_insert_with(|| Box::new(first.with_large_cids(config, parameters))))
    }

    /// Records that a channel received a packet, not only feedback.
    pub(super) fn note_received(&mut self, large: bool) {
        let Some(_) = &self.choice else { return };
        let space = if large { CidSpace::Large } else { CidSpace::Small };
        if std::mem::replace(&mut self.cids.received, space) != space {
            self.cids.received_switches += 1;
        }
    }

    /// Selects a channel and compresses a packet on it. [`sending`](Self::sending) returns that channel until
    /// the next packet.
    pub(super) fn compress(
        &mut self,
        now: Instant,
        config: &ChannelConfig,
        packet: &[u8],
        room: &mut [u8],
    ) -> Result<Compressed, NotSent> {
        let Some(choice) = &mut self.choice else { return self.first.compress(now, packet, room) };
        let is_large = self.cids.sent == CidSpace::Large;
        if let Some(space) = choice.next(now, is_large) {
            self.cids.sent = space;
            self.cids.sent_switches += 1;
            if space == CidSpace::Large {
                self.large(config);
            }
        }
        let ends = self.sending();
        let compressed = ends.compress(now, packet, room)?;
        let counts = ends.compressor().map_or_else(FlowCounts::default, |compressor| FlowCounts {
            displaced: compressor.displaced_flows(),
            waiting: compressor.waiting_packets(),
        });
        if let Some(choice) = &mut self.choice {
            choice.note(now, self.cids.sent, &compressed, counts);
        }
        Ok(compressed)
    }

    pub(super) fn only_hears(&self) -> bool {
        self.first.only_hears()
    }

    /// Prepares the end of all contexts: the compressors of the other end are to begin again.
    pub(super) fn give_back(&mut self, now: Instant, counters: &mut Counters) {
        for ends in [Some(&mut self.first), self.large.as_deref_mut()].into_iter().flatten() {
            ends.give_back(now, &mut counters.feedback_sent);
        }
    }

    pub(super) fn poll_at(&self) -> Option<Instant> {
        self.all().filter_map(ChannelEnds::poll_at).min()
    }

    pub(super) fn poll(
        &mut self,
        now: Instant,
        most: usize,
        counters: &mut Counters,
        sink: &mut dyn FnMut(Unit<'_>),
    ) {
        self.first.poll(now, most, counters, sink);
        if let Some(large) = &mut self.large {
            large.poll(now, most, counters, &mut |unit| sink(Unit { large: true, ..unit }));
        }
    }

    /// Resets the contexts of all channels at both ends: small CIDs are used again.
    pub(super) fn reset(&mut self, config: &ChannelConfig, from: Option<crate::unit::SiteId>) {
        self.first.reset(config, from);
        let Some(choice) = &mut self.choice else { return };
        *choice = Choice::new(choice.parameters, config);
        self.large = None;
        for (space, switches) in [
            (&mut self.cids.sent, &mut self.cids.sent_switches),
            (&mut self.cids.received, &mut self.cids.received_switches),
        ] {
            *switches += u64::from(std::mem::replace(space, CidSpace::Small) == CidSpace::Large);
        }
    }

    /// Returns the existing channels.
    pub(super) fn all(&self) -> impl Iterator<Item = &ChannelEnds> {
        std::iter::once(&self.first).chain(self.large.as_deref())
    }
}

impl Choice {
    fn new(parameters: Parameters, config: &ChannelConfig) -> Self {
        Self {
            parameters,
            first: Uses::of(usize::from(config.max_cid) + 1),
            large: Uses::default(),
            crowded: false,
            count_at: Instant::ZERO,
        }
    }

    /// Changes the CID space for sent packets.
    fn next(&mut self, now: Instant, is_large: bool) -> Option<CidSpace> {
        if !is_large {
            let crowded = std::mem::take(&mut self.crowded);
            return crowded.then(|| {
                self.large.last.reserve(self.parameters.contexts());
                // Flows have this time to show that they are live.
                self.count_at = now + LIVE;
                CidSpace::Large
            });
        }
        if now < self.count_at {
            return None;
        }
        self.count_at = now + COUNT_EVERY;
        (self.large.live(now) <= FEW).then_some(CidSpace::Small)
    }

    fn note(&mut self, now: Instant, space: CidSpace, compressed: &Compressed, counts: FlowCounts) {
        match space {
            CidSpace::Small => self.crowded |= self.first.note(now, compressed.cid, counts),
            // There is no larger space.
            CidSpace::Large => _ = self.large.note(now, compressed.cid, counts),
        }
    }
}
