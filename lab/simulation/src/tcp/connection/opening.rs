//! Opening of a connection: options and data of SYNs. RFC 9293, section 3.5; RFC 7413.

use thinair_wire::time::Instant;

use super::super::FastOpen;
use super::super::outbox::Acknowledgment;
use super::super::segment::{SegmentOptions, TcpSegment};
use super::{TcpConnection, TcpEvent, TcpState, milliseconds, unwrap};

impl TcpConnection {
    pub(super) fn on_listen(&mut self, now: Instant, segment: &TcpSegment) {
        if !segment.syn || segment.rst || segment.acknowledgment.is_some() {
            return;
        }
        self.negotiate(segment);
        self.state = TcpState::SynReceived;
        self.syn_due = true;
        let offered = segment.options.fast_open;
        self.fast = match (self.config.fast_open, offered) {
            (FastOpen::Cookieless, _) => true,
            (FastOpen::Cookie(Some(right)), Some(cookie)) => {
                // A client without the right cookie is granted it.
                self.cookie = (cookie != Some(right)).then_some(right);
                cookie == Some(right)
            }
            _ => false,
        };
        if self.fast {
            self.take(now, 1, segment);
        }
    }

    pub(super) fn on_syn_sent(&mut self, now: Instant, segment: &TcpSegment) {
        let Some(number) = segment.acknowledgment.and_then(|ack| unwrap(ack, self.isn, 1)) else { return };
        if number == 0 || number > self.outbox.sent() {
            return;
        }
        if segment.rst {
            self.end(TcpEvent::Reset);
            return;
        }
        if !segment.syn {
            return;
        }
        self.negotiate(segment);
        self.state = TcpState::Open;
        let window = u64::from(segment.window);
        let ack = Acknowledgment { number, window, blocks: &[], alone: false, echoed: None };
        let effect = self.outbox.on_acknowledgment(now, &ack);
        if self.outbox.acknowledged() < self.outbox.sent() {
            self.outbox.resend_behind_syn();
        }
        match self.config.syn_ack_wait {
            Some(wait) => self.inbox.acknowledge_by(now + wait),
            None => self.inbox.acknowledge_at_once(),
        }
        self.events.push_back(TcpEvent::Connected);
        if let Some(Some(cookie)) = segment.options.fast_open {
            self.events.push_back(TcpEvent::Cookie(cookie));
        }
        self.emit_events(&effect);
        self.take(now, 1, segment);
    }

    /// Applies the MSS, the scale and the other options of a SYN.
    fn negotiate(&mut self, segment: &TcpSegment) {
        let options = &segment.options;
        self.peer_isn = segment.sequence_number;
        self.inbox.synchronize();
        // The default MSS is 536: RFC 9293, section 3.7.1.
        self.outbox.set_segment_size(options.mss.unwrap_or(536).min(self.config.mss));
        self.config.mss = self.config.mss.min(options.mss.unwrap_or(536));
        self.sack &= options.sack_permitted;
        self.timestamps = options.timestamps.filter(|_| self.config.timestamps).map(|(value, _)| value);
        match options.window_scale.filter(|_| self.config.window_scaling) {
            Some(shift) => (self.scales.0, self.scaled) = (shift, true),
            None => self.scales = (0, 0),
        }
        self.outbox.set_window(u64::from(segment.window) + 1);
    }

    pub(super) fn synchronize(&mut self, now: Instant) -> TcpSegment {
        self.syn_due = false;
        let options = self.syn_options(now);
        let may = match (self.state, self.config.fast_open) {
            (TcpState::SynReceived, _) => self.fast,
            (_, FastOpen::Cookie(cookie)) => cookie.is_some(),
            (_, fast_open) => fast_open == FastOpen::Cookieless,
        };
        let header = TcpSegment { options, ..TcpSegment::default() }.header_len() - 20;
        let fits = usize::from(self.outbox.segment_size()).saturating_sub(header);
        let room = match self.state {
            TcpState::SynSent => self.config.syn_data.map_or(fits, |most| fits.min(most.into())),
            _ => fits,
        };
        // The SYN-ACK carries a FIN if the complete response to a SYN with data is ready. RFC 7413, section 4.2.2,
        // allows data; the receiver handles data and FIN as usual. RFC 9293, section 3.10.7.3, fourth step.
        let fin = self.state == TcpState::SynReceived && may;
        let piece = self.outbox.first(now, if may { room as u64 } else { 0 }, fin);
        self.segment(piece, options)
    }

    pub(super) fn syn_options(&self, now: Instant) -> SegmentOptions {
        let answers = self.state == TcpState::SynReceived;
        let timestamps = if answers { self.timestamps.is_some() } else { self.config.timestamps };
        SegmentOptions {
            mss: Some(self.config.mss),
            window_scale: (if answers { self.scaled } else { self.config.window_scaling })
                .then_some(self.scales.1),
            sack_permitted: self.sack,
            timestamps: timestamps.then(|| (milliseconds(now), self.timestamps.unwrap_or(0))),
            fast_open: match (answers, self.config.fast_open) {
                (true, _) => self.cookie.map(Some),
                (false, FastOpen::Cookie(cookie)) => Some(cookie),
                (false, _) => None,
            },
            ..SegmentOptions::default()
        }
    }
}
