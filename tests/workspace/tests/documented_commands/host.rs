//! Host for commands of the documentation: separate mount and network namespaces, without anything of thinair.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a command, in seconds.
const LIMIT: &str = "60";

/// True if a condition becomes true within a short time.
pub(crate) fn soon(mut is_true: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        if is_true() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

pub(crate) struct CommandHost {
    shell: Child,
    /// Working folder of the commands, shared by all hosts of a section.
    folder: PathBuf,
    path: String,
}

impl CommandHost {
    /// Creates a host with its files below `base`; `line`: its serial line.
    pub(crate) fn new(base: &Path, name: &str, folder: &Path, line: Option<&Path>) -> Self {
        let script = thinair_tests::root().join("tests/workspace/tests/documented_commands/host.sh");
        let own = base.join(name);
        fs::create_dir_all(&own).unwrap();
        let log = File::create(base.join(format!("{name}.log"))).unwrap();
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "--net", "bash"]).arg(script).arg(&own).arg(line.unwrap_or(Path::new("")));
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let shell = shell.spawn().unwrap();
        let folders = [thinair_tests::command(), thinair_tests::laboratory()]
            .map(|command| fs::canonicalize(command).unwrap().parent().unwrap().display().to_string());
        let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap());
        let host = Self { shell, folder: folder.to_owned(), path };
        // The folder is on a file system of this host.
        let is_ready = || host.run(&format!("test -e {}/ready", own.display())).status.success();
        assert!(soon(is_ready), "{name}: {}", fs::read_to_string(base.join(format!("{name}.log"))).unwrap());
        host
    }

    /// Number of its first process, which identifies its namespaces.
    pub(crate) fn pid(&self) -> u32 {
        self.shell.id()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--net", "--target", &self.pid().to_string()]);
        let line = format!("cd '{}' && exec bash -c {}", self.folder.display(), quoted(line));
        command.args(["timeout", LIMIT, "bash", "-c", &line]).env("PATH", &self.path).stdin(Stdio::null());
        command
    }

    /// Runs a command, and waits for its end.
    pub(crate) fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Starts a program that runs until it is interrupted; both outputs go to `log`.
    pub(crate) fn start(&self, line: &str, log: &Path) -> Child {
        let out = File::create(log).unwrap();
        let err = out.try_clone().unwrap();
        // A shell's background process would ignore SIGINT, this one does not.
        self.command(line).stdout(out).stderr(err).spawn().unwrap()
    }
}

impl Drop for CommandHost {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Quotes a text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
