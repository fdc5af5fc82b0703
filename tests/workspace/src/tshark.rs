//! Wireshark's tshark as a second parser of our output.

#![allow(dead_code, reason = "not every test needs everything")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use thinair_capture::{LinkType, Timestamp, Writer};

use super::{metadata, text};

/// True if tshark is installed; otherwise prints a message.
pub fn is_there() -> bool {
    version().is_some()
}

/// True if tshark is installed and runs Lua; otherwise prints a message.
pub fn runs_lua() -> bool {
    let Some(version) = version() else { return false };
    let runs_lua = version.contains("with Lua");
    if !runs_lua {
        println!("skipped: tshark has no Lua");
    }
    runs_lua
}

/// True if tshark has a field; otherwise prints a message.
pub fn knows(field: &str) -> bool {
    let fields = ok(Command::new("tshark").args(["-G", "fields"]).output().unwrap()).stdout;
    let fields = String::from_utf8_lossy(&fields);
    let knows = fields.lines().any(|line| line.split('\t').nth(2) == Some(field));
    if !knows {
        println!("skipped: this tshark does not know {field}");
    }
    knows
}

fn version() -> Option<String> {
    let Ok(version) = Command::new("tshark").arg("-v").output() else {
        println!("skipped: no tshark");
        return None;
    };
    Some(String::from_utf8_lossy(&version.stdout).replace('\n', " "))
}

/// Fields of every packet, and expert messages, which include the errors of scripts.
pub fn fields_of(scripts: &[PathBuf], file: &Path, options: &[&str], fields: &[&str]) -> Vec<Vec<String>> {
    let mut tshark = Command::new("tshark");
    for script in scripts {
        tshark.arg("-X").arg(format!("lua_script:{}", script.display()));
    }
    tshark.arg("-r").arg(file).args(options).args(["-T", "fields", "-E", "separator=|"]);
    let done = ok(tshark.args(fields.iter().flat_map(|field| ["-e", field])).output().unwrap());
    let complaints = String::from_utf8_lossy(&done.stderr);
    assert!(!complaints.contains("Lua"), "{complaints}");
    let lines = String::from_utf8(done.stdout).unwrap();
    let report = lines.lines().map(|line| {
        assert!(!line.contains("Lua Error"), "{line}");
        line.split('|').map(str::to_owned).collect()
    });
    report.collect()
}

/// Values of a field of a packet, in sequence.
pub fn values(field: &str) -> Vec<String> {
    field.split(',').filter(|value| !value.is_empty()).map(str::to_owned).collect()
}

/// Writes packets, a millisecond apart.
pub fn write(link_type: LinkType, path: &Path, packets: &[Vec<u8>]) {
    let mut writer = Writer::new(Vec::new(), link_type).unwrap();
    for (time, packet) in (0..).zip(packets) {
        writer.write(Timestamp::from_nanos(time * 1_000_000), packet).unwrap();
    }
    fs::write(path, writer.into_inner()).unwrap();
}

/// UDP datagram over IPv4, without UDP checksum.
pub fn datagram(port: u16, payload: &[u8]) -> Vec<u8> {
    let udp = u16::try_from(8 + payload.len()).unwrap();
    let mut packet = vec![0x45, 0];
    packet.extend((20 + udp).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    let sum: u32 = packet.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let checksum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    for word in [port, port, udp, 0] {
        packet.extend(word.to_be_bytes());
    }
    packet.extend_from_slice(payload);
    packet
}

pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

pub fn ok(output: Output) -> Output {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Folder of the test in the target folder.
pub struct OutputFolder(PathBuf);

impl OutputFolder {
    pub fn new(name: &str) -> Self {
        let folder = PathBuf::from(text(&metadata(), "target_directory")).join("wireshark").join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}
