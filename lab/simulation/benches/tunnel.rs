//! Packets per second and round trips through the tunnel, beside those of a plain forwarder in the same run.
//!
//! `cargo bench -p thinair-simulation --bench tunnel`, as root. Each row creates its own two hosts (network
//! namespaces), with a TUN device each, and measures the connection between them: 1,000 consecutive echo requests, then
//! UDP datagrams of 64 octets as fast as a thread can send them, for three seconds. Generator and both ends share the
//! machine, so that only ratios of rows are meaningful. All rows are measured by turns, five times; medians are printed with the
//! least and the most.

#![allow(missing_docs)]

#[cfg(target_os = "linux")]
mod linux {
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use thinair_os::signals::{Ask, ask};
    use thinair_os::{EventLoop, Waker};
    use thinair_rohc::ProfileSet;
    use thinair_simulation::load::{
        HERE, INTERFACE, LoadEnd, LoadError, LoadHosts, LoadOutcome, LoadPlan, THERE, forward,
    };
    use thinair_tunnel::config::{self, Settings, Surroundings};
    use thinair_tunnel::daemon::Daemon;
    use thinair_tunnel::key_file;
    use thinair_tunnel::site_config::SiteConfig;
    use thinair_tunnel::status::socket;

    const LOAD: LoadPlan = LoadPlan { payload: 64, rate: None, time: Duration::from_secs(3), pings: 1_000 };

    /// Row: its name, and its measurement, which creates and removes its own hosts.
    type Row = (&'static str, fn() -> Result<LoadOutcome, LoadError>);

    const ROWS: &[Row] = &[
        ("plain forwarder", plain_forwarder),
        ("uncompressed, --insecure", || tunnel(false, false)),
        ("compressed, --insecure", || tunnel(true, false)),
        ("uncompressed, sealed", || tunnel(false, true)),
        ("compressed, sealed: the default", || tunnel(true, true)),
    ];

    /// Number of turns.
    const TURNS: usize = 5;

    /// First argument that makes this program an end of a tunnel.
    const END: &str = "end-of-a-tunnel";

    fn plain_forwarder() -> Result<LoadOutcome, LoadError> {
        let hosts = LoadHosts::create()?;
        let [a, b] = hosts.tuns()?;
        hosts.measure(&LOAD, |stop| {
            forward([&a, &b], stop).map(|end| vec![end]).map_err(|why| why.to_string())
        })
    }

    /// Two ends of a tunnel, each in a process of this program.
    fn tunnel(is_compressed: bool, is_sealed: bool) -> Result<LoadOutcome, LoadError> {
        let hosts = LoadHosts::create()?;
        let folder = std::env::temp_dir().join(format!("thinair-throughput-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let key = folder.join("key");
        if is_sealed && !key.exists() {
            let mut random = |octets: &mut [u8]| getrandom::fill(octets).unwrap_or_default();
            key_file::generate(&key, "throughput", &mut random)
                .map_err(|why| LoadError::Ends(why.to_string()))?;
        }
        let words = |is: bool| if is { "yes" } else { "no" };
        let start = |end: &str, namespace: Option<&str>| -> Result<Child, LoadError> {
            let program = std::env::current_exe()?;
            let arguments = [END, end, namespace.unwrap_or_default(), words(is_compressed), words(is_sealed)];
            Ok(Command::new(program).args(arguments).arg(&folder).stdin(Stdio::null()).spawn()?)
        };
        let mut ends = [start("here", hosts.here().name())?, start("there", hosts.there().name())?];
        let outcome = hosts.measure(&LOAD, |stop| wait_and_ask(stop, &folder));
        for end in &mut ends {
            ask(end, Ask::Terminate);
            end.wait()?;
        }
        let _ = std::fs::remove_dir_all(&folder);
        outcome
    }

    /// Waits for the stop signal, and returns the counters of both ends.
    fn wait_and_ask(stop: &Waker, folder: &Path) -> Result<Vec<LoadEnd>, String> {
        let mut events = EventLoop::new(Duration::ZERO).map_err(|why| why.to_string())?;
        events.add(stop, 0).map_err(|why| why.to_string())?;
        events.wait(None, &mut Vec::new()).map_err(|why| why.to_string())?;
        ["here", "there"]
            .into_iter()
            .map(|end| {
                let status = socket::ask(&status_socket(folder, end)).map_err(|why| why.to_string())?;
                Ok(LoadEnd {
                    name: end.to_owned(),
                    packets: status.totals.sent.packets + status.totals.received.packets,
                    processor: Duration::from_secs_f64(status.cpu_seconds),
                })
            })
            .collect()
    }

    fn status_socket(folder: &Path, end: &str) -> PathBuf {
        folder.join(format!("{end}.sock"))
    }

    /// Runs this program as an end.
    fn end(arguments: &[String]) -> Result<(), String> {
        let [end, namespace, is_compressed, is_sealed, folder] = arguments else {
            return Err("five arguments".to_owned());
        };
        let folder = Path::new(folder);
        let mut plan = plan(end, namespace, is_sealed == "yes", folder)?;
        if is_compressed == "no" {
            plan.channel.profiles = ProfileSet::UNCOMPRESSED;
        }
        let mut daemon = Daemon::open(&plan, None, None).map_err(|why| why.to_string())?;
        daemon.run().map_err(|why| why.to_string())
    }

    fn plan(end: &str, namespace: &str, is_sealed: bool, folder: &Path) -> Result<SiteConfig, String> {
        let (own, (from, to)) =
            if end == "here" { (HERE, (17_001, 17_002)) } else { (THERE, (17_002, 17_001)) };
        let security =
            if is_sealed { format!("key = {:?}", folder.join("key")) } else { "insecure = true".to_owned() };
        let text = format!(
            "[inside]\ntun = {INTERFACE:?}\nnamespace = {namespace:?}\naddress = [\"{own}/30\"]\n\
             [carrier]\nurl = \"udp://127.0.0.1:{to}\"\nlisten = \"127.0.0.1:{from}\"\n\
             [security]\n{security}\n[seeing]\nstatus = {:?}\n",
            status_socket(folder, end)
        );
        let settings = Settings::read(Path::new("throughput.toml"), &text).map_err(|why| why.to_string())?;
        let surroundings = Surroundings {
            runtime: None,
            state: folder.to_owned(),
            templates: &|_| Ok(Vec::new()),
            resolve: &config::system_resolver,
            tariff: &|_| Err(String::new()),
        };
        config::site_config(&settings, &surroundings).map_err(|why| why.to_string())
    }

    pub(super) fn main() {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        if let [END, rest @ ..] = arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            let rest: Vec<String> = rest.iter().map(|&argument| argument.to_owned()).collect();
            if let Err(why) = end(&rest) {
                eprintln!("an end of a tunnel: {why}");
                std::process::exit(1);
            }
            return;
        }
        let mut turns: Vec<Vec<LoadOutcome>> = ROWS.iter().map(|_| Vec::new()).collect();
        for _ in 0..TURNS {
            for ((name, measure), outcomes) in ROWS.iter().zip(&mut turns) {
                match measure() {
                    Ok(outcome) => outcomes.push(outcome),
                    Err(LoadError::Os(why)) if why.is_permission() => {
                        println!("skipped: {why}, which needs root");
                        return;
                    }
                    Err(why) => println!("{name:<32} {why}"),
                }
            }
        }
        println!("Medians of {TURNS} turns, and in brackets the least and the most");
        println!(
            "{:<32} {:>26} {:>22} {:>26} {:>11}  CPU us a packet",
            "", "delivered kpps", "of the forwarder", "median round trip us", "unanswered"
        );
        for ((name, _), outcomes) in ROWS.iter().zip(&turns) {
            let forwarder = turns.iter().flatten().take(TURNS).map(|outcome| outcome.delivered);
            let ratios = outcomes.iter().zip(forwarder).map(|(outcome, first)| outcome.delivered / first);
            let trip = |outcome: &LoadOutcome| outcome.median().unwrap_or_default().as_secs_f64() * 1e6;
            let ends = outcomes.last().into_iter().flat_map(|outcome| &outcome.ends);
            let ends = ends.map(|end| format!("{} {:.2}", end.name, end.cost()));
            println!(
                "{name:<32} {:>26} {:>22} {:>26} {:>11}  {}",
                spread(outcomes.iter().map(|outcome| outcome.delivered / 1e3), 1),
                spread(ratios, 2),
                spread(outcomes.iter().map(trip), 1),
                outcomes.iter().map(|outcome| outcome.unanswered).sum::<usize>(),
                ends.collect::<Vec<_>>().join(", ")
            );
        }
    }

    /// Median, and least and most in brackets; empty without figures.
    fn spread(figures: impl Iterator<Item = f64>, decimals: usize) -> String {
        let mut figures: Vec<f64> = figures.collect();
        figures.sort_by(f64::total_cmp);
        let Some((least, most)) = figures.first().zip(figures.last()) else { return String::new() };
        let median = figures.get(figures.len() / 2).unwrap_or(most);
        format!("{median:.decimals$} ({least:.decimals$} to {most:.decimals$})")
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}
