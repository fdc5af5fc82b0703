//! Persistent connections in real time: several objects over one connection of a program, and the costs of the first
//! and the second of them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use thinair_analyze::exchange::{Passage, measure};
use thinair_http::{HttpLimits, HttpProtocol, Target};
use thinair_rohc::Ports;

use super::cell::{KernelOptions, Temper, TransportCell, TransportLink, TransportScale, TransportService};
use super::kept::{FirstAndSecond, KeptReal, SIZES, Took};
use super::passed::LinkPacket;
use super::service::{ServicePlace, object_named, several};
use crate::paper::{PaperError, RunPlan};

/// Services with persistent connections.
const SERVICES: [TransportService; 4] =
    [TransportService::CoapTcp, TransportService::HttpOurs, TransportService::Nginx, TransportService::Spdy];

/// Measures those that are installed, over 20 kbit/s with an MTU of 128 and lean options.
pub(super) fn run(
    plan: &RunPlan,
    scale: TransportScale,
    missing: &std::collections::BTreeMap<TransportService, String>,
    program: &std::path::Path,
    interrupt: &crate::children::Interrupt,
) -> Result<Vec<KeptReal>, PaperError> {
    let there = SERVICES.into_iter().filter(|service| !missing.contains_key(service));
    let jobs: Vec<_> = there.flat_map(|service| SIZES.map(|size| (service, size))).collect();
    crate::sweep::sweep(
        &jobs,
        plan.threads,
        &|_, _| Ok(()),
        |_| 1,
        |&(service, size)| {
            let site = super::site::LinkSite::open(TransportLink::Slow, KernelOptions::Lean, program, &[])?;
            let cell = TransportCell {
                service,
                link: TransportLink::Slow,
                options: KernelOptions::Lean,
                size,
                temper: Temper::Warm,
            };
            let mut children = crate::children::Children::new(interrupt)?;
            let mut samples = Vec::new();
            for _ in 0..scale.runs {
                samples.push(split(&site.kept(cell, &mut children)?, size));
            }
            Ok(KeptReal { service, size, samples })
        },
    )
}

/// Requests [several] objects of our server over one connection, each after the previous one is complete.
pub(super) fn ask(
    service: TransportService,
    place: &ServicePlace,
    size: usize,
    patience: Duration,
) -> Result<(), PaperError> {
    let address = place.address(service);
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    let (mut received, mut room) = (Vec::new(), [0; 2_048]);
    for (number, name) in (0..).zip(several(size)) {
        let request = request(service, address, number, name);
        let request = request.ok_or_else(|| {
            PaperError::RealTime(format!("{name} has no request for a persistent connection"))
        })?;
        stream.write_all(&request)?;
        let object = object_named(name, size);
        while !received.windows(size).any(|at| at == object) {
            match stream.read(&mut room)? {
                0 => {
                    return Err(PaperError::RealTime(format!(
                        "{} does not keep the connection",
                        service.name()
                    )));
                }
                len => received.extend_from_slice(&room[..len]),
            }
        }
    }
    Ok(())
}

/// Request of a client that keeps its connection, for the object of that name.
fn request(service: TransportService, address: SocketAddr, number: u8, name: usize) -> Option<Vec<u8>> {
    let path = name.to_string();
    if service == TransportService::CoapTcp {
        // RFC 8323, sections 3.2 and 5.3: a CSM without options comes first. Then GET with a Token of one octet and
        // Uri-Path, whose length is that of all options.
        let csm: &[u8] = if number == 0 { &[0, 0xE1] } else { &[] };
        let options = u8::try_from(1 + path.len()).ok().filter(|len| *len < 13)?;
        let head = [options << 4 | 1, 1, number, 0xB0 | path.len() as u8];
        return Some([csm, &head, path.as_bytes()].concat());
    }
    let (host, path) = (address.to_string(), format!("/{path}"));
    let target = Target { host: &host, path: &path };
    let client = HttpProtocol::Http.lasting_client(target, HttpLimits::default()).ok()?;
    Some(client.output().to_vec())
}

/// Costs of the first and the second object. A later one begins with the client's first data after the previous object
/// is complete.
fn split(packets: &[LinkPacket], size: usize) -> FirstAndSecond {
    let Some(start) = packets.first().map(|packet| packet.entered) else { return [None; 2] };
    let there = several(size).map(|name| {
        let passages = packets.iter().map(|packet| Passage {
            entered: packet.entered,
            delivered: packet.delivered,
            octets: &packet.octets,
        });
        let exchange = measure(passages, &object_named(name, size), Ports::COAP);
        Some(start + exchange.download_ns?)
    });
    let client = packets.first().and_then(|packet| packet.octets.get(12..16));
    let asks_after = |time: u64| {
        let asks = |packet: &LinkPacket| {
            packet.entered >= time && packet.octets.get(12..16) == client && carries(&packet.octets)
        };
        packets.iter().position(asks)
    };
    let took = |begin: Option<usize>, there: Option<u64>| {
        let (begin, there) = (begin?, there?);
        let own = packets.get(begin..asks_after(there)?)?;
        Some(Took {
            packets: own.len() as f64,
            octets: own.iter().map(|packet| packet.ip_octets).sum::<u64>() as f64,
            time: (there - own.first()?.entered) as f64 / 1e6,
        })
    };
    let [first, next, _] = there;
    [took(Some(0), first), took(first.and_then(asks_after), next)]
}

/// True if a packet of IPv4 and TCP carries octets of the application.
fn carries(packet: &[u8]) -> bool {
    let words =
        |at: usize, shift: u8| packet.get(at).map_or(0, |octet| usize::from(octet >> shift & 0xF) * 4);
    let ip = words(0, 0);
    packet.len() > ip + words(ip + 12, 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segment between the client .1 and the server .2; times in milliseconds.
    fn segment(from: u8, at: u64, sequence: u32, payload: &[u8]) -> LinkPacket {
        let mut octets = vec![0x45, 0, 0, (40 + payload.len()) as u8, 0, 0, 0x40, 0, 64, 6, 0, 0];
        octets.extend([192, 0, 2, from, 192, 0, 2, 3 - from]);
        octets.extend(if from == 1 { [0xC0, 0, 0x1F, 0x90] } else { [0x1F, 0x90, 0xC0, 0] });
        octets.extend(sequence.to_be_bytes());
        // The first segment of each side has SYN.
        let flags = if sequence == 0 { 0x12 } else { 0x10 };
        octets.extend([0, 0, 0, 0, 0x50, flags, 1, 0, 0, 0, 0, 0]);
        octets.extend(payload);
        LinkPacket {
            entered: at * 1_000_000,
            delivered: Some((at + 20) * 1_000_000),
            late: 0,
            ip_octets: octets.len() as u64,
            link_octets: octets.len() as u64,
            frames: 1,
            frame_octets: octets.len() as u64,
            octets,
        }
    }

    #[test]
    fn objects_of_a_connection_are_told_apart() {
        let objects = several(10).map(|name| object_named(name, 10));
        let packets = [
            segment(1, 0, 0, b""),
            segment(2, 20, 0, b""),
            segment(1, 50, 1, b"one"),
            segment(2, 80, 1, &objects[0]),
            segment(1, 100, 4, b""),
            segment(1, 110, 4, b"two"),
            segment(2, 140, 11, &objects[1]),
            segment(1, 160, 7, b"three"),
            segment(2, 190, 21, &objects[2]),
        ];
        let [first, next] = split(&packets, 10);
        assert_eq!(first, Some(Took { packets: 5.0, octets: 5.0 * 40.0 + 13.0, time: 100.0 }));
        assert_eq!(next, Some(Took { packets: 2.0, octets: 2.0 * 40.0 + 13.0, time: 50.0 }));
        // Without the second object, neither its costs nor those of earlier packets count.
        assert_eq!(split(&packets[..7], 10), [first, None]);
        assert_eq!(split(&[], 10), [None, None]);
    }

    #[test]
    fn a_message_of_coap_over_tcp_has_its_length() {
        let address = SocketAddr::from(([192, 0, 2, 2], 5_683));
        let first = request(TransportService::CoapTcp, address, 0, 10);
        assert_eq!(first.as_deref(), Some(&b"\x00\xE1\x31\x01\x00\xB210"[..]));
        assert_eq!(
            request(TransportService::CoapTcp, address, 1, 1_001).as_deref(),
            Some(&b"\x51\x01\x01\xB41001"[..])
        );
    }
}
