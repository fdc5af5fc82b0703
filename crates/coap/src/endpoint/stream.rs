//! Peers that are reached by a stream: TCP, TLS, or any other ordered transport. RFC 8323.
//!
//! Requests and responses as over datagrams; no message layer. Instead there are signals: a CSM from each side first,
//! Ping and Pong, Release and Abort.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::Hash;

use thinair_wire::header::coap::{Code, Type};
use thinair_wire::time::Instant;

use super::digest::Digest;
use super::flight::MessageContent;
use super::receive::OpenedResponse;
use super::respond::MessageLimits;
use super::{Endpoint, QueuedSend, Timed};
use crate::block::BlockSize;
use crate::code::{self, MessageKind};
use crate::event::{Closing, Event, Gone, StreamError};
use crate::message::Message;
use crate::number;
use crate::option::OptionList;
use crate::stream::{MAX_MESSAGE_SIZE, StreamMessage, StreamMessageHeader, header, rest_len, signal};
use crate::table::SlotKey;
use crate::token::Token;

/// Largest number of octets that wait for the other side, in units of the largest message accepted.
const BACKLOG: usize = 4;

/// The state of one stream.
#[derive(Debug)]
pub(crate) struct StreamState {
    /// Start of an incomplete message.
    input: Vec<u8>,
    output: VecDeque<u8>,
    /// Limit of `output` in octets above which no further message is written.
    backlog: usize,
    /// True if it waits for `poll_transmit` already.
    queued: bool,
    /// True if the other side has sent its CSM.
    ready: bool,
    /// True if no further requests are allowed.
    pub(super) released: bool,
    /// True if nothing is read any more.
    closed: bool,
    /// Max-Message-Size of the other side, in octets.
    max_message: usize,
    /// True if the CSM of the other side has Block-Wise-Transfer.
    block_wise: bool,
    /// Time at which a Ping was sent, and deadline of its answer.
    ping: Option<(Instant, Instant)>,
}

impl StreamState {
    pub(super) const fn is_ready(&self) -> bool {
        self.ready
    }

    pub(super) fn limits(&self) -> MessageLimits {
        // Without the option, "the peer has no information about whether block-wise transfers are supported" (section
        // 5.3.2): blocks of RFC 7959 are tried then, BERT is not.
        let is_bert = self.block_wise && self.max_message > MAX_MESSAGE_SIZE;
        let block = if is_bert { BlockSize::BERT } else { BlockSize::MAX };
        MessageLimits { message: self.max_message, block }
    }
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// Registers the opening of a stream to a peer. From now on messages to it use the stream, the first of which is a
    /// CSM. False if there is no room for one more peer.
    pub fn connected(&mut self, now: Instant, peer: P) -> bool {
        self.peers.now = now;
        let Some(key) = self.peer_key(peer) else { return false };
        self.close(now, key, Closing::Disconnected);
        let max_message = self.config.limits.max_stream_message.max(MAX_MESSAGE_SIZE);
        let stream = StreamState {
            input: Vec::new(),
            output: VecDeque::new(),
            backlog: BACKLOG * max_message,
            queued: false,
            ready: false,
            released: false,
            closed: false,
            max_message: MAX_MESSAGE_SIZE,
            block_wise: false,
            ping: None,
        };
        let Some(state) = self.peers.get_mut(key) else { return false };
        state.stream = Some(Box::new(stream));
        self.peers.pin(key);
        let mut csm = OptionList::new();
        csm.push_uint(signal::MAX_MESSAGE_SIZE, u32::try_from(max_message).unwrap_or(u32::MAX));
        csm.push(signal::BLOCK_WISE_TRANSFER, &[]);
        self.write_signal(now, key, code::CSM, Token::EMPTY, csm.octets())
    }

    /// Registers the end of a stream to a peer: requests under way fail, observers are removed, unsent octets are
    /// dropped.
    pub fn disconnected(&mut self, now: Instant, peer: P) {
        if let Some(key) = self.peers.find(&peer) {
            self.close(now, key, Closing::Disconnected);
        }
    }

    /// Asks the other side of a stream to close it once all responses are sent. RFC 8323, section 5.5.
    pub fn release(&mut self, now: Instant, peer: P) -> bool {
        let Some(key) = self.peers.find(&peer) else { return false };
        if let Some(stream) = self.peers.get_mut(key).and_then(|peer| peer.stream.as_mut()) {
            stream.released = true;
        }
        self.write_signal(now, key, code::RELEASE, Token::EMPTY, &[])
    }

    /// True if the received octets of a stream end within a message. A server with many streams closes those that stay in
    /// this state for long.
    pub fn is_within_message(&self, peer: &P) -> bool {
        let stream = self.peers.find(peer).and_then(|key| self.stream(key));
        stream.is_some_and(|stream| !stream.input.is_empty())
    }

    /// Processes octets received from a stream: takes the next message from their front, and stores the octets of an
    /// incomplete message, at most [`Limits::max_stream_message`](crate::Limits::max_stream_message).
    ///
    /// **Call it again until `octets` is empty.** If the peer has no stream, they are dropped.
    pub fn handle_stream<'d>(
        &mut self,
        now: Instant,
        peer: P,
        octets: &mut &'d [u8],
    ) -> Option<Event<'d, P>> {
        let Some(key) = self.peers.find(&peer) else {
            *octets = &[];
            return None;
        };
        while !octets.is_empty() {
            match self.next_message(now, key, octets) {
                Ok(Some(event)) => return Some(event),
                Ok(None) => {}
                Err(error) => {
                    *octets = &[];
                    self.abort(now, key, error);
                }
            }
        }
        None
    }

    /// Takes octets of at most one message.
    fn next_message<'d>(
        &mut self,
        now: Instant,
        key: SlotKey,
        octets: &mut &'d [u8],
    ) -> Result<Option<Event<'d, P>>, StreamError> {
        let limit = self.config.limits.max_stream_message.max(MAX_MESSAGE_SIZE);
        let Some(stream) =
            self.peers.get_mut(key).and_then(|peer| peer.stream.as_mut()).filter(|s| !s.closed)
        else {
            *octets = &[];
            return Ok(None);
        };
        let checked = |front: &[u8]| match StreamMessageHeader::read(front)? {
            Some(header) if header.len() > limit => {
                Err(StreamError::TooLarge { length: header.len(), limit })
            }
            header => Ok(header),
        };
        if stream.input.is_empty() {
            let whole = checked(octets)?.map(|header| header.len()).filter(|len| *len <= octets.len());
            let Some(len) = whole else {
                stream.input.extend_from_slice(octets);
                *octets = &[];
                return Ok(None);
            };
            let (message, behind) = octets.split_at(len);
            *octets = behind;
            return self.handle_frame(now, key, message);
        }
        // The header first, an octet at a time, then the octets that it announces.
        let wanted = match checked(&stream.input)? {
            Some(header) => header.len() - stream.input.len(),
            None => 1,
        };
        let (taken, behind) = octets.split_at(wanted.min(octets.len()));
        stream.input.extend_from_slice(taken);
        *octets = behind;
        if checked(&stream.input)?.is_none_or(|header| header.len() > stream.input.len()) {
            return Ok(None);
        }
        let message = core::mem::take(&mut stream.input);
        Ok(self.handle_frame(now, key, &message)?.map(Event::into_owned))
    }

    fn handle_frame<'d>(
        &mut self,
        now: Instant,
        key: SlotKey,
        octets: &'d [u8],
    ) -> Result<Option<Event<'d, P>>, StreamError> {
        let (mut digest, recognised) = (Digest::default(), self.config.policy.recognised);
        let note = |code, option: &_| digest.note(code, option, recognised);
        let (frame, _) = StreamMessage::read_with(octets, note)?.ok_or(StreamError::Format)?;
        let ready = self.stream(key).is_some_and(|stream| stream.ready);
        if !ready && frame.code != code::CSM {
            return Err(StreamError::NoCsm);
        }
        let message = Message {
            message_type: Type::NonConfirmable,
            code: frame.code,
            message_id: 0,
            token: frame.token,
            options: frame.options,
            payload: frame.payload,
        };
        match code::kind(frame.code) {
            MessageKind::Signal => self.signal(now, key, &message),
            MessageKind::Request => Ok(self.handle_request(now, key, None, message, &digest, octets.len())),
            MessageKind::Response => match self.by_token.get(&(key, message.token)) {
                Some(&call) => Ok(match self.open_response(call, &message, &digest) {
                    OpenedResponse::Plain => self.call_response(now, call, message, &digest),
                    OpenedResponse::Inner(inner) => {
                        let message = inner.with_header_of(&message);
                        self.call_response(now, call, message, &inner.digest).map(Event::into_owned)
                    }
                    OpenedResponse::Ignored => None,
                    OpenedResponse::Failed(error) => Some(self.fail_at_response(now, call, error)),
                }),
                None => {
                    self.counters.unmatched += 1;
                    Ok(None)
                }
            },
            // "Empty messages ... MUST be ignored by the recipient" (section 3.2); so are reserved codes.
            MessageKind::Empty | MessageKind::Reserved => Ok(None),
        }
    }

    fn stream(&self, key: SlotKey) -> Option<&StreamState> {
        self.peers.get(key)?.stream.as_deref()
    }

    /// Processes a signal. RFC 8323, section 5.
    fn signal<'d>(
        &mut self,
        now: Instant,
        key: SlotKey,
        message: &Message<'_>,
    ) -> Result<Option<Event<'d, P>>, StreamError> {
        // All options of signals that this crate implements are elective.
        if let Some(option) = message.options.iter().find(|option| number::is_critical(option.number)) {
            return Err(StreamError::BadOption { number: option.number });
        }
        let Some(peer) = self.peers.get_mut(key) else { return Ok(None) };
        let address = peer.address;
        let Some(stream) = peer.stream.as_mut() else { return Ok(None) };
        match message.code {
            code::CSM => {
                if let Some(size) = message.options.uint(signal::MAX_MESSAGE_SIZE) {
                    // A value below the base value is invalid, and would leave no room for options.
                    stream.max_message = (size as usize).max(MAX_MESSAGE_SIZE);
                }
                stream.block_wise |= message.options.first(signal::BLOCK_WISE_TRANSFER).is_some();
                stream.ready = true;
                let (max_message, block_wise) = (stream.max_message, stream.block_wise);
                self.send_waiting_calls(now, key);
                Ok(Some(Event::StreamReady { peer: address, max_message, block_wise }))
            }
            code::PING => {
                let mut options = OptionList::new();
                if message.options.first(signal::CUSTODY).is_some() {
                    // Everything received before is processed or with the application.
                    options.push(signal::CUSTODY, &[]);
                }
                self.write_signal(now, key, code::PONG, message.token, options.octets());
                Ok(None)
            }
            code::PONG => match stream.ping.take() {
                Some((sent, deadline)) => {
                    self.timers.remove(&(deadline, Timed::Stream(key)));
                    Ok(Some(Event::Pong { peer: address, after: now.since(sent) }))
                }
                None => Ok(None),
            },
            code::RELEASE => {
                stream.released = true;
                Ok(Some(Event::Released { peer: address }))
            }
            code::ABORT => {
                self.close(now, key, Closing::Aborted);
                Ok(None)
            }
            // An unknown signal is ignored.
            _ => Ok(None),
        }
    }

    pub(super) fn ping_stream(&mut self, now: Instant, key: SlotKey) -> bool {
        let deadline = now + self.config.timing.response_timeout;
        let Some(stream) = self.peers.get_mut(key).and_then(|peer| peer.stream.as_mut()) else {
            return false;
        };
        if let Some((_, before)) = stream.ping.replace((now, deadline)) {
            self.timers.remove(&(before, Timed::Stream(key)));
        }
        self.timers.insert((deadline, Timed::Stream(key)));
        self.write_signal(now, key, code::PING, Token::EMPTY, &[])
    }

    pub(super) fn stream_timeout(&mut self, key: SlotKey) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        let address = peer.address;
        if peer.stream.as_mut().is_some_and(|stream| stream.ping.take().is_some()) {
            self.events.push_back(Event::PingFailed { peer: address });
        }
    }

    fn write_signal(&mut self, now: Instant, key: SlotKey, code: Code, token: Token, options: &[u8]) -> bool {
        self.write_frame(now, key, &MessageContent { code, token, options, payload: &[] })
    }

    /// Writes a message to a stream. False if the stream has ended; it ends if the other side does not read.
    pub(super) fn write_frame(&mut self, now: Instant, key: SlotKey, content: &MessageContent<'_>) -> bool {
        let MessageContent { code, token, options, payload } = content;
        let Some(stream) = self.peers.get_mut(key).and_then(|peer| peer.stream.as_mut()) else {
            return false;
        };
        if stream.closed {
            return false;
        }
        let (front, len) = header(rest_len(options, payload), *code, token);
        // One more message always fits: the application and the other side limit its size.
        if stream.output.len() > stream.backlog {
            stream.output.clear();
            stream.closed = true;
            self.end_stream(now, key, Closing::Broken(StreamError::Backlog));
            return false;
        }
        stream.output.extend(front.iter().take(len));
        stream.output.extend(token.octets());
        stream.output.extend(*options);
        if !payload.is_empty() {
            stream.output.push_back(0xFF);
            stream.output.extend(*payload);
        }
        if !core::mem::replace(&mut stream.queued, true) {
            self.outgoing.push_back(QueuedSend::Stream(key));
        }
        true
    }

    /// Returns the next octets for a stream.
    pub(super) fn poll_stream(&mut self, key: SlotKey, out: &mut [u8]) -> Option<usize> {
        let stream = self.peers.get_mut(key)?.stream.as_mut()?;
        stream.queued = false;
        let (front, behind) = stream.output.as_slices();
        let octets = if front.is_empty() { behind } else { front };
        let len = octets.len().min(out.len());
        out.get_mut(..len)?.copy_from_slice(octets.get(..len)?);
        stream.output.drain(..len);
        if !stream.output.is_empty() && len > 0 {
            stream.queued = true;
            self.outgoing.push_front(QueuedSend::Stream(key));
        } else if stream.output.is_empty() {
            // Memory of a burst is released.
            stream.output = VecDeque::new();
            if stream.closed {
                self.forget_stream(key);
            }
        }
        (len > 0).then_some(len)
    }

    /// Aborts a stream whose other side has violated the protocol. RFC 8323, section 5.6.
    fn abort(&mut self, now: Instant, key: SlotKey, error: StreamError) {
        let mut options = OptionList::new();
        if let StreamError::BadOption { number } = error {
            options.push_uint(signal::BAD_CSM_OPTION, u32::from(number));
        }
        self.write_signal(now, key, code::ABORT, Token::EMPTY, options.octets());
        if let Some(stream) = self.peers.get_mut(key).and_then(|peer| peer.stream.as_mut()) {
            // Remaining octets are sent, then the stream is dropped.
            stream.closed = true;
            stream.input = Vec::new();
            self.end_stream(now, key, Closing::Broken(error));
        }
    }

    fn close(&mut self, now: Instant, key: SlotKey, reason: Closing) {
        if self.stream(key).is_some_and(|stream| !stream.closed) {
            self.end_stream(now, key, reason);
        }
        self.forget_stream(key);
    }

    /// Reports the end of a stream to its calls, observers and the application.
    fn end_stream(&mut self, now: Instant, key: SlotKey, reason: Closing) {
        let Some(address) = self.peers.get(key).map(|peer| peer.address) else { return };
        self.fail_calls(now, key);
        self.remove_observers(key, Gone::Closed);
        let pending: Vec<SlotKey> = self
            .requests
            .iter()
            .filter(|(_, pending)| pending.peer == key && pending.stream)
            .map(|(request, _)| request)
            .collect();
        pending.into_iter().for_each(|request| self.release_request(request));
        self.events.push_back(Event::Closed { peer: address, reason });
    }

    fn forget_stream(&mut self, key: SlotKey) {
        let Some(stream) = self.peers.get_mut(key).and_then(|peer| peer.stream.take()) else { return };
        if let Some((_, deadline)) = stream.ping {
            self.timers.remove(&(deadline, Timed::Stream(key)));
        }
        self.peers.unpin(key);
    }
}
