//! Packets a second and round trips through the tunnel, beside those of a plain forwarder in the same run.
//!
//! `cargo bench -p thinair-tunnel --bench throughput`, as root. Each row makes two hosts of its own (network
//! namespaces), with a TUN device each, and measures what joins them: 1,000 echo requests, one after the other, then
//! UDP datagrams of 64 octets as fast as a thread can send them, for three seconds. Generator and both ends share the
//! machine, so that only the proportions of rows mean something.

#![allow(missing_docs)]

#[cfg(target_os = "linux")]
mod linux {
    use std::time::Duration;

    use thinair_lab::load::{Hosts, Load, LoadError, Outcome, forward};

    const LOAD: Load = Load { payload: 64, rate: None, time: Duration::from_secs(3), pings: 1_000 };

    /// A row: what it is called, and what measures it. Each makes its own hosts, and they go with it.
    type Row = (&'static str, fn() -> Result<Outcome, LoadError>);

    const ROWS: &[Row] = &[("plain forwarder", plain_forwarder)];

    fn plain_forwarder() -> Result<Outcome, LoadError> {
        let hosts = Hosts::create()?;
        let [a, b] = hosts.tuns()?;
        hosts.measure(&LOAD, |stop| {
            forward([&a, &b], stop).map(|end| vec![end]).map_err(|why| why.to_string())
        })
    }

    pub(super) fn main() {
        println!(
            "{:<32} {:>10} {:>15} {:>8} {:>10} {:>11}  CPU us a packet",
            "", "sent kpps", "delivered kpps", "of first", "median us", "unanswered"
        );
        let mut first = None;
        for (name, measure) in ROWS {
            let outcome = match measure() {
                Ok(outcome) => outcome,
                Err(LoadError::Os(why)) if why.is_permission() => {
                    println!("skipped: {why}, which needs root");
                    return;
                }
                Err(why) => {
                    println!("{name:<32} {why}");
                    continue;
                }
            };
            let first = *first.get_or_insert(outcome.delivered);
            let ends = outcome.ends.iter().map(|end| format!("{} {:.2}", end.name, end.cost()));
            println!(
                "{name:<32} {:>10.1} {:>15.1} {:>8.2} {:>10.1} {:>11}  {}",
                outcome.sent / 1e3,
                outcome.delivered / 1e3,
                outcome.delivered / first,
                outcome.median().unwrap_or_default().as_secs_f64() * 1e6,
                outcome.unanswered,
                ends.collect::<Vec<_>>().join(", ")
            );
        }
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}
