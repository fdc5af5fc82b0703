//! Profile 0x0080: profile 0x0002 with the CoAP header added, as published in M. Majanen, P. Koskela and M. Valta,
//! "Constrained Application Protocol Profile for Robust Header Compression Framework" (2015), section IV.
//!
//! A flow is identified by addresses, ports, Type, Code, TKL and all options "as one combined bundle", including the Payload
//! Marker; these and the Token are static. Every packet carries the full Message ID, and the Token once it has changed. The
//! flag for the latter is in the static chain, because the published size of IR-DYN leaves no octet for it in the dynamic
//! one. IR and IR-DYN carry packets without payload, since most requests have none.
//!
//! Contexts, SNs, IP-IDs, refreshes and feedback are those of profile 0x0002 of [`thinair_rohc`]. This crate changes its packets on
//! their way out, and changes them back on their way in: CoAP fields are added to the chains of IR and IR-DYN and behind the UDP
//! checksum of other packets, and each CRC covers the CoAP header, too. Ports tell profile 0x0002 which flow a message is of, so that
//! flows between equal ports get ports of their own on the way to it.
//!
//! Not supported are large CIDs, channels with profile 0x0181 or those of RFC 5225, R-mode, extension headers and tunnels of IP in IP:
//! such packets use the profiles of the channel. Nothing is allocated.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[cfg(test)]
extern crate std;

mod check;
mod header;
mod receiver;
mod sender;

use thinair_rohc::{
    Arrival, Channel, CidSpace, CompressError, Compressed, Compressor, CompressorConfig, CompressorMemory,
    DecompressError, Decompressed, Decompressor, DecompressorConfig, DecompressorMemory, Endpoint,
    FeedbackError, Instant, Mode, ProfileId,
};

use receiver::{Inbound, Receiver};
use sender::{Outbound, Sender};

/// Number of the profile.
pub const PROFILE: u16 = 0x0080;

/// Name of the profile in reports.
pub const NAME: &str = "coap-2015";

/// Its 8 low bits, as in IR packets.
const PROFILE_OCTET: u8 = PROFILE as u8;
/// Those of profile 0x0002.
const UDP_OCTET: u8 = 0x02;

/// Number of contexts of a channel with small CIDs.
const CONTEXTS: usize = 16;
/// Octets of the longest packet that uses the profile.
const ROOM: usize = 2_048;
/// Octets of a UDP header.
const UDP: usize = 8;

/// A compressed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coap2015Compressed {
    /// The packet. Its profile is 0x0002 where it is 0x0080.
    pub compressed: Compressed,
    /// True if it is a packet of profile 0x0080.
    pub is_coap: bool,
}

/// The compressor of a channel with the profile.
#[derive(Debug)]
pub struct Coap2015Compressor<'m> {
    inner: Compressor<'m>,
    sender: Sender,
}

/// The decompressor of a channel with the profile.
#[derive(Debug)]
pub struct Coap2015Decompressor<'m> {
    inner: Decompressor<'m>,
    receiver: Receiver,
}

/// Compressor and decompressor of one side.
#[derive(Debug)]
pub struct Coap2015Endpoint<'m> {
    inner: Endpoint<'m>,
    sender: Sender,
    receiver: Receiver,
}

impl<'m> Coap2015Compressor<'m> {
    /// Creates a compressor. At most `flows` flows with options have a context at a time.
    pub fn new(config: CompressorConfig, memory: impl Into<CompressorMemory<'m>>, flows: usize) -> Self {
        let config = without_r_mode(config);
        Self { inner: Compressor::new(config, memory), sender: Sender::new(&config, flows) }
    }

    /// Compresses one IP packet to the start of `out`.
    ///
    /// # Errors
    /// Those of [`Compressor::compress`].
    pub fn compress(
        &mut self,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Coap2015Compressed, CompressError> {
        self.sender.compress(&mut self.inner, now, packet, out)
    }

    /// Handles the data of one feedback element, CID included.
    ///
    /// # Errors
    /// Those of [`Compressor::receive_feedback`].
    pub fn receive_feedback(&mut self, now: Instant, data: &[u8]) -> Result<(), FeedbackError> {
        self.sender.note_feedback(data);
        self.inner.receive_feedback(now, data)
    }
}

impl<'m> Coap2015Decompressor<'m> {
    /// Creates a decompressor.
    pub fn new(config: DecompressorConfig, memory: impl Into<DecompressorMemory<'m>>) -> Self {
        let config = DecompressorConfig { mode: config.mode.min(Mode::Optimistic), ..config };
        Self { inner: Decompressor::new(config, memory), receiver: Receiver::new(&config) }
    }

    /// Decompresses one ROHC packet to the start of `out`.
    ///
    /// # Errors
    /// Those of [`Decompressor::decompress`].
    pub fn decompress(
        &mut self,
        arrival: impl Into<Arrival>,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError> {
        self.receiver.decompress(&mut self.inner, arrival.into(), packet, out)
    }

    /// Writes the next feedback element; `None` if there is none.
    pub fn poll_feedback(&mut self, out: &mut [u8]) -> Option<usize> {
        self.inner.poll_feedback(out)
    }
}

impl<'m> Coap2015Endpoint<'m> {
    /// Creates both ends of a device. At most `flows` flows with options have a context at a time.
    pub fn new(
        compressor: (CompressorConfig, CompressorMemory<'m>),
        decompressor: (DecompressorConfig, DecompressorMemory<'m>),
        flows: usize,
    ) -> Self {
        let Coap2015Compressor { inner, sender } = Coap2015Compressor::new(compressor.0, compressor.1, flows);
        let back = Coap2015Decompressor::new(decompressor.0, decompressor.1);
        Self { inner: Endpoint::new(inner, back.inner), sender, receiver: back.receiver }
    }

    /// Compresses a packet to the start of `out`, behind the feedback that waits. See [`Endpoint::send`].
    ///
    /// # Errors
    /// Those of [`Endpoint::send`].
    pub fn send(
        &mut self,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Coap2015Compressed, CompressError> {
        self.sender.compress(&mut self.inner, now, packet, out)
    }

    /// Receives a ROHC packet: passes feedback in front of it to the compressor, and decompresses the rest to `out`. See
    /// [`Endpoint::receive`].
    ///
    /// # Errors
    /// Those of [`Endpoint::receive`].
    pub fn receive(
        &mut self,
        arrival: impl Into<Arrival>,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError> {
        if let Ok(parts) = thinair_rohc::packet::parts(packet) {
            parts.feedback.for_each(|data| self.sender.note_feedback(data));
        }
        self.receiver.decompress(&mut self.inner, arrival.into(), packet, out)
    }

    /// Writes one waiting feedback element as a ROHC packet of its own; `None` if none waits.
    pub fn poll_feedback(&mut self, out: &mut [u8]) -> Option<usize> {
        self.inner.poll_feedback(out)
    }
}

/// True if a channel may have the profile: its CIDs are small, and messages have profile 0x0002 or one below it.
fn is_supported(channel: &Channel) -> bool {
    let (profiles, highest) = (channel.profiles(), ProfileId::UdpLite.number());
    let has_no_other = profiles.iter().all(|profile| profile.number() <= highest);
    channel.cids() == CidSpace::Small && profiles.has(ProfileId::Udp) && has_no_other
}

/// The profile has U-mode and O-mode.
fn without_r_mode(config: CompressorConfig) -> CompressorConfig {
    CompressorConfig { reliable: false, ..config }
}

impl<'m> Outbound<'m> for Compressor<'m> {
    fn compressor(&mut self) -> &mut Self {
        self
    }

    fn send(&mut self, now: Instant, packet: &[u8], out: &mut [u8]) -> Result<Compressed, CompressError> {
        self.compress(now, packet, out)
    }
}

impl<'m> Outbound<'m> for Endpoint<'m> {
    fn compressor(&mut self) -> &mut Compressor<'m> {
        &mut self.compressor
    }

    fn send(&mut self, now: Instant, packet: &[u8], out: &mut [u8]) -> Result<Compressed, CompressError> {
        Endpoint::send(self, now, packet, out)
    }
}

impl<'m> Inbound<'m> for Decompressor<'m> {
    fn decompressor(&self) -> &Self {
        self
    }

    fn receive(
        &mut self,
        arrival: Arrival,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError> {
        self.decompress(arrival, packet, out)
    }
}

impl<'m> Inbound<'m> for Endpoint<'m> {
    fn decompressor(&self) -> &Decompressor<'m> {
        &self.decompressor
    }

    fn receive(
        &mut self,
        arrival: Arrival,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError> {
        Endpoint::receive(self, arrival, packet, out)
    }
}
