//! Received messages of a handshake: a request, its answer, or a cookie instead of the answer.

use std::net::SocketAddr;

use sha2::{Digest, Sha256};
use thinair_wire::time::Instant;

use super::backlog::KeptRequest;
use super::peer::PeerState;
use super::{ANSWERS, PendingAnswer, TURN, TwoWay, session};
use crate::handshake::{EndIdentity, MAC, OpenedRequest, RequestHeader, is_unproved};
use crate::header::Index;
use crate::{AddressPair, Key, KeyId, Opened, Refused, Sender, cookie};

impl TwoWay {
    /// Processes message 1 of a handshake, with a shared key or with public ones.
    pub(super) fn request(
        &mut self,
        now: Instant,
        from: Option<AddressPair>,
        datagram: &[u8],
    ) -> Opened<'static> {
        let Some(header) = RequestHeader::read(datagram) else { return Opened::Refused(Refused::Malformed) };
        match self.answer_request(now, from, &header, datagram) {
            Ok(()) => Opened::Handled,
            Err(refused) => Opened::Refused(refused),
        }
    }

    fn answer_request(
        &mut self,
        now: Instant,
        from: Option<AddressPair>,
        header: &RequestHeader,
        datagram: &[u8],
    ) -> Result<(), Refused> {
        let (gate, is_proved) = self.gate(from, header, datagram)?;
        let is_paid = !is_proved && self.jar.paid(now, peer_of(from), datagram, &mut *self.random);
        // Those of earlier versions, which have no public keys, prove nothing.
        let is_unproved = header.key.is_some() && is_unproved(datagram);
        if !is_proved && !is_paid && !is_unproved {
            return Err(Refused::Forged);
        }
        let is_loaded = !is_paid && !self.load.bear(now, peer_of(from));
        if is_loaded && is_unproved {
            return Err(Refused::Forged);
        }
        let hash = || Sha256::digest(&datagram[..datagram.len() - MAC]).into();
        if is_loaded && header.key.is_none() {
            // Before any curve operation. The destination is the address itself.
            let mut octets = Vec::with_capacity(datagram.len());
            let to = (header.index, &hash());
            self.jar.reply(now, peer_of(from), &gate, to, &mut *self.random, &mut octets);
            return self.reply(0, from, octets);
        }
        let request =
            KeptRequest { from, header: *header, gate, is_paid, is_loaded, datagram: datagram.to_vec() };
        if self.answers.len() >= TURN || !self.backlog.is_empty() {
            self.backlog.keep(request);
            return Ok(());
        }
        self.agree_on_keys(now, &request)
    }

    /// Answers waiting requests, as many as the turn permits.
    pub(super) fn answer_waiting(&mut self, now: Instant) {
        while self.turn > 0
            && self.answers.is_empty()
            && let Some(request) = self.backlog.take()
        {
            self.turn -= 1;
            // A refusal has no consequences.
            let _ = self.agree_on_keys(now, &request);
        }
    }

    /// Decrypts a request, and answers it.
    fn agree_on_keys(&mut self, now: Instant, request: &KeptRequest) -> Result<(), Refused> {
        let KeptRequest { from, header, gate, is_paid, is_loaded, datagram } = request;
        let (from, is_paid, is_loaded) = (*from, *is_paid, *is_loaded);
        let hash = || Sha256::digest(&datagram[..datagram.len() - MAC]).into();
        let (mut request, number, key) = self.open_request(from, header, gate, datagram)?;
        let theirs = request.theirs;
        let peer = &mut self.peers[number];
        if !peer.is_fresh(&theirs, request.number) {
            return Err(Refused::Replayed);
        }
        if let Some(public) =
            peer.keys.iter().filter(|known| known.id == key).find_map(|known| known.public.as_ref())
        {
            request.set_psk(public);
        }
        let mut octets = Vec::with_capacity(datagram.len());
        if !is_paid && (is_loaded || peer.is_waiting_for_another(now, &theirs)) {
            let to = (header.index, &hash());
            self.jar.reply(now, peer_of(from), gate, to, &mut *self.random, &mut octets);
            return self.reply(number, from, octets);
        }
        // A peer with other parameters receives ours, so that both ends can report the difference. No session
        // is created.
        let agreed = self.agree(&theirs, number);
        let index = match agreed {
            Err(_) => Index::Short(0),
            Ok(_) => {
                self.peers[number].drop_next();
                let Some(index) = self.free_index(theirs.takes_long) else { return Ok(()) };
                self.indices.assign(index, number, &self.peers);
                index
            }
        };
        let suite = agreed.unwrap_or(self.suite);
        let request_number = request.number;
        let ours = EndIdentity { suite: suite.number(), ..self.ours };
        let shared = request.answer(&ours, header.index, index, &mut octets).ok_or(Refused::Forged)?;
        self.reply(number, from, octets)?;
        agreed?;
        let session = session::Session::new(now, suite, &shared, false, (index, header.index), key, &theirs);
        let peer = &mut self.peers[number];
        peer.asked(now, session, request_number);
        self.schedule.by(number, peer.timers.first());
        Ok(())
    }

    /// Returns the key of a request's cookie, which an initiator has before a handshake, and whether the request proves it:
    /// the shared key, or the public key of this end in its place.
    fn gate(
        &self,
        from: Option<AddressPair>,
        header: &RequestHeader,
        datagram: &[u8],
    ) -> Result<(Key, bool), Refused> {
        let of = || self.who_may(peer_of(from)).map(Sender::Peer);
        let Some(id) = header.key else {
            let own = self.known.own.as_ref().ok_or_else(|| Refused::OtherMode { public: true, of: of() })?;
            return Ok((own.gate.clone(), own.proof.proves(datagram)));
        };
        if !self.known.has_shared() {
            return Err(Refused::OtherMode { public: false, of: of() });
        }
        let first = self.known.sharing(id).next().and_then(|number| self.peers.get(number));
        let key = first.and_then(|peer| peer.keys.iter().find(|key| key.public.is_none() && key.id == id));
        let key = key.ok_or_else(|| Refused::UnknownKey { key: id, of: of() })?;
        Ok((key.key.clone(), key.proof.proves(datagram)))
    }

    /// Decrypts a request. Returns its peer, and the id of the key that both have.
    fn open_request(
        &mut self,
        from: Option<AddressPair>,
        header: &RequestHeader,
        gate: &Key,
        datagram: &[u8],
    ) -> Result<(OpenedRequest, usize, KeyId), Refused> {
        let reflected =
            |request: &OpenedRequest, ours: &EndIdentity| request.theirs.instance == ours.instance;
        if let Some(key) = header.key {
            let request = OpenedRequest::open(gate, datagram, &mut *self.random).ok_or(Refused::Forged)?;
            if reflected(&request, &self.ours) {
                return Err(Refused::Reflected);
            }
            let number = self.who(peer_of(from), key, &request.theirs).ok_or(Refused::Ambiguous)?;
            return Ok((request, number, key));
        }
        let own = self.known.own.as_ref().ok_or(Refused::Unknown)?;
        let opened = OpenedRequest::open_public(&own.private, datagram, &mut *self.random);
        let (theirs, request) = opened.ok_or(Refused::Forged)?;
        if reflected(&request, &self.ours) {
            return Err(Refused::Reflected);
        }
        let number = self.known.peer(&theirs).ok_or(Refused::UnknownPublicKey(theirs))?;
        let key = self.peers[number].keys.iter().find(|key| key.public.is_some()).ok_or(Refused::Unknown)?.id;
        Ok((request, number, key))
    }

    /// Puts an answer into the queue, if there is room.
    fn reply(&mut self, peer: usize, to: Option<AddressPair>, octets: Vec<u8>) -> Result<(), Refused> {
        if self.answers.len() < ANSWERS {
            self.answers.push_back(PendingAnswer { peer, to, octets });
        }
        Ok(())
    }

    /// Returns the peer that has the key of a request. Of several, the one with the known instance; then the
    /// one with the address; finally the one without a configured address.
    fn who(&self, from: Option<SocketAddr>, key: KeyId, theirs: &EndIdentity) -> Option<usize> {
        let peers = || self.known.sharing(key).filter_map(|number| Some((number, self.peers.get(number)?)));
        let only = |test: &dyn Fn(&PeerState) -> bool| {
            let mut fitting = peers().filter(|(_, peer)| test(peer));
            let first = fitting.next()?;
            fitting.next().is_none().then_some(first.0)
        };
        let ip = |address: Option<SocketAddr>| address.map(|address| address.ip());
        only(&|_| true)
            .or_else(|| only(&|peer| peer.is_instance(&theirs.instance)))
            .or_else(|| only(&|peer| from.is_some() && (peer.address == from || peer.home == from)))
            .or_else(|| only(&|peer| from.is_some() && ip(peer.home) == ip(from)))
            .or_else(|| only(&|peer| peer.home.is_none()))
    }

    /// Processes message 2 of a handshake.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        from: Option<AddressPair>,
        datagram: &[u8],
    ) -> Opened<'static> {
        let Some(number) = self.asked_by(datagram) else {
            let index = Index::of_handshake(datagram);
            let owner = index.and_then(|index| self.indices.owner(index));
            if let Some(peer) = owner.and_then(|number| self.peers.get_mut(number)) {
                peer.answered_late(now, datagram);
            }
            return Opened::Refused(Refused::Unasked);
        };
        let peer = &mut self.peers[number];
        let Some(pending) = &mut peer.pending else { return Opened::Refused(Refused::Unasked) };
        let Some((theirs, index, shared)) = pending.initiation.finish(datagram) else {
            peer.answered_late(now, datagram);
            return Opened::Refused(Refused::Forged);
        };
        if theirs.instance == self.ours.instance {
            return Opened::Refused(Refused::Reflected);
        }
        let indices = (pending.index, index);
        let key = pending.key.id;
        let suite = match self.agree(&theirs, number) {
            Ok(suite) => suite,
            Err(refused) => {
                self.peers[number].give_up();
                return Opened::Refused(refused);
            }
        };
        let peer = &mut self.peers[number];
        let session = session::Session::new(now, suite, &shared, true, indices, key, &theirs);
        let before = peer.pair();
        let session = peer.answered(now, from, session);
        self.moves += u64::from(peer.pair() != before);
        self.schedule.by(number, peer.timers.first());
        match session {
            Some(session) => Opened::Session { from: Sender::Peer(number), session },
            None => Opened::Handled,
        }
    }

    /// Processes a cookie instead of message 2.
    pub(super) fn cookie(&mut self, now: Instant, datagram: &[u8]) -> Opened<'static> {
        let Some(number) = self.asked_by(datagram) else { return Opened::Refused(Refused::Unasked) };
        let peer = &mut self.peers[number];
        let Some(pending) = &mut peer.pending else { return Opened::Refused(Refused::Unasked) };
        let Some(cookie) = cookie::open(&pending.key.key, &pending.initiation.hash, datagram) else {
            return Opened::Refused(Refused::Forged);
        };
        peer.given(now, cookie);
        self.schedule.by(number, peer.timers.first());
        Opened::Handled
    }

    /// Returns the peer whose request `datagram` answers, by the index in it.
    fn asked_by(&self, datagram: &[u8]) -> Option<usize> {
        let index = Index::of_handshake(datagram)?;
        let number = self.indices.owner(index)?;
        let pending = self.peers.get(number)?.pending.as_ref()?;
        (pending.index == index).then_some(number)
    }
}

fn peer_of(from: Option<AddressPair>) -> Option<SocketAddr> {
    from.map(|from| from.peer)
}
