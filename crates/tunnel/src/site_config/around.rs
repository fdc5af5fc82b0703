//! Overhead of encryption for a configuration.

use thinair_session::{Around, Over};

use super::{Carrier, Others, Security, SiteConfig};

#[cfg(test)]
mod tests;

impl SiteConfig {
    /// Returns the overhead of encryption; none for open formats.
    pub fn around(&self) -> Around {
        let over = self.carrier.over();
        match (&self.security, &self.others) {
            (Security::Open, _) => Around::default(),
            (Security::Insecure, Others::Peers(_)) => Around::insecure_peers(),
            (Security::Insecure, Others::Mesh(_)) => Around::insecure_group(),
            (Security::Key { suite, private: Some(_), .. }, Others::Peers(_)) => {
                Around::public_keys(over, *suite)
            }
            (Security::Key { suite, private: None, .. }, Others::Peers(_)) => Around::two_way(over, *suite),
            (Security::Key { suite, .. }, Others::Mesh(_)) => Around::group(*suite),
        }
    }
}

impl Carrier {
    /// Transport of bodies of peers.
    pub const fn over(&self) -> Over {
        match self {
            Self::Serial { .. } => Over::Line,
            Self::Udp { .. } | Self::File { .. } => Over::Datagrams,
        }
    }
}
