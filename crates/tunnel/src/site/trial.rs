//! Trial of a configuration before its first packet: both ends in virtual time, with a carrier that loses nothing between them.
//! Each octet on the carrier has one cause.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use thinair_session::{Around, BadPeers, Insecure, Key, Keyring, Keys, PeerKeys, PublicKeys, Seal, TwoWay};
use thinair_wire::time::Instant;

use super::{BuildError, Site, SiteOutput};
use crate::mtu::{Budget, BudgetError};
use crate::site_config::{ALL_ADDRESSES, Carrier, Others, Packaging, Peer, Security, SiteConfig};

/// Cause of octets on the carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrialCause {
    /// Compressed packets without the headers of the next three causes.
    Packets,
    /// Headers of packets that set up a context.
    Contexts,
    /// Headers of packets that refresh a context.
    Refreshes,
    /// Feedback of ROHC.
    Feedback,
    /// Lengths, padding, TS Packets, BBFrames.
    Packaging,
    /// Headers of IP and UDP, or CRC and delimiters of a line, of datagrams with packets.
    OuterHeaders,
    /// Headers and tags of encrypted datagrams with packets.
    Encryption,
    /// Keepalives, and requested signs of life.
    Keepalives,
    /// Key exchanges.
    KeyExchanges,
    /// Probes of the path MTU, and their confirmations.
    PathProbes,
}

impl TrialCause {
    /// All causes.
    pub const ALL: [Self; 10] = [
        Self::Packets,
        Self::Contexts,
        Self::Refreshes,
        Self::Feedback,
        Self::Packaging,
        Self::OuterHeaders,
        Self::Encryption,
        Self::Keepalives,
        Self::KeyExchanges,
        Self::PathProbes,
    ];

    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Contexts => "contexts",
            Self::Refreshes => "refreshes",
            Self::Feedback => "feedback",
            Self::Packaging => "packaging",
            Self::OuterHeaders => "outer_headers",
            Self::Encryption => "encryption",
            Self::Keepalives => "keepalives",
            Self::KeyExchanges => "key_exchanges",
            Self::PathProbes => "path_probes",
        }
    }
}

/// Reason why a configuration cannot be tried.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The other ends are a mesh.
    #[error("a mesh is not billed: give the file of two ends")]
    Mesh,
    /// There is no such peer, or the only one is not named.
    #[error("there are {0} peers; give one tunnel for each in a file of its own")]
    Peers(usize),
    /// A file has no octets on the air.
    #[error("a file costs nothing: give a carrier of two ends")]
    File,
    /// Null packets fill the stream.
    #[error("a stream of {0} bit/s costs that rate, whatever it carries")]
    ConstantRate(u64),
    /// Sizes are impossible.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// A site is impossible.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Keys are impossible.
    #[error(transparent)]
    Keys(#[from] BadPeers),
}

/// Octets by cause, and datagrams by size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrialOctets {
    octets: [u64; TrialCause::ALL.len()],
    /// Number of datagrams by their octets, headers of the carrier included, sent by this end and by the other one.
    pub datagrams: [BTreeMap<u32, u64>; 2],
}

impl TrialOctets {
    /// Octets of a cause.
    pub fn of(&self, cause: TrialCause) -> u64 {
        self.octets[cause as usize]
    }

    /// Sum of all causes.
    pub fn total(&self) -> u64 {
        self.octets.iter().sum()
    }

    /// Octets since an earlier time of the same trial.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut later = self.clone();
        for (octets, before) in later.octets.iter_mut().zip(earlier.octets) {
            *octets = octets.saturating_sub(before);
        }
        for (sizes, before) in later.datagrams.iter_mut().zip(&earlier.datagrams) {
            for (size, count) in before {
                if let Some(now) = sizes.get_mut(size) {
                    *now = now.saturating_sub(*count);
                }
            }
        }
        later
    }

    /// Adds the octets of another trial.
    pub fn add_all(&mut self, other: &Self) {
        for (octets, more) in self.octets.iter_mut().zip(other.octets) {
            *octets += more;
        }
        for (sizes, more) in self.datagrams.iter_mut().zip(&other.datagrams) {
            for (size, count) in more {
                *sizes.entry(*size).or_default() += count;
            }
        }
    }

    fn add(&mut self, cause: TrialCause, octets: usize) {
        self.octets[cause as usize] += octets as u64;
    }
}

/// Two ends, of which the first has the configuration.
pub struct Trial {
    ends: [End; 2],
    around: Around,
    outer: usize,
    now: Instant,
    spent: TrialOctets,
}

struct End {
    site: Site,
    address: SocketAddr,
    /// Octets of the bodies in its datagrams.
    bodies: u64,
    /// Octets of headers that set up and refresh contexts.
    contexts: u64,
    refreshes: u64,
    /// Packets for its interface.
    delivered: u64,
}

impl Trial {
    /// Starts both ends. The other one waits if it is configured with an address, and has the same channels and no
    /// keepalive. `number`: of the peer.
    ///
    /// # Errors
    /// The configuration has no two ends, or is contradictory.
    pub fn new(config: &SiteConfig, number: usize) -> Result<Self, TrialError> {
        let Others::Peers(peers) = &config.others else { return Err(TrialError::Mesh) };
        let peer = peers.get(number).ok_or(TrialError::Peers(peers.len()))?;
        match &config.carrier {
            Carrier::File { .. } => return Err(TrialError::File),
            Carrier::Udp { packaging: Packaging::Ts { bitrate: Some(rate), .. }, .. } => {
                return Err(TrialError::ConstantRate(*rate));
            }
            Carrier::Udp { .. } | Carrier::Serial { .. } => {}
        }
        let is_udp = matches!(config.carrier, Carrier::Udp { .. });
        let budget = Budget::of(config)?;
        let addresses = ends_of(&budget);
        let mut ends = Vec::new();
        for (number, address) in addresses.into_iter().enumerate() {
            let knows = is_udp && (!is_sealed(config) || (number == 1) == peer.address.is_none());
            let other = Peer {
                address: knows.then_some(addresses[1 - number]),
                allowed: ALL_ADDRESSES.to_vec(),
                keepalive: peer.keepalive.filter(|_| number == 0),
                // Nothing is known of the NAT.
                learns_keepalive: false,
                ..peer.clone()
            };
            let mut own = SiteConfig { others: Others::Peers(vec![other.clone()]), ..config.clone() };
            if number == 1 {
                exchange_pids(&mut own);
            }
            let seal = seal(&own, &other, number)?;
            let site = Site::new(Instant::ZERO, &own, &budget, seal, &mut random(number as u64 + 3))?;
            ends.push(End { site, address, bodies: 0, contexts: 0, refreshes: 0, delivered: 0 });
        }
        let ends = ends.try_into().unwrap_or_else(|_| unreachable!("two addresses"));
        let (around, outer) = (config.around(), budget.outer);
        let mut trial = Self { ends, around, outer, now: Instant::ZERO, spent: TrialOctets::default() };
        trial.settle();
        Ok(trial)
    }

    /// Passes time until `after` the start.
    pub fn run_to(&mut self, after: Duration) {
        let end = Instant::ZERO + after;
        while let Some(at) =
            self.ends.iter().filter_map(|end| end.site.poll_at()).min().filter(|at| *at <= end)
        {
            self.now = at.max(self.now);
            self.settle();
        }
        self.now = end.max(self.now);
    }

    /// Sends a packet that is at an interface `after` the start: of this end, or of the other one.
    pub fn send(&mut self, after: Duration, from_other: bool, packet: &[u8]) {
        self.run_to(after);
        let now = self.now;
        let Some(end) = self.ends.get_mut(usize::from(from_other)) else { return };
        let before = end.headers();
        end.site.handle_packet(now, packet);
        let [headers, contexts, refreshes] = end.headers();
        match (contexts > before[1], refreshes > before[2]) {
            (_, true) => end.refreshes += headers - before[0],
            (true, false) => end.contexts += headers - before[0],
            (false, false) => {}
        }
        end.site.pause(now);
        self.settle();
    }

    /// Packets delivered to the interface of each end.
    pub fn delivered(&self) -> [u64; 2] {
        [self.ends[0].delivered, self.ends[1].delivered]
    }

    /// Octets so far.
    pub fn spent(&self) -> TrialOctets {
        let mut spent = self.spent.clone();
        for end in &self.ends {
            let (feedback, packaging) = end.beside_packets();
            let mut left = end.bodies;
            for (cause, octets) in [
                (TrialCause::Feedback, feedback),
                (TrialCause::Packaging, packaging),
                (TrialCause::Contexts, end.contexts),
                (TrialCause::Refreshes, end.refreshes),
            ] {
                // Octets that wait in a packager are in no body yet.
                let octets = octets.min(left);
                left -= octets;
                spent.add(cause, octets as usize);
            }
            spent.add(TrialCause::Packets, left as usize);
        }
        spent
    }

    /// Exchanges datagrams until none is left.
    fn settle(&mut self) {
        for end in &mut self.ends {
            end.site.handle_timeout(self.now);
        }
        loop {
            let mut moved = Vec::new();
            for (number, end) in self.ends.iter_mut().enumerate() {
                while let Some(output) = end.site.poll_output() {
                    match output {
                        SiteOutput::Datagram { octets, .. } => moved.push((number, octets.to_vec())),
                        SiteOutput::Packet { .. } => end.delivered += 1,
                        SiteOutput::Probe { .. } | SiteOutput::Event { .. } => {}
                    }
                }
            }
            if moved.is_empty() {
                return;
            }
            for (number, mut datagram) in moved {
                self.count(number, &datagram);
                let from = Some(self.ends[number].address.into()).filter(|_| self.outer >= 28);
                let to = &mut self.ends[1 - number].site;
                to.handle_datagram(self.now, from, &mut datagram);
                to.handle_timeout(self.now);
            }
        }
    }

    /// Counts a datagram under its causes.
    fn count(&mut self, number: usize, datagram: &[u8]) {
        let all = self.outer + datagram.len();
        *self.spent.datagrams[number].entry(all as u32).or_default() += 1;
        let (kind, full) = datagram.first().map_or((0, false), |first| (first >> 5, first & 0x10 != 0));
        let is_sealed = self.around.tag > 0;
        let around = self.around.usual() + if is_sealed && full { self.around.rest_of_counter } else { 0 };
        let body = datagram.len().saturating_sub(around);
        let is_path = kind == 6 && datagram.first().is_some_and(|first| first & 3 != 0);
        match (is_sealed, kind) {
            (true, 3) => self.spent.add(TrialCause::KeyExchanges, all),
            (true, _) if is_path => self.spent.add(TrialCause::PathProbes, all),
            (true, _) if body == 0 => self.spent.add(TrialCause::Keepalives, all),
            _ => {
                self.spent.add(TrialCause::OuterHeaders, self.outer);
                self.spent.add(TrialCause::Encryption, datagram.len() - body);
                self.ends[number].bodies += body as u64;
            }
        }
    }
}

impl End {
    /// Octets of headers sent, and numbers of packets that set up and refresh contexts.
    fn headers(&self) -> [u64; 3] {
        let counters = &self.site.pipelines[0].channel.counters();
        [counters.sent.rohc_headers, counters.compressed.initialization, counters.compressed.refresh]
    }

    /// Octets of feedback, and of packaging.
    fn beside_packets(&self) -> (u64, u64) {
        let pipeline = &self.site.pipelines[0];
        let packager = pipeline.packager.counters();
        let packaging = packager.body_octets.saturating_sub(packager.octets);
        (pipeline.channel.counters().feedback_sent.octets, packaging)
    }
}

/// Exchanges the PIDs of both directions.
fn exchange_pids(config: &mut SiteConfig) {
    let SiteConfig { carrier, others, .. } = config;
    if let (Carrier::Udp { packaging: Packaging::Ts { pid, .. }, .. }, Others::Peers(peers)) =
        (carrier, others)
        && let Some(theirs) = peers.first_mut().and_then(|peer| peer.pid.as_mut())
    {
        std::mem::swap(pid, theirs);
    }
}

fn is_sealed(config: &SiteConfig) -> bool {
    matches!(config.security, Security::Key { .. })
}

/// Addresses of both ends, of the family of the carrier.
fn ends_of(budget: &Budget) -> [SocketAddr; 2] {
    [1, 2].map(|end| match budget.outer {
        48 => SocketAddr::from((Ipv6Addr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, end]), 7_000)),
        _ => SocketAddr::from((Ipv4Addr::new(192, 0, 2, end as u8), 7_000)),
    })
}

fn seal(config: &SiteConfig, peer: &Peer, number: usize) -> Result<Option<Seal>, BadPeers> {
    Ok(match &config.security {
        Security::Open => None,
        Security::Insecure => Some(Seal::Insecure(Insecure::peers(vec![peer.address]))),
        Security::Key { path, suite, rekey, .. } => {
            let has_shared = path.is_some() || peer.key.is_some();
            let keys = if has_shared { Keys::one(Key::new([1; 32])).into() } else { public_keys(number) };
            let peers = vec![PeerKeys { keys, address: peer.address, keepalive: peer.keepalive }];
            let over = config.carrier.over();
            let random = Box::new(random(number as u64 + 1));
            let mut two_way = TwoWay::new(Instant::ZERO, over, peers, *suite, [0; 8], random)?;
            two_way.rekey(*rekey);
            if config.bare_keepalive {
                two_way.send_bare_keepalives();
            }
            Some(Seal::TwoWay(two_way))
        }
    })
}

/// Public keys of an end. They are no secrets, as those that both ends share here: the datagrams are sent to nobody.
fn public_keys(number: usize) -> Keyring {
    let [ours, theirs] = [number, 1 - number].map(|end| Key::new([1 + end as u8; 32]));
    let keys = PublicKeys::new(ours, theirs.public(), None).expect("two private keys that differ");
    Keyring::new(None, Some(keys)).expect("there are keys")
}

/// Reproducible octets (SplitMix64).
fn random(seed: u64) -> impl FnMut(&mut [u8]) + Send {
    let mut state = seed;
    move |octets: &mut [u8]| {
        for octet in octets {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            *octet = ((z ^ (z >> 31)) >> 24) as u8;
        }
    }
}
