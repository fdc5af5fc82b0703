//! ROHC under every service in virtual time, as tables and plots.

use thinair_lab::network::fetch::Service;
use thinair_report::{Axis, Cell as Field, Column, Figure, Lines, Section, Series, Table};

use super::over_rohc::{Below, Came, Case, HARMS, SIZES, compared};
use super::virtual_time::{Harm, SERVICES, what};

pub(super) fn sections(all: &[Came]) -> Vec<Section> {
    vec![alone(all), crowds(all)]
}

fn of(all: &[Came], service: Service, size: usize, below: Below, case: Case) -> Option<&Came> {
    all.iter().find(|came| (came.service, came.size, came.below, came.case) == (service, size, below, case))
}

fn table(all: &[Came], title: &str, size: usize, cases: impl Iterator<Item = Case>) -> Table {
    let mut columns = ["what happens", "service"].map(Column::text).to_vec();
    for below in Below::ALL {
        columns.push(Column::number(format!("{}: came, %", below.name())));
        columns.extend(["ms", "octets"].map(Column::number));
    }
    let mut table = Table::new(title, columns);
    for (case, service) in cases.flat_map(|case| SERVICES.map(|service| (case, service))) {
        let came = Below::ALL.map(|below| of(all, service, size, below, case));
        if came.iter().all(Option::is_none) {
            continue;
        }
        let names = [case.what(), what(service).to_owned()].map(Field::text);
        let fields = came.into_iter().flat_map(|came| {
            let Some(came) = came else { return [Field::Empty, Field::Empty, Field::Empty] };
            let number = |value: Option<f64>, decimals| {
                value.map_or(Field::Empty, |value| Field::number(value, decimals))
            };
            let decimals = u8::from(matches!(case, Case::Clean | Case::Thinned | Case::Best));
            [
                Field::number(came.share() * 100.0, 1),
                number(came.mean(), decimals),
                number(came.octets(), decimals),
            ]
        });
        table.row(names.into_iter().chain(fields));
    }
    table
}

/// Over the bit error rate, as it is without ROHC and with O-mode.
fn plot(all: &[Came], title: &str, size: usize, axis: Axis, figure: fn(&Came) -> Option<f64>) -> Figure {
    let mut lines = Lines::new(Axis::new("bit errors in 100,000"), axis);
    for service in [Service::Coap, Service::IotHttp] {
        for (below, suffix) in [(Below::Plain, ""), (Below::Optimistic, ", ROHC")] {
            let points = HARMS.into_iter().filter_map(|harm| {
                let Harm::Bits(rate) = harm else { return None };
                Some((rate * 1e5, figure(of(all, service, size, below, Case::Harmed(harm))?)?))
            });
            lines = lines.series(Series::new(format!("{}{suffix}", what(service)), points));
        }
    }
    Figure::new(title, lines)
}

fn alone(all: &[Came]) -> Section {
    let mut section = Section::new("ROHC under every service, in virtual time").text(
        "One exchange after the other over 20 kbit/s and an MTU of 128, profiles v1, tcp and coap; those from the 20th on count. \
            CoAP has one client that goes on; TCP makes a new connection each time, of which the SYN says what differs from the one \
            before where there is feedback (IR-CR, RFC 6846), and everything where there is none. ms is the mean time of objects \
            that came; octets are those on the link for each of them, with feedback and all that was lost.",
    );
    let [u, o] = [Below::Unidirectional, Below::Optimistic].map(|below| compared(all, below));
    section = section.text(format!(
        "Each packet that came out of ROHC was compared, bit for bit, with the one that went in: of {} in U-mode {} differ, of {} in \
            O-mode {}. Damaged frames are dropped by the link, so that what differs is of ROHC.",
        u.delivered, u.altered, o.delivered, o.altered
    ));
    for size in SIZES {
        section = section.table(table(all, &format!("{size} octets"), size, Case::alone()));
    }
    section
        .figure(plot(all, "Time of an object, 10 octets", 10, Axis::new("time").unit("ms"), Came::mean))
        .figure(plot(
            all,
            "Octets for an object, 10 octets",
            10,
            Axis::new("octets on the link"),
            Came::octets,
        ))
}

fn crowds(all: &[Came]) -> Section {
    let section = Section::new("Crowds over ROHC").text(
        "Clients that come together within a second, again and again; from the fifth time on they count. One queue in each direction.",
    );
    SIZES.into_iter().fold(section, |section, size| {
        section.table(table(all, &format!("Crowds, {size} octets"), size, Case::crowds()))
    })
}
