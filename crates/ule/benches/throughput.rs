//! Time per SNDU, in comparison with the crate `ule`.
//!
//! `cargo bench -p thinair-ule --features fast-crc --bench throughput` measures, on PDUs of 43, 163, 560 and 1,500 octets,
//!
//! - `encapsulate/N`: `Encapsulator::push`, packed, from PDUs to TS Packets; the crate `ule` only encodes SNDUs,
//!   without TS Packets;
//! - `receive/N`: `Receiver::receive`, from TS Packets to PDUs;
//!
//! and prints at the end the ratio of the other crate's time to ours. Times vary with machine and load; the ratio is
//! measured alternately, batch by batch, so that it hardly does. Its limit for 163 octets is 5 in each direction.

use std::hint::black_box;
use std::time::{Duration, Instant as Clock};

use criterion::{BenchmarkId, Criterion, Throughput};
use thinair_ule::{
    Encapsulator, EncapsulatorConfig, EtherType, Packing, Pid, Receiver, ReceiverConfig, Since, Sndu,
    TsPacket,
};
use thinair_wire::time::Instant;

/// Octets of a PDU.
const SIZES: [usize; 4] = [43, 163, 560, 1_500];

/// SNDUs of one timed batch.
const BATCH: usize = 1_024;

/// Pairs of batches for one ratio.
const PAIRS: usize = 101;

/// The size with a limit, and the limit: ratio of the other crate's time to ours.
const BAR: (usize, f64) = (163, 5.0);

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    for (name, work) in
        [("encapsulate", SnduBatch::encapsulate as fn(&mut SnduBatch)), ("receive", SnduBatch::receive)]
    {
        let mut group = criterion.benchmark_group(name);
        for octets in SIZES {
            let mut load = SnduBatch::new(octets);
            group.throughput(Throughput::Bytes((octets * BATCH) as u64));
            group.bench_function(BenchmarkId::from_parameter(octets), |bencher| {
                bencher.iter(|| work(&mut load))
            });
        }
        group.finish();
    }
    criterion.final_summary();
    println!("The crate `ule` takes so many times the time of ours; median of {PAIRS}, quartiles");
    for octets in SIZES {
        let mut load = SnduBatch::new(octets);
        ratio("encapsulate", octets, || time(|| load.encapsulate_peer()) / time(|| load.encapsulate()));
        ratio("receive", octets, || time(|| load.receive_peer()) / time(|| load.receive()));
    }
}

fn time(work: impl FnOnce()) -> f64 {
    let start = Clock::now();
    work();
    start.elapsed().as_secs_f64()
}

fn ratio(name: &str, octets: usize, mut measure: impl FnMut() -> f64) {
    let mut ratios: Vec<f64> = (0..PAIRS).map(|_| measure()).collect();
    ratios.sort_by(f64::total_cmp);
    let [low, median, high] = [1, 2, 3].map(|quarter| ratios[PAIRS * quarter / 4]);
    let verdict = match BAR {
        (size, bar) if size == octets && median >= bar => format!("; the bar is {bar}"),
        (size, bar) if size == octets => format!("; BELOW THE BAR OF {bar}"),
        _ => String::new(),
    };
    println!("{name:>11}/{octets:<5} {median:5.1} ({low:.1} to {high:.1}){verdict}");
}

/// A batch of SNDUs to send, and the TS Packets of them.
struct SnduBatch {
    config: EncapsulatorConfig,
    pdu: Vec<u8>,
    packets: Vec<TsPacket>,
    octets: Vec<u8>,
}

impl SnduBatch {
    fn new(octets: usize) -> Self {
        let packing = Packing::Threshold { wait: Duration::from_millis(10), since: Since::First };
        let pid = Pid::new(0x35).expect("it has 13 bits");
        let config = EncapsulatorConfig { packing, ..EncapsulatorConfig::new(pid) };
        let pdu = (0..octets).map(|i| i as u8).collect();
        let mut load = Self { config, pdu, packets: Vec::new(), octets: vec![0; 2_000] };
        let mut packets = Vec::new();
        load.encapsulate_to(&mut |packet| packets.push(*packet));
        load.packets = packets;
        load
    }

    #[inline]
    fn encapsulate_to(&self, out: &mut impl FnMut(&TsPacket)) {
        let mut encapsulator = Encapsulator::new(self.config);
        for _ in 0..BATCH {
            let sndu = Sndu::pdu(EtherType::ROHC, black_box(&self.pdu));
            encapsulator.push(Instant::ZERO, &sndu, out).expect("it can be sent");
        }
        encapsulator.flush(out);
    }

    fn encapsulate(&mut self) {
        self.encapsulate_to(&mut |packet| {
            black_box(packet);
        });
    }

    fn encapsulate_peer(&mut self) {
        for _ in 0..BATCH {
            let sndu = ule::Sndu::new(ule::TypeField::EtherType(0x22F1), None, black_box(&self.pdu));
            black_box(sndu.serialize_into(&mut self.octets).expect("there is room"));
        }
    }

    fn receive(&mut self) {
        let mut receiver = Receiver::new(ReceiverConfig::new(self.config.pid), &mut self.octets);
        let mut count = 0;
        for packet in &self.packets {
            receiver.receive(black_box(packet), &mut |delivery| {
                black_box(&delivery);
                count += 1;
            });
        }
        assert_eq!(count, BATCH);
    }

    fn receive_peer(&mut self) {
        let mut receiver = ule::UleReceiver::new();
        let mut count = 0;
        for packet in &self.packets {
            for sndu in receiver.push(black_box(&packet[4..]), packet[1] & 0x40 != 0) {
                black_box(ule::Sndu::parse(&sndu).expect("it was sent").pdu());
                count += 1;
            }
        }
        assert_eq!(count, BATCH);
    }
}
