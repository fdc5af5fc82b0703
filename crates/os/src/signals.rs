//! Signals as events, without interruption.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, Command};

use nix::sys::signal::{self, SigSet, Signal as Number};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use crate::error::{ErrorContext as _, Result};

/// Meaning of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, SIGTERM or SIGHUP: the process is asked to end.
    End {
        /// True if a terminal sent it to every process in the foreground, false if it was sent to this process alone.
        by_terminal: bool,
    },
    /// A child ended (SIGCHLD).
    Child,
}

/// The signals that ask this process to end, or report the end of a child.
///
/// **Must be created before any other thread:** the signals are blocked in this thread and in those that it starts, and
/// would end the process in any other one. Dropping it unblocks them. Children do not inherit the block.
#[derive(Debug)]
pub struct Signals {
    file: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Blocks the signals, and receives them from now on.
    ///
    /// # Errors
    /// The system has no room for another file.
    pub fn take() -> Result<Self> {
        let signals = [Number::SIGINT, Number::SIGTERM, Number::SIGHUP, Number::SIGCHLD];
        let set: SigSet = signals.into_iter().collect();
        let mut before = SigSet::empty();
        signal::pthread_sigmask(signal::SigmaskHow::SIG_BLOCK, Some(&set), Some(&mut before))
            .attempt(|| "block signals".to_owned())?;
        let file = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .attempt(|| "wait for signals".to_owned())?;
        Ok(Self { file, before })
    }

    /// Returns the next signal; `None` if none waits.
    pub fn poll(&self) -> Option<Signal> {
        let info = self.file.read_signal().ok().flatten()?;
        if info.ssi_signo == Number::SIGCHLD as u32 {
            return Some(Signal::Child);
        }
        // SI_KERNEL: caused by a key of the terminal. kill(2) causes SI_USER.
        Some(Signal::End { by_terminal: info.ssi_code == libc::SI_KERNEL })
    }
}

/// Signal that asks a child to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// SIGINT, as from a key of the terminal.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Asks a child to end, in contrast to [`Child::kill`]. No effect if it has ended.
pub fn ask(child: &mut Child, how: Ask) {
    // A child that was not waited for keeps its number, so the signal cannot reach another process.
    if let (Ok(None), Ok(pid)) = (child.try_wait(), i32::try_from(child.id())) {
        let signal = match how {
            Ask::Interrupt => Number::SIGINT,
            Ask::Terminate => Number::SIGTERM,
        };
        let _ = signal::kill(Pid::from_raw(pid), signal);
    }
}

/// Starts a command without blocked signals, and without ignored ones among SIGINT, SIGQUIT, SIGTERM and SIGPIPE: children
/// inherit both, and most programs do not expect that. A shell without job control ignores SIGINT behind `&`. An
/// ignored SIGHUP remains ignored, since `nohup` asks for it.
///
/// # Errors
/// The command does not exist, or is not executable.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    inherited::let_signals_through(command);
    command.spawn()
}

#[allow(unsafe_code, reason = "what runs between fork and exec must be chosen with care")]
mod inherited {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use nix::sys::signal::{SigHandler, SigSet, Signal as Number, signal};

    pub(super) fn let_signals_through(command: &mut Command) {
        // SAFETY: between fork and exec only async-signal-safe functions may be called. sigemptyset(3),
        // pthread_sigmask(3) and signal(2) are; nothing is allocated, and no lock is taken.
        unsafe {
            command.pre_exec(|| {
                for number in [Number::SIGINT, Number::SIGQUIT, Number::SIGTERM, Number::SIGPIPE] {
                    signal(number, SigHandler::SigDfl)?;
                }
                Ok(SigSet::empty().thread_set_mask()?)
            });
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Pending signals were meant for the work that has just ended.
        while self.poll().is_some() {}
        let _ = self.before.thread_set_mask();
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    /// As behind `&` of a shell without job control. The test runs itself in such a process.
    #[test]
    fn a_command_of_a_process_that_ignores_sigint_can_be_interrupted() {
        const INSIDE: &str = "THINAIR_TEST_IGNORES_SIGINT";
        const NAME: &str = "signals::tests::a_command_of_a_process_that_ignores_sigint_can_be_interrupted";
        if std::env::var_os(INSIDE).is_none() {
            let mut shell = Command::new("sh");
            shell.args(["-c", "trap '' INT; exec \"$0\" --exact \"$1\""]);
            let test =
                shell.arg(std::env::current_exe().unwrap()).arg(NAME).env(INSIDE, "1").output().unwrap();
            assert!(test.status.success(), "{}", String::from_utf8_lossy(&test.stdout));
            return;
        }
        let mut child = spawn(Command::new("sleep").arg("10")).unwrap();
        ask(&mut child, Ask::Interrupt);
        assert_eq!(child.wait().unwrap().signal(), Some(Number::SIGINT as i32));
    }

    #[test]
    fn a_signal_waits_until_it_is_asked_for() {
        let signals = Signals::take().unwrap();
        assert_eq!(signals.poll(), None);
        // To this thread only: other tests run in parallel.
        signal::raise(Number::SIGTERM).unwrap();
        assert_eq!(signals.poll(), Some(Signal::End { by_terminal: false }));
        assert_eq!(signals.poll(), None);
    }
}
