use std::collections::VecDeque;

use super::*;

/// A broadcast medium: a unit of a site reaches each of the others, or is lost for it.
struct BroadcastMedium {
    sites: Vec<SiteId>,
    channels: Vec<Channel>,
    config: ChannelConfig,
    feedback: bool,
    /// Loss of each site, in percent.
    loss: Vec<u64>,
    random: u64,
    /// Recently sent packets of each site.
    sent: Vec<VecDeque<Vec<u8>>>,
    delivered: u64,
    /// Number of packets received from each site.
    came: Vec<u64>,
    lost: u64,
    /// Sites that send no feedback.
    silent: Vec<bool>,
}

impl BroadcastMedium {
    fn new(sites: u8, mode: Mode, feedback: bool) -> Self {
        let config = config(mode);
        let sites: Vec<_> = (1..=sites).map(|site| SiteId::new(site).unwrap()).collect();
        let mut mesh = Self {
            channels: Vec::new(),
            config,
            feedback,
            loss: vec![0; sites.len()],
            random: 1,
            sent: vec![VecDeque::new(); sites.len()],
            delivered: 0,
            came: vec![0; sites.len()],
            lost: 0,
            silent: vec![false; sites.len()],
            sites,
        };
        mesh.channels = (0..mesh.sites.len()).map(|site| mesh.channel(site)).collect();
        mesh
    }

    fn channel(&self, site: usize) -> Channel {
        let own = self.sites[site];
        let others: Vec<_> = self.sites.iter().copied().filter(|site| *site != own).collect();
        let role = Role::Mesh { own: Some(own), sites: &others, feedback: self.feedback };
        Channel::new(&Setup { role, seed: u64::from(own.number()), ..setup(&self.config) }).unwrap()
    }

    fn draw_loss(&mut self, site: usize) -> bool {
        self.random = self.random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.random >> 33) % 100 < self.loss[site]
    }

    fn broadcast(&mut self, now: Instant, from: usize, units: Vec<Owned>) {
        for unit in units {
            for site in (0..self.sites.len()).filter(|site| *site != from) {
                if self.draw_loss(site) {
                    self.lost += 1;
                    continue;
                }
                let (received, packets) =
                    receive(&mut self.channels[site], now, Some(self.sites[from]), &unit);
                if unit.to.is_some_and(|to| to != self.sites[site]) {
                    assert_eq!((received, packets), (Err(NotReceived::NotForUs), Vec::new()));
                    continue;
                }
                for packet in packets {
                    assert!(self.sent[from].contains(&packet), "nobody has sent that");
                    self.delivered += 1;
                    self.came[site] += 1;
                }
            }
        }
    }

    fn send(&mut self, now: Instant, from: usize, packet: Vec<u8>) -> Sent {
        let (sent, units) = send(&mut self.channels[from], now, &packet);
        assert!(units.iter().all(|unit| unit.to.is_none()));
        self.sent[from].push_back(packet);
        if self.sent[from].len() > 16 {
            self.sent[from].pop_front();
        }
        self.broadcast(now, from, units);
        sent.unwrap()
    }

    /// Transfers due feedback.
    fn poll(&mut self, now: Instant) {
        for site in 0..self.sites.len() {
            let units = poll(&mut self.channels[site], now);
            assert!(units.iter().all(|unit| unit.to.is_some()));
            if !self.silent[site] {
                self.broadcast(now, site, units);
            }
        }
    }

    /// Every site sends a packet of two flows alternately, every 20 ms.
    fn run(&mut self, from: u16, to: u16) {
        for i in from..to {
            let now = ms(20 * u64::from(i));
            for site in 0..self.sites.len() {
                self.send(now, site, udp6(site as u16 * 8 + i % 2, i, 24));
            }
            self.poll(now);
        }
    }

    fn modes(&self, site: usize) -> Vec<Mode> {
        self.channels[site].compressor_contexts().map(|context| context.mode).collect()
    }
}

#[test]
fn without_feedback_all_hear_all_and_nothing_is_answered() {
    let mut mesh = BroadcastMedium::new(3, Mode::Unidirectional, false);
    mesh.run(0, 200);
    assert_eq!(mesh.delivered, 200 * 3 * 2);
    for channel in &mesh.channels {
        assert_eq!(channel.counters().feedback_sent, Feedback::default());
        assert_eq!(channel.decompressor_contexts().count(), 4);
    }
    mesh.loss = vec![10; 3];
    mesh.run(200, 2_000);
    assert!(mesh.lost > 800 && mesh.delivered > 200 * 6 + 1_800 * 6 * 8 / 10);
}

#[test]
fn combined_feedback_leads_to_o_mode() {
    for sites in [3, 5] {
        let mut mesh = BroadcastMedium::new(sites, Mode::Optimistic, true);
        mesh.run(0, 50);
        let others = u64::from(sites) - 1;
        assert_eq!(mesh.delivered, 50 * u64::from(sites) * others);
        for site in 0..mesh.sites.len() {
            assert_eq!(mesh.modes(site), [Mode::Optimistic; 2]);
            let states = mesh.channels[site].compressor_contexts().map(|context| context.state);
            assert!(states.into_iter().all(|state| state == "SO"));
            let received = mesh.channels[site].counters().feedback_received;
            assert!(received.acks >= 2 * others && received.ignored == 0, "{received:?}");
            assert_eq!(mesh.channels[site].counters().feedback_sent.in_front, 0);
        }
    }
}

#[test]
fn one_that_is_silent_holds_o_mode_back_and_hears_all_the_same() {
    let mut mesh = BroadcastMedium::new(3, Mode::Optimistic, true);
    mesh.silent[2] = true;
    mesh.run(0, 300);
    // Site 3 receives feedback of both others; no other site has feedback of all.
    assert_eq!(mesh.modes(0), [Mode::Unidirectional; 2]);
    assert_eq!(mesh.modes(1), [Mode::Unidirectional; 2]);
    assert_eq!(mesh.modes(2), [Mode::Optimistic; 2]);
    assert_eq!(mesh.delivered, 300 * 6);
}

#[test]
fn with_loss_nothing_wrong_is_delivered() {
    for sites in [3, 5] {
        let mut mesh = BroadcastMedium::new(sites, Mode::Optimistic, true);
        mesh.loss = vec![5; usize::from(sites)];
        mesh.loss[1] = 25;
        mesh.run(0, 3_000);
        let all = 3_000 * u64::from(sites) * (u64::from(sites) - 1);
        assert!(mesh.lost > all / 20);
        assert!(mesh.delivered > all * 8 / 10, "{} of {all}, {} lost", mesh.delivered, mesh.lost);
        assert!((0..usize::from(sites)).all(|site| mesh.modes(site) == [Mode::Optimistic; 2]));
    }
}

#[test]
fn a_member_that_has_lost_its_contexts_lowers_the_compressor() {
    let mut mesh = BroadcastMedium::new(3, Mode::Optimistic, true);
    mesh.run(0, 100);
    let before = mesh.channels[0].counters().compressed;
    // Site 2 restarts, and the others are not informed.
    mesh.channels[1] = mesh.channel(1);
    let delivered = mesh.delivered;
    mesh.run(100, 140);
    let counters = mesh.channels[0].counters();
    assert!(counters.feedback_received.static_nacks >= 2, "{:?}", counters.feedback_received);
    let after = counters.compressed;
    let larger = after.refresh + after.initialization - before.refresh - before.initialization;
    assert!((2..=20).contains(&larger), "{before:?}, then {after:?}");
    assert!(mesh.delivered >= delivered + 40 * 6 - 12);
    assert_eq!(mesh.modes(0), [Mode::Optimistic; 2]);
    // After they are informed, they reset their contexts, and all receive everything.
    mesh.channels[1] = mesh.channel(1);
    let site = mesh.sites[1];
    mesh.channels[0].reset(Some(site));
    mesh.channels[2].reset(Some(site));
    let delivered = mesh.delivered;
    mesh.run(140, 200);
    assert_eq!(mesh.delivered, delivered + 60 * 6);
    assert!((0..3).all(|site| mesh.modes(site) == [Mode::Optimistic; 2]));
}

#[test]
fn new_flows_on_old_cids_are_acknowledged_anew() {
    let mut mesh = BroadcastMedium::new(3, Mode::Optimistic, true);
    // More flows than CIDs, with few packets each.
    for i in 0..2_000_u16 {
        let now = ms(5 * u64::from(i));
        mesh.send(now, 0, udp6(100 + i / 7 + 10 * (i % 2), i, 24));
        if i % 3 == 0 {
            mesh.poll(now);
        }
    }
    assert_eq!(mesh.delivered, 4_000);
}

#[test]
fn captures_come_through_a_mesh() {
    let mut mesh = BroadcastMedium::new(4, Mode::Optimistic, true);
    mesh.loss = vec![0, 0, 3, 10];
    let (mut now, mut sent) = (0, [0, 0]);
    for name in captures() {
        for (forth, packet) in captured(&name).into_iter().filter(|(_, packet)| packet.len() <= 1_500) {
            now += 7;
            let site = usize::from(!forth);
            sent[site] += 1;
            mesh.send(ms(now), site, packet);
            mesh.poll(ms(now));
        }
    }
    // Sites without loss miss nothing, regardless of the feedback of those with loss.
    assert_eq!([mesh.came[1], mesh.came[0]], sent);
    assert!(mesh.came[3] > (sent[0] + sent[1]) / 2, "{:?} of {sent:?}", mesh.came);
    let counters = mesh.channels[0].counters();
    assert!(counters.sent.unit_octets < counters.sent.octets);
    assert!(counters.feedback_received.acks > 0);
}

#[test]
fn only_members_are_heard() {
    let mut mesh = BroadcastMedium::new(3, Mode::Optimistic, true);
    let (_, units) = send(&mut mesh.channels[0], ms(0), &udp6(1, 1, 24));
    for from in [None, SiteId::new(2), SiteId::new(9)] {
        let (received, packets) = receive(&mut mesh.channels[1], ms(0), from, &units[0]);
        assert_eq!((received, packets), (Err(NotReceived::UnknownSite), Vec::new()));
    }
    // A receiver-only site sends neither packets nor feedback.
    let sites = [mesh.sites[0]];
    let role = Role::Mesh { own: None, sites: &sites, feedback: true };
    let mut ears = Channel::new(&Setup { role, ..setup(&mesh.config) }).unwrap();
    assert_eq!(receive(&mut ears, ms(0), Some(sites[0]), &units[0]).1.len(), 1);
    assert_eq!(send(&mut ears, ms(0), &udp6(1, 1, 24)).0, Err(NotSent::OnlyHears));
    assert_eq!(ears.poll_at(), None);
}

#[test]
fn an_acknowledgment_of_all_is_the_one_of_the_slowest() {
    let mut mesh = BroadcastMedium::new(3, Mode::Optimistic, true);
    let [first, rest @ ..] = &mut mesh.channels[..] else { unreachable!() };
    let (mut waiting, site) = (Vec::new(), |n| SiteId::new(n).unwrap());
    for i in 0..8 {
        let (_, units) = send(first, ms(i), &udp6(1, i as u16, 24));
        // Only site 3 receives the first two packets.
        receive(&mut rest[0], ms(i), Some(site(1)), &units[0]).0.unwrap();
        if i < 2 {
            receive(&mut rest[1], ms(i), Some(site(1)), &units[0]).0.unwrap();
        }
    }
    for (channel, from) in rest.iter_mut().zip([site(2), site(3)]) {
        waiting.extend(poll(channel, ms(100)).into_iter().map(|unit| (from, unit)));
    }
    assert_eq!(waiting.len(), 2);
    let mode = |channel: &Channel| channel.compressor_contexts().next().unwrap().mode;
    for (i, (from, unit)) in waiting.iter().enumerate() {
        assert_eq!(mode(first), Mode::Unidirectional);
        assert_eq!(unit.to, Some(site(1)));
        receive(first, ms(101), Some(*from), unit).0.unwrap();
        assert_eq!(mode(first) == Mode::Optimistic, i == 1);
    }
}
