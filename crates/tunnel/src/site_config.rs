//! Configuration of a site, checked and with all defaults filled in. [`config`](crate::config)
//! creates it from files and arguments.

mod around;
mod keyring;
mod words;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

pub use thinair_link::tariff::Tariff;
use thinair_rohc::profile::coap::Base;
use thinair_rohc::{CidSpace, CompressorConfig, Mode, ProfileSet, Refresh, ReorderRatio, RtpDetection};
use thinair_segment::Sizer;
pub use thinair_session::line::Framing;
pub use thinair_session::{Rekey, Suite};
pub use thinair_ule::gse::TotalLength;
use thinair_ule::{Npa, Pid};

pub use keyring::{KeyringError, PeerPublicKey, read_once};

use crate::config::masked;
use crate::idle::IdleBudget;
use crate::unit::SiteId;

/// Configuration of a site.
#[derive(Clone, Debug)]
pub struct SiteConfig {
    /// Interface of the system.
    pub inside: Inside,
    /// Transport across the network.
    pub carrier: Carrier,
    /// Protection of datagrams.
    pub security: Security,
    /// Header compression, equal at all ends.
    pub channel: ChannelConfig,
    /// Other ends.
    pub others: Others,
    /// Packets that wait, so that several share a datagram.
    pub hold: Vec<HoldRule>,
    /// Price list of the network below, by which they wait.
    pub tariff: Option<Tariff>,
    /// Budget for idle octets, which keepalives keep. `None`: no limit.
    pub idle: Option<IdleBudget>,
    /// True if keepalives are one octet without authentication, which the other end does not read.
    pub bare_keepalive: bool,
    /// Status outputs.
    pub seeing: Seeing,
    /// Large packets at the interface and large messages at the socket, each in place of many, where the system has them.
    pub offloads: bool,
    /// Name of the user to which the daemon changes after everything is open. `None`: no change.
    pub user: Option<String>,
    /// Folder for the highest epochs (one-way carriers), and for addresses of peers.
    pub state: PathBuf,
    /// Folder of the tunnel while it is running, below `/run`: its sockets, and its lock. `None`: no folder.
    pub runtime: Option<PathBuf>,
}

impl SiteConfig {
    /// True if the interval of keepalives to a peer follows the timeout of the NAT before this end.
    pub fn learns_keepalive(&self) -> bool {
        matches!(&self.others, Others::Peers(peers) if peers.iter().any(|peer| peer.learns_keepalive))
    }
}

/// The interface of the system.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    /// Its name.
    pub name: String,
    /// True for Ethernet frames (TAP), false for IP packets (TUN).
    pub bridged: bool,
    /// Name of the network namespace of the interface; `None`: that of the daemon.
    pub namespace: Option<String>,
    /// Addresses with prefix lengths; their networks are routed to the interface.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Further networks routed to the interface.
    pub routes: Vec<(IpAddr, u8)>,
    /// Where packets to `routes` go when the tunnel fails.
    pub on_failure: OnFailure,
    /// Name servers behind the tunnel for all names, and search domains.
    pub dns: Vec<String>,
    /// MTU in octets; `None`: the maximum of the carrier, at least 1,280.
    pub mtu: Option<u16>,
    /// Queue length in packets (txqueuelen); `None`: the default of the system.
    pub queue: Option<u32>,
    /// Control of the size of TCP segments ([`segments`](crate::segments)); `None`: none.
    pub segments: Option<Sizer>,
}

impl Inside {
    /// Returns the networks of `address` and `route`: sources of a peer without `allowed`. Without both, all addresses:
    /// the interface is set up by other means.
    pub fn sources(&self) -> Vec<(IpAddr, u8)> {
        if self.addresses.is_empty() && self.routes.is_empty() {
            return ALL_ADDRESSES.to_vec();
        }
        let addresses = self.addresses.iter().map(|&(address, bits)| (masked(address, bits), bits));
        addresses.chain(self.routes.iter().copied()).collect()
    }
}

/// Networks of all addresses: `allowed = "any"`.
pub const ALL_ADDRESSES: [(IpAddr, u8); 2] =
    [(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0), (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0)];

/// Treatment of packets to the routes of a tunnel whose process was killed, or has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// They use the other routes of the host.
    #[default]
    Open,
    /// They are rejected, from before the start of the tunnel until its clean end.
    Block,
}

/// True, for IPv4 and for IPv6, if the routes have all addresses: a default route, or its two halves.
pub fn has_all(routes: &[(IpAddr, u8)]) -> [bool; 2] {
    [true, false].map(|four| {
        let of = |bits: u8| routes.iter().filter(move |(to, length)| to.is_ipv4() == four && *length == bits);
        let half = |high: bool| {
            of(1).any(|(to, _)| match to {
                IpAddr::V4(to) => (to.octets()[0] >= 0x80) == high,
                IpAddr::V6(to) => (to.octets()[0] >= 0x80) == high,
            })
        };
        of(0).next().is_some() || (half(false) && half(true))
    })
}

/// Carrier of datagrams or units.
#[derive(Clone, Debug)]
pub enum Carrier {
    /// UDP datagrams, each with packed units, TS Packets or a BBFrame.
    Udp {
        /// Content of datagrams.
        packaging: Packaging,
        /// Local address of the socket.
        listen: SocketAddr,
        /// Multicast group to join, and the interface; `None` for unicast.
        group: Option<(IpAddr, Option<String>)>,
        /// Hop limit (TTL) of multicast datagrams.
        ttl: u8,
        /// Maximum size of the IP packet of a datagram, in octets.
        mtu: u16,
        /// Sends an RTP header (payload type 33, RFC 3551); received datagrams may have one in any case.
        rtp: bool,
    },
    /// A serial line.
    Serial {
        /// The device.
        path: PathBuf,
        /// Speed in bit/s; `None`: unchanged.
        speed: Option<u32>,
        /// Framing on the line.
        framing: Framing,
        /// True if each frame ends with a CRC-32.
        crc: bool,
        /// Maximum size of a frame without framing and CRC, in octets.
        mtu: u16,
    },
    /// Transport streams in files: in one direction, or a file for each direction.
    File {
        /// Packing of SNDUs in TS Packets.
        packaging: Packaging,
        /// Input file; `-`: standard input.
        from: Option<PathBuf>,
        /// Output file; `-`: standard output.
        to: Option<PathBuf>,
    },
}

/// Packaging of units in bodies of datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packaging {
    /// Concatenated, with lengths where necessary.
    Packed,
    /// SNDUs in TS Packets (RFC 4326).
    Ts {
        /// PID of sent TS Packets.
        pid: Pid,
        /// Maximum number of TS Packets per datagram, 1 to 7.
        per_datagram: u8,
        /// Waiting time of an incomplete TS Packet or datagram. Zero: no waiting.
        flush: Duration,
        /// Interval of PAT and PMT; `None`: not sent.
        psi: Option<Duration>,
        /// Constant bit rate in bit/s, with null packets; `None`: no null packets.
        bitrate: Option<u64>,
        /// NPA of this site, the address of SNDUs for it alone.
        npa: Option<Npa>,
    },
    /// GSE Packets, in a BBFrame per datagram.
    Gse {
        /// Waiting time of an incomplete BBFrame. Zero: no waiting.
        flush: Duration,
        /// NPA of this site.
        npa: Option<Npa>,
        /// Treatment of Total_Length in received first fragments.
        total_length: TotalLength,
        /// True if received BBFrames may be divided over several datagrams, which all are of one sender.
        divided: bool,
    },
}

/// Protection of datagrams.
#[derive(Clone, Debug)]
pub enum Security {
    /// Encrypted and authenticated with session keys, which are derived from those of files.
    Key {
        /// Shared key file. `None`: peers have their own ones, or public keys.
        path: Option<PathBuf>,
        /// Private key file of this end. `None`: no public keys.
        private: Option<PathBuf>,
        /// Cipher and tag length.
        suite: Suite,
        /// True if nobody has chosen the suite of two ends: they use AES-GCM instead if both processors have AES.
        negotiates: bool,
        /// Time of new session keys of two ends.
        rekey: Rekey,
    },
    /// None, in a standard format: transport streams, BBFrames.
    Open,
    /// None: anybody who can send a datagram can send packets.
    Insecure,
}

/// ROHC channels of the site, for both directions.
#[derive(Clone, Debug)]
pub struct ChannelConfig {
    /// LARGE_CIDS.
    pub cids: CidSpace,
    /// MAX_CID.
    pub max_cid: u16,
    /// MAX_CID of a second channel with large CIDs, which is used while there are more flows than small CIDs;
    /// only between two ends. `None`: no second channel.
    pub large_max_cid: Option<u16>,
    /// PROFILES.
    pub profiles: ProfileSet,
    /// MRRU in octets; `None`: enough for a packet of 1,500 octets, or of the MTU if that is larger, with the longest header chain.
    pub mrru: Option<u16>,
    /// Mode that decompressors request.
    pub mode: Mode,
    /// Refresh policy in U-mode; `None`: the default.
    pub refresh: Option<Refresh>,
    /// Detection of RTP.
    pub rtp: RtpDetection,
    /// Number of repetitions, as in [`CompressorConfig`].
    pub repetitions: u8,
    /// Values of a W-LSB window.
    pub window: u8,
    /// Least reorder ratio of ROHCv2, as in [`CompressorConfig`].
    pub reorder_ratio: ReorderRatio,
    /// Provisioned bases of profile 0x0181, equal at all ends.
    pub bases: Vec<Base>,
    /// Format of packets that no profile compresses. False: ROHC packet of the uncompressed profile. True:
    /// plain IP packet, if the packaging has Types.
    pub by_type: bool,
    /// Maximum time that feedback waits for a packet to be sent with.
    pub feedback_wait: Duration,
    /// Pads datagrams to multiples of this number of octets before encryption; 0 and 1: no padding.
    pub pad: u16,
}

impl ChannelConfig {
    /// Returns the defaults: small CIDs, [all usual profiles](ProfileSet::default), O-mode.
    pub fn new() -> Self {
        Self {
            cids: CidSpace::Small,
            max_cid: 15,
            large_max_cid: None,
            profiles: ProfileSet::default(),
            mrru: None,
            mode: Mode::Optimistic,
            refresh: None,
            rtp: RtpDetection::NEVER.or_guess(),
            repetitions: 4,
            window: 4,
            reorder_ratio: ReorderRatio::None,
            bases: Vec::new(),
            by_type: false,
            feedback_wait: Duration::from_millis(20),
            pad: 0,
        }
    }
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// Other ends of a tunnel.
#[derive(Clone, Debug)]
pub enum Others {
    /// Peers, each with its own channel.
    Peers(Vec<Peer>),
    /// A mesh: every site broadcasts, and receives all others.
    Mesh(Mesh),
}

/// One peer.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Name for reports.
    pub name: String,
    /// Address; `None`: the peer contacts us. Not for serial lines and files.
    pub address: Option<SocketAddr>,
    /// Host name and port, resolved again if the peer is silent. `None`: no host name.
    pub host: Option<(String, u16)>,
    /// Networks of the peer: allowed sources, and destinations sent to it. Empty: sources are those of
    /// [`Inside::sources`], and all destinations are sent to it.
    pub allowed: Vec<(IpAddr, u8)>,
    /// Key file of this peer, if it differs from that of the site.
    pub key: Option<PathBuf>,
    /// Public key of this peer. Beside a shared key: requests use that one, and both are accepted.
    pub public_key: Option<PeerPublicKey>,
    /// Interval of keepalive datagrams, which keep NAT mappings alive. `None`: not sent.
    pub keepalive: Option<Duration>,
    /// True if the interval follows the timeout of the NAT before this end, which probes find.
    pub learns_keepalive: bool,
    /// PID that it sends, with TS.
    pub pid: Option<Pid>,
}

/// A mesh, or a one-way broadcast.
#[derive(Clone, Debug)]
pub struct Mesh {
    /// This site; `None`: receiver only.
    pub own: Option<SiteId>,
    /// Destination of this site's datagrams.
    pub to: Option<SocketAddr>,
    /// True if receivers answer, so that O-mode is possible: feedback of all sites is combined.
    pub feedback: bool,
    /// All other sites.
    pub sites: Vec<Site>,
}

/// Another site of a mesh.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its number.
    pub id: SiteId,
    /// Name for reports.
    pub name: String,
    /// PID that it sends, with TS.
    pub pid: Option<Pid>,
    /// Its NPA, with TS and GSE.
    pub npa: Option<Npa>,
    /// Allowed sources of its packets. Empty: those of [`Inside::sources`].
    pub allowed: Vec<(IpAddr, u8)>,
}

/// Datagrams of UDP and UDP-Lite that may wait: those with all given properties, except those of DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldRule {
    /// Destination port.
    pub dst_port: Option<u16>,
    /// Protocol number.
    pub protocol: Option<u8>,
    /// Differentiated services codepoint, 0 to 63.
    pub dscp: Option<u8>,
    /// Longest wait.
    pub time: Duration,
}

/// Status outputs.
#[derive(Clone, Debug, Default)]
pub struct Seeing {
    /// Status socket. `None`: no socket.
    pub status: Option<PathBuf>,
    /// Address of the status page and the metrics. `None`: not served.
    pub http: Option<SocketAddr>,
    /// Capture file for packets inside the tunnel.
    pub pcap_inside: Option<PathBuf>,
    /// Capture file for datagrams of the carrier.
    pub pcap_outside: Option<PathBuf>,
    /// Billing unit in octets, per datagram; 0: octets are billed.
    pub billing_unit: u32,
}

impl ChannelConfig {
    /// Keyword for the CIDs in a configuration: `auto`, `small` or `large`.
    pub const fn cids_name(&self) -> &'static str {
        match (self.large_max_cid, self.cids) {
            (Some(_), _) => "auto",
            (None, CidSpace::Small) => "small",
            (None, CidSpace::Large) => "large",
        }
    }

    /// Returns the settings of a compressor, except its channel.
    pub fn compressor(&self, channel: thinair_rohc::Channel, seed: u64) -> CompressorConfig {
        let mut config = CompressorConfig::new(channel);
        if let Some(refresh) = self.refresh {
            config = config.with_refresh(refresh);
        }
        config.repetitions = self.repetitions;
        config.window = self.window;
        config.reorder_ratio = self.reorder_ratio;
        config.rtp = self.rtp;
        // Counters of encrypted datagrams count packets.
        config.counted = true;
        config.seed = seed;
        config
    }
}
