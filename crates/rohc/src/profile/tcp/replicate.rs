//! Context replication: the IR-CR packet. RFC 6846, section 7.2; RFC 4164.

use thinair_wire::coder::{Coder, Step};

use super::encodings::{refuse, zeros};
use super::header::{Replicate, tcp_replicate};
use super::ip::{extension_replicate, ipv4_replicate, ipv6_replicate};
use super::options::Sent;
use super::state::State;
use crate::cid::{Cid, CidSpace};
use crate::profile::ProfileId;

/// What an IR-CR packet says before its chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// `CRC7`, over the uncompressed header.
    pub(super) crc7: u8,
    /// The base context; the one of the packet if it is not said.
    pub(super) base: Option<Cid>,
}

/// `IR-CR` packet, up to the replicate chain.
pub(super) fn ir_cr<'p, C: Coder<'p>>(c: &mut C, space: CidSpace, x: &mut Head) -> Step {
    c.discriminator(8, 0b1111_1100)?;
    c.discriminator(8, u32::from(ProfileId::Tcp.low_octet()))?;
    c.crc("CRC", 8)?;
    let is_said = c.flag("B", &mut x.base.is_some())?;
    c.uint("CRC7", 7, &mut x.crc7)?;
    if !is_said {
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

/// The replicate chain. What it does not say is in `state`: that of the base context.
pub(super) fn replicate_chain<'p, C: Coder<'p>>(
    c: &mut C,
    state: &mut State,
    x: &mut Replicate,
    ttl: &mut [bool; 2],
    sent: &mut Sent,
) -> Step {
    let mut at = 0;
    for (ip, ttl) in state.ips.iter_mut().zip(ttl).take(usize::from(state.ip_count)) {
        if ip.v6 {
            ipv6_replicate(c, ip)?
        } else {
            ipv4_replicate(c, ip, ttl)?
        };
        let end = at + usize::from(ip.extensions);
        let Some(octets) = state.extensions.get_mut(at..end) else { return refuse() };
        extension_replicate(c, ip.protocol, octets)?;
        at = end;
    }
    tcp_replicate(c, state, x, sent)
}
