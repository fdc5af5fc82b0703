//! Reasons why a site of a configuration would not start, for a check without starting it.

use std::path::Path;

use thinair_session::{Keys, PeerKeys, TwoWay};
use thinair_wire::time::Instant;

use super::Site;
use crate::key_file::KeyFileError;
use crate::mtu::Budget;
use crate::site_config::{KeyringError, Others, Security, SiteConfig, read_once};

impl Site {
    /// Returns reasons why a site would not start: contradictory networks of peers, channels or packagings, and keys that do not
    /// distinguish peers or do not fit. `keys`: those of a file; files that cannot be read are no obstacles of their own.
    pub fn obstacles(
        config: &SiteConfig,
        budget: &Budget,
        keys: &dyn Fn(&Path) -> Result<Keys, KeyFileError>,
    ) -> Vec<String> {
        // Nothing of it is used.
        let mut random = |_: &mut [u8]| {};
        let site = Self::new(Instant::ZERO, config, budget, None, &mut random);
        let mut found: Vec<String> = site.err().map(|error| error.to_string()).into_iter().collect();
        let (Security::Key { suite, .. }, Others::Peers(peers)) = (&config.security, &config.others) else {
            return found;
        };
        let mut known = Vec::new();
        let keys = read_once(keys);
        for peer in peers {
            match config.keyring(peer, &keys) {
                Ok(keys) => known.push(PeerKeys { keys, address: peer.address, keepalive: peer.keepalive }),
                Err(KeyringError::File(_)) => {}
                Err(error) => found.push(error.to_string()),
            }
        }
        if known.len() == peers.len() {
            let over = config.carrier.over();
            let seal = TwoWay::new(Instant::ZERO, over, known, *suite, [0; 8], Box::new(random));
            found.extend(seal.err().map(|error| error.to_string()));
        }
        found
    }
}
