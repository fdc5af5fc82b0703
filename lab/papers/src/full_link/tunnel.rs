//! Two ends of an encrypted tunnel with the link between them, in virtual time.

use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use thinair_link::{ConstrainedLink, LinkEvent, Random, Side};
use thinair_session::{Key, Keys, Over, PeerKeys, Seal, TwoWay};
use thinair_tunnel::config::{self, Settings, Surroundings};
use thinair_tunnel::mtu::Budget;
use thinair_tunnel::site::{Site, SiteOutput};
use thinair_tunnel::site_config::{Others, Security, SiteConfig};
use thinair_tunnel::status::Drop;
use thinair_wire::time::Instant;

use super::cell::{HeaderTreatment, LinkCarrier, LinkRun};
use super::flow::{GoodputSample, Meter};
use crate::paper::PaperError;

/// Size of the IPv4 and UDP headers of a datagram, in octets.
const OUTER: usize = 28;
/// Time of the first packet, after the key exchange.
const BEGIN: Duration = Duration::from_secs(1);

pub(super) fn run(run: &LinkRun) -> Result<GoodputSample, PaperError> {
    let begin = Instant::ZERO + BEGIN;
    let mut tunnel = TunnelOverLink {
        ends: [TunnelEnd::new(run, Side::A)?, TunnelEnd::new(run, Side::B)?],
        link: ConstrainedLink::new(&run.model, run.seed),
        meter: run.meter(begin),
        now: Instant::ZERO,
    };
    tunnel.agree();
    for (now, packets) in run.groups(begin) {
        tunnel.go_on(now);
        tunnel.send(now, &packets);
    }
    tunnel.go_on(begin + run.span);
    let undelivered = tunnel.ends[Side::B as usize].site.counters().drops.of(Drop::Decompression);
    Ok(tunnel.meter.sample(undelivered, tunnel.link.traffic(Side::A).delivered_octets))
}

struct TunnelOverLink {
    ends: [TunnelEnd; 2],
    link: ConstrainedLink<'static, Vec<u8>>,
    meter: Meter,
    now: Instant,
}

impl TunnelOverLink {
    /// Performs the key exchange while the link loses nothing.
    fn agree(&mut self) {
        loop {
            for side in Side::ALL {
                self.poll(side);
            }
            let out = Side::ALL.map(|side| core::mem::take(&mut self.ends[side as usize].out));
            if out.iter().all(Vec::is_empty) {
                return;
            }
            for (side, datagrams) in Side::ALL.into_iter().zip(out) {
                datagrams.into_iter().for_each(|datagram| self.arrive(side.other(), datagram));
            }
        }
    }

    /// Sends consecutive packets of the system.
    fn send(&mut self, now: Instant, packets: &[Vec<u8>]) {
        self.now = now;
        for packet in packets {
            self.ends[Side::A as usize].site.handle_packet(now, packet);
            self.drain(Side::A);
        }
        self.ends[Side::A as usize].site.pause(now);
        self.poll(Side::A);
        self.carry(Side::A);
    }

    /// Processes all events until `until`.
    fn go_on(&mut self, until: Instant) {
        loop {
            let sites = self.ends.iter().filter_map(|end| end.site.poll_at());
            // A site that was polled at a time and returns that time again is polled a little later.
            let sites = sites.map(|at| at.max(self.now + Duration::from_micros(1)));
            let Some(at) = sites.chain(self.link.poll_at()).min().filter(|at| *at <= until) else { return };
            self.now = self.now.max(at);
            while let Some(event) = self.link.poll(self.now) {
                if let LinkEvent::Delivered { to, packet, .. } = event {
                    self.arrive(to, packet);
                }
            }
            for side in Side::ALL {
                self.poll(side);
                self.carry(side);
            }
        }
    }

    fn arrive(&mut self, to: Side, mut datagram: Vec<u8>) {
        let payload = datagram.get_mut(OUTER..).unwrap_or_default();
        self.ends[to as usize].site.handle_datagram(self.now, Some(address(to.other()).into()), payload);
        self.drain(to);
        self.poll(to);
    }

    fn poll(&mut self, side: Side) {
        self.ends[side as usize].site.handle_timeout(self.now);
        self.drain(side);
    }

    /// Takes outputs of a site.
    fn drain(&mut self, side: Side) {
        let TunnelEnd { site, out } = &mut self.ends[side as usize];
        while let Some(output) = site.poll_output() {
            match output {
                SiteOutput::Datagram { octets, .. } => out.push([&[0; OUTER], octets].concat()),
                SiteOutput::Packet { octets, .. } if side == Side::B => self.meter.deliver(self.now, octets),
                SiteOutput::Packet { .. } | SiteOutput::Probe { .. } | SiteOutput::Event { .. } => {}
            }
        }
    }

    /// Passes a site's datagrams to the link, which drops those that its queue has no room for.
    fn carry(&mut self, from: Side) {
        for datagram in core::mem::take(&mut self.ends[from as usize].out) {
            let _ = self.link.offer(self.now, from, datagram);
        }
    }
}

/// One end of the tunnel.
struct TunnelEnd {
    site: Site,
    /// Datagrams after room for their outer headers.
    out: Vec<Vec<u8>>,
}

impl TunnelEnd {
    fn new(run: &LinkRun, side: Side) -> Result<Self, PaperError> {
        let plan = plan(run, side)?;
        let failed = |error: &dyn core::fmt::Display| PaperError::Tunnel(error.to_string());
        let budget = Budget::of(&plan).map_err(|error| failed(&error))?;
        let Others::Peers(peers) = &plan.others else { return Err(failed(&"a mesh")) };
        let Security::Key { suite, .. } = &plan.security else { return Err(failed(&"no key")) };
        let peers = peers.iter().map(|peer| PeerKeys {
            keys: Keys::one(Key::new([1; 32])).into(),
            address: peer.address,
            keepalive: peer.keepalive,
        });
        let peers = peers.collect();
        let mut random = random(run.seed.wrapping_mul(2).wrapping_add(side as u64));
        let other = Box::new(self::random(run.seed.wrapping_mul(2).wrapping_add(side as u64 + 1_000)));
        let seal = TwoWay::new(Instant::ZERO, Over::Datagrams, peers, *suite, [1; 8], other)
            .map_err(|error| failed(&error))?;
        let site = Site::new(Instant::ZERO, &plan, &budget, Some(Seal::TwoWay(seal)), &mut random)
            .map_err(|error| failed(&error))?;
        Ok(Self { site, out: Vec::new() })
    }
}

fn address(side: Side) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, 1 + side as u8), 5_000).into()
}

/// SiteConfig of one end: defaults, except carrier and mode.
fn plan(run: &LinkRun, side: Side) -> Result<SiteConfig, PaperError> {
    let (scheme, options) = match run.scenario.carrier {
        LinkCarrier::Link | LinkCarrier::Udp => ("udp", ""),
        // TS Packets are filled, as in the examples of docs/tunnel.md.
        LinkCarrier::Ule => ("ule+udp", "?flush=3ms"),
    };
    let channel = match run.way {
        HeaderTreatment::Plain => "profiles = \"uncompressed\"".to_owned(),
        HeaderTreatment::Rohc(_) => format!("mode = \"{}\"", run.way.name()),
    };
    let text = format!(
        "[inside]\naddress = [\"10.9.0.{}/24\"]\n[carrier]\nurl = \"{scheme}://{}{options}\"\nlisten = \"{}\"\n\
         [security]\nkey = \"key\"\n[channel]\n{channel}\n[[peer]]\nallowed = \"any\"\n",
        1 + side as u8,
        address(side.other()),
        address(side),
    );
    let failed = |error: &dyn core::fmt::Display| PaperError::Tunnel(error.to_string());
    let settings = Settings::read(Path::new("tunnel.toml"), &text).map_err(|error| failed(&error))?;
    let surroundings = Surroundings {
        runtime: None,
        state: "state".into(),
        templates: &|_| Ok(Vec::new()),
        resolve: &config::system_resolver,
        tariff: &|_| Err("no price list".to_owned()),
    };
    config::site_config(&settings, &surroundings).map_err(|error| failed(&error))
}

fn random(seed: u64) -> impl FnMut(&mut [u8]) + Send {
    let mut random = Random::new(seed);
    move |octets: &mut [u8]| octets.iter_mut().for_each(|octet| *octet = (random.next_u64() >> 32) as u8)
}
