//! Changes that a packet makes in its context: how often each has to be sent, and from which SN on. RFC 3095, sections 5.3.1.1 and 5.7.

use thinair_wire::coder::Writer;

use super::attempt::ahead;
use super::classify::ClassifiedPacket;
use super::compress::{CSRC_STATE, Rfc3095SenderContext, ip_header, udp_fields};
use super::ip_id;
use super::ir;
use super::list::Item;
use super::list_plan::{Assurance, ListState, SentItems, items};
use super::pending::changes;
use super::table::{self, Pool};
use super::timestamp::{SnStep, offset};
use super::{BASE_IPS, CSRC, IpFields, IpVersion, Rfc3095Fields, Upper, upper};
use crate::compressor::{CompressorConfig, Refused};
use crate::flow::caution::Moved;

/// Changes of a packet, as far as the rest of the compression depends on them.
pub(super) struct Noted {
    /// SN from which on its changes count as sent.
    pub(super) since: u16,
    /// It has lists, or its flow had some.
    pub(super) has_lists: bool,
    /// Its CRC-STATIC octets are those of the packet before.
    pub(super) is_static_same: bool,
}

impl Rfc3095SenderContext {
    /// Copies the fields of a packet, and records what it changes.
    pub(super) fn note<'p>(
        &mut self,
        x: &mut Rfc3095Fields<'p>,
        plan: &ClassifiedPacket<'p>,
        config: &CompressorConfig,
        pool: &mut Pool<'_>,
    ) -> Result<Noted, Refused> {
        let (now, repetitions) = (plan.now, config.repetitions);
        x.sn = plan.sn().unwrap_or(self.next_sn());
        x.ip_count = plan.ip_count;
        x.udp = udp_fields(plan);
        x.spi = plan.esp.spi;
        x.mode = self.mode.bits();
        let mut is_static_same = !self.sns.is_empty() || self.crc_static.known().is_none();
        let is_noted = self.caution.begin_packet(now);
        self.note_ips(x, plan, config, is_noted, &mut is_static_same);
        if plan.ip_count > BASE_IPS {
            self.note_further_ips(x, plan, repetitions, pool)?;
        }
        if upper(self.profile) == Upper::Udp && (x.udp.checksum == 0) != (self.udp.checksum == 0) {
            // Context(UDP Checksum) is updated only by IR or IR-DYN (RFC 3095, section 5.7).
            self.require_dynamic(x.sn, repetitions);
        }
        self.note_sn(x.sn, repetitions);
        let since = self.since(x.sn);
        if upper(self.profile) == Upper::UdpLite {
            let (length, pending_since) = (plan.upper_len(), &mut self.pending_since);
            x.cce = self.coverage.note(x.udp.coverage, length, repetitions, since, pending_since);
        }
        if let Some(header) = &plan.rtp
            && let Some(rtp) = self.own.rtp_mut()
        {
            let sn = SnStep { sn: x.sn, before: self.sn, since };
            // R-mode uses no timer, since its references are older than the last packet.
            let link = plan.timer.as_ref().filter(|_| !self.mode.is_secure());
            let noted = rtp.note(now, x, header, sn, config, link);
            is_static_same &= noted.is_static_same;
            if noted.is_changed {
                self.pending_since = since;
            }
            let step = x.rtp.ts.wrapping_sub(rtp.fields.ts);
            let steps = ahead(self.profile, x.sn, self.sn) as u32;
            // A timer tells both ends how far a timestamp goes on in a pause.
            let is_noted = is_noted && x.rtp.time_stride == 0;
            if is_noted && step != x.rtp.stride.wrapping_mul(steps) {
                self.caution.note_moved(Moved::Timestamp);
            }
            if is_noted && offset(x.rtp.ts, x.rtp.stride) != offset(rtp.fields.ts, x.rtp.stride) {
                self.caution.note_moved(Moved::TimestampOffset);
            }
        }
        let assurance = Assurance::of(self.mode, repetitions);
        let may_have_lists =
            plan.has_extensions || plan.rtp.is_some() || self.lists.iter().any(ListState::is_used);
        let has_lists = may_have_lists && self.note_lists(plan, x.sn, since, assurance, repetitions, pool)?;
        let is_static_same = is_static_same && !has_lists && x.ip_count <= BASE_IPS;
        Ok(Noted { since, has_lists, is_static_same })
    }

    /// Copies the fields of the two base headers, and records their changes.
    fn note_ips(
        &mut self,
        x: &mut Rfc3095Fields<'_>,
        plan: &ClassifiedPacket<'_>,
        config: &CompressorConfig,
        is_noted: bool,
        is_static_same: &mut bool,
    ) {
        let sid = self.sid_allowed(config);
        let (sn, repetitions) = (u32::from(self.since(x.sn)), config.repetitions.max(1));
        for (i, header) in plan.ips().iter().take(BASE_IPS).enumerate() {
            let (ip, kept) = (&mut x.ips[i], &self.ips[i]);
            *ip = *kept;
            ip.header.update(header);
            if ip.header.version == IpVersion::V4 && !self.sns.is_empty() {
                let next = self.watchers[i].next(ip_id::behavior(ip), ip.header.id, kept.header.id, sid);
                ip_id::set(ip, next);
            }
            let offset = |ip: &IpFields, sn: u32| ip.counted_id().wrapping_sub(sn as u16);
            if is_noted && ip.holds_ip_id() && !ip.sid && offset(ip, x.sn) != offset(kept, self.sn) {
                self.caution.note_moved(Moved::IpId);
            }
            if ip.is_like(kept) {
                continue;
            }
            *is_static_same &= self.note_ip(i, x, sn, repetitions);
        }
    }

    /// Records the changes of one IP header. Returns true if its CRC-STATIC octets are unchanged.
    #[cold]
    fn note_ip(&mut self, i: usize, x: &Rfc3095Fields<'_>, sn: u32, repetitions: u8) -> bool {
        let (ip, kept, pending) = (&x.ips[i], &self.ips[i], &mut self.pending[i]);
        let is_other = [
            ip.header.tos != kept.header.tos,
            ip.header.ttl != kept.header.ttl,
            ip.header.df != kept.header.df,
        ];
        for (field, is_other) in [changes::TOS, changes::TTL, changes::FLAGS].into_iter().zip(is_other) {
            if is_other {
                pending.require(field, repetitions);
            }
        }
        let is_static_same = is_other == [false; 3];
        let is_id_same = (ip.rnd, ip.nbo) == (kept.rnd, kept.nbo);
        if !is_id_same {
            pending.require(changes::FLAGS, repetitions);
            pending.require(changes::ID, repetitions);
            self.offsets[i].clear();
        }
        let is_sid_same = ip.sid == kept.sid;
        if !(is_static_same && is_id_same) {
            self.pending_since = sn as u16;
            self.established = false;
        }
        if !is_sid_same {
            // "Only IR and IR-DYN packets can update context(SID)" (RFC 3843, section 3.3).
            self.require_dynamic(sn, repetitions);
        }
        is_static_same
    }

    /// Records the lists of a packet. Returns true if there is or was one.
    fn note_lists(
        &mut self,
        plan: &ClassifiedPacket<'_>,
        sn: u32,
        since: u16,
        assurance: Assurance,
        repetitions: u8,
        pool: &mut Pool<'_>,
    ) -> Result<bool, Refused> {
        let mut has_lists = false;
        for (i, ip) in plan.ips().iter().take(BASE_IPS).enumerate() {
            if ip.extension_count > 0 || self.lists[i].is_used() {
                let mut sent_items = SentItems { owner: i, table: &mut self.table, pool };
                let noted = self.lists[i].note(items(ip), sn, repetitions, assurance, &mut sent_items);
                noted.map_err(|_| Refused::ByThisPacket)?;
                self.lists[i].count_since(sn as u16, since);
                has_lists = true;
            }
        }
        if let Some(header) = plan.csrc(self.lists[CSRC_STATE].is_used()) {
            let items = header.items().map(Some);
            let mut sent_items = SentItems { owner: CSRC, table: &mut self.table, pool };
            let noted = self.lists[CSRC_STATE].note(items, sn, repetitions, assurance, &mut sent_items);
            noted.map_err(|_| Refused::ByThisPacket)?;
            self.lists[CSRC_STATE].count_since(sn as u16, since);
            has_lists = true;
        }
        self.established &= !has_lists;
        Ok(has_lists)
    }

    /// Records IP headers beyond the second: their static part is in the table, and every packet has their dynamic part.
    fn note_further_ips(
        &mut self,
        x: &mut Rfc3095Fields<'_>,
        plan: &ClassifiedPacket<'_>,
        repetitions: u8,
        pool: &mut Pool<'_>,
    ) -> Result<(), Refused> {
        for (i, ip) in plan.ips().iter().enumerate().skip(BASE_IPS) {
            let mut fields = IpFields { header: ip_header(ip), nbo: true, ..IpFields::EMPTY };
            fields.terminates = plan.terminates && i + 1 == plan.ip_count;
            x.ips[i] = fields;
            let mut octets = [0; 40];
            let mut writer = Writer::new(&mut octets, 0);
            let _ = ir::ip_static(&mut writer, &mut fields);
            let len = writer.finish().map_err(|_| Refused::NoRoom)?;
            let item = Item { kind: 0, length: 0, body: octets.get(..len).unwrap_or_default() };
            let place = self.table.find(pool, i, 0);
            if place.is_none_or(|place| table::stored(pool, place) != item) {
                self.table.put(pool, i, 0, &item).map_err(|_| Refused::ByThisPacket)?;
                self.require_ir(x.sn, repetitions);
            }
        }
        Ok(())
    }
}
