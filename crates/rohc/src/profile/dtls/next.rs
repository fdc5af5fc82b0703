//! Fast path of the compressor. A regular packet is the one that [`header`] rebuilds from the context and the next MSN, as it does at the
//! decompressor: its headers are compared with these octets before they are parsed. All other packets take the full path,
//! `DtlsSenderContext::compress_packet`.

use super::compress::DtlsSenderContext;
use super::state::{ChecksumMode, IpIdMode};
use super::{HeaderFields, header};
use crate::compressor::Compressed;
use crate::flow::sender::Departure;

/// Largest number of octets of headers: those of IPv6 and UDP, a record with a connection ID of 20 octets, and a nonce.
const MOST: usize = 48 + 13 + 20 + 8;

impl DtlsSenderContext {
    /// Compresses the packet if it is the predicted one. `None`, without a change, if it is another one.
    #[inline]
    pub(super) fn compress_predicted(
        &mut self,
        packet: &[u8],
        departure: &mut Departure<'_, '_>,
    ) -> Option<Compressed> {
        let state = &self.state;
        let is_calm = self.establishment.is_established()
            && self.pending.is_none()
            && !self.is_first()
            && self.establishment.is_quiet(departure.now);
        let (at, len) = (state.record_at(), state.headers());
        let (headers, payload) = packet.split_at_checked(len).filter(|_| is_calm)?;
        let mut x = HeaderFields { msn: state.msn.wrapping_add(1), ..HeaderFields::default() };
        if state.path.ip_id_mode == IpIdMode::Irregular {
            x.ip_id = u16::from_be_bytes(*headers.get(4..)?.first_chunk()?);
        }
        if state.shape.kind.is_unified() {
            x.encrypted = self.encrypted(headers.get(at..)?);
        }
        state.infer(&mut x).then_some(())?;
        let mut predicted = [0; MOST];
        header::rebuild(state, &x, payload.len(), &mut predicted).ok()?;
        let checksum: [u8; 2] = *headers.get(at - 2..)?.first_chunk()?;
        *predicted.get_mut(at - 2..)?.first_chunk_mut()? = checksum;
        if predicted.get(..len)? != headers {
            return None;
        }
        x.checksum = u16::from_be_bytes(checksum);
        let mut sum = 0;
        if state.path.checksum == ChecksumMode::Zero {
            (x.checksum == 0).then_some(())?;
        } else {
            sum = header::payload_sum(payload);
            let right = header::udp_checksum(state, headers.get(at..)?, payload.len(), sum);
            (x.checksum == right).then_some(())?;
        }
        let mut ip_id = self.ip_id;
        if !state.path.v6 && ip_id.watch(state.path.ip_id_mode, x.ip_id, x.msn) != state.path.ip_id_mode {
            return None;
        }
        let last_difference = if state.shape.has_nonce || state.epoch == 0 {
            self.last_difference
        } else {
            // The octets before the ciphertext may be a nonce after all.
            let difference = payload.first_chunk().map(|nonce| state.difference(*nonce, x.number));
            (difference != Some(0) && (difference.is_none() || difference != self.last_difference))
                .then_some(())?;
            difference
        };
        let done = self.send(payload, sum, &mut x, None, departure).ok()?;
        (self.ip_id, self.last_difference) = (ip_id, last_difference);
        self.establishment.count_quiet(0);
        Some(done)
    }

    /// Encrypted sequence number of a unified header of the shape of the context.
    fn encrypted(&self, header: &[u8]) -> u16 {
        let kind = self.state.shape.kind;
        let octets = header.get(1 + usize::from(kind.cid_len)..).unwrap_or_default();
        octets.iter().take(kind.encrypted_len()).fold(0, |number, &octet| number << 8 | u16::from(octet))
    }
}
