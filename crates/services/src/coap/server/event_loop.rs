//! Event loop of the server: timers, input, output.

use std::time::Duration;

use thinair_coap::{Endpoint, Event, Observe, Received, RequestId, Response};
use thinair_os::{Signal, clock};
use thinair_wire::time::Instant;

use super::resource::{Moment, ResourceAnswer};
use super::secure::SecureSessions;
use super::streams::{CONNECTIONS, LISTENERS, ReadResult, ServerStreams};
use super::{Due, ResourceServer, ServerError, ServerStatistics};
use crate::coap::CoapPeer;

/// Token of signals.
pub(super) const SIGNALS: u64 = u64::MAX - 1;

/// Interval of checks of observed resources and slow connections.
const TICK: Duration = Duration::from_millis(250);

/// Time limit of the release of streams when the server ends.
const FAREWELL: Duration = Duration::from_millis(500);

impl ResourceServer {
    /// Serves until a signal asks it to end; then releases streams.
    ///
    /// # Errors
    /// The system cannot wait any more.
    pub fn run(&mut self) -> Result<(), ServerError> {
        let mut ready = Vec::new();
        loop {
            let secure = self.secure.as_ref().and_then(SecureSessions::poll_timeout);
            let until = [self.endpoint.poll_timeout(), self.first_due(), self.tick, secure];
            self.events.wait(until.into_iter().flatten().min(), &mut ready)?;
            let at = moment();
            for &token in &ready {
                match token {
                    SIGNALS => {
                        while let Some(signal) = self.signals.poll() {
                            if matches!(signal, Signal::End { .. }) {
                                return self.end();
                            }
                        }
                    }
                    number if number >= CONNECTIONS => self.stream(at, number - CONNECTIONS)?,
                    listener if listener >= LISTENERS => self.accept(at, (listener - LISTENERS) as usize)?,
                    socket => self.socket(at, socket as usize)?,
                }
            }
            self.do_due(at);
            self.flush(at)?;
        }
    }

    fn first_due(&self) -> Option<Instant> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Processes a batch of datagrams.
    fn socket(&mut self, at: Moment, socket: usize) -> Result<(), ServerError> {
        debug_assert!(socket < self.datagrams.len());
        if self.datagrams.is_full(socket) {
            // It has room again.
            return self.datagrams.send(&self.events, &mut self.statistics);
        }
        let Some(received) = self.datagrams.receive(socket, &mut self.statistics) else { return Ok(()) };
        // Requests to groups are not supported: they must not be acknowledged or rejected. RFC 7252, sections 8.1 and 8.2.
        for (datagram, from, own) in received.iter_with_own() {
            let Some(address) = from else { continue };
            let peer = CoapPeer::Udp { socket: self.datagrams.place(socket, own), address };
            if self.datagrams.is_secure(socket) {
                self.secure_datagram(at, peer, datagram);
                continue;
            }
            match self.endpoint.handle_datagram(at.now, peer, datagram) {
                Some(Event::Request { id, peer, observe, message }) => {
                    self.request(at, id, peer, observe, &message);
                }
                Some(event) => self.event(at, event),
                None => {}
            }
        }
        self.datagrams.give_back(received);
        self.flush(at)
    }

    fn accept(&mut self, at: Moment, listener: usize) -> Result<(), ServerError> {
        let (new, old) = self.streams.accept(at.now, listener, &self.events, &mut self.statistics)?;
        for number in old {
            self.hang_up(at, number);
        }
        for number in new {
            if !self.endpoint.connected(at.now, CoapPeer::Tcp(number)) {
                self.streams.remove(number);
            }
        }
        Ok(())
    }

    /// Processes input of a stream, or room for output.
    fn stream(&mut self, at: Moment, number: u64) -> Result<(), ServerError> {
        if !self.streams.write(at.now, number, &self.events)? {
            self.hang_up(at, number);
            return Ok(());
        }
        let read = match self.streams.read(number) {
            ReadResult::Octets(octets) => octets,
            ReadResult::Nothing => return Ok(()),
            ReadResult::End => {
                // Answers that wait may still be read.
                self.streams.close(number);
                if !self.streams.write(at.now, number, &self.events)? {
                    self.hang_up(at, number);
                }
                return Ok(());
            }
        };
        let peer = CoapPeer::Tcp(number);
        let mut octets = &read[..];
        while !octets.is_empty() {
            if let Some(event) = self.endpoint.handle_stream(at.now, peer, &mut octets) {
                self.streams.message(at.now, number);
                match event {
                    Event::Request { id, peer, observe, message } => {
                        self.request(at, id, peer, observe, &message);
                    }
                    event => self.event(at, event),
                }
            }
            self.flush(at)?;
            if self.streams.is_full(number) && !octets.is_empty() {
                // Without room for answers, the rest waits until the other side reads.
                self.streams.keep(number, octets);
                return Ok(());
            }
        }
        let within = self.endpoint.is_within_message(&peer);
        self.streams.handled(at.now, number, within);
        Ok(())
    }

    /// Removes a connection that has ended.
    fn hang_up(&mut self, at: Moment, number: u64) {
        self.streams.remove(number);
        self.endpoint.disconnected(at.now, CoapPeer::Tcp(number));
        self.due.retain(|_, due| due.peer != CoapPeer::Tcp(number));
    }

    /// Passes a request to its resource, and answers.
    pub(super) fn request(
        &mut self,
        at: Moment,
        id: RequestId,
        peer: CoapPeer,
        observe: Option<Observe>,
        message: &Received<'_>,
    ) {
        self.statistics.requests += 1;
        let session = match peer {
            CoapPeer::Dtls(session) => self.secure.as_ref().and_then(|secure| secure.rights(session)),
            CoapPeer::Udp { .. } | CoapPeer::Tcp(_) => None,
        };
        if let Some(refusal) = self.guard.refusal(self.endpoint.context_of(id), session, message) {
            note(&self.streams, self.secure.as_ref(), peer, message, &refusal);
            respond(&mut self.endpoint, &mut self.statistics, at, id, &refusal);
            return;
        }
        let state = match observe {
            Some(Observe::Register) => self.site.state(at, message),
            Some(Observe::Deregister) | None => None,
        };
        let (resource, answer) = self.site.handle(at, message);
        match answer {
            ResourceAnswer::Now(response) => {
                if let Some(state) = state {
                    self.watches.register(at, &mut self.endpoint, id, message, state, &response);
                }
                note(&self.streams, self.secure.as_ref(), peer, message, &response);
                respond(&mut self.endpoint, &mut self.statistics, at, id, &response);
            }
            ResourceAnswer::After(delay, response) => {
                note(&self.streams, self.secure.as_ref(), peer, message, &response);
                self.dues += 1;
                self.due.insert((at.now + delay, self.dues), Due { peer, id, response });
            }
            ResourceAnswer::End(response, last) => {
                note(&self.streams, self.secure.as_ref(), peer, message, &response);
                respond(&mut self.endpoint, &mut self.statistics, at, id, &response);
                self.watches.end(at, &mut self.endpoint, message, &last);
            }
            ResourceAnswer::Forget(response) => {
                note(&self.streams, self.secure.as_ref(), peer, message, &response);
                respond(&mut self.endpoint, &mut self.statistics, at, id, &response);
                if let Some(resource) = resource {
                    self.watches.forget(&mut self.endpoint, resource);
                }
            }
        }
        if !thinair_coap::code::is_safe(message.code) && !self.watches.is_empty() {
            self.look(at);
        }
    }

    fn look(&mut self, at: Moment) {
        self.watches.look(at, &mut self.endpoint, &mut self.site, &mut self.statistics);
    }

    /// Processes an event other than a request.
    pub(super) fn event(&mut self, at: Moment, event: Event<'_, CoapPeer>) {
        match event {
            Event::ObserverGone { observer, .. } => self.watches.remove(observer),
            Event::NotDelivered { .. } => self.statistics.not_delivered += 1,
            Event::StreamReady { peer: CoapPeer::Tcp(number), .. } => self.streams.ready(number),
            Event::Closed { peer: CoapPeer::Tcp(number), reason } => {
                tracing::debug!(connection = number, ?reason, "a stream has ended");
                self.streams.close(number);
            }
            Event::Released { peer } => {
                // Delayed responses are due immediately: their receiver is gone.
                let of_peer = self.due.iter().filter(|(_, due)| due.peer == peer);
                let keys: Vec<_> = of_peer.map(|(key, _)| *key).collect();
                for due in keys.iter().filter_map(|key| self.due.remove(key)) {
                    respond(&mut self.endpoint, &mut self.statistics, at, due.id, &due.response);
                }
                if let CoapPeer::Tcp(number) = peer {
                    self.streams.close(number);
                }
            }
            _ => {}
        }
    }

    /// Sends delayed responses that are due.
    fn do_due(&mut self, at: Moment) {
        if self.endpoint.poll_timeout().is_some_and(|timeout| timeout <= at.now) {
            self.endpoint.handle_timeout(at.now);
        }
        self.secure_timeout(at);
        while self.first_due().is_some_and(|due| due <= at.now) {
            let Some((_, due)) = self.due.pop_first() else { break };
            respond(&mut self.endpoint, &mut self.statistics, at, due.id, &due.response);
        }
        if self.tick.is_some_and(|tick| tick <= at.now) {
            self.tick = None;
            self.look(at);
            for number in self.streams.too_slow(at.now, &self.events).unwrap_or_default() {
                self.statistics.too_slow += 1;
                self.hang_up(at, number);
            }
        }
        if self.tick.is_none() && (!self.watches.is_empty() || self.streams.is_timed()) {
            self.tick = Some(at.now + TICK);
        }
    }

    /// Sends waiting messages.
    fn flush(&mut self, at: Moment) -> Result<(), ServerError> {
        while let Some(event) = self.endpoint.poll_event() {
            self.event(at, event);
        }
        let mut wrote_streams = false;
        while let Some(transmit) = self.endpoint.poll_transmit(at.now, &mut self.buffer) {
            let octets = self.buffer.get(..transmit.len).unwrap_or_default();
            match transmit.peer {
                CoapPeer::Udp { socket, address } => self.datagrams.push(socket, address, octets),
                CoapPeer::Dtls(session) => {
                    let sealed = self.secure.as_mut().and_then(|secure| secure.seal(session, octets));
                    if let Some((CoapPeer::Udp { socket, address }, datagram)) = sealed {
                        self.datagrams.push(socket, address, datagram);
                    }
                }
                CoapPeer::Tcp(number) => {
                    self.streams.push(number, octets);
                    wrote_streams = true;
                }
            }
        }
        while let Some((peer, datagram)) = self.secure.as_mut().and_then(|secure| secure.poll(at.now)) {
            if let CoapPeer::Udp { socket, address } = peer {
                self.datagrams.push(socket, address, datagram);
            }
        }
        self.datagrams.send(&self.events, &mut self.statistics)?;
        if wrote_streams || self.streams.has_closing() {
            for number in self.streams.busy() {
                if !self.streams.write(at.now, number, &self.events)? {
                    self.hang_up(at, number);
                }
            }
        }
        Ok(())
    }

    /// Releases streams, and ends.
    fn end(&mut self) -> Result<(), ServerError> {
        let at = moment();
        for number in self.streams.numbers() {
            self.endpoint.release(at.now, CoapPeer::Tcp(number));
        }
        if let Some(secure) = &mut self.secure {
            secure.close(at.now, |peer, datagram| {
                if let CoapPeer::Udp { socket, address } = peer {
                    self.datagrams.push(socket, address, datagram);
                }
            });
        }
        self.flush(at)?;
        self.streams.numbers().into_iter().for_each(|number| self.streams.close(number));
        let until = at.now + FAREWELL;
        let mut ready = Vec::new();
        loop {
            let at = moment();
            for number in self.streams.busy() {
                if !self.streams.write(at.now, number, &self.events)? {
                    self.streams.remove(number);
                }
            }
            if self.streams.numbers().is_empty() || at.now >= until {
                return Ok(());
            }
            // A short sleep: readable sockets are always ready.
            self.events.wait(Some(until.min(at.now + Duration::from_millis(10))), &mut ready)?;
        }
    }
}

/// Returns the present time by both clocks.
fn moment() -> Moment {
    Moment { now: clock::now(), calendar: clock::calendar() }
}

/// Answers a request, and counts.
fn respond(
    endpoint: &mut Endpoint<CoapPeer>,
    statistics: &mut ServerStatistics,
    at: Moment,
    id: RequestId,
    response: &Response<'_>,
) {
    match response.code.class() {
        2 => statistics.successes += 1,
        4 => statistics.client_errors += 1,
        _ => statistics.server_errors += 1,
    }
    if let Err(why) = endpoint.respond(at.now, id, response) {
        tracing::debug!(%why, "a response was not sent");
        // The response may have been too long for a message; this one is not.
        let short = Response::new(thinair_coap::code::INTERNAL_SERVER_ERROR);
        if endpoint.respond(at.now, id, &short).is_err() {
            endpoint.dismiss(id);
        }
    }
}

/// Logs a request.
#[inline]
fn note(
    streams: &ServerStreams,
    secure: Option<&SecureSessions>,
    peer: CoapPeer,
    request: &Received<'_>,
    response: &Response<'_>,
) {
    if tracing::enabled!(tracing::Level::DEBUG) {
        log(streams, secure, peer, request, response);
    }
}

#[cold]
fn log(
    streams: &ServerStreams,
    secure: Option<&SecureSessions>,
    peer: CoapPeer,
    request: &Received<'_>,
    response: &Response<'_>,
) {
    let (from, transport) = match peer {
        CoapPeer::Udp { address, .. } => (Some(address), "udp"),
        CoapPeer::Dtls(session) => (secure.and_then(|secure| secure.address(session)), "dtls"),
        CoapPeer::Tcp(number) => (streams.address(number), "tcp"),
    };
    let from = from.map_or_else(|| "nobody".to_owned(), |from| from.to_string());
    let path: String = request.options.path().map(|segment| format!("/{}", segment.escape_ascii())).collect();
    let path = if path.is_empty() { "/" } else { &path };
    tracing::debug!(
        from,
        transport,
        octets_in = request.payload.len(),
        octets_out = response.payload.len(),
        "{} {path} {}",
        method(request.code),
        response.code
    );
}

fn method(code: thinair_coap::Code) -> String {
    let name = match code.0 {
        1 => "GET",
        2 => "POST",
        3 => "PUT",
        4 => "DELETE",
        5 => "FETCH",
        6 => "PATCH",
        7 => "iPATCH",
        _ => return code.to_string(),
    };
    name.to_owned()
}
