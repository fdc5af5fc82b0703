//! Unreachable routes of this thread's network namespace: packets to them are rejected (EHOSTUNREACH). They belong to no
//! interface, and therefore outlive all of them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::error::{ErrorContext as _, Result};
use crate::interface::{ask, family, list, route_address, set_table};

/// A network, and the length of its prefix in bits.
pub type Prefix = (IpAddr, u8);

/// Makes a network unreachable in a table. No change if it is already.
///
/// # Errors
/// Missing privilege (CAP_NET_ADMIN); the system has no IPv6 ([`Unsupported`](io::ErrorKind::Unsupported)).
pub fn add(table: u32, to: Prefix) -> Result<()> {
    match ask(RouteNetlinkMessage::NewRoute(message(table, to)), NLM_F_CREATE) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result.attempt(|| format!("make {}/{} unreachable in table {table}", to.0, to.1)),
    }
}

/// Removes the unreachable route of a network from a table.
///
/// # Errors
/// There is none, or a missing privilege (CAP_NET_ADMIN).
pub fn remove(table: u32, to: Prefix) -> Result<()> {
    ask(RouteNetlinkMessage::DelRoute(message(table, to)), 0)
        .attempt(|| format!("remove the unreachable route to {}/{} from table {table}", to.0, to.1))
}

/// Returns the networks that are unreachable in a table.
///
/// # Errors
/// The system cannot list routes.
pub fn of_table(table: u32) -> Result<Vec<Prefix>> {
    let mut found = Vec::new();
    for of in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut message = RouteMessage::default();
        message.header.address_family = of;
        match list(RouteNetlinkMessage::GetRoute(message), NLM_F_DUMP) {
            Ok(routes) => found.extend(routes.iter().filter_map(|route| in_table(route, table))),
            // Without IPv6 it has no routes.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(error) => return Err(error).attempt(|| "list routes".to_owned()),
        }
    }
    Ok(found)
}

fn in_table(route: &RouteNetlinkMessage, table: u32) -> Option<Prefix> {
    let RouteNetlinkMessage::NewRoute(route) = route else { return None };
    if route.header.kind != RouteType::Unreachable
        || !route.attributes.contains(&RouteAttribute::Table(table))
    {
        return None;
    }
    let any: IpAddr = match route.header.address_family {
        AddressFamily::Inet => Ipv4Addr::UNSPECIFIED.into(),
        _ => Ipv6Addr::UNSPECIFIED.into(),
    };
    let to = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Destination(RouteAddress::Inet(four)) => Some((*four).into()),
        RouteAttribute::Destination(RouteAddress::Inet6(six)) => Some((*six).into()),
        _ => None,
    });
    Some((to.unwrap_or(any), route.header.destination_prefix_length))
}

fn message(table: u32, (to, bits): Prefix) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(to);
    message.header.destination_prefix_length = bits;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = RouteScope::Universe;
    message.header.kind = RouteType::Unreachable;
    message.attributes.push(RouteAttribute::Destination(route_address(to)));
    set_table(&mut message, table);
    message
}
