//! The TCP header and an iterator over its options. RFC 9293, sections 3.1 and 3.2.

use core::iter::FusedIterator;

use crate::coder::{Coder, NoRoom, Reader, Step, Writer};

/// Every field of a TCP header. Data Offset follows from the options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp<'p> {
    /// Source Port.
    pub source_port: u16,
    /// Destination Port.
    pub destination_port: u16,
    /// Sequence Number of the first data octet; with SYN, the initial sequence number.
    pub sequence_number: u32,
    /// Acknowledgment Number: the next sequence number that is expected. Meaningful only with ACK.
    pub acknowledgment_number: u32,
    /// Reserved, 4 bits; normally zero.
    pub reserved: u8,
    /// Congestion Window Reduced.
    pub cwr: bool,
    /// ECN-Echo.
    pub ece: bool,
    /// Urgent pointer field is significant.
    pub urg: bool,
    /// Acknowledgment field is significant.
    pub ack: bool,
    /// Push function.
    pub psh: bool,
    /// Reset the connection.
    pub rst: bool,
    /// Synchronize sequence numbers.
    pub syn: bool,
    /// No more data from sender.
    pub fin: bool,
    /// Window, in octets before window scaling (RFC 7323).
    pub window: u16,
    /// Checksum as received, correct or not.
    pub checksum: u16,
    /// Urgent Pointer, in octets from the sequence number. Meaningful only with URG.
    pub urgent_pointer: u16,
    /// Options with their padding; a multiple of 4 octets, at most 40.
    pub options: &'p [u8],
}

impl<'p> Tcp<'p> {
    /// Octets of a header without options.
    pub const LEN: usize = 20;

    /// Octets of the header.
    pub fn len(&self) -> usize {
        Self::LEN + self.options.len()
    }

    /// Reads a header from the start of `octets`.
    pub fn read(octets: &'p [u8]) -> Step<Self> {
        let mut header = Self::default();
        header.code(&mut Reader::contiguous(octets))?;
        Ok(header)
    }

    /// Writes the header from octet `at` of `out` on and returns its end.
    pub fn write(mut self, out: &mut [u8], at: usize) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out, at);
        // Every value can be written.
        let _ = self.code(&mut writer);
        writer.finish()
    }

    /// Codes the header, field by field.
    #[inline]
    pub fn code<C: Coder<'p>>(&mut self, c: &mut C) -> Step {
        let mut data_offset = (self.len() / 4) as u8;
        c.uint("Source Port", 16, &mut self.source_port)?;
        c.uint("Destination Port", 16, &mut self.destination_port)?;
        c.uint("Sequence Number", 32, &mut self.sequence_number)?;
        c.uint("Acknowledgment Number", 32, &mut self.acknowledgment_number)?;
        c.uint("Data Offset", 4, &mut data_offset)?;
        c.require(data_offset >= 5)?;
        c.uint("Rsrvd", 4, &mut self.reserved)?;
        c.flag("CWR", &mut self.cwr)?;
        c.flag("ECE", &mut self.ece)?;
        c.flag("URG", &mut self.urg)?;
        c.flag("ACK", &mut self.ack)?;
        c.flag("PSH", &mut self.psh)?;
        c.flag("RST", &mut self.rst)?;
        c.flag("SYN", &mut self.syn)?;
        c.flag("FIN", &mut self.fin)?;
        c.uint("Window", 16, &mut self.window)?;
        c.uint("Checksum", 16, &mut self.checksum)?;
        c.uint("Urgent Pointer", 16, &mut self.urgent_pointer)?;
        c.slice("Options", usize::from(data_offset.saturating_sub(5)) * 4, &mut self.options)
    }

    /// Returns an iterator over the options.
    #[inline]
    pub fn walk(&self) -> TcpOptions<'p> {
        TcpOptions::new(self.options)
    }
}

/// Option kinds (IANA).
pub mod kind {
    /// End of Option List; one octet.
    pub const EOL: u8 = 0;
    /// No-Operation; one octet.
    pub const NOP: u8 = 1;
    /// Maximum Segment Size.
    pub const MSS: u8 = 2;
    /// Window Scale (RFC 7323).
    pub const WINDOW_SCALE: u8 = 3;
    /// SACK Permitted (RFC 2018).
    pub const SACK_PERMITTED: u8 = 4;
    /// SACK (RFC 2018).
    pub const SACK: u8 = 5;
    /// Timestamps (RFC 7323).
    pub const TIMESTAMPS: u8 = 8;
}

/// Reason the options of a header end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOptionsEnd<'p> {
    /// The options fill their place.
    Exhausted,
    /// An End of Option List.
    EndOfOptionList {
        /// Octets behind it; normally zero.
        padding: &'p [u8],
    },
    /// An option whose length is missing, less than 2, or larger than the octets that are present.
    Malformed {
        /// Start of the option, in octets from the first option.
        offset: usize,
    },
}

/// Iterator over TCP options. RFC 9293, section 3.1.
///
/// **After the last option [`end`](Self::end) returns the reason.** The octets of all options together are
/// the octets visited.
#[derive(Clone, Copy, Debug)]
pub struct TcpOptions<'p> {
    octets: &'p [u8],
    at: usize,
    end: Option<TcpOptionsEnd<'p>>,
}

impl<'p> TcpOptions<'p> {
    /// Creates an iterator over the options in `octets`.
    #[inline]
    pub const fn new(octets: &'p [u8]) -> Self {
        Self { octets, at: 0, end: None }
    }

    /// Reason the options end; `None` before the last option was visited.
    #[inline]
    pub const fn end(&self) -> Option<TcpOptionsEnd<'p>> {
        self.end
    }

    #[inline]
    fn step(&self) -> Result<(u8, &'p [u8]), TcpOptionsEnd<'p>> {
        let rest = self.octets.get(self.at..).unwrap_or_default();
        let len = match *rest {
            [] => return Err(TcpOptionsEnd::Exhausted),
            [kind::EOL, ref padding @ ..] => return Err(TcpOptionsEnd::EndOfOptionList { padding }),
            [kind::NOP, ..] => 1,
            // The length does not cover Kind and Length.
            [_] | [_, 0 | 1, ..] => return Err(TcpOptionsEnd::Malformed { offset: self.at }),
            [_, len, ..] => usize::from(len),
        };
        let option = rest.get(..len).ok_or(TcpOptionsEnd::Malformed { offset: self.at })?;
        Ok((rest[0], option))
    }
}

impl<'p> Iterator for TcpOptions<'p> {
    /// Kind, and octets of the whole option with Kind and Length.
    type Item = (u8, &'p [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.end.is_some() {
            return None;
        }
        match self.step() {
            Ok((kind, octets)) => {
                self.at += octets.len();
                Some((kind, octets))
            }
            Err(end) => {
                self.end = Some(end);
                None
            }
        }
    }
}

impl FusedIterator for TcpOptions<'_> {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::coder::Refusal;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// The SYN of captures/coap_tcp4.pcap, frame 1.
    const SYN: [u8; 40] = *b"\x8d\x79\x16\x33\x98\x7d\x78\xe9\0\0\0\0\xa0\x02\xfa\xf0\xf3\x72\0\0\
        \x02\x04\x05\xb4\x04\x02\x08\x0a\x19\xed\x75\xd0\0\0\0\0\x01\x03\x03\x0a";

    #[test]
    fn a_syn_has_its_flag_and_options() {
        let header = Tcp {
            source_port: 36_217,
            destination_port: 5683,
            sequence_number: 0x987D_78E9,
            syn: true,
            window: 64_240,
            checksum: 0xF372,
            options: &SYN[20..],
            ..Tcp::default()
        };
        assert_eq!(Tcp::read(&SYN), Ok(header));
        assert_eq!(header.len(), SYN.len());

        let mut walk = header.walk();
        let kinds: Vec<_> = walk.by_ref().map(|(kind, octets)| (kind, octets.len())).collect();
        assert_eq!(
            kinds,
            [
                (kind::MSS, 4),
                (kind::SACK_PERMITTED, 2),
                (kind::TIMESTAMPS, 10),
                (kind::NOP, 1),
                (kind::WINDOW_SCALE, 3)
            ]
        );
        assert_eq!(walk.end(), Some(TcpOptionsEnd::Exhausted));
    }

    #[test]
    fn each_flag_has_its_bit() {
        let with = |bit: u8| {
            let mut octets = SYN;
            octets[13] = 1 << bit;
            let h = Tcp::read(&octets).unwrap();
            [h.fin, h.syn, h.rst, h.psh, h.ack, h.urg, h.ece, h.cwr]
        };
        for bit in 0..8 {
            let mut only = [false; 8];
            only[usize::from(bit)] = true;
            assert_eq!(with(bit), only);
        }
    }

    #[test]
    fn every_truncation_is_refused() {
        for len in 0..SYN.len() {
            assert_eq!(Tcp::read(&SYN[..len]), Err(Refusal::Malformed), "{len} octets");
        }
    }

    #[test]
    fn a_data_offset_below_five_is_malformed() {
        for data_offset in 0..5 {
            let mut octets = SYN;
            octets[12] = data_offset << 4;
            assert_eq!(Tcp::read(&octets), Err(Refusal::Malformed));
        }
    }

    #[test]
    fn every_end_of_the_options_is_told() {
        let end = |octets| {
            let mut walk = TcpOptions::new(octets);
            (walk.by_ref().count(), walk.end().unwrap())
        };
        assert_eq!(end(b""), (0, TcpOptionsEnd::Exhausted));
        assert_eq!(end(b"\x01\x01"), (2, TcpOptionsEnd::Exhausted));
        assert_eq!(end(b"\x01\0\x07\0"), (1, TcpOptionsEnd::EndOfOptionList { padding: b"\x07\0" }));
        assert_eq!(end(b"\x01\x02"), (1, TcpOptionsEnd::Malformed { offset: 1 }));
        assert_eq!(end(b"\x02\0\x05\xb4"), (0, TcpOptionsEnd::Malformed { offset: 0 }));
        assert_eq!(end(b"\x02\x01\x05\xb4"), (0, TcpOptionsEnd::Malformed { offset: 0 }));
        assert_eq!(end(b"\x01\x02\x04\x05"), (1, TcpOptionsEnd::Malformed { offset: 1 }));
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_was_read(octets in vec(any::<u8>(), 0..64)) {
            if let Ok(header) = Tcp::read(&octets) {
                let mut out = [0; 60];
                prop_assert_eq!(header.write(&mut out, 0), Ok(header.len()));
                prop_assert_eq!(&out[..header.len()], &octets[..header.len()]);
            }
        }

        #[test]
        fn what_is_read_is_what_was_written(
            [source_port, destination_port] in any::<[u16; 2]>(),
            [sequence_number, acknowledgment_number] in any::<[u32; 2]>(),
            reserved in 0..16_u8,
            [cwr, ece, urg, ack, psh, rst, syn, fin] in any::<[bool; 8]>(),
            [window, checksum, urgent_pointer] in any::<[u16; 3]>(),
            options in vec(any::<[u8; 4]>(), 0..=10),
        ) {
            let options = options.concat();
            let header = Tcp {
                source_port, destination_port, sequence_number, acknowledgment_number, reserved,
                cwr, ece, urg, ack, psh, rst, syn, fin, window, checksum, urgent_pointer,
                options: &options,
            };
            let mut out = [0; 60];
            prop_assert_eq!(header.write(&mut out, 0), Ok(header.len()));
            prop_assert_eq!(Tcp::read(&out), Ok(header));
        }

        #[test]
        fn the_walk_accounts_for_every_octet(octets in vec(0..12_u8, 0..=40)) {
            let mut walk = TcpOptions::new(&octets);
            let walked: Vec<_> = walk.by_ref().flat_map(|(_, option)| option).copied().collect();
            let behind = match walk.end().unwrap() {
                TcpOptionsEnd::Exhausted => 0,
                TcpOptionsEnd::EndOfOptionList { padding } => 1 + padding.len(),
                TcpOptionsEnd::Malformed { offset } => octets.len() - offset,
            };
            prop_assert_eq!(walked.len() + behind, octets.len());
            prop_assert_eq!(&walked, &octets[..walked.len()]);
            prop_assert_eq!(walk.next(), None);
        }
    }
}
