//! Policy routing rules of this thread's network namespace (ip-rule(8), rtnetlink(7)).

use std::io;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL};
use netlink_packet_route::route::RouteProtocol;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage, RulePortRange};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};

use crate::error::{ErrorContext as _, Result};
use crate::interface::{ask, list};

/// Table of the system's own routes (RT_TABLE_MAIN).
pub const MAIN_TABLE: u32 = libc::RT_TABLE_MAIN as u32;

/// Input interface of the host's own flows, in rules.
const LOOPBACK: &str = "lo";

/// Version of IP that a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// First and last port of a range.
pub type PortRange = (u16, u16);

/// Packets that a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// All.
    All,
    /// Packets of other hosts that this one forwards.
    Forwarded,
    /// All except UDP datagrams with one of these source ports. A reverse path check of a datagram to such a port counts as
    /// one from it (Linux 4.17).
    NotFromUdpPorts(PortRange),
}

/// A rule that uses a table. Rules of equal priority are tried in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Version of IP.
    pub family: Family,
    /// Priority: the lowest is tried first. The main table has 32,766.
    pub priority: u32,
    /// Protocol that identifies the creator of the rule (RTPROT_*, as `proto` of ip-rule(8)).
    pub protocol: u8,
    /// Packets that it applies to.
    pub selector: Selector,
    /// Table that it uses.
    pub table: u32,
    /// Prefix length in bits up to which routes are ignored. `None`: no route is.
    pub suppress: Option<u8>,
}

impl Rule {
    /// Adds the rule after others of its priority.
    ///
    /// # Errors
    /// The rule exists already ([`AlreadyExists`](io::ErrorKind::AlreadyExists)), or a missing privilege (CAP_NET_ADMIN).
    pub fn add(&self) -> Result<()> {
        ask(RouteNetlinkMessage::NewRule(self.message()), NLM_F_CREATE | NLM_F_EXCL)
            .attempt(|| format!("add a routing rule for table {}", self.table))
    }

    /// Removes the rule.
    ///
    /// # Errors
    /// It does not exist ([`NotFound`](io::ErrorKind::NotFound)), or a missing privilege (CAP_NET_ADMIN).
    pub fn remove(&self) -> Result<()> {
        ask(RouteNetlinkMessage::DelRule(self.message()), 0)
            .attempt(|| format!("remove a routing rule for table {}", self.table))
    }

    fn message(&self) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header.family = match self.family {
            Family::Ipv4 => AddressFamily::Inet,
            Family::Ipv6 => AddressFamily::Inet6,
        };
        message.header.action = RuleAction::ToTable;
        let attributes = &mut message.attributes;
        attributes.push(RuleAttribute::Priority(self.priority));
        attributes.push(RuleAttribute::Protocol(RouteProtocol::Other(self.protocol)));
        attributes.push(RuleAttribute::Table(self.table));
        attributes.extend(self.suppress.map(|bits| RuleAttribute::SuppressPrefixLen(bits.into())));
        match self.selector {
            Selector::All => {}
            Selector::Forwarded => {
                message.header.flags = RuleFlags::Invert;
                attributes.push(RuleAttribute::Iifname(LOOPBACK.to_owned()));
            }
            Selector::NotFromUdpPorts((start, end)) => {
                message.header.flags = RuleFlags::Invert;
                attributes.push(RuleAttribute::IpProtocol(IpProtocol::Udp));
                attributes.push(RuleAttribute::SourcePortRange(RulePortRange { start, end }));
            }
        }
        message
    }
}

/// An existing rule.
#[derive(Clone, Debug)]
pub struct InstalledRule {
    /// Priority.
    pub priority: u32,
    /// Table that it uses.
    pub table: u32,
    message: RuleMessage,
}

impl InstalledRule {
    /// Removes the rule.
    ///
    /// # Errors
    /// It is gone, or a missing privilege (CAP_NET_ADMIN).
    pub fn remove(self) -> Result<()> {
        ask(RouteNetlinkMessage::DelRule(self.message), 0)
            .attempt(|| format!("remove a routing rule for table {}", self.table))
    }
}

/// Returns the rules of this protocol, of both versions of IP.
///
/// # Errors
/// The system cannot list rules.
pub fn of_protocol(protocol: u8) -> Result<Vec<InstalledRule>> {
    let mut all = Vec::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut message = RuleMessage::default();
        message.header.family = family;
        match list(RouteNetlinkMessage::GetRule(message), NLM_F_DUMP) {
            Ok(found) => all.extend(found),
            // Without IPv6 it has no rules.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(error) => return Err(error).attempt(|| "list routing rules".to_owned()),
        }
    }
    let ours = RuleAttribute::Protocol(RouteProtocol::Other(protocol));
    let rules = all.into_iter().filter_map(|message| {
        let RouteNetlinkMessage::NewRule(message) = message else { return None };
        let (mut priority, mut table) = (0, u32::from(message.header.table));
        for attribute in &message.attributes {
            match attribute {
                RuleAttribute::Priority(found) => priority = *found,
                RuleAttribute::Table(found) => table = *found,
                _ => {}
            }
        }
        message.attributes.contains(&ours).then_some(InstalledRule { priority, table, message })
    });
    Ok(rules.collect())
}
