//! Octets that a remedy of the bill saves, found by trying it on the packets of a capture.
//!
//! A remedy is tried alone, as if no other one was taken. Octets are those of whole frames; acknowledgments of TCP that a remedy would save,
//! too, are not counted.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::net::IpAddr;

use foldhash::fast::RandomState;
use thinair_wire::header::coap::{Coap, Code};
use thinair_wire::header::protocol;

use super::http::HttpConnection;
use super::{BillCause, BillFlow};
use crate::packet::ParsedPacket;

/// Interval of keepalives over UDP: mappings of a NAT last 2 minutes at least (RFC 4787, REQ-5).
const UDP_KEEPALIVE: u64 = 110;

/// Interval of keepalives over TCP: mappings of a NAT last 2 hours and 4 minutes at least (RFC 5382, REQ-5).
const TCP_KEEPALIVE: u64 = 7_200;

/// Interval of NTP: `MAXPOLL` of a client (RFC 5905, section 7.2).
const NTP: u64 = 1_024;

/// Time that a connection without traffic is kept for the next request, in seconds.
const KEPT: u64 = 60;

/// Maximum number of entries of each table. Later ones save nothing.
const MOST: usize = 65_536;

/// Octets of the header of a DNS message (RFC 1035, section 4.1.1).
const DNS_HEADER: usize = 12;

const SECOND: u64 = 1_000_000_000;

/// State of the remedies, for one capture.
#[derive(Debug, Default)]
pub(crate) struct Remedies {
    /// Names that a host has in its cache, by host and question, with the time until which they are valid.
    names: Table<(IpAddr, Vec<u8>), u64>,
    /// Questions answered by the cache: host, port, ID of the message.
    spared: HashSet<(IpAddr, u16, [u8; 2]), RandomState>,
    /// Time of the latest packet of NTP that is still sent, by source and destination.
    clocks: Table<(IpAddr, IpAddr), u64>,
    /// Latest connection from a client to a server's port.
    connections: Table<(IpAddr, IpAddr, u16), Connection>,
    /// GET requests that wait for a response, by client, its port, server, and hash of the token: hash of the options, and octets that
    /// are saved with the response.
    requests: Table<(IpAddr, u16, IpAddr, u64), (u64, u64)>,
    /// Hash of the latest response to a GET: client, server, hash of the options.
    polls: Table<(IpAddr, IpAddr, u64), u64>,
    /// Clients of TLS 1.3 that have sent their part of the handshake, with their servers.
    finished: HashSet<(IpAddr, u16, IpAddr, u16), RandomState>,
    /// Connections of HTTP: client, its port, server, its port.
    http: Table<(IpAddr, u16, IpAddr, u16), HttpConnection>,
}

/// Ports of HTTP.
const HTTP: [u16; 2] = [80, 8_080];

type Table<K, V> = HashMap<K, V, RandomState>;

#[derive(Clone, Copy, Debug)]
struct Connection {
    client_port: u16,
    latest: u64,
    /// True if the connection before could have been used.
    is_spared: bool,
}

/// State of a flow for remedies.
#[derive(Debug, Default)]
pub(super) struct RemedyFlow {
    /// Time of the latest packet that is still sent.
    kept: Option<u64>,
    /// True if an earlier connection could have been used.
    is_spared: Option<bool>,
}

impl Remedies {
    /// Octets that the remedy of a cause saves of a frame without data of an application, at a time in nanoseconds.
    pub(super) fn of_whole(
        &mut self,
        (cause, name): (BillCause, &str),
        packet: &ParsedPacket<'_>,
        flow: &mut BillFlow,
        now: u64,
        octets: u64,
    ) -> u64 {
        let key = packet.key;
        let is_spared = match (cause, name) {
            (BillCause::Keepalives, _) => {
                let interval = if key.protocol == protocol::TCP { TCP_KEEPALIVE } else { UDP_KEEPALIVE };
                flow.remedy.kept.is_some_and(|kept| now.saturating_sub(kept) < interval * SECOND)
            }
            (BillCause::NamesAndTime, "ntp") => {
                let hosts = (key.source, key.destination);
                let is_soon =
                    self.clocks.get(&hosts).is_some_and(|kept| now.saturating_sub(*kept) < NTP * SECOND);
                if !is_soon {
                    insert(&mut self.clocks, hosts, now);
                }
                is_soon
            }
            (BillCause::NamesAndTime, "dns") if key.protocol == protocol::UDP => {
                self.is_in_cache(packet, now)
            }
            (BillCause::Handshakes, _) => self.is_of_kept_connection(packet, flow, now),
            // Not one of them passes a router; no message has to be confirmed.
            (BillCause::LinkNoise, _) | (BillCause::Acknowledgments, "coap") => true,
            _ => false,
        };
        if is_spared {
            octets
        } else {
            flow.remedy.kept = Some(now);
            0
        }
    }

    /// Octets that the same connection as before saves of a handshake among data.
    pub(super) fn of_handshake(
        &mut self,
        packet: &ParsedPacket<'_>,
        flow: &mut BillFlow,
        now: u64,
        octets: u64,
    ) -> u64 {
        flow.remedy.kept = Some(now);
        if octets > 0 && self.is_of_kept_connection(packet, flow, now) { octets } else { 0 }
    }

    /// Notes that the sender of a packet, a client of TLS 1.3, has sent its part of the handshake.
    pub(super) fn client_finished(&mut self, packet: &ParsedPacket<'_>) {
        let (key, (source, destination)) = (packet.key, packet.key.ports.unwrap_or_default());
        if self.finished.len() < MOST {
            self.finished.insert((key.source, source, key.destination, destination));
        }
    }

    /// True if the receiver of a packet has sent its part of the handshake.
    pub(super) fn has_client_finished(&self, packet: &ParsedPacket<'_>) -> bool {
        let (key, (source, destination)) = (packet.key, packet.key.ports.unwrap_or_default());
        self.finished.contains(&(key.destination, destination, key.source, source))
    }

    /// Adds a frame of a connection of HTTP, with its new data.
    pub(super) fn http(&mut self, packet: &ParsedPacket<'_>, octets: u64, has_new_data: bool) {
        let key = packet.key;
        let Some((source, destination)) = key.ports.filter(|_| key.protocol == protocol::TCP) else { return };
        let (place, is_of_client) = match (HTTP.contains(&source), HTTP.contains(&destination)) {
            (_, true) => ((key.source, source, key.destination, destination), true),
            (true, false) => ((key.destination, destination, key.source, source), false),
            (false, false) => return,
        };
        if self.http.len() >= MOST && !self.http.contains_key(&place) {
            return;
        }
        let connection = self.http.entry(place).or_default();
        connection.frame(packet, octets);
        if has_new_data {
            connection.data(is_of_client, packet.octets.get(packet.headers()..).unwrap_or_default());
        }
    }

    /// Octets that CoAP instead of HTTP saves.
    pub(super) fn of_http(self) -> u64 {
        self.http.into_values().map(HttpConnection::saves).sum()
    }

    /// True for a query, or its response, that a cache in the asking host answers.
    fn is_in_cache(&mut self, packet: &ParsedPacket<'_>, now: u64) -> bool {
        let message = packet.octets.get(packet.headers()..).unwrap_or_default();
        let (Some(header), Some(end)) = (message.first_chunk::<DNS_HEADER>(), end_of_question(message))
        else {
            return false;
        };
        let id = [header[0], header[1]];
        let is_response = header[2] & 0x80 != 0;
        let question = message.get(DNS_HEADER..end).unwrap_or_default().to_ascii_lowercase();
        let (source, destination) = packet.key.ports.unwrap_or_default();
        if !is_response {
            let host = (packet.key.source, question);
            let is_known = self.names.get(&host).is_some_and(|until| now < *until);
            if is_known && self.spared.len() < MOST {
                self.spared.insert((packet.key.source, source, id));
            }
            return is_known;
        }
        if self.spared.remove(&(packet.key.destination, destination, id)) {
            return true;
        }
        if let Some(seconds) = lifetime(message, end) {
            let until = now.saturating_add(u64::from(seconds) * SECOND);
            insert(&mut self.names, (packet.key.destination, question), until);
        }
        false
    }

    /// True if the handshake is that of a connection instead of which one before, from the same host to the same port, could have been
    /// used.
    fn is_of_kept_connection(&mut self, packet: &ParsedPacket<'_>, flow: &mut BillFlow, now: u64) -> bool {
        let key = packet.key;
        let Some((source, destination)) = key.ports else { return false };
        let there = (key.source, key.destination, destination);
        let back = (key.destination, key.source, source);
        let own = |connection: &Connection, port| connection.client_port == port;
        let known = [(there, source), (back, destination)].into_iter().find(|(place, port)| {
            self.connections.get(place).is_some_and(|connection| own(connection, *port))
        });
        let connection = match known {
            Some((place, _)) => self.connections.get_mut(&place),
            None if flow.remedy.is_spared.is_none() => {
                let before = self.connections.get(&there);
                let is_spared =
                    before.is_some_and(|before| now.saturating_sub(before.latest) < KEPT * SECOND);
                insert(
                    &mut self.connections,
                    there,
                    Connection { client_port: source, latest: now, is_spared },
                );
                self.connections.get_mut(&there)
            }
            None => None,
        };
        if let Some(connection) = connection {
            connection.latest = now;
            flow.remedy.is_spared.get_or_insert(connection.is_spared);
        }
        flow.remedy.is_spared.unwrap_or(false)
    }

    /// Octets that Observe (RFC 7641) saves of a message of a client that asks again and again: later requests, and responses
    /// that repeat the one before.
    pub(super) fn of_coap(&mut self, packet: &ParsedPacket<'_>, octets: u64) -> u64 {
        const OBSERVE: u16 = 6;

        let message = packet.octets.get(packet.headers()..).unwrap_or_default();
        let Ok(coap) = Coap::read(message) else { return 0 };
        let (key, (source, destination)) = (packet.key, packet.key.ports.unwrap_or_default());
        match coap.code {
            Code::GET if !coap.options().any(|option| option.number == OBSERVE) => {
                let hash = coap
                    .options()
                    .fold(0, |hash, option| hashed(hash ^ u64::from(option.number), option.value));
                let request = (key.source, source, key.destination, hashed(0, coap.token));
                let is_again = self.polls.contains_key(&(key.source, key.destination, hash));
                insert(&mut self.requests, request, (hash, if is_again { octets } else { 0 }));
                0
            }
            code if code.class() == 2 => {
                let request = (key.destination, destination, key.source, hashed(0, coap.token));
                let Some((options, of_request)) = self.requests.remove(&request) else { return 0 };
                let payload = match coap.options().into_end() {
                    thinair_wire::header::coap::CoapOptionsEnd::Payload(payload) => payload,
                    _ => &[],
                };
                let (poll, hash) = ((key.destination, key.source, options), hashed(0, payload));
                let before = self.polls.get(&poll).copied();
                insert(&mut self.polls, poll, hash);
                of_request + if before == Some(hash) { octets } else { 0 }
            }
            _ => 0,
        }
    }
}

/// Inserts or replaces an entry while there is room.
fn insert<K: Eq + Hash, V>(table: &mut Table<K, V>, key: K, value: V) {
    if table.len() < MOST || table.contains_key(&key) {
        table.insert(key, value);
    }
}

/// FNV-1a.
pub(super) fn hashed(start: u64, octets: &[u8]) -> u64 {
    octets.iter().fold(start ^ 0xCBF2_9CE4_8422_2325, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// End of a message's only question (RFC 1035, section 4.1.2).
fn end_of_question(message: &[u8]) -> Option<usize> {
    let count = message.get(4..6)?;
    let end = end_of_name(message, DNS_HEADER)? + 4;
    (count == [0, 1] && end <= message.len()).then_some(end)
}

/// End of a name, which a pointer may end.
fn end_of_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match usize::from(*message.get(at)?) {
            0 => return Some(at + 1),
            pointer if pointer & 0xC0 == 0xC0 => return Some(at + 2),
            length => at += 1 + length,
        }
    }
}

/// Shortest time to live of the answers of a response, in seconds; `None` if there is no answer.
fn lifetime(message: &[u8], mut at: usize) -> Option<u32> {
    let count = u16::from_be_bytes([*message.get(6)?, *message.get(7)?]);
    let mut shortest = None;
    for _ in 0..count {
        // Type, class, TTL and length of the data.
        at = end_of_name(message, at)?;
        let &[_, _, _, _, a, b, c, d, high, low] = message.get(at..)?.first_chunk::<10>()?;
        let seconds = u32::from_be_bytes([a, b, c, d]);
        shortest = Some(shortest.map_or(seconds, |shortest: u32| shortest.min(seconds)));
        at += 10 + usize::from(u16::from_be_bytes([high, low]));
    }
    shortest
}
