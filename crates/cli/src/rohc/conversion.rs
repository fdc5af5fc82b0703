//! Options of `compress` and `decompress`. Both take all of them, so that a command line that wrote a file
//! also reads it after one word is changed.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use clap::Args;
use thinair_rohc::profile::coap::Base;
use thinair_rohc::storage::Slots;
use thinair_rohc::{Channel, CompressorConfig, DecompressorConfig, Interop, Mode, ProfileId};

use super::files::{self, RecordFraming};
use crate::options::{ChannelOptions, ModeOption};
use crate::packets::PacketOptions;
use crate::usage::Usage;
use crate::values::is_stdio;

#[derive(Args, Debug)]
pub(crate) struct ConversionArguments {
    /// Input capture (pcap, pcapng, also .gz and .zst); `-` is standard input
    #[arg(value_name = "IN")]
    pub(super) input: PathBuf,
    /// Output capture (pcap); `-` is standard output
    #[arg(value_name = "OUT")]
    pub(super) output: PathBuf,
    /// Mode of operation: u (unidirectional), o (optimistic) or r (reliable)
    ///
    /// In O-mode and R-mode `compress` runs a decompressor of its own, whose feedback reaches the compressor
    /// before the next packet, unless `--feedback-in` is given.
    #[arg(long, value_enum, value_name = "MODE", default_value_t = ModeOption::U)]
    pub(super) mode: ModeOption,
    /// Convert both directions of a link in one file, with feedback
    ///
    /// IN of `compress` is a capture of the link; each packet is compressed at its sender's side. OUT
    /// contains Ethernet frames of type 0x22F1, including feedback; their addresses encode the direction.
    /// CoAP responses refer to their requests. The link is modeled as in `thinair analyze`: addresses that
    /// send to each other are on different sides.
    #[arg(long, conflicts_with_all = ["feedback_in", "feedback_out"])]
    pub(super) both_ways: bool,
    /// Write ROHC packets in Ethernet frames (type 0x22F1) instead of link type 147
    ///
    /// Wireshark dissects such frames without further settings.
    #[arg(long)]
    pub(super) ethertype: bool,
    /// Read feedback for the compressor from a capture of ROHC packets
    ///
    /// Each record is delivered before the first packet with an equal or later time. `decompress` ignores
    /// this option.
    #[arg(long, value_name = "FILE")]
    pub(super) feedback_in: Option<PathBuf>,
    /// Write the feedback of the decompressor to a capture of ROHC packets
    ///
    /// Each element has the time of the packet that caused it, plus one nanosecond.
    #[arg(long, value_name = "FILE")]
    pub(super) feedback_out: Option<PathBuf>,
    /// Seed of the initial sequence numbers of the compressor; `decompress` ignores it
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) leniency: Leniency,
    /// Print the summary as JSON (thinair.rohc/1); to standard error if OUT is `-`
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) channel: ChannelOptions,
    #[command(flatten)]
    pub(super) packets: PacketOptions,
}

/// Tolerance for packets of other compressors.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Leniency {
    /// Accept packets of rohc-lib and others that violate RFC 3095; `compress` ignores this option
    ///
    /// IR and IR-DYN packets without payload are delivered, although they may belong to no packet and only
    /// refresh the context (section 5.7.7). Values from extension 3 of UO-1-ID are kept in the context
    /// (section 5.7.3 and RFC 4815, section 6.2, forbid it). A pause is no sign that packets are missing.
    #[arg(long, hide_short_help = true)]
    lenient: bool,
}

impl Leniency {
    pub(super) fn apply(self, config: DecompressorConfig) -> DecompressorConfig {
        let interop = if self.lenient { Interop::ROHC_LIB } else { Interop::STANDARD };
        DecompressorConfig { interop, ..config }
    }
}

/// The command that the options belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    Compress,
    Decompress,
}

/// Options after they have been checked for contradictions.
#[derive(Debug)]
pub(super) struct ConversionSettings {
    pub(super) channel: Channel,
    pub(super) mode: Mode,
    /// Format of the ROHC packets and feedback in the output.
    pub(super) framing: RecordFraming,
    /// Provisioned bases of profile 0x0181.
    pub(super) bases: Vec<Base>,
    /// Their name, if a template file is given.
    pub(super) template: Option<String>,
}

impl ConversionSettings {
    /// Returns a copy of the bases for a compressor or decompressor to own.
    pub(super) fn own_bases(&self) -> Slots<'static, Base> {
        Slots::owned(self.bases.clone())
    }
}

impl ConversionArguments {
    /// Checks the options.
    ///
    /// # Errors
    /// A [`Usage`] error if options contradict each other, or another one if the template file cannot be
    /// read.
    pub(super) fn settings(&self, command: Conversion) -> anyhow::Result<ConversionSettings> {
        let channel = self.channel.channel().map_err(Usage::error)?;
        match self.mode {
            ModeOption::U if self.feedback_in.is_some() || self.feedback_out.is_some() => {
                return Err(Usage::error(
                    "U-mode has no feedback; give --mode o or r with --feedback-in or --feedback-out",
                ));
            }
            ModeOption::U | ModeOption::O | ModeOption::R => {}
        }
        if command == Conversion::Compress && self.feedback_in.is_some() && self.feedback_out.is_some() {
            return Err(Usage::error(
                "--feedback-in and --feedback-out exclude each other: with feedback from a file, `compress` runs no \
                 decompressor whose feedback it could write",
            ));
        }
        self.refuse_equal_files()?;
        if is_stdio(&self.output) && io::stdout().is_terminal() {
            return Err(Usage::error(
                "OUT is `-` and standard output is a terminal; name a file, or pipe the capture into a command",
            ));
        }
        let framing = if self.ethertype || self.both_ways {
            RecordFraming::RohcInEthernet
        } else {
            RecordFraming::Rohc
        };
        if self.channel.template().is_some() && !channel.profiles().has(ProfileId::Coap) {
            return Err(Usage::error("--coap-template needs profile coap; add it, as in --profiles v1,coap"));
        }
        let bases = self.channel.bases()?;
        let template = self.channel.template_name(&bases);
        Ok(ConversionSettings { channel, mode: self.mode.mode(), framing, bases, template })
    }

    pub(super) fn compressor_config(&self, settings: &ConversionSettings) -> CompressorConfig {
        CompressorConfig { seed: self.seed, ..self.channel.compressor(settings.channel) }
    }

    pub(super) fn decompressor_config(&self, settings: &ConversionSettings) -> DecompressorConfig {
        let config = self.channel.decompressor(settings.channel);
        self.leniency.apply(DecompressorConfig { mode: settings.mode, ..config })
    }

    /// Rejects a file name that is given twice, since opening a file for writing truncates it.
    fn refuse_equal_files(&self) -> anyhow::Result<()> {
        let named = [
            ("IN", Some(&self.input)),
            ("--feedback-in", self.feedback_in.as_ref()),
            ("OUT", Some(&self.output)),
            ("--feedback-out", self.feedback_out.as_ref()),
        ];
        let written = [2, 3];
        for (i, (name, path)) in named.iter().enumerate() {
            let Some(path) = path else { continue };
            if name.starts_with("--") && is_stdio(path) {
                return Err(Usage::error(format!("{name} needs the name of a file, not `-`")));
            }
            for (other_name, other) in &named[i + 1..] {
                let Some(other) = other else { continue };
                let one_is_written = written.contains(&i) || *other_name != "--feedback-in";
                if one_is_written && files::is_same(path, other) {
                    return Err(Usage::error(format!(
                        "{name} and {other_name} are the same file, {}; write to another one",
                        path.display()
                    )));
                }
            }
        }
        Ok(())
    }
}
