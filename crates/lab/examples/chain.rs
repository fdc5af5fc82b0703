//! What a file costs over a chain of 802.15.4 nodes: `cargo run --release --example chain -- ber sizer [key=value ...]`.
#![allow(missing_docs, clippy::unwrap_used)]
use std::time::Duration;
use thinair_lab::Streams;
use thinair_lab::csma::*;
use thinair_segment::*;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ber: f64 = args[0].parse().unwrap();
    let sizer: Sizer = args[1].parse().unwrap();
    let get = |key: &str, default: u64| {
        args.iter().find_map(|a| a.strip_prefix(key)?.strip_prefix('=')?.parse().ok()).unwrap_or(default)
    };
    let mac = MacConfig {
        sense_range: get("cs", 2) as u8,
        interference_range: get("ir", 1) as u8,
        access_failure: if get("csmaretry", 1) == 1 { AccessFailure::Retry } else { AccessFailure::Drop },
        ..MacConfig::default()
    };
    let hops = get("hops", 5) as u16;
    let network = Config {
        topology: Topology::Chain { hops },
        mac,
        framing: Framing::PAPER,
        forwarding: if get("reasm", 0) == 1 { Forwarding::Reassembled(4) } else { Forwarding::Single },
        errors: BitErrorRate::constant(ber),
    };
    let mss = match &sizer {
        Sizer::Fixed(f) => f.size(),
        _ => 1024,
    };
    let plan = Transfer {
        network,
        from: 0,
        to: hops,
        octets: get("kb", 512) * 1024,
        tcp: Transfer::tcp(mss, get("w", 1) as u32),
        limit: Duration::from_secs(6000),
        trace: false,
    };
    let runs = get("runs", 5) as u32;
    let began = std::time::Instant::now();
    let (mut e, mut eo, mut d, mut size, mut frames, mut ev, mut done, mut rtos, mut fast) =
        (0., 0., 0., 0., 0, 0, 0, 0, 0);
    let mut coll = vec![0u64; hops as usize + 1];
    for run in 0..runs {
        let o = plan.run(&mut sizer.clone(), Streams::new(1), run);
        e += o.energy.airtime.as_joules();
        eo += o.energy.with_overhearing.as_joules();
        d += o.duration.as_secs_f64();
        size += o.mean_size;
        let a = o.all();
        frames += a.sent + a.acks;
        ev += o.events;
        done += u32::from(o.is_complete);
        rtos += o.losses.0;
        fast += o.losses.1;
        for (c, n) in coll.iter_mut().zip(&o.nodes) {
            *c += n.collisions;
        }
    }
    let n = f64::from(runs);
    println!(
        "{ber} {:9} E {:.2} over {:.2} T {:.0} size {:.0} frames {:.0} coll {:?} rto {:.0} fast {:.0} done {done}/{runs}  {:.1} ms/run {:.1} Mev/s",
        args[1],
        e / n,
        eo / n,
        d / n,
        size / n,
        frames as f64 / n,
        coll.iter().map(|c| c / u64::from(runs)).collect::<Vec<_>>(),
        rtos as f64 / n,
        fast as f64 / n,
        began.elapsed().as_secs_f64() * 1e3 / n,
        ev as f64 / began.elapsed().as_secs_f64() / 1e6
    );
}
