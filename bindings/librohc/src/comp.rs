//! The compressor: an engine that begins with the first packet, segments, counters. Its functions for C are in `functions`.

#![allow(unsafe_code, reason = "a callback of C is called")]

use std::ffi::{c_uint, c_void};
use std::time::Duration;

use thinair_rohc::{
    Cid, CompressError, Compressed, Compressor, CompressorConfig, CompressorMemory, Format, Instant,
    ProfileId, Refresh, RtpDetection,
};
use thinair_wire::crc::fcs32;
use thinair_wire::header::chain::HeaderChain;

use crate::abi::{ERROR, OK, OUTPUT_TOO_SMALL, RtpCallback, SEGMENT, Status};
use crate::clock::Clock;
use crate::handle::Handle;
use crate::profiles::Profiles;
use crate::side::Side;
use crate::trace::{GENERAL, Trace, WARNING};

pub mod functions;

/// Flows with extension headers that have room at the same time, at most.
pub(crate) const BLOCKS: usize = 64;

/// Octets that a packet may grow by.
const GROWTH: usize = 512;

/// Octets of UDP and RTP headers: no callback is asked of a smaller datagram.
const UDP_HEADER: usize = 8;
const RTP_HEADER: usize = 12;

/// `ROHC_COMP_FEATURE_TIME_BASED_REFRESHES`.
const TIME_BASED_REFRESHES: c_uint = 16;

/// `struct rohc_comp`.
pub type Comp = Handle<Compression>;

/// A compressor, and what C has set.
///
/// The engine is made with the first packet, so that everything that is set before it counts.
#[derive(Debug)]
pub struct Compression {
    config: CompressorConfig,
    profiles: Profiles,
    engine: Option<Compressor<'static>>,
    trace: Trace,
    clock: Clock,
    features: c_uint,
    /// Packets, and time, between two refreshes; the time counts with its feature alone.
    refresh: (usize, Duration),
    rtp: Option<(RtpCallback, *mut c_void)>,
    /// The port of RTP that the engine has by the callback, once that was asked.
    rtp_port: Option<Option<u16>>,
    mrru: usize,
    /// A packet that is cut into segments with its CRC, and the octets of it that are sent.
    unit: Vec<u8>,
    sent: usize,
    last: Option<Last>,
    packets: u64,
    octets_in: u64,
    octets_out: u64,
}

/// The last packet. Not [`Compressed`] as a whole: its copy, which is wider than the fields, would wait for their last writes.
#[derive(Clone, Copy, Debug)]
struct Last {
    cid: Cid,
    profile: ProfileId,
    format: Format,
    is_first: bool,
    header_in: u32,
    header_out: u32,
    octets_in: usize,
    octets_out: usize,
}

impl Compression {
    /// The engine, which is made now if it is not there yet.
    #[inline(always)]
    fn engine(&mut self) -> &mut Compressor<'static> {
        if self.engine.is_none() {
            self.begin();
        }
        match &mut self.engine {
            Some(engine) => engine,
            None => unreachable!("it was made just now"),
        }
    }

    #[cold]
    fn begin(&mut self) {
        let channel = self.profiles.on(self.config.channel);
        let contexts = channel.contexts();
        // TCP may still be turned on later, and has memory of its own.
        let memory =
            CompressorMemory::owned(channel.sizes().blocks(contexts.min(BLOCKS)).tcp_flows(contexts));
        self.config.channel = channel;
        let (packets, time) = self.refresh;
        self.config.refresh = Refresh::Periodic {
            packets: Some(u32::try_from(packets).unwrap_or(u32::MAX)),
            time: (self.features & TIME_BASED_REFRESHES != 0).then_some(time),
            backoff: false,
        };
        self.engine = Some(Compressor::new(self.config, memory));
    }

    #[inline(always)]
    fn compress(&mut self, now: Instant, input: &[u8], output: &mut [u8]) -> Result<usize, Status> {
        match self.run(now, input, output) {
            Ok(done) => Ok(self.note(&done, input.len())),
            Err(error) => self.failed(now, input, error),
        }
    }

    #[cold]
    fn failed(&mut self, now: Instant, input: &[u8], error: CompressError) -> Result<usize, Status> {
        let status = match error {
            CompressError::OutputTooSmall { .. } if self.mrru > 0 => return self.cut(now, input),
            CompressError::OutputTooSmall { .. } => OUTPUT_TOO_SMALL,
            CompressError::NotIp(_) | CompressError::NoContexts => ERROR,
        };
        self.trace.emit(WARNING, GENERAL, format_args!("a packet is not compressed: {error}"));
        Err(status)
    }

    #[inline(always)]
    fn run(&mut self, now: Instant, input: &[u8], output: &mut [u8]) -> Result<Compressed, CompressError> {
        let (rtp, before) = (self.rtp, self.rtp_port);
        let engine = self.engine();
        let mut chain = HeaderChain::empty();
        if chain.parse_in_place(input).is_err() {
            return engine.uncompressed(now, input, output);
        }
        if let Some((callback, private)) = rtp {
            let port = asked(callback, private, &chain);
            if before != Some(port) {
                self.set_rtp_port(port);
            }
        }
        self.engine().compress_parsed(now, &chain, output)
    }

    /// Has the engine take datagrams to a port for RTP, or none.
    #[cold]
    fn set_rtp_port(&mut self, port: Option<u16>) {
        self.rtp_port = Some(port);
        let rtp = port.and_then(|port| RtpDetection::of_ports(&[port]));
        self.engine().set_rtp(rtp.unwrap_or(RtpDetection::NEVER));
    }

    /// Counts a packet, and returns its octets.
    #[inline(always)]
    fn note(&mut self, done: &Compressed, octets_in: usize) -> usize {
        let is_first = done.format.is_initialization()
            && self.last.is_none_or(|last| last.cid != done.cid || last.profile != done.profile);
        let Compressed { cid, profile, format, header_in, header_out, len: octets_out, .. } = *done;
        let (header_in, header_out) = (header_in as u32, header_out as u32);
        self.last =
            Some(Last { cid, profile, format, is_first, header_in, header_out, octets_in, octets_out });
        self.packets += 1;
        self.octets_in += octets_in as u64;
        self.octets_out += octets_out as u64;
        self.trace.packet(cid, profile, format, octets_in, octets_out);
        octets_out
    }

    /// Compresses a packet to be cut into segments.
    #[cold]
    fn cut(&mut self, now: Instant, input: &[u8]) -> Result<usize, Status> {
        let mut unit = std::mem::take(&mut self.unit);
        unit.resize(input.len() + GROWTH, 0);
        let result = self.run(now, input, &mut unit);
        let Ok(done) = result else { return Err(ERROR) };
        let len = self.note(&done, input.len());
        unit.truncate(len);
        unit.extend_from_slice(&fcs32(&unit));
        self.sent = 0;
        if unit.len() > self.mrru {
            self.trace.emit(WARNING, GENERAL, format_args!("{} octets are more than MRRU", unit.len()));
            return Err(OUTPUT_TOO_SMALL);
        }
        self.unit = unit;
        Err(SEGMENT)
    }

    /// Writes the next segment. RFC 5795, section 5.2.5.1.
    fn segment(&mut self, output: &mut [u8]) -> Result<(usize, Status), Status> {
        const TYPE: u8 = 0b1111_1110;
        let rest = self.unit.get(self.sent..).filter(|rest| !rest.is_empty()).ok_or(ERROR)?;
        let [first, room @ ..] = output else { return Err(OUTPUT_TOO_SMALL) };
        if room.is_empty() {
            return Err(OUTPUT_TOO_SMALL);
        }
        let len = rest.len().min(room.len());
        let is_last = len == rest.len();
        *first = TYPE | u8::from(is_last);
        room[..len].copy_from_slice(&rest[..len]);
        self.sent += len;
        if is_last {
            self.unit.clear();
        }
        Ok((1 + len, if is_last { OK } else { SEGMENT }))
    }
}

/// The port of a packet that a callback takes for RTP.
fn asked(callback: RtpCallback, private: *mut c_void, chain: &HeaderChain<'_>) -> Option<u16> {
    let (packet, ip, udp) = (chain.packet(), chain.ips().last()?, chain.udp()?);
    let (ip, datagram) = (packet.get(ip.offset..)?, packet.get(chain.ip_end()..)?);
    let payload = datagram.get(UDP_HEADER..).filter(|payload| payload.len() >= RTP_HEADER)?;
    let size = c_uint::try_from(payload.len()).unwrap_or(c_uint::MAX);
    // SAFETY: the caller has set a function of that type, and the pointers are to octets of the packet.
    let is_rtp = unsafe { callback(ip.as_ptr(), datagram.as_ptr(), payload.as_ptr(), size, private) };
    is_rtp.then_some(udp.destination_port)
}

impl Side for Compression {
    fn mrru(&self) -> usize {
        self.mrru
    }

    fn profiles(&mut self) -> &mut Profiles {
        &mut self.profiles
    }

    fn set_profiles(&mut self) {
        if let Some(engine) = &mut self.engine {
            engine.set_profiles(self.profiles.set);
        }
    }
}
