//! Reasons why a site of a configuration would not start, for a check without starting it.

use std::path::Path;

use thinair_wire::time::Instant;

use super::Site;
use crate::mtu::Budget;
use crate::seal::{Keys, Over, PeerKeys, TwoWay};
use crate::site_config::{Others, Security, SiteConfig};

impl Site {
    /// Returns reasons why a site would not start: contradictory networks of peers, channels or packagings, and keys that do not
    /// distinguish peers. `keys`: those of a file, `None` if they cannot be read.
    pub fn obstacles(
        config: &SiteConfig,
        budget: &Budget,
        keys: &dyn Fn(&Path) -> Option<Keys>,
    ) -> Vec<String> {
        // Nothing of it is used.
        let mut random = |_: &mut [u8]| {};
        let site = Self::new(Instant::ZERO, config, budget, None, &mut random);
        let mut found: Vec<String> = site.err().map(|error| error.to_string()).into_iter().collect();
        let (Security::Key { path, suite, .. }, Others::Peers(peers)) = (&config.security, &config.others)
        else {
            return found;
        };
        let known = peers.iter().map(|peer| {
            let keys = keys(peer.key.as_ref().unwrap_or(path))?;
            Some(PeerKeys { keys, address: peer.address, keepalive: peer.keepalive })
        });
        if let Some(known) = known.collect::<Option<Vec<_>>>() {
            let over = Over::of(&config.carrier);
            let seal = TwoWay::new(Instant::ZERO, over, known, *suite, [0; 8], Box::new(random));
            found.extend(seal.err().map(|error| error.to_string()));
        }
        found
    }
}
