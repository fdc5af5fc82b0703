//! Packagings of the tunnel: bodies from outside, and our own units, some of whose bodies are lost, duplicated or
//! damaged.

use std::time::Duration;

use arbitrary::Arbitrary;
use thinair_tunnel::packaging::{
    BodyIn, Packager, PackagerConfig, PushError, Unpackager, UnpackagerCounters, rtp,
};
use thinair_tunnel::site_config::{Mesh, Others, Packaging, Peer, Site};
use thinair_tunnel::unit::{Protocol, SiteId, Unit};
use thinair_ule::gse::TotalLength;
use thinair_ule::{Npa, Pid};
use thinair_wire::time::Instant;

/// Maximum size of a unit in octets.
const LARGEST: usize = 2_000;

/// Maximum rate of a constant-rate stream, in bit/s.
const FASTEST: u32 = 4_000_000;

/// Input of a target.
#[derive(Arbitrary, Debug)]
pub enum Input<'a> {
    /// Bodies from outside.
    Bodies { bridged: bool, mesh: bool, bodies: Vec<OutsideBody<'a>> },
    /// Stream from outside, in pieces of this many octets.
    Stream { octets: &'a [u8], piece: u8 },
    /// Units, and fates of their bodies; empty: all arrive.
    Units { config: PackagingConfig, units: Vec<Pushed>, fates: Vec<BodyFate> },
}

/// Body from outside.
#[derive(Arbitrary, Debug)]
pub struct OutsideBody<'a> {
    octets: &'a [u8],
    several: bool,
    addressed: bool,
    /// Start of most bodies of this packaging.
    begins: bool,
}

/// Packaging of units.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct PackagingConfig {
    body: u16,
    bridged: bool,
    pad: u8,
    rtp: Option<(u32, u16)>,
    per_datagram: u8,
    flush: u8,
    psi: Option<u8>,
    bitrate: Option<u32>,
    ignores_length: bool,
    divided: bool,
}

/// Unit, and the event after it.
#[derive(Arbitrary, Debug)]
pub struct Pushed {
    protocol: u8,
    addressed: bool,
    len: u16,
    pause: bool,
    millis: u8,
}

/// Fate of a body.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum BodyFate {
    /// It arrives.
    Comes,
    /// It is lost.
    Lost,
    /// It arrives twice.
    Twice,
    /// One of its bits is flipped.
    Flipped(u16),
    /// It is truncated at this octet.
    Cut(u16),
}

/// TS, with the options that the octets choose.
pub fn ts(config: Option<&PackagingConfig>) -> Packaging {
    Packaging::Ts {
        pid: Pid::new(0x35).expect("it has 13 bits"),
        per_datagram: config.map_or(7, |config| config.per_datagram % 8),
        flush: config.map_or(Duration::ZERO, |config| Duration::from_millis(config.flush.into())),
        psi: config.and_then(|config| config.psi).map(|psi| Duration::from_millis(psi.into())),
        bitrate: config.and_then(|config| config.bitrate).map(|bitrate| u64::from(bitrate % FASTEST)),
        npa: Npa::new([2, 0, 0, 0, 0, 1]),
    }
}

/// GSE, with the options that the octets choose.
pub fn gse(config: Option<&PackagingConfig>) -> Packaging {
    let flush = config.map_or(Duration::ZERO, |config| Duration::from_millis(config.flush.into()));
    Packaging::Gse {
        flush,
        npa: Npa::new([2, 0, 0, 0, 0, 1]),
        total_length: match config {
            Some(PackagingConfig { ignores_length: true, .. }) => TotalLength::Ignored,
            _ => TotalLength::Checked,
        },
        divided: config.is_some_and(|config| config.divided),
    }
}

/// Runs an input through a packaging. `begins` makes octets begin as bodies of it do.
pub fn run(
    packaging: impl Fn(Option<&PackagingConfig>) -> Packaging,
    input: &Input<'_>,
    begins: impl Fn(&mut Vec<u8>),
) {
    match input {
        Input::Bodies { bridged, mesh, bodies } => {
            let others = if *mesh { self::mesh(2, 1) } else { peer() };
            let mut unpackager =
                Unpackager::new(&packaging(None), &others, LARGEST, *bridged).expect("sound");
            for body in bodies {
                let mut octets = body.octets.to_vec();
                if body.begins {
                    begins(&mut octets);
                }
                let OutsideBody { several, addressed, .. } = *body;
                let mut sum = 0;
                let taken =
                    unpackager.receive(BodyIn { octets: &octets, several, addressed }, &mut |_, unit| {
                        assert!((1..=LARGEST).contains(&unit.octets.len()));
                        sum += unit.octets.len();
                    });
                assert!(taken.is_ok() || sum == 0);
            }
        }
        Input::Stream { octets, piece } => {
            let mut unpackager = Unpackager::new(&packaging(None), &peer(), LARGEST, false).expect("sound");
            for piece in octets.chunks(usize::from(*piece).max(1)) {
                unpackager.receive_stream(piece, &mut |_, unit| assert!(unit.octets.len() <= LARGEST));
            }
            unpackager.finish_stream(&mut |_, unit| assert!(unit.octets.len() <= LARGEST));
        }
        Input::Units { config, units, fates } => through(&packaging(Some(config)), config, units, fates),
    }
}

type SentUnit = (Protocol, Vec<u8>);

/// Units arrive unchanged, and in order: all of them, if nothing happened. CRCs, where present, detect a flipped bit.
fn through(packaging: &Packaging, config: &PackagingConfig, units: &[Pushed], fates: &[BodyFate]) {
    let (Some(mut packager), Ok(mut unpackager)) =
        (packager(packaging, config), Unpackager::new(packaging, &mesh(2, 1), LARGEST, config.bridged))
    else {
        return;
    };
    let mut now = Instant::ZERO;
    let (mut sent, mut bodies) = (Vec::<SentUnit>::new(), Vec::new());
    for (number, unit) in (0_u32..).zip(units.iter().take(100)) {
        let protocol = [Protocol::Rohc, Protocol::Ipv4, Protocol::Ipv6, Protocol::Bridged]
            [usize::from(unit.protocol) % 4];
        let mut octets = vec![number as u8; usize::from(unit.len) % LARGEST + 1];
        let len = octets.len().min(4);
        octets[..len].copy_from_slice(&number.to_be_bytes()[4 - len..]);
        if let (Protocol::Bridged, Some(place)) = (protocol, octets.get_mut(..14)) {
            place.copy_from_slice(b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0");
        }
        let mut sink = |body: thinair_tunnel::packaging::Body<'_>| {
            assert!(body.octets.len() <= usize::from(config.body));
            bodies.push((body.octets.to_vec(), body.several, body.to.is_some()));
        };
        let to = SiteId::new(2).filter(|_| unit.addressed);
        match packager.push(now, Unit { protocol, to, large: false, octets: &octets }, &mut sink) {
            Ok(()) => sent.push((protocol, octets)),
            Err(PushError::Full) => assert!(packager.is_full()),
            Err(_) => {}
        }
        if unit.pause {
            packager.pause(now, &mut sink);
        }
        now = now + Duration::from_millis(u64::from(unit.millis % 8));
        poll(&mut packager, now, &mut sink);
    }
    let mut sink = |body: thinair_tunnel::packaging::Body<'_>| {
        bodies.push((body.octets.to_vec(), body.several, body.to.is_some()));
    };
    packager.pause(now, &mut sink);
    for _ in 0..40 {
        now = now + Duration::from_millis(50);
        poll(&mut packager, now, &mut sink);
    }
    if config.bitrate.is_none() {
        assert!(packager.counters().units as usize == sent.len());
    }

    let mut got = Vec::<SentUnit>::new();
    let mut fate = fates.iter().cycle();
    for (octets, several, addressed) in &bodies {
        let mut octets = octets.clone();
        let mut times = 1;
        match fate.next() {
            None | Some(BodyFate::Comes) => {}
            Some(BodyFate::Lost) => times = 0,
            Some(BodyFate::Twice) => times = 2,
            Some(BodyFate::Flipped(bit)) => {
                let bit = usize::from(*bit) % (8 * octets.len());
                octets[bit / 8] ^= 0x80 >> (bit % 8);
            }
            Some(BodyFate::Cut(at)) => octets.truncate(usize::from(*at)),
        }
        for _ in 0..times {
            let body = BodyIn { octets: &octets, several: *several, addressed: *addressed };
            let _ = unpackager.receive(body, &mut |_, unit| got.push((unit.protocol, unit.octets.to_vec())));
        }
    }
    let UnpackagerCounters { units, .. } = unpackager.counters();
    assert_eq!(units as usize, got.len());
    // Padding before a ROHC packet is part of it.
    if matches!(packaging, Packaging::Packed) && config.pad > 1 && !config.bridged {
        for (_, octets) in sent.iter_mut().chain(&mut got) {
            octets.drain(..octets.iter().take_while(|octet| **octet == 0xE0).count());
        }
    }
    let slow = config.bitrate.is_some_and(|bitrate| bitrate % FASTEST < FASTEST / 2);
    if fates.is_empty() && !slow {
        assert!(got == sent, "{} of {}", got.len(), sent.len());
    }
    if matches!(packaging, Packaging::Ts { .. }) {
        assert!(got.iter().all(|got| sent.contains(got)));
    }
}

fn packager(packaging: &Packaging, config: &PackagingConfig) -> Option<Packager> {
    let start = |(ssrc, sequence_number)| rtp::Start { ssrc, sequence_number };
    let told = PackagerConfig {
        largest_body: config.body.into(),
        bridged: config.bridged,
        pad: config.pad.into(),
        rtp: config.rtp.map(start),
    };
    Packager::new(Instant::ZERO, packaging, &mesh(1, 2), told).ok()
}

fn poll(packager: &mut Packager, now: Instant, sink: &mut dyn FnMut(thinair_tunnel::packaging::Body<'_>)) {
    if packager.poll_at().is_some_and(|at| at <= now) {
        packager.poll(now, sink);
    }
    assert!(packager.poll_at().is_none_or(|at| at > now));
}

/// View of site `own` of two. Both have one address.
fn mesh(own: u8, other: u8) -> Others {
    let npa = Npa::new([2, 0, 0, 0, 0, 1]);
    let id = SiteId::new(other).expect("not 0");
    let pid = Pid::new(0x35);
    let sites = vec![Site { id, name: "other".to_owned(), pid, npa, allowed: Vec::new() }];
    Others::Mesh(Mesh { own: SiteId::new(own), to: None, feedback: true, sites })
}

fn peer() -> Others {
    let peer = Peer {
        name: "peer".to_owned(),
        address: None,
        host: None,
        allowed: Vec::new(),
        key: None,
        public_key: None,
        keepalive: None,
        pid: None,
    };
    Others::Peers(vec![peer])
}
