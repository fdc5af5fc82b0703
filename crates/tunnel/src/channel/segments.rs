//! Conversion of a compressed packet to a unit, with feedback in front if it fits, or to several segments
//! (RFC 5795, section 5.2.5).

use thinair_rohc::Compressed;
use thinair_rohc::segmentation::Segmenter;

use super::{Channel, FRONT, NotSent, Sent, bridge};
use crate::unit::{Protocol, Unit};

impl Channel {
    /// Passes on the packet in `room` after [`FRONT`], in a frame if there are addresses.
    pub(super) fn emit(
        &mut self,
        addresses: &[u8],
        compressed: &Compressed,
        sink: &mut dyn FnMut(Unit<'_>),
    ) -> Result<Sent, NotSent> {
        let (protocol, header) = kind(addresses);
        let large = self.spaces.sends_large();
        let octets = header + compressed.len;
        if octets > self.largest_unit {
            return self.emit_segments(addresses, compressed, sink);
        }
        let mut start = FRONT;
        if let Some(waiting) = self.spaces.sending().waiting_for_all()
            && waiting.may_go(self.now)
            && octets + waiting.octets().len() <= self.largest_unit
        {
            let elements = waiting.octets();
            start -= elements.len();
            if let Some(front) = self.room.get_mut(start..FRONT) {
                front.copy_from_slice(elements);
            }
            self.counters.feedback_sent.in_front += waiting.elements();
            waiting.clear(self.now);
        }
        start -= header;
        if let Some(front) = self.room.get_mut(start..start + header) {
            put_header(addresses, front);
        }
        let unit = self.room.get(start..FRONT + compressed.len).unwrap_or_default();
        sink(Unit { protocol, to: None, large, octets: unit });
        Ok(Sent { compressed: Some(*compressed), units: 1, octets: unit.len() })
    }

    /// Passes on several segments, after pending feedback: no other units may be sent in between.
    fn emit_segments(
        &mut self,
        addresses: &[u8],
        compressed: &Compressed,
        sink: &mut dyn FnMut(Unit<'_>),
    ) -> Result<Sent, NotSent> {
        let (protocol, header) = kind(addresses);
        let packet = self.room.get(FRONT..FRONT + compressed.len).unwrap_or_default();
        let size = self.largest_unit.saturating_sub(header);
        let Some(mut segmenter) = Segmenter::new(packet, size, self.mrru) else {
            return Err(NotSent::TooLong { octets: header + compressed.len, most: self.largest_unit });
        };
        let (mut units, mut octets, large) = (0, 0, self.spaces.sends_large());
        let most = self.most_alone();
        if let Some(waiting) = self.spaces.sending().waiting_for_all()
            && waiting.may_go(self.now)
        {
            let packets = waiting.go_alone(self.now, most, |packet| {
                octets += packet.len();
                sink(Unit { protocol: Protocol::Rohc, to: None, large, octets: packet });
            });
            self.counters.feedback_sent.alone += packets;
            units += packets as usize;
        }
        put_header(addresses, self.segment.get_mut(..header).unwrap_or_default());
        let mut segments = 0;
        while let Some(room) = self.segment.get_mut(header..header + size) {
            let Some(len) = segmenter.next_segment(room) else { break };
            let unit = self.segment.get(..header + len).unwrap_or_default();
            sink(Unit { protocol, to: None, large, octets: unit });
            octets += unit.len();
            segments += 1;
        }
        self.counters.segmented += 1;
        self.counters.segments_sent += segments as u64;
        Ok(Sent { compressed: Some(*compressed), units: units + segments, octets })
    }
}

/// Type of the unit, and octets before the packet in it.
fn kind(addresses: &[u8]) -> (Protocol, usize) {
    match addresses {
        [] => (Protocol::Rohc, 0),
        _ => (Protocol::Bridged, bridge::HEADER),
    }
}

/// Writes both addresses, and the EtherType of ROHC.
fn put_header(addresses: &[u8], front: &mut [u8]) {
    if let Some((into, ether_type)) = front.split_at_mut_checked(addresses.len())
        && ether_type.len() == bridge::ROHC.len()
    {
        into.copy_from_slice(addresses);
        ether_type.copy_from_slice(&bridge::ROHC);
    }
}
