//! tmp
mod common;
use common::SplitMix64;
use common::hostile::{HostileFlow, Run, gaps};
use thinair_rohc::Mode;
#[test]
fn time() {
    for flow in HostileFlow::all() {
        let mut worst = (0.0, String::new());
        for mode in [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable] {
            for gap in gaps() {
                let run = Run::new(flow, mode, gap, 5);
                let mut times: Vec<f64> = Vec::new();
                for _ in 0..3 {
                    let mut out = vec![0; 8192];
                    let mut i = 0;
                    run.attack(&mut SplitMix64(3), |end, arrival, packet| {
                        let start = std::time::Instant::now();
                        let _ = end.receive(arrival, packet, &mut out);
                        let t = start.elapsed().as_nanos() as f64 / 1000.0;
                        if i == times.len() { times.push(t) } else { times[i] = times[i].min(t) }
                        i += 1;
                    });
                }
                let (at, t) = times.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
                if *t > worst.0 { worst = (*t, format!("{mode:?} {gap:?} packet {at}")) }
            }
        }
        println!("{:<10} {:<28} {:7.1} us  {}", flow.engine(), flow.name, worst.0, worst.1);
    }
}
