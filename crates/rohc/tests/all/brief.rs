//! Flows of UDP that end after a few packets: they are not larger than plain, and those that go on lose one packet.

use std::time::Duration;

use thinair_rohc::{Channel, CidSpace, Compressed, Format, Instant, Mode, ProfileId, ProfileSet};

use crate::common::link::Link;
use crate::common::{IdKind, IpLayer, SplitMix64, TestFlow};

/// Octets of the headers of a question, by IP version.
const PLAIN: [usize; 2] = [28, 48];

/// Flows that have to end before others are brief.
const ENDED: u16 = 8;

/// A host that asks a server from a new port each time.
struct Asker {
    link: Link,
    random: SplitMix64,
    six: bool,
    /// A new flow label for each port, as Linux sets it.
    labels: bool,
    profiles: ProfileSet,
    /// Octets of headers, and of feedback on them.
    sent: usize,
    packets: usize,
}

impl Asker {
    fn new(cids: CidSpace, max_cid: u16, profiles: ProfileSet, mode: Mode, six: bool, labels: bool) -> Self {
        let link = Link::new(Channel::new(cids, max_cid, profiles).unwrap(), mode, 64, |_| {});
        Self { link, random: SplitMix64(1), six, labels, profiles, sent: 0, packets: 0 }
    }

    /// A flow from a port.
    fn flow(&self, port: u16) -> TestFlow {
        let mut layer = IpLayer::new(self.six, 1);
        layer.id_kind = IdKind::Random;
        layer.flow_label = if self.labels { u32::from(port).wrapping_mul(0x9E37) & 0xF_FFFF } else { 0 };
        let mut flow = TestFlow::udp(vec![layer]);
        (flow.port, flow.payload) = (port, 40);
        flow
    }

    /// Sends a packet of a flow 20 ms after the last one.
    fn send(&mut self, flow: &mut TestFlow) -> Compressed {
        self.send_at(self.link.now + Duration::from_millis(20), flow)
    }

    /// Sends a packet of a flow.
    fn send_at(&mut self, at: Instant, flow: &mut TestFlow) -> Compressed {
        let packet = flow.packet(&mut self.random);
        let Link { near, now, rohc, .. } = &mut self.link;
        *now = at;
        let sent = near.send(at, &packet, rohc).unwrap();
        self.sent += sent.len - flow.payload;
        self.packets += 1;
        self.receive(&packet, &sent);
        sent
    }

    /// [`Link::receive`], with the octets of feedback.
    fn receive(&mut self, packet: &[u8], sent: &Compressed) {
        let Link { near, far, now, rohc, back } = &mut self.link;
        let done = far.receive(*now, &rohc[..sent.len], back).unwrap();
        assert_eq!(&back[..done.len], packet);
        let mut feedback = [0; 64];
        while let Some(len) = far.poll_feedback(&mut feedback) {
            self.sent += len;
            let _ = near.receive(*now, &feedback[..len], back);
        }
    }

    /// Sends flows of some packets each, from ports that follow each other. Returns the first packet of each.
    fn ask(&mut self, first: u16, flows: u16, packets: usize) -> Vec<Compressed> {
        (0..flows)
            .map(|i| {
                let mut flow = self.flow(first + i);
                let sent = self.send(&mut flow);
                (1..packets).for_each(|_| {
                    self.send(&mut flow);
                });
                sent
            })
            .collect()
    }

    /// Profiles of UDP, and those that are shared.
    fn udp(&self) -> ProfileId {
        if self.profiles.has(ProfileId::UdpV2) { ProfileId::UdpV2 } else { ProfileId::Udp }
    }
}

/// Profiles and modes with a new asker of each kind.
fn askers(cids: CidSpace, max_cid: u16) -> Vec<(String, Asker)> {
    let mut askers = Vec::new();
    let v2 = ProfileSet::of(&[ProfileId::UdpV2, ProfileId::IpV2]).unwrap();
    for (name, profiles) in [("v1", ProfileSet::v1()), ("v2", v2)] {
        for mode in [Mode::Unidirectional, Mode::Optimistic] {
            for (six, labels) in [(false, false), (true, false), (true, true)] {
                let name = format!("{name} {}, IPv{}, {labels}", mode.letter(), if six { 6 } else { 4 });
                askers.push((name, Asker::new(cids, max_cid, profiles, mode, six, labels)));
            }
        }
    }
    askers
}

#[test]
fn the_first_flows_get_a_context_and_those_behind_them_do_not() {
    for (name, mut asker) in askers(CidSpace::Small, 15) {
        let udp = asker.udp();
        let first = asker.ask(20_000, ENDED, 1);
        assert!(first.iter().all(|sent| (sent.profile, sent.format) == (udp, Format::Ir)), "{name}");
        let others = asker.ask(30_000, 400, 1);
        // One flow in thousands has the hash of a known one.
        let some = others.iter().filter(|sent| sent.profile == udp).count();
        assert!(some <= 2 && others[0].profile != udp, "{name}: {some}");
    }
}

#[test]
fn flows_of_one_packet_are_no_larger_than_plain() {
    for (name, mut asker) in askers(CidSpace::Small, 15) {
        asker.ask(20_000, 40, 1);
        (asker.sent, asker.packets) = (0, 0);
        asker.ask(21_000, 1_000, 1);
        let mean = asker.sent as f64 / asker.packets as f64;
        println!("{name}: {mean:.2} octets of headers");
        // The IP profile compresses all but the UDP header, and refreshes; with a label for each port there is profile 0x0000.
        let most = if asker.labels { PLAIN[1] as f64 + 0.2 } else { 14.0 };
        assert!(mean <= most, "{name}: {mean}");
    }
}

#[test]
fn flows_of_other_lengths_get_contexts() {
    for (name, mut asker) in askers(CidSpace::Large, 255) {
        let udp = asker.udp();
        // With feedback the second packet is compressed already.
        let packets = if name.contains(" u") { 4 } else { 2 };
        for flows in [asker.ask(20_000, 40, packets), asker.ask(30_000, ENDED, 1)] {
            assert!(flows.iter().all(|sent| sent.profile == udp), "{name}");
        }
    }
}

#[test]
fn a_long_flow_loses_one_packet() {
    for (name, mut asker) in askers(CidSpace::Small, 15) {
        let udp = asker.udp();
        asker.ask(20_000, 40, 1);
        let mut long = asker.flow(40_000);
        assert_ne!(asker.send(&mut long).profile, udp, "{name}");
        for _ in 0..100 {
            assert_eq!(asker.send(&mut long).profile, udp, "{name}");
        }
        // The next flows get a context again.
        let next = asker.ask(50_000, ENDED, 1);
        assert!(next.iter().all(|sent| sent.profile == udp), "{name}");
        assert!(asker.ask(51_000, 20, 1).iter().all(|sent| sent.profile != udp), "{name}");
    }
}

#[test]
fn long_flows_in_turn_lose_one_packet_each() {
    for (name, mut asker) in askers(CidSpace::Large, 255) {
        asker.ask(20_000, 40, 1);
        let udp = asker.udp();
        let mut flows: Vec<TestFlow> = (0..12).map(|i| asker.flow(40_000 + i)).collect();
        let mut others = [0; 12];
        for i in 0..2_000 {
            let sent = asker.send(&mut flows[i % 12]);
            others[i % 12] += usize::from(sent.profile != udp);
        }
        assert!(others.iter().all(|others| *others <= 1), "{name}: {others:?}");
    }
}

/// 16 flows that begin at the same time, and go on.
#[test]
fn flows_that_begin_together_are_not_brief() {
    for (name, mut asker) in askers(CidSpace::Small, 15) {
        let udp = asker.udp();
        let mut flows: Vec<TestFlow> = (0..16).map(|i| asker.flow(40_000 + i)).collect();
        let start = asker.link.now;
        for i in 0..320 {
            // Each turn of all takes 16 ms.
            let at = start + Duration::from_millis(i / 16 * 200 + i % 16);
            let sent = asker.send_at(at, &mut flows[(i % 16) as usize]);
            assert_eq!(sent.profile, udp, "{name}, packet {i}");
        }
    }
}

#[test]
fn other_ports_and_sizes_are_other_shapes() {
    for (name, mut asker) in askers(CidSpace::Small, 15) {
        let udp = asker.udp();
        asker.ask(20_000, 40, 1);
        let mut large = asker.flow(40_000);
        large.payload = 400;
        assert_eq!(asker.send(&mut large).profile, udp, "{name}");
        // The lower port is that of the server.
        let mut other = asker.flow(53);
        assert_eq!(asker.send(&mut other).profile, udp, "{name}");
        assert_ne!(asker.ask(41_000, 1, 1)[0].profile, udp, "{name}");
    }
}

/// Both IP profiles have the flow label in their static part: a flow with another one would initialize the shared context again.
#[test]
fn flows_with_another_label_share_nothing() {
    for (name, mut asker) in askers(CidSpace::Small, 15) {
        if !asker.six || asker.labels {
            continue;
        }
        let shared = asker.ask(20_000, 40, 1);
        assert!(matches!(shared[39].profile, ProfileId::Ip | ProfileId::IpV2), "{name}");
        asker.labels = true;
        let others = asker.ask(21_000, 40, 1);
        assert!(others.iter().all(|sent| sent.profile == ProfileId::Uncompressed), "{name}");
    }
}

/// Flows of one packet through many contexts take few of them.
#[test]
fn brief_flows_leave_contexts_to_others() {
    for mode in [Mode::Unidirectional, Mode::Optimistic] {
        let mut asker = Asker::new(CidSpace::Large, 1_023, ProfileSet::v1(), mode, true, true);
        asker.ask(10_000, 10_000, 1);
        let contexts = asker.link.near.compressor.contexts().count();
        assert!(contexts <= 32, "{contexts}");
        assert_eq!(asker.link.near.compressor.displaced_flows(), 0);
    }
}

/// One packet in five is lost, and feedback with it: others come back, and a flow that goes on is delivered.
#[test]
fn losses_leave_no_wrong_packet_and_no_dead_flow() {
    for (name, mut asker) in askers(CidSpace::Small, 15) {
        let mut delivered = [0; 2];
        for i in 0..600_u16 {
            let mut flow = asker.flow(20_000 + i);
            let packets = if i % 50 == 49 { 60 } else { 1 };
            for count in 0..packets {
                let packet = flow.packet(&mut asker.random);
                let sent = asker.link.send(&packet);
                let Link { near, far, now, rohc, back } = &mut asker.link;
                if asker.random.once_in(5) {
                    continue;
                }
                if let Ok(done) = far.receive(*now, &rohc[..sent.len], back) {
                    assert_eq!(&back[..done.len], &packet[..], "{name}: flow {i}, {sent:?}");
                    delivered[usize::from(count > 0)] += 1;
                }
                let mut feedback = [0; 64];
                while let Some(len) = far.poll_feedback(&mut feedback) {
                    if !asker.random.once_in(5) {
                        let _ = near.receive(*now, &feedback[..len], back);
                    }
                }
            }
        }
        println!("{name}: {delivered:?} of 600 and {} are delivered", 12 * 59);
        assert!(delivered[0] >= 440 && delivered[1] >= 480, "{name}: {delivered:?}");
    }
}

/// A host that gives no time, as some users of librohc: flows that follow seem to begin together.
#[test]
fn without_a_clock_long_flows_behind_brief_ones_stay_small() {
    let profiles = ProfileSet::v1();
    let mut asker = Asker::new(CidSpace::Small, 15, profiles, Mode::Unidirectional, false, false);
    let start = asker.link.now;
    let flow_of = |host: u8| {
        let mut layer = IpLayer::new(false, host);
        layer.id_kind = IdKind::Counts;
        TestFlow { port: 5_000, payload: 20, ..TestFlow::udp(vec![layer]) }
    };
    for host in 1..=16 {
        asker.send_at(start, &mut flow_of(host));
    }
    let mut flows = [20, 21].map(flow_of);
    (asker.sent, asker.packets) = (0, 0);
    for i in 0..1_000 {
        asker.send_at(start, &mut flows[i % 2]);
    }
    let mean = asker.sent as f64 / asker.packets as f64;
    assert!(mean <= 4.0, "{mean:.2} octets a packet");
}
