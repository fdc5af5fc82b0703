//! One packet, or one list of feedback, through a handle: which side does it, and what is counted.

use thinair_rohc::packet::{self, Parts};
use thinair_rohc::{
    Arrival, Cid, CompressError, Compressed, DecompressError, Decompressed, Instant, ProfileId,
};

use crate::abi::{Error, NOT_COUNTED, Packet, Statistics};
use crate::memory::Handle;

impl Handle {
    /// Compresses a packet, counts it, and hands the outcome to `record`.
    #[inline(always)]
    pub(crate) fn compress<T>(
        &mut self,
        now: u64,
        input: &[u8],
        output: &mut [u8],
        record: impl FnOnce(&Compressed) -> T,
    ) -> Result<T, Error> {
        let now = Instant::from_nanos(now);
        let result = match self.config.feedback_in_front {
            false => self.endpoint.compress(now, input, output),
            true => self.endpoint.send(now, input, output),
        };
        match result {
            Ok(done) => Ok(record(self.statistics.count_compressed(input, &done))),
            Err(error) => self.compress_otherwise(now, input, output, error).map(|done| record(&done)),
        }
    }

    /// Sends what is no IP packet by profile 0x0000. A side that the handle does not have always fails, for it has no contexts.
    #[cold]
    fn compress_otherwise(
        &mut self,
        now: Instant,
        input: &[u8],
        output: &mut [u8],
        error: CompressError,
    ) -> Result<Compressed, Error> {
        if !self.config.has_compressor {
            return Err(Error::NO_SIDE);
        }
        let result = match error {
            CompressError::NotIp(_) => self.endpoint.compressor.uncompressed(now, input, output),
            error => Err(error),
        };
        match result {
            Ok(done) => Ok(*self.statistics.count_compressed(input, &done)),
            Err(error) => {
                self.statistics.compress_errors += 1;
                Err(error.into())
            }
        }
    }

    /// Decompresses a packet, counts it, and hands the outcome to `record`.
    #[inline(always)]
    pub(crate) fn decompress<T>(
        &mut self,
        now: u64,
        lost: u32,
        input: &[u8],
        output: &mut [u8],
        record: impl FnOnce(&Decompressed) -> T,
    ) -> Result<T, Error> {
        let arrival = Arrival { now: Instant::from_nanos(now), lost: (lost != NOT_COUNTED).then_some(lost) };
        if input.first().is_some_and(|first| *first >= packet::PADDING) {
            self.take_feedback_in_front(now, input);
        }
        match self.endpoint.decompress(arrival, input, output) {
            Ok(done) => {
                let counters = &mut self.statistics;
                counters.decompressed_packets += 1;
                counters.decompressed_octets_in += input.len() as u64;
                counters.decompressed_octets_out += done.len as u64;
                Ok(record(&done))
            }
            Err(error) => Err(self.decompress_failed(error)),
        }
    }

    /// Hands feedback in front of a packet to the compressor of a pair.
    #[cold]
    fn take_feedback_in_front(&mut self, now: u64, input: &[u8]) {
        if self.config.has_compressor
            && self.config.has_decompressor
            && let Ok(parts) = packet::parts(input)
        {
            // What is refused is counted, and the packet is decompressed nevertheless: RFC 3095, section 5.7.6.3.
            let _ = self.take_feedback(now, parts);
        }
    }

    #[cold]
    fn decompress_failed(&mut self, error: DecompressError) -> Error {
        if !self.config.has_decompressor {
            return Error::NO_SIDE;
        }
        self.statistics.decompress_errors += u64::from(error != DecompressError::NothingYet);
        error.into()
    }

    /// Hands all elements to the compressor. An error if one was refused.
    pub(crate) fn take_feedback(&mut self, now: u64, parts: Parts<'_>) -> Result<(), Error> {
        let mut result = Ok(());
        for element in parts.feedback {
            self.statistics.feedback_in += 1;
            let taken = self.endpoint.compressor.receive_feedback(Instant::from_nanos(now), element);
            if taken.is_err() {
                self.statistics.feedback_in_refused += 1;
                result = Err(Error::BAD_FEEDBACK);
            }
        }
        result
    }
}

impl Statistics {
    /// Counts a packet that was compressed.
    #[inline(always)]
    fn count_compressed<'d>(&mut self, input: &[u8], done: &'d Compressed) -> &'d Compressed {
        self.compressed_packets += 1;
        self.compressed_octets_in += input.len() as u64;
        self.compressed_octets_out += done.len as u64;
        self.compressed_header_in += done.header_in as u64;
        self.compressed_header_out += done.header_out as u64;
        done
    }
}

impl Packet {
    /// Notes an outcome.
    #[inline(always)]
    pub(crate) fn record(
        &mut self,
        len: usize,
        cid: Cid,
        profile: ProfileId,
        header_in: usize,
        header_out: usize,
    ) {
        (self.error, self.output_len) = (Error::OK.0, len);
        (self.cid, self.profile) = (cid.value(), profile.number());
        (self.header_in, self.header_out) = (header_in as u32, header_out as u32);
    }

    /// Notes that there was none.
    #[cold]
    pub(crate) fn fail(&mut self, error: Error) {
        (self.error, self.output_len) = (error.0, 0);
        (self.cid, self.profile, self.header_in, self.header_out) = (0, 0, 0, 0);
    }
}
