//! Sites of a mesh.

use std::io;

use thinair_session::{Epoch, EpochStore, Group, GroupConfig};

use super::*;
use crate::unit::SiteId;

/// Nothing is stored.
struct NoStore;

impl EpochStore for NoStore {
    fn load(&mut self, _: SiteId) -> io::Result<Option<Epoch>> {
        Ok(None)
    }

    fn store(&mut self, _: SiteId, _: &Epoch) -> io::Result<()> {
        Ok(())
    }
}

/// One of three sites; `inside`: additional settings of that section; `keys`: `None` without encryption.
pub(super) fn site(own: u8, inside: &str, keys: Option<Keys>) -> Site {
    let others: String = (1..=3)
        .filter(|id| *id != own)
        .map(|id| format!("[[site]]\nid = {id}\nname = \"site {id}\"\n"))
        .collect();
    let security = if keys.is_some() { KEY } else { "insecure = true" };
    let config = config(&format!(
        "[inside]\naddress = [\"10.0.0.{own}/24\"]\n{inside}\n[carrier]\nurl = \"udp://239.9.0.1:7000\"\n\
         [security]\n{security}\n[mesh]\nown = {own}\n{others}"
    ));
    let budget = Budget::of(&config).unwrap();
    let Others::Mesh(mesh) = &config.others else { panic!("a mesh") };
    let sites = mesh.sites.iter().map(|site| site.id).collect();
    let seal = match (keys, &config.security) {
        (Some(keys), Security::Key { suite, .. }) => {
            let group = GroupConfig {
                own: mesh.own,
                sites,
                keys,
                suite: *suite,
                digest: [1; 8],
                wall_seconds: 1_790_000_000,
            };
            let group =
                Group::new(Instant::ZERO, group, Box::new(NoStore), Box::new(random(u64::from(own) + 10)));
            Seal::Group(group.unwrap())
        }
        _ => Seal::Insecure(Insecure::group(mesh.own, sites)),
    };
    Site::new(Instant::ZERO, &config, &budget, Some(seal), &mut random(own.into())).unwrap()
}

/// Sends a packet from one site to another. Returns whether it was delivered.
fn talk(from: &mut Site, to: &mut Site, now: Instant) -> bool {
    let packet = datagram([10, 0, 0, 1], [10, 0, 0, 2]);
    from.handle_timeout(now);
    from.handle_packet(now, &packet);
    from.pause(now);
    let mut is_delivered = false;
    while let Some(output) = from.poll_output() {
        let SiteOutput::Datagram { octets, .. } = output else { continue };
        to.handle_datagram(now, None, &mut octets.to_vec());
        while let Some(output) = to.poll_output() {
            is_delivered |= matches!(output, SiteOutput::Packet { octets, .. } if octets == packet);
        }
    }
    is_delivered
}

#[test]
fn keys_of_the_file_are_replaced_step_by_step_and_a_removed_one_is_not_used() {
    let [old, new] = [1, 2].map(|octet| Key::new([octet; 32]));
    let steps = [Keys::two(old.clone(), new.clone()), Keys::two(new.clone(), old.clone()), Keys::one(new)];
    let mut sites = [1, 2].map(|own| site(own, "", Some(Keys::one(old.clone()))));
    let mut now = Instant::ZERO;
    let mut traffic = |[one, two]: &mut [Site; 2]| {
        for second in 0..30 {
            assert!(talk(one, two, now), "{second}");
            now = now + Duration::from_secs(1);
        }
        now
    };
    let mut now = traffic(&mut sites);
    for keys in &steps {
        for number in [0, 1] {
            assert_eq!(sites[number].change_keys(now, keys), Some("keys changed".to_owned()));
            assert_eq!(sites[number].change_keys(now, keys), None);
            now = traffic(&mut sites);
        }
    }
    // A site that was not reloaded.
    let [mut late, mut three] = [2, 3].map(|own| site(own, "", Some(Keys::one(old.clone()))));
    assert!(talk(&mut late, &mut three, now));
    assert!(!talk(&mut late, &mut sites[0], now));
}
