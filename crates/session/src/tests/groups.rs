//! Sites that broadcast.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use thinair_wire::time::Instant;

use super::room::{PARAMETERS, key, random};
use crate::{
    BadGroup, BodyFlags, Destination, Epoch, EpochStore, Group, GroupConfig, Keys, NewSession, NotSealed,
    Opened, Refused, Seal, Sender, SiteId, Suite,
};

/// Content of a disk, which survives daemons and may fail.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<(BTreeMap<SiteId, Epoch>, bool)>>);

impl EpochStore for Disk {
    fn load(&mut self, site: SiteId) -> io::Result<Option<Epoch>> {
        Ok(self.0.lock().expect("one thread").0.get(&site).copied())
    }

    fn store(&mut self, site: SiteId, epoch: &Epoch) -> io::Result<()> {
        let disk = &mut *self.0.lock().expect("one thread");
        if disk.1 {
            return Err(io::Error::other("the disk is full"));
        }
        disk.0.insert(site, *epoch);
        Ok(())
    }
}

impl Disk {
    fn fail(&self, fails: bool) {
        self.0.lock().expect("one thread").1 = fails;
    }
}

const WALL: u64 = 1_790_000_000;
const SUITES: [Suite; 3] = [Suite::ChaCha20Poly1305, Suite::AesGcm, Suite::AesCcm8];

fn site(number: u8) -> SiteId {
    SiteId::new(number).expect("not zero")
}

fn config(own: u8) -> GroupConfig {
    GroupConfig {
        own: SiteId::new(own),
        sites: (1..=3).filter(|number| *number != own).map(site).collect(),
        keys: Keys::one(key(1)),
        suite: Suite::ChaCha20Poly1305,
        digest: PARAMETERS,
        wall_seconds: WALL,
    }
}

pub(super) struct GroupSite {
    seal: Seal,
    disk: Disk,
    seed: u64,
    now: Instant,
}

impl GroupSite {
    pub(super) fn new(own: u8) -> Self {
        Self::with(config(own), Disk::default(), u64::from(own))
    }

    fn with(config: GroupConfig, disk: Disk, seed: u64) -> Self {
        let now = Instant::from_millis(500);
        let group = Group::new(now, config, Box::new(disk.clone()), random(seed)).expect("a group");
        Self { seal: Seal::Group(group), disk, seed, now }
    }

    fn restart(&mut self, config: GroupConfig) {
        let now = self.now;
        *self = Self::with(config, self.disk.clone(), self.seed + 1_000);
        self.now = now;
    }

    /// Starts again behind SIGKILL: the disk is as it was, and the clock has no other time.
    pub(super) fn kill(&mut self, own: u8) {
        self.restart(config(own));
    }

    fn group(&mut self) -> &mut Group {
        let Seal::Group(group) = &mut self.seal else { unreachable!("all are groups") };
        group
    }

    pub(super) fn seal(&mut self, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let flags = BodyFlags::default();
        self.seal.seal(self.now, Destination::Everybody, flags, body, &mut out).expect("it sends");
        out
    }

    /// Writes a datagram that is due.
    pub(super) fn poll(&mut self, out: &mut Vec<u8>) -> bool {
        self.seal.poll(self.now, out).is_some()
    }

    pub(super) fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    fn announcement(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        for _ in 0..20 {
            if let Some(to) = self.seal.poll(self.now, &mut out) {
                assert_eq!(to, (Destination::Everybody, None));
                return out;
            }
            self.now = self.now + Duration::from_secs(1);
        }
        panic!("none in 20 s");
    }

    pub(super) fn open(&mut self, datagram: &[u8]) -> Alteration {
        match self.seal.open(self.now, None, &mut datagram.to_vec()) {
            Opened::Body { from: Sender::Site(from), body, session: None, .. } => {
                Alteration::Body(from.number(), body.to_vec())
            }
            Opened::Session { from: Sender::Site(from), session: NewSession { restarted } } => {
                Alteration::Session(from.number(), restarted)
            }
            Opened::Refused(refused) => Alteration::Refused(refused),
            Opened::Handled => Alteration::Handled,
            other => panic!("{other:?}"),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Alteration {
    Body(u8, Vec<u8>),
    Session(u8, bool),
    Refused(Refused),
    Handled,
}

use Alteration::*;

#[test]
fn three_sites_hear_each_other() {
    for suite in SUITES {
        let mut sites = [1, 2, 3]
            .map(|own| GroupSite::with(GroupConfig { suite, ..config(own) }, Disk::default(), own.into()));
        for from in 0..3 {
            let early = sites[from].seal(b"early");
            let announcement = sites[from].announcement();
            assert_eq!(announcement.len(), 75);
            let number = from as u8 + 1;
            for (to, site_to) in sites.iter_mut().enumerate() {
                if to == from {
                    assert_eq!(site_to.open(&early), Refused(Refused::Reflected));
                    assert_eq!(site_to.open(&announcement), Refused(Refused::Reflected));
                } else {
                    assert_eq!(site_to.open(&early), Refused(Refused::NotAnnounced(site(number))));
                    assert_eq!(site_to.open(&announcement), Session(number, false));
                    assert_eq!(site_to.open(&announcement), Refused(Refused::Replayed));
                }
            }
        }
        for i in 0..50 {
            for from in 0..3 {
                let datagram = sites[from].seal(&[i; 30]);
                assert!(datagram.len() <= 30 + sites[from].seal.around().most());
                for to in (0..3).filter(|to| *to != from) {
                    assert_eq!(sites[to].open(&datagram), Body(from as u8 + 1, vec![i; 30]));
                    assert_eq!(sites[to].open(&datagram), Refused(Refused::Replayed));
                }
            }
        }
    }
}

#[test]
fn who_only_hears_says_nothing() {
    let mut hears = GroupSite::with(GroupConfig { own: None, ..config(0) }, Disk::default(), 9);
    let sealed =
        hears.seal.seal(hears.now, Destination::Everybody, BodyFlags::default(), b"?", &mut Vec::new());
    assert_eq!(sealed, Err(NotSealed::OnlyHears));
    assert_eq!(hears.seal.poll(hears.now, &mut Vec::new()), None);
    assert_eq!(hears.seal.poll_at(), None);
    let mut sender = GroupSite::new(1);
    hears.open(&sender.announcement());
    assert_eq!(hears.open(&sender.seal(b"!")), Body(1, b"!".to_vec()));
}

#[test]
fn announcements_come_on_their_schedule() {
    let mut sender = GroupSite::new(1);
    let mut at = Vec::new();
    for second in 0..64 {
        if sender.seal.poll(sender.now, &mut Vec::new()).is_some() {
            at.push(second);
        }
        sender.now = sender.now + Duration::from_secs(1);
    }
    assert_eq!(at, [0, 1, 3, 7, 15, 31, 47, 63]);
    // The keys are announced soon to a site that starts.
    sender.announcement();
    let mut other = GroupSite::new(2);
    assert_eq!(sender.open(&other.announcement()), Session(2, false));
    sender.now = sender.now + Duration::from_secs(2);
    assert!(sender.seal.poll(sender.now, &mut Vec::new()).is_some());
}

#[test]
fn what_was_recorded_before_a_start_is_refused() {
    let (mut sender, mut receiver) = (GroupSite::new(1), GroupSite::new(2));
    let old = [sender.announcement(), sender.seal(b"old")];
    for datagram in &old {
        receiver.open(datagram);
    }
    sender.restart(config(1));
    let new = [sender.announcement(), sender.seal(b"new")];
    assert_eq!(receiver.open(&old[1]), Refused(Refused::Replayed));
    assert_eq!(receiver.open(&new[0]), Session(1, true));
    assert_eq!(receiver.open(&new[1]), Body(1, b"new".to_vec()));
    assert_eq!(receiver.open(&old[0]), Refused(Refused::StaleEpoch(site(1))));
    assert!(matches!(receiver.open(&old[1]), Refused(_)));
    assert_eq!(receiver.open(&new[1]), Refused(Refused::Replayed));

    // A receiver keeps it across a restart, and its end has stored how far it was.
    receiver.seal.close().expect("stored");
    receiver.restart(config(2));
    assert_eq!(receiver.open(&old[0]), Refused(Refused::StaleEpoch(site(1))));
    assert_eq!(receiver.open(&new[1]), Refused(Refused::NotAnnounced(site(1))));
    let again = sender.announcement();
    assert_eq!(receiver.open(&again), Session(1, false));
    assert_eq!(
        receiver.open(&new[1]),
        Refused(Refused::TooOld),
        "the announcement says how far the sender is"
    );
    assert_eq!(receiver.open(&sender.seal(b"more")), Body(1, b"more".to_vec()));
}

#[test]
fn a_receiver_that_starts_anew_goes_on_where_it_was() {
    let (mut sender, mut receiver) = (GroupSite::new(1), GroupSite::new(2));
    let announcement = sender.announcement();
    receiver.open(&announcement);
    let recorded: Vec<_> = (0..100).map(|i| sender.seal(&[i])).collect();
    for datagram in &recorded {
        receiver.open(datagram);
    }
    receiver.seal.close().expect("stored");
    receiver.restart(config(2));
    // A replay of the old announcement, with the sender's first counter.
    assert_eq!(receiver.open(&announcement), Session(1, false));
    for datagram in &recorded {
        assert_eq!(receiver.open(datagram), Refused(Refused::TooOld));
    }
    assert_eq!(receiver.open(&sender.seal(b"new")), Body(1, b"new".to_vec()));
}

/// Delivers the announcement of a sender, and bodies at an interval, each of which must be accepted. Returns all
/// datagrams.
fn record(sender: &mut GroupSite, receiver: &mut GroupSite, count: u32, interval: Duration) -> Vec<Vec<u8>> {
    let mut recorded = vec![sender.announcement()];
    receiver.open(&recorded[0]);
    for i in 0..count {
        receiver.now = receiver.now + interval;
        while receiver.seal.poll(receiver.now, &mut Vec::new()).is_some() {}
        let datagram = sender.seal(&i.to_be_bytes());
        assert_eq!(receiver.open(&datagram), Body(1, i.to_be_bytes().to_vec()));
        recorded.push(datagram);
    }
    recorded
}

fn accepted(receiver: &mut GroupSite, recorded: &[Vec<u8>]) -> usize {
    recorded.iter().filter(|datagram| matches!(receiver.open(datagram), Body(..))).count()
}

#[test]
fn recorded_datagrams_are_rejected_after_a_kill_at_any_time() {
    for (count, interval) in [(1, 1), (8, 100), (15, 1), (16, 1), (17, 1), (300, 1), (3_000, 1), (40, 30_000)]
    {
        let (mut sender, mut receiver) = (GroupSite::new(1), GroupSite::new(2));
        let recorded = record(&mut sender, &mut receiver, count, Duration::from_millis(interval));
        // Nothing is stored at a kill. The clock of the system stands, or leaps.
        for wall_seconds in [WALL, 0, u64::MAX / 2] {
            receiver.restart(GroupConfig { wall_seconds, ..config(2) });
            assert_eq!(accepted(&mut receiver, &recorded), 0, "{count} datagrams, {wall_seconds}");
        }
        // Both were killed, and the sender has not been heard again.
        sender.restart(config(1));
        receiver.restart(config(2));
        assert_eq!(accepted(&mut receiver, &recorded), 0, "{count} datagrams, both killed");
        let recorded = record(&mut sender, &mut receiver, 1, Duration::ZERO);
        assert_eq!(accepted(&mut receiver, &recorded), 0);
    }
}

#[test]
fn a_site_is_heard_again_soon_after_a_kill() {
    for (interval, most) in [(1, 4_000), (10, 400), (100, 40), (1_000, 4), (5_000, 1), (20_000, 1)] {
        let (mut sender, mut receiver) = (GroupSite::new(1), GroupSite::new(2));
        record(&mut sender, &mut receiver, 30_000 / interval + 30, Duration::from_millis(interval.into()));
        receiver.restart(config(2));
        receiver.open(&sender.announcement());
        let lost = (0..).take_while(|_| !matches!(receiver.open(&sender.seal(b"new")), Body(..))).count();
        println!("one in {interval} ms: {lost} lost");
        assert!(lost <= most, "{lost} of one in {interval} ms");
    }
}

#[test]
fn a_burst_reserves_for_the_time_of_the_burst_alone() {
    let (mut sender, mut receiver) = (GroupSite::new(1), GroupSite::new(2));
    record(&mut sender, &mut receiver, 10_000, Duration::from_micros(100));
    for _ in 0..3 {
        receiver.now = receiver.now + Duration::from_secs(10);
        while receiver.seal.poll(receiver.now, &mut Vec::new()).is_some() {}
    }
    assert_eq!(
        receiver.disk.clone().load(site(1)).expect("readable").map(|epoch| epoch.counter),
        Some(10_000)
    );
    receiver.restart(config(2));
    receiver.open(&sender.announcement());
    assert!(matches!(receiver.open(&sender.seal(b"new")), Body(..)));
}

#[test]
fn nothing_is_accepted_that_a_full_disk_could_not_reserve() {
    let (mut sender, mut receiver) = (GroupSite::new(1), GroupSite::new(2));
    let mut recorded = record(&mut sender, &mut receiver, 5, Duration::from_millis(100));
    receiver.disk.fail(true);
    let mut refused = 0;
    for i in 0..100 {
        let datagram = sender.seal(&[i]);
        match receiver.open(&datagram) {
            Body(..) => recorded.push(datagram),
            other => {
                assert_eq!(other, Refused(Refused::NotKept(site(1))));
                refused += 1;
            }
        }
    }
    assert!((90..100).contains(&refused), "{refused}");
    // A restart reads what was stored.
    receiver.disk.fail(false);
    let mut restarted = GroupSite::with(config(2), receiver.disk.clone(), 9);
    assert_eq!(accepted(&mut restarted, &recorded), 0);
    assert_eq!(receiver.open(&sender.seal(b"room")), Body(1, b"room".to_vec()));
}

#[test]
fn the_same_epoch_with_another_salt_is_refused() {
    // A disk restored from a backup, and a clock that stands still.
    let (mut sender, mut receiver) = (GroupSite::new(1), GroupSite::new(2));
    receiver.open(&sender.announcement());
    let mut twin = GroupSite::with(config(1), Disk::default(), 77);
    assert_eq!(receiver.open(&twin.announcement()), Refused(Refused::OtherSalt(site(1))));
    assert!(matches!(receiver.open(&twin.seal(b"twin")), Refused(Refused::Forged)));
    assert_eq!(receiver.open(&sender.seal(b"it")), Body(1, b"it".to_vec()));
}

#[test]
fn an_epoch_that_cannot_be_stored_is_not_used() {
    let (mut sender, mut receiver) = (GroupSite::new(1), GroupSite::new(2));
    receiver.disk.fail(true);
    let announcement = sender.announcement();
    assert_eq!(receiver.open(&announcement), Refused(Refused::NotKept(site(1))));
    receiver.disk.fail(false);
    assert_eq!(receiver.open(&announcement), Session(1, false));

    sender.disk.fail(true);
    let again = Group::new(sender.now, config(1), Box::new(sender.disk.clone()), random(5));
    let Err(again @ BadGroup::Store { .. }) = again else { panic!("the disk is full") };
    assert_eq!(again.to_string(), "cannot read or store the epoch of site 1", "the reason is the source");
}

#[test]
fn an_epoch_is_one_more_or_the_clock() {
    let disk = Disk::default();
    let number = |disk: &Disk| disk.clone().load(site(1)).expect("readable").expect("stored").number;
    for (wall, epoch) in [(100, 100), (100, 101), (50, 102), (1_000, 1_000), (0, 1_001)] {
        GroupSite::with(GroupConfig { wall_seconds: wall, ..config(1) }, disk.clone(), wall);
        assert_eq!(number(&disk), epoch);
    }
    disk.clone().store(site(1), &Epoch { number: u64::MAX, salt: [0; 16], counter: 0 }).expect("stored");
    let none_left = Group::new(Instant::ZERO, config(1), Box::new(disk), random(5));
    assert!(matches!(none_left, Err(BadGroup::NoEpochs(_))));
}

#[test]
fn no_key_and_nonce_twice_in_1_000_starts_with_a_clock_that_stands() {
    super::nonces::watch();
    let (mut sender, mut receiver) = (GroupSite::new(1), GroupSite::new(2));
    for start in 0..1_000 {
        sender.restart(config(1));
        assert_eq!(receiver.open(&sender.announcement()), Session(1, start > 0));
        for i in 0..3 {
            assert_eq!(receiver.open(&sender.seal(&[i])), Body(1, vec![i]));
        }
        sender.announcement();
    }
    assert_eq!(super::nonces::count(), 5_000);
}

#[test]
fn keys_of_the_file_are_replaced_without_loss() {
    let [old, new] = [1, 2].map(key);
    let steps = [Keys::two(old.clone(), new.clone()), Keys::two(new.clone(), old), Keys::one(new)];
    let (mut sender, mut receiver) = (GroupSite::new(1), GroupSite::new(2));
    receiver.open(&sender.announcement());
    let mut count = 0_u32;
    for keys in steps {
        for at_sender in [false, true] {
            let site = if at_sender { &mut sender } else { &mut receiver };
            let now = site.now;
            assert!(site.group().set_keys(now, &keys));
            for _ in 0..60 {
                count += 1;
                let mut announcement = Vec::new();
                if sender.seal.poll(sender.now, &mut announcement).is_some() {
                    assert!(matches!(receiver.open(&announcement), Handled | Session(1, false)));
                }
                let datagram = sender.seal(&count.to_be_bytes());
                assert_eq!(receiver.open(&datagram), Body(1, count.to_be_bytes().to_vec()));
                sender.now = sender.now + Duration::from_secs(1);
            }
        }
    }
    assert_eq!(
        receiver.disk.clone().load(site(1)).expect("readable").map(|epoch| epoch.number),
        Some(WALL + 1)
    );
}

#[test]
fn a_removed_key_that_comes_back_opens_nothing_again() {
    let [old, new] = [1, 2].map(key);
    let (mut sender, mut receiver) = (GroupSite::new(1), GroupSite::new(2));
    let mut recorded = vec![sender.announcement()];
    recorded.extend((0..10).map(|i| sender.seal(&[i])));
    for datagram in &recorded {
        receiver.open(datagram);
    }
    let now = receiver.now;
    receiver.group().set_keys(now, &Keys::one(new.clone()));
    receiver.group().set_keys(now, &Keys::two(old, new.clone()));
    assert_eq!(receiver.open(&recorded[0]), Session(1, false));
    for datagram in &recorded[1..] {
        assert_eq!(receiver.open(datagram), Refused(Refused::TooOld));
    }
    // An epoch of the new key that cannot be stored is tried again.
    sender.disk.fail(true);
    let now = sender.now;
    sender.group().set_keys(now, &Keys::one(new.clone()));
    sender.now = sender.now + Duration::from_secs(20);
    sender.announcement();
    sender.disk.fail(false);
    sender.now = sender.now + Duration::from_secs(20);
    assert_eq!(sender.announcement()[2..6], new.id().0);
}

#[test]
fn after_a_long_loss_an_announcement_helps() {
    let (mut sender, mut receiver) = (GroupSite::new(1), GroupSite::new(2));
    receiver.open(&sender.announcement());
    for _ in 0..65_600 {
        sender.seal(b"lost");
    }
    assert!(matches!(receiver.open(&sender.seal(b"?")), Refused(Refused::Forged)));
    assert_eq!(receiver.open(&sender.announcement()), Handled);
    assert_eq!(receiver.open(&sender.seal(b"!")), Body(1, b"!".to_vec()));
}

#[test]
fn strangers_are_refused() {
    let mut receiver = GroupSite::new(2);
    let mut stranger =
        GroupSite::with(GroupConfig { keys: Keys::one(key(9)), ..config(1) }, Disk::default(), 4);
    assert_eq!(
        receiver.open(&stranger.announcement()),
        Refused(Refused::UnknownKey { key: key(9).id(), of: SiteId::new(1).map(Sender::Site) })
    );
    let mut unknown = GroupSite::with(GroupConfig { own: SiteId::new(9), ..config(9) }, Disk::default(), 4);
    assert_eq!(receiver.open(&unknown.announcement()), Refused(Refused::Unknown));
    let mut other = GroupSite::with(GroupConfig { digest: [0; 8], ..config(1) }, Disk::default(), 4);
    let from = Sender::Site(site(1));
    assert_eq!(receiver.open(&other.announcement()), Refused(Refused::OtherParameters(from)));
    let mut other = GroupSite::with(GroupConfig { suite: Suite::AesCcm8, ..config(1) }, Disk::default(), 4);
    assert_eq!(receiver.open(&other.announcement()), Refused(Refused::OtherSuite(from)));

    // Announcements with any changed octet, and bodies with the number of another site.
    let mut sender = GroupSite::new(1);
    let announcement = sender.announcement();
    for octet in 0..announcement.len() {
        let mut damaged = announcement.clone();
        damaged[octet] ^= 1;
        assert!(matches!(receiver.open(&damaged), Refused(_)), "{octet}");
    }
    assert_eq!(receiver.open(&announcement), Session(1, false));
    receiver.open(&GroupSite::new(3).announcement());
    let mut posed = sender.seal(b"of another");
    posed[1] = 3;
    assert_eq!(receiver.open(&posed), Refused(Refused::Forged));
}

#[test]
fn a_group_that_cannot_be_is_refused() {
    let new = |config| Group::new(Instant::ZERO, config, Box::new(Disk::default()), random(1)).err();
    assert!(matches!(new(GroupConfig { suite: Suite::AesCcm4, ..config(1) }), Some(BadGroup::ShortTag)));
    let twice = GroupConfig { sites: vec![site(3), site(2), site(3)], ..config(1) };
    assert!(matches!(new(twice), Some(BadGroup::Twice(three)) if three == site(3)));
    assert!(matches!(new(GroupConfig { sites: vec![site(1)], ..config(1) }), Some(BadGroup::Twice(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn octets_of_nobody_do_nothing(datagrams in prop::collection::vec((0_usize..4, prop::collection::vec(any::<u8>(), 0..120)), 1..60)) {
        let (mut sender, mut receiver) = (GroupSite::new(1), GroupSite::new(2));
        receiver.open(&sender.announcement());
        for (kind, mut octets) in datagrams {
            if let (Some(known), true) = ([0x40, 0x50, 0x80].get(kind), octets.len() > 1) {
                octets[..2].copy_from_slice(&[*known, 1]);
                if *known == 0x80 {
                    octets.resize(75, 0);
                    octets[2..6].copy_from_slice(&key(1).id().0);
                }
            }
            let what = receiver.open(&octets);
            prop_assert!(matches!(what, Refused(_)), "{:?}", what);
        }
        prop_assert_eq!(receiver.open(&sender.seal(b"still")), Body(1, b"still".to_vec()));
    }
}
