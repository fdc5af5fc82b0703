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
        if !self.config.has_compressor {
            return Err(Error::NO_SIDE);
        }
        let now = Instant::from_nanos(now);
        let result = match (self.config.has_decompressor, self.config.feedback_in_front) {
            (false, _) => self.endpoint.compressor.compress(now, input, output),
            (true, false) => self.endpoint.compress(now, input, output),
            (true, true) => self.endpoint.send(now, input, output),
        };
        match result {
            Ok(done) => Ok(record(self.statistics.count_compressed(input, &done))),
            Err(error) => self.compress_otherwise(now, input, output, error).map(|done| record(&done)),
        }
    }

    /// Sends what is no IP packet by profile 0x0000.
    #[cold]
    fn compress_otherwise(
        &mut self,
        now: Instant,
        input: &[u8],
        output: &mut [u8],
        error: CompressError,
    ) -> Result<Compressed, Error> {
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
        if !self.config.has_decompressor {
            return Err(Error::NO_SIDE);
        }
        let now = Instant::from_nanos(now);
        let arrival = Arrival { now, lost: (lost != NOT_COUNTED).then_some(lost) };
        let counters = &mut self.statistics;
        let result = if self.config.has_compressor {
            if input.first().is_some_and(|first| *first >= packet::PADDING)
                && let Ok(parts) = packet::parts(input)
            {
                // The endpoint hands them to the compressor.
                counters.feedback_in += parts.feedback.count() as u64;
            }
            self.endpoint.receive(arrival, input, output)
        } else {
            self.endpoint.decompressor.decompress(arrival, input, output)
        };
        match result {
            Ok(done) => {
                counters.decompressed_packets += 1;
                counters.decompressed_octets_in += input.len() as u64;
                counters.decompressed_octets_out += done.len as u64;
                Ok(record(&done))
            }
            Err(error) => Err(self.decompress_failed(error)),
        }
    }

    #[cold]
    fn decompress_failed(&mut self, error: DecompressError) -> Error {
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
        self.output_len = len;
        (self.cid, self.profile) = (cid.value(), profile.number());
        (self.header_in, self.header_out) = (header_in as u32, header_out as u32);
    }

    /// Notes whether there was an outcome, and counts it.
    #[inline(always)]
    pub(crate) fn finish(&mut self, result: Result<(), Error>) -> usize {
        match result {
            Ok(()) => {
                self.error = Error::OK.0;
                1
            }
            Err(error) => {
                (self.error, self.output_len) = (error.0, 0);
                (self.cid, self.profile, self.header_in, self.header_out) = (0, 0, 0, 0);
                0
            }
        }
    }
}
