//! First packet of a flow that a provisioned base describes completely.

use thinair_rohc::profile::coap::{
    Base, BaseEnd, BasePath, BaseTemplate, ChecksumMode, IpIdMode, MessageIdMode, TokenMode,
};
use thinair_rohc::storage::Slots;
use thinair_rohc::{Format, Instant, ProfileId};
use thinair_wire::header::coap::{Code, Type};

use crate::form::{Figures, PaperRun};
use crate::pair::PairSettings;
use crate::paper::PaperError;
use crate::traffic::{TrafficKind, TrafficVersion, packets};

/// Octets of IPv6 and UDP.
const HEADERS: usize = 48;
/// Octets of a CoAP header without token.
const COAP: usize = 4;

pub(super) fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    for (way, checksum) in [("elided", ChecksumMode::Elided), ("carried", ChecksumMode::Carried)] {
        let (octets, format) = first(run.plan.seed, checksum)?;
        figures.put(format!("first/v6/{way}"), octets as f64);
        figures.put_text(format!("format/first/{way}"), format.name());
    }
    Ok(())
}

/// Size and format of the first packet of flow `a`, which must be restored.
fn first(seed: u64, checksum: ChecksumMode) -> Result<(usize, Format), PaperError> {
    let packet = packets(TrafficKind::A, TrafficVersion::V6, seed, 1).swap_remove(0).octets;
    let base = base(&packet, checksum);
    let settings = PairSettings::new(Some(ProfileId::Coap), seed)?.optimistic();
    let settings = if checksum == ChecksumMode::Elided { settings.elided() } else { settings };
    let (mut near, mut far) = (settings.endpoint()?, settings.endpoint()?);
    near.compressor = near.compressor.with_bases(Slots::owned(base.into_iter().collect()));
    far.decompressor = far.decompressor.with_bases(Slots::owned(base.into_iter().collect()));
    let (mut sent, mut back) = (vec![0; 2 * packet.len()], vec![0; 2 * packet.len()]);
    let compressed = near.send(Instant::ZERO, &packet, &mut sent)?;
    let len = compressed.len;
    let done = far.receive(Instant::ZERO, &sent[..len], &mut back);
    let is_exact = done.is_ok_and(|done| back[..done.len] == packet);
    // A packet that is not restored has no meaningful size.
    Ok((if is_exact { len } else { usize::from(u16::MAX) }, compressed.format))
}

/// Base with all fields of a GET over IPv6 without token, except its Message ID.
fn base(packet: &[u8], checksum: ChecksumMode) -> Option<Base> {
    let address = |at: usize| packet.get(at..)?.first_chunk().copied();
    let word = |at: usize| Some(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?));
    let first = u32::from_be_bytes(*packet.first_chunk()?);
    let path = BasePath {
        v6: true,
        source: BaseEnd { address: address(8)?, port: word(40)? },
        destination: BaseEnd { address: address(24)?, port: word(42)? },
        tos: (first >> 20) as u8,
        ttl: *packet.get(7)?,
        df: false,
        flow_label: first & 0xF_FFFF,
        checksum,
        ip_id: IpIdMode::Constant,
    };
    let mut base = Base::new(&path);
    let template = BaseTemplate {
        message_type: Type::Confirmable,
        code: Code::GET,
        message_id: MessageIdMode::Counted,
        token_mode: TokenMode::Static,
        token: &[],
        outline: packet.get(HEADERS + COAP..)?,
    };
    base.push(&template).then_some(base)
}
