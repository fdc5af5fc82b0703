#![allow(clippy::unwrap_used)]

//! Tests of all packagings; tests of a single one are in the folder.

mod gse;
mod packed;
mod rtp;
mod ts;

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use thinair_ule::gse::TotalLength;

use super::*;
use crate::site_config::{Mesh, Site};

/// Maximum size of a received unit in octets.
const LARGEST: usize = 2_000;

const PID: u16 = 0x35;

fn pid(value: u16) -> Pid {
    Pid::new(value).unwrap()
}

fn peer(pid: Option<Pid>) -> Peer {
    Peer {
        name: "peer".to_owned(),
        address: None,
        host: None,
        allowed: Vec::new(),
        key: None,
        public_key: None,
        keepalive: None,
        learns_keepalive: false,
        pid,
    }
}

fn peers() -> Others {
    Others::Peers(vec![peer(None)])
}

fn npa(id: u8) -> Option<Npa> {
    Npa::new([2, 0, 0, 0, 0, id])
}

/// A mesh of sites 1 to 3, as seen by one of them. Site `n` sends on PID 0x30 + `n`.
fn mesh(own: u8) -> Others {
    let site = |id: u8| Site {
        id: SiteId::new(id).unwrap(),
        name: format!("site{id}"),
        pid: Some(pid(0x30 + u16::from(id))),
        npa: npa(id),
        allowed: Vec::new(),
    };
    let sites = (1..=3).filter(|id| *id != own).map(site).collect();
    Others::Mesh(Mesh { own: SiteId::new(own), to: None, feedback: true, sites })
}

fn ts() -> Packaging {
    Packaging::Ts {
        pid: pid(PID),
        per_datagram: 7,
        flush: Duration::ZERO,
        psi: None,
        bitrate: None,
        npa: None,
    }
}

fn gse() -> Packaging {
    Packaging::Gse { flush: Duration::ZERO, npa: None, total_length: TotalLength::Checked, divided: false }
}

fn rohc(octets: &[u8]) -> Unit<'_> {
    Unit { protocol: Protocol::Rohc, to: None, large: false, octets }
}

/// A sent body.
#[derive(Clone, Debug, PartialEq)]
struct SentBody {
    octets: Vec<u8>,
    several: bool,
    to: Option<SiteId>,
    units: u32,
}

impl SentBody {
    fn of(body: Body<'_>) -> Self {
        Self { octets: body.octets.to_vec(), several: body.several, to: body.to, units: body.units }
    }

    fn arrives(&self) -> BodyIn<'_> {
        BodyIn { octets: &self.octets, several: self.several, addressed: self.to.is_some() }
    }
}

fn packager(packaging: &Packaging, others: &Others, config: PackagerConfig) -> Packager {
    Packager::new(Instant::ZERO, packaging, others, config).unwrap()
}

/// Returns the bodies of units pushed at once.
fn packed(packager: &mut Packager, units: &[Unit<'_>]) -> Vec<SentBody> {
    let mut bodies = Vec::new();
    for unit in units {
        packager.push(Instant::ZERO, *unit, &mut |body| bodies.push(SentBody::of(body))).unwrap();
    }
    packager.pause(Instant::ZERO, &mut |body| bodies.push(SentBody::of(body)));
    bodies
}

/// Returns the number of units that end in each body.
fn ends(unpackager: &mut Unpackager, bodies: &[SentBody]) -> Vec<u32> {
    let ends = bodies.iter().map(|body| {
        let mut units = 0;
        unpackager.receive(body.arrives(), &mut |_, _| units += 1).unwrap();
        units
    });
    ends.collect()
}

type Came = (Option<u8>, Protocol, Option<u8>, Vec<u8>);

fn unpacked(unpackager: &mut Unpackager, bodies: &[SentBody]) -> Vec<Came> {
    let mut came = Vec::new();
    for body in bodies {
        unpackager
            .receive(body.arrives(), &mut |from, unit| {
                let number = |site: Option<SiteId>| site.map(SiteId::number);
                came.push((number(from), unit.protocol, number(unit.to), unit.octets.to_vec()));
            })
            .unwrap();
    }
    came
}

fn packagings() -> impl Strategy<Value = Packaging> {
    let flush = (0..3_u64).prop_map(Duration::from_millis);
    let psi = proptest::option::of(Just(Duration::from_millis(3)));
    prop_oneof![
        Just(Packaging::Packed),
        (1..=7_u8, flush.clone(), psi, proptest::option::of(Just(400_000_000))).prop_map(
            |(per_datagram, flush, psi, bitrate)| Packaging::Ts {
                pid: pid(0x31),
                per_datagram,
                flush,
                psi,
                bitrate,
                npa: npa(1)
            }
        ),
        (flush, any::<bool>()).prop_map(|(flush, divided)| Packaging::Gse {
            flush,
            npa: npa(1),
            total_length: if divided { TotalLength::Ignored } else { TotalLength::Checked },
            divided,
        }),
    ]
}

/// Flag for an Ethernet frame, its octets, flag for an address, and flag for a pause after it.
type PushStep = (bool, Vec<u8>, bool, bool);

fn steps() -> impl Strategy<Value = Vec<PushStep>> {
    let octets = prop_oneof![vec(any::<u8>(), 15..90), vec(any::<u8>(), 15..1_900)];
    // Some begin with the octet that is padding of ROHC.
    let octets = (octets, prop_oneof![4 => Just(0), 1 => 1..4_usize]).prop_map(|(mut octets, padding)| {
        octets[..padding].fill(0xE0);
        octets
    });
    vec((any::<bool>(), octets, prop::bool::weighted(0.1), any::<bool>()), 1..60)
}

/// Sends units at intervals of a millisecond, and returns the accepted ones, with all bodies.
fn send(packager: &mut Packager, bridged: bool, steps: &[PushStep]) -> (Vec<Came>, Vec<SentBody>) {
    let (mut units, mut bodies) = (Vec::new(), Vec::new());
    let mut now = Instant::ZERO;
    for (is_frame, octets, addressed, pause) in steps {
        let mut octets = octets.clone();
        let protocol = if bridged && *is_frame { Protocol::Bridged } else { Protocol::Rohc };
        if protocol == Protocol::Bridged {
            octets[..14].copy_from_slice(b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x22\xf1");
        }
        let to = SiteId::new(2).filter(|_| *addressed);
        let unit = Unit { protocol, to, large: false, octets: &octets };
        let mut sink = |body: Body<'_>| bodies.push(SentBody::of(body));
        match packager.push(now, unit, &mut sink) {
            Ok(()) => units.push((Some(1), protocol, addressed.then_some(2), octets.clone())),
            Err(error) => assert!(matches!(error, PushError::TooLong { .. } | PushError::Full), "{error}"),
        }
        if *pause {
            packager.pause(now, &mut sink);
        }
        now = now + Duration::from_millis(1);
        if packager.poll_at().is_some_and(|at| at <= now) {
            packager.poll(now, &mut sink);
        }
    }
    let mut sink = |body: Body<'_>| bodies.push(SentBody::of(body));
    packager.pause(now, &mut sink);
    for _ in 0..5 {
        now = now + Duration::from_millis(1);
        packager.poll(now, &mut sink);
    }
    (units, bodies)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_pushed_comes_out(
        packaging in packagings(),
        bridged: bool,
        pad in prop_oneof![1 => Just(0), 3 => 0..40_u16],
        largest_body in 1_330..9_000_usize,
        rtp: bool,
        steps in steps(),
    ) {
        let rtp = rtp.then_some(super::rtp::Start { ssrc: 7, sequence_number: 0xFFFE });
        let config = PackagerConfig { bridged, pad, rtp, ..PackagerConfig::new(largest_body) };
        let mut packager = packager(&packaging, &mesh(1), config);
        let (mut units, bodies) = send(&mut packager, bridged, &steps);
        prop_assert!(bodies.iter().all(|body| body.octets.len() <= largest_body));
        let mut received = packaging.clone();
        if let Packaging::Ts { npa: own, .. } | Packaging::Gse { npa: own, .. } = &mut received {
            *own = npa(2);
        }
        let mut unpackager = Unpackager::new(&received, &mesh(2), LARGEST, bridged).unwrap();
        let mut came = unpacked(&mut unpackager, &bodies);
        // A receiver does not know whether the sender pads: it removes every octet of padding before a ROHC packet.
        let padded = packaging == Packaging::Packed && !bridged;
        if packaging == Packaging::Packed {
            units.iter_mut().for_each(|unit| unit.0 = None);
            if padded {
                for (_, _, _, octets) in units.iter_mut().chain(&mut came) {
                    octets.drain(..octets.iter().take_while(|octet| **octet == 0xE0).count());
                }
            }
        }
        prop_assert!(came == units, "{} of {}", came.len(), units.len());
        let counted: Vec<_> = bodies.iter().map(|body| body.units).collect();
        let mut again = Unpackager::new(&received, &mesh(2), LARGEST, bridged).unwrap();
        prop_assert_eq!(counted, ends(&mut again, &bodies));
        let (sent, got) = (packager.counters(), unpackager.counters());
        prop_assert_eq!(sent.units, got.units);
        prop_assert!(sent.octets == got.octets || padded);
        prop_assert_eq!((sent.bodies, sent.body_octets), (got.bodies, got.body_octets));
        prop_assert_eq!(got.rtp.lost + got.rtp.late + got.bad_bodies, 0);
        // For the third site, addressed units are for another site.
        if packaging != Packaging::Packed {
            if let Packaging::Ts { npa: own, .. } | Packaging::Gse { npa: own, .. } = &mut received {
                *own = npa(3);
            }
            let mut other = Unpackager::new(&received, &mesh(3), LARGEST, bridged).unwrap();
            let came = unpacked(&mut other, &bodies);
            units.retain(|unit| unit.2.is_none());
            prop_assert_eq!(came, units);
        }
    }

    /// Arbitrary octets do no harm, and memory does not grow.
    #[test]
    fn any_octets_are_taken(
        packaging in packagings(),
        bridged: bool,
        bodies in vec((vec(any::<u8>(), 0..800), any::<bool>(), any::<bool>()), 1..20),
    ) {
        let mut unpackager = Unpackager::new(&packaging, &mesh(2), LARGEST, bridged).unwrap();
        for (octets, several, addressed) in bodies {
            let mut units = 0;
            let body = BodyIn { octets: &octets, several, addressed };
            let taken = unpackager.receive(body, &mut |_, unit| {
                assert!((1..=LARGEST).contains(&unit.octets.len()));
                units += 1;
            });
            prop_assert!(taken.is_ok() || units == 0);
            unpackager.receive_stream(&octets, &mut |_, _| {});
        }
    }

    /// With bit errors and losses of bodies, each unit delivered by TS was sent, and units after the damage
    /// are delivered.
    #[test]
    fn damage_delivers_nothing_that_was_not_sent(
        steps in steps(),
        damage in vec((any::<Index>(), any::<Index>(), any::<bool>()), 1..8),
    ) {
        let mut packager = packager(&ts(), &peers(), PackagerConfig::new(1_330));
        let steps: Vec<_> = steps.into_iter().map(|(frame, octets, _, pause)| (frame, octets, false, pause)).collect();
        let (units, mut bodies) = send(&mut packager, false, &steps);
        for (body, bit, lost) in damage {
            let at = body.index(bodies.len());
            let octets = &mut bodies[at].octets;
            if octets.is_empty() || lost {
                octets.clear();
            } else {
                let bit = bit.index(8 * octets.len());
                octets[bit / 8] ^= 1 << (bit % 8);
            }
        }
        let mut unpackager = Unpackager::new(&ts(), &peers(), LARGEST, false).unwrap();
        let mut came = Vec::new();
        for body in &bodies {
            let _ = unpackager.receive(body.arrives(), &mut |_, unit| came.push(unit.octets.to_vec()));
        }
        let mut rest = units.iter();
        prop_assert!(came.iter().all(|came| rest.any(|unit| unit.3 == *came)));
        // Two units each end with a datagram; octets before the first one are damaged.
        let last = [b"the last but one", &b"the last"[..]];
        let bodies = last.map(|unit| packed(&mut packager, &[rohc(unit)])).concat();
        let came = unpacked(&mut unpackager, &bodies);
        prop_assert_eq!(&came.last().unwrap().3[..], last[1]);
    }
}

#[test]
fn plans_that_cannot_be_are_told() {
    let refused = |packaging: &Packaging, others: &Others, largest_body| {
        Packager::new(Instant::ZERO, packaging, others, PackagerConfig::new(largest_body)).unwrap_err()
    };
    let error = refused(&ts(), &peers(), 7 * 188 - 1);
    assert_eq!(error.to_string(), "datagrams have room for 1315 octets, and need at least 1316");
    assert_eq!(refused(&Packaging::Packed, &peers(), 3), PackagingError::NoRoom { room: 3, needed: 16 });
    assert_eq!(refused(&gse(), &peers(), 41), PackagingError::NoRoom { room: 41, needed: 42 });
    assert_eq!(refused(&ts(), &mesh(1), 1_316), PackagingError::NoNpa("this site".to_owned()));
    let with = |change: fn(&mut Packaging)| {
        let mut packaging = ts();
        change(&mut packaging);
        packaging
    };
    let eight = with(|ts| {
        if let Packaging::Ts { per_datagram, .. } = ts {
            *per_datagram = 8
        }
    });
    assert_eq!(refused(&eight, &peers(), 9_000), PackagingError::PerDatagram(8));
    let null = with(|ts| {
        if let Packaging::Ts { pid, .. } = ts {
            *pid = Pid::NULL
        }
    });
    assert_eq!(refused(&null, &peers(), 9_000), PackagingError::Pid(Pid::NULL));
    let slow = with(|ts| {
        if let Packaging::Ts { bitrate, .. } = ts {
            *bitrate = Some(0)
        }
    });
    assert_eq!(refused(&slow, &peers(), 9_000), PackagingError::Bitrate(0));

    let two = Others::Peers(vec![peer(Some(pid(0x40))), peer(Some(pid(0x40)))]);
    assert_eq!(Unpackager::new(&ts(), &two, 1, false).unwrap_err(), PackagingError::SamePid(pid(0x40)));
    let mut nameless = mesh(1);
    if let Others::Mesh(mesh) = &mut nameless {
        mesh.sites[1].pid = None;
    }
    let error = Unpackager::new(&ts(), &nameless, 1, false).unwrap_err();
    assert_eq!(error, PackagingError::NoPid("site3".to_owned()));
    let many = Others::Peers((0..256).map(|i| peer(Some(pid(0x100 + i)))).collect());
    assert_eq!(Unpackager::new(&ts(), &many, 1, false).unwrap_err(), PackagingError::Peers(256));
}

#[test]
fn counters_are_told_by_name() {
    let mut packager = packager(&ts(), &peers(), PackagerConfig::new(1_316));
    packed(&mut packager, &[rohc(b"unit")]);
    let told = serde_json::to_value(packager.counters()).unwrap();
    assert_eq!(
        (&told["units"], &told["ts_packets"], &told["body_octets"]),
        (&1.into(), &1.into(), &188.into())
    );
    let unpackager = Unpackager::new(&ts(), &peers(), 1, false).unwrap();
    let told = serde_json::to_value(unpackager.counters()).unwrap();
    assert_eq!(told["ts"]["continuity_errors"], 0);
}
