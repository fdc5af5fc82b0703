//! What a site is told at start: checked, with every default filled in. [`config`](crate::config) makes it of a file
//! and of flags.

mod words;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thinair_rohc::profile::coap::Base;
use thinair_rohc::{CidSpace, CompressorConfig, Mode, ProfileSet, Refresh, RtpDetection};
use thinair_segment::Sizer;
use thinair_ule::{Npa, Pid};

use crate::unit::SiteId;

/// Everything that a site is.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where packets come from and go to.
    pub inside: Inside,
    /// What crosses the network, and how.
    pub carrier: Carrier,
    /// How it is protected.
    pub security: Security,
    /// How headers are compressed: the same at all ends.
    pub channel: ChannelPlan,
    /// Who is at the other end.
    pub others: Others,
    /// What is shown of it.
    pub seeing: Seeing,
    /// As whom the daemon goes on when everything is open: a name of a user. `None`: as it was started.
    pub user: Option<String>,
    /// Where the highest epochs (one-way carriers), and addresses of peers, are kept.
    pub state: PathBuf,
    /// The folder of the tunnel while it runs, below `/run`: its sockets, and its lock. `None`: there is none.
    pub runtime: Option<PathBuf>,
}

impl Plan {
    /// Returns every key file: the common one, and those of peers.
    pub fn key_files(&self) -> Vec<PathBuf> {
        let common = self.common_key_file().map(Path::to_owned);
        let Others::Peers(peers) = &self.others else { return common.into_iter().collect() };
        common.into_iter().chain(peers.iter().filter_map(|peer| peer.key.clone())).collect()
    }

    /// Returns the key file of this end; `None` without keys, and where each peer has a file of its own.
    pub fn common_key_file(&self) -> Option<&Path> {
        let Security::Key { path, .. } = &self.security else { return None };
        let is_used = match &self.others {
            Others::Peers(peers) => peers.iter().any(|peer| peer.key.is_none()),
            Others::Mesh(_) => true,
        };
        is_used.then_some(path)
    }
}

/// The interface of the system.
#[derive(Clone, Debug)]
pub struct Inside {
    /// Its name.
    pub name: String,
    /// Whether it carries Ethernet frames (TAP) instead of IP packets (TUN).
    pub bridged: bool,
    /// The network namespace that it is in, by name; `None`: where the daemon was started.
    pub namespace: Option<String>,
    /// Its addresses, with the bits of the network, to which packets are routed.
    pub addresses: Vec<(IpAddr, u8)>,
    /// What is routed to it besides.
    pub routes: Vec<(IpAddr, u8)>,
    /// Name servers behind the tunnel, for all names, and search domains.
    pub dns: Vec<String>,
    /// Octets of its longest packet; `None`: as many as the carrier has room for, and at least 1,280.
    pub mtu: Option<u16>,
    /// Packets that wait in it (txqueuelen); `None`: as the system does.
    pub queue: Option<u32>,
    /// What says how large segments of TCP are ([`segments`](crate::segments)); `None`: the system.
    pub segments: Option<Sizer>,
}

/// What carries datagrams, or units.
#[derive(Clone, Debug)]
pub enum Carrier {
    /// Datagrams of UDP, with units packed behind each other, TS Packets or a BBFrame in each.
    Udp {
        /// What is in a datagram.
        packaging: Packaging,
        /// Where the socket is bound.
        listen: SocketAddr,
        /// The group that is joined, and the interface by which; `None` for unicast.
        group: Option<(IpAddr, Option<String>)>,
        /// Hops of multicast datagrams.
        ttl: u8,
        /// Octets of the longest IP packet that carries a datagram.
        mtu: u16,
        /// An RTP header in front (payload type 33, RFC 3551), on what is sent; what comes may have one.
        rtp: bool,
    },
    /// A serial line.
    Serial {
        /// The device.
        path: PathBuf,
        /// Bits a second; `None`: as the line is set.
        speed: Option<u32>,
        /// How frames are told apart.
        framing: Framing,
        /// Whether a CRC-32 ends each frame.
        crc: bool,
        /// Octets of the longest frame, without framing and CRC.
        mtu: u16,
    },
    /// A transport stream in files: one way, or one file each way.
    File {
        /// How SNDUs are put into TS Packets.
        packaging: Packaging,
        /// What is read: `-` for standard input.
        from: Option<PathBuf>,
        /// What is written: `-` for standard output.
        to: Option<PathBuf>,
    },
}

/// How frames are told apart on a serial line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// RFC 1055.
    Slip,
    /// Consistent Overhead Byte Stuffing.
    Cobs,
}

/// How units become bodies of datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packaging {
    /// One behind the other, with lengths where they are needed.
    Packed,
    /// SNDUs in TS Packets (RFC 4326).
    Ts {
        /// The PID that is sent.
        pid: Pid,
        /// TS Packets of a datagram, at most: 1 to 7.
        per_datagram: u8,
        /// How long a TS Packet, or a datagram, that is not full waits for more. Zero: not at all.
        flush: Duration,
        /// How often a PAT and a PMT are sent; `None`: never.
        psi: Option<Duration>,
        /// Bits a second of a stream of constant rate, with null packets; `None`: no null packets.
        bitrate: Option<u64>,
        /// NPA of this site, that of SNDUs for it alone.
        npa: Option<Npa>,
    },
    /// GSE Packets in a BBFrame for each datagram.
    Gse {
        /// How long a BBFrame that is not full waits for more. Zero: not at all.
        flush: Duration,
        /// NPA of this site.
        npa: Option<Npa>,
    },
}

/// How datagrams are protected.
#[derive(Clone, Debug)]
pub enum Security {
    /// Sealed with keys that come from those of a file.
    Key {
        /// The file.
        path: PathBuf,
        /// Cipher, and length of the tag.
        suite: Suite,
    },
    /// Not at all, in the format of a standard: transport streams, BBFrames.
    Open,
    /// Not at all, though whoever can send a datagram then can send packets.
    Insecure,
}

/// Cipher, and length of the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// ChaCha20-Poly1305 (RFC 8439): a tag of 16 octets.
    ChaCha20Poly1305,
    /// AES-128-GCM (RFC 5116): a tag of 16 octets.
    AesGcm,
    /// AES-128-CCM with a tag of 8 octets (RFC 6655).
    AesCcm8,
    /// AES-128-CCM with a tag of 4 octets, and new keys after 65,536 that were wrong.
    AesCcm4,
}

impl Suite {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ChaCha20Poly1305, Self::AesGcm, Self::AesCcm8, Self::AesCcm4];

    /// Octets of its tag.
    pub const fn tag(self) -> usize {
        match self {
            Self::ChaCha20Poly1305 | Self::AesGcm => 16,
            Self::AesCcm8 => 8,
            Self::AesCcm4 => 4,
        }
    }
}

/// The channels of the site, of both directions.
#[derive(Clone, Debug)]
pub struct ChannelPlan {
    /// LARGE_CIDS.
    pub cids: CidSpace,
    /// MAX_CID.
    pub max_cid: u16,
    /// MAX_CID of a second channel, which has large CIDs and is used while there are more flows than small CIDs, between two
    /// ends alone; `None`: there is no such channel.
    pub large_max_cid: Option<u16>,
    /// PROFILES.
    pub profiles: ProfileSet,
    /// MRRU; `None`: what the longest packet of the interface may need, with the longest chain of headers.
    pub mrru: Option<u16>,
    /// The mode that decompressors ask for.
    pub mode: Mode,
    /// When contexts are refreshed in U-mode; `None`: the default.
    pub refresh: Option<Refresh>,
    /// How RTP is found.
    pub rtp: RtpDetection,
    /// Repetitions and window, as in [`CompressorConfig`].
    pub repetitions: u8,
    /// Values of a W-LSB window.
    pub window: u8,
    /// Bases of profile 0x0081 that all ends know.
    pub bases: Vec<Base>,
    /// What a packet that no profile takes becomes: a ROHC packet of the uncompressed profile, or, where the packaging
    /// has Types, an IP packet as it is.
    pub by_type: bool,
    /// How long feedback waits for a packet that it can go in front of.
    pub feedback_wait: Duration,
    /// Datagrams are padded to multiples of so many octets before they are sealed; 0 and 1: not at all.
    pub pad: u16,
}

impl ChannelPlan {
    /// The defaults: small CIDs, [all usual profiles](ProfileSet::default), O-mode.
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
            bases: Vec::new(),
            by_type: false,
            feedback_wait: Duration::from_millis(20),
            pad: 0,
        }
    }
}

impl Default for ChannelPlan {
    fn default() -> Self {
        Self::new()
    }
}

/// Who is at the other end.
#[derive(Clone, Debug)]
pub enum Others {
    /// Peers, a channel each.
    Peers(Vec<Peer>),
    /// A mesh: every site broadcasts, and hears all others.
    Mesh(Mesh),
}

/// One peer.
#[derive(Clone, Debug)]
pub struct Peer {
    /// What it is called.
    pub name: String,
    /// Where it is; `None`: it comes to us. Not for serial lines and files.
    pub address: Option<SocketAddr>,
    /// The name by which it was found, and its port: looked up again when nothing is heard. `None`: it has none.
    pub host: Option<(String, u16)>,
    /// Sources of packets that it may send, and destinations that it gets; empty: all.
    pub allowed: Vec<(IpAddr, u8)>,
    /// The key file of this peer, if it is not the one of the site.
    pub key: Option<PathBuf>,
    /// How often it is told that we are here, so that what is in between does not forget us.
    pub keepalive: Option<Duration>,
    /// The PID that it sends, in TS.
    pub pid: Option<Pid>,
}

/// A mesh, or a broadcast: one sender that nobody answers.
#[derive(Clone, Debug)]
pub struct Mesh {
    /// This site; `None`: it only hears.
    pub own: Option<SiteId>,
    /// Where this site sends.
    pub to: Option<SocketAddr>,
    /// Whether receivers answer, so that O-mode is possible: feedback of all is combined.
    pub feedback: bool,
    /// All sites but this one.
    pub sites: Vec<Site>,
}

/// Another site of a mesh.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its number.
    pub id: SiteId,
    /// What it is called.
    pub name: String,
    /// The PID that it sends, in TS.
    pub pid: Option<Pid>,
    /// Its NPA, in TS and GSE.
    pub npa: Option<Npa>,
    /// Sources of packets that it may send; empty: all.
    pub allowed: Vec<(IpAddr, u8)>,
}

/// What is shown.
#[derive(Clone, Debug, Default)]
pub struct Seeing {
    /// The socket that tells the status.
    pub status: Option<PathBuf>,
    /// Where the page and the metrics are served.
    pub http: Option<SocketAddr>,
    /// Files to which packets are written as they are inside, and as they are on the carrier.
    pub pcap_inside: Option<PathBuf>,
    /// Datagrams of the carrier.
    pub pcap_outside: Option<PathBuf>,
    /// Octets that are billed at a time, for each datagram; 0: octets are billed as they are.
    pub billing_unit: u32,
}

impl ChannelPlan {
    /// The word for the CIDs in a configuration: `auto`, `small` or `large`.
    pub const fn cids_name(&self) -> &'static str {
        match (self.large_max_cid, self.cids) {
            (Some(_), _) => "auto",
            (None, CidSpace::Small) => "small",
            (None, CidSpace::Large) => "large",
        }
    }

    /// What a compressor is told, but for the channel itself.
    pub fn compressor(&self, channel: thinair_rohc::Channel, seed: u64) -> CompressorConfig {
        let mut config = CompressorConfig::new(channel);
        if let Some(refresh) = self.refresh {
            config = config.with_refresh(refresh);
        }
        config.repetitions = self.repetitions;
        config.window = self.window;
        config.rtp = self.rtp;
        // Counters of sealed datagrams count packets.
        config.counted = true;
        config.seed = seed;
        config
    }
}
