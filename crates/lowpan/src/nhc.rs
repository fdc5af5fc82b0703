//! LOWPAN_NHC: headers after the IPv6 header. RFC 6282, section 4.

pub(crate) mod extension;
pub(crate) mod udp;

use thinair_wire::coder::{Reader, Refusal, Step};

use extension::{Eid, ExtensionHeader};
use udp::UdpNhc;

/// A header in LOWPAN_NHC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nhc<'p> {
    Extension(ExtensionHeader<'p>),
    Udp(UdpNhc),
}

impl<'p> Nhc<'p> {
    /// Reads the next header; [`Refusal::NotThis`] if its NHC ID is unknown.
    pub(crate) fn read(reader: &mut Reader<'p>) -> Step<Self> {
        let start = *reader;
        let mut header = UdpNhc::default();
        match udp::udp(reader, &mut header) {
            Err(Refusal::NotThis) => {}
            done => return done.map(|()| Self::Udp(header)),
        }
        *reader = start;
        let mut header = ExtensionHeader::new(Eid::Ipv6);
        extension::extension(reader, &mut header)?;
        Ok(Self::Extension(header))
    }
}
