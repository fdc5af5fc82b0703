//! All keys of a configuration, each defined once: its section, whether it is common to all ends, and its option on
//! the command line with the text that explains it.

use super::words::closest;

/// Scope of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// One end only: not allowed in the file that all ends share.
    OneEnd,
    /// Equal at all ends, or harmless if so.
    All,
}

use Of::{All, OneEnd};

/// A key of a section.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) of: Of,
    option: Option<CommandOption>,
}

/// Option of the command line, and the key that it sets.
#[derive(Clone, Copy, Debug)]
pub struct CommandOption {
    pub(super) section: &'static str,
    pub(super) key: &'static str,
    /// Name without `--`.
    pub name: &'static str,
    /// Title of the group in the help text.
    pub heading: &'static str,
    /// Values that the option takes.
    pub values: OptionValues,
    /// Explanation in one sentence.
    pub help: &'static str,
    /// Further sentences, for the long help text. Empty: none.
    pub details: &'static str,
    /// True if the short help text leaves the option out.
    pub is_rare: bool,
}

/// Values that an option takes, with their name in the help text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionValues {
    /// No value: the option sets the key to true.
    None,
    /// One value.
    One(&'static str),
    /// One value each time that the option is given.
    Many(&'static str),
}

impl CommandOption {
    /// Returns all options, in the order of the help text.
    pub fn all() -> impl Iterator<Item = Self> {
        SECTIONS.iter().flat_map(|section| {
            let options = section.keys.iter().filter_map(|key| key.option);
            options.map(|option| Self { section: section.name, ..option })
        })
    }
}

/// A section and its keys.
pub(super) struct SectionKeys {
    pub(super) name: &'static str,
    /// True if the section can occur several times, as `[[peer]]`.
    pub(super) repeated: bool,
    pub(super) keys: &'static [Key],
}

const INTERFACE: &str = "Interface";
const CARRIER: &str = "Carrier";
const SECURITY: &str = "Security";
const CHANNEL: &str = "Channel";
const STATUS: &str = "Status";
const DAEMON: &str = "Daemon";

pub(super) const SECTIONS: &[SectionKeys] = &[
    SectionKeys {
        name: "inside",
        repeated: false,
        keys: &[
            one_end("tun")
                .option(INTERFACE, "NAME", "Name of the TUN interface [default: the first free thinairN]"),
            all("tap")
                .switch(INTERFACE, "Carry Ethernet frames (TAP) instead of IP packets")
                .rare(),
            one_end("address")
                .list(INTERFACE, "ADDRESS/BITS", "Address of the interface, such as 10.9.0.1/30; may be repeated"),
            one_end("route")
                .list(INTERFACE, "NETWORK/BITS", "Network to route into the tunnel, such as 0.0.0.0/0; may be repeated")
                .details("Other routes stay, and longer prefixes take precedence. Datagrams of the tunnel itself \
                 are never routed into it."),
            one_end("on_failure")
                .option(INTERFACE, "open|block", "Packets to these networks when the tunnel fails [default: open]")
                .details("open: other routes are used. block: they are rejected, from before the start until a clean end \
                 or `thinair tunnel down`, also after SIGKILL.")
                .named("on-failure")
                .rare(),
            one_end("dns")
                .list(INTERFACE, "ADDRESS", "Name server or search domain behind the tunnel; may be repeated")
                .details("Set with systemd-resolved or resolvconf, and removed at the end.")
                .rare(),
            one_end("namespace")
                .option(INTERFACE, "NAME", "Network namespace of the interface, a name of `ip netns`")
                .named("netns")
                .rare(),
            all("mtu")
                .option(INTERFACE, "N", "MTU of the interface [default: the largest that the carrier allows, at least 1280]")
                .rare(),
            one_end("queue")
                .option(INTERFACE, "N", "Queue length of the interface, in packets (txqueuelen)")
                .rare(),
        ],
    },
    SectionKeys {
        name: "carrier",
        repeated: false,
        keys: &[
            all("url"),
            one_end("listen")
                .option(CARRIER, "ADDRESS:PORT", "Local address and port of the socket [default: the port of CARRIER]"),
            all("keepalive")
                .option(CARRIER, "TIME", "Interval of datagrams that keep a NAT mapping, such as 25s, or auto")
                .details("auto: as often as the NAT needs, which probes from the next port find."),
            one_end("bare_keepalive")
                .switch(CARRIER, "Send one octet without authentication as keepalive, which the other end does not read")
                .details("It costs 29 octets instead of 48, and keys are made with traffic only. Where the NAT starts again, the \
                 other end reaches this one only after the next packet from here.")
                .named("bare-keepalive")
                .rare(),
            one_end("idle_budget")
                .option(CARRIER, "OCTETS", "Octets a day that the idle tunnel may cost: keepalives become rarer if need be")
                .details("Both directions and headers of IP and UDP count. `thinair tunnel status` shows what it costs in \
                 reachability.")
                .named("idle-budget")
                .rare(),
            one_end("tariff")
                .option(CARRIER, "FILE", "Price list of the network (docs/tariffs.md): packets of a [[hold]] leave when its steps are full")
                .details("Packets that cost nothing do not wait.")
                .rare(),
            one_end("iface"),
            all("ttl"),
            all("mtu"),
            all("rtp"),
            all("ts"),
            all("flush"),
            one_end("pid"),
            one_end("peer_pid"),
            one_end("npa"),
            one_end("total_length"),
            one_end("bbframes"),
            all("psi"),
            all("bitrate"),
            one_end("from"),
            one_end("to"),
            all("speed"),
            all("framing"),
        ],
    },
    SectionKeys {
        name: "security",
        repeated: false,
        keys: &[
            one_end("key")
                .option(SECURITY, "FILE", "Encrypt with the keys in this file (see `thinair tunnel keygen`)"),
            one_end("private_key")
                .option(SECURITY, "FILE", "Encrypt with the private key in this file, for --public-key")
                .named("private-key"),
            one_end("peers"),
            all("suite")
                .option(SECURITY, "NAME", "Cipher: chacha20-poly1305, aes-gcm, aes-ccm-8 or aes-ccm-4 [default: the first; on \
                 serial lines aes-ccm-8]")
                .rare(),
            all("tag")
                .option(SECURITY, "N", "Length of the authentication tag in octets, instead of --suite: 16, 8 or 4. With 4, one \
                 of 2^32 forged datagrams is accepted")
                .rare(),
            one_end("rekey")
                .option(SECURITY, "TIME", "Age of session keys at which two ends agree on new ones, from 1min to 2h, or auto: 120 s and \
                 256 kB, at the latest 2 h [default: auto]")
                .rare(),
            all("open")
                .switch(SECURITY, "Send transport streams or GSE in the standard format, without encryption"),
            all("insecure")
                .switch(SECURITY, "Disable encryption and authentication: anybody can then send packets"),
        ],
    },
    SectionKeys {
        name: "channel",
        repeated: false,
        keys: &[
            one_end("include"),
            all("cid")
                .option(CHANNEL, "SPACE", "Size of context identifiers, equal at both ends: small, large or auto")
                .details("`auto` is small CIDs for up to 16 flows, and large ones for more [default: auto between \
                 two ends with a key or --insecure, otherwise small].")
                .rare(),
            all("max_cid")
                .option(CHANNEL, "N", "Highest CID (MAX_CID), equal at both ends [default: 15; with --cid auto 1023, for large \
                 CIDs]")
                .named("max-cid")
                .rare(),
            all("profiles")
                .option(CHANNEL, "LIST", "Profiles, equal at both ends, such as v1,coap [default: v1,coap,tcp]")
                .details("Names: rtp, udp, esp, ip, rtp-udp-lite, udp-lite, tcp and coap; v1 stands for the first \
                 six, v2 for those of ROHCv2, such as udp-v2. `uncompressed` is always included."),
            all("mrru")
                .option(CHANNEL, "N", "Maximum size of a segmented packet (MRRU) in octets, equal at both ends; 0: no segments \
                 [default: as needed]")
                .rare(),
            all("mode")
                .option(CHANNEL, "MODE", "Mode of operation: u, o or r [default: o; u on one-way carriers]"),
            all("refresh")
                .option(CHANNEL, "POLICY", "Refresh of contexts: `budget=PERCENT%[,packets=N][,time=SECONDS]`, \
                 `packets=N,time=SECONDS[,backoff]`, `ir=N,so=N[,direct]`, or `off` [default: \
                 budget=5%,packets=128,time=16 in U-mode, off in O-mode and R-mode]")
                .details("A budget sends an IR packet SECONDS after the previous one, if IR packets have used at \
                 most that percentage of the octets sent or N packets have passed; docs/refresh.md has \
                 figures.")
                .rare(),
            all("repetitions")
                .option(CHANNEL, "N", "Number of packets that repeat a change (optimistic approach) [default: 4]")
                .rare(),
            all("window")
                .option(CHANNEL, "N", "Values in a W-LSB window: number of consecutive lost packets to tolerate, plus one \
                 [default: 4]")
                .rare(),
            all("reorder_ratio")
                .option(CHANNEL, "RATIO", "ROHCv2: packets of the smallest headers may be 1 (none), 3 (quarter), 7 (half) or 11 \
                 (three-quarters) late; with feedback a flow gets more as needed [default: none]")
                .named("reorder-ratio")
                .rare(),
            all("rtp")
                .option(CHANNEL, "HOW", "Detection of RTP: guess, ports or never [default: guess]")
                .rare(),
            all("rtp_ports")
                .option(CHANNEL, "LIST", "UDP and UDP-Lite destination ports of RTP, at most 8, separated by commas")
                .named("rtp-ports")
                .rare(),
            all("coap_template")
                .option(CHANNEL, "FILE", "Template file for profile `coap` (`thinair rohc learn`), equal at both ends")
                .named("coap-template")
                .rare(),
            all("by_type")
                .switch(CHANNEL, "Send packets that no profile compresses as IP, with its own Type (ULE, GSE), instead of \
                 in profile `uncompressed`")
                .named("by-type")
                .rare(),
            all("feedback_wait")
                .option(CHANNEL, "TIME", "Maximum time that feedback waits for a packet to be sent with [default: 20ms]")
                .named("feedback-wait")
                .rare(),
            all("pad")
                .option(CHANNEL, "N", "Pad datagrams to multiples of N octets before encryption, to hide their lengths")
                .rare(),
        ],
    },
    SectionKeys {
        name: "peer",
        repeated: true,
        keys: &[
            one_end("name"),
            one_end("address"),
            one_end("allowed")
                .list(SECURITY, "NETWORK/BITS", "Network from which the other end may send, or `any`; may be repeated [default: \
                 the networks of --address and --route]")
                .rare(),
            one_end("key"),
            one_end("public_key")
                .option(SECURITY, "KEY", "Public key of the other end, as `thinair tunnel keygen` prints it there")
                .named("public-key"),
            one_end("psk")
                .option(SECURITY, "FILE", "Key file that both ends share besides their public keys")
                .rare(),
            one_end("keepalive"),
            one_end("pid"),
        ],
    },
    SectionKeys {
        name: "mesh",
        repeated: false,
        keys: &[
            one_end("own"),
            all("to"),
            all("feedback"),
        ],
    },
    SectionKeys {
        name: "site",
        repeated: true,
        keys: &[
            all("id"),
            all("name"),
            all("pid"),
            all("npa"),
            all("allowed"),
        ],
    },
    SectionKeys {
        name: "hold",
        repeated: true,
        keys: &[
            one_end("dst_port"),
            one_end("protocol"),
            one_end("dscp"),
            one_end("time")
                .option(CARRIER, "TIME", "Longest wait of packets that a [[hold]] rule of the file names, instead of its time")
                .named("hold")
                .rare(),
        ],
    },
    SectionKeys {
        name: "segments",
        repeated: false,
        keys: &[
            one_end("sizer")
                .option(INTERFACE, "SIZER", "Adapt the size of TCP segments sent from here to losses: fixed:OCTETS, dmss, tssa or \
                 adaptive")
                .details("The daemon then keeps the privilege to change routes (CAP_NET_ADMIN). See \
                 docs/segment-size.md.")
                .named("segments")
                .rare(),
            one_end("frame"),
            one_end("headers"),
            one_end("least"),
            one_end("most"),
        ],
    },
    SectionKeys {
        name: "seeing",
        repeated: false,
        keys: &[
            one_end("status")
                .option(STATUS, "PATH", "Status socket, or `none` [default: /run/thinair/NAME/status.sock]")
                .rare(),
            one_end("http")
                .option(STATUS, "ADDRESS:PORT", "Serve a status page and Prometheus metrics, such as at 127.0.0.1:9464")
                .details("Must be a loopback address."),
            one_end("pcap_inside")
                .option(STATUS, "FILE", "Capture the packets inside the tunnel to a file")
                .named("pcap-inside")
                .rare(),
            one_end("pcap_outside")
                .option(STATUS, "FILE", "Capture the datagrams or frames of the carrier to a file")
                .named("pcap-outside")
                .rare(),
            one_end("billing_unit")
                .option(STATUS, "N", "Billing unit of the carrier in octets, per datagram; the status counts the billed octets")
                .named("billing-unit")
                .rare(),
        ],
    },
    SectionKeys {
        name: "daemon",
        repeated: false,
        keys: &[
            one_end("user")
                .option(DAEMON, "NAME", "Run as this user, without capabilities, once everything is open")
                .rare(),
            one_end("offloads")
                .option(DAEMON, "on|off", "Read, write, send and receive many packets with one system call [default: on]")
                .details("off: one packet at a time at the interface, one datagram in each message of the socket.")
                .rare(),
            one_end("state")
                .option(DAEMON, "FOLDER", "Folder for epochs and addresses of peers [default: /var/lib/thinair/NAME]")
                .rare(),
        ],
    },
];

const fn all(name: &'static str) -> Key {
    Key { name, of: All, option: None }
}

const fn one_end(name: &'static str) -> Key {
    Key { name, of: OneEnd, option: None }
}

impl Key {
    const fn has(self, heading: &'static str, values: OptionValues, help: &'static str) -> Self {
        let (key, name) = (self.name, self.name);
        let option =
            CommandOption { section: "", key, name, heading, values, help, details: "", is_rare: false };
        Self { option: Some(option), ..self }
    }

    const fn option(self, heading: &'static str, value: &'static str, help: &'static str) -> Self {
        self.has(heading, OptionValues::One(value), help)
    }

    const fn list(self, heading: &'static str, value: &'static str, help: &'static str) -> Self {
        self.has(heading, OptionValues::Many(value), help)
    }

    const fn switch(self, heading: &'static str, help: &'static str) -> Self {
        self.has(heading, OptionValues::None, help)
    }

    const fn named(mut self, name: &'static str) -> Self {
        if let Some(option) = &mut self.option {
            option.name = name;
        }
        self
    }

    const fn details(mut self, details: &'static str) -> Self {
        if let Some(option) = &mut self.option {
            option.details = details;
        }
        self
    }

    const fn rare(mut self) -> Self {
        if let Some(option) = &mut self.option {
            option.is_rare = true;
        }
        self
    }
}

/// True for keys of `[carrier]` that are also allowed after the `?` of a URL.
pub(super) fn is_option(key: &str) -> bool {
    key != "url" && section("carrier").is_some_and(|section| section.key(key).is_some())
}

pub(super) fn section(name: &str) -> Option<&'static SectionKeys> {
    SECTIONS.iter().find(|section| section.name == name)
}

/// Returns the title of the first section that has a key of this name.
pub(super) fn section_of(key: &str) -> Option<String> {
    SECTIONS.iter().find(|section| section.key(key).is_some()).map(SectionKeys::title)
}

impl SectionKeys {
    /// Returns the key as written in the table, and its scope.
    pub(super) fn key(&self, key: &str) -> Option<(&'static str, Of)> {
        self.keys.iter().find(|known| known.name == key).map(|known| (known.name, known.of))
    }

    /// Names of the keys.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name)
    }

    /// Title of the section in a file.
    pub(super) fn title(&self) -> String {
        if self.repeated { format!("[[{}]]", self.name) } else { format!("[{}]", self.name) }
    }

    /// Message for an unknown key.
    pub(super) fn unknown(&self, key: &str) -> String {
        if let Some(meant) = closest(key, self.names()) {
            return format!("unknown key; did you mean `{meant}`?");
        }
        if let Some(title) = section_of(key) {
            return format!("unknown key; `{key}` belongs to {title}");
        }
        let known: Vec<_> = self.names().collect();
        format!("unknown key; the keys are {}", known.join(", "))
    }
}

/// Message for an unknown section.
pub(super) fn unknown_section(name: &str) -> String {
    if let Some(meant) = closest(name, SECTIONS.iter().map(|section| section.name)) {
        let meant = section(meant).map(SectionKeys::title).unwrap_or_default();
        return format!("unknown section; did you mean {meant}?");
    }
    if let Some(title) = section_of(name) {
        return format!("unknown section; `{name}` is a key of {title}");
    }
    let known: Vec<_> = SECTIONS.iter().map(SectionKeys::title).collect();
    format!("unknown section; the sections are {}", known.join(", "))
}
