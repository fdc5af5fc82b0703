//! Rights of clients: which requests a security context may make, and which need none.

use std::collections::BTreeMap;
use std::path::Path;

use thinair_coap::oscore::{Context, ContextError, ContextId};
use thinair_coap::{Code, Endpoint, Options, Received, Response, code};

use crate::coap::CoapPeer;
use crate::coap::oscore::FolderError;

/// Name of the file with the rights of a context, in its folder.
const FILE: &str = "rights.json";

/// Methods by name.
const METHODS: [(&str, Code); 7] = [
    ("GET", Code::GET),
    ("POST", Code::POST),
    ("PUT", Code::PUT),
    ("DELETE", Code::DELETE),
    ("FETCH", code::FETCH),
    ("PATCH", code::PATCH),
    ("IPATCH", code::IPATCH),
];

/// Requests that a context may make: methods by path. The longest path that matches decides.
///
/// A path stands for one resource; with `/*` at its end, for all resources below. Methods are names; `*` stands for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights(Vec<(String, Vec<Code>)>);

impl Rights {
    /// All requests.
    pub fn all() -> Self {
        Self(vec![("/*".to_owned(), METHODS.map(|(_, method)| method).to_vec())])
    }

    /// No request.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Reads the rights in the folder of a context: `rights.json`, as in `{"/time": ["GET"], "/store/*": ["*"]}`. All requests,
    /// if there is no such file.
    ///
    /// # Errors
    /// The file cannot be read, or has other contents.
    pub fn read(folder: &Path) -> Result<Self, FolderError> {
        let path = folder.join(FILE);
        let octets = match std::fs::read(&path) {
            Ok(octets) => octets,
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(Self::all()),
            Err(why) => return Err(FolderError::File { path, why }),
        };
        let rights = serde_json::from_slice::<BTreeMap<String, Vec<String>>>(&octets);
        let rights = rights.map_err(|why| why.to_string()).and_then(Self::parsed);
        rights.map_err(|why| FolderError::Contents { path, why })
    }

    /// Reads the rights of clients by their identities, as in `{"phone": {"/time": ["GET"]}}`.
    ///
    /// # Errors
    /// The file cannot be read, or has other contents.
    pub fn read_by_identity(path: &Path) -> Result<BTreeMap<String, Self>, FolderError> {
        let octets = std::fs::read(path).map_err(|why| FolderError::File { path: path.to_owned(), why })?;
        let wrong = |why| FolderError::Contents { path: path.to_owned(), why };
        let all = serde_json::from_slice::<BTreeMap<String, BTreeMap<String, Vec<String>>>>(&octets);
        let all = all.map_err(|why| wrong(why.to_string()))?;
        all.into_iter()
            .map(|(identity, rights)| Ok((identity, Self::parsed(rights).map_err(wrong)?)))
            .collect()
    }

    fn parsed(rights: BTreeMap<String, Vec<String>>) -> Result<Self, String> {
        let mut parsed = Vec::new();
        for (path, names) in rights {
            if !path.starts_with('/') {
                return Err(format!("a path begins with a slash: `{path}`"));
            }
            let mut methods = Vec::new();
            for name in names {
                match METHODS.iter().find(|(method, _)| *method == name) {
                    Some((_, method)) => methods.push(*method),
                    None if name == "*" => methods.extend(METHODS.map(|(_, method)| method)),
                    None => return Err(format!("no method: `{name}`")),
                }
            }
            parsed.push((path, methods));
        }
        // The longest one first.
        parsed.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Ok(Self(parsed))
    }

    fn allow(&self, method: Code, options: &Options<'_>) -> bool {
        let rule = self.0.iter().find(|(path, _)| matches(path, options));
        rule.is_some_and(|(_, methods)| methods.contains(&method))
    }
}

/// True if the path of a rule stands for the path of a request.
fn matches(path: &str, options: &Options<'_>) -> bool {
    let Some(folder) = path.strip_suffix("/*") else { return options.is_path(path) };
    let mut segments = options.path();
    let folder = folder.strip_prefix('/').unwrap_or(folder);
    folder.is_empty()
        || folder.split('/').all(|part| segments.next() == Some(part.as_bytes())) && segments.next().is_some()
}

/// Security contexts of a server with their rights, and the resources that need none.
#[derive(Debug, Default)]
pub(super) struct Guard {
    rights: BTreeMap<ContextId, Rights>,
    /// True if requests have to be protected.
    is_closed: bool,
    /// Paths of resources that are open to everybody.
    open: Vec<String>,
}

impl Guard {
    /// Adds a context. From then on, requests have to be protected.
    pub(super) fn add(
        &mut self,
        endpoint: &mut Endpoint<CoapPeer>,
        context: Context,
        rights: Rights,
    ) -> Result<(), ContextError> {
        self.rights.insert(endpoint.add_context(context)?, rights);
        self.close();
        Ok(())
    }

    /// Requires that requests are protected, by a context or by the session in which they arrive.
    pub(super) const fn close(&mut self) {
        self.is_closed = true;
    }

    /// Opens a resource to requests that are not protected.
    pub(super) fn open(&mut self, path: String) {
        self.open.push(path);
    }

    /// Returns the response to a request that is not allowed. `session`: rights of the session in which it has arrived. RFC 7252,
    /// sections 5.9.2.2 and 5.9.2.4.
    pub(super) fn refusal(
        &self,
        context: Option<ContextId>,
        session: Option<&Rights>,
        request: &Received<'_>,
    ) -> Option<Response<'static>> {
        let rights = context.map(|context| self.rights.get(&context));
        let Some(rights) = rights.or_else(|| session.map(Some)) else {
            let is_open = !self.is_closed || self.open.iter().any(|path| matches(path, &request.options));
            return (!is_open).then(|| Response::new(code::UNAUTHORIZED));
        };
        let is_allowed = rights.is_some_and(|rights| rights.allow(request.code, &request.options));
        (!is_allowed).then(|| Response::new(code::FORBIDDEN))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use thinair_coap::Request;

    fn rights(text: &str) -> Result<Rights, String> {
        Rights::parsed(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn the_longest_path_decides() {
        let rights = rights(r#"{"/*": ["GET"], "/store/*": ["*"], "/store/log": []}"#).unwrap();
        let may = |method, path| rights.allow(method, &Request::get(path).options.as_options());
        assert!(may(Code::GET, "/time") && may(Code::GET, "/") && may(Code::GET, "/store"));
        assert!(!may(Code::PUT, "/time") && !may(Code::PUT, "/store"));
        assert!(may(Code::PUT, "/store/a") && may(code::IPATCH, "/store/a/b"));
        assert!(!may(Code::GET, "/store/log") && !may(Code::PUT, "/storehouse/a"));
    }

    #[test]
    fn what_is_not_named_is_not_allowed() {
        let rights = rights(r#"{"/time": ["GET"]}"#).unwrap();
        let may = |method, path| rights.allow(method, &Request::get(path).options.as_options());
        assert!(may(Code::GET, "/time") && !may(Code::POST, "/time") && !may(Code::GET, "/times"));
        let all = |method, path: &str| Rights::all().allow(method, &Request::get(path).options.as_options());
        assert!(all(Code::DELETE, "/") && all(code::FETCH, "/a/b"));
    }

    #[test]
    fn rights_that_are_misspelled_are_refused() {
        assert!(rights(r#"{"time": ["GET"]}"#).unwrap_err().contains("slash"));
        assert!(rights(r#"{"/time": ["get"]}"#).unwrap_err().contains("`get`"));
    }
}
