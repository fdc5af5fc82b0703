use proptest::prelude::*;

use super::*;

const SITES: [u8; 2] = [2, 3];

fn any_unit() -> impl Strategy<Value = (u8, u8, u8, Vec<u8>)> {
    // Octets with a meaning are more likely than by chance.
    let octet = prop_oneof![
        4 => any::<u8>(),
        1 => prop::sample::select(vec![0xE0, 0xE1, 0xF0, 0xF2, 0xF8, 0xFC, 0xFD, 0xFE, 0xFF, 0x22, 0x45, 0x60, 0, 1, 2]),
    ];
    (0..4_u8, 0..4_u8, 0..5_u8, prop::collection::vec(octet, 0..80))
}

proptest! {
    /// For any input, no panic occurs, and each delivered packet was decompressed, or belongs to a type that
    /// is sent unchanged.
    #[test]
    fn arbitrary_units_do_no_harm(
        bridged: bool,
        by_type: bool,
        meshed: bool,
        large: bool,
        units in prop::collection::vec(any_unit(), 0..60),
    ) {
        let cids = if large { CidSpace::Large } else { CidSpace::Small };
        let config = ChannelConfig { by_type, cids, ..config(Mode::Optimistic) };
        let sites = SITES.map(|site| SiteId::new(site).unwrap());
        let role = if meshed {
            Role::Mesh { own: SiteId::new(1), sites: &sites, feedback: true }
        } else {
            Role::Pair
        };
        let mut channel =
            Channel::new(&Setup { role, bridged, typed: true, mrru: 1_000, ..setup(&config) }).unwrap();
        let mut delivered = [0, 0];
        for (i, (protocol, from, to, octets)) in units.into_iter().enumerate() {
            let protocol =
                [Protocol::Rohc, Protocol::Ipv4, Protocol::Ipv6, Protocol::Bridged][usize::from(protocol)];
            let unit = Owned { protocol, to: SiteId::new(to), large: false, octets };
            let (received, packets) = receive(&mut channel, ms(i as u64), SiteId::new(from), &unit);
            prop_assert!(packets.len() <= usize::from(received.is_ok()));
            let as_it_is = match protocol {
                Protocol::Rohc => false,
                // Also without `by_type`, which concerns what is sent.
                Protocol::Ipv4 | Protocol::Ipv6 => !bridged,
                Protocol::Bridged => bridged && !bridge::is_rohc(&unit.octets),
            };
            for packet in packets {
                prop_assert!(!packet.is_empty());
                prop_assert_eq!(as_it_is, packet == unit.octets);
                delivered[usize::from(as_it_is)] += 1;
            }
            if i % 5 == 0 {
                let _ = send(&mut channel, ms(i as u64), &udp6(i as u16, 1, 30));
                poll(&mut channel, ms(i as u64));
            }
        }
        let counters = channel.counters();
        prop_assert!(delivered[0] <= counters.decompressed.initialization + counters.decompressed.other);
        prop_assert_eq!(counters.received.packets, delivered[0] + delivered[1]);
        prop_assert_eq!(counters.not_sent.total(), 0);
        // Afterwards the channel works as before.
        channel.reset(None);
        let frame = |packet: Vec<u8>| {
            if bridged { [&[2; 12][..], &[0x86, 0xDD], &packet].concat() } else { packet }
        };
        let own = SiteId::new(2).unwrap();
        let others = [SiteId::new(1).unwrap()];
        let role = if meshed { Role::Mesh { own: Some(own), sites: &others, feedback: true } } else { role };
        let mut other =
            Channel::new(&Setup { role, bridged, typed: true, mrru: 1_000, seed: 3, ..setup(&config) }).unwrap();
        let packet = frame(udp6(7, 7, 40));
        let (_, units) = send(&mut other, ms(1_000), &packet);
        let from = if meshed { Some(own) } else { None };
        prop_assert_eq!(receive(&mut channel, ms(1_000), from, &units[0]), (Ok(()), vec![packet]));
    }

    /// With loss in both directions, in any mode, each delivered packet was sent, and the order is kept.
    #[test]
    fn loss_delivers_nothing_wrong(
        mode in 0..3_usize,
        losses in prop::collection::vec(any::<u8>(), 400),
        percent in 1..30_u8,
    ) {
        let mode = [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable][mode];
        let config = config(mode);
        let mut ends = pair(&setup(&config));
        let mut losses = losses.into_iter().cycle().map(|random| random % 100 < percent);
        let mut is_lost = move || losses.next().unwrap_or(false);
        let mut came = 0;
        for i in 0..200_u16 {
            let now = ms(20 * u64::from(i));
            for side in 0..2 {
                let packet = udp6(1 + i % 3, i, 24);
                let (_, mut units) = send(&mut ends[side], now, &packet);
                units.extend(poll(&mut ends[side], now));
                for unit in units {
                    if is_lost() {
                        continue;
                    }
                    let (_, packets) = receive(&mut ends[1 - side], now, None, &unit);
                    for delivered in packets {
                        prop_assert_eq!(&delivered, &packet);
                        came += 1;
                    }
                }
            }
        }
        prop_assert!(came > 150, "{} of 400 packets came", came);
    }
}
