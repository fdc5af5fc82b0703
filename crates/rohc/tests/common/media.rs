//! What follows IP in flows of RTP, ESP and UDP-Lite, and how it changes.

use super::Random;

/// Headers behind IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Rtp,
    Esp,
    UdpLite,
    RtpUdpLite,
}

/// How timestamps go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// One stride a packet.
    Voice,
    /// One stride a packet, and a pause now and then.
    Talkspurts,
    /// Some packets of one timestamp, and the marker on the last of them.
    Frames(u32),
    /// Anything.
    Wild,
}

/// How the Checksum Coverage of UDP-Lite behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    Full,
    Fixed(u16),
    Varies,
}

#[derive(Clone, Debug)]
pub struct Media {
    pub kind: Kind,
    pub sn: u32,
    pub ts: u32,
    pub stride: u32,
    pub clock: Clock,
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
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            sn: 0xFFF0,
            ts: 0x1234_5678,
            stride: 160,
            clock: Clock::Voice,
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
            Kind::Rtp => 17,
            Kind::Esp => 50,
            Kind::UdpLite | Kind::RtpUdpLite => 136,
        }
    }

    fn step(&mut self, random: &mut Random) {
        self.sent += 1;
        self.sn = self.sn.wrapping_add(1);
        self.marker = false;
        match self.clock {
            Clock::Voice => self.ts = self.ts.wrapping_add(self.stride),
            Clock::Talkspurts => {
                self.marker = random.once_in(12);
                let pause = if self.marker { 2 + random.below(60) as u32 } else { 1 };
                self.ts = self.ts.wrapping_add(self.stride.wrapping_mul(pause));
            }
            Clock::Frames(packets) => {
                if self.sent.is_multiple_of(packets) {
                    self.ts = self.ts.wrapping_add(self.stride);
                }
                self.marker = (self.sent + 1).is_multiple_of(packets);
            }
            Clock::Wild => self.ts = self.ts.wrapping_add(random.below(10_000) as u32),
        }
    }

    /// The next packet behind IP, around that payload.
    pub fn packet(&mut self, port: u16, payload: &[u8], random: &mut Random) -> Vec<u8> {
        self.step(random);
        let mut inside = Vec::new();
        if self.kind == Kind::Esp {
            inside.extend_from_slice(&self.ssrc.to_be_bytes());
            inside.extend_from_slice(&self.sn.to_be_bytes());
            inside.extend_from_slice(payload);
            return inside;
        }
        if self.kind != Kind::UdpLite {
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
            (Kind::Rtp, _) | (_, Coverage::Full) => length,
            (_, Coverage::Fixed(octets)) => octets,
            (_, Coverage::Varies) => 8 + random.below(u64::from(length)) as u16,
        };
        let mut packet = Vec::new();
        packet.extend_from_slice(&port.to_be_bytes());
        packet.extend_from_slice(&5004_u16.to_be_bytes());
        packet.extend_from_slice(&field.to_be_bytes());
        packet.extend_from_slice(&(1 + random.below(0xFFFF) as u16).to_be_bytes());
        packet.extend_from_slice(&inside);
        packet
    }

    /// Changes something that may change in the life of a flow, and some that may not.
    pub fn change(&mut self, random: &mut Random) {
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
                self.clock = [Clock::Voice, Clock::Talkspurts, Clock::Frames(5), Clock::Wild]
                    [random.below(4) as usize];
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
