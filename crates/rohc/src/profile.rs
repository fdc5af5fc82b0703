//! The profiles: identifiers (RFC 5795, section 8), the registry of this crate, and a folder per RFC.

#[cfg(feature = "coap")]
pub mod coap;
mod format;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod notation;
#[cfg(feature = "rfc3095")]
pub(crate) mod rfc3095;
#[cfg(feature = "v2")]
pub(crate) mod rfc5225;
#[cfg(feature = "tcp")]
pub(crate) mod rfc6846;
pub(crate) mod uncompressed;

use thinair_wire::time::Instant;

use crate::channel::ProfileSet;
use crate::compressor::{CompressError, Compressed, Compressor, OutgoingPacket, SenderContext};
use crate::decompressor::{
    Decompressor, DecompressorConfig, IncomingPacket, Problem, ReceiverContext, SharedMemory, Traced,
    Verified,
};
use crate::exchange::Exchanges;
use crate::packet::PacketHeader;
pub use format::Format;

/// Declares [`ProfileId`]: variants, numbers, names, and the Cargo features that a profile needs.
macro_rules! identifiers {
    ($($(#[$doc:meta])+ $variant:ident = $number:literal $name:literal $($feature:literal)*,)+) => {
        /// A profile identifier (RFC 5795, section 8). The 8 low bits name the profile in packets, the 8 high bits are its
        /// variant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum ProfileId {
            $($(#[$doc])+ $variant,)+
        }

        impl ProfileId {
            const COUNT: usize = [$($name),+].len();

            /// Every profile, by number.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$variant),+];

            /// The 16-bit identifier.
            pub const fn number(self) -> u16 {
                match self {
                    $(Self::$variant => $number,)+
                }
            }

            /// A stable short name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// True if the profile is in this build.
            pub const fn is_built(self) -> bool {
                match self {
                    $(Self::$variant => true $(&& cfg!(feature = $feature))*,)+
                }
            }

            /// The Cargo features that the profile needs.
            pub const fn features(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => &[$($feature),*],)+
                }
            }
        }
    };
}

identifiers! {
    /// 0x0000, uncompressed. RFC 5795, section 5.4.
    Uncompressed = 0x0000 "uncompressed",
    /// 0x0001, RTP/UDP/IP. RFC 3095, section 5.7, with RFC 4815.
    Rtp = 0x0001 "rtp" "rtp",
    /// 0x0002, UDP/IP. RFC 3095, section 5.11, with RFC 4815.
    Udp = 0x0002 "udp" "udp",
    /// 0x0003, ESP/IP. RFC 3095, section 5.12, with RFC 4815.
    Esp = 0x0003 "esp" "esp",
    /// 0x0004, IP only. RFC 3843, with RFC 4815.
    Ip = 0x0004 "ip" "ip",
    /// 0x0006, TCP/IP: ROHC-TCP. RFC 6846.
    Tcp = 0x0006 "tcp" "tcp",
    /// 0x0007, RTP/UDP-Lite/IP. RFC 4019, with RFC 4815.
    RtpUdpLite = 0x0007 "rtp-udp-lite" "rtp" "udp-lite",
    /// 0x0008, UDP-Lite/IP. RFC 4019, with RFC 4815.
    UdpLite = 0x0008 "udp-lite" "udp-lite",
    /// 0x0081, CoAP/UDP/IP: `docs/coap-profile.md`.
    Coap = 0x0081 "coap" "coap",
    /// 0x0101, RTP/UDP/IP. RFC 5225.
    RtpV2 = 0x0101 "rtp-v2" "v2",
    /// 0x0102, UDP/IP. RFC 5225.
    UdpV2 = 0x0102 "udp-v2" "v2",
    /// 0x0103, ESP/IP. RFC 5225.
    EspV2 = 0x0103 "esp-v2" "v2",
    /// 0x0104, IP only. RFC 5225.
    IpV2 = 0x0104 "ip-v2" "v2",
    /// 0x0107, RTP/UDP-Lite/IP. RFC 5225.
    RtpUdpLiteV2 = 0x0107 "rtp-udp-lite-v2" "v2",
    /// 0x0108, UDP-Lite/IP. RFC 5225.
    UdpLiteV2 = 0x0108 "udp-lite-v2" "v2",
}

impl ProfileId {
    /// The 8 low bits, as in IR packets.
    pub const fn low_octet(self) -> u8 {
        self.number() as u8
    }

    /// Returns the profile with that [`name`](Self::name).
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }
}

/// Context of a profile that can be stored in a place.
pub(crate) trait Held<P>: Copy + Into<P> {
    /// Returns the context in a place, if it is of this profile.
    fn of(place: &P) -> Option<&Self>;

    /// Returns the context in a place for changes, if it is of this profile.
    fn of_mut(place: &mut P) -> Option<&mut Self>;
}

/// Declares the places of contexts at one end, with one variant per profile.
macro_rules! places {
    ($place:ident, $context:ident: $($(#[$attribute:meta])* $name:ident $type:ty;)+) => {
        /// Place of a context.
        #[derive(Clone, Copy, Debug)]
        #[allow(clippy::large_enum_variant, reason = "places are of one size, and nothing is allocated")]
        pub(crate) enum $place {
            Free,
            /// The decompressor has rejected the flow, which stays uncompressed until then.
            #[allow(dead_code, reason = "no place of a decompressor")]
            Rejected { until: Instant },
            $($(#[$attribute])* $name($type),)+
        }

        impl $place {
            /// The context, if there is one.
            #[inline]
            pub(crate) fn context(&self) -> Option<&dyn $context> {
                match self {
                    Self::Free | Self::Rejected { .. } => None,
                    $($(#[$attribute])* Self::$name(context) => Some(context),)+
                }
            }

            /// The context for changes, if there is one.
            #[inline]
            pub(crate) fn context_mut(&mut self) -> Option<&mut dyn $context> {
                match self {
                    Self::Free | Self::Rejected { .. } => None,
                    $($(#[$attribute])* Self::$name(context) => Some(context),)+
                }
            }
        }

        $($(#[$attribute])* impl From<$type> for $place {
            fn from(context: $type) -> Self {
                Self::$name(context)
            }
        }

        $(#[$attribute])* impl Held<$place> for $type {
            #[inline]
            fn of(place: &$place) -> Option<&Self> {
                if let $place::$name(context) = place { Some(context) } else { None }
            }

            #[inline]
            fn of_mut(place: &mut $place) -> Option<&mut Self> {
                if let $place::$name(context) = place { Some(context) } else { None }
            }
        })+
    };
}

/// Declares the profiles. A line has the contexts of one or more profiles at both ends, and their identifiers. A packet is
/// offered to them in this order.
macro_rules! registry {
    ($($(#[$attribute:meta])* $name:ident: $sender:ty, $receiver:ty, $($id:ident)|+;)+) => {
        places! { SenderPlace, SenderContext: $($(#[$attribute])* $name $sender;)+ }
        places! { ReceiverPlace, ReceiverContext: $($(#[$attribute])* $name $receiver;)+ }

        impl SenderPlace {
            /// Compresses a packet with the first profile that accepts it.
            #[inline]
            pub(crate) fn compress_packet<'m>(
                compressor: &mut Compressor<'m>,
                packet: &mut OutgoingPacket<'_, '_, 'm>,
                out: &mut [u8],
            ) -> Option<Result<Compressed, CompressError>> {
                $($(#[$attribute])* {
                    let done = <$sender as SenderContext>::compress_packet(compressor, packet, out);
                    if done.is_some() {
                        return done;
                    }
                })+
                None
            }

            /// True if a profile of the set predicts packets.
            #[inline]
            pub(crate) fn predicts(profiles: ProfileSet) -> bool {
                $($(#[$attribute])* if !thinair_wire::IS_SMALL && <$sender as SenderContext>::predicts(profiles) {
                    return true;
                })+
                false
            }

            /// Compresses the packet that the context used last predicts.
            #[inline]
            pub(crate) fn compress_predicted<'m>(
                compressor: &mut Compressor<'m>,
                now: Instant,
                packet: &[u8],
                mut sent: Option<&mut Exchanges<'m>>,
                out: &mut [u8],
            ) -> Option<Compressed> {
                let profiles = compressor.config.channel.profiles();
                $($(#[$attribute])* if <$sender as SenderContext>::predicts(profiles) {
                    let done = <$sender as SenderContext>::compress_predicted(compressor, now, packet, sent.as_deref_mut(), out);
                    if done.is_some() {
                        return done;
                    }
                })+
                None
            }

            /// True if the flow of a packet has a context of a profile that accepts its kind of packet.
            pub(crate) fn has_flow(compressor: &Compressor<'_>, packet: &OutgoingPacket<'_, '_, '_>) -> bool {
                $($(#[$attribute])* if <$sender as SenderContext>::has_flow(compressor, packet) {
                    return true;
                })+
                false
            }
        }

        impl ReceiverPlace {
            /// The profile of the context, if there is one.
            pub(crate) fn profile(&self) -> Option<ProfileId> {
                self.context().map(ReceiverContext::profile)
            }

            /// Passes the fields of a packet to `on_field`. Calls no trait object, so that it is not linked into programs that do
            /// not use it.
            pub(crate) fn dissect<'p>(
                &self,
                packet: &PacketHeader<'p>,
                config: &DecompressorConfig,
                shared: &SharedMemory<'_>,
                on_field: &mut dyn FnMut(Traced<'p>),
            ) -> Option<Format> {
                match self {
                    Self::Free | Self::Rejected { .. } => None,
                    $($(#[$attribute])* Self::$name(context) => ReceiverContext::dissect(context, packet, config, shared, on_field),)+
                }
            }

            /// Creates a context of a profile.
            pub(crate) fn new(profile: ProfileId) -> Self {
                match profile {
                    $($(#[$attribute])* $(ProfileId::$id)|+ => Self::$name(<$receiver as ReceiverContext>::new(profile)),)+
                    #[allow(unreachable_patterns, reason = "profiles may be left out")]
                    _ => Self::Free,
                }
            }

            /// Decompresses an IR or IR-CR packet of a profile.
            pub(crate) fn initialize<'m>(
                decompressor: &mut Decompressor<'m>,
                profile: ProfileId,
                packet: IncomingPacket<'_, '_, 'm>,
                out: &mut [u8],
            ) -> Result<Verified, Problem> {
                match profile {
                    $($(#[$attribute])* $(ProfileId::$id)|+ => {
                        <$receiver as ReceiverContext>::initialize(decompressor, profile, packet, out)
                    })+
                    #[allow(unreachable_patterns, reason = "profiles may be left out")]
                    _ => Err(Problem::UnsupportedProfile(profile.low_octet())),
                }
            }
        }
    };
}

registry! {
    #[cfg(feature = "coap")]
    Coap: coap::compress::CoapSenderContext, coap::decompress::CoapReceiverContext, Coap;
    #[cfg(feature = "tcp")]
    Tcp: rfc6846::compress::TcpSenderContext, rfc6846::decompress::TcpReceiverContext, Tcp;
    #[cfg(feature = "v2")]
    Rfc5225: rfc5225::compress::V2SenderContext, rfc5225::decompress::V2ReceiverContext,
        RtpV2 | UdpV2 | EspV2 | IpV2 | RtpUdpLiteV2 | UdpLiteV2;
    #[cfg(feature = "rfc3095")]
    Rfc3095: rfc3095::compress::Rfc3095SenderContext, rfc3095::decompress::Rfc3095ReceiverContext,
        Rtp | Udp | Esp | Ip | RtpUdpLite | UdpLite;
    Uncompressed: uncompressed::UncompressedSender, uncompressed::UncompressedReceiver, Uncompressed;
}
