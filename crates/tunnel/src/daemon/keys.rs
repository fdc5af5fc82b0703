//! Seal of a configuration: keys from files, and a digest of the parameters that both ends must share.

use sha2::{Digest as _, Sha256};
use thinair_os::clock;
use thinair_os::privileges::Account;
use thinair_rohc::CidSpace;
use thinair_session::{Group, GroupConfig, Insecure, PeerKeys, Random, Seal, TwoWay};
use thinair_wire::time::Instant;

use super::epochs::FileStore;
use super::helper::words;
use super::ownership;
use super::remembered::Remembered;
use super::setup::RunError;
use crate::key_file;
use crate::mtu::Budget;
use crate::site::packaging;
use crate::site_config::{KeyringError, Others, Security, SiteConfig, read_once};

/// Random octets of the system.
#[derive(Clone, Copy, Debug)]
pub(super) struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&mut self, octets: &mut [u8]) {
        // It fails only on systems without the call, where no secret can be kept.
        getrandom::fill(octets).expect("Linux has getrandom(2) since 3.17");
    }
}

/// Creates the seal of the configuration. `None`: datagrams are not encrypted.
pub(super) fn seal(
    now: Instant,
    config: &SiteConfig,
    budget: &Budget,
    remembered: Option<&Remembered>,
) -> Result<Option<Seal>, RunError> {
    Ok(match (&config.security, &config.others) {
        (Security::Open, _) => None,
        (Security::Insecure, Others::Peers(peers)) => {
            let addresses = peers.iter().map(|peer| peer.address).collect();
            Some(Seal::Insecure(Insecure::peers(addresses)))
        }
        (Security::Insecure, Others::Mesh(mesh)) => {
            let sites = mesh.sites.iter().map(|site| site.id).collect();
            Some(Seal::Insecure(Insecure::group(mesh.own, sites)))
        }
        (Security::Key { suite, negotiates, rekey, .. }, Others::Peers(peers)) => {
            let (mut known, mut addresses) = (Vec::new(), Vec::new());
            let read = read_once(&key_file::read);
            let entries = remembered.map(Remembered::by_name).unwrap_or_default();
            for peer in peers {
                let keys = config.keyring(peer, &read).map_err(|error| match error {
                    KeyringError::File(error) => RunError::Key(error),
                    error => RunError::Keys(error.to_string()),
                })?;
                let ids: Vec<_> = keys.ids().collect();
                let entry = entries.get(peer.name.as_str()).filter(|entry| ids.contains(&entry.key));
                addresses.push(entry.map(|entry| entry.addresses));
                known.push(PeerKeys { keys, address: peer.address, keepalive: peer.keepalive });
            }
            let digest = digest(config, budget);
            let two_way =
                TwoWay::new(now, config.carrier.over(), known, *suite, digest, Box::new(SystemRandom));
            let mut two_way = two_way.map_err(|bad| RunError::Keys(bad.to_string()))?;
            if *negotiates && has_aes() {
                two_way.offer_aes();
            }
            two_way.rekey(*rekey);
            if config.bare_keepalive {
                two_way.send_bare_keepalives();
            }
            for (peer, address) in addresses.into_iter().enumerate() {
                if let Some(address) = address {
                    two_way.remember(now, peer, address);
                }
            }
            Some(Seal::TwoWay(two_way))
        }
        (Security::Key { path: None, .. }, Others::Mesh(_)) => None,
        (Security::Key { path: Some(path), suite, .. }, Others::Mesh(mesh)) => {
            let group = GroupConfig {
                own: mesh.own,
                sites: mesh.sites.iter().map(|site| site.id).collect(),
                keys: key_file::read(path)?,
                suite: *suite,
                digest: digest(config, budget),
                wall_seconds: clock::calendar(),
            };
            std::fs::create_dir_all(&config.state)
                .map_err(|why| RunError::State(config.state.clone(), why))?;
            let store = FileStore::new(config.state.clone());
            let group = Group::new(now, group, Box::new(store), Box::new(SystemRandom));
            Some(Seal::Group(group.map_err(|bad| RunError::Keys(words(&bad)))?))
        }
    })
}

/// True if the processor has instructions for AES and for GCM's multiplication.
fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return std::is_x86_feature_detected!("aes") && std::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    false
}

/// Gives the files of epochs to the daemon's account.
pub(super) fn give_to(config: &SiteConfig, account: &Account) -> Result<(), RunError> {
    let (Security::Key { .. }, Others::Mesh(_)) = (&config.security, &config.others) else { return Ok(()) };
    let given = ownership::give_folder(&config.state, account)
        .and_then(|()| ownership::give_files(&config.state, account));
    given.map_err(|why| RunError::State(config.state.clone(), why))
}

/// Digest of all parameters that must be equal at both ends, compared in the handshake.
fn digest(config: &SiteConfig, budget: &Budget) -> [u8; 8] {
    let channel = &config.channel;
    let mut hash = Sha256::new();
    // 2: counters of sealed datagrams count units.
    hash.update(b"thinair channel 2");
    hash.update([
        u8::from(channel.cids == CidSpace::Large),
        u8::from(config.inside.bridged),
        u8::from(channel.by_type),
        budget.integrity as u8,
    ]);
    hash.update(channel.max_cid.to_be_bytes());
    hash.update(budget.mrru.to_be_bytes());
    for profile in channel.profiles.iter() {
        hash.update(profile.number().to_be_bytes());
    }
    hash.update([0xFF; 2]);
    // PIDs and NPAs may differ; the kind of packaging must not.
    hash.update([match packaging(&config.carrier) {
        crate::site_config::Packaging::Packed => 0,
        crate::site_config::Packaging::Ts { .. } => 1,
        crate::site_config::Packaging::Gse { .. } => 2,
    }]);
    if let Some(max_cid) = channel.large_max_cid {
        hash.update(b"auto");
        hash.update(max_cid.to_be_bytes());
    }
    let hash = hash.finalize();
    let mut digest = [0; 8];
    digest.copy_from_slice(&hash[..8]);
    digest
}

/// Name of the site: its number in a mesh.
pub(super) fn site_name(config: &SiteConfig) -> Option<String> {
    match &config.others {
        Others::Peers(_) => None,
        Others::Mesh(mesh) => mesh.own.map(|site| site.number().to_string()),
    }
}
