//! The options of a tunnel: each is a key of a configuration file, and replaces what stands there. Their values are
//! texts here; `thinair_tunnel::config` reads them, so that files, URLs and arguments mean the same.

use std::path::PathBuf;

use clap::Args;
use thinair_tunnel::config::Settings;

/// What a tunnel can be told on the command line.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TunnelOptions {
    /// What carries packets: udp://HOST:PORT, ule+udp://, gse+udp://, ule+file://?from=FILE&to=FILE,
    /// serial:///dev/DEVICE, serial+raw://
    ///
    /// udp://:PORT waits there for the other end. Options go behind a `?`, with `&` in between: listen, iface, ttl, mtu
    /// and keepalive for UDP; ts, rtp, pid, peer-pid, psi, bitrate, flush and npa for transport streams; flush and npa for
    /// GSE; speed, framing (cobs, slip) and mtu for serial lines.
    #[arg(value_name = "CARRIER")]
    pub(crate) carrier: Option<String>,
    /// Read the configuration from a TOML file; options given here replace what stands there
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub(crate) config: Option<PathBuf>,
    /// Read the configuration from /etc/thinair/NAME.toml, and keep status and state below that name
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,

    /// Name of the interface [default: thinair0, or the first such name that is free]
    #[arg(long, value_name = "NAME", help_heading = "Interface")]
    pub(super) tun: Option<String>,
    /// Carry Ethernet frames (TAP) instead of IP packets
    #[arg(long, help_heading = "Interface")]
    tap: bool,
    /// Address of the interface and bits of its network, as in 10.9.0.1/30; may be repeated
    #[arg(long, value_name = "ADDRESS/BITS", help_heading = "Interface")]
    address: Vec<String>,
    /// Network behind the tunnel, as in 0.0.0.0/0; may be repeated. Routes that are there stay, and of two the longer prefix is
    /// used; datagrams of the tunnel itself never go into it
    #[arg(long, value_name = "NETWORK/BITS", help_heading = "Interface")]
    route: Vec<String>,
    /// Name server behind the tunnel, or search domain, while the tunnel is there; may be repeated. Set by systemd-resolved
    /// or resolvconf
    #[arg(long, value_name = "ADDRESS", help_heading = "Interface")]
    dns: Vec<String>,
    /// Network namespace that the interface is in, by its name in `ip netns`
    #[arg(long, value_name = "NAME", help_heading = "Interface")]
    pub(super) netns: Option<String>,
    /// Octets of the longest packet inside [default: what the carrier has room for, and at least 1280]
    #[arg(long, value_name = "N", help_heading = "Interface")]
    mtu: Option<String>,
    /// Packets that wait in the interface (txqueuelen)
    #[arg(long, value_name = "N", help_heading = "Interface")]
    queue: Option<String>,
    /// Let the size of TCP segments that begin here follow what is lost: fixed:OCTETS, dmss, tssa or adaptive. The daemon
    /// then keeps the right to change routes (CAP_NET_ADMIN); docs/segment-size.md
    #[arg(long, value_name = "SIZER", help_heading = "Interface")]
    segments: Option<String>,

    /// Address and port of the socket [default: the port of the carrier, on every address]
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Carrier")]
    listen: Option<String>,
    /// How often the other end is told that we are here, so that a NAT in between remembers us; as in 25s
    #[arg(long, value_name = "TIME", help_heading = "Carrier")]
    keepalive: Option<String>,

    /// Seal each datagram with the keys of this file, which `thinair tunnel keygen` makes
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    key: Option<String>,
    /// Cipher and tag: chacha20-poly1305, aes-gcm, aes-ccm-8 or aes-ccm-4 [default: the first; on serial lines aes-ccm-8]
    #[arg(long, value_name = "NAME", help_heading = "Security")]
    suite: Option<String>,
    /// Octets of the tag instead of a suite: 16, 8 or 4. A forged datagram passes one of 4 octets once in 2^32
    #[arg(long, value_name = "N", help_heading = "Security")]
    tag: Option<String>,
    /// Send transport streams or GSE in the standard format, which everybody can read and write
    #[arg(long, help_heading = "Security")]
    open: bool,
    /// Seal nothing: whoever can send a datagram can send packets into the network, and read those that pass
    #[arg(long, help_heading = "Security")]
    insecure: bool,

    /// CIDs, the same at both ends: small, large, or auto, which is small CIDs until 16 flows are live and large ones then
    /// [default: auto between two ends with a key or --insecure, otherwise small]
    #[arg(long, value_name = "SPACE", help_heading = "Channel")]
    cid: Option<String>,
    /// Highest CID, with auto that of large CIDs, the same at both ends [default: 15; with auto 1023]
    #[arg(long, value_name = "N", help_heading = "Channel")]
    max_cid: Option<String>,
    /// Profiles besides `uncompressed`, the same at both ends: names separated by commas, of rtp, udp, esp, ip,
    /// rtp-udp-lite, udp-lite, tcp, coap-2015 and coap; v1 stands for the first six [default: v1,coap]
    #[arg(long, value_name = "LIST", help_heading = "Channel")]
    profiles: Option<String>,
    /// Octets of the longest packet that is sent in segments, 0 for none, the same at both ends [default: what is needed]
    #[arg(long, value_name = "N", help_heading = "Channel")]
    mrru: Option<String>,
    /// Mode of operation: u, o or r [default: o, and u where nothing can be answered]
    #[arg(long, value_name = "MODE", help_heading = "Channel")]
    mode: Option<String>,
    /// When contexts are refreshed: `budget=PERCENT%[,packets=N][,time=SECONDS]` (after SECONDS, where that share of the
    /// octets sent pays for it or N packets have passed), `packets=N,time=SECONDS[,backoff]`,
    /// `ir=N,so=N[,direct]`, or `off`
    /// [default: budget=5%,packets=128,time=16 in mode u, off in modes o and r]
    #[arg(long, value_name = "POLICY", help_heading = "Channel")]
    refresh: Option<String>,
    /// Packets that say a change before it is taken for known [default: 4]
    #[arg(long, value_name = "N", help_heading = "Channel")]
    repetitions: Option<String>,
    /// Values of a W-LSB window [default: 4]
    #[arg(long, value_name = "N", help_heading = "Channel")]
    window: Option<String>,
    /// How RTP is found: guess, ports or never [default: guess]
    #[arg(long, value_name = "HOW", help_heading = "Channel")]
    rtp: Option<String>,
    /// UDP and UDP-Lite ports to which RTP goes, at most 8, separated by commas
    #[arg(long, value_name = "LIST", help_heading = "Channel")]
    rtp_ports: Option<String>,
    /// Template file with the bases of profile `coap`, the same at both ends (`thinair rohc learn` makes one)
    #[arg(long, value_name = "FILE", help_heading = "Channel")]
    coap_template: Option<String>,
    /// Send what no profile takes as an IP packet with its own Type (ULE and GSE), not in the uncompressed profile
    #[arg(long, help_heading = "Channel")]
    by_type: bool,
    /// How long feedback waits for a packet that takes it along [default: 20ms]
    #[arg(long, value_name = "TIME", help_heading = "Channel")]
    feedback_wait: Option<String>,
    /// Pad datagrams to multiples of N octets before they are sealed: compression makes lengths tell more
    #[arg(long, value_name = "N", help_heading = "Channel")]
    pad: Option<String>,

    /// Socket that tells the status, or `none` [default: /run/thinair/NAME/status.sock]
    #[arg(long, value_name = "PATH", help_heading = "Seeing it")]
    status: Option<String>,
    /// Serve a live page and metrics for Prometheus, on a loopback address alone; as in 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Seeing it")]
    http: Option<String>,
    /// Write packets as they are inside to a pcap file
    #[arg(long, value_name = "FILE", help_heading = "Seeing it")]
    pcap_inside: Option<String>,
    /// Write what is on the carrier to a pcap file
    #[arg(long, value_name = "FILE", help_heading = "Seeing it")]
    pcap_outside: Option<String>,
    /// Octets that the carrier bills at a time, for each datagram; the status counts them
    #[arg(long, value_name = "N", help_heading = "Seeing it")]
    billing_unit: Option<String>,

    /// Go on as this user when everything is open, without any capability
    #[arg(long, value_name = "NAME", help_heading = "Daemon")]
    user: Option<String>,
    /// Folder in which epochs and addresses of peers are kept [default: /var/lib/thinair/NAME]
    #[arg(long, value_name = "FOLDER", help_heading = "Daemon")]
    state: Option<String>,
}

impl TunnelOptions {
    /// Tells the settings all that was given.
    pub(super) fn tell(&self, settings: &mut Settings) {
        let texts = [
            ("carrier", "url", "CARRIER", &self.carrier),
            ("inside", "tun", "--tun", &self.tun),
            ("inside", "namespace", "--netns", &self.netns),
            ("inside", "mtu", "--mtu", &self.mtu),
            ("inside", "queue", "--queue", &self.queue),
            ("segments", "sizer", "--segments", &self.segments),
            ("carrier", "listen", "--listen", &self.listen),
            ("carrier", "keepalive", "--keepalive", &self.keepalive),
            ("security", "key", "--key", &self.key),
            ("security", "suite", "--suite", &self.suite),
            ("security", "tag", "--tag", &self.tag),
            ("channel", "cid", "--cid", &self.cid),
            ("channel", "max_cid", "--max-cid", &self.max_cid),
            ("channel", "profiles", "--profiles", &self.profiles),
            ("channel", "mrru", "--mrru", &self.mrru),
            ("channel", "mode", "--mode", &self.mode),
            ("channel", "refresh", "--refresh", &self.refresh),
            ("channel", "repetitions", "--repetitions", &self.repetitions),
            ("channel", "window", "--window", &self.window),
            ("channel", "rtp", "--rtp", &self.rtp),
            ("channel", "rtp_ports", "--rtp-ports", &self.rtp_ports),
            ("channel", "coap_template", "--coap-template", &self.coap_template),
            ("channel", "feedback_wait", "--feedback-wait", &self.feedback_wait),
            ("channel", "pad", "--pad", &self.pad),
            ("seeing", "status", "--status", &self.status),
            ("seeing", "http", "--http", &self.http),
            ("seeing", "pcap_inside", "--pcap-inside", &self.pcap_inside),
            ("seeing", "pcap_outside", "--pcap-outside", &self.pcap_outside),
            ("seeing", "billing_unit", "--billing-unit", &self.billing_unit),
            ("daemon", "user", "--user", &self.user),
            ("daemon", "state", "--state", &self.state),
        ];
        for (section, key, argument, value) in texts {
            if let Some(value) = value {
                settings.set(section, key, argument, value.as_str());
            }
        }
        let lists = [
            ("address", "--address", &self.address),
            ("route", "--route", &self.route),
            ("dns", "--dns", &self.dns),
        ];
        for (key, argument, values) in lists {
            if !values.is_empty() {
                settings.set_list("inside", key, argument, values);
            }
        }
        let truths = [
            ("inside", "tap", "--tap", self.tap),
            ("security", "open", "--open", self.open),
            ("security", "insecure", "--insecure", self.insecure),
            ("channel", "by_type", "--by-type", self.by_type),
        ];
        for (section, key, argument, is_given) in truths {
            if is_given {
                settings.set(section, key, argument, "true");
            }
        }
    }
}

/// A name that can be one of a file and of a folder.
pub(super) fn name(text: &str) -> Result<String, String> {
    let plain = text.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet));
    if text.is_empty() || text.len() > 64 || !plain || text.starts_with('.') {
        return Err("a name has letters, digits, `-`, `_` and `.`, and does not begin with `.`".to_owned());
    }
    Ok(text.to_owned())
}
