//! Receiving side of a carrier: from TS packets to decompressed packets.

use thinair_rohc::{CompressorConfig, Endpoint, Mode};
use thinair_ule::{Payload, Pid, Receiver, ReceiverConfig, TsPacket};
use thinair_wire::time::Instant;

use super::sender::endpoint;

/// Receiver of one stream.
#[derive(Debug)]
pub(super) struct Listener<'b> {
    receiver: Receiver<'b>,
    rohc: Option<Endpoint<'static>>,
    back: Vec<u8>,
}

impl<'b> Listener<'b> {
    /// Creates a receiver, with the channel of the sender. `buffer` must have room for the longest SNDU, and so for
    /// packets.
    pub(super) fn new(pid: Pid, buffer: &'b mut [u8], rohc: Option<(CompressorConfig, Mode)>) -> Self {
        let back = vec![0; buffer.len()];
        Self {
            receiver: Receiver::new(ReceiverConfig::new(pid), buffer),
            rohc: rohc.map(|(config, mode)| endpoint(config, mode)),
            back,
        }
    }

    /// Handles a TS packet that arrives at `now`. Calls `deliver` with each complete packet; `None` for one that could
    /// not be decompressed.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        packet: &TsPacket,
        deliver: &mut impl FnMut(Option<&[u8]>),
    ) {
        let Self { receiver, rohc, back } = self;
        receiver.receive(packet, &mut |delivery| {
            let Payload::Pdu(_, pdu) = delivery.payload else { return deliver(None) };
            match rohc {
                None => deliver(Some(pdu)),
                Some(rohc) => {
                    let done = rohc.receive(now, pdu, back);
                    deliver(done.ok().and_then(|done| back.get(..done.len)));
                }
            }
        });
    }

    /// Pending feedback, if the mode has any.
    pub(super) fn poll_feedback(&mut self) -> Option<Vec<u8>> {
        let mut octets = [0; 64];
        let len = self.rohc.as_mut()?.poll_feedback(&mut octets)?;
        octets.get(..len).map(<[u8]>::to_vec)
    }
}
