//! Status of a site.

use std::collections::BTreeMap;

use serde::Serialize;
use thinair_rohc::CidSpace;
use thinair_rohc::contexts::ContextState;
use thinair_session::Seal;
use thinair_session::mapping::MappingSearch;
use thinair_wire::time::Instant;

use super::Site;
use super::pipeline::Pipeline;
use super::source::Source;
use crate::channel;
use crate::config::suite_name;
use crate::status::{
    CarrierLoss, CidsOf, CidsStatus, ContextCount, Feedback, FeedbackTypes, Identity, NatStatus,
    PeerCounters, PeerCounts, PeerKind, PeerStatus, Sample, Side, SourceNotAllowed, Status, TroubleStatus,
};

/// Largest number of peers that the status lists.
const LISTED: usize = 64;

impl Site {
    /// Returns the status of the site. The caller provides `uptime` of the daemon, and `cpu` time.
    pub fn status(&self, now: Instant, identity: Identity, uptime: f64, cpu: f64) -> Status {
        let mut status = Status::new(identity, &self.common.counters, uptime, cpu);
        if self.mesh {
            status.peers = self.mesh_status(now);
        } else {
            let listed = self.listed();
            status.peer_counts = Some(PeerCounts { listed: listed.len() as u64, ..self.peer_counts() });
            status.peers = listed.into_iter().filter_map(|number| self.peer_status(now, number)).collect();
        }
        let mut packaging = BTreeMap::new();
        // The names of all counters are there.
        let sent = self.pipelines.iter().map(|pipeline| pipeline.packager.counters()).enumerate();
        for (_, counters) in sent.filter(|(number, counters)| *number == 0 || *counters != Default::default())
        {
            add_counters(&mut packaging, "sent_", &counters);
        }
        let received = self.unpackagers.iter().map(|unpackager| unpackager.counters()).enumerate();
        for (_, counters) in
            received.filter(|(number, counters)| *number == 0 || *counters != Default::default())
        {
            add_counters(&mut packaging, "received_", &counters);
        }
        status.parts.insert("packaging".to_owned(), packaging);
        status
    }

    /// Returns the counters for a history.
    pub fn sample(&self, uptime_seconds: f64) -> Sample {
        let counters = self.counters();
        let (sent, received) = (&counters.sent, &counters.received);
        let is_counted = self.counts_losses();
        let sum = |of: fn(&Source) -> u64| self.sources.iter().filter(|_| is_counted).map(of).sum();
        let round_trips = (0..self.pipelines.len()).filter_map(|number| self.round_trip(number));
        Sample {
            uptime_seconds,
            packets: sent.packets + received.packets,
            octets: sent.octets + received.octets,
            carrier_octets: sent.carrier_octets + received.carrier_octets,
            lost_units: sum(|source| source.lost),
            received_units: sum(|source| source.arrived),
            round_trip_seconds: round_trips
                .fold(None, |most: Option<f64>, one| Some(most.map_or(one, |most| most.max(one)))),
        }
    }

    fn round_trip(&self, peer: usize) -> Option<f64> {
        let measured = self.common.seal.as_ref().filter(|_| !self.mesh)?.round_trip(peer)?;
        Some(measured.as_secs_f64())
    }

    fn suite(&self, peer: usize) -> Option<String> {
        let Some(Seal::TwoWay(seal)) = &self.common.seal else { return None };
        Some(suite_name(seal.session(peer)?.suite).to_owned())
    }

    fn loss(&self, source: &Source) -> Option<CarrierLoss> {
        self.counts_losses().then(|| CarrierLoss::new(source.lost, source.arrived))
    }

    fn not_allowed(&self, number: usize, source: &Source) -> Option<SourceNotAllowed> {
        let (packets, address) = source.not_allowed?;
        Some(SourceNotAllowed {
            packets,
            address: address.to_string(),
            line: self.allowed.line(number, address),
        })
    }

    /// Numbers of the peers; removed ones have no name.
    fn peers(&self) -> impl Iterator<Item = usize> {
        self.pipelines
            .iter()
            .enumerate()
            .filter(|(_, pipeline)| !pipeline.name.is_empty())
            .map(|(number, _)| number)
    }

    fn peer_counts(&self) -> PeerCounts {
        let count = |is: &dyn Fn(usize) -> bool| self.peers().filter(|number| is(*number)).count() as u64;
        let has_session = |number| self.two_way().is_some_and(|seal| seal.session(number).is_some());
        PeerCounts {
            configured: count(&|_| true),
            with_session: count(&has_session),
            with_contexts: count(&|number| self.pipelines[number].channel.there().is_some()),
            in_trouble: count(&|number| self.sources[number].trouble.is_some()),
            listed: 0,
        }
    }

    /// Returns the peers that the status lists: of many half of them those with most octets on the carrier, and half of them those
    /// in trouble for longest.
    fn listed(&self) -> Vec<usize> {
        let mut all: Vec<_> = self.peers().collect();
        if all.len() <= LISTED {
            return all;
        }
        let octets = |number: &usize| {
            let sent = self.pipelines[*number].link.sent.carrier_octets;
            std::cmp::Reverse(sent + self.sources[*number].counters.received.carrier_octets)
        };
        let troubled = |number: &usize| self.sources[*number].trouble.map(|(_, since)| since);
        let mut first: Vec<_> = all.iter().copied().filter(|number| troubled(number).is_some()).collect();
        first.sort_by_key(troubled);
        first.truncate(LISTED / 2);
        all.sort_by_key(octets);
        for number in all {
            if first.len() == LISTED {
                break;
            }
            if !first.contains(&number) {
                first.push(number);
            }
        }
        first.sort_unstable();
        first
    }

    /// Smallest path MTU of a peer, in octets.
    pub fn path_mtu(&self) -> Option<u32> {
        self.pipelines.iter().filter_map(|pipeline| pipeline.link.path.as_ref()?.counters().mtu).min()
    }

    fn peer_status(&self, now: Instant, number: usize) -> Option<PeerStatus> {
        let (pipeline, source) = (self.pipelines.get(number)?, self.sources.get(number)?);
        let mut counters = source.counters;
        counters.sent = pipeline.link.sent;
        counters.arrived = self.common.counters.arrived.map(|_| pipeline.link.arrived);
        of_channel(&mut counters, &pipeline.channel.counters());
        if let Some(path) = &pipeline.link.path {
            counters.path = path.counters();
        }
        let address = pipeline.link.address(self.common.seal.as_ref());
        Some(PeerStatus {
            counters,
            address: address.map(|address| address.to_string()),
            round_trip_seconds: self.round_trip(number),
            suite: self.suite(number),
            loss: self.loss(source),
            cids: pipeline.channel.cids().map(cids),
            nat: pipeline.link.mapping.as_ref().map(nat),
            contexts: contexts(pipeline),
            source_not_allowed: self.not_allowed(number, source),
            ..heard(source, PeerKind::Peer, now)
        })
    }

    /// Status of a mesh: the group, which receives all packets, and each other site.
    fn mesh_status(&self, now: Instant) -> Vec<PeerStatus> {
        let group = self.pipelines.first().map(|pipeline| {
            let mut counters = PeerCounters { sent: pipeline.link.sent, ..PeerCounters::default() };
            of_channel(&mut counters, &pipeline.channel.counters());
            PeerStatus {
                name: pipeline.name.clone(),
                kind: PeerKind::Group,
                address: pipeline.link.configured.map(|address| address.to_string()),
                session_seconds: None,
                heard_seconds: None,
                suite: None,
                loss: None,
                round_trip_seconds: None,
                trouble: None,
                source_not_allowed: None,
                cids: None,
                nat: None,
                counters,
                contexts: contexts(pipeline),
            }
        });
        group
            .into_iter()
            .chain(self.sources.iter().enumerate().map(|(number, source)| PeerStatus {
                loss: self.loss(source),
                source_not_allowed: self.not_allowed(number, source),
                ..heard(source, PeerKind::Site, now)
            }))
            .collect()
    }
}

fn cids(cids: channel::Cids) -> CidsStatus {
    let of = |space| match space {
        CidSpace::Small => CidsOf::Small,
        CidSpace::Large => CidsOf::Large,
    };
    let channel::Cids { sent, received, sent_switches, received_switches } = cids;
    CidsStatus { sent: of(sent), received: of(received), sent_switches, received_switches }
}

fn nat(search: &MappingSearch) -> NatStatus {
    let learned = search.learned();
    NatStatus {
        timeout_seconds: learned.map(|learned| learned.timeout.as_secs_f64()),
        keepalive_seconds: search.keepalive().as_secs_f64(),
        address: learned.map(|learned| learned.address.to_string()),
        probes: search.requests(),
    }
}

fn heard(source: &Source, kind: PeerKind, now: Instant) -> PeerStatus {
    let since = |at: Option<Instant>| at.map(|at| now.since(at).as_secs_f64());
    PeerStatus {
        name: source.name.clone(),
        kind,
        suite: None,
        loss: None,
        round_trip_seconds: None,
        source_not_allowed: None,
        cids: None,
        nat: None,
        address: source.address.map(|address| address.to_string()),
        session_seconds: since(source.session_at),
        heard_seconds: since(source.heard_at),
        trouble: source.trouble.as_ref().map(|(trouble, at)| TroubleStatus {
            reason: trouble.reason().to_owned(),
            text: trouble.to_string(),
            since_seconds: now.since(*at).as_secs_f64(),
            address: trouble.address().map(|address| address.to_string()),
        }),
        counters: source.counters,
        contexts: Vec::new(),
    }
}

fn of_channel(counters: &mut PeerCounters, channel: &channel::Counters) {
    let types = |of: &channel::Feedback| FeedbackTypes {
        acks: of.acks,
        nacks: of.nacks,
        static_nacks: of.static_nacks,
        octets: of.octets,
    };
    counters.feedback = Feedback {
        sent: types(&channel.feedback_sent),
        received: types(&channel.feedback_received),
        limited: channel.feedback_sent.too_many + channel.feedback_received.too_many,
        refused: channel.feedback_received.ignored,
    };
}

/// Numbers of contexts of both sides, by side, profile, mode and state.
fn contexts(pipeline: &Pipeline) -> Vec<ContextCount> {
    let Some(channel) = pipeline.channel.there() else { return Vec::new() };
    let ours = channel.compressor_contexts().map(|context| (Side::Compressor, context));
    let theirs = channel.decompressor_contexts().map(|(_, context)| (Side::Decompressor, context));
    let mut counts = BTreeMap::new();
    for (side, ContextState { profile, mode, state, .. }) in ours.chain(theirs) {
        let key = (side as u8, profile.number(), mode.letter(), state);
        let count = counts.entry(key).or_insert_with(|| ContextCount {
            side,
            profile: profile.name().to_owned(),
            mode: mode.letter().to_owned(),
            state: state.to_owned(),
            contexts: 0,
        });
        count.contexts += 1;
    }
    counts.into_values().collect()
}

/// Adds the numbers of a structure, and of its inner structures, to counters of the same names.
pub(crate) fn add_counters(to: &mut BTreeMap<String, u64>, prefix: &str, of: &impl Serialize) {
    fn walk(to: &mut BTreeMap<String, u64>, prefix: &str, value: &serde_json::Value) {
        let Some(fields) = value.as_object() else { return };
        for (name, value) in fields {
            match value.as_u64() {
                Some(number) => *to.entry(format!("{prefix}{name}")).or_default() += number,
                None => walk(to, &format!("{prefix}{name}_"), value),
            }
        }
    }
    if let Ok(value) = serde_json::to_value(of) {
        walk(to, prefix, &value);
    }
}
