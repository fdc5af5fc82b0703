//! Which datagrams are taken for RTP, which nothing in them says.

use super::rtp::Header;

/// Most ports of a rule.
pub const MAX_RTP_PORTS: usize = 8;

/// How RTP is found among UDP and UDP-Lite: by destination port, or by what the first packets of a flow look like.
///
/// Whatever is taken for RTP is restored bit for bit, right or wrong; a wrong guess costs octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpDetection {
    ports: [u16; MAX_RTP_PORTS],
    count: u8,
    guess: bool,
}

impl Default for RtpDetection {
    /// No port, and a look at the first packets of each flow.
    fn default() -> Self {
        Self { ports: [0; MAX_RTP_PORTS], count: 0, guess: true }
    }
}

impl RtpDetection {
    /// No flow is taken for RTP.
    pub const NEVER: Self = Self { ports: [0; MAX_RTP_PORTS], count: 0, guess: false };

    /// Datagrams of version 2 to one of `ports` are RTP, from the first one on, and no others. At most
    /// [`MAX_RTP_PORTS`] ports; `None` if there are more.
    pub fn of_ports(ports: &[u16]) -> Option<Self> {
        let mut rule = Self::NEVER;
        rule.ports.get_mut(..ports.len())?.copy_from_slice(ports);
        rule.count = ports.len() as u8;
        Some(rule)
    }

    /// The rule, which also looks at the first packets of flows to other ports: packets of version 2 and one SSRC whose
    /// sequence numbers go on are RTP from the fourth one on, and again after a step of more than 128. A flow may have
    /// several SSRCs. One in which 16 such packets prove nothing is not looked at for longer.
    pub fn or_guess(self) -> Self {
        Self { guess: true, ..self }
    }

    /// Whether flows are looked at.
    pub fn guesses(&self) -> bool {
        self.guess
    }

    /// Whether datagrams to a port are RTP.
    #[inline]
    pub fn has(&self, port: u16) -> bool {
        self.ports.iter().take(usize::from(self.count)).any(|other| *other == port)
    }

    /// The header of what may be RTP: version 2, and no packet of RTCP (RFC 5761, section 4).
    #[inline]
    pub(super) fn header(datagram: &[u8]) -> Option<Header<'_>> {
        let is_rtcp = datagram.get(1).is_some_and(|kind| (192..=223).contains(kind));
        Header::read(datagram).filter(|_| !is_rtcp)
    }
}
