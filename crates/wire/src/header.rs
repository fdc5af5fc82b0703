//! Headers of the Internet protocols, each read and written by one function.
//!
//! A value holds every bit of its header, so that writing it restores the octets that were read. Reading
//! rejects only what a value cannot hold (a wrong version, a length below the minimum); other unusual
//! contents are kept.

#![allow(clippy::len_without_is_empty, reason = "no header is empty")]

pub mod ah;
pub mod chain;
pub mod coap;
pub mod dtls;
pub mod esp;
pub mod extension;
pub mod ipv4;
pub mod ipv6;
pub mod rtp;
pub mod tcp;
pub mod udp;
pub mod udp_lite;

/// Protocol numbers (IANA) of the headers in a chain.
pub mod protocol {
    /// IPv6 Hop-by-Hop Option.
    pub const HOP_BY_HOP: u8 = 0;
    /// IPv4 encapsulation.
    pub const IPV4: u8 = 4;
    /// Transmission Control Protocol.
    pub const TCP: u8 = 6;
    /// User Datagram Protocol.
    pub const UDP: u8 = 17;
    /// IPv6 encapsulation.
    pub const IPV6: u8 = 41;
    /// Routing header for IPv6.
    pub const ROUTING: u8 = 43;
    /// Fragment header for IPv6.
    pub const FRAGMENT: u8 = 44;
    /// Generic Routing Encapsulation.
    pub const GRE: u8 = 47;
    /// Encapsulating Security Payload.
    pub const ESP: u8 = 50;
    /// Authentication Header.
    pub const AH: u8 = 51;
    /// Minimal encapsulation (RFC 2004).
    pub const MINIMAL: u8 = 55;
    /// Destination options for IPv6.
    pub const DESTINATION: u8 = 60;
    /// UDP-Lite (RFC 3828).
    pub const UDP_LITE: u8 = 136;
}
