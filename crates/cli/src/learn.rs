//! Bases of profile `coap`, learned from the flows of captures.

mod merge;

use std::collections::HashMap;
use std::path::Path;

use foldhash::fast::RandomState;
use thinair_rohc::profile::coap::{Base, ChecksumMode};
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Integrity, Ports, ProfileId,
    ProfileSet, Refresh,
};
use thinair_wire::header::protocol;

use self::merge::{FirstMessage, LearnedFlow, merged};
use crate::options::{BLOCKS, ChecksumOption};
use crate::packets::PacketOptions;
use crate::records::{OpenCapture, ReasonTally, RecordClock, unreadable};
use crate::usage::Usage;

/// Largest number of octets by which compression may enlarge a packet.
const ROOM: usize = 1_024;

/// Returns at most `most` bases learned from captures, each with a comment, and the number of bases omitted.
pub(crate) fn bases<'c>(
    captures: impl Iterator<Item = anyhow::Result<OpenCapture<'c>>>,
    packets: &PacketOptions,
    checksum: ChecksumOption,
    ports: Ports,
    most: usize,
) -> anyhow::Result<(Vec<(Base, String)>, usize)> {
    let mut flows = Vec::new();
    for capture in captures {
        flows.extend(learn(capture?, packets, checksum, ports)?);
    }
    let learned = merged(flows, most);
    let bases = learned.iter().take(most).map(|learned| (learned.to_base(), learned.comment())).collect();
    Ok((bases, learned.len().saturating_sub(most)))
}

/// Returns the flows of a capture, each with the base that a compressor learned from it.
fn learn(
    mut input: OpenCapture<'_>,
    packets: &PacketOptions,
    checksum: ChecksumOption,
    ports: Ports,
) -> anyhow::Result<Vec<LearnedFlow>> {
    let channel = channel(checksum)?;
    let mut config = CompressorConfig::new(channel);
    config.refresh = Refresh::Off;
    config.coap.ports = ports;
    let mut compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(BLOCKS)));
    let mut unpack = packets.unpack().map_err(Usage::error)?;
    let (mut clock, mut skipped, mut rohc) = (RecordClock::default(), ReasonTally::default(), Vec::new());
    let mut seen: HashMap<FlowEnds, SeenFlow, RandomState> = HashMap::default();
    while let Some(record) = input.reader.next_record() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                unreadable(&input.name, error, &mut skipped)?;
                continue;
            }
        };
        let Ok(packet) = unpack.network_packet(&record) else { continue };
        let Some(ends) = FlowEnds::of(packet) else { continue };
        rohc.resize(packet.len() + ROOM, 0);
        let Ok(compressed) = compressor.compress(clock.at(record.time), packet, &mut rohc) else { continue };
        if compressed.profile == ProfileId::Coap {
            let message = packet.get(ends.coap_at()..).unwrap_or_default();
            let first = || SeenFlow { packets: 0, is_coap: true, first: FirstMessage::of(message) };
            seen.entry(ends).or_insert_with(first).packets += 1;
        } else if let Some(seen) = seen.get_mut(&ends) {
            // Its first packets looked like CoAP; a later one did not.
            seen.is_coap = false;
        }
    }
    let file_name = Path::new(&input.name).file_name();
    let name = file_name.map_or_else(|| input.name.clone(), |name| name.display().to_string());
    let bases = compressor.learned_bases();
    let known = bases.filter_map(|base| Some((base, seen.get(&FlowEnds::of_base(&base))?)));
    let flows = known.filter(|(base, seen)| seen.is_coap && is_writable(base));
    Ok(flows.filter_map(|(base, seen)| LearnedFlow::new(&base, seen.packets, &seen.first, &name)).collect())
}

/// Returns a channel with large CIDs, so that few contexts are evicted.
fn channel(checksum: ChecksumOption) -> anyhow::Result<Channel> {
    let profiles = ProfileSet::v1().with(ProfileId::Coap)?;
    let channel = Channel::new(CidSpace::Large, CidSpace::Large.highest(), profiles)?;
    Ok(channel.with_integrity_below(match checksum {
        ChecksumOption::Carry => Integrity::None,
        ChecksumOption::Elide => Integrity::Crc32,
    }))
}

/// Counts of one flow, and its first message.
#[derive(Debug)]
struct SeenFlow {
    packets: u64,
    is_coap: bool,
    first: FirstMessage,
}

/// IP version, addresses and ports of a flow.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FlowEnds {
    v6: bool,
    addresses: [[u8; 16]; 2],
    ports: [u8; 4],
}

impl FlowEnds {
    /// Returns the addresses and ports of a packet that profile `coap` can compress: UDP, without extension
    /// headers and IP options.
    fn of(packet: &[u8]) -> Option<Self> {
        let (v6, next, addresses, ports) = match packet.first()? {
            0x45 => (false, *packet.get(9)?, packet.get(12..20)?, packet.get(20..24)?),
            first if first >> 4 == 6 => (true, *packet.get(6)?, packet.get(8..40)?, packet.get(40..44)?),
            _ => return None,
        };
        let len = addresses.len() / 2;
        let mut ends = Self { v6, addresses: [[0; 16]; 2], ports: ports.try_into().ok()? };
        for (end, octets) in ends.addresses.iter_mut().zip(addresses.chunks(len)) {
            end.get_mut(..len)?.copy_from_slice(octets);
        }
        (next == protocol::UDP).then_some(ends)
    }

    fn of_base(base: &Base) -> Self {
        let path = base.base_path();
        let ([a, b], [c, d]) = (path.source.port.to_be_bytes(), path.destination.port.to_be_bytes());
        Self { v6: path.v6, addresses: [path.source.address, path.destination.address], ports: [a, b, c, d] }
    }

    /// Offset of the CoAP header in a packet of the flow, in octets.
    fn coap_at(&self) -> usize {
        if self.v6 { 48 } else { 28 }
    }
}

/// True if a template file can express a base.
pub(crate) fn is_writable(base: &Base) -> bool {
    base.base_path().checksum != ChecksumMode::Raw
}
