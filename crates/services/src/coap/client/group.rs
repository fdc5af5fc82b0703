//! Requests to a group: one Non-confirmable message to a multicast address, and the responses of its members, which come
//! from their own addresses. RFC 7252, section 8.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use thinair_coap::message::{MAX_MESSAGE, Message};
use thinair_coap::{Builder, Code, Received, Request, RequestError, Token, Type, Uri, number};
use thinair_os::Signals;
use thinair_os::clock::now;
use thinair_wire::time::Instant;

use super::carrier::ROOM;
use super::error::{AddressError, ClientError, FailedAttempt};
use super::{Continuation, TaskReport};
use crate::resolve::resolve;
use crate::wait::{Wait, Woken};

/// DEFAULT_LEISURE of 5 s, within which members answer (RFC 7252, section 8.2), and a second for the path.
pub const LEISURE: Duration = Duration::from_secs(6);

/// Critical options that a response may have.
const IN_RESPONSES: [u16; 2] = [number::BLOCK1, number::BLOCK2];

/// A request to a group.
#[derive(Debug)]
pub struct GroupTask<'a> {
    /// Group: its host is a multicast address, or a name of one.
    pub uri: &'a Uri,
    /// Request. It is sent as a Non-confirmable message, once, in one datagram.
    pub request: &'a Request<'a>,
    /// Time for which responses are awaited. Default of the command: [`LEISURE`].
    pub leisure: Duration,
    /// Signals that end the wait.
    pub signals: Option<&'a Signals>,
}

/// Sends a request to a group, and passes each response with its sender to `watch`. The second response of a member is
/// dropped, as is one with an unknown critical option. Blocks after the first are to be requested from the member itself.
///
/// # Errors
/// The host has no multicast address, or the request cannot be sent.
pub fn ask_group(
    task: &GroupTask<'_>,
    watch: &mut dyn FnMut(&Received<'_>, &TaskReport) -> Continuation,
) -> Result<TaskReport, ClientError> {
    let start = now();
    let mut waiting = Wait::new(task.signals, None)?;
    let addresses = resolve(&task.uri.host, task.uri.port, &mut waiting)?;
    let mut report = TaskReport { resolved: now().since(start), ..TaskReport::default() };
    let Some(group) = addresses.iter().copied().find(|address| address.ip().is_multicast()) else {
        let failed = |address| FailedAttempt { address, why: AddressError::NoGroup };
        return Err(ClientError::Failed(addresses.into_iter().map(failed).collect()));
    };
    ask_members(task, group, start, &mut waiting, &mut report, watch)?;
    report.total = now().since(start);
    Ok(report)
}

fn ask_members(
    task: &GroupTask<'_>,
    group: SocketAddr,
    start: Instant,
    waiting: &mut Wait<'_>,
    report: &mut TaskReport,
    watch: &mut dyn FnMut(&Received<'_>, &TaskReport) -> Continuation,
) -> Result<(), ClientError> {
    let failed = |why| ClientError::Failed(vec![FailedAttempt { address: group, why }]);
    let unreachable = |why: std::io::Error| failed(AddressError::Unreachable(why.to_string()));
    let any: SocketAddr = match group {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).map_err(unreachable)?;
    socket.set_nonblocking(true).map_err(unreachable)?;
    waiting.add(&socket)?;

    let random = getrandom::u64().map_err(|_| ClientError::NoRandomness)?;
    let token = Token::of(getrandom::u64().map_err(|_| ClientError::NoRandomness)?, 8);
    let mut buffer = vec![0; ROOM];
    let len = message(task.request, &token, random as u16, &mut buffer)
        .ok_or(RequestError::TooLarge { limit: MAX_MESSAGE })?;
    report.connected = now().since(start);
    socket.send_to(buffer.get(..len).unwrap_or_default(), group).map_err(unreachable)?;
    (report.sent, report.sent_octets, report.transmissions) = (1, len as u64, 1);

    let until = now() + task.leisure;
    let mut members: Vec<SocketAddr> = Vec::new();
    while now() < until {
        if waiting.wait(Some(until))? == Woken::Interrupted {
            break;
        }
        let (len, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
            // An ICMP message about the group or a member.
            Err(_) => continue,
        };
        let Ok(message) = Message::read(buffer.get(..len).unwrap_or_default()) else { continue };
        let is_response = (2..=5).contains(&message.code.class()) && message.token == token;
        let is_refused = message
            .options
            .iter()
            .any(|option| number::is_critical(option.number) && !IN_RESPONSES.contains(&option.number));
        if message.message_type == Type::Confirmable {
            let kind = if is_response && !is_refused { Type::Acknowledgement } else { Type::Reset };
            let mut reply = [0; 4];
            if let Ok(builder) =
                Builder::new(&mut reply, kind, Code::EMPTY, message.message_id, &Token::EMPTY)
            {
                builder.finish();
                let _ = socket.send_to(&reply, from);
            }
        }
        if !is_response || is_refused || members.contains(&from) {
            continue;
        }
        members.push(from);
        report.address = Some(from);
        (report.received, report.received_octets) =
            (report.received + 1, report.received_octets + len as u64);
        report.total = now().since(start);
        report.first.get_or_insert(report.total);
        let received =
            Received { code: message.code, options: message.options, payload: message.payload.into() };
        if watch(&received, report) == Continuation::Stop {
            break;
        }
    }
    Ok(())
}

/// Writes the request, and returns its octets. `None` if it does not fit into one message.
fn message(request: &Request<'_>, token: &Token, message_id: u16, buffer: &mut [u8]) -> Option<usize> {
    let out = buffer.get_mut(..MAX_MESSAGE)?;
    let mut builder = Builder::new(out, Type::NonConfirmable, request.method, message_id, token).ok()?;
    builder.options(&request.options.as_options()).ok()?;
    builder.payload(&request.payload).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::thread;

    use super::*;

    /// Answers one request from `members` sockets of their own, twice each.
    fn group(members: u8) -> (SocketAddr, thread::JoinHandle<Type>) {
        let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let mut buffer = [0; 1_152];
            let (len, from) = listener.recv_from(&mut buffer).unwrap();
            let request = Message::read(&buffer[..len]).unwrap();
            let sockets: Vec<_> = (0..members).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
            for (member, socket) in (b'0'..).zip(&sockets) {
                for _ in 0..2 {
                    let mut answer = [0; 64];
                    let builder =
                        Builder::new(&mut answer, Type::NonConfirmable, Code::CONTENT, 7, &request.token);
                    let len = builder.unwrap().payload(&[member]).unwrap();
                    socket.send_to(&answer[..len], from).unwrap();
                }
            }
            request.message_type
        });
        (address, server)
    }

    /// Sections 8.1 and 8.2: Non-confirmable; each member answers once, from its own address.
    #[test]
    fn every_member_of_a_group_is_heard_once() {
        let (address, server) = group(3);
        let uri: Uri = "coap://[ff02::fd]/x".parse().unwrap();
        let request = Request { options: uri.options(), ..Request::get("") };
        let leisure = Duration::from_secs(20);
        let task = GroupTask { uri: &uri, request: &request, leisure, signals: None };
        let (mut heard, mut report) = (Vec::new(), TaskReport::default());
        let mut waiting = Wait::new(None, None).unwrap();
        ask_members(&task, address, now(), &mut waiting, &mut report, &mut |response, report| {
            heard.push((response.payload.to_vec(), report.address));
            if heard.len() == 3 { Continuation::Stop } else { Continuation::Go }
        })
        .unwrap();
        assert_eq!(server.join().unwrap(), Type::NonConfirmable);
        heard.sort();
        assert_eq!(heard.iter().map(|(payload, _)| &payload[..]).collect::<Vec<_>>(), [b"0", b"1", b"2"]);
        heard.dedup_by_key(|(_, address)| *address);
        assert_eq!((heard.len(), report.transmissions, report.received), (3, 1, 3));
    }

    #[test]
    fn one_host_is_no_group() {
        let uri: Uri = "coap://127.0.0.1/x".parse().unwrap();
        let request = Request::get("/x");
        let task = GroupTask { uri: &uri, request: &request, leisure: LEISURE, signals: None };
        let error = ask_group(&task, &mut |_, _| Continuation::Go).unwrap_err().to_string();
        assert!(error.contains("is no multicast address"), "{error}");
    }
}
