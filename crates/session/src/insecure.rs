//! Bodies without protection: an octet for the kind, and in a group a second one for the site.

use std::net::SocketAddr;

use super::header::DatagramKind;
use super::{Around, BodyFlags, Destination, Missing, NotSealed, Opened, Refused, Sender};
use crate::{SiteId, canonical};

/// Adds an octet to bodies. Anybody who can send a datagram can send a body.
pub struct Insecure(Who);

enum Who {
    /// Address of each peer; a peer with an unknown address may have any.
    Peers(Vec<Option<SocketAddr>>),
    Group {
        own: Option<SiteId>,
        sites: Vec<SiteId>,
    },
}

impl Insecure {
    /// Returns the variant for peers at these addresses. A body belongs to the peer with its source address,
    /// otherwise to the peer without an address.
    pub fn peers(addresses: Vec<Option<SocketAddr>>) -> Self {
        Self(Who::Peers(addresses.into_iter().map(|address| address.map(canonical)).collect()))
    }

    /// Returns the variant for a group of this site, if it sends, and of others.
    pub fn group(own: Option<SiteId>, sites: Vec<SiteId>) -> Self {
        Self(Who::Group { own, sites })
    }

    pub(super) fn seal(
        &self,
        to: Destination,
        flags: BodyFlags,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        out.push(DatagramKind::Insecure.bits() | flags.bits());
        match (&self.0, to) {
            (Who::Peers(peers), Destination::Peer(peer)) if peer < peers.len() => {}
            (Who::Group { own, .. }, Destination::Everybody) => {
                out.push(own.ok_or(NotSealed::OnlyHears)?.number());
            }
            (Who::Peers(_), _) | (Who::Group { .. }, _) => return Err(NotSealed::NoDestination),
        }
        out.extend_from_slice(body);
        Ok(())
    }

    pub(super) fn open<'d>(&self, from: Option<SocketAddr>, datagram: &'d [u8]) -> Opened<'d> {
        let from = from.map(canonical);
        let read = |length: usize| {
            let (header, body) = datagram.split_at_checked(length)?;
            let flags = BodyFlags::of(header[0]);
            // An empty body is invalid; reserved bits are zero.
            (header[0] == DatagramKind::Insecure.bits() | flags.bits() && !body.is_empty())
                .then_some((header, flags, body))
        };
        match &self.0 {
            Who::Peers(peers) => {
                let Some((_, flags, body)) = read(self.around().header) else {
                    return Opened::Refused(Refused::Malformed);
                };
                let known = peers.iter().position(|peer| peer.is_some() && *peer == from);
                match known.or_else(|| peers.iter().position(Option::is_none)) {
                    None => Opened::Refused(Refused::Unknown),
                    Some(peer) => Opened::Body {
                        from: Sender::Peer(peer),
                        flags,
                        body,
                        newest: false,
                        missing: Missing::Uncounted,
                        session: None,
                    },
                }
            }
            Who::Group { own, sites } => {
                let Some((header, flags, body)) = read(self.around().header) else {
                    return Opened::Refused(Refused::Malformed);
                };
                match SiteId::new(header[1]) {
                    Some(site) if Some(site) == *own => Opened::Refused(Refused::Reflected),
                    Some(site) if sites.contains(&site) => Opened::Body {
                        from: Sender::Site(site),
                        flags,
                        body,
                        newest: false,
                        missing: Missing::Uncounted,
                        session: None,
                    },
                    _ => Opened::Refused(Refused::Unknown),
                }
            }
        }
    }

    pub(super) fn address(&self, peer: usize) -> Option<SocketAddr> {
        match &self.0 {
            Who::Peers(peers) => *peers.get(peer)?,
            Who::Group { .. } => None,
        }
    }

    pub(super) fn around(&self) -> Around {
        match self.0 {
            Who::Peers(_) => Around::insecure_peers(),
            Who::Group { .. } => Around::insecure_group(),
        }
    }
}
