//! Channel of a destination. That of one of many peers has contexts and buffers only while it carries packets: they are allocated
//! at the first packet, and given back after a time without any.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use thinair_rohc::Integrity;
use thinair_session::Missing;
use thinair_wire::time::Instant;

use crate::channel::{Channel, Cids, Counters, Feedback, NotReceived, NotSent, Role, Sent, Setup};
use crate::site_config::ChannelConfig;
use crate::unit::{SiteId, Unit};

/// Time without packets after which the contexts of one of many peers are given back. The next packet of each of its flows has
/// a whole header.
pub(super) const IDLE: Duration = Duration::from_secs(600);

/// Parameters that the channels of all peers have in common.
#[derive(Clone, Debug)]
pub(super) struct ChannelRecipe {
    pub(super) config: ChannelConfig,
    pub(super) role: Role<'static>,
    pub(super) integrity: Integrity,
    pub(super) bridged: bool,
    pub(super) typed: bool,
    pub(super) mtu: u16,
    pub(super) largest_unit: usize,
    pub(super) mrru: u16,
    pub(super) feedback_interval: Duration,
}

impl ChannelRecipe {
    /// Returns the parameters of one channel.
    pub(super) fn setup(&self, seed: u64) -> Setup<'_> {
        Setup {
            config: &self.config,
            role: self.role,
            integrity: self.integrity,
            bridged: self.bridged,
            typed: self.typed,
            mtu: self.mtu,
            largest_unit: self.largest_unit,
            mrru: self.mrru,
            feedback_interval: self.feedback_interval,
            seed,
        }
    }
}

/// A channel that is there, or can be made.
pub(super) struct PeerChannel {
    channel: Option<Box<Channel>>,
    /// `None`: the channel is always there.
    by_need: Option<ByNeed>,
}

/// Parameters and limits of a channel that is not allocated at present.
struct ByNeed {
    recipe: Arc<ChannelRecipe>,
    seed: u64,
    /// Limit of units, if there is one.
    limit: Option<usize>,
    /// Time of the last packet in either direction.
    used_at: Instant,
    /// Feedback that earlier channels have sent and received.
    before: [Feedback; 2],
}

impl From<Channel> for PeerChannel {
    /// Returns a channel that is always there.
    fn from(channel: Channel) -> Self {
        Self { channel: Some(Box::new(channel)), by_need: None }
    }
}

impl PeerChannel {
    /// Returns a channel of which only the parameters are there. They must be valid.
    pub(super) fn by_need(recipe: &Arc<ChannelRecipe>, seed: u64) -> Self {
        let by_need = ByNeed {
            recipe: Arc::clone(recipe),
            seed,
            limit: None,
            used_at: Instant::ZERO,
            before: [Feedback::default(); 2],
        };
        Self { channel: None, by_need: Some(by_need) }
    }

    /// The channel, if it is there.
    pub(super) fn there(&self) -> Option<&Channel> {
        self.channel.as_deref()
    }

    /// Returns the channel for a packet. `None`: its parameters are invalid.
    fn used(&mut self, now: Instant) -> Option<&mut Channel> {
        if let Some(by_need) = &mut self.by_need {
            by_need.used_at = by_need.used_at.max(now);
            if self.channel.is_none() {
                // Sequence numbers begin at a different value than before.
                by_need.seed = by_need.seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                let mut channel = Channel::new(&by_need.recipe.setup(by_need.seed)).ok()?;
                if let Some(limit) = by_need.limit {
                    channel.limit(limit);
                }
                self.channel = Some(Box::new(channel));
            }
        }
        self.channel.as_deref_mut()
    }

    pub(super) fn begin_group(&mut self) {
        if let Some(channel) = &mut self.channel {
            channel.begin_group();
        }
    }

    pub(super) fn send(
        &mut self,
        now: Instant,
        packet: &[u8],
        sink: &mut dyn FnMut(Unit<'_>),
    ) -> Result<Sent, NotSent> {
        self.used(now).ok_or(NotSent::OnlyHears)?.send(now, packet, sink)
    }

    pub(super) fn receive(
        &mut self,
        now: Instant,
        from: Option<SiteId>,
        unit: Unit<'_>,
        room: &mut [u8],
    ) -> Result<Option<Range<usize>>, NotReceived> {
        self.used(now).ok_or(NotReceived::UnknownSite)?.receive(now, from, unit, room)
    }

    /// Records missing units. A channel that is not there yet counts from its first packet.
    pub(super) fn note_missing(&mut self, from: Option<SiteId>, missing: Missing) {
        if let Some(channel) = &mut self.channel {
            channel.note_missing(from, missing);
        }
    }

    /// Limits the size of units from now on.
    pub(super) fn limit(&mut self, largest_unit: usize) {
        if let Some(channel) = &mut self.channel {
            channel.limit(largest_unit);
        }
        if let Some(by_need) = &mut self.by_need {
            by_need.limit = Some(largest_unit);
        }
    }

    /// Resets all contexts. Those of one of many peers are made again at the next packet.
    pub(super) fn reset(&mut self, from: Option<SiteId>) {
        if self.by_need.is_some() {
            self.drop_channel();
        } else if let Some(channel) = &mut self.channel {
            channel.reset(from);
        }
    }

    fn drop_channel(&mut self) {
        let counters = self.counters();
        if let Some(by_need) = &mut self.by_need {
            by_need.before = [counters.feedback_sent, counters.feedback_received];
            self.channel = None;
        }
    }

    /// Time of the next call of [`poll`](Self::poll).
    pub(super) fn poll_at(&self) -> Option<Instant> {
        let channel = self.channel.as_deref()?;
        let idle_at = self.by_need.as_ref().map(|by_need| by_need.used_at + IDLE);
        channel.poll_at().into_iter().chain(idle_at).min()
    }

    /// Passes on feedback that has waited long enough, and gives an idle channel back.
    pub(super) fn poll(&mut self, now: Instant, sink: &mut dyn FnMut(Unit<'_>)) {
        let is_idle = self.by_need.as_ref().is_some_and(|by_need| by_need.used_at + IDLE <= now);
        let Some(channel) = &mut self.channel else { return };
        if is_idle {
            channel.give_back(now, sink);
            self.drop_channel();
        } else if channel.poll_at().is_some_and(|at| at <= now) {
            channel.poll(now, sink);
        }
    }

    /// Counters since the start; of channels that were given back those of feedback.
    pub(super) fn counters(&self) -> Counters {
        let mut counters =
            self.channel.as_ref().map(|channel| channel.counters().clone()).unwrap_or_default();
        if let Some(ByNeed { before: [sent, received], .. }) = &self.by_need {
            counters.feedback_sent = counters.feedback_sent.plus(sent);
            counters.feedback_received = counters.feedback_received.plus(received);
        }
        counters
    }

    /// The CID space of each direction. `None`: no channel is there.
    pub(super) fn cids(&self) -> Option<Cids> {
        self.there().map(Channel::cids)
    }
}
