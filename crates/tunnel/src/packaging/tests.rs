#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::*;

fn others() -> Others {
    Others::Peers(vec![Peer {
        name: "peer".to_owned(),
        address: None,
        allowed: Vec::new(),
        key: None,
        keepalive: None,
        pid: None,
    }])
}

fn ts() -> Packaging {
    Packaging::Ts {
        pid: Pid::new(0x35).unwrap(),
        per_datagram: 7,
        flush: Duration::ZERO,
        psi: None,
        bitrate: None,
        npa: None,
    }
}

fn gse() -> Packaging {
    Packaging::Gse { flush: Duration::ZERO, npa: None }
}

#[test]
fn units_come_back() {
    for packaging in [Packaging::Packed, ts(), gse()] {
        let config = PackagerConfig::new(1_400);
        let mut packager = Packager::new(Instant::ZERO, &packaging, &others(), config).unwrap();
        let mut unpackager = Unpackager::new(&packaging, &others(), 2_000, false).unwrap();
        let units: Vec<Vec<u8>> = (1..200_usize).map(|i| vec![i as u8; i * 37 % 1_300 + 1]).collect();
        let mut bodies = Vec::new();
        for unit in &units {
            let unit = Unit { protocol: Protocol::Rohc, to: None, octets: unit };
            packager
                .push(Instant::ZERO, unit, &mut |body| bodies.push((body.octets.to_vec(), body.several)))
                .unwrap();
        }
        packager.pause(Instant::ZERO, &mut |body| bodies.push((body.octets.to_vec(), body.several)));
        let mut got = Vec::new();
        for (octets, several) in &bodies {
            let body = BodyIn { octets, several: *several, addressed: false };
            unpackager.receive(body, &mut |_, unit| got.push(unit.octets.to_vec())).unwrap();
        }
        assert!(got == units, "{packaging:?}");
    }
}
