//! The second socket, from which timeouts of NATs are probed, and the file of results.
//!
//! The file `mappings` in the state folder has a line for each peer: address of this end at the peer, time in milliseconds,
//! name. It is optional: errors of reading or writing it are logged at a low level, and otherwise ignored.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thinair_os::folder;
use thinair_os::rule::PortRange;
use thinair_os::udp::options;
use thinair_session::PEERS;
use thinair_session::mapping::{self, LearnedTimeout};
use thinair_wire::time::Instant;

use crate::site::Site;

/// Least time between two looks at the own addresses.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// Length of the longest file that is read, in octets.
const LARGEST: u64 = 64 * 1_024;
/// Length of the longest datagram that is received, in octets. Answers are shorter.
const LONGEST: usize = 512;

#[derive(Debug)]
pub(super) struct Prober {
    socket: UdpSocket,
    port: u16,
    file: PathBuf,
    /// Results in the file, by name of the peer.
    stored: BTreeMap<String, LearnedTimeout>,
    /// Own address of the route to each peer.
    own: BTreeMap<SocketAddr, IpAddr>,
    looked_at: Option<Instant>,
}

impl Prober {
    /// Opens a socket at a port next to that of the carrier, so that one range of ports has both.
    ///
    /// # Errors
    /// Both neighbors of the port are in use.
    pub(super) fn open(listen: SocketAddr, carrier_port: u16, state: &Path) -> io::Result<Self> {
        let neighbors = [carrier_port.checked_add(1), carrier_port.checked_sub(1).filter(|port| *port > 0)];
        let mut opened = Err(io::ErrorKind::AddrInUse.into());
        for port in neighbors.into_iter().flatten() {
            opened = UdpSocket::bind((listen.ip(), port)).map(|socket| (socket, port));
            if opened.is_ok() {
                break;
            }
        }
        let (socket, port) = opened?;
        socket.set_nonblocking(true)?;
        let mut prober = Self {
            socket,
            port,
            file: state.join("mappings"),
            stored: BTreeMap::new(),
            own: BTreeMap::new(),
            looked_at: None,
        };
        match prober.read() {
            Ok(text) => prober.stored = text.lines().take(PEERS).filter_map(entry).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::debug!(%error, "learned timeouts cannot be read"),
        }
        Ok(prober)
    }

    /// The ports of the carrier and of this socket.
    pub(super) fn with(&self, carrier_port: u16) -> PortRange {
        (carrier_port.min(self.port), carrier_port.max(self.port))
    }

    /// Gives the results of earlier searches to the site.
    pub(super) fn remind(&self, now: Instant, site: &mut Site) {
        for (name, learned) in &self.stored {
            site.remember_mapping(now, name, *learned);
        }
    }

    /// Sends a probe. Without success it counts as lost.
    pub(super) fn send(&self, to: SocketAddr, datagram: &[u8]) {
        if let Err(error) = self.socket.send_to(datagram, to) {
            tracing::debug!(%error, "a probe was refused");
        }
    }

    /// Receives answers to probes. Their source moves no peer.
    pub(super) fn receive(&self, now: Instant, site: &mut Site) {
        let mut datagram = [0; LONGEST];
        for _ in 0..PEERS {
            match self.socket.recv(&mut datagram) {
                Ok(length) => site.handle_datagram(now, None, &mut datagram[..length]),
                // A report by ICMP on an earlier probe.
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// Looks whether datagrams leave from another own address, and stores results.
    pub(super) fn look(&mut self, now: Instant, site: &mut Site) {
        if self.looked_at.is_some_and(|at| now.since(at) < LOOK_AGAIN) {
            return;
        }
        self.looked_at = Some(now);
        let own: BTreeMap<_, _> =
            site.probed_addresses().filter_map(|to| Some((to, self.own_address(to).ok()?))).collect();
        if self.own.iter().any(|(to, before)| own.get(to).is_some_and(|now| now != before)) {
            tracing::debug!("this end has another address");
            site.note_moved(now);
        }
        self.own.extend(own);
        let learned = site.learned_mappings().map(|(name, learned)| (name.to_owned(), learned));
        let mut stored = self.stored.clone();
        stored.extend(learned);
        if stored != self.stored {
            self.stored = stored;
            if let Err(error) = self.store() {
                tracing::debug!(%error, "learned timeouts cannot be kept");
            }
        }
    }

    /// Source address of the route to a peer. No datagram is sent.
    fn own_address(&self, to: SocketAddr) -> io::Result<IpAddr> {
        self.socket.connect(to)?;
        let own = self.socket.local_addr();
        options::disconnect(&self.socket)?;
        Ok(own?.ip())
    }

    fn read(&self) -> io::Result<String> {
        let mut text = String::new();
        folder::open_regular(&self.file)?.take(LARGEST).read_to_string(&mut text)?;
        Ok(text)
    }

    fn store(&self) -> io::Result<()> {
        let line = |(name, learned): (&String, &LearnedTimeout)| {
            format!("{} {} {name}\n", learned.address, learned.timeout.as_millis())
        };
        folder::replace(&self.file, self.stored.iter().map(line).collect::<String>().as_bytes(), false)
    }
}

impl AsFd for Prober {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn entry(line: &str) -> Option<(String, LearnedTimeout)> {
    let mut words = line.splitn(3, ' ');
    let address = words.next()?.parse().ok()?;
    let timeout = Duration::from_millis(words.next()?.parse::<u32>().ok()?.into());
    let name = words.next()?.to_owned();
    let is_possible = (mapping::LEAST..=mapping::LONGEST).contains(&timeout);
    is_possible.then_some((name, LearnedTimeout { address, timeout }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn results_are_stored_and_other_lines_are_passed_over() {
        let folder = std::env::temp_dir().join(format!("thinair-mappings-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let open = || Prober::open(taken.local_addr().unwrap(), port, &folder);
        let mut prober = open().unwrap();
        assert!(prober.port.abs_diff(port) == 1);
        let learned = |last, seconds| LearnedTimeout {
            address: IpAddr::from([192, 0, 2, last]),
            timeout: Duration::from_secs(seconds),
        };
        prober.stored.insert("a hill".to_owned(), learned(1, 296));
        prober.stored.insert("dale".to_owned(), learned(2, 28));
        prober.store().unwrap();
        let stored = std::mem::take(&mut prober.stored);
        drop(prober);
        assert_eq!(open().unwrap().stored, stored);
        for line in [
            "",
            "192.0.2.1",
            "192.0.2.1 9999 hill",
            "192.0.2.1 x hill",
            "here 30000 hill",
            "192.0.2.1 99999999 hill",
        ] {
            assert_eq!(entry(line), None, "{line}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_own_address_is_that_of_the_route_and_the_port_stays() {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let carrier = UdpSocket::bind("0.0.0.0:0").unwrap();
        let listen = carrier.local_addr().unwrap();
        let prober = Prober::open(listen, listen.port(), Path::new("/nonexistent")).unwrap();
        let to = other.local_addr().unwrap();
        assert_eq!(prober.own_address(to).unwrap(), IpAddr::from([127, 0, 0, 1]));
        prober.send(to, b"a probe");
        let mut octets = [0; 16];
        let (length, from) = other.recv_from(&mut octets).unwrap();
        assert_eq!((&octets[..length], from.port()), (&b"a probe"[..], prober.port));
        // Other peers are still heard.
        let third = UdpSocket::bind("127.0.0.1:0").unwrap();
        third.send_to(b"an answer", ("127.0.0.1", prober.port)).unwrap();
        assert_eq!(prober.socket.recv(&mut octets).unwrap(), 9);
    }
}
