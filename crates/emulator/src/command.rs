//! The command that runs at one end of the link, and its termination.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use thinair_os::signals::{Ask, ask};
use thinair_os::{Error, Namespace};
use thinair_wire::time::Instant;

/// Reason for the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command ended with this status.
    Command(ExitStatus),
    /// A signal ended a run without a command.
    Signal,
}

/// Time from the first interrupt to the second, and from the second to the kill. Together less than the second within
/// which a run must end.
const PATIENCE: [Duration; 2] = [Duration::from_millis(400), Duration::from_millis(300)];

/// A command in a namespace. Dropping it ends the command.
#[derive(Debug)]
pub(super) struct Guest {
    child: Child,
    /// Time and kind of the next step of termination.
    next: Option<(Instant, TerminationStep)>,
}

#[derive(Clone, Copy, Debug)]
enum TerminationStep {
    Terminate,
    Kill,
}

impl Guest {
    pub(super) fn start(namespace: &Namespace, command: &mut Command) -> Result<Self, Error> {
        Ok(Self { child: namespace.spawn(command)?, next: None })
    }

    /// Returns the exit status if the command has ended.
    pub(super) fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Begins termination. With `by_terminal`, the terminal has already sent the signal to the command.
    pub(super) fn interrupt(&mut self, now: Instant, by_terminal: bool) {
        if !by_terminal {
            ask(&mut self.child, Ask::Interrupt);
        }
        self.next.get_or_insert((now + PATIENCE[0], TerminationStep::Terminate));
    }

    pub(super) fn was_interrupted(&self) -> bool {
        self.next.is_some()
    }

    /// Returns the time of the next call of [`insist`](Self::insist).
    pub(super) fn insist_at(&self) -> Option<Instant> {
        self.next.map(|(at, _)| at)
    }

    pub(super) fn insist(&mut self, now: Instant) -> io::Result<()> {
        match self.next {
            Some((at, TerminationStep::Terminate)) if at <= now => {
                ask(&mut self.child, Ask::Terminate);
                self.next = Some((now + PATIENCE[1], TerminationStep::Kill));
            }
            Some((at, TerminationStep::Kill)) if at <= now => {
                self.next = Some((now + PATIENCE[1], TerminationStep::Kill));
                self.child.kill()?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if self.status().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
