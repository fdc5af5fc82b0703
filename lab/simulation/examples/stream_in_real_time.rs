//! A transport stream of 3.507 Mbit/s between two kernels: payload that iperf3 receives, plain and compressed, and the
//! theoretical maximum with exact packing. Needs root, TUN and iperf3. Fails if a share of the maximum is not within 0.97 to 1.02.
//!
//! `cargo run --profile optimized -p thinair-simulation --example stream_in_real_time -- [SECONDS [PAYLOAD...]]`

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use thinair_rohc::Refresh;
    use thinair_simulation::broadcast::real_time::{RealTimePlan, run};
    use thinair_ule::capacity::{Encapsulation, Filling, HeaderRun, PacketFlow, cost};

    const BITRATE: u64 = 3_507_000;
    let numbers = std::env::args().skip(1).map(|text| text.parse()).collect::<Result<Vec<u16>, _>>()?;
    let (seconds, payloads) =
        numbers.split_first().map_or((5, [].as_slice()), |(first, rest)| (*first, rest));
    let payloads = if payloads.is_empty() { &[40, 80, 120, 160, 200, 300, 512, 1024] } else { payloads };
    let cycle = Refresh::Cycle { ir: 3, so: 50, direct: true };
    let mut missed = 0;
    println!("payload  header  kbit/s of payload  of exact  lateness of the TS clock (us): p50, p99, max");
    for &payload in payloads {
        let plain = [HeaderRun { packets: 1, octets: 48 }];
        let compressed = [HeaderRun { packets: 3, octets: 50 }, HeaderRun { packets: 50, octets: 3 }];
        let ways = [("48", None, plain.as_slice()), ("3", Some(cycle), compressed.as_slice())];
        for (name, refresh, headers) in ways {
            let plan = RealTimePlan { bitrate: BITRATE, refresh, payload, offered: BITRATE, seconds };
            let outcome = run(&plan)?;
            let flow = PacketFlow { payload: payload.into(), headers };
            let exact = cost(Encapsulation::ULE, Filling::Packing, flow).throughput(BITRATE);
            let late = |percent| outcome.lateness.percentile(percent).unwrap_or_default() / 1_000;
            println!(
                "{payload:>7}  {name:>6}  {:>17.1}  {:>8.3}  {}, {}, {}; null {} of {}, lost {}, not delivered {}",
                outcome.throughput / 1e3,
                outcome.throughput / exact,
                late(50),
                late(99),
                outcome.lateness.max() / 1_000,
                outcome.null_packets,
                outcome.slots,
                outcome.lost_ts,
                outcome.not_delivered,
            );
            missed += u32::from(!(0.97..=1.02).contains(&(outcome.throughput / exact)));
            for refused in &outcome.refused {
                println!("         {refused}");
            }
        }
    }
    if missed > 0 {
        return Err(format!("{missed} shares are not within 0.97 to 1.02").into());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
