//! The command that runs at one end of the link, and how it is made to end.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use thinair_os::signals::{Ask, ask};
use thinair_os::{Error, Namespace};
use thinair_wire::time::Instant;

/// How a run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command has, with this status.
    Command(ExitStatus),
    /// There was no command, and a signal asked for it.
    Signal,
}

/// How long a command may take to end when it was interrupted, before it is asked once more, and before it is made to.
/// Together less than the second in which a run ends.
const PATIENCE: [Duration; 2] = [Duration::from_millis(400), Duration::from_millis(300)];

/// A command in a namespace. It ends with its owner.
#[derive(Debug)]
pub(super) struct Guest {
    child: Child,
    /// What is done next to make it end, and when.
    next: Option<(Instant, Step)>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Terminate,
    Kill,
}

impl Guest {
    pub(super) fn start(namespace: &Namespace, command: &mut Command) -> Result<Self, Error> {
        Ok(Self { child: namespace.spawn(command)?, next: None })
    }

    /// Its status, if it has ended.
    pub(super) fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Somebody wants the run to end. The terminal has told the command itself.
    pub(super) fn interrupt(&mut self, now: Instant, by_terminal: bool) {
        if !by_terminal {
            ask(&mut self.child, Ask::Interrupt);
        }
        self.next.get_or_insert((now + PATIENCE[0], Step::Terminate));
    }

    pub(super) fn was_interrupted(&self) -> bool {
        self.next.is_some()
    }

    /// When to [look after it](Self::insist) again.
    pub(super) fn insist_at(&self) -> Option<Instant> {
        self.next.map(|(at, _)| at)
    }

    pub(super) fn insist(&mut self, now: Instant) -> io::Result<()> {
        match self.next {
            Some((at, Step::Terminate)) if at <= now => {
                ask(&mut self.child, Ask::Terminate);
                self.next = Some((now + PATIENCE[1], Step::Kill));
            }
            Some((at, Step::Kill)) if at <= now => {
                self.next = Some((now + PATIENCE[1], Step::Kill));
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
