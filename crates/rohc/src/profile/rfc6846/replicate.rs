//! Context replication: the IR-CR packet. RFC 6846, section 7.2; RFC 4164.

use thinair_wire::coder::{Coder, Step, Writer};

use super::encodings::{Counter, refuse, zeros};
use super::header::{Replicate, tcp_replicate};
use super::ip::{extension_replicate, ipv4_replicate, ipv6_replicate};
use super::options::{ListEncoding, TcpOptionTable, index};
use super::state::{IpState, MAX_IP, TcpRoom, TcpState};
use crate::cid::{Cid, CidSpace};
use crate::id::ProfileId;

/// Base of a new context at its compressor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base {
    pub(crate) cid: Cid,
    pub(crate) room: TcpRoom,
    /// Its last packet was the acknowledged one, so that the decompressor has all its fields, and not only those that seldom
    /// change.
    pub(crate) is_exact: bool,
}

/// True if an IR-CR packet can encode the differences from the last packet of another flow: hosts and other fields of the static
/// chain are equal. Since the last change of a replicated field, the base must have been acknowledged by feedback with a CRC (RFC
/// 4164, section 3.3.3.1).
pub(super) fn suits(base: &TcpState, next: &TcpState) -> bool {
    let alike = |(a, b): (&IpState, &IpState)| {
        a.header.has_same_ends(&b.header)
            && a.header.protocol == b.header.protocol
            && (a.extensions, b.extensions) == (0, 0)
            // The replicate chain has no Hop Limit.
            && (!a.is_v6() || a.header.ttl == b.header.ttl)
    };
    base.ip_count == next.ip_count
        && base.ips().iter().zip(next.ips()).all(alike)
        && !base.ecn_used
        && (base.reserved, base.ecn) == (next.reserved, next.ecn)
}

/// Writes an IR-CR packet that [`suits`] its base. All fields that may differ are carried in full. The table of options of `next`
/// was initially that of the base.
pub(super) fn write(
    writer: &mut Writer<'_>,
    base: &Base,
    space: CidSpace,
    crc7: u8,
    next: &mut TcpState,
    sent: &mut ListEncoding,
) -> Step {
    let old = &base.room.0;
    ir_cr(writer, space, &mut IrCrHead { crc7, base: Some(base.cid) })?;
    let mut ttl = [false; MAX_IP];
    for (differs, (kept, ip)) in ttl.iter_mut().zip(old.ips().iter().zip(next.ips())) {
        *differs = kept.header.ttl != ip.header.ttl;
    }
    let mut parts = Replicate {
        window: !base.is_exact || old.window != next.window,
        list: !has_same_list(base, &next.options),
        source_port: port(old.source_port, next.source_port),
        destination_port: port(old.destination_port, next.destination_port),
        ack_stride: old.ack_stride != next.ack_stride,
        ack: !base.is_exact || old.ack != next.ack,
        urg_ptr: old.urg_ptr != next.urg_ptr,
    };
    replicate_chain(writer, next, &mut parts, &mut ttl, sent)
}

/// True if the options are those of the base, one by one. If only some are, the list has all of them: "the entire table of TCP
/// options items is always replicated" (RFC 6846, section 6.3.7), but rohc-lib does not have them in that case.
fn has_same_list(base: &Base, options: &TcpOptionTable) -> bool {
    let old = &base.room.0.options;
    let may_have_changed = |index: u8| match index {
        index::TIMESTAMP | index::SACK => true,
        index::NOP..=index::SACK_PERMITTED => false,
        _ => (old.statics & options.statics) >> index & 1 == 0,
    };
    old.structure() == options.structure()
        && options
            .structure()
            .iter()
            .all(|&index| old.has_same(options, index) && (base.is_exact || !may_have_changed(index)))
}

/// Returns the shortest form of `port_replicate` that all implementations read alike: rohc-lib uses the octet of `lsb(8, 64)` as
/// the lower one of a port whose upper one stays.
fn port(base: u16, port: u16) -> u8 {
    if port == base {
        0b00
    } else if port >> 8 == base >> 8 && Counter::between(port, Some((base, base))).fits(8, 64) {
        0b01
    } else {
        0b10
    }
}

/// Fields of an IR-CR packet before its chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct IrCrHead {
    /// `CRC7`, over the uncompressed header.
    pub(super) crc7: u8,
    /// The base context; `None` if it is that of the packet.
    pub(super) base: Option<Cid>,
}

/// `IR-CR` packet, up to the replicate chain.
pub(super) fn ir_cr<'p, C: Coder<'p>>(c: &mut C, space: CidSpace, x: &mut IrCrHead) -> Step {
    c.discriminator(8, 0b1111_1100)?;
    c.discriminator(8, u32::from(ProfileId::Tcp.low_octet()))?;
    c.crc("CRC", 8)?;
    let has_base = c.flag("B", &mut x.base.is_some())?;
    c.uint("CRC7", 7, &mut x.crc7)?;
    if !has_base {
        x.base = None;
        return Ok(());
    }
    let mut base = x.base.map_or(0, Cid::value);
    match space {
        CidSpace::Small => {
            zeros(c, "Reserved", 4)?;
            c.uint("Base CID", 4, &mut base)?;
        }
        // RFC 5795, section 5.3.2, of which channels use one or two octets.
        CidSpace::Large if c.flag("sdvl", &mut (base > 0x7F))? => {
            zeros(c, "sdvl", 1)?;
            c.uint("Base CID", 14, &mut base)?;
        }
        CidSpace::Large => c.uint("Base CID", 7, &mut base)?,
    }
    x.base = Cid::new(base);
    Ok(())
}

/// The replicate chain. Fields that are not sent stay in `state`, initially that of the base context.
pub(super) fn replicate_chain<'p, C: Coder<'p>>(
    c: &mut C,
    state: &mut TcpState,
    x: &mut Replicate,
    ttl: &mut [bool; MAX_IP],
    sent: &mut ListEncoding,
) -> Step {
    let mut at = 0;
    for (ip, ttl) in state.ips.iter_mut().zip(ttl).take(usize::from(state.ip_count)) {
        if ip.is_v6() {
            ipv6_replicate(c, ip)?
        } else {
            ipv4_replicate(c, ip, ttl)?
        };
        let end = at + usize::from(ip.extensions);
        let Some(octets) = state.extensions.get_mut(at..end) else { return refuse() };
        extension_replicate(c, ip.header.protocol, octets)?;
        at = end;
    }
    tcp_replicate(c, state, x, sent)
}

#[cfg(test)]
mod tests {
    use super::port;

    #[test]
    fn a_port_is_said_so_that_both_readings_are_one() {
        assert_eq!([port(0x9340, 0x9340), port(0x9340, 0x9341), port(0x9340, 0x9301)], [0b00, 0b01, 0b01]);
        // 64 below and 191 above are `lsb(8, 64)`; not all implementations support a carry.
        assert_eq!([port(0x9340, 0x9300), port(0x9300, 0x93BF), port(0x9300, 0x93C0)], [0b01, 0b01, 0b10]);
        assert_eq!([port(0x93FF, 0x9400), port(0x9400, 0x93FF)], [0b10, 0b10]);
    }
}
