//! The options of a tunnel: each is a key of a configuration file, and replaces what stands there. Their values are
//! texts here; `thinair_tunnel::config` reads them, so that files, URLs and arguments mean the same.

use std::path::PathBuf;

use clap::Args;
use thinair_tunnel::config::Settings;

/// What a tunnel can be told on the command line.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TunnelOptions {
    /// udp://HOST:PORT, ule+udp://, gse+udp://, ule+file:// or serial:///dev/DEVICE
    ///
    /// There is serial+raw:// for tests, too. udp://:PORT waits there for the other end. A file is ule+file://?from=FILE&to=FILE. Options follow a `?`, with `&`
    /// between them: listen, iface, ttl, mtu and keepalive for UDP; ts, rtp, pid, peer-pid, psi, bitrate, flush and npa for
    /// transport streams; flush and npa for GSE; speed, framing (cobs, slip) and mtu for serial lines.
    #[arg(value_name = "CARRIER")]
    pub(crate) carrier: Option<String>,
    /// Read the configuration from a TOML file; options replace its keys
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub(crate) config: Option<PathBuf>,
    /// Read the configuration from /etc/thinair/NAME.toml
    ///
    /// Status and state are kept below that name.
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,

    /// Name of the interface [default: thinair0, or thinairN if that is taken]
    #[arg(long, value_name = "NAME", help_heading = "Interface")]
    pub(super) tun: Option<String>,
    /// Carry Ethernet frames (TAP) instead of IP packets
    #[arg(long, hide_short_help = true, help_heading = "Interface")]
    tap: bool,
    /// Address of the interface, as in 10.9.0.1/30; may be repeated
    #[arg(long, value_name = "ADDRESS/BITS", help_heading = "Interface")]
    address: Vec<String>,
    /// Network behind the tunnel, as in 0.0.0.0/0; may be repeated
    ///
    /// Other routes stay; the longer prefix is used. Datagrams of the tunnel itself are never routed into it.
    #[arg(long, value_name = "NETWORK/BITS", help_heading = "Interface")]
    route: Vec<String>,
    /// Name server or search domain behind the tunnel; may be repeated
    ///
    /// Set with systemd-resolved or resolvconf, and removed at the end.
    #[arg(long, hide_short_help = true, value_name = "ADDRESS", help_heading = "Interface")]
    dns: Vec<String>,
    /// Network namespace of the interface, a name of `ip netns`
    #[arg(long, hide_short_help = true, value_name = "NAME", help_heading = "Interface")]
    pub(super) netns: Option<String>,
    /// MTU of the interface [default: the room in the carrier, at least 1280]
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Interface")]
    mtu: Option<String>,
    /// Packets that can wait in the interface (txqueuelen)
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Interface")]
    queue: Option<String>,
    /// Size of TCP segments that are sent from here, by losses: fixed:OCTETS, dmss, tssa or adaptive
    ///
    /// The daemon then keeps the right to change routes (CAP_NET_ADMIN). See docs/segment-size.md.
    #[arg(long, hide_short_help = true, value_name = "SIZER", help_heading = "Interface")]
    segments: Option<String>,

    /// Address and port of the socket [default: the port of CARRIER]
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Carrier")]
    listen: Option<String>,
    /// Interval of datagrams that keep the mapping of a NAT, as in 25s
    #[arg(long, value_name = "TIME", help_heading = "Carrier")]
    keepalive: Option<String>,

    /// Encrypt with the keys of this file (`thinair tunnel keygen`)
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    key: Option<String>,
    /// Cipher: chacha20-poly1305, aes-gcm, aes-ccm-8 or aes-ccm-4 [default: the first; on serial lines aes-ccm-8]
    #[arg(long, hide_short_help = true, value_name = "NAME", help_heading = "Security")]
    suite: Option<String>,
    /// Octets of the tag, in place of --suite: 16, 8 or 4. Of 2^32 forged datagrams one passes a tag of 4 octets
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Security")]
    tag: Option<String>,
    /// Send transport streams or GSE in the standard format, not encrypted
    #[arg(long, help_heading = "Security")]
    open: bool,
    /// Do not encrypt: everybody can then send packets into the network
    #[arg(long, help_heading = "Security")]
    insecure: bool,

    /// CIDs, the same at both ends: small, large or auto
    ///
    /// `auto` is small CIDs for up to 16 flows, and large ones for more [default: auto between two ends with a key or
    /// --insecure, otherwise small].
    #[arg(long, value_name = "SPACE", help_heading = "Channel")]
    cid: Option<String>,
    /// Highest CID, the same at both ends [default: 15; with --cid auto 1023, for large CIDs]
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Channel")]
    max_cid: Option<String>,
    /// Profiles, the same at both ends, as in v1,coap [default: v1,coap,tcp]
    ///
    /// Names: rtp, udp, esp, ip, rtp-udp-lite, udp-lite, tcp and coap; v1 stands for the first six.
    /// `uncompressed` is always there.
    #[arg(long, value_name = "LIST", help_heading = "Channel")]
    profiles: Option<String>,
    /// Maximum size of a packet that is sent in segments, in octets, the same at both ends; 0: no segments [default: as needed]
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Channel")]
    mrru: Option<String>,
    /// Mode of operation: u, o or r [default: o; u on one-way carriers]
    #[arg(long, value_name = "MODE", help_heading = "Channel")]
    mode: Option<String>,
    /// Refreshes of contexts: `budget=PERCENT%[,packets=N][,time=SECONDS]`, `packets=N,time=SECONDS[,backoff]`,
    /// `ir=N,so=N[,direct]`, or `off` [default: budget=5%,packets=128,time=16 in U-mode, off in O-mode and R-mode]
    ///
    /// A budget sends an IR packet SECONDS after the one before, where that share of the octets sent pays for it or N packets
    /// have passed; docs/refresh.md has figures.
    #[arg(long, hide_short_help = true, value_name = "POLICY", help_heading = "Channel")]
    refresh: Option<String>,
    /// Packets that repeat a change (optimistic approach) [default: 4]
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Channel")]
    repetitions: Option<String>,
    /// Values in a W-LSB window: one more than the packets in a row that may be lost [default: 4]
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Channel")]
    window: Option<String>,
    /// How RTP is found: guess, ports or never [default: guess]
    #[arg(long, hide_short_help = true, value_name = "HOW", help_heading = "Channel")]
    rtp: Option<String>,
    /// UDP and UDP-Lite destination ports of RTP, at most 8, separated by commas
    #[arg(long, hide_short_help = true, value_name = "LIST", help_heading = "Channel")]
    rtp_ports: Option<String>,
    /// Template file for profile `coap` (`thinair rohc learn`), the same at both ends
    #[arg(long, hide_short_help = true, value_name = "FILE", help_heading = "Channel")]
    coap_template: Option<String>,
    /// Send packets that no profile compresses as IP with its own Type (ULE, GSE), not in profile `uncompressed`
    #[arg(long, hide_short_help = true, help_heading = "Channel")]
    by_type: bool,
    /// Maximum time that feedback waits for a packet to be sent with [default: 20ms]
    #[arg(long, hide_short_help = true, value_name = "TIME", help_heading = "Channel")]
    feedback_wait: Option<String>,
    /// Pad datagrams to multiples of N octets before encryption, which hides lengths
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Channel")]
    pad: Option<String>,

    /// Status socket, or `none` [default: /run/thinair/NAME/status.sock]
    #[arg(long, hide_short_help = true, value_name = "PATH", help_heading = "Status")]
    status: Option<String>,
    /// Serve a page and Prometheus metrics, as at 127.0.0.1:9464
    ///
    /// The address is one of loopback.
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Status")]
    http: Option<String>,
    /// Write a capture of the packets inside
    #[arg(long, hide_short_help = true, value_name = "FILE", help_heading = "Status")]
    pcap_inside: Option<String>,
    /// Write a capture of the datagrams or frames of the carrier
    #[arg(long, hide_short_help = true, value_name = "FILE", help_heading = "Status")]
    pcap_outside: Option<String>,
    /// Octets that the carrier bills at a time, for each datagram; the status counts them
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Status")]
    billing_unit: Option<String>,

    /// Run as this user, without any capability, after everything was opened
    #[arg(long, hide_short_help = true, value_name = "NAME", help_heading = "Daemon")]
    user: Option<String>,
    /// Folder for epochs and addresses of peers [default: /var/lib/thinair/NAME]
    #[arg(long, hide_short_help = true, value_name = "FOLDER", help_heading = "Daemon")]
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
