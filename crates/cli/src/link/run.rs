//! `thinair link run`: an emulated link between two network namespaces, in real time.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::model::{LinkOptions, span};
use crate::options::ChannelOptions;
use crate::options::ModeOption;

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use linux::advise;
#[cfg(target_os = "linux")]
pub(super) use linux::ended;

pub(super) const EXIT_STATUS: &str = "\
Side A has the addresses 10.9.0.1 and fd09::1, side B 10.9.0.2 and fd09::2. CMD runs at side A. The variables THINAIR_A \
and THINAIR_B hold the names of the namespaces: `ip netns exec $THINAIR_B COMMAND` runs a command at side B.\n\n\
Examples:\n  \
thinair link run --preset zigbee-20k --create -- ping -c 10 -i 0.1 -s 16 10.9.0.2\n  \
thinair link run --preset zigbee-20k --create --rohc --mode o -- \
sh -c 'ip netns exec $THINAIR_B coap-server & sleep 1; coap-client coap://10.9.0.2/time; kill $!'\n\n\
Exit status: that of CMD (128 and the number of the signal that ended it); without CMD 0; 1 for a failure, as when \
the caller may not make namespaces; 2 for wrong arguments.";

#[derive(Args, Debug)]
#[group(id = "where", required = true, multiple = false, args = ["create", "netns"])]
pub(crate) struct RunArguments {
    /// Create two network namespaces, and remove them at the end
    #[arg(long)]
    pub(super) create: bool,
    /// Connect two existing network namespaces: names of `ip netns`, or paths
    #[arg(long, value_name = "A,B", value_parser = pair)]
    pub(super) netns: Option<(String, String)>,
    #[command(flatten)]
    pub(super) link: LinkOptions,
    /// Compress packets with ROHC when their transmission begins, and decompress them at the other end
    ///
    /// The queue holds and counts uncompressed packets: no context misses a packet that the queue drops.
    /// Feedback is sent in front of the next packet, or alone if none waits; the queue never drops it.
    #[arg(long, help_heading = "ROHC")]
    pub(super) rohc: bool,
    /// Mode of operation of both directions [default: u]
    #[arg(long, value_enum, value_name = "MODE", requires = "rohc", help_heading = "ROHC")]
    pub(super) mode: Option<ModeOption>,
    /// Do not report the number of lost frames to the decompressors
    ///
    /// By default the link numbers its frames, as PDCP, IEEE 802.11 and IEEE 802.15.4 do, and each
    /// decompressor receives the number of frames lost before a packet. Octets of the numbers are part of
    /// --overhead, with compression and without.
    #[arg(long, hide_short_help = true, requires = "rohc", help_heading = "ROHC")]
    pub(super) unnumbered: bool,
    /// Maximum time that feedback waits for a packet to be sent with
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = span, default_value = "10ms", help_heading = "ROHC")]
    pub(super) feedback_wait: Duration,
    #[command(flatten)]
    pub(super) channel: ChannelOptions,
    /// Compress IPv6 packets with LOWPAN_IPHC (RFC 6282), and drop all others. Use --ip-pcap to capture them
    #[arg(long, hide_short_help = true, conflicts_with_all = ["rohc", "pcap"], help_heading = "6LoWPAN")]
    pub(super) iphc: bool,
    /// Congestion control of TCP at both hosts
    #[arg(
        long,
        hide_short_help = true,
        value_name = "NAME",
        default_value = "cubic",
        help_heading = "Hosts"
    )]
    pub(super) congestion: String,
    /// Do not use real-time scheduling, locked memory and busy waiting
    #[arg(long, hide_short_help = true, help_heading = "Hosts")]
    pub(super) no_realtime: bool,
    /// Write a line for each packet (CSV): times, sizes, outcome
    ///
    /// Columns: docs/schemas/README.md.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) log: Option<PathBuf>,
    /// Capture the delivered frames at their due times
    ///
    /// With --rohc each direction is a channel with its own file: for link.pcap, link.ab.pcap and
    /// link.ba.pcap, with Ethernet frames of type 0x22F1.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) pcap: Option<PathBuf>,
    /// Capture the IP packets that the hosts received
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) ip_pcap: Option<PathBuf>,
    /// Print the result as JSON (thinair.link/1); CMD then prints to standard error
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
    /// Command to run at side A [default: none; the link runs until it is interrupted]
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once(',') {
        Some((a, b)) if !a.is_empty() && !b.is_empty() && a != b => Ok((a.to_owned(), b.to_owned())),
        _ => Err("expected two different names, separated by a comma".to_owned()),
    }
}

#[cfg(target_os = "linux")]
pub(super) fn run(arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    linux::run(arguments)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn run(_: &RunArguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("an emulated link needs network namespaces, which only Linux has")
}
