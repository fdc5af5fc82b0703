//! Options of a tunnel. Each corresponds to a key of the configuration file, and overrides it. The values are
//! text here; `thinair_tunnel::config` parses values of files, URLs and arguments alike.

use std::path::PathBuf;

use clap::Args;
use thinair_tunnel::config::Settings;

/// Configuration of a tunnel on the command line.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TunnelOptions {
    /// Carrier and its remote address: udp://HOST:PORT, ule+udp://, gse+udp://, ule+file:// or
    /// serial:///dev/DEVICE
    ///
    /// serial+raw:// is for tests. udp://:PORT waits there for the other end. A file is
    /// ule+file://?from=FILE&to=FILE. Options follow a `?`, separated by `&`: listen, iface, ttl, mtu and
    /// keepalive for UDP; ts, rtp, pid, peer-pid, psi, bitrate, flush and npa for transport streams; flush
    /// and npa for GSE; speed, framing (cobs, slip) and mtu for serial lines.
    #[arg(value_name = "CARRIER")]
    pub(crate) carrier: Option<String>,
    /// Read the configuration from a TOML file; options override its values
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub(crate) config: Option<PathBuf>,
    /// Read the configuration from /etc/thinair/NAME.toml
    ///
    /// Status socket and state are kept in folders of that name.
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,

    /// Name of the TUN interface [default: thinair0, or the first thinairN that is free]
    #[arg(long, value_name = "NAME", help_heading = "Interface")]
    pub(super) tun: Option<String>,
    /// Carry Ethernet frames (TAP) instead of IP packets
    #[arg(long, hide_short_help = true, help_heading = "Interface")]
    tap: bool,
    /// Address of the interface, such as 10.9.0.1/30; may be repeated
    #[arg(long, value_name = "ADDRESS/BITS", help_heading = "Interface")]
    address: Vec<String>,
    /// Network to route into the tunnel, such as 0.0.0.0/0; may be repeated
    ///
    /// Other routes stay, and longer prefixes take precedence. Datagrams of the tunnel itself are never
    /// routed into it.
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
    /// MTU of the interface [default: the largest that the carrier allows, at least 1280]
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Interface")]
    mtu: Option<String>,
    /// Queue length of the interface, in packets (txqueuelen)
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Interface")]
    queue: Option<String>,
    /// Adapt the size of TCP segments sent from here to losses: fixed:OCTETS, dmss, tssa or adaptive
    ///
    /// The daemon then keeps the privilege to change routes (CAP_NET_ADMIN). See docs/segment-size.md.
    #[arg(long, hide_short_help = true, value_name = "SIZER", help_heading = "Interface")]
    segments: Option<String>,

    /// Local address and port of the socket [default: the port of CARRIER]
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Carrier")]
    listen: Option<String>,
    /// Interval of datagrams that keep a NAT mapping alive, such as 25s
    #[arg(long, value_name = "TIME", help_heading = "Carrier")]
    keepalive: Option<String>,

    /// Encrypt with the keys in this file (see `thinair tunnel keygen`)
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    key: Option<String>,
    /// Cipher: chacha20-poly1305, aes-gcm, aes-ccm-8 or aes-ccm-4 [default: the first; on serial lines
    /// aes-ccm-8]
    #[arg(long, hide_short_help = true, value_name = "NAME", help_heading = "Security")]
    suite: Option<String>,
    /// Length of the authentication tag in octets, instead of --suite: 16, 8 or 4. With 4, one of 2^32 forged
    /// datagrams is accepted
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Security")]
    tag: Option<String>,
    /// Send transport streams or GSE in the standard format, without encryption
    #[arg(long, help_heading = "Security")]
    open: bool,
    /// Disable encryption and authentication: anybody can then send packets into the network
    #[arg(long, help_heading = "Security")]
    insecure: bool,

    /// Size of context identifiers, equal at both ends: small, large or auto
    ///
    /// `auto` is small CIDs for up to 16 flows, and large ones for more [default: auto between two ends with
    /// a key or --insecure, otherwise small].
    #[arg(long, value_name = "SPACE", help_heading = "Channel")]
    cid: Option<String>,
    /// Highest CID (MAX_CID), equal at both ends [default: 15; with --cid auto 1023, for large CIDs]
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Channel")]
    max_cid: Option<String>,
    /// Profiles, equal at both ends, such as v1,coap [default: v1,coap,tcp]
    ///
    /// Names: rtp, udp, esp, ip, rtp-udp-lite, udp-lite, tcp and coap; v1 stands for the first six.
    /// `uncompressed` is always included.
    #[arg(long, value_name = "LIST", help_heading = "Channel")]
    profiles: Option<String>,
    /// Maximum size of a segmented packet (MRRU) in octets, equal at both ends; 0: no segments [default: as
    /// needed]
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Channel")]
    mrru: Option<String>,
    /// Mode of operation: u, o or r [default: o; u on one-way carriers]
    #[arg(long, value_name = "MODE", help_heading = "Channel")]
    mode: Option<String>,
    /// Refresh of contexts: `budget=PERCENT%[,packets=N][,time=SECONDS]`, `packets=N,time=SECONDS[,backoff]`,
    /// `ir=N,so=N[,direct]`, or `off` [default: budget=5%,packets=128,time=16 in U-mode, off in O-mode and
    /// R-mode]
    ///
    /// A budget sends an IR packet SECONDS after the previous one, if IR packets have used at most that
    /// percentage of the octets sent or N packets have passed; docs/refresh.md has figures.
    #[arg(long, hide_short_help = true, value_name = "POLICY", help_heading = "Channel")]
    refresh: Option<String>,
    /// Number of packets that repeat a change (optimistic approach) [default: 4]
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Channel")]
    repetitions: Option<String>,
    /// Values in a W-LSB window: number of consecutive lost packets to tolerate, plus one [default: 4]
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Channel")]
    window: Option<String>,
    /// Detection of RTP: guess, ports or never [default: guess]
    #[arg(long, hide_short_help = true, value_name = "HOW", help_heading = "Channel")]
    rtp: Option<String>,
    /// UDP and UDP-Lite destination ports of RTP, at most 8, separated by commas
    #[arg(long, hide_short_help = true, value_name = "LIST", help_heading = "Channel")]
    rtp_ports: Option<String>,
    /// Template file for profile `coap` (`thinair rohc learn`), equal at both ends
    #[arg(long, hide_short_help = true, value_name = "FILE", help_heading = "Channel")]
    coap_template: Option<String>,
    /// Send packets that no profile compresses as IP, with its own Type (ULE, GSE), instead of in profile
    /// `uncompressed`
    #[arg(long, hide_short_help = true, help_heading = "Channel")]
    by_type: bool,
    /// Maximum time that feedback waits for a packet to be sent with [default: 20ms]
    #[arg(long, hide_short_help = true, value_name = "TIME", help_heading = "Channel")]
    feedback_wait: Option<String>,
    /// Pad datagrams to multiples of N octets before encryption, to hide their lengths
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Channel")]
    pad: Option<String>,

    /// Status socket, or `none` [default: /run/thinair/NAME/status.sock]
    #[arg(long, hide_short_help = true, value_name = "PATH", help_heading = "Status")]
    status: Option<String>,
    /// Serve a status page and Prometheus metrics, such as at 127.0.0.1:9464
    ///
    /// Must be a loopback address.
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Status")]
    http: Option<String>,
    /// Capture the packets inside the tunnel to a file
    #[arg(long, hide_short_help = true, value_name = "FILE", help_heading = "Status")]
    pcap_inside: Option<String>,
    /// Capture the datagrams or frames of the carrier to a file
    #[arg(long, hide_short_help = true, value_name = "FILE", help_heading = "Status")]
    pcap_outside: Option<String>,
    /// Billing unit of the carrier in octets, per datagram; the status counts the billed octets
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Status")]
    billing_unit: Option<String>,

    /// Run as this user, without capabilities, once everything is open
    #[arg(long, hide_short_help = true, value_name = "NAME", help_heading = "Daemon")]
    user: Option<String>,
    /// Folder for epochs and addresses of peers [default: /var/lib/thinair/NAME]
    #[arg(long, hide_short_help = true, value_name = "FOLDER", help_heading = "Daemon")]
    state: Option<String>,
}

impl TunnelOptions {
    /// Copies all options given to `settings`.
    pub(super) fn apply(&self, settings: &mut Settings) {
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

/// Parses a name that is valid for a file and a folder.
pub(super) fn name(text: &str) -> Result<String, String> {
    let plain = text.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet));
    if text.is_empty() || text.len() > 64 || !plain || text.starts_with('.') {
        return Err("expected letters, digits, `-`, `_` and `.`, without `.` at the beginning".to_owned());
    }
    Ok(text.to_owned())
}
