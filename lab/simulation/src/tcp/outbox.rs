//! Send side: octets in order, choice of the next segment, and retransmissions.

use core::time::Duration;
use std::collections::VecDeque;

use thinair_wire::time::Instant;

use super::congestion::Congestion;
use super::connection::LossDetection;
use super::retransmission::Timeout;
use super::scoreboard::{Scoreboard, THRESHOLD};
use super::{Nagle, TcpConfig};

/// Send side of a connection. Numbers count from the SYN, which is 0; the first octet is 1, and the FIN follows the
/// last one.
#[derive(Clone, Debug)]
pub(super) struct SendSide {
    config: Rules,
    /// Octets from `kept` on.
    octets: VecDeque<u8>,
    kept: u64,
    /// SND.UNA and SND.NXT.
    acknowledged: u64,
    next: u64,
    closed: bool,
    /// End of the other side's window.
    edge: u64,
    /// Size of a segment with its options, in octets.
    segment_size: u16,
    board: Scoreboard,
    congestion: Congestion,
    timeout: Timeout,
    duplicates: u32,
    /// Number whose acknowledgment ends fast recovery.
    recovery: Option<u64>,
    /// Number before whose acknowledgment no fast recovery begins. RFC 6582, section 3.2, "recover".
    recover: u64,
    /// The next lost segment is sent regardless of the window.
    forced: bool,
    timer: Option<(Instant, SendTimer)>,
    /// Probe of this flight.
    probe: Probe,
    pub(super) retransmissions: u64,
}

/// Often used fields of a [`TcpConfig`]: a simulation may hold many thousands.
#[derive(Clone, Copy, Debug)]
struct Rules {
    window: Option<u32>,
    send_buffer: usize,
    sack: bool,
    limited_transmit: bool,
    tail_loss_probe: bool,
    nagle: Nagle,
    retries: u8,
    syn_retries: u8,
}

impl Rules {
    const fn of(config: &TcpConfig) -> Self {
        let TcpConfig { window, send_buffer, sack, limited_transmit, tail_loss_probe, .. } = *config;
        let TcpConfig { nagle, retries, syn_retries, .. } = *config;
        Self { window, send_buffer, sack, limited_transmit, tail_loss_probe, nagle, retries, syn_retries }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendTimer {
    Retransmission,
    Probe,
    /// The window of the other side is closed. RFC 9293, section 3.8.6.1.
    Persist,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    None,
    Due,
    Sent,
}

/// Segment to send: `start` is 0 if it has the SYN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) fin: bool,
    pub(super) push: bool,
    pub(super) payload: Vec<u8>,
}

/// Content of an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledgment<'a> {
    pub(super) number: u64,
    /// Window in octets, scaled.
    pub(super) window: u64,
    pub(super) blocks: &'a [(u64, u64)],
    /// The segment has no data.
    pub(super) alone: bool,
    /// Round trip by timestamps.
    pub(super) echoed: Option<Duration>,
}

/// Consequences of an acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendEffect {
    pub(super) octets: u64,
    pub(super) rtt: Option<Duration>,
    pub(super) loss: Option<LossDetection>,
}

impl SendSide {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            config: Rules::of(config),
            octets: VecDeque::new(),
            kept: 1,
            acknowledged: 0,
            next: 0,
            closed: false,
            edge: u64::from(config.mss) + 1,
            segment_size: config.mss.max(1),
            board: Scoreboard::default(),
            congestion: Congestion::new(config.algorithm, config.initial_window),
            timeout: Timeout::new(config.floor, config.initial_timeout, config.longest_timeout),
            duplicates: 0,
            recovery: None,
            recover: 0,
            forced: false,
            timer: None,
            probe: Probe::None,
            retransmissions: 0,
        }
    }

    pub(super) fn write(&mut self, octets: &[u8]) -> usize {
        let room = self.config.send_buffer.saturating_sub(self.octets.len());
        let taken = octets.len().min(if self.closed { 0 } else { room });
        self.octets.extend(octets.iter().take(taken));
        taken
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Number after the last octet: that of the FIN.
    fn end(&self) -> u64 {
        self.kept + self.octets.len() as u64
    }

    pub(super) const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub(super) const fn sent(&self) -> u64 {
        self.next
    }

    /// True if everything, with a FIN, was acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.closed && self.acknowledged > self.end()
    }

    /// Unacknowledged octets of the application.
    pub(super) fn waiting(&self) -> usize {
        self.octets.len()
    }

    pub(super) fn set_segment_size(&mut self, octets: u16) {
        self.segment_size = octets.max(1);
    }

    pub(super) const fn segment_size(&self) -> u16 {
        self.segment_size
    }

    pub(super) const fn congestion(&self) -> &Congestion {
        &self.congestion
    }

    pub(super) const fn timeout(&self) -> &Timeout {
        &self.timeout
    }

    /// Segments that count against the window.
    pub(super) fn in_flight(&self) -> u32 {
        if self.recovery.is_none() && self.acknowledged >= self.recover {
            // Of the segments that have left the network out of order, two make room. RFC 3042, section 2.
            let most = if self.config.limited_transmit { 2 } else { 0 };
            return self.board.len()
                - self.board.sacked().max(self.duplicates).min(most).min(self.board.len());
        }
        // Without SACK every duplicate acknowledgment shows that a segment has left. RFC 6582, section 3.2, step 3.
        let left = if self.board.sacked() == 0 { self.duplicates } else { 0 };
        self.board.pipe().saturating_sub(left)
    }

    pub(super) fn timer(&self) -> Option<Instant> {
        self.timer.map(|(at, _)| at)
    }

    /// Sets the window of the other side from a segment that acknowledges nothing new: a SYN.
    pub(super) fn set_window(&mut self, window: u64) {
        self.edge = self.edge.max(self.acknowledged + window);
    }

    /// Retransmits data of the SYN that was not accepted. RFC 7413, section 4.2.2.
    pub(super) fn resend_behind_syn(&mut self) {
        if !self.board.is_empty() {
            self.board.mark_all_lost();
            self.recover = self.next;
        }
    }

    pub(super) fn on_acknowledgment(&mut self, now: Instant, ack: &Acknowledgment<'_>) -> SendEffect {
        let mut effect = SendEffect::default();
        if ack.number > self.next {
            return effect;
        }
        let edge = ack.number + ack.window;
        let opened = edge != self.edge;
        if ack.number >= self.acknowledged {
            self.edge = edge;
        }
        let before = self.board.pipe();
        let advanced = ack.number > self.acknowledged;
        let progress = self.board.acknowledge(now, ack.number, ack.blocks);
        if advanced {
            self.acknowledged = ack.number;
            let gone = (ack.number - self.kept.min(ack.number)).min(self.octets.len() as u64);
            self.octets.drain(..gone as usize);
            self.kept += gone;
            effect.octets = gone;
            self.on_progress(now, ack, progress.segments, progress.rtt.or(ack.echoed), before, &mut effect);
        } else if ack.number == self.acknowledged && !self.board.is_empty() {
            let duplicate = ack.alone && !opened && (self.board.sacked() == 0 || progress.sacked);
            self.duplicates += u32::from(duplicate);
            if progress.sacked {
                effect.rtt = progress.rtt;
            }
        }
        self.look_for_losses(&mut effect);
        if advanced || self.timer.is_none() {
            self.set_timer(now);
        }
        if self.board.is_empty() {
            self.timer = None;
            self.set_timer(now);
        }
        effect
    }

    fn on_progress(
        &mut self,
        now: Instant,
        ack: &Acknowledgment<'_>,
        segments: u32,
        rtt: Option<Duration>,
        before: u32,
        effect: &mut SendEffect,
    ) {
        match rtt {
            Some(rtt) => self.timeout.sample(rtt),
            None => self.timeout.progress(),
        }
        effect.rtt = rtt;
        self.probe = Probe::None;
        match self.recovery {
            Some(point) if ack.number < point => {
                // A partial acknowledgment: without SACK the next segment is lost too. RFC 6582, section 3.2, step 3.
                if self.board.sacked() == 0 {
                    self.duplicates = self.duplicates.saturating_sub(segments);
                    self.forced |= self.board.mark_first_lost();
                }
            }
            Some(_) => {
                self.recovery = None;
                self.duplicates = 0;
            }
            None => {
                self.duplicates = 0;
                let window = self.window();
                let slow_start = self.congestion.window() < self.congestion.threshold();
                // An unused window does not grow. RFC 9293 does not define this; RFC 7661, section 4.
                if before >= window || slow_start && 2 * before >= window {
                    self.congestion.on_acked(now, segments, rtt);
                }
            }
        }
    }

    fn look_for_losses(&mut self, effect: &mut SendEffect) {
        let more = self.next < self.end();
        let lost = match self.board.sacked() {
            0 => self.recovery.is_none() && self.duplicates >= THRESHOLD,
            _ => self.board.mark_lost(more),
        };
        if lost && self.recovery.is_none() && self.acknowledged >= self.recover {
            if self.board.sacked() == 0 {
                self.board.mark_first_lost();
            }
            // FlightSize. RFC 5681, section 2.
            self.congestion.on_loss(self.board.len());
            self.recovery = Some(self.next);
            self.recover = self.next;
            self.forced = true;
            effect.loss = Some(LossDetection::Fast);
        }
    }

    /// cwnd, within the limit of the configuration.
    fn window(&self) -> u32 {
        self.congestion.window().min(self.config.window.unwrap_or(u32::MAX)).max(1)
    }

    /// Returns the next segment that may be sent. `options`: octets of options in each segment; `handshake`: only the
    /// SYN may be retransmitted.
    pub(super) fn poll(&mut self, now: Instant, options: usize, handshake: bool) -> Option<Piece> {
        let most = u64::from(self.segment_size).saturating_sub(options as u64).max(1);
        let room = self.in_flight() < self.window();
        if self.board.any_lost() && (room || self.forced) {
            let syn = self.acknowledged == 0;
            if !handshake || syn {
                let first = core::mem::take(&mut self.forced);
                self.retransmissions += 1;
                // A SYN is retransmitted without data, as by Linux. RFC 7413, section 4.2.1.
                let sent = self.board.send_again(if syn { 1 } else { most })?;
                if first {
                    self.timer = None;
                }
                self.set_timer_if_none(now);
                return Some(self.piece(sent.start, sent.end));
            }
        }
        if handshake {
            return None;
        }
        if self.probe == Probe::Due {
            self.probe = Probe::Sent;
            if self.unsent(most) == 0 {
                self.retransmissions += 1;
                let sent = self.board.probe(most)?;
                self.timer = None;
                self.set_timer(now);
                return Some(self.piece(sent.start, sent.end));
            }
        } else if !room {
            return None;
        }
        let len = self.unsent(most);
        let fin = self.closed && self.next + len == self.end();
        if len == 0 && !fin || self.next > self.end() {
            return None;
        }
        let small = len < most && !fin;
        let held = match self.config.nagle {
            Nagle::Off => false,
            Nagle::On => !self.board.is_empty(),
            Nagle::Minshall => self.board.any_small(),
        };
        if small && held {
            return None;
        }
        // An almost closed window is not filled with a small segment. RFC 9293, section 3.8.6.2.1.
        if small && self.next + len < self.end() && !self.board.is_empty() {
            return None;
        }
        let (start, end) = (self.next, self.next + len + u64::from(fin));
        self.send_new(now, start, end, small);
        Some(self.piece(start, end))
    }

    /// Returns the SYN, with up to `most` octets; and with the FIN, if allowed and no data is left.
    pub(super) fn first(&mut self, now: Instant, most: u64, fin: bool) -> Piece {
        let octets = (self.octets.len() as u64).min(most);
        let fin = fin && self.closed && 1 + octets == self.end();
        let end = 1 + octets + u64::from(fin);
        self.send_new(now, 0, end, false);
        self.piece(0, end)
    }

    /// Unsent octets that fit into a segment.
    fn unsent(&self, most: u64) -> u64 {
        self.end().min(self.edge).saturating_sub(self.next).min(most)
    }

    fn send_new(&mut self, now: Instant, start: u64, end: u64, small: bool) {
        self.board.push(now, start, end, small);
        self.next = end;
        self.set_timer_if_none(now);
    }

    fn piece(&self, start: u64, end: u64) -> Piece {
        let data_end = end.min(self.end());
        let from = start.max(self.kept);
        let (from, to) = ((from - self.kept) as usize, data_end.saturating_sub(self.kept) as usize);
        let payload = if to > from { self.octets.range(from..to).copied().collect() } else { Vec::new() };
        Piece { start, fin: end > self.end(), push: !payload.is_empty() && data_end == self.end(), payload }
    }

    fn set_timer_if_none(&mut self, now: Instant) {
        if self.timer.is_none_or(|(_, timer)| timer != SendTimer::Retransmission) {
            self.timer = None;
            self.set_timer(now);
        }
    }

    fn set_timer(&mut self, now: Instant) {
        if self.board.is_empty() {
            let stuck = self.unsent(1) == 0 && self.next < self.end() && self.acknowledged > 0;
            if !stuck {
                self.timer = None;
            } else if self.timer.is_none() {
                self.timer = Some((now + self.timeout.now(), SendTimer::Persist));
            }
            return;
        }
        let retransmission = now + self.timeout.now();
        self.timer = Some(match self.probe_after() {
            // A probe replaces a later timeout. RFC 8985, section 7.2.
            Some(after) => ((now + after).min(retransmission), SendTimer::Probe),
            None => (retransmission, SendTimer::Retransmission),
        });
    }

    /// PTO. RFC 8985, section 7.2.
    fn probe_after(&self) -> Option<Duration> {
        let possible = self.config.tail_loss_probe
            && self.config.sack
            && self.probe == Probe::None
            && self.recovery.is_none()
            && !self.board.any_lost()
            && self.board.sacked() == 0
            && self.acknowledged > 0;
        let smoothed = self.timeout.smoothed().filter(|_| possible)?;
        // A single segment may be acknowledged late.
        let late = if self.board.len() == 1 { Duration::from_millis(200) } else { Duration::from_millis(2) };
        Some(smoothed * 2 + late)
    }

    /// Handles an expired timer. Returns `None` if the connection is given up.
    pub(super) fn on_timer(&mut self, now: Instant) -> Option<SendEffect> {
        let mut effect = SendEffect::default();
        let Some((_, timer)) = self.timer.take_if(|(at, _)| *at <= now) else { return Some(effect) };
        match timer {
            SendTimer::Probe => {
                self.probe = Probe::Due;
                self.timer = Some((now + self.timeout.now(), SendTimer::Retransmission));
            }
            SendTimer::Persist => {
                self.timeout.back_off();
                // One octet beyond the window, which is acknowledged or not.
                self.edge = self.edge.max(self.next + 1);
            }
            SendTimer::Retransmission => {
                let times = self.board.transmissions_of_first();
                let allowed =
                    if self.acknowledged == 0 { self.config.syn_retries } else { self.config.retries };
                if times > allowed {
                    return None;
                }
                let in_flight = self.board.len();
                self.board.mark_all_lost();
                self.congestion.on_timeout(in_flight, times <= 1);
                self.timeout.back_off();
                (self.recovery, self.duplicates, self.probe) = (None, 0, Probe::Sent);
                (self.recover, self.forced) = (self.next, true);
                self.timer = Some((now + self.timeout.now(), SendTimer::Retransmission));
                effect.loss = Some(LossDetection::Timeout);
            }
        }
        Some(effect)
    }
}
