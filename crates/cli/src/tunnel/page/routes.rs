//! Routes of the page, access checks, and security headers.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use thinair_tunnel::status::socket::AskError;
use thinair_tunnel::status::{Drop, Failure, Reason};

use super::metrics::{METRICS_TYPE, metrics};
use super::source::StatusSource;

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Static files: path, type, content. They are embedded without a build step.
const FILES: [(&str, &str, &str); 7] = [
    ("/", HTML, include_str!("page.html")),
    ("/page.css", CSS, include_str!("page.css")),
    ("/icon.svg", "image/svg+xml", include_str!("icon.svg")),
    ("/page.js", SCRIPT, include_str!("page.js")),
    ("/report.css", CSS, thinair_report::STYLESHEET),
    ("/uPlot.css", CSS, include_str!("vendor/uPlot.min.css")),
    ("/uPlot.js", SCRIPT, include_str!("vendor/uPlot.iife.min.js")),
];

/// Headers of every response: no inline scripts, no content of other sites, no framing.
const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// Returns all routes with their access checks.
pub(super) fn router(source: StatusSource) -> Router {
    let mut router = Router::new()
        .route("/status.json", get(status_json))
        .route("/metrics", get(metrics_text))
        .route("/words.json", get(words_json))
        .with_state(source)
        .fallback(|| async { plain(StatusCode::NOT_FOUND, "There is no such page.\n") });
    for (path, kind, text) in FILES {
        router = router.route(path, get(move || async move { ([(CONTENT_TYPE, kind)], text) }));
    }
    router.layer(from_fn(guard)).layer(map_response(with_headers))
}

async fn guard(request: Request, next: Next) -> Response {
    if !is_for_loopback(&request) {
        let words = "This page is served under names of loopback alone: localhost, 127.0.0.1, [::1].\n";
        return plain(StatusCode::MISDIRECTED_REQUEST, words);
    }
    if request.method() != Method::GET {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "Only GET.\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        return response;
    }
    next.run(request).await
}

async fn with_headers(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// True if the request names this machine by a loopback name. Any port is allowed, since the page may be
/// reached through a forwarded one; a foreign *name* reveals a page of another site.
fn is_for_loopback(request: &Request) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    // A request line can contain a whole URL, which then takes precedence (RFC 9112, section 3.2.2).
    host.is_some_and(|host| is_loopback(&host)) && request.uri().authority().is_none_or(is_loopback)
}

fn is_loopback(authority: &Authority) -> bool {
    let host = authority.host();
    let is_known = ["localhost", "127.0.0.1", "[::1]"].iter().any(|known| host.eq_ignore_ascii_case(known));
    let rest = authority.as_str().strip_prefix(host);
    let has_port = |rest: &str| rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    is_known && rest.is_some_and(|rest| rest.is_empty() || has_port(rest))
}

async fn status_json(State(source): State<StatusSource>) -> Response {
    match source.status().await {
        Ok(status) => axum::Json(&*status).into_response(),
        Err(error) => no_status(&error),
    }
}

async fn metrics_text(State(source): State<StatusSource>) -> Response {
    match source.status().await {
        Ok(status) => ([(CONTENT_TYPE, METRICS_TYPE)], metrics(&status)).into_response(),
        Err(error) => no_status(&error),
    }
}

/// Serves the descriptions of reasons.
async fn words_json() -> Response {
    fn words<R: Reason>() -> BTreeMap<&'static str, &'static str> {
        R::ALL.iter().map(|reason| (reason.name(), reason.words())).collect()
    }
    let all = BTreeMap::from([("drops", words::<Drop>()), ("failures", words::<Failure>())]);
    axum::Json(all).into_response()
}

fn no_status(error: &AskError) -> Response {
    plain(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n"))
}

fn plain(code: StatusCode, words: impl IntoResponse) -> Response {
    (code, [(CONTENT_TYPE, TEXT), (CACHE_CONTROL, "no-store")], words).into_response()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn taken(uri: &str, hosts: &[&str]) -> bool {
        let mut request = Request::builder().uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        is_for_loopback(&request.body(Body::empty()).unwrap())
    }

    #[test]
    fn names_of_loopback_are_taken_with_any_port() {
        for host in ["localhost:9171", "LOCALHOST", "127.0.0.1:80", "127.0.0.1", "[::1]:9171", "[::1]"] {
            assert!(taken("/", &[host]), "{host}");
        }
        assert!(taken("http://127.0.0.1:80/", &["127.0.0.1:80"]));
    }

    #[test]
    fn other_names_are_refused() {
        for host in [
            "example.org",
            "localhost.example.org",
            "127.0.0.1.example.org:80",
            "192.0.2.1",
            "[::2]",
            "",
            "me@localhost",
            "localhost:x",
            "localhost:99999",
            "localhost, example.org",
        ] {
            assert!(!taken("/", &[host]), "{host}");
        }
        assert!(!taken("/", &[]));
        assert!(!taken("/", &["localhost", "localhost"]));
        assert!(!taken("http://example.org/", &["localhost"]));
    }
}
