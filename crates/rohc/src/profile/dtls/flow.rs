//! Flows of profile 0x0182, and the interface of the profile at the compressor.

use thinair_wire::header::chain::HeaderChain;
use thinair_wire::header::dtls::Record;
use thinair_wire::time::Instant;

use super::compress::DtlsSenderContext;
use super::header;
use super::record::DtlsPacket;
use super::state::DtlsPath;
use crate::channel::ProfileSet;
use crate::cid::Cid;
use crate::compressor::{
    Compressed, CompressorConfig, FlowKey, OutgoingPacket, RECENT, Refused, address_words,
};
use crate::flow::sender::{Departure, Flows, Placement, Sender, Start};
use crate::id::ProfileId;
use crate::storage::Shared;

impl Sender for DtlsSenderContext {
    type Packet<'p> = DtlsPacket<'p>;
    const PREDICTS: bool = true;

    #[inline]
    fn is_in_use(profiles: ProfileSet, _: &Shared<'_, ()>) -> bool {
        profiles.has(ProfileId::Dtls)
    }

    #[inline(always)]
    fn compress_unparsed<'m>(
        &mut self,
        packet: &[u8],
        _: &mut Shared<'m, ()>,
        departure: &mut Departure<'_, 'm>,
    ) -> Option<Compressed> {
        self.compress_predicted(packet, departure)
    }

    /// A record with a unified header is recognized in the flow of other records alone: its first three bits are too few.
    #[inline(always)]
    fn recognize<'p>(
        packet: &OutgoingPacket<'p, 'p, '_>,
        flows: &mut Flows<'_, '_, Self>,
        recognized: &mut Option<DtlsPacket<'p>>,
    ) {
        *recognized = recognize(packet.chain, flows);
    }

    #[inline]
    fn is_flow_of(&self, packet: &DtlsPacket<'_>, _: Cid, _: &Shared<'_, ()>) -> bool {
        self.state.path.is_flow_of(&packet.path)
    }

    fn has_flow(chain: &HeaderChain<'_>, flows: &Flows<'_, '_, Self>) -> bool {
        DtlsPacket::path(chain).is_some_and(|(path, ..)| context_of(&path, flows).is_some())
    }

    /// The base is the newest suitable context among the recently used ones. RFC 4164, section 3.3.3.1.
    fn place(packet: &DtlsPacket<'_>, hash: u32, _: Instant, flows: &Flows<'_, '_, Self>) -> Placement {
        let suits = |cid: &Cid| flows.context(*cid).is_some_and(|context| context.is_base_of(&packet.path));
        let base = flows.table.latest().take(RECENT).find(suits);
        Placement { base, ..Placement::of(hash) }
    }

    /// RFC 4164, section 3.5.2: "It is not recommended to use this packet to repair a damaged context."
    #[inline]
    fn base(&self) -> Option<Cid> {
        self.base.filter(|_| self.establishment.is_ir() && !self.establishment.is_refresh())
    }

    fn new(
        packet: &DtlsPacket<'_>,
        start: Start<'_, Self>,
        config: &CompressorConfig,
        _: &mut Shared<'_, ()>,
    ) -> Self {
        Self::new(packet, start.now, start.base, config)
    }

    #[inline(always)]
    fn compress<'m>(
        &mut self,
        packet: &DtlsPacket<'_>,
        base: Option<&Self>,
        _: &mut Shared<'m, ()>,
        departure: &mut Departure<'_, 'm>,
    ) -> Result<Compressed, Refused> {
        self.compress_packet(packet, base, departure)
    }
}

/// Returns the records of a datagram, if the profile restores it.
#[inline(always)]
fn recognize<'p>(
    chain: &HeaderChain<'p>,
    flows: &Flows<'_, '_, DtlsSenderContext>,
) -> Option<DtlsPacket<'p>> {
    let datagram = DtlsPacket::datagram(chain)?;
    let first = *datagram.first()?;
    if !(20..0x40).contains(&first) {
        return None;
    }
    let (path, ip_id, checksum) = DtlsPacket::path(chain)?;
    let known = context_of(&path, flows).map(|context| context.cid_len);
    let record = match known {
        Some(cid_len) if first >= 0x20 => Record::read_unified(datagram, cid_len)?,
        _ => Record::read(datagram, known.unwrap_or_default())?,
    };
    let is_right = checksum == 0 && !path.v6 || header::is_right(&path, datagram, checksum);
    is_right.then_some(DtlsPacket { octets: chain.packet(), path, ip_id, checksum, record })
}

/// The context of the flow of a path.
#[inline]
fn context_of<'a>(
    path: &DtlsPath,
    flows: &'a Flows<'_, '_, DtlsSenderContext>,
) -> Option<&'a DtlsSenderContext> {
    let found =
        flows.table.find_flow(path, |_, context: &DtlsSenderContext| context.state.path.is_flow_of(path));
    flows.context(found.ok()?)
}

impl FlowKey for DtlsPacket<'_> {
    #[inline]
    fn key(&self, word: impl FnMut(u64)) {
        self.path.key(word);
    }
}

impl FlowKey for DtlsPath {
    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        address_words(self.v6, &self.source, &self.destination, &mut word);
        let ports = u32::from(self.source_port) << 16 | u32::from(self.destination_port);
        word(u64::from(ports) << 16 | ProfileId::Dtls as u64);
    }
}
