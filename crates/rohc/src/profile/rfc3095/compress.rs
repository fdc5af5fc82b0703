//! Compression of the packets of one context. RFC 3095, sections 5.3.1 and 5.4.1.

use thinair_wire::coder::Writer;
use thinair_wire::crc::Check;
use thinair_wire::header::chain::{self, Ip};
use thinair_wire::header::protocol;
use thinair_wire::range::{Range, SequenceRange};

use super::attempt::ahead;
use super::cce::{Cce, Coverage};
use super::choose::has_extension_3;
use super::classify::ClassifiedPacket;
use super::confirm::Initialization;
use super::header::Layout;
use super::ip_id;
use super::ir;
use super::list_plan::{Assurance, ListState, Scope, SentItems, items};
use super::mode::CompressorMode;
use super::note::Noted;
use super::own::{RtpContext, UpperContext};
use super::pending::changes;
use super::table::{ItemTable, Pool};
use super::{
    BASE_IPS, CSRC, IpFields, IpHeader, IpVersion, Rfc3095Fields, UdpFields, Upper, has_rtp, rtp, sn_plus,
    upper,
};
use crate::compressor::{Compressed, CompressorConfig, Refused};
use crate::field::ip_id::Watcher;
use crate::field::rtp::{Guess, is_step};
use crate::flow::caution::Caution;
use crate::flow::establish::Establishment;
use crate::flow::pace::steps;
use crate::flow::pending::Pending;
use crate::flow::sender::Departure;
use crate::framing::CidFrame;
use crate::id::{Format, ProfileId};
use crate::state::CompressorState;

/// Index of the list of CSRC identifiers: that of a second IP header, which RTP does not have.
pub(super) const CSRC_STATE: usize = 1;

/// States of the checks after the CRC-STATIC octets, or a mark that these may have changed, in one value.
#[derive(Clone, Copy, Debug)]
pub(super) struct CrcStatic(pub(super) [u8; 2]);

impl CrcStatic {
    /// A value above all states of CRC-3.
    pub(super) const UNKNOWN: Self = Self([u8::MAX; 2]);

    #[inline]
    pub(super) fn known(self) -> Option<[u8; 2]> {
        (self.0[0] != u8::MAX).then_some(self.0)
    }
}

/// Context of one flow at the compressor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rfc3095SenderContext {
    pub(crate) profile: ProfileId,
    pub(crate) mode: CompressorMode,
    pub(super) establishment: Establishment,
    /// The SN from which on an acknowledgment ends the state, or confirms the mode.
    pub(super) state_since: u16,
    pub(super) ip_count: u8,
    pub(super) ips: [IpFields; BASE_IPS],
    pub(super) udp: UdpFields,
    pub(super) coverage: Coverage,
    pub(super) own: UpperContext,
    pub(super) sn: u32,
    /// The low 16 bits of the SN.
    pub(super) sns: SequenceRange<u16>,
    /// IP-ID offsets of both headers.
    pub(super) offsets: [Range<u16>; BASE_IPS],
    pub(super) watchers: [Watcher; BASE_IPS],
    pub(super) pending: [Pending<{ changes::COUNT }>; BASE_IPS],
    /// The SN of the first packet with the newest of these changes.
    pub(super) pending_since: u16,
    /// States of CRC-3 and CRC-7 after the CRC-STATIC octets.
    pub(super) crc_static: CrcStatic,
    /// Packets left that must not use CRC-3 (RFC 3095, section 5.9.2).
    pub(super) strong: u8,
    /// SO state, and no change pending: the next packet may be regular (`next.rs`).
    pub(super) established: bool,
    pub(super) lists: [ListState; BASE_IPS],
    pub(super) table: ItemTable,
    pub(super) initialization: Initialization,
    pub(super) caution: Caution,
}

impl Rfc3095SenderContext {
    /// Creates a context for the flow of a packet. The SN of the packet is the one after `sn`.
    pub(crate) fn new(plan: &ClassifiedPacket<'_>, sn: u16) -> Self {
        let sn = match plan.sn() {
            Some(sn) => sn_plus(plan.profile, sn, u32::MAX),
            None => u32::from(sn),
        };
        let own = match (&plan.rtp, upper(plan.profile)) {
            #[cfg(feature = "rtp")]
            (Some(header), _) if has_rtp(plan.profile) => {
                UpperContext::Rtp(RtpContext { fields: header.fields, ..RtpContext::default() })
            }
            (_, Upper::Esp) => UpperContext::Esp(plan.esp.spi),
            (_, Upper::Udp | Upper::UdpLite) => {
                UpperContext::Guess(Guess::of(plan.rtp.as_ref().map(rtp::RtpHeader::proof)))
            }
            _ => UpperContext::None,
        };
        let mut context = Self {
            profile: plan.profile,
            mode: CompressorMode::default(),
            establishment: Establishment::new(plan.now, 1),
            state_since: sn as u16,
            ip_count: plan.ip_count as u8,
            ips: [IpFields::default(); BASE_IPS],
            udp: udp_fields(plan),
            coverage: Coverage::default(),
            own,
            sn,
            sns: SequenceRange::new(),
            offsets: [Range::new(); BASE_IPS],
            watchers: [Watcher::default(); BASE_IPS],
            pending: [Pending::NONE; BASE_IPS],
            pending_since: sn as u16,
            crc_static: CrcStatic::UNKNOWN,
            strong: 0,
            established: false,
            lists: [ListState::default(); BASE_IPS],
            table: ItemTable::default(),
            initialization: Initialization::CONFIRMED,
            caution: Caution::default(),
        };
        for (kept, ip) in context.ips.iter_mut().zip(plan.ips()) {
            kept.header = ip_header(ip);
        }
        if let Some(last) = context.ips.get_mut(plan.ip_count - 1) {
            last.terminates = plan.terminates;
        }
        context
    }

    /// Sets the initial values from the channel: the mode of the context whose CID it takes over, and a first gen_id that the
    /// decompressor has hardly received on this CID.
    pub(crate) fn start(&mut self, before: Option<&Self>, gen_id: u8, config: &CompressorConfig) {
        // RFC 4815, section 7.2: the mode is inherited within a profile, and within it alone.
        self.mode = before.map_or_else(CompressorMode::default, |before| {
            Self::mode_after(before.mode, before.profile == self.profile)
        });
        self.mode.on_initialization();
        self.mode.on_sent(false);
        if before.is_some() {
            self.initialization.restart();
        }
        let before = before.filter(|before| before.profile == self.profile);
        self.crc_static = before.map_or(CrcStatic::UNKNOWN, |before| before.crc_static);
        if let (Some(rtp), Some(_)) = (self.own.rtp_mut(), before) {
            rtp.timestamps.note_stride_sent();
        }
        let sid = self.sid_allowed(config);
        for (ip, watcher) in self.ips.iter_mut().zip(&mut self.watchers) {
            if ip.header.version == IpVersion::V4 {
                ip_id::set(ip, watcher.first(ip.header.id, ip.header.df, sid));
            }
        }
        self.lists.iter_mut().for_each(|list| list.start(gen_id));
        self.state_since = self.next_sn() as u16;
        self.establishment.require_ir(self.ir_packets(config));
    }

    /// SN of the next packet: the one that the compressor generates, or the expected one.
    pub(super) fn next_sn(&self) -> u32 {
        sn_plus(self.profile, self.sn, 1)
    }

    /// True if a packet belongs to this flow.
    #[inline(never)]
    pub(crate) fn is_flow_of(&self, plan: &ClassifiedPacket<'_>) -> bool {
        self.profile == plan.profile
            && usize::from(self.ip_count) == plan.ip_count
            && self.udp.source_port == plan.udp.source_port
            && self.udp.destination_port == plan.udp.destination_port
            && self.ips.iter().zip(plan.ips()).all(|(kept, ip)| kept.header.is_path_of(ip))
            && self.ips.get(plan.ip_count - 1).is_none_or(|last| last.terminates == plan.terminates)
            && match &self.own {
                _ if matches!(self.profile, ProfileId::Udp | ProfileId::UdpLite | ProfileId::Ip) => true,
                UpperContext::None | UpperContext::Guess(_) => true,
                UpperContext::Esp(spi) => *spi == plan.esp.spi,
                #[cfg(feature = "rtp")]
                UpperContext::Rtp(rtp) => {
                    plan.rtp.is_some_and(|header| header.fields.ssrc == rtp.fields.ssrc)
                }
            }
    }

    /// True if SID may be used: it is defined in profiles 0x0004, 0x0007 and 0x0008 (RFC 3843, section 3.3; RFC 4019).
    pub(super) fn sid_allowed(&self, config: &CompressorConfig) -> bool {
        matches!(self.profile, ProfileId::Ip | ProfileId::RtpUdpLite | ProfileId::UdpLite)
            || config.interop.sid_everywhere
    }

    /// Compresses a packet of this flow on the full path. If it fails, the next packet carries everything that this one had to.
    pub(crate) fn compress(
        &mut self,
        plan: &ClassifiedPacket<'_>,
        pool: &mut Pool<'_>,
        departure: &mut Departure<'_, '_>,
    ) -> Result<Compressed, Refused> {
        let lists = self.lists;
        let result = self.try_compress(plan, &lists, pool, departure);
        if result.is_err() {
            self.take_back(&lists);
        }
        result
    }

    /// Takes lists back: items that a packet has put into the table were not sent, or are not kept, and a reference may name them.
    #[cold]
    fn take_back(&mut self, lists: &[ListState; BASE_IPS]) {
        self.lists = *lists;
        self.lists.iter_mut().for_each(ListState::forget_reference);
    }

    fn try_compress(
        &mut self,
        plan: &ClassifiedPacket<'_>,
        lists: &[ListState; BASE_IPS],
        pool: &mut Pool<'_>,
        departure: &mut Departure<'_, '_>,
    ) -> Result<Compressed, Refused> {
        let (now, cid, config) = (plan.now, departure.cid, departure.config);
        let mut x = Rfc3095Fields::new(self.profile);
        let noted = self.note(&mut x, plan, config, pool)?;
        let Noted { since, has_lists, is_static_same } = noted;
        self.note_refresh(now, u32::from(since), config);
        let layout = layout(plan);
        let header = plan.chain.packet().get(..layout.len).unwrap_or_default();
        if self.may_need_sum(now, &x) && !layout.has_right_sum(header, plan.payload()) {
            self.require_dynamic(u32::from(since), config.repetitions);
        }
        // The first packets of a flow have no CRC over these octets, and there may be only one.
        let is_unused = self.establishment.is_ir() && is_static_same && self.crc_static.known().is_none();
        let crc_static = if is_unused {
            CrcStatic::UNKNOWN
        } else {
            CrcStatic(self.crc_static(is_static_same, &layout, header))
        };

        let frame = CidFrame::new(cid, config.channel.cids());
        let mut writer = Writer::new(departure.out, frame.len());
        let is_refresh = self.establishment.is_refresh();
        let format = self.write(&mut writer, &mut x, plan, &noted, config, pool)?;
        if format.updates() && !format.is_initialization() {
            let check = Check::of_width(writer.crc_width()).ok_or(Refused::ByThisPacket)?;
            let state = crc_static.0[usize::from(check != Check::Crc3)];
            writer.fill_crc(layout.crc_dynamic(check, state, header));
        }
        let end = writer.finish()?;
        let len = frame.close(end, plan.payload(), departure.out)?;
        if format.is_initialization() {
            frame.fill_crc8(end, departure.out);
        }
        if self.seems_late(x.sn) && self.has_sent_newer(&x, format) {
            self.note_late(now, &x, config.window);
            self.take_back(lists);
        } else {
            if format.is_initialization() {
                let has_right_sum = layout.has_right_sum(header, plan.payload());
                self.initialization.sent(format, x.sn as u16, self.sn as u16, has_right_sum);
            }
            self.note_crc_static(crc_static, is_static_same, &layout, header, config.repetitions);
            self.commit(&x, plan, format, has_lists, config, pool);
        }
        let compressed = Compressed {
            cid,
            profile: self.profile,
            format: x.cce.map_or(format, Cce::format),
            header_in: layout.len,
            header_out: end,
            len,
            refresh: is_refresh && format.carries_dynamic(),
        };
        let policy = config.policy(self.is_confirmed());
        self.establishment.sent(now, &compressed, format == Format::Ir, policy);
        Ok(compressed)
    }

    /// Writes the compressed header, in the cheapest format that the state and the packet allow, and returns that.
    fn write<'p>(
        &mut self,
        writer: &mut Writer<'_>,
        x: &mut Rfc3095Fields<'p>,
        plan: &ClassifiedPacket<'p>,
        noted: &Noted,
        config: &CompressorConfig,
        pool: &mut Pool<'_>,
    ) -> Result<Format, Refused> {
        let assurance = Assurance::of(self.mode, config.repetitions);
        let format = match self.establishment.state() {
            CompressorState::So => {
                if noted.has_lists {
                    self.fill_lists(x, plan, Scope::Changes, assurance, pool);
                }
                let needed = self.offer(plan.now, writer, x, plan, config.counted);
                if let Some(format) = self.write_compressed(writer, x, plan, needed, config.reliable_crc) {
                    return Ok(format);
                }
                self.require_dynamic(u32::from(noted.since), config.repetitions);
                Format::IrDyn
            }
            CompressorState::Fo => Format::IrDyn,
            CompressorState::Ir => Format::Ir,
        };
        if plan.lacks_payload() {
            return Err(Refused::ByThisPacket);
        }
        if noted.has_lists {
            self.fill_lists(x, plan, Scope::Everything, assurance, pool);
        }
        x.cce = None;
        if let Some(rtp) = self.own.rtp() {
            rtp.fill_chain(x);
        }
        writer.rewind();
        let written = match format {
            Format::Ir => ir::ir(writer, x, true).map(|_| ()),
            _ => ir::ir_dyn(writer, x),
        };
        written.map_err(|_| Refused::ByThisPacket)?;
        Ok(format)
    }

    /// Observes a flow of UDP or UDP-Lite for RTP. Returns true once RTP is detected.
    pub(crate) fn watch_for_rtp(&mut self, header: Option<&rtp::RtpHeader<'_>>) -> bool {
        match &mut self.own {
            UpperContext::Guess(guess) if guess.goes_on() => guess.look(header.map(rtp::RtpHeader::proof)),
            _ => false,
        }
    }

    /// True if a flow that counts as RTP still does with this packet.
    pub(crate) fn goes_on_as_rtp(&self, plan: &ClassifiedPacket<'_>) -> bool {
        let step = plan.sn().unwrap_or(self.sn).wrapping_sub(self.sn) as u16;
        is_step(step)
    }

    /// Returns the states of CRC-3 and CRC-7 after the CRC-STATIC octets of the packet.
    #[inline]
    fn crc_static(&self, same: bool, layout: &Layout, header: &[u8]) -> [u8; 2] {
        self.crc_static.known().filter(|_| same).unwrap_or_else(|| {
            [layout.crc_static(Check::Crc3, header), layout.crc_static(Check::Crc7, header)]
        })
    }

    /// Fills in the lists of extension headers that this packet must carry.
    fn fill_lists<'p>(
        &mut self,
        x: &mut Rfc3095Fields<'p>,
        plan: &ClassifiedPacket<'p>,
        scope: Scope,
        assurance: Assurance,
        pool: &mut Pool<'_>,
    ) {
        for (i, ip) in plan.ips().iter().take(BASE_IPS).enumerate() {
            let mut sent_items = SentItems { owner: i, table: &mut self.table, pool };
            self.lists[i].fill(&mut x.extra[i], items(ip), x.sn, scope, assurance, &mut sent_items);
        }
        if let Some(header) = plan.csrc(self.lists[CSRC_STATE].is_used()) {
            let (extra, items) = (&mut x.extra[CSRC], header.items().map(Some));
            let mut sent_items = SentItems { owner: CSRC, table: &mut self.table, pool };
            self.lists[CSRC_STATE].fill(extra, items, x.sn, scope, assurance, &mut sent_items);
        }
    }

    /// Updates windows and pending changes by a packet that was written.
    fn commit(
        &mut self,
        x: &Rfc3095Fields<'_>,
        plan: &ClassifiedPacket<'_>,
        format: Format,
        has_lists: bool,
        config: &CompressorConfig,
        pool: &mut Pool<'_>,
    ) {
        let now = plan.now;
        let (secure, initialized) = (self.mode.is_secure(), format.is_initialization());
        // In R-mode references may be dropped, while the decompressor keeps its context.
        let is_first = self.sns.is_empty() && !secure;
        let since = self.since(x.sn);
        let width = usize::from(config.window);
        let ahead = ahead(self.profile, x.sn, self.sn);
        if initialized {
            self.caution.leap(now, ahead);
        }
        self.caution.sent(now, steps(ahead));
        self.sn = x.sn;
        if !secure {
            self.sns.push(x.sn as u16, width);
            self.coverage.commit(x.cce);
        } else if format.updates() {
            self.add_references(x, config);
        }
        if let Some(rtp) = self.own.rtp_mut() {
            if !secure {
                rtp.commit(now, x, format, width);
            }
            rtp.fields = x.rtp;
        }
        self.commit_ips(x, format, width);
        if initialized {
            self.udp = x.udp;
            if upper(self.profile) == Upper::UdpLite {
                let (length, pending_since) = (plan.upper_len(), &mut self.pending_since);
                self.coverage.initialize(length, config.repetitions, is_first, since, pending_since);
            }
            self.count_initialization(format, config);
        }
        if has_lists {
            self.commit_lists(x, format, config, pool);
        }
        self.note_mode_sent(since, format);
        if !self.established {
            let is_due = self.pending.iter().any(|pending| !pending.is_none());
            self.established =
                self.establishment.is_established() && !(has_lists || is_due) && self.strong == 0 && !secure;
        }
    }

    /// Updates the IP headers of the context, and their pending changes.
    fn commit_ips(&mut self, x: &Rfc3095Fields<'_>, format: Format, width: usize) {
        let (secure, initialized) = (self.mode.is_secure(), format.is_initialization());
        for i in 0..x.base_ips() {
            let ip = &x.ips[i];
            if ip.header.version == IpVersion::V4 && !ip.rnd && !secure {
                self.offsets[i].push(ip.counted_id().wrapping_sub(x.sn as u16), width);
            }
            self.ips[i] = *ip;
            if !secure && (has_extension_3(format) || initialized) {
                let extra = &x.extra[i];
                let pending = &mut self.pending[i];
                pending.count(changes::TOS, initialized || extra.tos);
                pending.count(changes::TTL, initialized || extra.ttl);
                pending.count(changes::FLAGS, initialized || extra.flags);
                pending.count(changes::ID, true);
            }
        }
    }

    /// Updates the lists of the context.
    fn commit_lists(
        &mut self,
        x: &Rfc3095Fields<'_>,
        format: Format,
        config: &CompressorConfig,
        pool: &mut Pool<'_>,
    ) {
        let initialized = format.is_initialization();
        let assurance = Assurance::of(self.mode, config.repetitions);
        for i in 0..x.base_ips() {
            let is_sent = initialized || has_extension_3(format);
            let mut sent_items = SentItems { owner: i, table: &mut self.table, pool };
            self.lists[i].commit(&x.extra[i], format, is_sent, assurance, &mut sent_items);
        }
        if has_rtp(self.profile) && x.ip_count == 1 {
            let is_sent = initialized || x.rtp_extra.flags;
            let mut sent_items = SentItems { owner: CSRC, table: &mut self.table, pool };
            self.lists[CSRC_STATE].commit(&x.extra[CSRC], format, is_sent, assurance, &mut sent_items);
        }
    }
}

/// Returns the fields of an IP header. Its Protocol is the type of the header behind the extension headers.
#[inline]
pub(super) fn ip_header(ip: &Ip<'_>) -> IpHeader {
    IpHeader { protocol: ip.next, ..IpHeader::of(ip) }
}

pub(super) fn udp_fields(plan: &ClassifiedPacket<'_>) -> UdpFields {
    UdpFields {
        source_port: plan.udp.source_port,
        destination_port: plan.udp.destination_port,
        checksum: plan.udp.checksum,
        coverage: if upper(plan.profile) == Upper::UdpLite { plan.udp.length } else { 0 },
    }
}

#[inline(always)]
pub(super) fn layout(plan: &ClassifiedPacket<'_>) -> Layout {
    let mut layout = Layout::default();
    for ip in plan.ips() {
        let version = match ip.header() {
            chain::IpHeader::V4(_) => IpVersion::V4,
            chain::IpHeader::V6(_) => IpVersion::V6,
        };
        let has_ah = ip.extension_count > 0 && ip.walk().any(|(kind, _)| kind == protocol::AH);
        layout.ip(version, ip.extensions.len(), has_ah);
    }
    layout.upper(plan.profile, plan.rtp.map_or(0, |header| header.csrc.len()));
    layout
}
