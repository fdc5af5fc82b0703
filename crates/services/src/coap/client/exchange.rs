//! An exchange with one address.

use std::net::SocketAddr;

use thinair_coap::uri::Scheme;
use thinair_coap::{CallError, CallId, Closing, Endpoint, Event, Received};
use thinair_os::clock::now;
use thinair_wire::time::Instant;

use super::carrier::{ClientSocket, ROOM};
use super::error::{AddressError, ClientError, SentRequest};
use super::{Client, ClientTask, Continuation, Ending, TaskProgress, TaskReport};
use crate::coap::CoapPeer;
use crate::wait::{Wait, Woken};

/// Reason why an attempt failed.
#[derive(Debug)]
pub(super) enum Stop {
    /// Concerns this address.
    Address(AddressError),
    /// Concerns the whole task.
    All(ClientError),
}

impl Stop {
    /// The time limit of the task is over. The caller fills in the limit.
    pub(super) const TIME: Self =
        Self::All(ClientError::TimeLimit { limit: std::time::Duration::ZERO, latest: None });
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        Self::All(error)
    }
}

impl From<thinair_os::Error> for Stop {
    fn from(error: thinair_os::Error) -> Self {
        Self::All(error.into())
    }
}

/// One attempt at an exchange.
struct ClientExchange<'e> {
    endpoint: &'e mut Endpoint<CoapPeer>,
    peer: CoapPeer,
    call: CallId,
    start: Instant,
    /// Time of the first transmission of the request.
    sent_at: Instant,
    report: &'e mut TaskReport,
    watch: &'e mut dyn FnMut(TaskProgress<'_>) -> Continuation,
    /// Latest ICMP error.
    icmp: Option<String>,
    /// Reason for the end of the stream.
    closing: Option<Closing>,
    /// True if there was a notification.
    is_observed: bool,
    /// Ending of the observation, and deadline of its deregistration.
    leaving: Option<(Ending, Instant)>,
    /// Octets of both bodies that have arrived.
    progress: (usize, usize),
    /// Blocks of both bodies that others follow.
    blocks: (u64, u64),
    /// Messages of the request after the first one, without retransmissions.
    steps: u64,
    /// Retransmissions of the endpoint before this attempt.
    retransmitted: u64,
}

impl Client {
    pub(super) fn attempt(
        &mut self,
        task: &ClientTask<'_>,
        address: SocketAddr,
        start: Instant,
        waiting: &mut Wait<'_>,
        report: &mut TaskReport,
        watch: &mut dyn FnMut(TaskProgress<'_>) -> Continuation,
    ) -> Result<Ending, Stop> {
        let (attempts, resolved) = (std::mem::take(&mut report.attempts), report.resolved);
        *report = TaskReport { attempts, resolved, address: Some(address), ..TaskReport::default() };
        let result = self.try_one(task, address, start, waiting, report, watch);
        result.map_err(|stop| match stop {
            Stop::All(ClientError::TimeLimit { .. }) => {
                let transmissions = report.transmissions;
                let limit = task.limit.into_iter().chain(task.observe_for).min().unwrap_or_default();
                let latest = (transmissions > 0).then_some(SentRequest { address, transmissions });
                Stop::All(ClientError::TimeLimit { limit, latest })
            }
            other => other,
        })
    }

    fn try_one(
        &mut self,
        task: &ClientTask<'_>,
        address: SocketAddr,
        start: Instant,
        waiting: &mut Wait<'_>,
        report: &mut TaskReport,
        watch: &mut dyn FnMut(TaskProgress<'_>) -> Continuation,
    ) -> Result<Ending, Stop> {
        let Self { endpoint, ports, secure, streams } = self;
        let (mut carrier, peer) = match task.uri.scheme {
            Scheme::Coap => (ClientSocket::Udp(ports.open(address)?), CoapPeer::Udp { socket: 0, address }),
            Scheme::Coaps => {
                let secure = secure.as_mut().ok_or(ClientError::NoKey)?;
                let mut socket = secure.open(ports.open(address)?, address);
                waiting.add(socket.socket)?;
                let connected = socket.connect(waiting, report);
                let (peer, carrier) = (socket.peer, ClientSocket::Dtls(socket));
                carrier.forget(waiting);
                connected?;
                (carrier, peer)
            }
            Scheme::CoapTcp => {
                *streams += 1;
                (ClientSocket::connect(address, task.connect_timeout, waiting)?, CoapPeer::Tcp(*streams))
            }
        };
        let now = now();
        report.connected = now.since(start);
        if carrier.is_stream() {
            endpoint.connected(now, peer);
        }
        let retransmitted = endpoint.counters().retransmissions;
        let call = match task.context {
            Some(context) => endpoint.request_protected(now, peer, task.request, context),
            None => endpoint.request(now, peer, task.request),
        };
        let call = call.map_err(ClientError::from)?;
        let mut exchange = ClientExchange {
            endpoint,
            peer,
            call,
            start,
            sent_at: now,
            report,
            watch,
            icmp: None,
            closing: None,
            is_observed: false,
            leaving: None,
            progress: (0, 0),
            blocks: (0, 0),
            steps: 0,
            retransmitted,
        };
        let result = match carrier.wait_for(waiting) {
            Ok(()) => exchange.run(task, &mut carrier, waiting),
            Err(error) => Err(error.into()),
        };
        exchange.end();
        carrier.forget(waiting);
        result
    }
}

impl ClientExchange<'_> {
    fn run(
        &mut self,
        task: &ClientTask<'_>,
        carrier: &mut ClientSocket<'_>,
        waiting: &mut Wait<'_>,
    ) -> Result<Ending, Stop> {
        let mut buffer = vec![0; ROOM];
        let result = self.exchange(task, carrier, waiting, &mut buffer);
        if result.is_err() {
            // The Acknowledgement or Reset of the message that has just arrived.
            let _ = self.send(carrier, &mut buffer, waiting);
        }
        result
    }

    fn exchange(
        &mut self,
        task: &ClientTask<'_>,
        carrier: &mut ClientSocket<'_>,
        waiting: &mut Wait<'_>,
        buffer: &mut [u8],
    ) -> Result<Ending, Stop> {
        let mut observed_until = task.observe_for.map(|time| self.start + time);
        loop {
            self.send(carrier, buffer, waiting)?;
            let leaving = self.leaving.as_ref().map(|(_, at)| *at);
            let until = [self.endpoint.poll_timeout(), carrier.poll_timeout(), observed_until, leaving];
            match waiting.wait(until.into_iter().flatten().min())? {
                Woken::Look => {}
                Woken::TimeLimit => return Err(Stop::TIME),
                Woken::Interrupted if self.is_observed && self.leaving.is_none() => {
                    self.leave(task, Ending::Interrupted);
                }
                // At the second interrupt it does not wait for the server's confirmation.
                Woken::Interrupted => match self.leaving.take() {
                    Some((ending, _)) => return Ok(ending),
                    None => return Err(ClientError::Interrupted.into()),
                },
            }
            carrier.handle_timeout()?;
            let ending = self.receive(task, carrier, waiting, buffer);
            let ending = match ending {
                Ok(None) => self.time(task, waiting, &mut observed_until),
                other => other,
            };
            match ending {
                Ok(None) => {}
                Ok(Some(ending)) => {
                    // The acknowledgement of the message that has just arrived.
                    self.send(carrier, buffer, waiting)?;
                    return Ok(ending);
                }
                // A received response takes precedence over a failed deregistration.
                Err(Stop::Address(_)) if self.leaving.is_some() => {
                    return Ok(self.leaving.take().map_or(Ending::Stopped, |(ending, _)| ending));
                }
                Err(stop) => return Err(stop),
            }
        }
    }

    fn send(
        &mut self,
        carrier: &mut ClientSocket<'_>,
        buffer: &mut [u8],
        waiting: &Wait<'_>,
    ) -> Result<(), Stop> {
        carrier.send(self.peer, self.endpoint, buffer, waiting, self.report, &mut self.icmp)?;
        self.measure();
        Ok(())
    }

    /// Ends the request if it is under way: the next one uses the same endpoint.
    fn end(&mut self) {
        self.measure();
        match self.peer {
            CoapPeer::Udp { .. } | CoapPeer::Dtls(_) => self.endpoint.cancel(now(), self.call),
            CoapPeer::Tcp(_) => self.endpoint.disconnected(now(), self.peer),
        }
        while self.endpoint.poll_event().is_some() {}
    }

    /// Copies the counters of the endpoint.
    fn measure(&mut self) {
        let now = now();
        self.report.total = now.since(self.start);
        self.report.retransmissions = self.endpoint.counters().retransmissions - self.retransmitted;
        match self.peer {
            CoapPeer::Udp { .. } | CoapPeer::Dtls(_) => {
                self.report.rto = self.endpoint.peer(now, &self.peer).map(|peer| peer.rto);
            }
            CoapPeer::Tcp(_) => self.report.transmissions = self.steps + 1,
        }
    }

    /// Counts blocks, including the `last` one of each body that has several.
    fn count_blocks(&mut self, last: u64) {
        let all = |blocks: u64| if blocks > 0 { blocks + last } else { 0 };
        (self.report.blocks_up, self.report.blocks_down) = (all(self.blocks.0), all(self.blocks.1));
    }

    /// Processes received octets.
    fn receive(
        &mut self,
        task: &ClientTask<'_>,
        carrier: &mut ClientSocket<'_>,
        waiting: &mut Wait<'_>,
        buffer: &mut [u8],
    ) -> Result<Option<Ending>, Stop> {
        loop {
            let (octets, from) = match carrier.receive(self.peer, buffer, &mut self.icmp) {
                Ok(Some(received)) => received,
                Ok(None) => return Ok(None),
                Err(AddressError::Closed(why)) => return Err(self.closed(why)),
                Err(error) => return Err(Stop::Address(error)),
            };
            let now = now();
            if from == self.peer {
                self.report.received += 1;
                self.report.received_octets += carrier.wire_octets(octets.len());
                self.report.first.get_or_insert(now.since(self.start));
            } else if self.endpoint.peer(now, &from).is_none() {
                // It is of no server of this client.
                continue;
            }
            let mut rest = octets;
            loop {
                let event = match carrier.is_stream() {
                    true => self.endpoint.handle_stream(now, self.peer, &mut rest),
                    false => {
                        let datagram = std::mem::take(&mut rest);
                        self.endpoint.handle_datagram(now, from, datagram)
                    }
                };
                if let Some(ending) =
                    event.map(|event| self.handle(task, waiting, event)).transpose()?.flatten()
                {
                    return Ok(Some(ending));
                }
                if rest.is_empty() {
                    break;
                }
            }
            if let Some(ending) = self.events(task, waiting)? {
                return Ok(Some(ending));
            }
            // The reply is sent before further datagrams are read: blocks follow each other.
            if !carrier.is_stream() {
                return Ok(None);
            }
        }
    }

    /// Processes events that are not caused by received octets.
    fn events(&mut self, task: &ClientTask<'_>, waiting: &mut Wait<'_>) -> Result<Option<Ending>, Stop> {
        while let Some(event) = self.endpoint.poll_event() {
            if let Some(ending) = self.handle(task, waiting, event)? {
                return Ok(Some(ending));
            }
        }
        Ok(None)
    }

    /// Processes timers that are due.
    fn time(
        &mut self,
        task: &ClientTask<'_>,
        waiting: &mut Wait<'_>,
        observed_until: &mut Option<Instant>,
    ) -> Result<Option<Ending>, Stop> {
        let now = now();
        self.endpoint.handle_timeout(now);
        if let Some(ending) = self.events(task, waiting)? {
            return Ok(Some(ending));
        }
        if observed_until.is_some_and(|until| until <= now) {
            *observed_until = None;
            if !self.is_observed {
                return Err(Stop::TIME);
            }
            if self.leaving.is_none() {
                self.leave(task, Ending::Stopped);
            }
        }
        match self.leaving.take() {
            Some((ending, until)) if until <= now => Ok(Some(ending)),
            leaving => {
                self.leaving = leaving;
                Ok(None)
            }
        }
    }

    fn handle(
        &mut self,
        task: &ClientTask<'_>,
        waiting: &mut Wait<'_>,
        event: Event<'_, CoapPeer>,
    ) -> Result<Option<Ending>, Stop> {
        let limit = self.endpoint.config().limits.max_body;
        match event {
            // A stream's messages may exceed the limit of the body.
            Event::Response { call, message } | Event::Notification { call, message }
                if call == self.call && message.payload.len() > limit =>
            {
                Err(Stop::Address(AddressError::Call(CallError::TooLarge { limit })))
            }
            Event::Response { call, message } if call == self.call => {
                self.count_blocks(1);
                Ok(Some(match self.leaving.take() {
                    Some((ending, _)) => ending,
                    None => Ending::Response(message.into_owned()),
                }))
            }
            Event::Notification { call, message } if call == self.call => {
                self.notified(task, waiting, &message);
                Ok(None)
            }
            Event::Progress { call, sent, received, total } if call == self.call => {
                let (sent_before, received_before) = std::mem::replace(&mut self.progress, (sent, received));
                self.steps += 1;
                self.blocks.0 += u64::from(sent > sent_before);
                self.blocks.1 += u64::from(received > received_before);
                self.count_blocks(0);
                (self.watch)(TaskProgress::Progress { sent, received, total });
                Ok(None)
            }
            Event::Failed { call, error } if call == self.call => match self.leaving.take() {
                Some((ending, _)) => Ok(Some(ending)),
                None => Err(self.failed(error)),
            },
            Event::Closed { reason, .. } => {
                self.closing = Some(reason);
                Ok(None)
            }
            // The client has no resources.
            Event::Request { id, .. } => {
                self.endpoint.dismiss(id);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn notified(&mut self, task: &ClientTask<'_>, waiting: &mut Wait<'_>, message: &Received<'_>) {
        self.measure();
        self.count_blocks(1);
        (self.progress, self.blocks) = ((0, 0), (0, 0));
        // From now on the application determines the duration.
        self.is_observed = true;
        waiting.deadline = None;
        if self.leaving.is_some() {
            return;
        }
        if (self.watch)(TaskProgress::Notification(message, self.report)) == Continuation::Stop {
            self.leave(task, Ending::Stopped);
        }
    }

    /// Ends an observation: deregisters, and gives the server some time to confirm.
    fn leave(&mut self, task: &ClientTask<'_>, ending: Ending) {
        let now = now();
        match self.endpoint.deregister(now, self.call) {
            true => self.steps += 1,
            false => self.endpoint.cancel(now, self.call),
        }
        self.leaving = Some((ending, now + task.farewell));
    }

    fn failed(&mut self, error: CallError) -> Stop {
        self.measure();
        Stop::Address(match error {
            CallError::Timeout { transmissions } => AddressError::NoAnswer {
                transmissions: u64::from(transmissions),
                over: now().since(self.sent_at),
                icmp: self.icmp.take(),
            },
            CallError::Closed => return self.closed(None),
            error => AddressError::Call(error),
        })
    }

    /// Returns the error for the end of the stream, from the endpoint or the system.
    fn closed(&mut self, why: Option<String>) -> Stop {
        while let Some(event) = self.endpoint.poll_event() {
            if let Event::Closed { reason, .. } = event {
                self.closing = Some(reason);
            }
        }
        let why = match self.closing {
            Some(Closing::Aborted) => Some("the other side has sent Abort".to_owned()),
            Some(Closing::Broken(error)) => Some(error.to_string()),
            Some(Closing::Disconnected) | None => why,
        };
        Stop::Address(AddressError::Closed(why))
    }
}
