//! A program around another implementation, for tests and benchmarks.

#![allow(unreachable_pub, reason = "a library of tests has this module, too")]

use std::ffi::OsStr;
use std::io::{BufReader, BufWriter, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Program that answers each request on its standard input before it reads the next one, and ends with its input, at the latest
/// with this value. Numbers have 32 bits unless noted, least significant octet first.
pub struct PeerProgram {
    child: Child,
    /// `None` behind the end of the input.
    requests: Option<BufWriter<ChildStdin>>,
    answers: BufReader<ChildStdout>,
}

impl PeerProgram {
    /// Starts it; `messages` is its standard error.
    pub fn start(program: &OsStr, arguments: &[&str], messages: Stdio) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(messages);
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.to_string_lossy()));
        let requests = child.stdin.take().map(BufWriter::new);
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, requests, answers }
    }

    /// Appends octets to the request.
    pub fn write(&mut self, octets: &[u8]) {
        self.requests.as_mut().expect("it runs").write_all(octets).expect("it reads");
    }

    /// Appends a length and its octets to the request.
    pub fn put(&mut self, octets: &[u8]) {
        self.write(&(octets.len() as u32).to_le_bytes());
        self.write(octets);
    }

    /// Ends the request.
    pub fn flush(&mut self) {
        self.requests.as_mut().expect("it runs").flush().expect("it reads");
    }

    /// Reads a length and its octets.
    pub fn octets(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.answers.read_exact(&mut length).expect("it answers");
        let mut octets = vec![0; u32::from_le_bytes(length) as usize];
        self.answers.read_exact(&mut octets).expect("it answers");
        octets
    }

    /// Reads one octet.
    pub fn octet(&mut self) -> u8 {
        let mut octet = [0];
        self.answers.read_exact(&mut octet).expect("it answers");
        octet[0]
    }

    /// Ends the input. The program has to end with success.
    pub fn end(mut self) {
        drop(self.requests.take());
        let status = self.child.wait().expect("it was started");
        assert!(status.success(), "the other implementation ends with {status}");
    }
}

impl Drop for PeerProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
