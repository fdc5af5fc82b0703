//! Encrypted datagrams between two ends, and between two sites of a group: some are lost, duplicated, damaged or
//! forged. Every delivered body was sent by the other end, and is delivered once.

#![no_main]

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_session::{
    BodyFlags, Destination, Epoch, EpochStore, Group, GroupConfig, Insecure, Key, Keys, Opened, Over,
    PeerKeys, Random, Seal, SiteId, Suite, TwoWay,
};
use thinair_wire::time::Instant;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    kind: Kind,
    steps: Vec<Step<'a>>,
}

#[derive(Arbitrary, Debug)]
enum Kind {
    Datagrams,
    Line,
    Group,
    Insecure,
}

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    /// An end encrypts a body.
    Seal { right: bool, length: u8 },
    /// One of all datagrams so far arrives, at either end.
    Arrive { right: bool, which: u16 },
    /// One of all datagrams so far arrives damaged.
    Damaged { right: bool, which: u16, at: u16, with: u8, length: u16 },
    /// Forged octets arrive.
    Garbage { right: bool, octets: &'a [u8] },
    /// Time passes.
    Pass { millis: u32 },
    /// All due datagrams are sent, and arrive.
    Run,
}

/// Store that lasts as long as the process.
#[derive(Default)]
struct Memory(BTreeMap<SiteId, Epoch>);

impl EpochStore for Memory {
    fn load(&mut self, site: SiteId) -> io::Result<Option<Epoch>> {
        Ok(self.0.get(&site).copied())
    }

    fn store(&mut self, site: SiteId, epoch: &Epoch) -> io::Result<()> {
        self.0.insert(site, *epoch);
        Ok(())
    }
}

struct Ends {
    now: Instant,
    ends: [Seal; 2],
    to: Destination,
    insecure: bool,
    /// Bodies that each end has sent, and number of their deliveries.
    bodies: [Vec<(Vec<u8>, u32)>; 2],
    datagrams: Vec<Vec<u8>>,
}

fuzz_target!(|input: Input<'_>| {
    let mut ends = Ends::new(&input.kind);
    for step in &input.steps {
        ends.step(step);
    }
});

impl Ends {
    fn new(kind: &Kind) -> Self {
        let two_way = |over| [0, 1].map(|end| Seal::TwoWay(two_way(over, end)));
        let ends = match kind {
            Kind::Datagrams => two_way(Over::Datagrams),
            Kind::Line => two_way(Over::Line),
            Kind::Group => [1, 2].map(|site| Seal::Group(group(site))),
            Kind::Insecure => [0, 1].map(|_| Seal::Insecure(Insecure::peers(vec![None]))),
        };
        let to = match kind {
            Kind::Group => Destination::Everybody,
            Kind::Datagrams | Kind::Line | Kind::Insecure => Destination::Peer(0),
        };
        let insecure = matches!(kind, Kind::Insecure);
        Self {
            now: Instant::ZERO,
            ends,
            to,
            insecure,
            bodies: [Vec::new(), Vec::new()],
            datagrams: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step<'_>) {
        match *step {
            Step::Seal { right, length } => {
                let end = usize::from(right);
                let mut body = (self.bodies[end].len() as u32).to_be_bytes().to_vec();
                body.push(right.into());
                body.resize(5 + usize::from(length), length);
                let mut out = Vec::new();
                if self.ends[end].seal(self.now, self.to, BodyFlags::default(), &body, &mut out).is_ok() {
                    self.bodies[end].push((body, 0));
                    self.datagrams.push(out);
                }
            }
            Step::Arrive { right, which } => {
                let Some(datagram) = self.datagrams.get(usize::from(which) % self.datagrams.len().max(1))
                else {
                    return;
                };
                self.arrive(right, &mut datagram.clone());
            }
            Step::Damaged { right, which, at, with, length } => {
                let Some(datagram) = self.datagrams.get(usize::from(which) % self.datagrams.len().max(1))
                else {
                    return;
                };
                let mut datagram = datagram.clone();
                let at = usize::from(at) % datagram.len();
                datagram[at] ^= with;
                if length % 2 == 0 {
                    datagram.truncate(usize::from(length / 2));
                }
                self.arrive(right, &mut datagram);
            }
            Step::Garbage { right, octets } => self.arrive(right, &mut octets.to_vec()),
            Step::Pass { millis } => self.now = self.now + Duration::from_millis(millis.into()),
            Step::Run => self.run(),
        }
    }

    fn run(&mut self) {
        for _ in 0..8 {
            for end in 0..2 {
                let mut out = Vec::new();
                while self.ends[end].poll(self.now, &mut out).is_some() {
                    self.datagrams.push(out.clone());
                    self.arrive(end == 0, &mut out.clone());
                }
            }
        }
    }

    fn arrive(&mut self, right: bool, datagram: &mut [u8]) {
        let from = SocketAddr::from(([192, 0, 2, 1 + u8::from(!right)], 5_000));
        let opened = self.ends[usize::from(right)].open(self.now, Some(from.into()), datagram);
        if let Opened::Body { body, flags, .. } = opened
            && !self.insecure
        {
            assert_eq!(flags, BodyFlags::default());
            let sealed = self.bodies[usize::from(!right)].iter_mut().find(|sealed| sealed.0 == body);
            let sealed = sealed.expect("what comes out was sealed by the other end");
            sealed.1 += 1;
            assert_eq!(sealed.1, 1, "nothing comes out twice");
        }
    }
}

fn random(seed: u8) -> Box<dyn Random> {
    let mut state = u64::from(seed) << 56;
    Box::new(move |octets: &mut [u8]| {
        for octet in octets {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            *octet = (state >> 32) as u8;
        }
    })
}

fn keys() -> Keys {
    Keys::one(Key::new(*b"thirty-two octets, known to both"))
}

fn two_way(over: Over, end: u8) -> TwoWay {
    let address = (end == 0).then(|| SocketAddr::from(([192, 0, 2, 2], 5_000)));
    let peers = vec![PeerKeys { keys: keys().into(), address, keepalive: Some(Duration::from_secs(25)) }];
    let suite = if over == Over::Line { Suite::AesCcm8 } else { Suite::ChaCha20Poly1305 };
    TwoWay::new(Instant::ZERO, over, peers, suite, [7; 8], random(end)).expect("one peer")
}

fn group(site: u8) -> Group {
    let [one, two] = [1, 2].map(|site| SiteId::new(site).expect("not zero"));
    let (own, other) = if site == 1 { (one, two) } else { (two, one) };
    let plan = GroupConfig {
        own: Some(own),
        sites: vec![other],
        keys: keys(),
        suite: Suite::ChaCha20Poly1305,
        digest: [7; 8],
        wall_seconds: 1_790_000_000,
    };
    Group::new(Instant::ZERO, plan, Box::new(Memory::default()), random(site)).expect("two sites")
}
