//! Interfaces, addresses and routes of this thread's network namespace (rtnetlink(7)).

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd as _;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nameindex, if_nametoindex};

use crate::error::{Error, ErrorContext as _, Result};
use crate::namespace::{Namespace, quiet_ipv6};
use crate::rule::MAIN_TABLE;

/// Number of the metric MTU in linux/rtnetlink.h.
const RTAX_MTU: u32 = 2;

/// Up, and with a carrier.
const RUNNING: InterfaceFlags = InterfaceFlags::IFF_UP.union(InterfaceFlags::IFF_LOWER_UP);

/// An interface of this thread's network namespace.
///
/// **Every method must be called in the namespace where the interface is** ([`Namespace::within`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    name: String,
    index: u32,
}

/// A route to a destination, with its metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destination, and length of its prefix in bits.
    pub to: (IpAddr, u8),
    /// Preferred source address.
    pub from: Option<IpAddr>,
    /// Largest packet, in octets. 0 for the MTU of the interface.
    pub mtu: u32,
    /// Congestion control of TCP on this route, for example `cubic`; it is set for the route because only the first
    /// namespace may choose a default. `None` for the default.
    pub congestion: Option<String>,
}

impl Interface {
    /// Finds the interface of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self> {
        let index = if_nametoindex(name).attempt(|| format!("find the interface `{name}`"))?;
        Ok(Self { name: name.to_owned(), index })
    }

    /// Returns the numbers of all interfaces.
    ///
    /// # Errors
    /// The system cannot list them.
    pub fn indices() -> Result<Vec<u32>> {
        let all = if_nameindex().attempt(|| "list interfaces".to_owned())?;
        Ok(all.iter().map(|interface| interface.index()).collect())
    }

    /// Returns the names of all interfaces, in the order of their numbers.
    ///
    /// # Errors
    /// The system cannot list them.
    pub fn names() -> Result<Vec<String>> {
        let all = if_nameindex().attempt(|| "list interfaces".to_owned())?;
        Ok(all.iter().map(|interface| interface.name().to_string_lossy().into_owned()).collect())
    }

    /// True if there is an interface of this name.
    pub fn exists(name: &str) -> bool {
        Self::named(name).is_ok()
    }

    /// Finds the interface with this name or address.
    ///
    /// # Errors
    /// There is none.
    pub fn with_name_or_address(text: &str) -> Result<Self> {
        let by_name = Self::named(text);
        let (Err(_), Ok(address)) = (&by_name, text.parse::<IpAddr>()) else { return by_name };
        let what = || format!("find the interface with the address {address}");
        let found = holders(address).attempt(what)?.next();
        Self::named(&found.ok_or_else(|| Error::new(what(), io::ErrorKind::NotFound))?)
    }

    /// Creates a virtual cable (veth), with an end of the given name in each namespace.
    ///
    /// # Errors
    /// One of the names is in use, or a missing privilege (CAP_NET_ADMIN).
    pub fn veth(one: (&Namespace, &str), other: (&Namespace, &str)) -> Result<()> {
        let mut peer = LinkMessage::default();
        peer.attributes.push(LinkAttribute::IfName(other.1.to_owned()));
        peer.attributes.push(LinkAttribute::NetNsFd(other.0.file().as_raw_fd()));
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(one.1.to_owned()));
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        let made = one.0.within(|| ask(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL))?;
        made.attempt(|| format!("create the interfaces `{}` and `{}`", one.1, other.1))
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its number in the namespace, which is not reused soon.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns true if the interface is up and has a carrier. A TUN device has one while a process is attached.
    pub fn is_running(&self) -> bool {
        let flags = |of: &InterfaceAddress| of.interface_name == self.name && of.flags.contains(RUNNING);
        getifaddrs().is_ok_and(|mut all| all.any(|of| flags(&of)))
    }

    /// Sets the interface up.
    ///
    /// # Errors
    /// Missing privilege (CAP_NET_ADMIN).
    pub fn up(&self) -> Result<()> {
        let mut message = self.message();
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.set(message, "up")
    }

    /// Sets the interface down. Its routes and its addresses of IPv6 are removed.
    ///
    /// # Errors
    /// Missing privilege (CAP_NET_ADMIN).
    pub fn down(&self) -> Result<()> {
        let mut message = self.message();
        message.header.change_mask = LinkFlags::Up;
        self.set(message, "down")
    }

    /// Removes the interface.
    ///
    /// # Errors
    /// It cannot be removed, or a missing privilege (CAP_NET_ADMIN).
    pub fn delete(self) -> Result<()> {
        ask(RouteNetlinkMessage::DelLink(self.message()), 0)
            .attempt(|| format!("remove the interface `{}`", self.name))
    }

    /// Sets its MTU, in octets. Below 1,280 the system silently removes IPv6 from the interface.
    ///
    /// # Errors
    /// The interface does not support the MTU, or a missing privilege (CAP_NET_ADMIN).
    pub fn set_mtu(&self, octets: u32) -> Result<()> {
        let mut message = self.message();
        message.attributes.push(LinkAttribute::Mtu(octets));
        self.set(message, &format!("to an MTU of {octets}"))
    }

    /// Sets the length of its send queue, in packets.
    ///
    /// # Errors
    /// Missing privilege (CAP_NET_ADMIN).
    pub fn set_queue(&self, packets: u32) -> Result<()> {
        let mut message = self.message();
        message.attributes.push(LinkAttribute::TxQueueLen(packets));
        self.set(message, &format!("to a queue of {packets} packets"))
    }

    /// Suppresses unsolicited packets: see [`Namespace::quiet`]. Must be called before [`up`](Self::up).
    ///
    /// # Errors
    /// Missing privilege (CAP_NET_ADMIN).
    pub fn quiet(&self) -> Result<()> {
        quiet_ipv6(&self.name)?;
        let mut message = self.message();
        message.header.change_mask = LinkFlags::Multicast;
        self.set(message, "to multicast off")
    }

    /// Adds an address with a prefix of `bits` bits, without a route to that network.
    ///
    /// # Errors
    /// It has the address already, or a missing privilege (CAP_NET_ADMIN).
    pub fn add_address(&self, address: IpAddr, bits: u8) -> Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = bits;
        message.header.index = self.index;
        let flags = AddressFlags::Nodad | AddressFlags::Noprefixroute;
        message.header.flags = AddressHeaderFlags::from_bits_truncate(flags.bits() as u8);
        message.attributes.push(AddressAttribute::Local(address));
        message.attributes.push(AddressAttribute::Address(address));
        message.attributes.push(AddressAttribute::Flags(flags));
        ask(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
            .attempt(|| format!("add the address {address}/{bits} to `{}`", self.name))
    }

    /// Removes an address, and with it the routes of IPv4 with that source. With the last address of IPv4 Linux removes
    /// all routes of IPv4 by the interface; with the first one of a network, its other addresses may go, too
    /// (`net.ipv4.conf.NAME.promote_secondaries`).
    ///
    /// # Errors
    /// It has no such address, or a missing privilege (CAP_NET_ADMIN).
    pub fn remove_address(&self, address: IpAddr, bits: u8) -> Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = bits;
        message.header.index = self.index;
        message.attributes.push(AddressAttribute::Local(address));
        ask(RouteNetlinkMessage::DelAddress(message), 0)
            .attempt(|| format!("remove the address {address}/{bits} from `{}`", self.name))
    }

    /// Adds a route by this interface to the main table. Existing routes stay, and of two with equal destinations the
    /// older one is used.
    ///
    /// # Errors
    /// An identical route exists ([`AlreadyExists`](io::ErrorKind::AlreadyExists)), the source is not an address of this
    /// namespace, the congestion control is unknown, or a missing privilege (CAP_NET_ADMIN).
    pub fn add_route(&self, route: &Route) -> Result<()> {
        self.add_route_in(MAIN_TABLE, route)
    }

    /// [`add_route`](Self::add_route) for another table.
    ///
    /// # Errors
    /// Those of [`add_route`](Self::add_route).
    pub fn add_route_in(&self, table: u32, route: &Route) -> Result<()> {
        // Routes of IPv6 have no order; without NLM_F_EXCL none is replaced.
        self.route(table, route, if route.to.0.is_ipv4() { NLM_F_APPEND } else { 0 })
    }

    /// Adds a route by this interface to a table, in place of an existing one to the same destination.
    ///
    /// # Errors
    /// Those of [`add_route`](Self::add_route), except that it exists.
    pub fn set_route_in(&self, table: u32, route: &Route) -> Result<()> {
        self.route(table, route, NLM_F_REPLACE)
    }

    fn route(&self, table: u32, route: &Route, flags: u16) -> Result<()> {
        let (to, bits) = route.to;
        let mut message = self.route_message(to, bits, route.from);
        set_table(&mut message, table);
        let mut metrics = Vec::new();
        if route.mtu > 0 {
            metrics.push(RouteMetric::Mtu(route.mtu));
            // The default of Linux announces at least 256 octets (net.ipv4.route.min_adv_mss).
            let headers = if to.is_ipv4() { 40 } else { 60 };
            metrics.push(RouteMetric::Advmss(route.mtu.saturating_sub(headers).max(1)));
        }
        metrics.extend(route.congestion.clone().map(RouteMetric::CcAlgo));
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        ask(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | flags)
            .attempt(|| format!("add a route to {to}/{bits} by `{}`", self.name))
    }

    /// Removes its route to `to` from a table.
    ///
    /// # Errors
    /// There is none, or a missing privilege (CAP_NET_ADMIN).
    pub fn remove_route_in(&self, table: u32, (to, bits): (IpAddr, u8)) -> Result<()> {
        let mut message = self.route_message(to, bits, None);
        set_table(&mut message, table);
        ask(RouteNetlinkMessage::DelRoute(message), 0)
            .attempt(|| format!("remove the route to {to}/{bits} by `{}`", self.name))
    }

    /// Returns another interface of this namespace that has the address.
    pub fn other_with(&self, address: IpAddr) -> Option<String> {
        holders(address).ok()?.find(|name| *name != self.name)
    }

    /// Returns a handle that limits packets to single hosts by this interface, in this namespace, wherever the caller is
    /// later.
    ///
    /// # Errors
    /// The system has no room for another file.
    pub fn limits(&self) -> Result<HostLimits> {
        let socket = open().attempt(|| "open a netlink socket".to_owned())?;
        Ok(HostLimits { interface: self.clone(), socket })
    }

    fn route_message(&self, to: IpAddr, bits: u8, from: Option<IpAddr>) -> RouteMessage {
        let mut message = RouteMessage::default();
        message.header.address_family = family(to);
        message.header.destination_prefix_length = bits;
        message.header.table = libc::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = if to.is_ipv4() { RouteScope::Link } else { RouteScope::Universe };
        message.header.kind = RouteType::Unicast;
        let attributes = &mut message.attributes;
        attributes.push(RouteAttribute::Destination(route_address(to)));
        attributes.push(RouteAttribute::Oif(self.index));
        attributes.extend(from.map(|from| RouteAttribute::PrefSource(route_address(from))));
        message
    }

    fn message(&self) -> LinkMessage {
        let mut message = LinkMessage::default();
        message.header.index = self.index;
        message
    }

    fn set(&self, message: LinkMessage, what: &str) -> Result<()> {
        ask(RouteNetlinkMessage::SetLink(message), 0).attempt(|| format!("set `{}` {what}", self.name))
    }
}

/// Limits of packets to single hosts, each with a host route.
#[derive(Debug)]
pub struct HostLimits {
    interface: Interface,
    socket: Socket,
}

impl HostLimits {
    /// Limits packets to this host to `octets`, independent of reports of routers (`mtu lock`); open streams observe it
    /// for retransmissions, too. For IPv6 also below 1,280. `from`: as in [`Route`].
    ///
    /// # Errors
    /// The interface is gone, or a missing privilege (CAP_NET_ADMIN).
    pub fn set(&mut self, host: IpAddr, from: Option<IpAddr>, octets: u32) -> Result<()> {
        let mut message = self.interface.route_message(host, bits_of(host), from);
        let metrics = vec![RouteMetric::Lock(1 << RTAX_MTU), RouteMetric::Mtu(octets)];
        message.attributes.push(RouteAttribute::Metrics(metrics));
        let message = RouteNetlinkMessage::NewRoute(message);
        ask_by(&mut self.socket, message, NLM_F_CREATE | NLM_F_REPLACE)
            .attempt(|| format!("limit packets for {host} by `{}` to {octets} octets", self.interface.name))
    }

    /// Removes the limit of this host.
    ///
    /// # Errors
    /// There is none, or a missing privilege (CAP_NET_ADMIN).
    pub fn remove(&mut self, host: IpAddr) -> Result<()> {
        let message = self.interface.route_message(host, bits_of(host), None);
        ask_by(&mut self.socket, RouteNetlinkMessage::DelRoute(message), 0)
            .attempt(|| format!("remove the route to {host} by `{}`", self.interface.name))
    }
}

/// Returns the names of the interfaces of this thread's namespace that have the address.
fn holders(address: IpAddr) -> nix::Result<impl Iterator<Item = String>> {
    let has_it = move |of: &InterfaceAddress| {
        let own = of.address.as_ref()?;
        let four = own.as_sockaddr_in().map(|four| IpAddr::V4(four.ip()));
        four.or_else(|| own.as_sockaddr_in6().map(|six| IpAddr::V6(six.ip())))
    };
    let interfaces = getifaddrs()?;
    Ok(interfaces.filter(move |of| has_it(of) == Some(address)).map(|of| of.interface_name))
}

/// Sets the table of a route, a number of 32 bits, only eight of which fit into the header.
pub(crate) fn set_table(message: &mut RouteMessage, table: u32) {
    message.header.table = u8::try_from(table).unwrap_or(libc::RT_TABLE_UNSPEC);
    message.attributes.push(RouteAttribute::Table(table));
}

/// Returns the bits of an address.
fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

pub(crate) fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

pub(crate) fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}

/// Sends one request to the kernel, and waits for its acknowledgement.
pub(crate) fn ask(message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    ask_by(&mut open()?, message, flags)
}

/// Requests a list from the kernel.
pub(crate) fn list(message: RouteNetlinkMessage, flags: u16) -> io::Result<Vec<RouteNetlinkMessage>> {
    let mut socket = open()?;
    send(&mut socket, message, flags)?;
    let mut found = Vec::new();
    loop {
        let (octets, _) = socket.recv_from_full()?;
        let mut rest = &octets[..];
        while !rest.is_empty() {
            let one = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(io::Error::other)?;
            let length = usize::try_from(one.header.length).unwrap_or(usize::MAX).next_multiple_of(4);
            match one.payload {
                NetlinkPayload::InnerMessage(message) => found.push(message),
                NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                _ => return Ok(found),
            }
            rest = rest.get(length..).unwrap_or_default();
        }
    }
}

/// Opens a netlink socket.
fn open() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

fn send(socket: &mut Socket, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    let mut request = NetlinkMessage::from(message);
    request.header.flags = NLM_F_REQUEST | flags;
    request.finalize();
    let mut octets = vec![0; request.buffer_len()];
    request.serialize(&mut octets);
    socket.send(&octets, 0).map(drop)
}

fn ask_by(socket: &mut Socket, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    send(socket, message, NLM_F_ACK | flags)?;
    let (answer, _) = socket.recv_from_full()?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer);
    match answer.map_err(io::Error::other)?.payload {
        NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
        NetlinkPayload::Error(_) => Ok(()),
        _ => Err(io::Error::other("unexpected answer of the kernel")),
    }
}
