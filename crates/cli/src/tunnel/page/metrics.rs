//! The status in the text format of OpenMetrics, for Prometheus. Every name begins with `thinair_tunnel_`.

use std::fmt::Error;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use thinair_tunnel::status::{Latency, PeerStatus, Reason, Side, Status};

/// Media type of the text.
pub(super) const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Exponents of the upper limits of latency buckets, powers of two in nanoseconds: 1 us, 4 us, ... 4.3 s.
/// They are also limits of the bins of the [histogram](thinair_tunnel::status::Histogram), so buckets are exact.
const BUCKETS: std::ops::RangeInclusive<u32> = 10..=32;

/// Returns the status as OpenMetrics text.
pub(super) fn metrics(status: &Arc<Status>) -> String {
    let mut registry = Registry::with_prefix("thinair_tunnel");
    registry.register_collector(Box::new(Metrics(Arc::clone(status))));
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => text,
        Err(Error) => unreachable!("writing to a string does not fail"),
    }
}

#[derive(Debug)]
struct Metrics(Arc<Status>);

type Labels<'l> = &'l [(&'l str, &'l str)];

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let status = &*self.0;
        let out = &mut encoder;
        about(out, status)?;
        carrier(out, status)?;
        traffic(out, status)?;
        peers(out, status)?;
        family(
            out,
            "drops",
            "Dropped packets and datagrams, by reason",
            None,
            MetricType::Counter,
            |family| {
                for (reason, count) in status.drops.iter() {
                    count_of(family, &[("reason", reason.name())], count)?;
                }
                Ok(())
            },
        )?;
        let help = "Time that packets spent in the daemon";
        family(out, "latency", help, Some(&Unit::Seconds), MetricType::Histogram, |family| {
            histogram(family, &[("direction", "sent")], &status.latency.sent)?;
            histogram(family, &[("direction", "received")], &status.latency.received)
        })?;
        family(out, "part_events", "Counters of parts", None, MetricType::Counter, |family| {
            for (part, counters) in &status.parts {
                for (event, count) in counters {
                    count_of(family, &[("part", part.as_str()), ("event", event.as_str())], *count)?;
                }
            }
            Ok(())
        })
    }
}

/// Writes one metric family: name, help, and all samples.
fn family(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    kind: MetricType,
    values: impl FnOnce(&mut MetricEncoder<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    values(&mut out.encode_descriptor(name, help, unit, kind)?)
}

fn count_of(family: &mut MetricEncoder<'_>, labels: Labels<'_>, count: u64) -> Result<(), Error> {
    family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)
}

fn gauge_of(family: &mut MetricEncoder<'_>, labels: Labels<'_>, value: f64) -> Result<(), Error> {
    family.encode_family(&labels)?.encode_gauge(&value)
}

fn carrier(out: &mut DescriptorEncoder<'_>, status: &Status) -> Result<(), Error> {
    let carrier = &status.carrier;
    let bytes = Some(&Unit::Bytes);
    let buffers = [("received", carrier.receive_buffer_octets), ("sent", carrier.send_buffer_octets)];
    family(out, "buffer", "Buffers of the socket", bytes, MetricType::Gauge, |family| {
        for (direction, octets) in buffers {
            if let Some(octets) = octets {
                gauge_of(family, &[("direction", direction)], octets as f64)?;
            }
        }
        Ok(())
    })?;
    let help = "Datagrams that exceeded the receive buffer of the socket";
    family(out, "buffer_errors", help, None, MetricType::Counter, |family| {
        let count = carrier.receive_buffer_errors;
        count.map_or(Ok(()), |count| count_of(family, &[("direction", "received")], count))
    })?;
    family(out, "path_mtu", "Longest IP packet on the path to a peer", bytes, MetricType::Gauge, |family| {
        for peer in &status.peers {
            if let Some(mtu) = peer.counters.path.mtu {
                gauge_of(family, &[("peer", peer.name.as_str())], mtu.into())?;
            }
        }
        Ok(())
    })
}

fn about(out: &mut DescriptorEncoder<'_>, status: &Status) -> Result<(), Error> {
    family(out, "build", "Version and configuration of the tunnel", None, MetricType::Info, |family| {
        let labels: Labels<'_> = &[
            ("version", &status.version),
            ("site", status.site.as_deref().unwrap_or_default()),
            ("interface", &status.inside.name),
            ("carrier", &status.carrier.url),
            ("security", &status.security),
        ];
        family.encode_info(&labels)
    })?;
    let seconds = Some(&Unit::Seconds);
    family(out, "uptime", "Time since the start of the daemon", seconds, MetricType::Gauge, |family| {
        family.encode_gauge(&status.uptime_seconds)
    })?;
    let help = "CPU time of the daemon";
    family(out, "cpu", help, seconds, MetricType::Counter, |family| {
        family.encode_counter::<NoLabelSet, _, u64>(&status.cpu_seconds, None)
    })?;
    let bytes = Some(&Unit::Bytes);
    family(out, "mtu", "MTU of the interface", bytes, MetricType::Gauge, |family| {
        family.encode_gauge(&i64::from(status.inside.mtu))
    })?;
    let help = "Overhead of a packet that is alone in its datagram";
    family(out, "overhead", help, bytes, MetricType::Gauge, |family| {
        family.encode_gauge(&i64::from(status.carrier.overhead))
    })?;
    family(
        out,
        "interface_up",
        "1 if the interface exists, 0 if it was removed",
        None,
        MetricType::Gauge,
        |family| family.encode_gauge(&i64::from(status.inside.up)),
    )
}

fn traffic(out: &mut DescriptorEncoder<'_>, status: &Status) -> Result<(), Error> {
    let totals = &status.totals;
    let bytes = Some(&Unit::Bytes);
    let bill = &status.billing;
    let rows: [(&str, &str, Option<&Unit>, [u64; 2]); 6] = [
        ("packets", "Packets at the interface", None, [totals.sent.packets, totals.received.packets]),
        ("inside", "Octets of packets at the interface", bytes, [totals.sent.octets, totals.received.octets]),
        (
            "compressed",
            "Octets of packets after header compression",
            bytes,
            [totals.sent.compressed_octets, totals.received.compressed_octets],
        ),
        ("datagrams", "Datagrams on the carrier", None, [totals.sent.datagrams, totals.received.datagrams]),
        (
            "carrier",
            "Octets on the carrier, including all headers",
            bytes,
            [totals.sent.carrier_octets, totals.received.carrier_octets],
        ),
        ("billing_units", "Billed units", None, [bill.sent.units, bill.received.units]),
    ];
    // Of sent traffic, what may have arrived; nothing where nobody answers.
    for (name, help, of) in [
        (
            "arrived_inside",
            "Octets of packets sent before their peer was heard last",
            totals.arrived.map(|arrived| arrived.octets),
        ),
        (
            "arrived_carrier",
            "Octets on the carrier sent before their peer was heard last",
            totals.arrived.map(|arrived| arrived.carrier_octets),
        ),
    ] {
        family(out, name, help, bytes, MetricType::Counter, |family| {
            of.map_or(Ok(()), |octets| count_of(family, &[("direction", "sent")], octets))
        })?;
    }
    for (name, help, unit, [sent, received]) in rows {
        family(out, name, help, unit, MetricType::Counter, |family| {
            count_of(family, &[("direction", "sent")], sent)?;
            count_of(family, &[("direction", "received")], received)
        })?;
    }
    Ok(())
}

fn peers(out: &mut DescriptorEncoder<'_>, status: &Status) -> Result<(), Error> {
    if let Some(counts) = status.peer_counts {
        let help = "Number of peers by state; metrics by peer are of those that the status lists";
        family(out, "peers", help, None, MetricType::Gauge, |family| {
            let states = [
                ("configured", counts.configured),
                ("with_session", counts.with_session),
                ("with_contexts", counts.with_contexts),
                ("in_trouble", counts.in_trouble),
                ("listed", counts.listed),
            ];
            states.iter().try_for_each(|(state, count)| gauge_of(family, &[("state", state)], *count as f64))
        })?;
    }
    type Both = fn(&PeerStatus) -> [u64; 2];
    let both_ways: [(&str, &str, Option<&Unit>, Both); 3] = [
        ("peer_packets", "Packets at the interface, by peer", None, |peer| {
            [peer.counters.sent.packets, peer.counters.received.packets]
        }),
        ("peer_inside", "Octets of packets at the interface, by peer", Some(&Unit::Bytes), |peer| {
            [peer.counters.sent.octets, peer.counters.received.octets]
        }),
        ("peer_carrier", "Octets on the carrier, by peer", Some(&Unit::Bytes), |peer| {
            [peer.counters.sent.carrier_octets, peer.counters.received.carrier_octets]
        }),
    ];
    for (name, help, unit, of) in both_ways {
        family(out, name, help, unit, MetricType::Counter, |family| {
            for peer in &status.peers {
                let [sent, received] = of(peer);
                count_of(family, &[("peer", &peer.name), ("direction", "sent")], sent)?;
                count_of(family, &[("peer", &peer.name), ("direction", "received")], received)?;
            }
            Ok(())
        })?;
    }
    type MaybeOne = fn(&PeerStatus) -> Option<u64>;
    let losses: [(&str, &str, MaybeOne); 2] = [
        ("peer_lost_units", "Units lost on the carrier on the way here", |peer| Some(peer.loss?.lost_units)),
        ("peer_received_units", "Units that arrived, where losses are counted", |peer| {
            Some(peer.loss?.received_units)
        }),
    ];
    for (name, help, of) in losses {
        family(out, name, help, None, MetricType::Counter, |family| {
            let counted = status.peers.iter().filter_map(|peer| Some((peer, of(peer)?)));
            counted.into_iter().try_for_each(|(peer, count)| count_of(family, &[("peer", &peer.name)], count))
        })?;
    }
    let help = "Round trip of the carrier, measured by the last key exchange";
    family(out, "peer_round_trip", help, Some(&Unit::Seconds), MetricType::Gauge, |family| {
        let measured = status.peers.iter().filter_map(|peer| Some((peer, peer.round_trip_seconds?)));
        measured.into_iter().try_for_each(|(peer, time)| gauge_of(family, &[("peer", &peer.name)], time))
    })?;
    type One = fn(&PeerStatus) -> u64;
    let ones: [(&str, &str, One); 3] = [
        ("sessions", "Sessions and epochs started", |peer| peer.counters.sessions),
        ("restarts", "Restarts of a peer", |peer| peer.counters.restarts),
        ("feedback_limited", "Feedback not sent because of a limit", |peer| peer.counters.feedback.limited),
    ];
    for (name, help, of) in ones {
        family(out, name, help, None, MetricType::Counter, |family| {
            status.peers.iter().try_for_each(|peer| count_of(family, &[("peer", &peer.name)], of(peer)))
        })?;
    }
    let (seconds, gauge) = (Some(&Unit::Seconds), MetricType::Gauge);
    family(out, "heard", "Time since the last authentic datagram of a peer", seconds, gauge, |family| {
        let heard = status.peers.iter().filter_map(|peer| Some((peer, peer.heard_seconds?)));
        heard.into_iter().try_for_each(|(peer, heard)| gauge_of(family, &[("peer", &peer.name)], heard))
    })?;
    rohc(out, status)
}

fn rohc(out: &mut DescriptorEncoder<'_>, status: &Status) -> Result<(), Error> {
    family(out, "feedback", "ROHC feedback elements, by type", None, MetricType::Counter, |family| {
        for peer in &status.peers {
            let feedback = &peer.counters.feedback;
            for (direction, types) in [("sent", feedback.sent), ("received", feedback.received)] {
                let types = [("ack", types.acks), ("nack", types.nacks), ("static_nack", types.static_nacks)];
                for (kind, count) in types {
                    let labels = [("peer", peer.name.as_str()), ("direction", direction), ("type", kind)];
                    count_of(family, &labels, count)?;
                }
            }
        }
        Ok(())
    })?;
    let help = "Packets that were not decompressed, by reason";
    family(out, "decompression_failures", help, None, MetricType::Counter, |family| {
        for peer in &status.peers {
            for (reason, count) in peer.counters.failures.iter() {
                count_of(family, &[("peer", &peer.name), ("reason", reason.name())], count)?;
            }
        }
        Ok(())
    })?;
    family(out, "contexts", "ROHC contexts in use", None, MetricType::Gauge, |family| {
        for peer in &status.peers {
            for context in &peer.contexts {
                let side = match context.side {
                    Side::Compressor => "compressor",
                    Side::Decompressor => "decompressor",
                };
                let labels: Labels<'_> = &[
                    ("peer", &peer.name),
                    ("side", side),
                    ("profile", &context.profile),
                    ("mode", &context.mode),
                    ("state", &context.state),
                ];
                gauge_of(family, labels, context.contexts as f64)?;
            }
        }
        Ok(())
    })
}

fn histogram(family: &mut MetricEncoder<'_>, labels: Labels<'_>, latency: &Latency) -> Result<(), Error> {
    let mut bins = latency.bins.iter().peekable();
    let mut buckets: Vec<(f64, u64)> = Vec::new();
    for power in BUCKETS.step_by(2) {
        let end = 1_u64 << power;
        let mut packets = 0;
        while let Some(bin) = bins.next_if(|bin| bin.below_nanoseconds <= end) {
            packets += bin.packets;
        }
        buckets.push((end as f64 / 1e9, packets));
    }
    buckets.push((f64::INFINITY, bins.map(|bin| bin.packets).sum()));
    let sum = latency.sum_nanoseconds as f64 / 1e9;
    family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, latency.packets, &buckets, None)
}
