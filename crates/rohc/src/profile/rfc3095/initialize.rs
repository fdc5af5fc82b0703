//! Decompression of IR and IR-DYN packets, which set up a context, or replace what it holds. RFC 3095, section 5.7.7.

use thinair_wire::coder::{Reader, Writer};

use super::cce::CoverageContext;
use super::compress::CrcStatic;
use super::decompress::{Rfc3095ReceiverContext, UpperFields};
use super::header::{self, ExtensionLists, Layout, datagram_len};
use super::ir;
use super::list::Item;
use super::list_state::{ListState, ah_sn, resolve_current, resolve_list, stays};
use super::list_update::{ListUpdate, list_owners};
use super::rtp::RtpFields;
use super::table::Pool;
use super::{BASE_IPS, LISTS, Rfc3095Fields, UdpFields, Upper, has_rtp, upper};
use crate::decompressor::{Failure, IncomingPacket, Verified, verify_crc8};
use crate::field::movement::Movement;
use crate::flow::arrival::Arrivals;
use crate::flow::pace::steps;
use crate::id::Format;
use crate::mode::Mode;
use crate::state::DecompressorState;

impl Rfc3095ReceiverContext {
    /// Decompresses an IR packet whose profile is that of the context.
    pub(super) fn ir(
        &mut self,
        packet: &IncomingPacket<'_, '_, '_>,
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let header = packet.header;
        let mut reader = Reader::new(header.first, header.rest);
        let mut x = self.fields();
        let dynamic = ir::ir(&mut reader, &mut x, false).map_err(|_| Failure::Malformed)?;
        verify_crc8(header, &reader, Format::Ir)?;
        if !dynamic {
            return self.static_only(&x, pool, header.len_before(reader.remaining()));
        }
        self.initialize(packet, &x, Format::Ir, reader.remaining(), pool, out)
    }

    /// Decompresses an IR-DYN packet whose profile is that of the context.
    pub(super) fn ir_dyn(
        &mut self,
        packet: &IncomingPacket<'_, '_, '_>,
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        if self.health.state == DecompressorState::Nc {
            return Err(Failure::NotAllowed(Format::IrDyn));
        }
        let mut reader = Reader::new(packet.header.first, packet.header.rest);
        let mut x = self.fields();
        self.inner_ips(&mut x, pool);
        ir::ir_dyn(&mut reader, &mut x).map_err(|_| Failure::Malformed)?;
        verify_crc8(packet.header, &reader, Format::IrDyn)?;
        self.initialize(packet, &x, Format::IrDyn, reader.remaining(), pool, out)
    }

    /// Decompresses an IR packet without a dynamic chain. RFC 4815, section 6.3: "an IR without a dynamic chain simply updates
    /// the static part".
    fn static_only(
        &mut self,
        x: &Rfc3095Fields<'_>,
        pool: &mut Pool<'_>,
        header_in: usize,
    ) -> Result<Verified, Failure> {
        self.keep_static(x, pool)?;
        self.crc_static = CrcStatic::UNKNOWN;
        self.health.state.on_static();
        Ok(Verified { format: Format::Ir, header_in, header_out: 0, len: 0 })
    }

    /// Keeps the static part of a verified packet.
    fn keep_static(&mut self, x: &Rfc3095Fields<'_>, pool: &mut Pool<'_>) -> Result<(), Failure> {
        for i in BASE_IPS..x.ip_count {
            let mut octets = [0; 40];
            let mut ip = x.ips[i];
            let mut writer = Writer::new(&mut octets, 0);
            let _ = ir::ip_static(&mut writer, &mut ip);
            let len = writer.finish().map_err(|_| Failure::NoMemory)?;
            let item = Item { kind: 0, length: 0, body: octets.get(..len).unwrap_or_default() };
            self.receive(pool, i, 0, &item, None)?;
        }
        self.ip_count = x.ip_count as u8;
        self.ips.copy_from_slice(&x.ips[..BASE_IPS]);
        self.udp = x.udp;
        match &mut self.own {
            // Context(M) is zero and never updated (RFC 3095, section 5.7).
            UpperFields::Rtp(rtp) => {
                *rtp = RtpFields { m: false, ..x.rtp };
                self.sums.set_version(x.rtp_extra.version);
            }
            UpperFields::Esp(spi) => *spi = x.spi,
        }
        Ok(())
    }

    /// True if the static chain of an IR packet is that of another flow. Its compressor has then taken over the CID, and released the
    /// memory of this one.
    fn is_other_flow(&self, x: &Rfc3095Fields<'_>) -> bool {
        let mut ips = self.ips.iter().zip(&x.ips).take(x.base_ips());
        let is_same_upper = match &self.own {
            UpperFields::Rtp(rtp) => !has_rtp(self.profile) || rtp.ssrc == x.rtp.ssrc,
            UpperFields::Esp(spi) => *spi == x.spi,
        };
        let ports = |udp: &UdpFields| (udp.source_port, udp.destination_port);
        usize::from(self.ip_count) != x.ip_count
            || ips.any(|(kept, ip)| !kept.header.has_same_path(&ip.header))
            || ports(&self.udp) != ports(&x.udp)
            || !is_same_upper
    }

    /// Updates the context by the fields of a packet whose CRC is right, and delivers it.
    fn initialize(
        &mut self,
        packet: &IncomingPacket<'_, '_, '_>,
        x: &Rfc3095Fields<'_>,
        format: Format,
        payload: &[u8],
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let initialized = |layout: &Layout, out: &mut [u8]| {
            // RFC 3095, section 5.7.7: delivered "if and only if the payload is non-empty".
            if payload.is_empty() && !packet.config.interop.deliver_empty {
                let header_in = packet.header.len_before(payload);
                return Ok(Verified { format, header_in, header_out: layout.len, len: 0 });
            }
            Verified::deliver(packet.header, format, layout.len, payload, out)
        };
        let reliable = self.mode.mode() == Mode::Reliable;
        let mut lists = ListUpdate::default();
        let layout = {
            let mut extensions = ExtensionLists::default();
            for i in list_owners(x) {
                let (state, sent) = (&self.lists[i], x.extra[i].list());
                lists.lists[i] = if !reliable && stays(sent, format) {
                    resolve_current(state, i, &self.table, pool, format, &mut extensions)?
                } else {
                    resolve_list(state, sent, i, &self.table, pool, format, &mut extensions)?
                };
            }
            header::rebuild(&x.chain(), &extensions, payload.len(), out)?
        };
        if format == Format::IrDyn && self.is_refuted_by_sum(&layout, x, out, payload) {
            return Err(Failure::Crc(format));
        }
        let is_established = self.health.state != DecompressorState::Nc;
        let is_other_flow = format == Format::Ir && self.is_other_flow(x);
        let ahead = self.ahead(x.sn, self.sn);
        let goes_on = self.health.state == DecompressorState::Fc && !is_other_flow;
        if goes_on && self.is_late(ahead) && self.newest_packet().is_newer_than(x, format) {
            return initialized(&layout, out);
        }
        if is_established && is_other_flow {
            self.table.release(pool);
            self.lists = [ListState::default(); LISTS];
        }
        self.commit_lists(x, &lists, Some(format), true, pool)?;
        self.note_pattern(x, format);
        if is_established && !is_other_flow {
            self.note_offsets(x, ahead.max(0).unsigned_abs());
        } else {
            self.movement = Movement::NONE;
        }
        self.keep_static(x, pool)?;
        if x.mode != 0 {
            self.note_mode_received(x.mode);
        }
        if upper(self.profile) == Upper::UdpLite {
            let length = datagram_len(self.profile, lists.csrc_len(), payload.len());
            self.coverage = CoverageContext::initial(x.udp.coverage, length);
        }
        self.arrivals = if is_other_flow { Arrivals::NEW } else { self.arrivals.behind(packet.at, ahead) };
        self.arrivals.note(packet.at, steps(ahead));
        self.sums.set_right(layout.has_right_sum(out, payload));
        self.sn = x.sn;
        self.trust_newest();
        self.crc_static = CrcStatic::UNKNOWN;
        for (state, extra) in self.lists.iter_mut().zip(&x.extra) {
            if let Some(sn) = ah_sn(extra.list()) {
                state.note_ah_sn(sn, x.sn);
            }
        }
        self.health.state.on_success();
        initialized(&layout, out)
    }

    /// True if an IR-DYN packet behind a failed one has a wrong checksum, where they were right: its CRC does not cover the static
    /// chain, which may be that of another flow.
    fn is_refuted_by_sum(&self, layout: &Layout, x: &Rfc3095Fields<'_>, out: &[u8], payload: &[u8]) -> bool {
        !self.arrivals.has_not_failed() && self.has_right_sums(x) && !layout.has_right_sum(out, payload)
    }
}
