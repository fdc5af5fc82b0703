//! `/time`: the time of day as text.

use thinair_coap::link_format::LinkList;
use thinair_coap::{Code, Received, Response, code};

use crate::coap::server::resource::{Moment, Resource, ResourceAnswer, ResourceState, accepted};

use super::format::TEXT;

/// Length of the text, in octets.
const LENGTH: usize = 23;

/// Calendar time, as in `2026-11-22 12:31:07 UTC`; it changes every second, and can be observed.
#[derive(Debug)]
pub struct Time {
    text: [u8; LENGTH],
    /// Time of the text, in seconds since 1970.
    calendar: u64,
}

impl Default for Time {
    fn default() -> Self {
        Self::new()
    }
}

impl Time {
    /// Creates the resource.
    pub fn new() -> Self {
        Self { text: text(0), calendar: 0 }
    }
}

impl Resource for Time {
    fn links(&self, list: &mut LinkList) {
        list.add("/time", &[("ct", "0"), ("obs", ""), ("title", "Time of day")]);
    }

    fn handle<'a>(&'a mut self, at: Moment, request: &Received<'_>) -> Option<ResourceAnswer<'a>> {
        if !request.options.is_path("/time") {
            return None;
        }
        if request.code != Code::GET {
            return Some(ResourceAnswer::Now(Response::new(code::METHOD_NOT_ALLOWED)));
        }
        if self.calendar != at.calendar {
            (self.text, self.calendar) = (text(at.calendar), at.calendar);
        }
        let response = || Response::content(&self.text[..]).format(TEXT).max_age(1);
        Some(ResourceAnswer::Now(accepted(request, TEXT, response)))
    }

    fn state(&mut self, at: Moment, request: &Received<'_>) -> Option<ResourceState> {
        let version = at.calendar;
        request.options.is_path("/time").then_some(ResourceState { version, confirmable: true })
    }
}

/// Returns a point in time as text, in the Gregorian calendar, which repeats every 400 years.
fn text(calendar: u64) -> [u8; LENGTH] {
    let (days, second) = (calendar / 86_400, calendar % 86_400);
    // From 1 March of year 0: leap days are then the last of their year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = (era * 400 + year + carry) % 10_000;
    let mut text = *b"0000-00-00 00:00:00 UTC";
    let mut put = |end: usize, mut number: u64| {
        let mut at = end;
        while number > 0 && at > 0 {
            at -= 1;
            text[at] = b'0' + (number % 10) as u8;
            number /= 10;
        }
    };
    for (end, number) in
        [(4, year), (7, month), (10, day), (13, second / 3_600), (16, second / 60 % 60), (19, second % 60)]
    {
        put(end, number);
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::coap::server::resources::support::{ask, at, get};

    #[test]
    fn the_calendar_is_right() {
        // Output of `date -u -d @SECONDS`.
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_795_350_667, "2026-11-22 12:31:07 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
            (1_709_164_800, "2024-02-29 00:00:00 UTC"),
        ] {
            assert_eq!(std::str::from_utf8(&text(seconds)).unwrap(), expected);
        }
    }

    #[test]
    fn it_is_text_for_a_second_and_nothing_else() {
        let mut time = Time::new();
        let response = ask(&mut time, at(1_795_350_667), &get("/time")).unwrap();
        assert_eq!((response.code, &*response.payload), (Code::CONTENT, &b"2026-11-22 12:31:07 UTC"[..]));
        let options = response.options.as_options();
        assert_eq!((options.content_format(), options.max_age()), (Some(0), 1));
        let json = ask(&mut time, at(0), &get("/time").accept(50)).unwrap();
        assert_eq!(json.code, code::NOT_ACCEPTABLE);
        let put = ask(&mut time, at(0), &thinair_coap::Request::put("/time", &b"12:00"[..])).unwrap();
        assert_eq!(put.code, code::METHOD_NOT_ALLOWED);
        assert_eq!(ask(&mut time, at(0), &get("/times")), None);
    }
}
