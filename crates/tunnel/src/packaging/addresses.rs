//! NPAs of sites.

use thinair_ule::Npa;

use super::{PackagingError, PushError};
use crate::site_config::Others;
use crate::unit::SiteId;

/// NPAs of the sites of a mesh, at most 255.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses(Vec<(SiteId, Npa)>);

impl Addresses {
    /// Returns the NPAs of the configuration. A mesh with feedback needs those of all sites, and `own`.
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

    /// Returns the NPA of the destination site of a unit.
    pub(super) fn of(&self, to: Option<SiteId>) -> Result<Option<Npa>, PushError> {
        let Some(to) = to else { return Ok(None) };
        let found = self.0.iter().find(|(id, _)| *id == to);
        found.map(|(_, npa)| Some(*npa)).ok_or(PushError::NoNpa(to))
    }
}

/// Returns NPA and number of this site, if it has both.
pub(super) fn own(npa: Option<Npa>, others: &Others) -> Option<(Npa, SiteId)> {
    match others {
        Others::Mesh(mesh) => npa.zip(mesh.own),
        Others::Peers(_) => None,
    }
}
