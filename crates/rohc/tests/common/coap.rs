//! CoAP flows: those of the table in `docs/coap-profile.md`, and a mix of all kinds.

use super::SplitMix64;
use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoapSide {
    Client,
    Server,
}

#[derive(Clone, Debug, Default)]
pub struct TestMessage {
    pub kind: u8,
    pub code: u8,
    pub id: u16,
    pub token: Vec<u8>,
    pub options: Vec<(u16, Vec<u8>)>,
    pub payload: Vec<u8>,
}

impl TestMessage {
    pub fn get(id: u16, path: &[&[u8]]) -> Self {
        let options = path.iter().map(|part| (11, part.to_vec())).collect();
        Self { code: 1, id, options, ..Self::default() }
    }

    pub fn octets(&self) -> Vec<u8> {
        let mut out = vec![0x40 | self.kind << 4 | self.token.len() as u8, self.code];
        out.extend_from_slice(&self.id.to_be_bytes());
        out.extend_from_slice(&self.token);
        let mut last = 0;
        for (number, value) in &self.options {
            let nibble = |n: usize| match n {
                0..13 => (n as u8, vec![]),
                13..269 => (13, vec![(n - 13) as u8]),
                _ => (14, ((n - 269) as u16).to_be_bytes().to_vec()),
            };
            let (delta, more_delta) = nibble(usize::from(number - last));
            let (len, more_len) = nibble(value.len());
            out.push(delta << 4 | len);
            out.extend(more_delta);
            out.extend(more_len);
            out.extend_from_slice(value);
            last = *number;
        }
        if !self.payload.is_empty() {
            out.push(0xFF);
            out.extend_from_slice(&self.payload);
        }
        out
    }
}

/// Encodes a uint as in options.
pub fn uint(value: u32) -> Vec<u8> {
    value.to_be_bytes().into_iter().skip_while(|octet| *octet == 0).collect()
}

pub fn packet(six: bool, host: u8, side: CoapSide, ip_id: u16, message: &TestMessage) -> Vec<u8> {
    datagram(six, host, side, ip_id, 64, &message.octets(), true)
}

pub fn datagram(
    six: bool,
    host: u8,
    side: CoapSide,
    ip_id: u16,
    ttl: u8,
    coap: &[u8],
    right: bool,
) -> Vec<u8> {
    datagram_of((six, host, 0xE000 | u16::from(host)), side, ip_id, ttl, coap, right)
}

/// Sets a flow label for each port, as Linux does.
pub fn label_by_port(packet: &mut [u8], port: u16) {
    let label = u32::from(port).wrapping_mul(0x9E37_79B1) >> 12;
    packet[1..4].copy_from_slice(&label.to_be_bytes()[1..]);
}

/// A datagram between the hosts of a number, with a port of the client.
pub fn datagram_of(
    (six, host, port): (bool, u8, u16),
    side: CoapSide,
    ip_id: u16,
    ttl: u8,
    coap: &[u8],
    right: bool,
) -> Vec<u8> {
    let len = (8 + coap.len()) as u16;
    let [high, low] = port.to_be_bytes();
    let ports = match side {
        CoapSide::Client => [high, low, 0x16, 0x33],
        CoapSide::Server => [0x16, 0x33, high, low],
    };
    let mut packet = Vec::new();
    let mut addresses = Vec::new();
    for end in if side == CoapSide::Client { [1, 2] } else { [2, 1_u8] } {
        if six {
            addresses.extend_from_slice(&[0xFD, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0xFF, 0xFE, 0, host, end]);
        } else {
            addresses.extend_from_slice(&[10, 0, host, end]);
        }
    }
    if six {
        packet.extend_from_slice(&[0x60, 0, 0, 0, (len >> 8) as u8, len as u8, 17, ttl]);
        packet.extend_from_slice(&addresses);
    } else {
        packet.extend_from_slice(&[0x45, 0]);
        packet.extend_from_slice(&(20 + len).to_be_bytes());
        packet.extend_from_slice(&ip_id.to_be_bytes());
        packet.extend_from_slice(&[0x40, 0, ttl, 17, 0, 0]);
        packet.extend_from_slice(&addresses);
        let sum = Ipv4::checksum_of(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    let sum =
        Sum::ZERO.octets(&addresses).octets(&ports).word(17).word(len).word(len).octets(coap).checksum();
    let sum = if sum == 0 { 0xFFFF } else { sum };
    packet.extend_from_slice(&ports);
    packet.extend_from_slice(&len.to_be_bytes());
    packet.extend_from_slice(&(if right { sum } else { sum ^ 0x0101 }).to_be_bytes());
    packet.extend_from_slice(coap);
    packet
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowName {
    A,
    B,
    C2,
    C4,
    CCount,
    D,
    EReq,
    ERsp,
    FReq,
    FRsp,
    G,
    H,
    HRsp,
}

pub struct CoapFlow {
    name: FlowName,
    six: bool,
    pub side: CoapSide,
    random: SplitMix64,
    id: u16,
    ip_ids: [u16; 2],
    token: u32,
    fixed: [u8; 4],
    count: u32,
}

impl CoapFlow {
    pub fn new(name: FlowName, six: bool, seed: u64) -> Self {
        use FlowName::*;
        let mut random = SplitMix64(seed);
        let side =
            if matches!(name, B | D | ERsp | FRsp | HRsp) { CoapSide::Server } else { CoapSide::Client };
        Self {
            name,
            six,
            side,
            id: random.next() as u16,
            ip_ids: [random.next() as u16, random.next() as u16],
            token: random.next() as u16 as u32,
            fixed: (random.next() as u32).to_be_bytes(),
            random,
            count: 0,
        }
    }

    fn payload(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.random.next() as u8).collect()
    }

    /// Returns the next packet, preceded by the request that it answers if that matters.
    pub fn next(&mut self) -> Vec<(CoapSide, Vec<u8>)> {
        use FlowName::*;
        self.id = self.id.wrapping_add(1);
        self.count += 1;
        self.token += 1;
        let random_token = self.payload(8);
        let mut before = None;
        let message = match self.name {
            A => TestMessage::get(self.id, &[b"time"]),
            B => TestMessage {
                kind: 2,
                code: 69,
                id: self.id,
                options: vec![(12, vec![]), (14, vec![1])],
                payload: self.payload(15),
                ..TestMessage::default()
            },
            C2 | C4 => {
                let len = if self.name == C2 { 2 } else { 4 };
                TestMessage { token: random_token[..len].to_vec(), ..TestMessage::get(self.id, &[b"time"]) }
            }
            CCount => TestMessage { token: uint(self.token), ..TestMessage::get(self.id, &[b"time"]) },
            D => TestMessage {
                kind: 1,
                code: 69,
                id: self.id,
                token: self.fixed.to_vec(),
                options: vec![(6, uint(self.count + 0x1200)), (12, vec![50])],
                payload: self.payload(20),
            },
            EReq => {
                let mut get = TestMessage::get(self.id, &[b"f"]);
                get.token = self.fixed[..2].to_vec();
                get.options.push((23, uint(self.count << 4 | 2)));
                get
            }
            ERsp => TestMessage {
                kind: 2,
                code: 69,
                id: self.id,
                token: self.fixed[..2].to_vec(),
                options: vec![(12, vec![]), (23, uint(self.count << 4 | 0xA))],
                payload: self.payload(64),
            },
            FReq => TestMessage {
                code: 2,
                id: self.id,
                options: vec![(
                    9,
                    [&[0x0A_u8][..], &((self.count + 300) as u16).to_be_bytes(), &[1]].concat(),
                )],
                payload: self.payload(14),
                ..TestMessage::default()
            },
            FRsp => TestMessage {
                kind: 2,
                code: 68,
                id: self.id,
                token: self.fixed.to_vec(),
                options: vec![(9, vec![])],
                payload: self.payload(25),
            },
            G => {
                let mut get = TestMessage::get(self.id, &[b"q"]);
                let value = 1_000 + self.random.below(9_000);
                get.options.push((15, format!("t={value}").into_bytes()));
                get
            }
            H => TestMessage::get(self.random.next() as u16, &[b"time"]),
            HRsp => {
                let id = self.random.next() as u16;
                let request =
                    TestMessage { token: random_token[..4].to_vec(), ..TestMessage::get(id, &[b"time"]) };
                before = Some(request);
                TestMessage {
                    kind: 2,
                    code: 69,
                    id,
                    token: random_token[..4].to_vec(),
                    options: vec![(12, vec![])],
                    payload: self.payload(15),
                }
            }
        };
        let mut packets = Vec::new();
        if let Some(request) = before {
            self.ip_ids[0] = self.ip_ids[0].wrapping_add(1);
            packets.push((CoapSide::Client, packet(self.six, 9, CoapSide::Client, self.ip_ids[0], &request)));
        }
        self.ip_ids[1] = self.ip_ids[1].wrapping_add(1);
        packets.push((self.side, packet(self.six, 9, self.side, self.ip_ids[1], &message)));
        packets
    }
}

/// Two endpoints that use all features of CoAP, and some invalid packets.
pub struct Mix {
    six: bool,
    ids: [u16; 2],
    ip_ids: [u16; 2],
    ip_step: u64,
    ttl: u8,
    token: u32,
    observe: u32,
    block: u32,
    piv: u32,
    style: u64,
    /// Ports of the clients, one of which a new client takes now and then; that of the next message; one request in so many has a
    /// new one, if any has.
    ports: Vec<u16>,
    port: u16,
    new_ports: Option<u64>,
    /// Requests that await a response, and ports of their clients.
    waiting: Vec<(CoapSide, TestMessage, u16)>,
    last: Option<(CoapSide, Vec<u8>)>,
    relations: Vec<Vec<u8>>,
}

impl Mix {
    pub fn new(six: bool, random: &mut SplitMix64) -> Self {
        Self {
            six,
            ids: [random.next() as u16, random.next() as u16],
            ip_ids: [random.next() as u16, random.next() as u16],
            ip_step: random.below(3) * 5,
            ttl: 64,
            token: random.next() as u32 >> random.below(32),
            observe: random.next() as u32 >> (8 + random.below(20)),
            block: 0,
            piv: random.next() as u32 >> (8 + random.below(24)),
            style: random.next(),
            ports: vec![0xE009],
            port: 0xE009,
            new_ports: None,
            waiting: Vec::new(),
            last: None,
            relations: (0..1 + random.below(5)).map(|_| random.next().to_be_bytes()[..2].to_vec()).collect(),
        }
    }

    /// Clients that end, up to four at a time, and new ones with other ports.
    pub fn of_clients(six: bool, random: &mut SplitMix64) -> Self {
        let mix = Self::new(six, random);
        let ports = (0..1 + random.below(4)).map(|_| random.next() as u16 | 0x8000).collect();
        Self { ports, new_ports: Some(1 + random.below(8)), ..mix }
    }

    /// Returns the port of the client that sends the next request.
    fn client(&mut self, random: &mut SplitMix64) -> u16 {
        let at = random.below(self.ports.len() as u64) as usize;
        if self.new_ports.is_some_and(|ports| random.once_in(ports)) {
            self.ports[at] = random.next() as u16 | 0x8000;
        }
        self.ports[at]
    }

    pub fn next(&mut self, random: &mut SplitMix64) -> (CoapSide, Vec<u8>) {
        if random.once_in(25)
            && let Some((side, packet)) = self.last.clone()
        {
            // A retransmission: a new IP-ID, and otherwise unchanged.
            let coap = packet[if self.six { 48 } else { 28 }..].to_vec();
            return self.wrap(side, &coap, random);
        }
        if random.once_in(60) {
            self.ttl = 60 + random.below(4) as u8;
        }
        let (side, message) = self.message(random);
        let mut coap = message.octets();
        if random.once_in(50) {
            // Not CoAP, or invalid.
            match random.below(4) {
                0 => coap.push(0xFF),
                1 => coap[0] = random.next() as u8,
                2 => coap.truncate(random.below(coap.len() as u64 + 1) as usize),
                _ => {
                    let at = random.below(coap.len() as u64) as usize;
                    coap[at] = random.next() as u8;
                }
            }
        }
        self.wrap(side, &coap, random)
    }

    fn wrap(&mut self, side: CoapSide, coap: &[u8], random: &mut SplitMix64) -> (CoapSide, Vec<u8>) {
        let at = usize::from(side == CoapSide::Server);
        self.ip_ids[at] = match self.style % 5 {
            0 => 0,
            1 => random.next() as u16,
            _ => self.ip_ids[at].wrapping_add(1 + random.below(self.ip_step + 1) as u16),
        };
        let right = !random.once_in(100);
        let mut packet = datagram_of((self.six, 9, self.port), side, self.ip_ids[at], self.ttl, coap, right);
        if self.six && self.new_ports.is_some() {
            label_by_port(&mut packet, self.port);
        }
        self.last = Some((side, packet.clone()));
        (side, packet)
    }

    fn id(&mut self, side: CoapSide, random: &mut SplitMix64) -> u16 {
        let id = &mut self.ids[usize::from(side == CoapSide::Server)];
        *id = match random.below(40) {
            0 => random.next() as u16,
            1 => id.wrapping_add(random.below(12) as u16),
            2 => id.wrapping_sub(random.below(8) as u16),
            _ if self.style & 0x700 == 0 => random.next() as u16,
            _ => id.wrapping_add(1),
        };
        *id
    }

    fn token(&mut self, random: &mut SplitMix64) -> Vec<u8> {
        self.token = self.token.wrapping_add(1);
        match self.style >> 12 & 3 {
            0 => uint(self.token),
            1 => self.token.to_be_bytes().to_vec(),
            2 => random.next().to_be_bytes()[..4].to_vec(),
            _ => vec![],
        }
    }

    fn message(&mut self, random: &mut SplitMix64) -> (CoapSide, TestMessage) {
        if !self.waiting.is_empty() && !random.once_in(3) {
            let at = if random.once_in(6) { random.below(self.waiting.len() as u64) as usize } else { 0 };
            let (side, request, port) = self.waiting.remove(at);
            self.port = port;
            let back = if side == CoapSide::Client { CoapSide::Server } else { CoapSide::Client };
            return (back, self.answer(back, request, random));
        }
        let len = random.below(20) as usize;
        let payload: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        match random.below(12) {
            0..6 => {
                self.port = self.client(random);
                let id = self.id(CoapSide::Client, random);
                let token = self.token(random);
                let path: &[u8] = [&b"temperature"[..], b"time", b"a", b"sensors"][random.below(4) as usize];
                let mut request = TestMessage { token, ..TestMessage::get(id, &[path]) };
                match random.below(8) {
                    0 => request.options.push((15, format!("t={}", random.below(10_000)).into_bytes())),
                    1 => {
                        self.block += 1;
                        request.options.push((23, uint(self.block << 4 | 2)));
                    }
                    2 => {
                        self.piv = self.piv.wrapping_add(1);
                        let piv = if self.piv == 0 { vec![0] } else { uint(self.piv) };
                        request.options = vec![(9, [&[8 | piv.len() as u8][..], &piv, b"kid"].concat())];
                        request.payload = payload;
                    }
                    3 => request.options.insert(0, (6, vec![])),
                    4 => {
                        request.code = 3;
                        request.options.push((12, vec![0x3C]));
                        request.options.push((60, vec![0, 1]));
                        request.payload = payload;
                    }
                    _ => {}
                }
                if random.once_in(5) {
                    request.kind = 1;
                } else {
                    self.waiting.push((CoapSide::Client, request.clone(), self.port));
                }
                (CoapSide::Client, request)
            }
            6..11 => {
                self.observe = self.observe.wrapping_add([0, 1, 1, 3][(self.style & 3) as usize]);
                let at = random.below(self.relations.len() as u64) as usize;
                self.port = self.ports[at % self.ports.len()];
                let mut options = vec![(6, uint(self.observe & 0xFF_FFFF)), (12, vec![at as u8])];
                if random.once_in(9) {
                    options.insert(0, (4, random.next().to_be_bytes()[..3].to_vec()));
                }
                let notification = TestMessage {
                    kind: u8::from(!random.once_in(5)),
                    code: 69,
                    id: self.id(CoapSide::Server, random),
                    token: self.relations[at].clone(),
                    options,
                    payload,
                };
                if notification.kind == 0 {
                    self.waiting.push((CoapSide::Server, notification.clone(), self.port));
                }
                (CoapSide::Server, notification)
            }
            _ => {
                let id = random.next() as u16;
                (
                    CoapSide::Client,
                    TestMessage { kind: 2 + random.below(2) as u8, id, ..TestMessage::default() },
                )
            }
        }
    }

    fn answer(&mut self, side: CoapSide, request: TestMessage, random: &mut SplitMix64) -> TestMessage {
        if request.code >= 64 {
            // A notification is acknowledged.
            return TestMessage { kind: 2, id: request.id, ..TestMessage::default() };
        }
        if random.once_in(8) {
            // An empty ACK first, and a separate response later.
            let separate = TestMessage {
                code: 69,
                id: self.id(side, random),
                token: request.token.clone(),
                ..TestMessage::default()
            };
            self.waiting.push((side, separate, self.port));
            return TestMessage { kind: 2, id: request.id, ..TestMessage::default() };
        }
        let mut options = vec![(12, vec![])];
        for (number, value) in &request.options {
            match number {
                9 => options = vec![(9, vec![])],
                23 => options.push((23, value.clone())),
                _ => {}
            }
        }
        let len = random.below(30) as usize;
        let payload = (0..len).map(|_| random.next() as u8).collect();
        TestMessage {
            kind: 2,
            code: if request.code == 1 { 69 } else { 68 },
            id: request.id,
            token: request.token,
            options,
            payload,
        }
    }
}
