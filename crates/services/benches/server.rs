//! CPU time of a request at a server: ours and libcoap's, in one run, on any machine.
//!
//! 16 sockets with 4 Confirmable requests each under way request `/time`, whose payload has 23 octets here. Message IDs
//! are consecutive in each socket, so that none is reused within its lifetime: the server stores every message, and finds
//! no duplicate. Rounds alternate between the servers. The output is the CPU time of the server's process, in user space
//! and in the kernel, and its resident memory at the end. libcoap's server is `coap-server-notls` (Debian: libcoap3-bin);
//! without it the comparison is omitted.
//!
//! `cargo bench -p thinair-services --bench server`; with `-- REQUESTS` a round has that number instead of a million.

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: this needs Linux");
}

#[cfg(target_os = "linux")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("serve") => bench::serve(),
        _ => bench::compare(arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000)),
    };
    if let Err(why) = done {
        eprintln!("server: {why}");
        std::process::exit(1);
    }
}

#[cfg(target_os = "linux")]
mod bench {
    use std::error::Error;
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::net::{SocketAddr, UdpSocket};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use thinair_coap::{Builder, Code, Message, Token, Type, number};
    use thinair_os::EventLoop;
    use thinair_os::clock;
    use thinair_os::signals::{Ask, ask};
    use thinair_os::udp::{ReceiveBatch, SendQueue};
    use thinair_services::coap::server::{Listen, ResourceServer, Resources, ServerSettings, Tests, Time};

    type Done<T> = Result<T, Box<dyn Error>>;

    /// Number of sockets, and requests of each under way.
    const SOCKETS: usize = 16;
    const UNDER_WAY: usize = 4;

    const ROUNDS: usize = 3;

    /// Divisor of the number of requests to libcoap's server, which takes longer.
    const SHARE: u64 = 5;

    const LIBCOAP: &str = "coap-server-notls";

    /// Runs a server as `thinair coap serve` creates it, on a free port, which it prints; prints its duplicates at the
    /// end.
    pub(super) fn serve() -> Done<()> {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listen = vec![Listen { address, udp: true, tcp: false, optional: false }];
        let mut site = Resources::new();
        site.add(Time::new());
        site.add(Tests::new());
        let mut server = ResourceServer::open(&ServerSettings::secured(listen, 1 << 20, 64), site)?;
        println!("{}", server.uris()[0].rsplit(':').next().unwrap_or_default());
        server.run()?;
        let counters = server.statistics().endpoint;
        println!("{} duplicates, {} dropped", counters.duplicates, counters.dropped);
        Ok(())
    }

    /// A server and its measurements.
    struct Subject {
        name: &'static str,
        child: Child,
        address: SocketAddr,
        /// Requests and CPU time in microseconds of each round.
        rounds: Vec<(u64, f64)>,
    }

    impl Subject {
        fn ours() -> Done<Self> {
            let program = std::env::current_exe()?;
            let mut child = Command::new(program).arg("serve").stdout(Stdio::piped()).spawn()?;
            let mut line = String::new();
            let out = child.stdout.as_mut().ok_or("no output")?;
            // An octet at a time, so that no later output is consumed.
            BufReader::with_capacity(1, out).read_line(&mut line)?;
            let port: u16 = line.trim().parse()?;
            Ok(Self { name: "thinair", child, address: ([127, 0, 0, 1], port).into(), rounds: Vec::new() })
        }

        fn libcoap() -> Done<Self> {
            let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
            let arguments = ["-A", "127.0.0.1", "-p", &port.to_string(), "-v", "0"];
            let child =
                Command::new(LIBCOAP).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
            Ok(Self { name: "libcoap", child, address: ([127, 0, 0, 1], port).into(), rounds: Vec::new() })
        }

        fn round(&mut self, requests: u64) -> Done<()> {
            let before = cpu(self.child.id())?;
            let started = Instant::now();
            let lost = LoadGenerator::new(self.address)?.run(requests)?;
            let taken = started.elapsed();
            let spent = cpu(self.child.id())? - before;
            self.rounds.push((requests, spent));
            println!(
                "{:8} {requests:>8} requests in {:5.1} s, {lost} lost: {:5.2} us CPU each",
                self.name,
                taken.as_secs_f64(),
                spent / requests as f64
            );
            Ok(())
        }

        /// Returns the CPU time of a request in microseconds: that of the best round, as noise only adds.
        fn best(&self) -> f64 {
            let each = self.rounds.iter().map(|(requests, spent)| spent / *requests as f64);
            each.fold(f64::INFINITY, f64::min)
        }

        fn sum(&self) -> u64 {
            self.rounds.iter().map(|(requests, _)| requests).sum()
        }

        fn end(mut self) -> Done<()> {
            let resident = resident(self.child.id())?;
            ask(&mut self.child, Ask::Terminate);
            let mut rest = String::new();
            if let Some(out) = &mut self.child.stdout {
                out.read_to_string(&mut rest)?;
            }
            self.child.wait()?;
            println!(
                "{:8} {resident} KiB resident after {} requests; {}",
                self.name,
                self.sum(),
                rest.trim()
            );
            Ok(())
        }
    }

    pub(super) fn compare(requests: u64) -> Done<()> {
        let mut subjects = vec![Subject::ours()?];
        match Subject::libcoap() {
            Ok(subject) => subjects.push(subject),
            Err(why) => println!("skipped: {LIBCOAP} ({why}); Debian has it in libcoap3-bin"),
        }
        std::thread::sleep(Duration::from_millis(500));
        for _ in 0..ROUNDS {
            subjects[0].round(requests)?;
            for subject in &mut subjects[1..] {
                subject.round(requests.div_ceil(SHARE))?;
            }
        }
        let best: Vec<f64> = subjects.iter().map(Subject::best).collect();
        println!("thinair  {:.2} us a request in its best round", best[0]);
        if let Some(theirs) = best.get(1) {
            println!("libcoap  {theirs:.2} us; thinair takes {:.2} of that", best[0] / theirs);
        }
        subjects.into_iter().try_for_each(Subject::end)
    }

    /// Returns the CPU time of a process so far in microseconds; proc_pid_stat(5).
    fn cpu(pid: u32) -> Done<f64> {
        // In nanoseconds where the kernel supports them, else in ticks of 10 ms.
        if let Ok(schedule) = std::fs::read_to_string(format!("/proc/{pid}/schedstat"))
            && let Some(nanos) = schedule.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok())
        {
            return Ok(nanos / 1_000.0);
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let fields = stat.rsplit(')').next().ok_or("no stat")?;
        let ticks: f64 =
            fields.split_whitespace().skip(11).take(2).filter_map(|tick| tick.parse::<f64>().ok()).sum();
        Ok(ticks * 10_000.0)
    }

    /// Returns the resident memory of a process in KiB.
    fn resident(pid: u32) -> Done<u64> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim_end_matches("kB").trim().parse()?)
    }

    /// Clients.
    struct LoadGenerator {
        sockets: Vec<Asking>,
        events: EventLoop,
    }

    struct Asking {
        socket: UdpSocket,
        outgoing: SendQueue,
        next: u16,
    }

    impl LoadGenerator {
        fn new(server: SocketAddr) -> Done<Self> {
            let events = EventLoop::new(Duration::ZERO)?;
            let mut sockets = Vec::new();
            for number in 0..SOCKETS {
                let socket = UdpSocket::bind("127.0.0.1:0")?;
                socket.connect(server)?;
                socket.set_nonblocking(true)?;
                events.add(&socket, number as u64)?;
                sockets.push(Asking { socket, outgoing: SendQueue::new(), next: number as u16 });
            }
            Ok(Self { sockets, events })
        }

        /// Sends `requests` requests; returns the number of answers that did not come in time.
        fn run(&mut self, requests: u64) -> Done<u64> {
            let (mut asked, mut answered, mut lost) = (0, 0, 0);
            for asking in &mut self.sockets {
                for _ in 0..UNDER_WAY {
                    asking.ask()?;
                    asked += 1;
                }
                asking.outgoing.send(&asking.socket)?;
            }
            let (mut ready, mut received) = (Vec::new(), ReceiveBatch::new(16, 1_280));
            while answered + lost < requests {
                self.events.wait(Some(clock::now() + Duration::from_secs(1)), &mut ready)?;
                if ready.is_empty() {
                    // Requests under way are lost.
                    lost += asked - answered - lost;
                    for asking in &mut self.sockets {
                        for _ in 0..UNDER_WAY {
                            asking.ask()?;
                            asked += 1;
                        }
                        asking.outgoing.send(&asking.socket)?;
                    }
                }
                for &number in &ready {
                    let asking = &mut self.sockets[number as usize];
                    if received.receive(&asking.socket).is_err() {
                        continue;
                    }
                    for (datagram, _) in received.iter() {
                        let message = Message::read(datagram).map_err(|_| "an answer that is no message")?;
                        if (message.message_type, message.code) != (Type::Acknowledgement, Code::CONTENT) {
                            return Err(format!("an answer of code {}", message.code).into());
                        }
                        answered += 1;
                        if asked < requests {
                            asking.ask()?;
                            asked += 1;
                        }
                    }
                    asking.outgoing.send(&asking.socket)?;
                }
            }
            Ok(lost)
        }
    }

    impl Asking {
        fn ask(&mut self) -> Done<()> {
            let mut datagram = [0; 64];
            let id = self.next;
            self.next = id.wrapping_add(1);
            let token = Token::new(&id.to_be_bytes()).ok_or("a token")?;
            let mut message = Builder::new(&mut datagram, Type::Confirmable, Code::GET, id, &token)?;
            message.option(number::URI_PATH, b"time")?;
            let len = message.finish();
            self.outgoing.push(None, &datagram[..len]);
            Ok(())
        }
    }
}
