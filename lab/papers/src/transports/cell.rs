//! Cells: services, links, options of the kernel, sizes.

/// Sizes of the objects, in octets. The first and the last are measured with every service.
pub(super) const SIZES: [usize; 6] = [10, 50, 100, 200, 500, 1_000];

/// Client and server, and their protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TransportService {
    /// libcoap, both ends.
    Coap,
    /// Ours: Fast Open, few headers, the response and the FIN in one write. The SYN-ACK is acknowledged at once, as by
    /// the paper's client.
    IotHttp,
    /// curl with the headers of a browser, and Apache.
    Http,
    /// Ours: SPDY/3.1 with Fast Open and few headers.
    IotSpdy,
    /// The package `spdy` of npm on Node, both ends.
    Spdy,
    /// IoT-HTTP that acknowledges the SYN-ACK with the next data.
    IotHttpHeld,
    /// Our CoAP, both ends.
    CoapOurs,
    /// Our CoAP over TCP, both ends.
    CoapTcp,
    /// Our HTTP/1.1 without Fast Open, both ends.
    HttpOurs,
    /// curl without options, and nginx.
    Nginx,
    /// nghttp and nghttpd, without TLS.
    Http2,
    /// mosquitto: PUBLISH with QoS 1. The object goes to the server.
    Mqtt,
    /// Our client and server of HTTP/3, based on quinn and h3.
    Http3,
}

impl TransportService {
    /// Services of the paper, in the order of its tables.
    pub(super) const PUBLISHED: [Self; 5] =
        [Self::Coap, Self::IotHttp, Self::IotSpdy, Self::Spdy, Self::Http];

    /// Further services.
    pub(super) const OTHERS: [Self; 7] = [
        Self::IotHttpHeld,
        Self::CoapOurs,
        Self::CoapTcp,
        Self::HttpOurs,
        Self::Nginx,
        Self::Http2,
        Self::Mqtt,
    ];

    /// All services but HTTP/3, which is not in the paper and not possible on all links: its datagrams have at least
    /// 1,200 octets.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Self::PUBLISHED.into_iter().chain(Self::OTHERS).chain([Self::Http3])
    }

    /// Name in ids.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Coap => "coap",
            Self::IotHttp => "iot-http",
            Self::Http => "http",
            Self::IotSpdy => "iot-spdy",
            Self::Spdy => "spdy",
            Self::IotHttpHeld => "iot-http-held",
            Self::CoapOurs => "coap-ours",
            Self::CoapTcp => "coap-tcp",
            Self::HttpOurs => "http-ours",
            Self::Nginx => "nginx",
            Self::Http2 => "http2",
            Self::Mqtt => "mqtt",
            Self::Http3 => "http3",
        }
    }

    /// True if packets and octets must be equal in every run at 20 kbit/s.
    pub(super) const fn is_steady(self) -> bool {
        matches!(self, Self::Coap | Self::IotHttp | Self::IotHttpHeld | Self::IotSpdy)
    }

    /// True if its first contact with a host differs from later ones, as it obtains a cookie (RFC 7413, section 4.1.2).
    pub(super) const fn has_cookie(self) -> bool {
        matches!(self, Self::IotHttp | Self::IotHttpHeld | Self::IotSpdy)
    }

    /// True if an object is fetched.
    pub(super) const fn is_download(self) -> bool {
        !matches!(self, Self::Mqtt)
    }
}

/// Link of the paper. All have 20 ms one-way delay, full duplex, and a queue of 50 packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TransportLink {
    /// 20 kbit/s, MTU 128.
    Slow,
    /// 250 kbit/s, MTU 128.
    Fast,
    /// 250 kbit/s, MTU 1,280.
    Wide,
    /// 20 kbit/s with IPv6, whose packets are carried in frames of 128 octets: RFC 4944, section 5.3. Not in the paper.
    Frames,
    /// 20 kbit/s with IPv6 in frames of 128 octets, with LOWPAN_IPHC: RFC 6282. Not in the paper.
    Iphc,
}

impl TransportLink {
    /// Links of the paper.
    pub(super) const PUBLISHED: [Self; 3] = [Self::Slow, Self::Fast, Self::Wide];

    /// Rate and MTU, as arguments of `thinair link run`.
    pub(super) const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Slow | Self::Frames | Self::Iphc => ("20k", "128"),
            Self::Fast => ("250k", "128"),
            Self::Wide => ("250k", "1280"),
        }
    }

    /// Name in ids.
    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Slow => "20k/128",
            Self::Fast => "250k/128",
            Self::Wide => "250k/1280",
            Self::Frames => "20k/128-frames",
            Self::Iphc => "20k/128-iphc",
        }
    }

    /// Further arguments of `thinair link run`.
    pub(super) const fn more(self) -> &'static [&'static str] {
        if matches!(self, Self::Iphc) { &["--iphc"] } else { &[] }
    }

    pub(super) const fn is_ipv6(self) -> bool {
        matches!(self, Self::Frames | Self::Iphc)
    }
}

/// TCP options of the kernel, at both hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KernelOptions {
    /// Without timestamps and SACK, as the TCP header sizes in the paper imply.
    Lean,
    /// Defaults of Linux.
    Default,
    /// Lean, without window scaling, and Fast Open without cookies.
    Cookieless,
}

impl KernelOptions {
    pub(super) const ALL: [Self; 3] = [Self::Lean, Self::Default, Self::Cookieless];

    /// Suffix of ids. Rows of the paper's configuration have none.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Lean => "",
            Self::Default => "/default",
            Self::Cookieless => "/cookieless",
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Lean => "lean",
            Self::Default => "default",
            Self::Cookieless => "cookieless",
        }
    }

    /// Values below /proc/sys/net/ipv4, set in both namespaces before anything runs. All other values follow from the
    /// kernel, and did not change any count.
    pub(super) const fn sysctls(self) -> [(&'static str, &'static str); 11] {
        let (fast_open, timestamps, sack, scaling) = match self {
            Self::Lean => ("3", "0", "0", "1"),
            Self::Default => ("3", "1", "1", "1"),
            // Client, server, data without cookie in both directions: ip-sysctl of Linux.
            Self::Cookieless => ("519", "0", "0", "0"),
        };
        [
            ("tcp_fastopen", fast_open),
            ("tcp_timestamps", timestamps),
            ("tcp_sack", sack),
            ("tcp_window_scaling", scaling),
            ("tcp_ecn", "2"),
            ("tcp_mtu_probing", "0"),
            ("tcp_slow_start_after_idle", "1"),
            ("tcp_autocorking", "1"),
            // The path metrics of one exchange must not affect the next one. Cookies are kept nevertheless.
            ("tcp_no_metrics_save", "1"),
            ("tcp_fastopen_blackhole_timeout_sec", "0"),
            ("tcp_min_snd_mss", "48"),
        ]
    }
}

/// Previous contact with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Temper {
    /// There was contact before: a client of Fast Open has its cookie.
    Warm,
    /// There was no contact.
    Cold,
}

/// One figure of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TransportCell {
    pub(super) service: TransportService,
    pub(super) link: TransportLink,
    pub(super) options: KernelOptions,
    pub(super) size: usize,
    pub(super) temper: Temper,
}

impl TransportCell {
    /// Id of one of its figures.
    pub(super) fn id(&self, figure: &str) -> String {
        let temper = if self.temper == Temper::Cold { "/cold" } else { "" };
        let (service, link, size) = (self.service.name(), self.link.id(), self.size);
        format!("{service}/{link}/{size}/{figure}{}{temper}", self.options.suffix())
    }
}

/// Amount of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TransportScale {
    /// Number of runs of each cell.
    pub(super) runs: usize,
    links: &'static [TransportLink],
    sizes: &'static [usize],
    /// Sizes for services that are not in the paper.
    others: &'static [usize],
}

/// Most significant cells only.
pub(super) const QUICK: TransportScale =
    TransportScale { runs: 1, links: &[TransportLink::Slow], sizes: &[10, 1_000], others: &[10] };
/// Default: takes minutes.
pub(super) const USUAL: TransportScale =
    TransportScale { runs: 3, links: &TransportLink::PUBLISHED, sizes: &SIZES, others: &[10, 1_000] };
/// All cells.
pub(super) const FULL: TransportScale =
    TransportScale { runs: 5, links: &TransportLink::PUBLISHED, sizes: &SIZES, others: &SIZES };

/// Cells by their hosts and link, the slowest first.
pub(super) fn sites(scale: TransportScale) -> Vec<Vec<TransportCell>> {
    let places = scale.links.iter().flat_map(|&link| KernelOptions::ALL.map(|options| (link, options)));
    let mut sites: Vec<_> = places.map(|(link, options)| site(scale, link, options)).collect();
    sites.extend([TransportLink::Frames, TransportLink::Iphc].map(|link| {
        let each = TransportService::PUBLISHED
            .into_iter()
            .flat_map(|service| scale.others.iter().map(move |&size| (service, size)));
        each.map(|(service, size)| TransportCell {
            service,
            link,
            options: KernelOptions::Lean,
            size,
            temper: Temper::Warm,
        })
        .collect()
    }));
    sites
}

fn site(scale: TransportScale, link: TransportLink, options: KernelOptions) -> Vec<TransportCell> {
    let cell = |service, size, temper| TransportCell { service, link, options, size, temper };
    let of = |services: &[TransportService], sizes: &[usize]| -> Vec<TransportCell> {
        let each = services.iter().flat_map(|&service| sizes.iter().map(move |&size| (service, size)));
        each.map(|(service, size)| cell(service, size, Temper::Warm)).collect()
    };
    if options == KernelOptions::Cookieless {
        // Without cookies, only services that use them differ.
        return of(
            &[TransportService::IotHttp, TransportService::IotHttpHeld, TransportService::IotSpdy],
            scale.others,
        );
    }
    let mut cells = of(&TransportService::PUBLISHED, scale.sizes);
    cells.extend(of(&TransportService::OTHERS, scale.others));
    let with_cookie = TransportService::PUBLISHED.into_iter().filter(|service| service.has_cookie());
    cells.extend(
        with_cookie
            .flat_map(|service| scale.others.iter().map(move |&size| cell(service, size, Temper::Cold))),
    );
    if link == TransportLink::Wide && options == KernelOptions::Lean {
        let tempers = [Temper::Cold, Temper::Warm].into_iter();
        cells.extend(tempers.flat_map(|temper| {
            scale.others.iter().map(move |&size| cell(TransportService::Http3, size, temper))
        }));
    }
    cells
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_those_of_the_issue_and_tell_cells_apart() {
        let cells: Vec<TransportCell> = sites(FULL).into_iter().flatten().collect();
        let ids: BTreeSet<String> = cells.iter().map(|cell| cell.id("packets")).collect();
        assert_eq!(ids.len(), cells.len());
        for id in [
            "coap/20k/128/10/packets",
            "spdy/250k/1280/1000/packets/default",
            "iot-http/20k/128/10/packets/cold",
        ] {
            assert!(ids.contains(id), "{id}");
        }
    }

    #[test]
    fn the_usual_run_has_the_matrix_of_the_paper_with_both_options() {
        let cells: BTreeSet<TransportCell> = sites(USUAL).into_iter().flatten().collect();
        for service in TransportService::PUBLISHED {
            for (link, size) in
                TransportLink::PUBLISHED.into_iter().flat_map(|link| SIZES.map(|size| (link, size)))
            {
                for options in [KernelOptions::Lean, KernelOptions::Default] {
                    let cell = TransportCell { service, link, options, size, temper: Temper::Warm };
                    assert!(cells.contains(&cell), "{}", cell.id("packets"));
                }
            }
        }
    }
}
