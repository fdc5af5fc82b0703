//! Sites that broadcast, without answers: each draws its own keys at its start and announces them, encrypted
//! with a key that all share.
//!
//! A start is identified by its epoch, whose number only grows: a site stores its own, and receivers store
//! the highest one of each site, so that datagrams recorded in a past epoch are rejected. **An epoch is
//! stored before it is used.**

use std::io;
use std::time::Duration;

use thinair_wire::time::Instant;
use thiserror::Error;

use super::direction::{NEW_KEYS_AT, Opener, Sealer};
use super::epochs::{Epoch, EpochStore};
use super::header::{ClearHeader, DatagramKind, Whose};
use super::key::{Key, KeyId, Keys};
use super::replay::WINDOW;
use super::suite::Cipher;
use super::{
    Around, BodyFlags, Destination, Missing, NewSession, NotSealed, Opened, Random, Refused, Sender,
};
use crate::{SiteId, Suite};

mod announcement;
mod reservation;

pub(super) use announcement::LENGTH as ANNOUNCEMENT_LENGTH;
use announcement::{Announcement, Clear};
use reservation::{ADAPT, Reservation};

/// An epoch is announced at its start, then after 1 s, 2 s, and so on up to every 16 s.
const FIRST: Duration = Duration::from_secs(1);
const DOUBLED: u32 = 4;
/// Number of announcements of the next epoch before it is used: 7 s.
const ANNOUNCED: u32 = 4;
/// Number of counters before their end at which the next epoch is announced.
const AHEAD: u64 = 1 << 20;

/// Parameters of a group.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// This site; `None`: receiver only.
    pub own: Option<SiteId>,
    /// Other sites.
    pub sites: Vec<SiteId>,
    /// Keys that all sites share.
    pub keys: Keys,
    /// Suite for bodies.
    pub suite: Suite,
    /// Digest of the channel parameters, which must be equal at all sites.
    pub digest: [u8; 8],
    /// Wall-clock time in seconds since 1970.
    pub wall_seconds: u64,
}

/// Reason why the parameters are invalid.
#[derive(Debug, Error)]
pub enum BadGroup {
    /// A short tag requires new keys after wrong tags, and thus answers.
    #[error("a tag of 4 octets is not possible in a group, which has no key exchange: use 8 or 16")]
    ShortTag,
    /// Two sites have the same number.
    #[error("site {} is listed twice", .0.number())]
    Twice(SiteId),
    /// An epoch cannot be read or stored.
    #[error("cannot read or store the epoch of site {}", site.number())]
    Store {
        /// Site of the epoch.
        site: SiteId,
        /// Reason of the failure.
        source: io::Error,
    },
    /// All epoch numbers have been used.
    #[error("site {} has used all epoch numbers", .0.number())]
    NoEpochs(SiteId),
}

/// Encrypted datagrams for all sites of a group.
pub struct Group {
    suite: Suite,
    digest: [u8; 8],
    instance: [u8; 8],
    keys: Keys,
    own: Option<OwnSite>,
    /// Other sites by number.
    others: Vec<Other>,
    store: Box<dyn EpochStore>,
    random: Box<dyn Random>,
    /// Time at which reserved counters of the other sites are adapted.
    adapt_at: Option<Instant>,
}

/// Sending state of this site.
struct OwnSite {
    site: SiteId,
    current: Started,
    /// Next epoch, which is being announced.
    next: Option<Started>,
    announce_at: Instant,
    doubled: u32,
}

/// An epoch of this site.
struct Started {
    epoch: u64,
    salt: [u8; 16],
    key: KeyId,
    announcing: Cipher,
    /// Number of announcements.
    announced: u32,
    sealer: Sealer,
}

/// Another site.
struct Other {
    site: SiteId,
    /// Highest epoch, as stored. Counters are accepted below its counter only.
    highest: Option<Epoch>,
    reservation: Reservation,
    instance: Option<[u8; 8]>,
    current: Option<AnnouncedEpoch>,
    /// Previous epoch of the same instance.
    previous: Option<AnnouncedEpoch>,
}

/// An announced epoch of another site.
struct AnnouncedEpoch {
    epoch: u64,
    salt: [u8; 16],
    key: KeyId,
    /// Number of its last announcement.
    announcement: u32,
    opener: Opener,
}

impl Group {
    /// Reads the epochs of all sites, stores that of this one, and draws its keys.
    pub fn new(
        now: Instant,
        config: GroupConfig,
        mut store: Box<dyn EpochStore>,
        mut random: Box<dyn Random>,
    ) -> Result<Self, BadGroup> {
        if config.suite.forgeries() < u64::MAX {
            return Err(BadGroup::ShortTag);
        }
        let mut sites = config.sites;
        sites.sort_unstable();
        let twice = sites.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        if let Some(site) = twice.or(config.own.filter(|own| sites.contains(own))) {
            return Err(BadGroup::Twice(site));
        }
        let mut others = Vec::with_capacity(sites.len());
        for site in sites {
            let highest = store.load(site).map_err(|source| BadGroup::Store { site, source })?;
            let reservation = Reservation::new();
            others.push(Other { site, highest, reservation, instance: None, current: None, previous: None });
        }
        let own = match config.own {
            None => None,
            Some(site) => {
                let kept = store.load(site).map_err(|source| BadGroup::Store { site, source })?;
                let after = kept.map_or(Some(0), |epoch| epoch.number.checked_add(1));
                let epoch = after.ok_or(BadGroup::NoEpochs(site))?.max(config.wall_seconds);
                let current =
                    Started::new(site, epoch, config.suite, config.keys.first(), &mut *store, &mut *random)
                        .map_err(|source| BadGroup::Store { site, source })?;
                Some(OwnSite { site, current, next: None, announce_at: now, doubled: 0 })
            }
        };
        let mut instance = [0; 8];
        random.fill(&mut instance);
        let (suite, digest, keys) = (config.suite, config.digest, config.keys);
        Ok(Self { suite, digest, instance, keys, own, others, store, random, adapt_at: None })
    }

    /// Replaces the keys by those that the key file contains now. The first one is used within seconds, after
    /// its announcement; datagrams encrypted with a removed key are rejected at once. Returns whether the keys
    /// differ.
    pub fn set_keys(&mut self, now: Instant, keys: &Keys) -> bool {
        if self.keys == *keys {
            return false;
        }
        // A removed key may come back. If that cannot be stored, more is reserved than needed.
        let _ = self.close();
        let known = |key: KeyId| keys.iter().any(|known| known.id() == key);
        for other in &mut self.others {
            other.current.take_if(|heard| !known(heard.key));
            other.previous.take_if(|heard| !known(heard.key));
        }
        self.keys = keys.clone();
        let first = self.keys.first().id();
        if self.own.as_ref().is_some_and(|own| own.newest().key != first) {
            self.begin_next(now);
        }
        true
    }

    /// Adapts reserved counters to the rates of the other sites.
    fn adapt(&mut self, now: Instant) {
        self.adapt_at = None;
        for other in &mut self.others {
            let Some((next, reserved)) = other.progress() else { continue };
            let (lower, is_heard) = other.reservation.adapt(next, reserved);
            if is_heard {
                self.adapt_at = Some(now + ADAPT);
            }
            // If it cannot be stored, more stays reserved than needed.
            let _ = lower.map(|lower| other.reserve(lower, &mut *self.store));
        }
    }

    /// Stores the progress of the other sites. Call it at the end; otherwise their next datagrams, of about 2 s, are
    /// rejected after the next start.
    pub fn close(&mut self) -> io::Result<()> {
        self.adapt_at = None;
        let mut result = Ok(());
        for other in &mut self.others {
            if let Some((next, reserved)) = other.progress()
                && next != reserved
            {
                result = result.and(other.reserve(next, &mut *self.store));
            }
        }
        result
    }

    pub(super) fn around(&self) -> Around {
        Around::group(self.suite)
    }

    /// Id of the key for announcements of this site.
    pub(super) fn key(&self) -> KeyId {
        self.keys.first().id()
    }

    /// Begins the next epoch: it is announced now, and used after a few announcements.
    fn begin_next(&mut self, now: Instant) {
        let Some(own) = &mut self.own else { return };
        let Some(epoch) = own.newest().epoch.checked_add(1) else { return };
        let key = self.keys.first();
        let next = Started::new(own.site, epoch, self.suite, key, &mut *self.store, &mut *self.random);
        // An epoch that cannot be stored is not used. The current keys last a while longer, and storing is
        // tried again.
        if let Ok(next) = next {
            own.next = Some(next);
            own.doubled = 0;
            own.announce_at = now;
        }
    }

    pub(super) fn seal(
        &mut self,
        to: Destination,
        flags: BodyFlags,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        if to != Destination::Everybody {
            return Err(NotSealed::NoDestination);
        }
        let own = self.own.as_mut().ok_or(NotSealed::OnlyHears)?;
        let whose = Whose::Site(own.site, own.current.epoch as u8);
        own.current.sealer.seal(whose, flags, body, out)
    }

    pub(super) fn note_sealed(&mut self, units: u32) {
        if let Some(own) = &mut self.own {
            own.current.sealer.note_units(units);
        }
    }

    pub(super) fn note_opened(&mut self, from: Sender, units: u32) {
        if let Sender::Site(site) = from
            && let Ok(number) = self.other(site)
            && let Some(current) = &mut self.others[number].current
        {
            current.opener.note_units(units);
        }
    }

    pub(super) fn open<'d>(&mut self, now: Instant, datagram: &'d mut [u8]) -> Opened<'d> {
        match datagram.first().map(|first| DatagramKind::of(*first)) {
            Some(Some(DatagramKind::Group)) => {}
            Some(Some(DatagramKind::Announcement)) => return self.announcement(now, datagram),
            _ => return Opened::Refused(Refused::Malformed),
        }
        let Some((header, length)) = ClearHeader::read(datagram, true) else {
            return Opened::Refused(Refused::Malformed);
        };
        let Whose::Site(site, epoch) = header.whose else { return Opened::Refused(Refused::Malformed) };
        // Empty bodies are not used in a group.
        if datagram.len() <= length + self.suite.tag() {
            return Opened::Refused(Refused::Malformed);
        }
        let number = match self.other(site) {
            Ok(number) => number,
            Err(refused) => return Opened::Refused(refused),
        };
        let other = &mut self.others[number];
        let is_of = |heard: &AnnouncedEpoch| heard.epoch as u8 & 0b11 == epoch;
        let (heard, is_current) = match (&mut other.current, &mut other.previous) {
            (Some(current), _) if is_of(current) => (current, true),
            (_, Some(previous)) if is_of(previous) => (previous, false),
            _ => return Opened::Refused(Refused::NotAnnounced(site)),
        };
        match heard.opener.open(&header, length, datagram) {
            Err(refused) => Opened::Refused(refused),
            Ok(plain) => {
                if is_current && other.extend(now, &mut *self.store).is_err() {
                    return Opened::Refused(Refused::NotKept(site));
                }
                self.adapt_at.get_or_insert(now + ADAPT);
                Opened::Body {
                    from: Sender::Site(site),
                    flags: header.flags,
                    body: &datagram[plain.body],
                    newest: plain.newest,
                    missing: if is_current { plain.missing } else { Missing::Uncounted },
                    session: None,
                }
            }
        }
    }

    fn other(&self, site: SiteId) -> Result<usize, Refused> {
        if self.own.as_ref().is_some_and(|own| own.site == site) {
            return Err(Refused::Reflected);
        }
        self.others.binary_search_by_key(&site, |other| other.site).map_err(|_| Refused::Unknown)
    }

    fn announcement(&mut self, now: Instant, datagram: &[u8]) -> Opened<'static> {
        match self.announced(now, datagram) {
            Err(refused) => Opened::Refused(refused),
            Ok((_, None)) => Opened::Handled,
            Ok((site, Some(session))) => Opened::Session { from: Sender::Site(site), session },
        }
    }

    fn announced(&mut self, now: Instant, datagram: &[u8]) -> Result<(SiteId, Option<NewSession>), Refused> {
        let clear = Clear::read(datagram).ok_or(Refused::Malformed)?;
        let site = clear.site;
        let number = self.other(site)?;
        let other = &mut self.others[number];
        let of = Some(Sender::Site(clear.site));
        let unknown = Refused::UnknownKey { key: clear.key, of };
        let key = self.keys.iter().find(|key| key.id() == clear.key).ok_or(unknown)?;
        let known = other.current.as_ref().filter(|heard| heard.salt == clear.salt);
        if known.is_some_and(|heard| clear.number <= heard.announcement) {
            return Err(Refused::Replayed);
        }
        let said = Announcement::open(&clear, key, datagram).ok_or(Refused::Forged)?;
        if said.suite != self.suite.number() {
            return Err(Refused::OtherSuite(Sender::Site(site)));
        }
        if said.digest != self.digest {
            return Err(Refused::OtherParameters(Sender::Site(site)));
        }
        let mut floor = said.counter;
        match other.highest {
            Some(highest) if said.epoch < highest.number => return Err(Refused::StaleEpoch(site)),
            Some(highest) if said.epoch == highest.number => {
                if clear.salt != highest.salt {
                    return Err(Refused::OtherSalt(site));
                }
                if let Some(heard) = &mut other.current {
                    heard.announcement = clear.number;
                    // Counters that are too late for the window anyway. After a long loss the window moves to
                    // the counter of the sender.
                    heard.opener.raise(said.counter.saturating_sub(WINDOW));
                    return Ok((site, None));
                }
                floor = floor.max(highest.counter);
            }
            Some(_) | None => {
                let highest = Epoch { number: said.epoch, salt: clear.salt, counter: said.counter };
                self.store.store(site, &highest).map_err(|_| Refused::NotKept(site))?;
                other.highest = Some(highest);
            }
        }
        let cipher = traffic(self.suite, key, site, &clear.salt, said.epoch);
        let heard = AnnouncedEpoch {
            epoch: said.epoch,
            salt: clear.salt,
            key: clear.key,
            announcement: clear.number,
            opener: Opener::new(cipher, self.suite.forgeries(), floor),
        };
        let same = other.instance == Some(said.instance);
        let restarted = other.instance.is_some() && !same;
        other.instance = Some(said.instance);
        let last = other.current.replace(heard);
        other.previous = last.filter(|_| same);
        if !same {
            self.hurry(now);
        }
        Ok((site, Some(NewSession { restarted })))
    }

    /// Announces our keys soon, since a site has started. A random delay spreads the announcements.
    fn hurry(&mut self, now: Instant) {
        if let Some(own) = &mut self.own {
            let mut share = [0];
            self.random.fill(&mut share);
            let soon = now + Duration::from_millis(100) + Duration::from_millis(4) * u32::from(share[0]);
            own.announce_at = own.announce_at.min(soon);
        }
    }

    pub(super) fn poll(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        if self.adapt_at.is_some_and(|at| at <= now) {
            self.adapt(now);
        }
        let Some(own) = &mut self.own else { return false };
        let is_old =
            own.current.sealer.counter() >= NEW_KEYS_AT - AHEAD || own.current.key != self.keys.first().id();
        if own.next.is_none() && is_old && own.announce_at <= now {
            self.begin_next(now);
        }
        let Some(own) = &mut self.own else { return false };
        if own.announce_at > now {
            return false;
        }
        own.announce_at = now + FIRST * (1 << own.doubled);
        own.doubled = (own.doubled + 1).min(DOUBLED);
        if let Some(next) = own.next.take_if(|next| next.announced >= ANNOUNCED) {
            own.current = next;
        }
        let started = own.next.as_mut().unwrap_or(&mut own.current);
        let Some(number) = started.announced.checked_add(1) else { return false };
        started.announced = number;
        let clear = Clear { site: own.site, key: started.key, salt: started.salt, number };
        let said = Announcement {
            epoch: started.epoch,
            counter: started.sealer.counter(),
            instance: self.instance,
            digest: self.digest,
            suite: self.suite.number(),
        };
        said.seal(&clear, &started.announcing, out);
        true
    }

    pub(super) fn poll_at(&self) -> Option<Instant> {
        let announce = self.own.as_ref().map(|own| own.announce_at);
        match (announce, self.adapt_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

impl Other {
    /// Next counter of the current epoch, and the one below which counters are reserved.
    fn progress(&self) -> Option<(u64, u64)> {
        Some((self.current.as_ref()?.opener.next(), self.highest.as_ref()?.counter))
    }

    /// Reserves further counters, if the accepted ones exceed those on disk.
    fn extend(&mut self, now: Instant, store: &mut dyn EpochStore) -> io::Result<()> {
        let Some((next, reserved)) = self.progress() else { return Ok(()) };
        match self.reservation.extend(now, next, reserved) {
            Some(bound) => self.reserve(bound, store),
            None => Ok(()),
        }
    }

    fn reserve(&mut self, bound: u64, store: &mut dyn EpochStore) -> io::Result<()> {
        if let Some(highest) = &mut self.highest {
            let reserved = Epoch { counter: bound, ..*highest };
            store.store(self.site, &reserved)?;
            *highest = reserved;
        }
        Ok(())
    }
}

impl OwnSite {
    fn newest(&self) -> &Started {
        self.next.as_ref().unwrap_or(&self.current)
    }
}

impl Started {
    /// Stores the epoch, then draws a salt.
    fn new(
        site: SiteId,
        epoch: u64,
        suite: Suite,
        key: &Key,
        store: &mut dyn EpochStore,
        random: &mut dyn Random,
    ) -> io::Result<Self> {
        let mut salt = [0; 16];
        random.fill(&mut salt);
        store.store(site, &Epoch { number: epoch, salt, counter: 0 })?;
        let sealer = Sealer::of_group(traffic(suite, key, site, &salt, epoch));
        let announcing = Clear::cipher(key, site, &salt);
        Ok(Self { epoch, salt, key: key.id(), announcing, announced: 0, sealer })
    }
}

/// Returns the cipher for bodies of a site in an epoch.
fn traffic(suite: Suite, key: &Key, site: SiteId, salt: &[u8; 16], epoch: u64) -> Cipher {
    let label: [&[u8]; 3] = [b"thinair 1 group traffic", &[site.number()], &epoch.to_be_bytes()];
    Cipher::derive(suite, salt, key.octets(), &label)
}
