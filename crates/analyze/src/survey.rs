//! The first reading of a capture: what schemes without learning must be told of a link before its first packet.

use std::collections::BTreeMap;
use std::io::Read;

use thinair_capture::{Error, Reader};
use thinair_lowpan::{Context, Contexts};
use thinair_wire::header::ipv6::Ipv6;

use crate::flow::Flows;
use crate::packet::Packet;
use crate::schc::{Checksum, Direction, Learner, Reading, RuleSet};
use crate::settings::{SchemeSpec, Settings};
use crate::sides::Side;
use crate::unpack::Unpack;

/// What both ends of a link are provisioned with.
#[derive(Debug, Default)]
pub(crate) struct Provision {
    pub(crate) rules: RuleSet,
    pub(crate) contexts: Contexts,
}

/// Bits of the prefixes that are contexts of 6LoWPAN: the other half of an address is the interface identifier.
const PREFIX: u8 = 64;

/// Contexts of 6LoWPAN (RFC 6282, section 3.1.2).
const MOST_CONTEXTS: usize = 16;

/// The prefix of link-local addresses, which need no context.
const LINK_LOCAL: [u8; 8] = [0xFE, 0x80, 0, 0, 0, 0, 0, 0];

/// Whether any scheme needs a first reading.
pub(crate) fn is_needed(settings: &Settings) -> bool {
    settings.schemes.iter().any(|scheme| match scheme {
        SchemeSpec::Rohc { .. } => false,
        SchemeSpec::Schc | SchemeSpec::Lowpan => true,
    })
}

/// Which way a packet goes for SCHC: side A is taken for the device.
pub(crate) fn direction(from: Side) -> Direction {
    match from {
        Side::A => Direction::Up,
        Side::B => Direction::Dw,
    }
}

/// Reads a capture as far as it can be read. `progress` is told the octets read so far, now and then.
pub(crate) fn read<R: Read>(
    settings: &Settings,
    source: R,
    mut progress: impl FnMut(u64),
) -> Result<Provision, Error> {
    let checksum = if settings.elides_checksums() { Checksum::Computed } else { Checksum::Sent };
    let mut learner = Learner::new(Reading { checksum, ports: settings.compressor.coap.ports });
    let mut prefixes = BTreeMap::new();
    let mut flows = Flows::default();
    let mut unpack = Unpack::new(settings.contexts).keeping_tunnels(settings.keep_tunnels);
    let mut reader = Reader::new(source)?;
    let mut records = 0_u64;
    while let Some(record) = reader.next_record() {
        match record {
            Ok(record) => {
                if let Ok(packet) = unpack.packet(&record) {
                    let from = flows.of(&packet, 0).side;
                    learner.observe(direction(from), packet.octets);
                    count_prefixes(&packet, &mut prefixes);
                }
            }
            Err(error @ Error::Io { .. }) => return Err(error),
            // The second reading tells what is wrong.
            Err(_) => {}
        }
        records += 1;
        if records.is_multiple_of(crate::run::PROGRESS_EVERY) {
            progress(reader.octets_read());
        }
    }
    Ok(Provision { rules: learner.finish(), contexts: contexts(prefixes) })
}

/// The prefixes of the outer header.
fn count_prefixes(packet: &Packet<'_>, prefixes: &mut BTreeMap<[u8; 8], u64>) {
    let Ok(header) = Ipv6::read(packet.octets) else { return };
    for address in [header.source, header.destination] {
        let Some(&prefix) = address.first_chunk() else { continue };
        let is_context = prefix != LINK_LOCAL && prefix[0] != 0xFF && address != [0; 16];
        if is_context {
            *prefixes.entry(prefix).or_default() += 1;
        }
    }
}

/// The most frequent prefixes: the first is the one that costs nothing to name.
fn contexts(prefixes: BTreeMap<[u8; 8], u64>) -> Contexts {
    let mut prefixes: Vec<_> = prefixes.into_iter().collect();
    prefixes.sort_by_key(|(_, packets)| std::cmp::Reverse(*packets));
    let mut contexts = Contexts::NONE;
    for (id, (prefix, _)) in (0..).zip(prefixes.into_iter().take(MOST_CONTEXTS)) {
        let mut address = [0; 16];
        address[..8].copy_from_slice(&prefix);
        let added = Context::new(address, PREFIX).and_then(|context| contexts.with(id, context));
        contexts = added.unwrap_or(contexts);
    }
    contexts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_prefix_is_context_0() {
        let prefixes = (0..20_u8).map(|i| ([0xFD, 0, 0, 0, 0, 0, 0, i], u64::from(i) + 1)).collect();
        let contexts = contexts(prefixes);
        let last = |id| contexts.context(id).map(|context| (context.prefix()[7], context.length()));
        assert_eq!((last(0), last(15)), (Some((19, 64)), Some((4, 64))));
    }
}
