//! Profile 0x0081: CoAP over UDP over IP. `docs/coap-profile.md` specifies it.

/// UDP ports that [`CoapPorts`] can hold.
const PORTS: usize = 8;

/// What a compressor is told about CoAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoapConfig {
    /// Which of the smallest formats it may use.
    pub format: FormatPolicy,
    /// UDP ports whose packets are CoAP. Other flows are taken for CoAP as long as each of their packets passes a
    /// strict parse.
    pub ports: CoapPorts,
}

/// Which of the smallest formats a compressor may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FormatPolicy {
    /// `pt_0c` where the UDP checksum is carried; else `pt_1`, and `pt_0` once feedback has shown that little is
    /// lost.
    #[default]
    Auto,
    /// `pt_0` from the beginning: 1 octet, for links without loss.
    Pt0,
    /// `pt_1` always; a carried checksum adds two octets to it.
    Pt1,
    /// `pt_0c` where the UDP checksum is carried, `pt_1` elsewhere.
    Pt0c,
}

/// UDP ports that carry CoAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoapPorts {
    ports: [u16; PORTS],
    len: u8,
}

impl Default for CoapPorts {
    /// 5683. RFC 7252, section 12.6.
    fn default() -> Self {
        let mut ports = [0; PORTS];
        ports[0] = 5683;
        Self { ports, len: 1 }
    }
}

impl CoapPorts {
    /// Most ports of a list.
    pub const MOST: usize = PORTS;

    /// A list of at most [`MOST`](Self::MOST) ports; `None` if there are more.
    pub fn of(list: &[u16]) -> Option<Self> {
        let mut ports = [0; PORTS];
        ports.get_mut(..list.len())?.copy_from_slice(list);
        Some(Self { ports, len: list.len() as u8 })
    }

    /// Whether a port is in the list.
    pub fn has(&self, port: u16) -> bool {
        self.ports.iter().take(usize::from(self.len)).any(|&listed| listed == port)
    }
}
