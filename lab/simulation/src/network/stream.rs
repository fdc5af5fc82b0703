//! TCP connection for an endpoint that reads and writes octets.

use std::collections::VecDeque;

use thinair_wire::time::Instant;

use crate::tcp::{TcpConfig, TcpConnection, TcpEvent, TcpSegment};

/// Connection, and octets that exceeded its buffer.
#[derive(Debug)]
pub(super) struct TcpStream {
    pub(super) connection: TcpConnection,
    waiting: VecDeque<u8>,
    opened: bool,
    /// Segments that were sent before the application was notified.
    segments: VecDeque<TcpSegment>,
}

impl TcpStream {
    pub(super) fn connect(config: TcpConfig, now: Instant, isn: u32) -> Self {
        Self::new(TcpConnection::connect(config, now, isn))
    }

    pub(super) fn listen(config: TcpConfig, isn: u32) -> Self {
        Self::new(TcpConnection::listen(config, isn))
    }

    fn new(connection: TcpConnection) -> Self {
        Self { connection, waiting: VecDeque::new(), opened: false, segments: VecDeque::new() }
    }

    /// Handles a segment. Returns the octets that can be read.
    pub(super) fn handle_segment(&mut self, now: Instant, segment: &TcpSegment) -> Vec<u8> {
        self.connection.handle_segment(now, segment);
        while let Some(event) = self.connection.poll_event() {
            self.opened |= event == TcpEvent::Connected;
        }
        self.push(now);
        let octets = self.connection.read(usize::MAX);
        // An immediate acknowledgment does not wait for the application's data: systems acknowledge before they wake
        // it.
        if self.connection.is_open() {
            self.segments.extend(core::iter::from_fn(|| self.connection.poll_transmit(now)));
        }
        octets
    }

    /// True if it has opened since the last call.
    pub(super) fn take_opened(&mut self) -> bool {
        core::mem::take(&mut self.opened)
    }

    pub(super) fn write(&mut self, now: Instant, octets: &[u8]) {
        self.waiting.extend(octets);
        self.push(now);
    }

    fn push(&mut self, now: Instant) {
        if !self.waiting.is_empty() {
            let taken = self.connection.write(now, self.waiting.make_contiguous());
            self.waiting.drain(..taken);
        }
    }

    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<TcpSegment> {
        self.segments.pop_front().or_else(|| self.connection.poll_transmit(now))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
    }
}
