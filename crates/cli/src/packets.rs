//! Selection of the IP packets of a capture, for all commands that read captures.

use std::net::Ipv6Addr;

use clap::Args;
use thinair_analyze::Unpack;
use thinair_lowpan::{Contexts, LowpanContext};

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PacketOptions {
    /// Analyze the outer packets of GRE, ERSPAN, VXLAN, Geneve, GTP-U, L2TP and ZEP [default: the packets in these tunnels]
    #[arg(long, hide_short_help = true, help_heading = "Link")]
    pub(crate) outer: bool,
    /// 6LoWPAN context of a captured IEEE 802.15.4 network: number and prefix, such as 0=2001:db8::/64; may
    /// be repeated
    #[arg(long, hide_short_help = true, value_name = "ID=PREFIX/BITS", value_parser = context, help_heading = "Link")]
    lowpan_context: Vec<(u8, LowpanContext)>,
}

impl PacketOptions {
    /// Returns the contexts of LOWPAN_IPHC.
    pub(crate) fn contexts(&self) -> Result<Contexts, String> {
        self.lowpan_context.iter().try_fold(Contexts::NONE, |contexts, &(id, context)| {
            contexts.with(id, context).map_err(|error| error.to_string())
        })
    }

    /// Returns an extractor of the packets that `thinair analyze` counts under these options.
    pub(crate) fn unpack(&self) -> Result<Unpack, String> {
        Ok(Unpack::new(self.contexts()?).keeping_tunnels(self.outer))
    }
}

/// Parses a 6LoWPAN context.
fn context(text: &str) -> Result<(u8, LowpanContext), String> {
    let parts = || {
        let (id, prefix) = text.split_once('=')?;
        let (address, bits) = prefix.split_once('/')?;
        Some((id.parse().ok()?, address.parse::<Ipv6Addr>().ok()?, bits.parse().ok()?))
    };
    let (id, address, bits) = parts().ok_or("expected a number and a prefix, as in 0=2001:db8::/64")?;
    LowpanContext::new(address.octets(), bits).map(|context| (id, context)).map_err(|error| error.to_string())
}
