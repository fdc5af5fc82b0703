//! Construction of a site from its configuration.

use std::sync::Arc;
use std::time::Duration;

use thinair_session::mapping::MappingSearch;
use thinair_session::path_mtu::{Least, PathMtu};
use thinair_session::{Destination, FEW, Random, Schedule, Seal};
use thinair_wire::time::Instant;

use super::departures::Departures;
use super::hold;
use super::host_multicast::HostMulticast;
use super::output::{A_PEER, OutputQueue};
use super::peer_channel::{ChannelRecipe, PeerChannel};
use super::pipeline::{Link, Pipeline};
use super::source::Source;
use super::{CommonParts, Site};
use crate::channel::{AllowedError, AllowedIps, Channel, Role, Setup, SetupError};
use crate::mtu::Budget;
use crate::packaging::{Packager, PackagerConfig, PackagingError, Unpackager, rtp};
use crate::site_config::{Carrier, Others, Packaging, Peer, Security, SiteConfig};
use crate::status::{Counters, TrafficCounters};
use crate::unit::SiteId;

/// Least time between two datagrams that contain only feedback, if requests for it are not authenticated.
const INSECURE_FEEDBACK: Duration = Duration::from_secs(1);

/// Error of a configuration.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Allowed sources are contradictory.
    #[error(transparent)]
    Allowed(#[from] AllowedError),
    /// A channel cannot be set up.
    #[error(transparent)]
    Channel(#[from] SetupError),
    /// The packaging is contradictory.
    #[error(transparent)]
    Packaging(#[from] PackagingError),
}

impl Site {
    /// Builds the site of a configuration, with the memory of a budget. `seal`: `None` without encryption.
    ///
    /// # Errors
    /// The configuration is contradictory.
    pub fn new(
        now: Instant,
        config: &SiteConfig,
        budget: &Budget,
        seal: Option<Seal>,
        random: &mut dyn Random,
    ) -> Result<Self, BuildError> {
        let has_addresses = matches!(config.carrier, Carrier::Udp { .. });
        let many = if let Others::Peers(peers) = &config.others { peers.len() } else { 0 };
        let (mut pipelines, mut sources) = (Vec::with_capacity(many), Vec::with_capacity(many));
        let mut unpackagers = Vec::with_capacity(many);
        let allowed = AllowedIps::of(&config.others, &config.inside)?;
        let mesh = match &config.others {
            Others::Peers(peers) => {
                let mut plan = PeerPlan::new(now, config, budget, random);
                for (number, one) in peers.iter().enumerate() {
                    let (pipeline, source, unpackager) = plan.peer(number, one)?;
                    pipelines.push(pipeline);
                    sources.push(source);
                    unpackagers.extend(unpackager);
                }
                false
            }
            Others::Mesh(mesh) => {
                let sites: Vec<SiteId> = mesh.sites.iter().map(|site| site.id).collect();
                let role = Role::Mesh { own: mesh.own, sites: &sites, feedback: mesh.feedback };
                let link = Link::new(Destination::Everybody, mesh.to, has_addresses);
                let channel = channel(&recipe(config, budget, Role::OneWay), role, random)?;
                pipelines.push(pipeline(now, config, budget, ("all", channel.into(), link), random)?);
                sources.extend(mesh.sites.iter().map(|site| Source::new(&site.name, Some(site.id))));
                true
            }
        };
        let (packaging, bridged) = (packaging(&config.carrier), config.inside.bridged);
        let largest_unit = budget.largest_unit.max(LONGEST_UNIT);
        let count = if is_sealed(config) { sources.len() } else { 1 };
        for _ in unpackagers.len()..count {
            unpackagers.push(Unpackager::new(packaging, &config.others, largest_unit, bridged)?);
        }
        let bitrate = match packaging {
            Packaging::Ts { bitrate, .. } => bitrate.unwrap_or(0),
            Packaging::Packed | Packaging::Gse { .. } => 0,
        };
        // A stream of constant rate makes up for at most one second of missed slots. Many peers take turns.
        let due = A_PEER * FEW * budget.largest_datagram + bitrate as usize / 4;
        let mut counters = Counters::new(config.seeing.billing_unit);
        // Only peers that answer show that something arrives.
        counters.arrived = matches!(seal, Some(Seal::TwoWay(_))).then(TrafficCounters::default);
        let common = CommonParts {
            seal,
            counters,
            outer: budget.outer,
            datagram: Vec::with_capacity(2_048),
            outputs: OutputQueue::new(due),
            departures: Departures::default(),
        };
        let narrow = budget.narrow();
        Ok(Self {
            pipelines,
            sources,
            unpackagers,
            mesh,
            allowed,
            host_multicast: HostMulticast::of(config),
            hold: match &config.tariff {
                Some(tariff) if !hold::is_counted(tariff) => Vec::new(),
                Some(_) | None => config.hold.clone(),
            },
            tariff: config.tariff.clone(),
            narrow,
            common,
            schedule: Schedule::default(),
            unfinished: Vec::new(),
            has_rate: bitrate > 0,
            inside_mtu: None,
            answered_at: None,
        }
        .scheduled())
    }
}

/// Construction of the parts of a site for its peers.
pub(super) struct PeerPlan<'a> {
    now: Instant,
    config: &'a SiteConfig,
    budget: &'a Budget,
    recipe: Arc<ChannelRecipe>,
    /// True if channels are made when they are needed.
    by_need: bool,
    /// True if a channel was made, which shows that the parameters are valid.
    is_valid: bool,
    random: &'a mut dyn Random,
}

impl<'a> PeerPlan<'a> {
    pub(super) fn new(
        now: Instant,
        config: &'a SiteConfig,
        budget: &'a Budget,
        random: &'a mut dyn Random,
    ) -> Self {
        let role = if is_one_way(&config.carrier) { Role::OneWay } else { Role::Pair };
        let has_many = matches!(&config.others, Others::Peers(peers) if peers.len() > FEW);
        let by_need = has_many && matches!(config.security, Security::Key { .. });
        let recipe = Arc::new(recipe(config, budget, role));
        Self { now, config, budget, recipe, by_need, is_valid: false, random }
    }

    /// The parts for one peer; without an unpackager if all peers share one.
    pub(super) fn peer(
        &mut self,
        number: usize,
        peer: &Peer,
    ) -> Result<(Pipeline, Source, Option<Unpackager>), BuildError> {
        let Self { now, config, budget, .. } = *self;
        let has_addresses = matches!(config.carrier, Carrier::Udp { .. });
        let mut link = Link::new(Destination::Peer(number), peer.address, has_addresses);
        let narrow = budget.narrow();
        if has_addresses && matches!(config.security, Security::Key { .. }) && narrow.is_possible() {
            let least = if budget.outer > IPV4_AND_UDP { Least::IPV6 } else { Least::IPV4 };
            link.path = Some(PathMtu::new(least, budget.carrier_mtu, narrow.is_cut));
            link.settled = budget.carrier_mtu;
        }
        if has_addresses && peer.learns_keepalive && matches!(config.security, Security::Key { .. }) {
            link.mapping = Some(MappingSearch::new(now, None));
        }
        let channel = self.channel()?;
        let pipeline = pipeline(now, config, budget, (&peer.name, channel, link), self.random)?;
        let largest_unit = budget.largest_unit.max(LONGEST_UNIT);
        let unpackager = is_sealed(config)
            .then(|| {
                Unpackager::of_peer(packaging(&config.carrier), peer, largest_unit, config.inside.bridged)
            })
            .transpose()?;
        Ok((pipeline, Source::new(&peer.name, None), unpackager))
    }

    fn channel(&mut self) -> Result<PeerChannel, BuildError> {
        if self.by_need && self.is_valid {
            return Ok(PeerChannel::by_need(&self.recipe, seed(self.random)));
        }
        let channel = channel(&self.recipe, self.recipe.role, self.random)?;
        self.is_valid = true;
        if self.by_need { self.channel() } else { Ok(channel.into()) }
    }
}

fn pipeline(
    now: Instant,
    config: &SiteConfig,
    budget: &Budget,
    (name, channel, link): (&str, PeerChannel, Link),
    random: &mut dyn Random,
) -> Result<Pipeline, BuildError> {
    let packager_config = PackagerConfig {
        largest_body: budget.largest_body,
        bridged: config.inside.bridged,
        pad: config.channel.pad,
        rtp: rtp_start(&config.carrier, random),
    };
    let packager = Packager::new(now, packaging(&config.carrier), &config.others, packager_config)?;
    Ok(Pipeline {
        name: name.to_owned(),
        channel,
        packager,
        link,
        waiting: Default::default(),
        is_unfinished: false,
    })
}

/// True if the seal identifies the source of a body.
fn is_sealed(config: &SiteConfig) -> bool {
    matches!(config.security, Security::Key { .. } | Security::Insecure)
}

/// Length of the headers of IPv4 and UDP, in octets.
const IPV4_AND_UDP: usize = 28;

/// Length of the longest unit that is received, in octets. It does not depend on the own MTU, as that of the
/// other end may be larger.
const LONGEST_UNIT: usize = 2_048;

fn channel(recipe: &ChannelRecipe, role: Role<'_>, random: &mut dyn Random) -> Result<Channel, SetupError> {
    Channel::new(&Setup { role, ..recipe.setup(seed(random)) })
}

fn seed(random: &mut dyn Random) -> u64 {
    let mut seed = [0; 8];
    random.fill(&mut seed);
    u64::from_ne_bytes(seed)
}

fn recipe(config: &SiteConfig, budget: &Budget, role: Role<'static>) -> ChannelRecipe {
    ChannelRecipe {
        config: config.channel.clone(),
        role,
        integrity: budget.integrity,
        bridged: config.inside.bridged,
        typed: *packaging(&config.carrier) != Packaging::Packed,
        mtu: budget.mtu,
        largest_unit: budget.largest_unit,
        mrru: budget.mrru,
        feedback_interval: match config.security {
            Security::Insecure => INSECURE_FEEDBACK,
            Security::Key { .. } | Security::Open => Duration::ZERO,
        },
    }
}

/// Packaging of units on a carrier.
pub(crate) fn packaging(carrier: &Carrier) -> &Packaging {
    match carrier {
        Carrier::Udp { packaging, .. } | Carrier::File { packaging, .. } => packaging,
        Carrier::Serial { .. } => &Packaging::Packed,
    }
}

/// True if the carrier has no return direction.
fn is_one_way(carrier: &Carrier) -> bool {
    matches!(carrier, Carrier::File { from: None, .. } | Carrier::File { to: None, .. })
}

fn rtp_start(carrier: &Carrier, random: &mut dyn Random) -> Option<rtp::Start> {
    let Carrier::Udp { rtp: true, .. } = carrier else { return None };
    // Both must be random (RFC 3550, section 5.1).
    let mut octets = [0; 6];
    random.fill(&mut octets);
    let [a, b, c, d, e, f] = octets;
    Some(rtp::Start { ssrc: u32::from_ne_bytes([a, b, c, d]), sequence_number: u16::from_ne_bytes([e, f]) })
}
