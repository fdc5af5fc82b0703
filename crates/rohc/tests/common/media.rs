//! Headers behind IP in flows of RTP, ESP and UDP-Lite, and their changes.

use super::SplitMix64;

/// Headers behind IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    Rtp,
    Esp,
    UdpLite,
    RtpUdpLite,
}

/// Behavior of timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampClock {
    /// One stride per packet.
    Voice,
    /// One stride per packet, and a pause now and then.
    Talkspurts,
    /// Several packets with one timestamp, and the marker on the last of them.
    Frames(u32),
    /// Random.
    Wild,
}

/// Behavior of the Checksum Coverage of UDP-Lite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    Full,
    Fixed(u16),
    Varies,
}

#[derive(Clone, Debug)]
pub struct Media {
    pub kind: MediaKind,
    pub sn: u32,
    pub ts: u32,
    pub stride: u32,
    pub clock: TimestampClock,
    pub ssrc: u32,
    pub pt: u8,
    pub padding: bool,
    pub extension: bool,
    pub marker: bool,
    pub csrc: Vec<u32>,
    pub coverage: Coverage,
    sent: u32,
}

impl Media {
    pub fn new(kind: MediaKind) -> Self {
        Self {
            kind,
            sn: 0xFFF0,
            ts: 0x1234_5678,
            stride: 160,
            clock: TimestampClock::Voice,
            ssrc: 0xDEAD_BEEF,
            pt: 0,
            padding: false,
            extension: false,
            marker: false,
            csrc: Vec::new(),
            coverage: Coverage::Full,
            sent: 0,
        }
    }

    pub fn protocol(&self) -> u8 {
        match self.kind {
            MediaKind::Rtp => 17,
            MediaKind::Esp => 50,
            MediaKind::UdpLite | MediaKind::RtpUdpLite => 136,
        }
    }

    fn step(&mut self, random: &mut SplitMix64) {
        self.sent += 1;
        self.sn = self.sn.wrapping_add(1);
        self.marker = false;
        match self.clock {
            TimestampClock::Voice => self.ts = self.ts.wrapping_add(self.stride),
            TimestampClock::Talkspurts => {
                self.marker = random.once_in(12);
                let pause = if self.marker { 2 + random.below(60) as u32 } else { 1 };
                self.ts = self.ts.wrapping_add(self.stride.wrapping_mul(pause));
            }
            TimestampClock::Frames(packets) => {
                if self.sent.is_multiple_of(packets) {
                    self.ts = self.ts.wrapping_add(self.stride);
                }
                self.marker = (self.sent + 1).is_multiple_of(packets);
            }
            TimestampClock::Wild => self.ts = self.ts.wrapping_add(random.below(10_000) as u32),
        }
    }

    /// Returns the next packet behind IP, with that payload.
    pub fn packet(&mut self, port: u16, payload: &[u8], random: &mut SplitMix64) -> Vec<u8> {
        self.step(random);
        let mut inside = Vec::with_capacity(80 + payload.len());
        if self.kind == MediaKind::Esp {
            inside.extend_from_slice(&self.ssrc.to_be_bytes());
            inside.extend_from_slice(&self.sn.to_be_bytes());
            inside.extend_from_slice(payload);
            return inside;
        }
        if self.kind != MediaKind::UdpLite {
            let flags = u8::from(self.padding) << 5 | u8::from(self.extension) << 4;
            inside.push(0x80 | flags | self.csrc.len() as u8);
            inside.push(u8::from(self.marker) << 7 | self.pt);
            inside.extend_from_slice(&(self.sn as u16).to_be_bytes());
            inside.extend_from_slice(&self.ts.to_be_bytes());
            inside.extend_from_slice(&self.ssrc.to_be_bytes());
            self.csrc.iter().for_each(|csrc| inside.extend_from_slice(&csrc.to_be_bytes()));
        }
        inside.extend_from_slice(payload);
        let length = 8 + inside.len() as u16;
        let field = match (self.kind, self.coverage) {
            (MediaKind::Rtp, _) | (_, Coverage::Full) => length,
            (_, Coverage::Fixed(octets)) => octets,
            (_, Coverage::Varies) => 8 + random.below(u64::from(length)) as u16,
        };
        let mut packet = Vec::with_capacity(8 + inside.len());
        packet.extend_from_slice(&port.to_be_bytes());
        packet.extend_from_slice(&5004_u16.to_be_bytes());
        packet.extend_from_slice(&field.to_be_bytes());
        packet.extend_from_slice(&(1 + random.below(0xFFFF) as u16).to_be_bytes());
        packet.extend_from_slice(&inside);
        packet
    }

    /// Changes a field that may change in a flow, or one that should not.
    pub fn change(&mut self, random: &mut SplitMix64) {
        match random.below(16) {
            0 => self.pt = random.below(64) as u8,
            1 => self.padding = !self.padding,
            2 => self.extension = !self.extension,
            3 => self.sn = self.sn.wrapping_add(random.below(30) as u32),
            4 => self.sn = self.sn.wrapping_sub(random.below(4) as u32),
            5 => self.sn = random.next() as u32,
            6 => self.ts = random.next() as u32,
            7 => self.ts = self.ts.wrapping_add(random.below(50) as u32 * self.stride),
            8 => self.ts = u32::MAX - 1_000,
            9 => self.stride = [1, 80, 160, 960, 3_000, 3_003][random.below(6) as usize],
            10 => {
                self.clock = [
                    TimestampClock::Voice,
                    TimestampClock::Talkspurts,
                    TimestampClock::Frames(5),
                    TimestampClock::Wild,
                ][random.below(4) as usize];
            }
            11 => {
                self.coverage = [Coverage::Full, Coverage::Fixed(8), Coverage::Fixed(20), Coverage::Varies]
                    [random.below(4) as usize];
            }
            12 if self.csrc.len() < 10 => {
                let at = random.below(self.csrc.len() as u64 + 1) as usize;
                self.csrc.insert(at, random.below(12) as u32);
            }
            13 if !self.csrc.is_empty() => {
                let at = random.below(self.csrc.len() as u64) as usize;
                self.csrc.remove(at);
            }
            14 if random.once_in(4) => self.ssrc = random.next() as u32,
            _ => {}
        }
    }
}
