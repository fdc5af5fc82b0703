//! `/values`: named values of which FETCH selects some, and PATCH and iPATCH change some. RFC 8132.
//!
//! Text, a line for each value: `name=value`. FETCH has the names, one a line. PATCH and iPATCH have the values to set; an
//! empty one removes. `name+=number` adds, in PATCH alone, since iPATCH is idempotent.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use thinair_coap::link_format::LinkList;
use thinair_coap::{Code, Received, Response, code, number};

use super::super::format::TEXT;
use crate::coap::server::resource::accepted;

pub(super) const PATH: &str = "/values";

/// Largest number of values, and of characters of a name and its value.
const MOST: usize = 32;
const LONGEST: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Values(BTreeMap<String, String>);

impl Default for Values {
    fn default() -> Self {
        let first = [("temperature", "21"), ("humidity", "40"), ("pressure", "1013")];
        Self(first.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }
}

impl Values {
    pub(super) fn link(list: &mut LinkList) {
        list.add(PATH, &[("ct", "0"), ("title", "FETCH selects values, PATCH and iPATCH change some")]);
    }

    pub(super) fn handle(&mut self, request: &Received<'_>) -> Response<'static> {
        if !matches!(request.code, Code::GET | code::FETCH | code::PATCH | code::IPATCH) {
            return Response::new(code::METHOD_NOT_ALLOWED);
        }
        if !request.options.permits(true, Some(&self.etag())) {
            return Response::new(code::PRECONDITION_FAILED);
        }
        if request.code == Code::GET {
            return self.selected(request, |_| true);
        }
        if request.options.content_format().is_some_and(|format| format != TEXT) {
            return Response::new(code::UNSUPPORTED_CONTENT_FORMAT);
        }
        let Ok(body) = std::str::from_utf8(&request.payload) else { return malformed("no text") };
        if request.code == code::FETCH {
            return self.selected(request, |name| body.lines().any(|line| line.trim() == name));
        }
        // "The server MUST apply the entire set of changes atomically": section 3.
        let mut changed = self.clone();
        let applied = body.lines().try_for_each(|line| changed.apply(line, request.code == code::PATCH));
        if let Err(why) = applied {
            return malformed(why);
        }
        if changed.0.len() > MOST {
            return Response::new(code::REQUEST_ENTITY_TOO_LARGE);
        }
        *self = changed;
        Response::new(Code::CHANGED).option(number::ETAG, &self.etag())
    }

    fn apply(&mut self, line: &str, may_add: bool) -> Result<(), &'static str> {
        let (name, value) = line.split_once('=').ok_or("expected name=value")?;
        if name.len() + value.len() > LONGEST {
            return Err("a value is too long");
        }
        match name.strip_suffix('+') {
            Some(_) if !may_add => return Err("name+=number is not idempotent: use PATCH"),
            Some(name) => {
                let number = |text: &str| text.trim().parse::<i32>().map_err(|_| "no number");
                let before = self.0.get(name).map_or(Ok(0), |value| number(value))?;
                let sum = before.checked_add(number(value)?).ok_or("the sum is too large")?;
                self.0.insert(name.to_owned(), sum.to_string());
            }
            None if value.is_empty() => _ = self.0.remove(name),
            None => _ = self.0.insert(name.to_owned(), value.to_owned()),
        }
        Ok(())
    }

    fn etag(&self) -> [u8; 4] {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        (hasher.finish() as u32).to_be_bytes()
    }

    fn selected(&self, request: &Received<'_>, is_selected: impl Fn(&str) -> bool) -> Response<'static> {
        accepted(request, TEXT, || {
            let lines = self.0.iter().filter(|(name, _)| is_selected(name));
            let text: String = lines.map(|(name, value)| format!("{name}={value}\n")).collect();
            Response::content(text.into_bytes()).format(TEXT).etag(&self.etag())
        })
    }
}

fn malformed(why: &'static str) -> Response<'static> {
    Response::new(code::BAD_REQUEST).payload(why.as_bytes())
}
