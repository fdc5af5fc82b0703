//! Search for the ULE streams of a multiplex.

use super::section::{PsiSection, SectionReader};
use super::table::{Pat, Pmt};
use crate::ts::{Pid, TsHeader, TsPacket};

/// A ULE stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UleStream {
    /// Number of its program.
    pub program: u16,
    /// Its PID.
    pub pid: Pid,
}

/// Reads PAT and PMTs, and stores up to `STREAMS` ULE streams of up to `PROGRAMS` programs. Further ones are ignored.
///
/// It takes about a kilobyte a program.
#[derive(Clone, Debug)]
pub struct Finder<const PROGRAMS: usize, const STREAMS: usize> {
    pat: SectionReader,
    programs: [Option<(Pid, SectionReader)>; PROGRAMS],
    streams: [Option<UleStream>; STREAMS],
}

impl<const PROGRAMS: usize, const STREAMS: usize> Default for Finder<PROGRAMS, STREAMS> {
    fn default() -> Self {
        Self { pat: SectionReader::default(), programs: [const { None }; PROGRAMS], streams: [None; STREAMS] }
    }
}

impl<const PROGRAMS: usize, const STREAMS: usize> Finder<PROGRAMS, STREAMS> {
    /// Creates a finder without streams.
    pub fn new() -> Self {
        Self::default()
    }

    /// Iterates over the ULE streams, in the order in which they were found.
    pub fn streams(&self) -> impl Iterator<Item = UleStream> {
        self.streams.iter().flatten().copied()
    }

    /// Processes a TS Packet of any PID; returns true if it completes the description of a new stream.
    pub fn receive(&mut self, packet: &TsPacket) -> bool {
        let Ok(TsHeader { pid, .. }) = TsHeader::read(packet) else { return false };
        if pid == Pid::PAT {
            let programs = &mut self.programs;
            self.pat.receive(packet, &mut |section| note_programs(programs, section));
            return false;
        }
        let mut found = false;
        for (_, map) in self.programs.iter_mut().flatten().filter(|(of, _)| *of == pid) {
            map.receive(packet, &mut |section| found |= note_streams(&mut self.streams, section));
        }
        found
    }
}

fn note_programs(known: &mut [Option<(Pid, SectionReader)>], section: PsiSection<'_>) {
    if !section.is_current() {
        return;
    }
    for program in Pat::programs(section).filter(|program| program.number != 0) {
        if known.iter().flatten().any(|(pid, _)| *pid == program.pid) {
            continue;
        }
        if let Some(place) = known.iter_mut().find(|place| place.is_none()) {
            *place = Some((program.pid, SectionReader::default()));
        }
    }
}

/// Stores the ULE streams of a section; returns true if there was a new one.
fn note_streams(known: &mut [Option<UleStream>], section: PsiSection<'_>) -> bool {
    let Some((program, streams)) = Pmt::streams(section).filter(|_| section.is_current()) else {
        return false;
    };
    let mut found = false;
    for stream in streams.filter(super::ElementaryStream::is_ule) {
        let stream = UleStream { program, pid: stream.pid };
        if known.contains(&Some(stream)) {
            continue;
        }
        if let Some(place) = known.iter_mut().find(|place| place.is_none()) {
            *place = Some(stream);
            found = true;
        }
    }
    found
}
