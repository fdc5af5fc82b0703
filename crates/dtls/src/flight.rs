//! A flight: the messages that an end sends together, until the other end has answered. RFC 6347, section 4.2.4.

use alloc::vec::Vec;
use core::time::Duration;

use thinair_wire::time::Instant;

use crate::association::Association;
use crate::config::Retransmission;
use crate::message::{MESSAGE_HEADER, header};
use crate::record::{CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER, VERSION, write_plain};

/// Time for which the last flight of a handshake can be sent again, if the other end sends no data.
const LINGER: Duration = Duration::from_secs(60);

/// Messages, their place in datagrams, and their timer.
#[derive(Default)]
pub(crate) struct Flight {
    /// Messages with their headers, one after the other.
    messages: Vec<u8>,
    /// Place of ChangeCipherSpec; messages behind it are protected.
    change: Option<usize>,
    is_change_sent: bool,
    /// Start of the message to send next, and octets of its body that are sent.
    message: usize,
    sent: usize,
    timer: Option<Timer>,
}

struct Timer {
    at: Instant,
    /// Time of the latest transmission.
    sent: Instant,
    timeout: Duration,
    transmissions: u8,
}

/// Consequence of a timer.
pub(crate) enum Due {
    /// Nothing is due.
    Nothing,
    /// The flight is to be sent once more.
    Again,
    /// It was sent as often as is allowed.
    Over {
        /// Number of transmissions.
        transmissions: u8,
    },
}

impl Flight {
    /// Appends a message, and returns its octets.
    pub(crate) fn push(&mut self, kind: u8, sequence: u16, write: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        let start = self.messages.len();
        self.messages.extend_from_slice(&[0; MESSAGE_HEADER]);
        write(&mut self.messages);
        let len = self.messages.len() - start - MESSAGE_HEADER;
        let header = header(kind, len, sequence, 0, len);
        self.messages.iter_mut().skip(start).zip(header).for_each(|(to, from)| *to = from);
        self.messages.get(start..).unwrap_or_default()
    }

    /// Appends ChangeCipherSpec.
    pub(crate) fn change_cipher_spec(&mut self) {
        self.change = Some(self.messages.len());
    }

    /// Starts the timer of a flight that waits for an answer.
    pub(crate) fn start(&mut self, now: Instant, retransmission: &Retransmission) {
        let timeout = retransmission.initial;
        self.timer = Some(Timer { at: now + timeout, sent: now, timeout, transmissions: 1 });
    }

    /// Starts the timer of a flight that waits for no answer, and is over after [`LINGER`].
    pub(crate) fn linger(&mut self, now: Instant) {
        self.timer = Some(Timer { at: now + LINGER, sent: now, timeout: LINGER, transmissions: u8::MAX });
    }

    /// Sends all messages once more.
    fn rewind(&mut self) {
        (self.message, self.sent, self.is_change_sent) = (0, 0, false);
    }

    /// Sends all messages once more, as the other end repeats its own; not if they were sent just before.
    pub(crate) fn repeat(&mut self, now: Instant, retransmission: &Retransmission) {
        if let Some(timer) = &mut self.timer
            && now.since(timer.sent) >= retransmission.initial / 2
        {
            timer.sent = now;
            self.rewind();
        }
    }

    /// Time of the next transmission.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        self.timer.as_ref().map(|timer| timer.at)
    }

    /// Advances the timer, if it is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant, retransmission: &Retransmission) -> Due {
        let Some(timer) = self.timer.as_mut().filter(|timer| timer.at <= now) else { return Due::Nothing };
        if timer.transmissions >= retransmission.transmissions {
            return Due::Over { transmissions: timer.transmissions };
        }
        timer.transmissions += 1;
        timer.timeout = (timer.timeout * 2).min(retransmission.longest);
        (timer.at, timer.sent) = (now + timer.timeout, now);
        self.rewind();
        Due::Again
    }

    /// Writes the next datagram, and returns its length. `sequence`: next sequence number of epoch 0. `None` if all is sent.
    pub(crate) fn poll(
        &mut self,
        sequence: &mut u64,
        mut association: Option<&mut Association>,
        out: &mut [u8],
    ) -> Option<usize> {
        let mut at = 0;
        while let Some(room) = out.get_mut(at..) {
            let written = if self.change == Some(self.message) && !self.is_change_sent {
                let written = write_plain(room, CHANGE_CIPHER_SPEC, VERSION, *sequence, &[1]);
                self.is_change_sent = written.is_some();
                *sequence += u64::from(written.is_some());
                written
            } else {
                self.poll_record(sequence, association.as_deref_mut(), room, at == 0)
            };
            let Some(len) = written else { break };
            at += len;
        }
        (at > 0).then_some(at)
    }

    /// Writes a record with the next message, or with the next fragment of it where `may_split`.
    fn poll_record(
        &mut self,
        sequence: &mut u64,
        association: Option<&mut Association>,
        room: &mut [u8],
        may_split: bool,
    ) -> Option<usize> {
        let rest = self.messages.get(self.message..)?;
        let (head, body) = rest.split_first_chunk::<MESSAGE_HEADER>()?;
        let [kind, l0, l1, l2, s0, s1, ..] = *head;
        let len = u32::from_be_bytes([0, l0, l1, l2]) as usize;
        let association = association.filter(|_| self.change.is_some_and(|change| self.message >= change));
        let record = association.as_ref().map_or(HEADER, |association| association.record_len(0));
        let left = len - self.sent;
        let piece = left.min(room.len().checked_sub(record + MESSAGE_HEADER)?);
        if piece < left && (!may_split || piece == 0) {
            return None;
        }
        let mut content = header(kind, len, u16::from_be_bytes([s0, s1]), self.sent, piece).to_vec();
        content.extend_from_slice(body.get(self.sent..self.sent + piece)?);
        let written = match association {
            Some(association) => association.seal(HANDSHAKE, &content, room).ok()?,
            None => {
                let written = write_plain(room, HANDSHAKE, VERSION, *sequence, &content)?;
                *sequence += 1;
                written
            }
        };
        self.sent += piece;
        if self.sent == len {
            self.message += MESSAGE_HEADER + len;
            self.sent = 0;
        }
        Some(written)
    }
}
