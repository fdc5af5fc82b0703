//! Decompression of the packets of one context. RFC 3095, sections 5.3.2 and 5.4.2.

use thinair_wire::coder::{Reader, Refusal, Traced, Tracer, Writer};
use thinair_wire::crc::Check;
use thinair_wire::header::rtp::VERSION;

use super::attempt::{CandidateSearch, VerifiedHeader};
use super::cce::{Cce, CoverageContext};
use super::coap_2015::{self, CoapFields};
use super::compress::CrcStatic;
use super::doubt::{By, Doubt};
use super::header::{self, ChainFields, ExtensionLists, Layout, TransportLayout, datagram_len, ip_dynamic};
use super::ip_id;
use super::ir;
use super::late::{LATE, NewestPacket, seems_late};
use super::list::{Item, MAX_ITEMS, encoding};
use super::list_state::{List, ListState, ah_sn, compressed_icv_len, resolve_current, resolve_list, stays};
use super::reliable::NO_MODE;
use super::rtp::{CSRC_LEN, RtpFields};
use super::table::{self, ItemTable, Pool};
use super::tail::{self, Tail, random_ip_id, tail, udp_checksum};
use super::{
    BASE_IPS, CSRC, IP_ID, IpFields, IpVersion, LISTS, PacketType, Rfc3095Fields, TS, UdpFields, Upper, base,
    formats, has_rtp, has_t_bit_behind, sn_plus, timestamp, upper,
};
use crate::arrival::{Arrivals, Moment};
use crate::decompressor::{Failure, Verified, verify_crc8};
use crate::mode::{DecompressorMode, Mode};
use crate::pace::steps;
use crate::packet::PacketHeader;
use crate::profile::{Format, ProfileId};
use crate::state::DecompressorState;

/// Number of packets that fit into a pause from which on it is unusual.
const PAUSE: u64 = 16;

/// Mask of the last two packets in `Rfc3095ReceiverContext::failures`. If both failed, a header that is right by CRC-3 is
/// held back.
pub(super) const DOUBTFUL: u16 = 0b11;

/// Factor: an IP-ID that has moved within that many times the packets of a gap may have moved in the gap.
const MEMORY: u32 = 8;

/// Fields of the headers behind IP and UDP in a context, depending on its profile.
#[derive(Clone, Copy, Debug)]
pub(super) enum UpperFields {
    /// Also for profiles without such fields, which do not use it.
    Rtp(RtpFields),
    /// SPI.
    Esp(u32),
    Coap(CoapFields),
}

/// Context of one flow at the decompressor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rfc3095ReceiverContext {
    pub(crate) profile: ProfileId,
    pub(crate) state: DecompressorState,
    pub(crate) mode: DecompressorMode,
    pub(super) ip_count: u8,
    pub(super) ips: [IpFields; BASE_IPS],
    pub(super) udp: UdpFields,
    coverage: CoverageContext,
    pub(super) own: UpperFields,
    /// V of RTP.
    pub(super) version: u8,
    /// Last verified SN. With the IP-IDs and the RTP timestamp, it is ref 0 of RFC 3095, section 5.3.2.2.5.
    pub(super) sn: u32,
    /// Ref -1, while ref 0 is in doubt.
    pub(super) doubt: Doubt,
    /// Outcomes of the last 16 packets, and of the last 16 updates: 1 is a failure.
    pub(crate) failures: u16,
    pub(crate) update_failures: u16,
    /// R-mode: number of successive updates of one kind, as counted for acknowledgments.
    pub(super) sequence: u8,
    /// States of CRC-3 and CRC-7 after the CRC-STATIC octets. Only stored for at most two IP headers without lists.
    pub(super) crc_static: CrcStatic,
    /// Extension headers of both base headers, and CSRC identifiers.
    pub(super) lists: [ListState; LISTS],
    pub(super) table: ItemTable,
    /// Arrival of the last verified packet, and pace of the flow.
    pub(crate) arrivals: Arrivals,
    /// Number of packets since an IP-ID moved against the SN, at most 255; 255 if none has.
    pub(super) calm: u8,
    /// The last packet with all fields had a correct UDP checksum.
    pub(super) sums: bool,
}

impl Rfc3095ReceiverContext {
    pub(crate) fn new(profile: ProfileId) -> Self {
        Self {
            profile,
            state: DecompressorState::Nc,
            mode: DecompressorMode::default(),
            ip_count: 1,
            ips: [IpFields::default(); BASE_IPS],
            udp: UdpFields::default(),
            coverage: CoverageContext::default(),
            own: match profile {
                ProfileId::Esp => UpperFields::Esp(0),
                _ => match CoapFields::initial() {
                    Some(fields) if profile == ProfileId::Coap2015 => UpperFields::Coap(fields),
                    _ => UpperFields::Rtp(RtpFields::INITIAL),
                },
            },
            version: VERSION,
            sn: 0,
            doubt: Doubt::default(),
            failures: 0,
            update_failures: 0,
            sequence: 0,
            crc_static: CrcStatic::UNKNOWN,
            lists: [ListState::default(); LISTS],
            table: ItemTable::default(),
            arrivals: Arrivals::NEW,
            calm: u8::MAX,
            sums: false,
        }
    }

    /// Records whether an IP-ID has moved against the SN, by a packet that carries it.
    fn note_offsets(&mut self, x: &Rfc3095Fields<'_>) {
        let has_moved = self.reference(x).offsets != self.newest().offsets;
        self.calm = if has_moved { 0 } else { self.calm.saturating_add(1) };
    }

    /// True if an IP-ID may have moved in that many packets: it has moved not long before.
    pub(super) fn may_have_moved(&self, packets: u32) -> bool {
        self.calm < u8::MAX && u32::from(self.calm) < packets.saturating_mul(MEMORY)
    }

    /// Returns the context for another profile that takes it over. It starts in the initial mode (RFC 4815, section 7.2.2).
    pub(crate) fn taken_over(&self, profile: ProfileId) -> Self {
        Self { own: Self::new(profile).own, profile, mode: self.mode.after(), ..*self }
    }

    /// Returns its memory to the channel.
    pub(crate) fn release(&mut self, pool: &mut Pool<'_>) {
        self.table.release(pool);
    }

    /// The last verified SN.
    pub(crate) fn sn(&self) -> u32 {
        self.sn
    }

    #[inline(always)]
    fn fields<'p>(&self) -> Rfc3095Fields<'p> {
        let [outer, inner] = self.ips;
        let mut x = Rfc3095Fields::new(self.profile);
        x.ips[0] = outer;
        x.ips[1] = inner;
        x.ip_count = usize::from(self.ip_count);
        x.udp = self.udp;
        match self.own {
            UpperFields::Rtp(rtp) => {
                x.rtp = rtp;
                x.rtp_extra.version = self.version;
            }
            UpperFields::Esp(spi) => x.spi = spi,
            UpperFields::Coap(fields) => x.coap = Some(coap_2015::CoapHeader { fields, options: &[] }),
        }
        x.sn = self.sn;
        x
    }

    /// Adds the static parts of the IP headers beyond the second, which are in the table.
    fn inner_ips(&self, x: &mut Rfc3095Fields<'_>, pool: &Pool<'_>) {
        for i in BASE_IPS..x.ip_count {
            if let Some(place) = self.table.find(pool, i, 0) {
                let item = table::stored(pool, place);
                let _ = ir::ip_static(&mut Reader::contiguous(item.body), &mut x.ips[i]);
            }
        }
    }

    /// Decompresses an IR packet whose profile is that of the context.
    pub(crate) fn ir(
        &mut self,
        now: Moment,
        packet: &PacketHeader<'_>,
        deliver_empty: bool,
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let mut reader = Reader::new(packet.first, packet.rest);
        let mut x = self.fields();
        let dynamic = ir::ir(&mut reader, &mut x, false).map_err(|_| Failure::Malformed)?;
        verify_crc8(packet, &reader, Format::Ir)?;
        if !dynamic {
            return self.static_only(&x, pool, packet.len_before(reader.remaining()));
        }
        self.initialize(now, packet, &reader, &x, Format::Ir, deliver_empty, pool, out)
    }

    /// Decompresses an IR-DYN packet whose profile is that of the context.
    pub(crate) fn ir_dyn(
        &mut self,
        now: Moment,
        packet: &PacketHeader<'_>,
        deliver_empty: bool,
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        if self.state == DecompressorState::Nc {
            return Err(Failure::NotAllowed(Format::IrDyn));
        }
        let mut reader = Reader::new(packet.first, packet.rest);
        let mut x = self.fields();
        self.inner_ips(&mut x, pool);
        ir::ir_dyn(&mut reader, &mut x).map_err(|_| Failure::Malformed)?;
        verify_crc8(packet, &reader, Format::IrDyn)?;
        self.initialize(now, packet, &reader, &x, Format::IrDyn, deliver_empty, pool, out)
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
        self.state.on_static();
        Ok(Verified { format: Format::Ir, header_in, header_out: 0, len: 0 })
    }

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
        if let Some(header) = &x.coap {
            self.keep_coap(header, pool)?;
        }
        self.ip_count = x.ip_count as u8;
        self.ips.copy_from_slice(&x.ips[..BASE_IPS]);
        self.udp = x.udp;
        match &mut self.own {
            // Context(M) is zero and never updated (RFC 3095, section 5.7).
            UpperFields::Rtp(rtp) => {
                *rtp = RtpFields { m: false, ..x.rtp };
                self.version = x.rtp_extra.version;
            }
            UpperFields::Esp(spi) => *spi = x.spi,
            UpperFields::Coap(_) => {}
        }
        Ok(())
    }

    /// Stores an item of a packet that leads to an `update` of the lists. If there is no room, items that no list names any
    /// longer are removed.
    fn receive(
        &mut self,
        pool: &mut Pool<'_>,
        owner: usize,
        index: u8,
        item: &Item<'_>,
        update: Option<&ListUpdate>,
    ) -> Result<(), Failure> {
        if self.table.receive(pool, owner, index, item).is_ok() {
            return Ok(());
        }
        let lists = &self.lists;
        // Static chains of further IP headers use the numbers of those, and CSRC identifiers that of a second one.
        let owners = if has_rtp(self.profile) { LISTS } else { BASE_IPS };
        self.table.retain(pool, |owner, index| {
            let is_named = |list: &List| list.has(index);
            owner >= owners
                || lists.get(owner).is_some_and(|list| is_named(&list.current))
                || update.and_then(|update| update.lists.get(owner)).is_some_and(is_named)
        });
        self.table.receive(pool, owner, index, item).map_err(|_| Failure::NoMemory)
    }

    /// True if the static chain of an IR packet is that of another flow. Its compressor has then taken over the CID, and released the
    /// memory of this one.
    fn is_other_flow(&self, x: &Rfc3095Fields<'_>) -> bool {
        let mut ips = self.ips.iter().zip(&x.ips).take(x.base_ips());
        let is_same_upper = match &self.own {
            UpperFields::Rtp(rtp) => !has_rtp(self.profile) || rtp.ssrc == x.rtp.ssrc,
            UpperFields::Esp(spi) => *spi == x.spi,
            UpperFields::Coap(_) => true,
        };
        let ports = |udp: &UdpFields| (udp.source_port, udp.destination_port);
        usize::from(self.ip_count) != x.ip_count
            || ips.any(|(kept, ip)| !kept.header.has_same_path(&ip.header))
            || ports(&self.udp) != ports(&x.udp)
            || !is_same_upper
    }

    #[allow(clippy::too_many_arguments)]
    fn initialize<'p>(
        &mut self,
        now: Moment,
        packet: &PacketHeader<'_>,
        reader: &Reader<'p>,
        x: &Rfc3095Fields<'p>,
        format: Format,
        deliver_empty: bool,
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let payload = reader.remaining();
        let reliable = self.mode.mode() == Mode::Reliable;
        let mut lists = ListUpdate::default();
        let layout = {
            let mut extensions = ExtensionLists::default();
            // The static chain has all options; the dynamic chain has none.
            if let Some(header) = &x.coap {
                let in_packet = (format == Format::Ir).then_some(header.options);
                extensions.options = in_packet.map_or_else(|| self.options(pool, format), Ok).map(Some)?;
            }
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
        let is_established = self.state != DecompressorState::Nc;
        let is_other_flow = format == Format::Ir && self.is_other_flow(x);
        let ahead = self.ahead(x.sn, self.sn);
        let goes_on = self.state == DecompressorState::Fc && !is_other_flow;
        if goes_on && self.is_late(ahead) && self.newest_packet().is_newer_than(x, format) {
            return self.initialized(packet, format, &layout, payload, deliver_empty, out);
        }
        if is_established && is_other_flow {
            self.release(pool);
            self.lists = [ListState::default(); LISTS];
        }
        self.commit_lists(x, &lists, Some(format), true, pool)?;
        self.note_pattern(x, format);
        if is_established && !is_other_flow {
            self.note_offsets(x);
        } else {
            self.calm = u8::MAX;
        }
        self.keep_static(x, pool)?;
        if x.mode != 0 {
            self.note_mode_received(x.mode);
        }
        if upper(self.profile) == Upper::UdpLite {
            let length = datagram_len(self.profile, lists.csrc_len(), payload.len());
            self.coverage = CoverageContext::initial(x.udp.coverage, length);
        }
        self.arrivals = if is_other_flow { Arrivals::NEW } else { self.arrivals.behind(now, ahead) };
        self.arrivals.note(now, steps(ahead));
        self.sums = layout.has_right_sum(out, payload);
        self.sn = x.sn;
        self.trust_newest();
        self.crc_static = CrcStatic::UNKNOWN;
        for (state, extra) in self.lists.iter_mut().zip(&x.extra) {
            if let Some(sn) = ah_sn(extra.list()) {
                state.ah_offset = sn.wrapping_sub(x.sn);
            }
        }
        self.state.on_success();
        self.initialized(packet, format, &layout, payload, deliver_empty, out)
    }

    /// True if an IR-DYN packet behind a failed one has a wrong checksum, where they were right: its CRC does not cover the static
    /// chain, which may be that of another flow.
    fn is_refuted_by_sum(&self, layout: &Layout, x: &Rfc3095Fields<'_>, out: &[u8], payload: &[u8]) -> bool {
        !self.arrivals.has_not_failed() && self.has_right_sums(x) && !layout.has_right_sum(out, payload)
    }

    /// Returns the outcome of a verified IR or IR-DYN packet.
    fn initialized(
        &self,
        packet: &PacketHeader<'_>,
        format: Format,
        layout: &Layout,
        payload: &[u8],
        deliver_empty: bool,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        // RFC 3095, section 5.7.7: delivered "if and only if the payload is non-empty". Profile 0x0080 does not have this rule.
        let deliver_empty = deliver_empty || self.profile == ProfileId::Coap2015;
        if payload.is_empty() && !deliver_empty {
            let header_in = packet.len_before(payload);
            return Ok(Verified { format, header_in, header_out: layout.len, len: 0 });
        }
        Verified::deliver(packet, format, layout.len, payload, out)
    }

    /// Decompresses a packet of type 0, 1 or 2 that is not just the one [next in line](Self::next_in_line). `uo_1_id_updates` is
    /// from the configuration, `has_failed` is that of the CID.
    #[inline(never)]
    pub(crate) fn compressed(
        &mut self,
        now: Moment,
        packet: &PacketHeader<'_>,
        uo_1_id_updates: bool,
        has_failed: bool,
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        if self.state == DecompressorState::Nc {
            return Err(Failure::NotAllowed(Format::Uo0));
        }
        let mut x = self.fields();
        x.mode = NO_MODE;
        let mut reader = Reader::new(packet.first, packet.rest);
        let reliable = self.mode.mode() == Mode::Reliable;
        let format = read_base(packet, &mut reader, &mut x, self.mode.mode())?;
        // Without a CRC nothing is compared, so that these values do not matter.
        let (width, crc) = reader.crc_read().unwrap_or((3, 0));
        let check = Check::of_width(width).ok_or(Failure::Malformed)?;
        // RFC 3095, section 5.3.2.2.1, and RFC 5795, section 5.2.3: packets with a CRC of 3 bits, or none, are not used on an
        // invalid dynamic context.
        if self.state == DecompressorState::Sc && check == Check::Crc3 {
            return Err(Failure::NotAllowed(format));
        }
        if x.ip_count > BASE_IPS {
            self.inner_ips(&mut x, pool);
        }
        let mut update = ListUpdate::default();
        let mut length = 0;
        let mut passed = VerifiedHeader::default();
        let (found, payload) = {
            let mut extensions = ExtensionLists::default();
            if x.profile == ProfileId::Coap2015 {
                extensions.options = Some(self.options(pool, format)?);
            }
            let mut has = self.tail_of(&x);
            for i in list_owners(&x) {
                update.lists[i] = self.resolve(&x, i, pool, format, &mut extensions, &mut has)?;
            }
            tail(&mut reader, &mut x, &has).map_err(|_| Failure::Malformed)?;
            let payload = reader.remaining();
            if upper(self.profile) == Upper::UdpLite {
                length = datagram_len(self.profile, extensions.csrc_len(), payload.len());
                if !has.coverage && self.coverage.inferred {
                    x.udp.coverage = length as u16;
                }
            }
            let attempt = CandidateSearch {
                now,
                context: self,
                reader: &reader,
                payload: payload.len(),
                check,
                crc,
                plain: !x.extra[0].flags && !x.extra[1].flags && !x.rtp_extra.flags && x.ip_count <= BASE_IPS,
                has_failed,
            };
            let found = if reliable {
                attempt.find_securely(format, &mut x, &mut extensions, out, &mut passed)
            } else {
                attempt.find(format, &mut x, &mut extensions, out, &mut passed)
            };
            let found = found.and_then(|()| attempt.by_sum(format, &x, out, &passed));
            (found, payload)
        };
        let ahead = self.ahead(x.sn, self.sn);
        let is_late = !passed.proved && self.is_late(ahead);
        found.map_err(|failure| match failure {
            // It is no evidence about the context.
            Failure::Crc(format) if is_late || passed.looks_late && self.is_steady() => {
                Failure::Ambiguous(format)
            }
            failure => failure,
        })?;
        let (sent, len) = (x.cce.map_or(format, Cce::format), passed.layout.len);
        let deliver = |out: &mut [u8]| Verified::deliver(packet, sent, len, payload, out);
        if passed.by == By::Late
            || passed.by == By::Newest
                && is_late
                && (format.updates() || !reliable)
                && self.newest_packet().is_newer_than(&x, format)
        {
            return deliver(out);
        }
        if let By::Before { suspect, deliver: is_delivered } = passed.by {
            self.note_before(&self.reference(&x), suspect);
            if !is_delivered {
                return Err(Failure::Suspect(format));
            }
            self.arrivals.note(now, 1);
            return deliver(out);
        }
        let updates = format != Format::Uo1IdExt3 || uo_1_id_updates;
        // In R-mode the reference is older than the last packet.
        let ahead_of_last =
            if reliable { i32::from((x.sn as u16).wrapping_sub(self.doubt.sn).cast_signed()) } else { ahead };
        let packets = steps(ahead_of_last);
        if reliable && self.only_delivers(&x, format) {
            // A timer counts from the arrival of the reference.
            if x.rtp.time_stride == 0 {
                self.arrivals.note(now, packets);
            }
            return Verified::deliver(packet, format, len, payload, out);
        }
        if updates {
            self.note_mode_received(x.mode);
        }
        if passed.has_lists {
            self.commit_lists(&x, &update, None, updates, pool)?;
            for (state, extra) in self.lists.iter_mut().zip(&passed.ah_sn) {
                if let Some(sn) = *extra {
                    state.ah_offset = sn.wrapping_sub(x.sn);
                }
            }
        }
        // It may be late, or a duplicate (RFC 4224): the previous reference is kept.
        let may_be_late = !reliable && check != Check::Crc3 && ahead <= 0;
        match passed.by {
            By::Repair => self.note_repair(),
            By::Newest if may_be_late => self.note_repair(),
            By::Newest if check == Check::Crc3 => {
                self.note_update(&x, reader.collected(IP_ID).1, reader.collected(TS).1);
            }
            By::Newest | By::Before { .. } | By::Late => {}
        }
        if reader.collected(IP_ID).1 > 0 {
            self.note_offsets(&x);
        } else {
            self.calm = self.calm.saturating_add(1);
        }
        self.arrivals.note_intervals(now, packets, self.intervals(&x, packets));
        self.sn = x.sn;
        self.keep(&x, updates, length);
        if passed.proved || check != Check::Crc3 && !may_be_late || format == Format::Uo1IdExt3 && updates {
            let since = self.doubt.leap;
            self.trust_newest();
            if reliable {
                self.doubt.leap = since;
            }
        }
        let is_plain = updates && !passed.has_lists && x.ip_count <= BASE_IPS;
        self.crc_static = if is_plain { CrcStatic(passed.crc_static) } else { CrcStatic::UNKNOWN };
        self.state.on_success();
        if passed.proved {
            self.failures = 0;
        } else if check == Check::Crc3 && self.failures & DOUBTFUL == DOUBTFUL {
            // CRC-3 accepts one in eight of the headers that a damaged context produces.
            self.failures <<= 1;
            return Err(Failure::OnTrial(format));
        }
        deliver(out)
    }

    /// Decompresses the packet that is next by its `UO-0`, in a context without doubt, where no other SN, reference, or list is
    /// possible. `None`, without a change, if it is another one, or its CRC does not match.
    #[inline(always)]
    pub(crate) fn next_in_line(
        &mut self,
        now: Moment,
        packet: &PacketHeader<'_>,
        out: &mut [u8],
    ) -> Option<Verified> {
        let sn = sn_plus(self.profile, self.sn, 1);
        if u32::from(packet.first >> 3) != sn & 0xF || !self.awaits_next(now) {
            return None;
        }
        let (check, mut crc) = (Check::Crc3, self.crc_static.known()?[0]);
        let (ips, mut ids, mut udp) = (self.ips.get(..usize::from(self.ip_count))?, [0; BASE_IPS], self.udp);
        let mut reader = Reader::contiguous(packet.rest);
        let transport = TransportLayout::of(self.profile, 0);
        let mut len = transport.len();
        for (id, ip) in ids.iter_mut().zip(ips) {
            len += ip.header.version.header_len();
            let behavior = ip_id::behavior(ip);
            *id = ip.header.id;
            if ip.header.version == IpVersion::V4 && behavior.is_sequential() {
                *id = behavior.counted(behavior.counted(*id).wrapping_add(1));
            }
            random_ip_id(&mut reader, ip.is_random(), id).ok()?;
        }
        if matches!(transport, TransportLayout::Udp | TransportLayout::Rtp(_)) {
            if upper(self.profile) == Upper::UdpLite {
                self.udp_lite_in_line(&mut reader, &mut udp)?;
            } else if udp.checksum != 0 {
                udp_checksum(&mut reader, &mut udp.checksum).ok()?;
            }
        }
        let (mut rtp, mut spi) = (RtpFields::INITIAL, 0);
        match &self.own {
            UpperFields::Rtp(kept) if matches!(transport, TransportLayout::Rtp(_)) => {
                rtp = RtpFields { ts: timestamp::ahead_of(kept, 1), ..*kept };
            }
            UpperFields::Rtp(_) => {}
            UpperFields::Esp(kept) => spi = *kept,
            UpperFields::Coap(_) => return None,
        }
        let payload = reader.remaining();
        let total = len + payload.len();
        let headers = out.get_mut(..len)?;
        let mut at = 0;
        for (id, ip) in ids.iter().zip(ips) {
            let behind = total - at - ip.header.version.header_len();
            let end = ip.header.write(*id, ip.header.protocol, behind, headers, at).ok()?;
            crc = ip_dynamic(check, crc, headers.get(at..end)?, ip.header.version);
            at = end;
        }
        let (udp, rtp) = (&udp, &rtp);
        let chain =
            ChainFields { profile: self.profile, sn, ips, udp, spi, rtp, version: self.version, coap: None };
        header::write_upper(&chain, &ExtensionLists::default(), total, headers, at).ok()?;
        if transport.crc_dynamic(check, crc, headers) != packet.first & 7 {
            return None;
        }
        let verified = Verified::deliver(packet, Format::Uo0, len, payload, out).ok()?;
        for (kept, id) in self.ips.iter_mut().zip(ids) {
            kept.header.id = id;
        }
        if let (TransportLayout::Rtp(_), UpperFields::Rtp(kept)) = (transport, &mut self.own) {
            kept.ts = rtp.ts;
        }
        self.arrivals.note(now, 1);
        self.sn = sn;
        self.calm = self.calm.saturating_add(1);
        Some(verified)
    }

    /// Reads the fields of UDP-Lite of a packet without extension.
    #[inline]
    fn udp_lite_in_line(&self, reader: &mut Reader<'_>, udp: &mut UdpFields) -> Option<()> {
        tail::udp_lite(reader, udp, self.coverage.present).ok()?;
        if !self.coverage.present && self.coverage.inferred {
            udp.coverage = datagram_len(self.profile, 0, reader.remaining().len()) as u16;
        }
        Some(())
    }

    /// True if nothing is in doubt, and the next packet can only be the one after the last.
    #[inline]
    fn awaits_next(&self, now: Moment) -> bool {
        self.profile != ProfileId::Coap2015
            && self.state == DecompressorState::Fc
            && self.mode.mode() != Mode::Reliable
            && !self.doubt.is_open()
            && self.failures & DOUBTFUL != DOUBTFUL
            && self.arrivals.has_not_failed()
            && self.is_next(now, 1 << 4)
    }

    /// Number of times between packets from ref 0 to a packet `ahead` of it: RTP timestamps continue in pauses.
    fn intervals(&self, x: &Rfc3095Fields<'_>, ahead: u32) -> u32 {
        match &self.own {
            UpperFields::Rtp(rtp) if has_rtp(self.profile) => {
                let step = x.rtp.ts.wrapping_sub(rtp.ts);
                let strides = step.checked_div(rtp.stride).unwrap_or(0);
                if rtp.stride > 1 && step.is_multiple_of(rtp.stride) { strides.max(ahead) } else { ahead }
            }
            _ => ahead,
        }
    }

    /// Returns the fields in the tail of a packet, without extension headers.
    fn tail_of(&self, x: &Rfc3095Fields<'_>) -> Tail {
        let coverage = self.coverage.present || x.cce.is_some();
        Tail { udp_checksum: self.udp.checksum != 0, coverage, icv: [0; BASE_IPS] }
    }

    /// Resolves the list of a compressed packet for header `owner`, and sets the parts of the tail that depend on it.
    fn resolve<'i>(
        &self,
        x: &Rfc3095Fields<'i>,
        owner: usize,
        pool: &'i Pool<'_>,
        format: Format,
        extensions: &mut ExtensionLists<'i>,
        has: &mut Tail,
    ) -> Result<List, Failure> {
        let (state, list) = (&self.lists[owner], x.extra[owner].list());
        let resolved = if has_list(x, owner) {
            resolve_list(state, list, owner, &self.table, pool, format, extensions)?
        } else if state.current.is_empty() {
            return Ok(state.current);
        } else {
            resolve_current(state, owner, &self.table, pool, format, extensions)?
        };
        if let Some(icv) = has.icv.get_mut(owner) {
            *icv = compressed_icv_len(extensions, owner, list);
        }
        Ok(resolved)
    }

    /// Stores the fields of a verified packet, which has `length` octets from the UDP-Lite header on.
    #[inline]
    fn keep(&mut self, x: &Rfc3095Fields<'_>, updates: bool, length: usize) {
        if !updates {
            // RFC 4815, section 6.2: such packets "only [update] TS, SN, IP-ID".
            for (kept, ip) in self.ips.iter_mut().zip(&x.ips) {
                kept.header.id = ip.header.id;
            }
            if let UpperFields::Rtp(rtp) = &mut self.own {
                rtp.ts = x.rtp.ts;
            }
            return;
        }
        for (kept, ip) in self.ips.iter_mut().zip(&x.ips).take(x.base_ips()) {
            *kept = *ip;
        }
        if let (true, UpperFields::Rtp(rtp)) = (has_rtp(self.profile), &mut self.own) {
            // RFC 4815, section 4.6: with Tsc = 1, "field(TS_STRIDE) MUST be ignored and discarded".
            let stride = if x.rtp_extra.scaled { rtp.stride } else { x.rtp.stride };
            *rtp = RtpFields { m: false, stride, ..x.rtp };
        }
        if x.cce == Some(Cce::Off) {
            self.udp.coverage = x.udp.coverage;
        }
        self.coverage.update(x.cce, x.udp.coverage, length);
    }

    /// Stores the items of a verified packet, and its lists if the format `keeps` them.
    fn commit_lists(
        &mut self,
        x: &Rfc3095Fields<'_>,
        update: &ListUpdate,
        initialization: Option<Format>,
        keeps: bool,
        pool: &mut Pool<'_>,
    ) -> Result<(), Failure> {
        let reliable = self.mode.mode() == Mode::Reliable;
        for i in list_owners(x) {
            let sent = x.extra[i].list();
            if initialization.is_none() && !has_list(x, i) {
                continue;
            }
            let mut items = sent.items.iter();
            for xi in sent.xis[..sent.xi_count().min(MAX_ITEMS)].iter().filter(|xi| xi.x) {
                let Some(item) = items.next() else { break };
                self.receive(pool, i, xi.index, item, Some(update))?;
            }
            let state = &mut self.lists[i];
            // RFC 3095, section 5.8.2.1 d): a list without gen_id does not update the context; in an IR packet it is the only
            // one. In R-mode all lists update it.
            if keeps && (initialization == Some(Format::Ir) || sent.has_gen_id || reliable) {
                state.current = update.lists[i];
            }
            if reliable && !sent.has_gen_id {
                state.remember_by_sn(x.sn as u8, update.lists[i]);
                if sent.encoding != encoding::GENERIC {
                    state.forget_before(sent.ref_id);
                }
            }
            if keeps && sent.has_gen_id {
                state.remember(sent.gen_id, update.lists[i]);
                if sent.encoding != encoding::GENERIC {
                    state.forget_before(sent.ref_id);
                }
            }
        }
        Ok(())
    }

    /// True if a packet that is `ahead` of ref 0 by that much is late or a duplicate (RFC 4224), and does not show that ref 0 is
    /// wrong.
    pub(super) fn is_late(&self, ahead: i32) -> bool {
        seems_late(ahead) && self.is_steady()
    }

    /// The packet of ref 0.
    fn newest_packet(&self) -> NewestPacket<'_> {
        let ips = self.ips.get(..usize::from(self.ip_count)).unwrap_or(&self.ips);
        NewestPacket { profile: self.profile, sn: self.sn, ips, rtp: self.rtp() }
    }

    fn is_steady(&self) -> bool {
        self.failures & DOUBTFUL == 0 && self.arrivals.failed() < LATE as u8
    }

    /// Counts a verified packet.
    #[inline]
    pub(crate) fn note_success(&mut self, update: bool) {
        self.failures <<= 1;
        if update {
            self.update_failures <<= 1;
            // An update was verified by 7 or 8 bits: earlier failures are no longer evidence about the context.
            self.failures = 0;
        }
    }

    /// True if nothing was verified for so long that no channel would have delayed a packet until now.
    pub(crate) fn is_behind_pause(&self, now: Moment) -> bool {
        self.arrivals.is_behind(now, PAUSE)
    }

    /// Passes the fields of a packet to `on_field`, as far as this context allows, and returns its format.
    pub(crate) fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        pool: &Pool<'_>,
        mut on_field: impl FnMut(Traced<'p>),
    ) -> Option<Format> {
        let reader = Reader::new(packet.first, packet.rest);
        let mut x = self.fields();
        self.inner_ips(&mut x, pool);
        if packet.first & 0b1111_1110 == 0b1111_1100 {
            let _ = ir::ir(&mut Tracer::new(reader, on_field), &mut x, false);
            return Some(Format::Ir);
        }
        if packet.first == 0b1111_1000 {
            let _ = ir::ir_dyn(&mut Tracer::new(reader, on_field), &mut x);
            return Some(Format::IrDyn);
        }
        let format = read_base(packet, &mut { reader }, &mut x, self.mode.mode()).ok()?;
        let mut tracer = Tracer::new(reader, &mut on_field);
        base(format, &mut tracer, &mut x).ok()?;
        let mut extensions = ExtensionLists::default();
        let mut has = self.tail_of(&x);
        for i in list_owners(&x) {
            if self.resolve(&x, i, pool, format, &mut extensions, &mut has).is_err() {
                return Some(format);
            }
        }
        let _ = tail(&mut tracer, &mut x, &has);
        Some(format)
    }
}

/// Lists after a packet.
#[derive(Clone, Copy, Debug, Default)]
struct ListUpdate {
    lists: [List; LISTS],
}

impl ListUpdate {
    /// Octets of CSRC identifiers.
    fn csrc_len(&self) -> usize {
        self.lists[CSRC].len() * CSRC_LEN
    }
}

/// Iterates over the owners of lists in a packet: the base headers, and CSRC identifiers.
#[inline]
fn list_owners(x: &Rfc3095Fields<'_>) -> impl Iterator<Item = usize> + use<> {
    (0..BASE_IPS.min(x.ip_count)).chain(has_rtp(x.profile).then_some(CSRC))
}

/// True if a compressed packet carries a list.
#[inline]
fn has_list(x: &Rfc3095Fields<'_>, owner: usize) -> bool {
    x.extra[owner].has_list && (x.extra[owner].ipx || owner == CSRC)
}

/// Finds the compressed format of a packet.
#[inline]
fn read_base<'p>(
    packet: &PacketHeader<'p>,
    reader: &mut Reader<'p>,
    x: &mut Rfc3095Fields<'p>,
    mode: Mode,
) -> Result<Format, Failure> {
    let mut first = packet.first;
    if upper(x.profile) == Upper::UdpLite
        && let Some(kind) = Cce::of(packet.first)
    {
        x.cce = Some(kind);
        first = packet.rest.first().copied().ok_or(Failure::Malformed)?;
    }
    let packet_type = PacketType::of(first);
    for &format in formats(x.profile, mode).iter().filter(|format| packet_type.has(**format)) {
        *reader = Reader::new(packet.first, packet.rest);
        let step = if has_t_bit_behind(format) {
            // An extension 3 of another format may have changed fields of the IP headers before the mismatch is found.
            let mut read = *x;
            base(format, reader, &mut read).map(|()| *x = read)
        } else {
            base(format, reader, x)
        };
        match step {
            // RFC 4019, section 5.3.2.2: only packets that update the context change the coverage.
            Ok(()) if !format.updates() && matches!(x.cce, Some(Cce::On | Cce::Off)) => {
                return Err(Failure::Malformed);
            }
            Ok(()) => return Ok(format),
            Err(Refusal::NotThis) => {}
            Err(Refusal::Malformed | Refusal::DoesNotFit) => return Err(Failure::Malformed),
        }
    }
    Err(Failure::Malformed)
}
