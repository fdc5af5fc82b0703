//! One connection: its states, and their handling of segments. RFC 9293, section 3.10.
//!
//! Not implemented: simultaneous open, urgent data, PAWS.

mod opening;

use core::time::Duration;
use std::collections::VecDeque;

use thinair_wire::time::Instant;

use super::TcpConfig;
use super::fast_open::Cookie;
use super::inbox::Inbox;
use super::outbox::{Acknowledgment, Piece, SendEffect, SendSide};
use super::segment::{SackBlocks, SegmentOptions, TcpSegment};

/// Event for the application, or for a control of segment sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TcpEvent {
    /// The handshake is complete: octets can be sent.
    Connected,
    /// Octets can be [read](TcpConnection::read).
    Readable,
    /// The other side sends no more data.
    PeerClosed,
    /// The server has granted a cookie for the next connection.
    Cookie(Cookie),
    /// Octets were acknowledged.
    Acked {
        /// Number of octets, in the order in which they were sent.
        octets: u64,
        /// Round trip, if the acknowledgment measures one.
        rtt: Option<Duration>,
    },
    /// A segment is considered lost.
    Lost(LossDetection),
    /// Both sides have closed, and their FINs are acknowledged.
    Finished,
    /// The other side has reset or rejected the connection.
    Reset,
    /// The other side does not respond.
    TimedOut,
}

/// Detection of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// By acknowledgments of later segments.
    Fast,
    /// By the retransmission timer.
    Timeout,
}

/// Current measurements of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// SRTT.
    pub smoothed_rtt: Option<Duration>,
    /// RTO with its back-off.
    pub timeout: Duration,
    /// cwnd in segments.
    pub window: u32,
    /// Segments in flight.
    pub in_flight: u32,
    /// Number of retransmitted segments.
    pub retransmissions: u64,
    /// Size of a segment with its options, in octets.
    pub segment_size: u16,
    /// Octets written by the application and not acknowledged.
    pub unacknowledged: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TcpState {
    Listen,
    SynSent,
    SynReceived,
    Open,
    TimeWait(Instant),
    Closed,
}

/// Connection. **After every call, take segments with [`poll_transmit`](Self::poll_transmit) until there are no more.**
#[derive(Clone, Debug)]
pub struct TcpConnection {
    config: TcpConfig,
    state: TcpState,
    isn: u32,
    peer_isn: u32,
    outbox: SendSide,
    inbox: Inbox,
    /// The SYN, or SYN-ACK, was not sent yet.
    syn_due: bool,
    reset_due: bool,
    /// Data of the SYN was accepted: more may be sent before the handshake is complete.
    fast: bool,
    /// Cookie that a server grants by Fast Open.
    cookie: Option<Cookie>,
    sack: bool,
    /// Latest TSval of the other side, if both sides use timestamps.
    timestamps: Option<u32>,
    /// Window shifts of the other side and of this one.
    scales: (u8, u8),
    /// Both sides have sent Window Scale.
    scaled: bool,
    /// This side has closed first.
    active: bool,
    peer_closed: bool,
    events: VecDeque<TcpEvent>,
}

impl TcpConnection {
    /// Creates a client: its SYN is the next segment. With Fast Open, octets that are written before the first poll are
    /// sent in the SYN.
    pub fn connect(config: TcpConfig, _now: Instant, isn: u32) -> Self {
        Self { state: TcpState::SynSent, syn_due: true, ..Self::new(config, isn) }
    }

    /// Creates a server that waits for a SYN.
    pub fn listen(config: TcpConfig, isn: u32) -> Self {
        Self::new(config, isn)
    }

    fn new(config: TcpConfig, isn: u32) -> Self {
        let shift = (u32::BITS - (config.receive_buffer.max(1) >> 16).leading_zeros()) as u8;
        Self {
            state: TcpState::Listen,
            isn,
            peer_isn: 0,
            outbox: SendSide::new(&config),
            inbox: Inbox::new(&config),
            syn_due: false,
            reset_due: false,
            fast: false,
            cookie: None,
            sack: config.sack,
            timestamps: None,
            scales: (0, if config.window_scaling { shift.min(14) } else { 0 }),
            scaled: false,
            active: false,
            peer_closed: false,
            events: VecDeque::new(),
            config,
        }
    }

    /// Appends octets to the send buffer, and returns the number that it had room for; 0 after [`close`](Self::close).
    pub fn write(&mut self, _now: Instant, octets: &[u8]) -> usize {
        self.outbox.write(octets)
    }

    /// Reads up to `most` received octets, in their order.
    pub fn read(&mut self, most: usize) -> Vec<u8> {
        let closed = self.inbox.window() < u32::from(self.config.mss);
        let octets = self.inbox.read(most);
        if closed && self.inbox.window() >= u32::from(self.config.mss) && self.is_open() {
            // The window has opened by a segment. RFC 9293, section 3.8.6.2.2.
            self.inbox.acknowledge_at_once();
        }
        octets
    }

    /// Number of octets that can be read.
    pub fn readable(&self) -> usize {
        self.inbox.readable()
    }

    /// Ends the data of this side.
    pub fn close(&mut self, _now: Instant) {
        self.active |= !self.peer_closed;
        self.outbox.close();
    }

    /// Ends the connection at once with a reset.
    pub fn abort(&mut self) {
        self.reset_due = self.is_open() || self.state == TcpState::SynReceived;
        self.state = TcpState::Closed;
    }

    /// Sets the size of later segments with their options, in octets; at most the MSS of the other side.
    /// Retransmissions are cut anew.
    pub fn set_segment_size(&mut self, octets: u16) {
        self.outbox.set_segment_size(octets.min(self.config.mss));
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<TcpEvent> {
        self.events.pop_front()
    }

    /// True if segments of data are accepted and sent.
    pub fn is_open(&self) -> bool {
        matches!(self.state, TcpState::Open)
    }

    /// True if the other side has closed, and all its data has arrived.
    pub fn is_finished(&self) -> bool {
        self.inbox.is_finished()
    }

    /// True if nothing is left to do. TIME-WAIT counts as closed.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, TcpState::Closed | TcpState::TimeWait(_)) && !self.reset_due
    }

    /// Current measurements.
    pub fn status(&self) -> Status {
        Status {
            smoothed_rtt: self.outbox.timeout().smoothed(),
            timeout: self.outbox.timeout().now(),
            window: self.outbox.congestion().window(),
            in_flight: self.outbox.in_flight(),
            retransmissions: self.outbox.retransmissions,
            segment_size: self.outbox.segment_size(),
            unacknowledged: self.outbox.waiting(),
        }
    }

    /// Latest time at which [`handle_timeout`](Self::handle_timeout) must be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            TcpState::Closed | TcpState::Listen => None,
            TcpState::TimeWait(until) => Some(self.inbox.timer().map_or(until, |at| at.min(until))),
            _ => match (self.outbox.timer(), self.inbox.timer()) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            },
        }
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            TcpState::Closed | TcpState::Listen => return,
            TcpState::TimeWait(until) if until <= now => self.state = TcpState::Closed,
            _ => {}
        }
        self.inbox.on_timer(now);
        match self.outbox.on_timer(now) {
            Some(effect) => self.emit_events(&effect),
            None => {
                self.state = TcpState::Closed;
                self.events.push_back(TcpEvent::TimedOut);
            }
        }
    }

    fn emit_events(&mut self, effect: &SendEffect) {
        if effect.octets > 0 {
            self.events.push_back(TcpEvent::Acked { octets: effect.octets, rtt: effect.rtt });
        }
        if let Some(loss) = effect.loss {
            self.events.push_back(TcpEvent::Lost(loss));
        }
    }

    /// Handles a segment of the other side.
    pub fn handle_segment(&mut self, now: Instant, segment: &TcpSegment) {
        match self.state {
            TcpState::Listen => self.on_listen(now, segment),
            TcpState::SynSent => self.on_syn_sent(now, segment),
            TcpState::SynReceived | TcpState::Open | TcpState::TimeWait(_) => self.on_open(now, segment),
            // Without a reset, a peer that lost the last acknowledgment would wait forever. RFC 9293, section 3.10.7.1.
            TcpState::Closed => self.reset_due |= !segment.rst,
        }
    }

    fn on_open(&mut self, now: Instant, segment: &TcpSegment) {
        let Some(start) = unwrap(segment.sequence_number, self.peer_isn, self.inbox.next()) else { return };
        let edge = self.inbox.next() + u64::from(self.inbox.window());
        if segment.rst {
            if start >= self.inbox.next() && start <= edge {
                self.end(TcpEvent::Reset);
            }
            return;
        }
        if segment.syn {
            // The SYN-ACK was lost, or our ACK of it: both are sent again.
            if self.state != TcpState::SynReceived {
                self.inbox.acknowledge_at_once();
            }
            return;
        }
        if let (Some(recent), Some((value, _))) = (self.timestamps, segment.options.timestamps) {
            // Older segments do not update TS.Recent. RFC 7323, section 4.3.
            let newer = value.wrapping_sub(recent) < 1 << 31 && start <= self.inbox.next();
            self.timestamps = Some(if newer { value } else { recent });
        }
        let Some(number) =
            segment.acknowledgment.and_then(|ack| unwrap(ack, self.isn, self.outbox.acknowledged()))
        else {
            return;
        };
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        for (start, end) in segment.options.sack.as_slice() {
            let near = self.outbox.acknowledged();
            if let (Some(start), Some(end)) = (unwrap(*start, self.isn, near), unwrap(*end, self.isn, near)) {
                blocks[count] = (start, end);
                count += 1;
            }
        }
        let echoed =
            segment.options.timestamps.filter(|_| self.timestamps.is_some()).and_then(|(_, echo)| {
                let elapsed = milliseconds(now).wrapping_sub(echo);
                (elapsed < 1 << 31).then(|| Duration::from_millis(u64::from(elapsed)))
            });
        let ack = Acknowledgment {
            number,
            window: u64::from(segment.window) << self.scales.0,
            blocks: blocks.get(..if self.sack { count } else { 0 }).unwrap_or_default(),
            alone: segment.payload.is_empty() && !segment.fin,
            echoed,
        };
        let effect = self.outbox.on_acknowledgment(now, &ack);
        if self.state == TcpState::SynReceived && self.outbox.acknowledged() > 0 {
            self.state = TcpState::Open;
            self.events.push_back(TcpEvent::Connected);
        }
        self.emit_events(&effect);
        self.take(now, start, segment);
        self.finish(now);
    }

    fn take(&mut self, now: Instant, start: u64, segment: &TcpSegment) {
        if self.inbox.take(now, start, &segment.payload, segment.fin) {
            if self.inbox.readable() > 0 {
                self.events.push_back(TcpEvent::Readable);
            }
            if self.inbox.is_finished() && !self.peer_closed {
                self.peer_closed = true;
                self.events.push_back(TcpEvent::PeerClosed);
            }
        }
    }

    /// Handles the arrival of both FINs: the side that closed first enters TIME-WAIT.
    fn finish(&mut self, now: Instant) {
        if self.state == TcpState::Open && self.outbox.is_done() && self.inbox.is_finished() {
            self.state =
                if self.active { TcpState::TimeWait(now + self.config.time_wait) } else { TcpState::Closed };
            self.events.push_back(TcpEvent::Finished);
        }
    }

    fn end(&mut self, event: TcpEvent) {
        self.state = TcpState::Closed;
        self.events.push_back(event);
    }

    /// Returns the next segment to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<TcpSegment> {
        if self.reset_due {
            self.reset_due = false;
            let sequence_number = self.isn.wrapping_add(self.outbox.sent() as u32);
            return Some(TcpSegment {
                rst: true,
                sequence_number,
                acknowledgment: self.number_expected(),
                ..TcpSegment::default()
            });
        }
        match self.state {
            TcpState::Listen | TcpState::Closed => return None,
            TcpState::SynSent | TcpState::SynReceived if self.syn_due => return Some(self.synchronize(now)),
            _ => {}
        }
        let handshake = match self.state {
            TcpState::SynSent => true,
            TcpState::SynReceived => !self.fast,
            _ => false,
        };
        let mut options = if handshake { SegmentOptions::default() } else { self.options(now) };
        let len = TcpSegment { options, ..TcpSegment::default() }.header_len() - 20;
        if let Some(piece) = self.outbox.poll(now, len, handshake) {
            if piece.start == 0 {
                options = self.syn_options(now);
            }
            if !piece.payload.is_empty() {
                self.inbox.on_data_sent(now);
            }
            return Some(self.segment(piece, options));
        }
        if self.inbox.wants_acknowledgment() && !handshake {
            let start = self.outbox.sent();
            return Some(
                self.segment(Piece { start, fin: false, push: false, payload: Vec::new() }, options),
            );
        }
        None
    }

    fn options(&self, now: Instant) -> SegmentOptions {
        let mut options = SegmentOptions {
            timestamps: self.timestamps.map(|recent| (milliseconds(now), recent)),
            ..SegmentOptions::default()
        };
        if self.sack {
            let mut sack = SackBlocks::default();
            let wire = |number: u64| self.peer_isn.wrapping_add(number as u32);
            self.inbox.blocks().take(3).for_each(|(start, end)| sack.push(wire(start), wire(end)));
            options.sack = sack;
        }
        options
    }

    fn number_expected(&self) -> Option<u32> {
        (self.inbox.next() > 0).then(|| self.peer_isn.wrapping_add(self.inbox.next() as u32))
    }

    fn segment(&mut self, piece: Piece, options: SegmentOptions) -> TcpSegment {
        let syn = piece.start == 0;
        let shift = if syn { 0 } else { self.scales.1 };
        let segment = TcpSegment {
            sequence_number: self.isn.wrapping_add(piece.start as u32),
            acknowledgment: self.number_expected(),
            syn,
            fin: piece.fin,
            rst: false,
            psh: piece.push,
            window: u16::try_from(self.inbox.window() >> shift).unwrap_or(u16::MAX),
            options,
            payload: piece.payload,
        };
        self.inbox.acknowledged();
        segment
    }
}

fn milliseconds(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// Number near `near` that is encoded as `wire` in a header.
fn unwrap(wire: u32, isn: u32, near: u64) -> Option<u64> {
    let ahead = wire.wrapping_sub(isn.wrapping_add(near as u32)) as i32;
    near.checked_add_signed(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_on_either_side_of_a_wrap() {
        assert_eq!(unwrap(5, 0xFFFF_FFF0, 10), Some(21));
        assert_eq!(unwrap(0xFFFF_FFFF, 0xFFFF_FFF0, 21), Some(15));
        assert_eq!(unwrap(0, 7, 1 << 33), Some((1 << 33) - 7));
        assert_eq!(unwrap(0, 7, 3), None);
    }
}
