//! Received messages of a handshake: a request, its answer, or a cookie instead of the answer.

use std::net::SocketAddr;

use sha2::{Digest, Sha256};
use thinair_wire::time::Instant;

use super::peer::{PeerState, SESSIONS};
use super::{ANSWERS, PendingAnswer, TwoWay, session, timers};
use crate::addresses::AddressPair;
use crate::seal::cookie;
use crate::seal::handshake::{EndIdentity, MAC, OpenedRequest, RequestHeader, is_unproved};
use crate::seal::{Opened, Refused, Sender};

impl TwoWay {
    /// Processes message 1 of a handshake.
    pub(super) fn request(
        &mut self,
        now: Instant,
        from: Option<AddressPair>,
        datagram: &[u8],
    ) -> Opened<'static> {
        let Some(header) = RequestHeader::read(datagram) else { return Opened::Refused(Refused::Malformed) };
        let keys = self.peers.iter().flat_map(|peer| &peer.keys);
        let Some(key) = keys.into_iter().find(|key| key.id == header.key) else {
            let of = self.who_may(peer_of(from)).map(Sender::Peer);
            return Opened::Refused(Refused::UnknownKey { key: header.key, of });
        };
        let is_proved = key.proof.proves(datagram);
        let key = key.key.clone();
        let is_paid = !is_proved && self.jar.paid(now, peer_of(from), datagram, &mut *self.random);
        if !is_proved && !is_paid && !is_unproved(datagram) {
            return Opened::Refused(Refused::Forged);
        }
        let is_loaded = !is_paid && !self.load.bear(now, peer_of(from));
        // Those of earlier versions prove nothing before they are decrypted.
        if is_loaded && !is_proved {
            return Opened::Refused(Refused::Forged);
        }
        let Some(request) = OpenedRequest::open(&key, datagram, &mut *self.random) else {
            return Opened::Refused(Refused::Forged);
        };
        let theirs = request.theirs;
        if theirs.instance == self.ours.instance {
            return Opened::Refused(Refused::Reflected);
        }
        let Some(number) = self.who(peer_of(from), &header, &theirs) else {
            return Opened::Refused(Refused::Ambiguous);
        };
        let peer = &mut self.peers[number];
        if !peer.is_fresh(&theirs, request.number) {
            return Opened::Refused(Refused::Replayed);
        }
        if self.answers.len() >= ANSWERS {
            return Opened::Handled;
        }
        let mut octets = Vec::with_capacity(datagram.len());
        if !is_paid && (is_loaded || peer.is_waiting_for_another(now, &theirs)) {
            let hash = Sha256::digest(&datagram[..datagram.len() - MAC]).into();
            let to = (header.index, &hash);
            self.jar.reply(now, peer_of(from), &key, to, &mut *self.random, &mut octets);
            self.answers.push_back(PendingAnswer { peer: number, to: from, octets });
            return Opened::Handled;
        }
        // A peer with other parameters receives ours, so that both ends can report the difference. No session
        // is created.
        let agreed = self.agree(&theirs, number);
        let index = if agreed.is_err() { 0 } else { self.peers[number].index_for_next() };
        let suite = agreed.unwrap_or(self.suite);
        let request_number = request.number;
        let Some(shared) = request.answer(
            &EndIdentity { suite: suite.number(), ..self.ours },
            header.index,
            index,
            &mut octets,
        ) else {
            return Opened::Refused(Refused::Forged);
        };
        self.answers.push_back(PendingAnswer { peer: number, to: from, octets });
        if let Err(refused) = agreed {
            return Opened::Refused(refused);
        }
        let session =
            session::Session::new(now, suite, &shared, false, (index, header.index), header.key, &theirs);
        let peer = &mut self.peers[number];
        peer.asked(now, session, request_number);
        self.due = timers::earlier(self.due, peer.timers.first());
        Opened::Handled
    }

    /// Returns the peer that has the key of a request. Of several, the one with the known instance; then the
    /// one with the address; finally the one without a configured address.
    fn who(&self, from: Option<SocketAddr>, header: &RequestHeader, theirs: &EndIdentity) -> Option<usize> {
        let peers = || {
            let all = self.peers.iter().enumerate();
            all.filter(|(_, peer)| peer.keys.iter().any(|key| key.id == header.key))
        };
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
            if let Some(peer) =
                datagram.get(1).and_then(|index| self.peers.get_mut(usize::from(index / SESSIONS)))
            {
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
        self.due = timers::earlier(self.due, peer.timers.first());
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
        self.due = timers::earlier(self.due, peer.timers.first());
        Opened::Handled
    }

    /// Returns the peer whose request `datagram` answers, by the index in it.
    fn asked_by(&self, datagram: &[u8]) -> Option<usize> {
        let index = *datagram.get(1)?;
        let number = usize::from(index / SESSIONS);
        let pending = self.peers.get(number)?.pending.as_ref()?;
        (pending.index == index).then_some(number)
    }
}

fn peer_of(from: Option<AddressPair>) -> Option<SocketAddr> {
    from.map(|from| from.peer)
}
