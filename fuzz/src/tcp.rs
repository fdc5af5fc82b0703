//! TCP connections between two ends of profile 0x0006, which change as those of real stacks do, and also in other ways.

use arbitrary::Arbitrary;
use thinair_rohc::{
    Channel, CidSpace, CompressError, Compressor, CompressorConfig, CompressorMemory, DecompressError,
    Decompressor, DecompressorConfig, DecompressorMemory, Instant, Mode, ProfileId, ProfileSet, Refresh,
    Threshold, packet,
};
use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::tcp::Tcp;

use crate::ROOM;

/// Channel with both its ends.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct TcpSetup {
    large: bool,
    max_cid: u8,
    window: u8,
    repetitions: u8,
    refresh: u8,
    optimistic: bool,
    /// A context is never given up, so that an input can try many packets on one.
    patient: bool,
    seed: u64,
}

impl TcpSetup {
    fn channel(&self) -> Channel {
        let profiles = ProfileSet::v1().with(ProfileId::Tcp).expect("it is no variant");
        let cids = if self.large { CidSpace::Large } else { CidSpace::Small };
        Channel::new(cids, u16::from(self.max_cid % 4), profiles).expect("every space has CID 3")
    }

    /// Creates the compressor.
    pub fn compressor(&self) -> Compressor<'static> {
        let refresh = match self.refresh {
            0 => Refresh::Off,
            n @ 1..128 => Refresh::Cycle { ir: 1 + u32::from(n % 4), so: u32::from(n), direct: n % 2 == 0 },
            _ => Refresh::default(),
        };
        let config = CompressorConfig {
            refresh,
            repetitions: 1 + self.repetitions % 5,
            window: 1 + self.window % 16,
            seed: self.seed,
            ..CompressorConfig::new(self.channel())
        };
        Compressor::new(config, CompressorMemory::owned(config.channel.sizes().blocks(4)))
    }

    /// Creates the decompressor.
    pub fn decompressor(&self) -> Decompressor<'static> {
        let channel = self.channel();
        let mode = if self.optimistic { Mode::Optimistic } else { Mode::Unidirectional };
        let mut config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        if self.patient {
            (config.nack, config.static_nack) = (Threshold { k: 17, n: 16 }, Threshold { k: 17, n: 16 });
        }
        Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(64)))
    }
}

/// One direction of a connection.
#[derive(Arbitrary, Clone, Debug)]
struct TcpDirection {
    six: bool,
    port: u8,
    tos: u8,
    ttl: u8,
    id: u16,
    seq: u32,
    ack: u32,
    window: u16,
    stamp: u32,
    options: Vec<u8>,
}

/// Change before a packet is sent.
#[derive(Arbitrary, Clone, Debug)]
enum TcpChange {
    /// Next segment of this many octets, or an acknowledgment.
    Data(u8),
    Ack(u16),
    Window(u16),
    Seq(u32),
    Id(u16),
    Ttl(u8),
    Tos(u8),
    Stamp(u8),
    Options(Vec<u8>),
}

/// Packet, and its repetitions.
#[derive(Arbitrary, Clone, Debug)]
pub struct TcpStep {
    flow: bool,
    changes: Vec<TcpChange>,
    flags: u8,
    urgent: u16,
    payload: u8,
    is_wrong: bool,
    repeat: u8,
    wait: u8,
    is_lost: bool,
}

impl TcpDirection {
    fn apply(&mut self, change: &TcpChange) {
        match change {
            TcpChange::Data(len) => self.seq = self.seq.wrapping_add(u32::from(*len)),
            TcpChange::Ack(by) => self.ack = self.ack.wrapping_add(u32::from(*by)),
            TcpChange::Window(window) => self.window = *window,
            TcpChange::Seq(seq) => self.seq = *seq,
            TcpChange::Id(by) => self.id = self.id.wrapping_add(*by),
            TcpChange::Ttl(ttl) => self.ttl = *ttl,
            TcpChange::Tos(tos) => self.tos = *tos,
            TcpChange::Stamp(by) => self.stamp = self.stamp.wrapping_add(u32::from(*by)),
            TcpChange::Options(options) => self.options.clone_from(options),
        }
    }

    /// Packet of a step. Options are whole words; two octets of zero stand for timestamps.
    fn packet(&self, step: &TcpStep) -> Vec<u8> {
        let mut options = self.options.clone();
        if options.first() == Some(&0) {
            options = vec![1, 1, 8, 10];
            options.extend_from_slice(&self.stamp.to_be_bytes());
            options.extend_from_slice(&(self.stamp >> 1).to_be_bytes());
        }
        options.truncate(40);
        options.resize(options.len().next_multiple_of(4), 0);
        let bit = |at: u8| step.flags >> at & 1 == 1;
        let tcp = Tcp {
            source_port: 4_000 + u16::from(self.port % 3),
            destination_port: 80,
            sequence_number: self.seq,
            acknowledgment_number: self.ack,
            // Most segments have the ACK flag.
            ack: !bit(4),
            psh: bit(3),
            syn: bit(1),
            fin: bit(0),
            rst: bit(2),
            urg: bit(5),
            ece: bit(6),
            cwr: bit(7),
            window: self.window,
            urgent_pointer: if bit(5) { step.urgent } else { 0 },
            options: &options,
            ..Tcp::default()
        };
        let mut inside = vec![0; tcp.len()];
        tcp.write(&mut inside, 0).expect("there is room");
        inside.resize(inside.len() + usize::from(step.payload), 7);
        let addresses: &[u8] = if self.six { &[0xFD; 32] } else { &[10, 0, 0, 1, 10, 0, 0, 2] };
        let sum = Sum::ZERO.octets(addresses).word(6).word(inside.len() as u16).octets(&inside).checksum();
        inside[16..18].copy_from_slice(&(sum ^ u16::from(step.is_wrong)).to_be_bytes());
        let mut whole = Vec::new();
        if self.six {
            whole.extend_from_slice(&(6 << 28 | u32::from(self.tos) << 20).to_be_bytes());
            whole.extend_from_slice(&(inside.len() as u16).to_be_bytes());
            whole.extend_from_slice(&[6, self.ttl]);
            whole.extend_from_slice(addresses);
        } else {
            whole.extend_from_slice(&[0x45, self.tos]);
            whole.extend_from_slice(&(inside.len() as u16 + 20).to_be_bytes());
            whole.extend_from_slice(&self.id.to_be_bytes());
            whole.extend_from_slice(&[0x40, 0, self.ttl, 6, 0, 0]);
            whole.extend_from_slice(addresses);
            let sum = Ipv4::checksum_of(&whole);
            whole[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        whole.extend_from_slice(&inside);
        whole
    }
}

/// Two connections with random initial state.
#[derive(Arbitrary, Clone, Debug)]
pub struct Connections([TcpDirection; 2]);

/// Sends packets over a link. Without losses each is restored bit for bit; with losses nothing panics.
pub fn round_trip(setup: &TcpSetup, connections: &Connections, steps: &[TcpStep], loses: bool) {
    let (mut near, mut far) = (setup.compressor(), setup.decompressor());
    send(&mut near, &mut far, connections, steps, loses);
}

/// Forged packets for a decompressor with contexts.
pub fn decompress(setup: &TcpSetup, connections: &Connections, steps: &[TcpStep], forged: &[Vec<u8>]) {
    let (mut near, mut far) = (setup.compressor(), setup.decompressor());
    let mut now = send(&mut near, &mut far, connections, steps, false);
    for octets in forged.iter().take(64) {
        now = Instant::from_nanos(now.as_nanos() + 1_000_000);
        let _ = far.dissect(octets, |_| {});
        let mut out = [0; ROOM];
        if let Ok(done) = far.decompress(now, octets, &mut out) {
            assert!(done.header_out <= done.len && done.header_in <= octets.len());
        }
        give_back(&mut near, &mut far, now);
    }
}

fn send(
    near: &mut Compressor<'_>,
    far: &mut Decompressor<'_>,
    connections: &Connections,
    steps: &[TcpStep],
    loses: bool,
) -> Instant {
    let mut flows = connections.0.clone();
    let mut now = Instant::ZERO;
    let (mut rohc, mut back) = ([0; ROOM], [0; ROOM]);
    for step in steps.iter().take(64) {
        let flow = &mut flows[usize::from(step.flow)];
        for _ in 0..=step.repeat % 24 {
            now = Instant::from_nanos(now.as_nanos() + u64::from(step.wait) * 1_000_000);
            step.changes.iter().for_each(|change| flow.apply(change));
            let sent = flow.packet(step);
            let done = match near.compress(now, &sent, &mut rohc) {
                Ok(done) => done,
                Err(CompressError::NotIp(_)) => continue,
                Err(error) => panic!("{error}: {sent:02x?}"),
            };
            if loses && step.is_lost {
                continue;
            }
            let outcome = far.decompress(now, &rohc[..done.len], &mut back);
            if !loses {
                let delivered = outcome.map(|done| &back[..done.len]);
                assert_eq!(delivered, Ok::<_, DecompressError>(&sent[..]), "{done:?}");
            }
            give_back(near, far, now);
        }
    }
    now
}

fn give_back(near: &mut Compressor<'_>, far: &mut Decompressor<'_>, now: Instant) {
    let mut element = [0; 32];
    while let Some(len) = far.poll_feedback(&mut element) {
        if let Ok(parts) = packet::parts(&element[..len]) {
            for data in parts.feedback {
                let _ = near.receive_feedback(now, data);
            }
        }
    }
}
