//! HTTP/3 beside the other services. It differs in three ways: it needs datagrams of 1,200 octets; it is encrypted, so
//! that the client reports the time of the object; and a resumed session needs an earlier connection, which does not
//! count.

use super::cell::{KernelOptions, Temper, TransportCell, TransportLink, TransportService};

/// Octets of an IPv4 packet with the smallest first datagram of QUIC. RFC 9000, section 14.1.
const LEAST: u32 = 1_200 + 8 + 20;

/// Cells that cannot be measured, as the MTU of the link is too small.
pub(super) fn impossible() -> impl Iterator<Item = TransportCell> {
    let links = TransportLink::PUBLISHED.into_iter();
    let small = links.filter(|link| link.words().1.parse::<u32>().is_ok_and(|mtu| mtu < LEAST));
    small.flat_map(|link| {
        [10, 1_000].map(|size| TransportCell {
            service: TransportService::Http3,
            link,
            options: KernelOptions::Lean,
            size,
            temper: Temper::Warm,
        })
    })
}

#[cfg(target_os = "linux")]
pub(super) use measured::{ClientReport, certificate, keep_last_connection, missing, prepare};

#[cfg(target_os = "linux")]
mod measured {
    use std::fs::{self, File};
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use serde_json::Value;
    use thinair_analyze::exchange::Exchange;
    use thinair_wire::header::protocol;

    use super::super::cell::Temper;
    use super::super::passed::LinkPacket;
    use super::super::service::ServicePlace;

    /// Reason that it cannot be measured; `None` if it can. Only a `thinair` without HTTP/3 prints how to build it.
    pub(in super::super) fn missing(program: &Path) -> Option<String> {
        let asked =
            Command::new(program).args(["fetch", "--service", "http3", "https://127.0.0.1/"]).output();
        let output = asked.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).ok()?;
        let output = output.trim().trim_start_matches("thinair-lab: ");
        output.contains("built without http3").then(|| output.to_owned())
    }

    /// Path of the server's certificate.
    pub(in super::super) fn certificate(place: &ServicePlace) -> PathBuf {
        place.folder.join("http3.pem")
    }

    /// Makes a client write its report to a file, and, if it is warm, open a connection before.
    pub(in super::super) fn prepare(
        client: &mut Command,
        temper: Temper,
        output: &Path,
    ) -> std::io::Result<()> {
        client.stdout(File::create(output)?);
        if temper == Temper::Warm {
            client.arg("--resume");
        }
        Ok(())
    }

    /// Client's report of a delivered object, in nanoseconds since the attempt to connect.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in super::super) struct ClientReport {
        /// Time until its last octet.
        download_ns: u64,
        /// Time until the request could be sent.
        set_up_ns: u64,
    }

    impl ClientReport {
        /// `None` if there was no object of that size.
        pub(in super::super) fn read(output: &Path, size: usize) -> Option<Self> {
            let report: Value = serde_json::from_str(&fs::read_to_string(output).ok()?).ok()?;
            let came = report["status"] == 200 && report["octets"] == size;
            let nanos = |name: &str| report[name].as_f64().map(|seconds| (seconds * 1e9) as u64);
            let (download_ns, set_up_ns) = (nanos("seconds")?, nanos("connected_seconds").unwrap_or(0));
            came.then_some(Self { download_ns, set_up_ns })
        }

        /// Adds the times that packets do not show.
        pub(in super::super) fn complete(self, exchange: &mut Exchange, size: usize) {
            (exchange.download_ns, exchange.set_up_ns) = (Some(self.download_ns), Some(self.set_up_ns));
            exchange.octets.payload = size as u64;
            exchange.octets.application = exchange.octets.application.saturating_sub(size as u64);
        }
    }

    /// Removes packets before the last connection of the client, which sent the first packet.
    pub(in super::super) fn keep_last_connection(packets: &mut Vec<&LinkPacket>) {
        let Some(client) =
            packets.first().and_then(|packet| DatagramEnds::of(&packet.octets)).map(|ends| ends.source)
        else {
            return;
        };
        let port = |packet: &&LinkPacket| {
            let ends = DatagramEnds::of(&packet.octets)?;
            Some(if ends.source == client { ends.ports[0] } else { ends.ports[1] })
        };
        // Dropped packets have no octets here, and are skipped.
        let last = packets.iter().rev().find_map(port);
        let from = packets.iter().position(|packet| last.is_some() && port(packet) == last);
        let begin = from.and_then(|at| packets.get(at)).map(|packet| packet.entered);
        packets.retain(|packet| match port(packet) {
            Some(port) => Some(port) == last,
            None => begin.is_some_and(|begin| packet.entered >= begin),
        });
    }

    /// Address of the sender and ports of a UDP datagram in IPv4.
    struct DatagramEnds {
        source: [u8; 4],
        ports: [u16; 2],
    }

    impl DatagramEnds {
        fn of(packet: &[u8]) -> Option<Self> {
            let (ip, rest) = packet.split_first_chunk::<20>()?;
            let [from_high, from_low, to_high, to_low] = *rest.first_chunk::<4>()?;
            // Without options, and no fragment.
            (ip[0] == 0x45 && ip[9] == protocol::UDP).then_some(())?;
            let ports = [[from_high, from_low], [to_high, to_low]].map(u16::from_be_bytes);
            Some(Self { source: [ip[12], ip[13], ip[14], ip[15]], ports })
        }
    }

    #[cfg(test)]
    #[allow(clippy::unwrap_used)]
    mod tests {
        use super::*;

        fn packet(entered: u64, from: u8, ports: [u16; 2]) -> LinkPacket {
            let mut octets =
                vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, protocol::UDP, 0, 0, 10, 9, 0, from, 10, 9, 0, 3 - from];
            octets.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
            octets.extend([0, 8, 0, 0]);
            LinkPacket { entered, octets, ..LinkPacket::default() }
        }

        #[test]
        fn the_last_connection_is_that_of_the_last_port_of_the_client() {
            let all = [
                packet(1, 1, [5_000, 443]),
                packet(2, 2, [443, 5_000]),
                packet(4, 1, [6_000, 443]),
                // Late packet of the first connection.
                packet(5, 2, [443, 5_000]),
                LinkPacket { entered: 6, ..LinkPacket::default() },
                packet(7, 2, [443, 6_000]),
            ];
            let mut kept: Vec<&LinkPacket> = all.iter().collect();
            keep_last_connection(&mut kept);
            assert_eq!(kept.iter().map(|packet| packet.entered).collect::<Vec<_>>(), [4, 6, 7]);
        }

        #[test]
        fn an_object_of_another_size_or_an_error_is_no_download() {
            let file = tempfile::NamedTempFile::new().unwrap();
            let report = |text: &str| {
                fs::write(file.path(), text).unwrap();
                ClientReport::read(file.path(), 10)
            };
            let warm = r#"{"status":200,"octets":10,"seconds":0.25,"connected_seconds":null}"#;
            assert_eq!(report(warm), Some(ClientReport { download_ns: 250_000_000, set_up_ns: 0 }));
            for text in [
                "",
                r#"{"status":200,"octets":9,"seconds":0.25}"#,
                r#"{"status":404,"octets":10,"seconds":0.25}"#,
                r#"{"status":null,"error":"no","octets":0,"seconds":25.0}"#,
            ] {
                assert_eq!(report(text), None, "{text}");
            }
        }
    }
}
