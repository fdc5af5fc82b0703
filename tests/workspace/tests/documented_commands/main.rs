//! Every command of README.md and the pages of docs/ is typed in, as it stands there, at hosts on which thinair never ran.
//!
//! The blocks below a heading belong together, and share two hosts and a folder: `field`, and `gateway` with the address that
//! the pages give it. `thinair tunnel run` is started at one of them and stays until the end of the section; all else is typed
//! in at the gateway. What a page shows of an output must be in it. Markers in the pages exclude what cannot be run here, with
//! the reason ([`page`]). Needs root, else it is skipped.
//!
//! `cargo test -p thinair-tests --test documented_commands -- --show-output` prints each command with what became of it.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod host;
mod page;

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use host::{CommandHost, soon};
use page::{PageBlock, PageCommand, PageSection};
use thinair_os::serial::Pty;

#[test]
fn every_command_of_the_pages_does_what_they_show() {
    if !thinair_os::privileges::is_root() {
        println!("skipped: hosts of their own for commands need root");
        return;
    }
    let root = thinair_tests::root();
    let mut sections = Vec::new();
    for page in [vec![root.join("README.md")], thinair_tests::files(&root.join("docs"), ".md")].concat() {
        let name = page.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        sections.extend(page::sections(&name, &fs::read_to_string(&page).unwrap()).unwrap());
    }
    let base = std::env::temp_dir().join(format!("thinair-commands-{}", std::process::id()));
    let _clean = Clean(base.clone());
    let (next, failures, reports) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(section) = sections.get(number) else { break };
                    let mut run = SectionRun { section, number, report: Vec::new(), failures: Vec::new() };
                    run.all(&base.join(number.to_string()));
                    reports.lock().unwrap().push((number, run.report));
                    failures.lock().unwrap().extend(run.failures);
                }
            });
        }
    });
    let mut reports = reports.into_inner().unwrap();
    reports.sort();
    for (_, lines) in reports {
        println!("{}", lines.join("\n"));
    }
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

struct Clean(PathBuf);

impl Drop for Clean {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Program that runs until it is interrupted.
struct StartedDaemon {
    shown: String,
    child: Child,
    log: PathBuf,
}

impl StartedDaemon {
    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Interrupts it: its exit status.
    fn interrupt(mut self) -> (Option<i32>, String) {
        if self.child.try_wait().unwrap().is_none() {
            // timeout(1) hands it on to all that it has started, as a key of the terminal does.
            let _ = std::process::Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        }
        let ended = soon(|| self.child.try_wait().unwrap().is_some());
        // Who is ended by the signal itself has the status that a shell would show.
        let status =
            |status: std::process::ExitStatus| status.code().or(status.signal().map(|number| 128 + number));
        let code = if ended { status(self.child.wait().unwrap()) } else { None };
        if !ended {
            let _ = self.child.kill();
        }
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        (code, log)
    }
}

/// Run of one section.
struct SectionRun<'s> {
    section: &'s PageSection,
    number: usize,
    report: Vec<String>,
    failures: Vec<String>,
}

impl SectionRun<'_> {
    fn all(&mut self, base: &Path) {
        let folder = base.join("folder");
        fs::create_dir_all(&folder).unwrap();
        // Prerequisites of the pages: the repository, and a key file of an earlier section.
        for name in ["captures", "contrib", "docs", "extras", "tests"] {
            std::os::unix::fs::symlink(thinair_tests::root().join(name), folder.join(name)).unwrap();
        }
        let lines = [Pty::open().unwrap(), Pty::open().unwrap()];
        let gateway = CommandHost::new(base, "gateway", &folder, Some(lines[0].path()));
        let field = CommandHost::new(base, "field", &folder, Some(lines[1].path()));
        cable(self.number, &gateway, &field);
        let makes_key = self.commands().any(|command| command.shown == "thinair tunnel keygen sat.key");
        if !makes_key {
            assert!(gateway.run("thinair tunnel keygen sat.key").status.success());
        }
        let stop = std::sync::atomic::AtomicBool::new(false);
        let (stop, lines) = (&stop, &lines);
        std::thread::scope(|scope| {
            scope.spawn(move || relay(lines, stop));
            self.blocks(base, &folder, &gateway, &field);
            stop.store(true, Ordering::Relaxed);
        });
    }

    fn commands(&self) -> impl Iterator<Item = &PageCommand> {
        let commands = self.section.blocks.iter().filter_map(|block| match block {
            PageBlock::Commands(commands) => Some(commands),
            PageBlock::Toml(..) => None,
        });
        commands.flatten()
    }

    fn blocks(&mut self, base: &Path, folder: &Path, gateway: &CommandHost, field: &CommandHost) {
        let section = self.section;
        let mut daemons = Vec::new();
        let mut files = Vec::new();
        for block in &section.blocks {
            match block {
                PageBlock::Commands(commands) => {
                    for command in commands {
                        self.command(command, base, gateway, field, &mut daemons);
                    }
                }
                PageBlock::Toml(line, text) => files.push(self.configuration(*line, text, folder, gateway)),
            }
        }
        if files.len() == 2 && files.iter().all(|file| file.contains("one-way")) {
            let line = format!("thinair tunnel check {} --against {}", files[0], files[1]);
            let output = gateway.run(&line);
            self.note(0, &line, "run", output.status.success(), &text_of(&output));
        }
        for daemon in daemons {
            let shown = daemon.shown.clone();
            let (code, log) = daemon.interrupt();
            self.note(0, &shown, "interrupted", code == Some(0), &log);
        }
    }

    fn command(
        &mut self,
        command: &PageCommand,
        base: &Path,
        gateway: &CommandHost,
        field: &CommandHost,
        daemons: &mut Vec<StartedDaemon>,
    ) {
        let Ok(line) = &command.run else {
            let reason = command.reason.as_deref().unwrap_or_default();
            self.report.push(format!(
                "{}:{}: {}\n    excluded: {reason}",
                self.section.page, command.line, command.shown
            ));
            return;
        };
        let log = base.join(format!("{}.log", command.line));
        let is_tunnel = line.contains("tunnel run") || line.contains("start-unit");
        let is_of_field = line.contains("://198.51.100.7")
            || (is_tunnel && daemons.len() == 1 && !line.contains("203.0.113.2"));
        if line.contains("to=-") || line.contains("from=out.ts") {
            return self.file(command, line, &log, gateway);
        }
        if is_tunnel {
            let host = if is_of_field { field } else { gateway };
            let mut daemon =
                StartedDaemon { shown: command.shown.clone(), child: host.start(line, &log), log };
            let open = soon(|| {
                daemon.log().contains("tunnel is open") || daemon.child.try_wait().unwrap().is_some()
            });
            let is_open = open && daemon.log().contains("tunnel is open");
            self.note(command.line, &command.shown, "open", is_open, &daemon.log());
            daemons.push(daemon);
            if daemons.len() == 2 {
                // Addresses of both ends are in the pages: 10.9.0.1 and 10.9.0.2.
                let both = [gateway, field].map(|host| {
                    soon(|| {
                        let ping = |to| host.run(&format!("ping -c 1 -W 1 10.9.0.{to}")).status.success();
                        ping(1) && ping(2)
                    })
                });
                let logs = daemons.iter().map(StartedDaemon::log).collect::<String>();
                self.note(
                    command.line,
                    "ping 10.9.0.1 and 10.9.0.2 at both ends",
                    "answered",
                    both == [true; 2],
                    &logs,
                );
            }
            return;
        }
        let serves = [" serve ", " proxy "].iter().any(|verb| format!("{line} ").contains(verb));
        let watches = line.contains("--watch") || line.contains("link run") && !line.contains(" -- ");
        if serves || watches {
            let daemon =
                StartedDaemon { shown: command.shown.clone(), child: gateway.start(line, &log), log };
            std::thread::sleep(Duration::from_millis(3_000));
            if serves {
                daemons.push(daemon);
                return;
            }
            let (code, log) = daemon.interrupt();
            // A view that is interrupted ends by the signal, what is built up and taken down ends well.
            let ended = matches!(code, Some(0 | 130));
            self.shows(command, "interrupted", ended, &log);
            return;
        }
        let output = gateway.run(line);
        self.shows(command, "run", output.status.success(), &text_of(&output));
    }

    /// Transport stream in a file: written until it is interrupted, then read to its end.
    fn file(&mut self, command: &PageCommand, line: &str, log: &Path, host: &CommandHost) {
        let mut daemon =
            StartedDaemon { shown: command.shown.clone(), child: host.start(line, log), log: log.to_owned() };
        let writes = line.contains("to=-");
        let open =
            soon(|| daemon.log().contains("tunnel is open") || daemon.child.try_wait().unwrap().is_some());
        if writes {
            host.run("ping -c 3 -i 0.2 -W 1 10.9.0.2");
        }
        let ended = writes || soon(|| daemon.child.try_wait().unwrap().is_some());
        let (code, log) = daemon.interrupt();
        let is_right = open && ended && code == Some(0);
        self.note(
            command.line,
            &command.shown,
            if writes { "interrupted" } else { "ended by itself" },
            is_right,
            &log,
        );
    }

    /// Checks a configuration, with the key files and the file that it names.
    fn configuration(&mut self, line: usize, text: &str, folder: &Path, host: &CommandHost) -> String {
        let name = match text.lines().next() {
            Some("# shared.toml") => "shared.toml".to_owned(),
            Some("# The sender." | "# Each receiver.") => format!("one-way-{line}.toml"),
            _ => format!("page-{line}.toml"),
        };
        fs::write(folder.join(&name), text).unwrap();
        let lines = text.lines().map(|line| line.strip_prefix("private_").unwrap_or(line));
        let keys = lines.filter_map(|line| line.strip_prefix("key = \"")?.split('"').next());
        for key in keys.filter(|key| !folder.join(key).exists()) {
            assert!(host.run(&format!("thinair tunnel keygen {key}")).status.success());
        }
        if name != "shared.toml" {
            let line_of_check = format!("thinair tunnel check {name}");
            let output = host.run(&line_of_check);
            self.note(line, &line_of_check, "run", output.status.success(), &text_of(&output));
        }
        name
    }

    /// Records a command, and whether its output contains that of the page.
    fn shows(&mut self, command: &PageCommand, how: &str, is_right: bool, printed: &str) {
        let missing =
            command.prints.iter().find(|shown| !printed.lines().any(|line| page::shows(line, shown)));
        let what = match missing {
            Some(missing) => format!("prints no `{missing}`; {printed}"),
            None => printed.to_owned(),
        };
        self.note(command.line, &command.shown, how, is_right && missing.is_none(), &what);
    }

    fn note(&mut self, line: usize, shown: &str, how: &str, is_right: bool, printed: &str) {
        let place = if line == 0 { self.section.heading.clone() } else { line.to_string() };
        let what = format!("{}:{place}: {shown}", self.section.page);
        if is_right {
            self.report.push(format!("{what}\n    {how}"));
        } else {
            self.failures.push(format!("{what}\n    not {how}: {printed}"));
        }
    }
}

fn text_of(output: &std::process::Output) -> String {
    let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    format!("{}{}", texts[0], texts[1])
}

/// Connects both hosts: the gateway is 198.51.100.7 and 2001:db8::7, the field site 203.0.113.2.
fn cable(number: usize, gateway: &CommandHost, field: &CommandHost) {
    let (g, f) = (gateway.pid(), field.pid());
    let ends = format!("ip link add cg{number} type veth peer name cf{number}");
    let moved =
        format!("ip link set cg{number} name eth0 netns {g} && ip link set cf{number} name eth0 netns {f}");
    let done = std::process::Command::new("sh").args(["-c", &format!("{ends} && {moved}")]).status().unwrap();
    assert!(done.success());
    for (host, four, six) in [(gateway, "198.51.100.7", "2001:db8::7"), (field, "203.0.113.2", "2001:db8::2")]
    {
        let lines = format!(
            "ip addr add {four}/32 dev eth0 && ip addr add {six}/64 dev eth0 nodad && ip link set eth0 up && \
             ip route add default dev eth0 src {four}"
        );
        let output = host.run(&lines);
        assert!(output.status.success(), "{}", text_of(&output));
    }
}

/// Carries octets between two lines.
fn relay(lines: &[Pty; 2], stop: &std::sync::atomic::AtomicBool) {
    let mut room = [0; 4_096];
    while !stop.load(Ordering::Relaxed) {
        let mut moved = false;
        for (from, to) in [(0, 1), (1, 0)] {
            let Ok(octets) = lines[from].read(&mut room) else { continue };
            let mut rest = &room[..octets];
            while !rest.is_empty() && !stop.load(Ordering::Relaxed) {
                match lines[to].write(rest) {
                    Ok(gone) => rest = &rest[gone..],
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
            moved |= octets > 0;
        }
        if !moved {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
