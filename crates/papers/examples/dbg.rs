use core::time::Duration;
use thinair_coap::congestion::Algorithm;
use thinair_coap::{Config, Request};
use thinair_lab::emulator::RohcChannel;
use thinair_lab::network::{Pace, Requests, Scenario, Transport};
use thinair_link::*;
use thinair_rohc::*;
use thinair_wire::time::Instant;
fn main() {
    let uni = std::env::args().nth(1).is_some_and(|a| a == "uni");
    let mut direction =
        Direction { delay: Duration::from_millis(4), loss_unit: LossUnit::Packet, ..Direction::IDEAL };
    direction.integrity = Integrity::Modelled { width: 64 };
    direction.bit_errors = BitErrorModel::Random(Probability::from_ppm(1000).unwrap());
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1().with(ProfileId::Coap).unwrap()).unwrap();
    let s = Scenario {
        model: LinkModel::symmetric(direction, Duplex::Full),
        rohc: Some(RohcChannel {
            compressor: CompressorConfig {
                seed: 1,
                refresh: if uni {
                    Refresh::Periodic { packets: Some(1700), time: None, backoff: false }
                } else {
                    Refresh::default()
                },
                ..CompressorConfig::new(channel)
            },
            decompressor: DecompressorConfig {
                mode: if uni { Mode::Unidirectional } else { Mode::Optimistic },
                ..DecompressorConfig::new(channel)
            },
            bases: vec![],
            feedback_wait: Duration::from_millis(10),
        }),
        clients: 1,
        transport: Transport::Udp { protection: 0 },
        config: Config { congestion: Algorithm::Rfc7252, ..Config::default() },
        requests: Requests {
            request: Request::get("/time"),
            count: 10_000,
            start: Instant::ZERO,
            pace: Pace::Closed { think: Duration::ZERO },
        },
        spread: Duration::ZERO,
        content: 17,
        download: None,
        warm_up: 0,
        end: Instant::from_millis(1_000_000_000),
    };
    let mut give = 0;
    let mut n = 0;
    for run in 0..10 {
        let o = s.run(1, run);
        let g: usize = o.clients[0].exchanges.iter().filter(|e| e.error.is_some()).count();
        give += g;
        n += o.clients[0].exchanges.len();
        if run == 0 {
            for t in &o.totals {
                println!("{t:#?}");
            }
        }
        print!("{g} ");
    }
    println!("\n{give} of {n}");
}
