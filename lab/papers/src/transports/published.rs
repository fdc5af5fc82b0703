//! What the paper states: of 10 octets over 20 kbit/s with an MTU of 128, and the octets of headers, also of 1,000 octets. Its
//! other figures are drawn without numbers.

use super::cell::{Cell, Link, Service, Temper};

/// Table “Network environment”.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Totals {
    /// Object download time, in milliseconds.
    pub(super) odt: f64,
    pub(super) packets: f64,
    pub(super) octets: f64,
}

/// Table “Protocol Overhead”: octets of IP, of UDP or TCP, and of the application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Overhead {
    pub(super) ip: f64,
    pub(super) transport: f64,
    pub(super) application: f64,
}

fn is_of_paper(cell: &Cell) -> bool {
    cell.link == Link::Slow && cell.temper == Temper::Warm
}

pub(super) fn totals(cell: &Cell) -> Option<Totals> {
    if !is_of_paper(cell) || cell.size != 10 {
        return None;
    }
    let (odt, packets, octets) = match cell.service {
        Service::Coap => (80.0, 2.0, 86.0),
        Service::IotHttp => (160.0, 6.0, 384.0),
        Service::IotSpdy => (250.0, 9.0, 567.0),
        Service::Spdy => (680.0, 20.0, 1_382.0),
        Service::Http => (790.0, 20.0, 1_546.0),
        _ => return None,
    };
    Some(Totals { odt, packets, octets })
}

pub(super) fn overhead(cell: &Cell) -> Option<Overhead> {
    if !is_of_paper(cell) {
        return None;
    }
    let (ip, transport, application) = match (cell.service, cell.size) {
        (Service::Coap, 10) => (40.0, 16.0, 20.0),
        (Service::IotHttp, 10) => (120.0, 148.0, 106.0),
        (Service::IotSpdy, 10) => (180.0, 208.0, 169.0),
        (Service::Coap, 1_000) => (220.0, 16.0, 22.0),
        (Service::IotHttp, 1_000) => (560.0, 588.0, 108.0),
        (Service::IotSpdy, 1_000) => (640.0, 668.0, 170.0),
        _ => return None,
    };
    Some(Overhead { ip, transport, application })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::cell::Options;
    use super::*;

    /// The tables agree with each other: headers and the object are all octets.
    #[test]
    fn headers_and_object_are_the_total() {
        for service in [Service::Coap, Service::IotHttp, Service::IotSpdy] {
            let cell =
                Cell { service, link: Link::Slow, options: Options::Lean, size: 10, temper: Temper::Warm };
            let of = overhead(&cell).unwrap();
            let total = of.ip + of.transport + of.application + 10.0;
            assert_eq!(total, totals(&cell).unwrap().octets, "{}", service.name());
        }
    }
}
