//! Which site has which NPA.

use thinair_ule::Npa;

use super::{PackagingError, PushError};
use crate::plan::Others;
use crate::unit::SiteId;

/// The NPAs of the sites of a mesh. There are 255 sites at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses(Vec<(SiteId, Npa)>);

impl Addresses {
    /// Those that the plan has. A mesh with feedback needs all of them, and `own`.
    pub(super) fn new(own: Option<Npa>, others: &Others) -> Result<Self, PackagingError> {
        let Others::Mesh(mesh) = others else { return Ok(Self::default()) };
        if mesh.feedback && own.is_none() {
            return Err(PackagingError::NoNpa("this site".to_owned()));
        }
        if let Some(site) = mesh.sites.iter().find(|site| mesh.feedback && site.npa.is_none()) {
            return Err(PackagingError::NoNpa(format!("site `{}`", site.name)));
        }
        Ok(Self(mesh.sites.iter().filter_map(|site| Some((site.id, site.npa?))).collect()))
    }

    /// That of the site that a unit is for.
    pub(super) fn of(&self, to: Option<SiteId>) -> Result<Option<Npa>, PushError> {
        let Some(to) = to else { return Ok(None) };
        let found = self.0.iter().find(|(id, _)| *id == to);
        found.map(|(_, npa)| Some(*npa)).ok_or(PushError::NoNpa(to))
    }
}

/// The NPA and the number of this site, if it has both.
pub(super) fn own(npa: Option<Npa>, others: &Others) -> Option<(Npa, SiteId)> {
    match others {
        Others::Mesh(mesh) => npa.zip(mesh.own),
        Others::Peers(_) => None,
    }
}
