//! TCP segments in IP packets, and their connections.

use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::tcp::Tcp;

/// One IP header.
#[derive(Clone, Debug)]
pub struct Outer {
    pub six: bool,
    pub tos: u8,
    pub ttl: u8,
    pub id: u16,
    pub df: bool,
    pub flow_label: u32,
    /// Number of destination options of 8 octets behind the header.
    pub options: usize,
}

impl Outer {
    pub fn new(six: bool) -> Self {
        Self { six, tos: 0, ttl: 64, id: 0x1000, df: true, flow_label: 0, options: 0 }
    }
}

/// A segment with its headers.
#[derive(Clone, Debug)]
pub struct TcpPacket {
    pub ips: Vec<Outer>,
    pub tcp: Tcp<'static>,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
    /// Number that is added to the correct checksum.
    pub wrong: u16,
}

impl TcpPacket {
    pub fn new(ips: Vec<Outer>, port: u16) -> Self {
        let tcp = Tcp {
            source_port: port,
            destination_port: 80,
            sequence_number: 0x1234_5678,
            acknowledgment_number: 0x9ABC_DEF0,
            ack: true,
            window: 0x2000,
            ..Tcp::default()
        };
        Self { ips, tcp, options: Vec::new(), payload: Vec::new(), wrong: 0 }
    }

    pub fn octets(&self) -> Vec<u8> {
        let mut inside = vec![0; 20 + self.options.len()];
        let tcp = Tcp { options: &self.options, checksum: 0, ..self.tcp };
        tcp.write(&mut inside, 0).unwrap();
        inside.extend_from_slice(&self.payload);
        let six = self.ips.last().unwrap().six;
        let addresses: &[u8] = if six { &[0xFD; 32] } else { &[10, 0, 0, 1, 10, 0, 0, 2] };
        let sum = Sum::ZERO.octets(addresses).word(6).word(inside.len() as u16).octets(&inside);
        let sum = sum.checksum().wrapping_add(self.wrong);
        inside[16..18].copy_from_slice(&sum.to_be_bytes());
        let mut next = 6;
        for ip in self.ips.iter().rev() {
            let mut around = Vec::with_capacity(40 + 8 * ip.options + inside.len());
            let extensions = 8 * ip.options;
            if ip.six {
                let first = if ip.options > 0 { 60 } else { next };
                let head = 6 << 28 | u32::from(ip.tos) << 20 | ip.flow_label;
                around.extend_from_slice(&head.to_be_bytes());
                around.extend_from_slice(&((inside.len() + extensions) as u16).to_be_bytes());
                around.extend_from_slice(&[first, ip.ttl]);
                around.extend_from_slice(&[0xFD; 32]);
                for i in 0..ip.options {
                    let after = if i + 1 < ip.options { 60 } else { next };
                    around.extend_from_slice(&[after, 0, 1, 4, 0, 0, 0, 0]);
                }
                next = 41;
            } else {
                around.extend_from_slice(&[0x45, ip.tos]);
                around.extend_from_slice(&((inside.len() + 20) as u16).to_be_bytes());
                around.extend_from_slice(&ip.id.to_be_bytes());
                around.extend_from_slice(&[u8::from(ip.df) << 6, 0, ip.ttl, next, 0, 0]);
                around.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
                let sum = Ipv4::checksum_of(&around);
                around[10..12].copy_from_slice(&sum.to_be_bytes());
                next = 4;
            }
            around.extend_from_slice(&inside);
            inside = around;
        }
        inside
    }
}

/// `NOP NOP TIMESTAMPS`.
pub fn timestamps(value: u32, echo: u32) -> Vec<u8> {
    let mut options = vec![1, 1, 8, 10];
    options.extend_from_slice(&value.to_be_bytes());
    options.extend_from_slice(&echo.to_be_bytes());
    options
}

/// `NOP NOP SACK`.
pub fn sack(blocks: &[(u32, u32)]) -> Vec<u8> {
    let mut options = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
    for (start, end) in blocks {
        options.extend_from_slice(&start.to_be_bytes());
        options.extend_from_slice(&end.to_be_bytes());
    }
    options
}
