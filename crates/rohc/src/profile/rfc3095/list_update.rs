//! Lists of a packet at the decompressor: resolved before its headers are rebuilt, and kept in the context once these are verified.
//! RFC 3095, section 5.8.

use super::decompress::Rfc3095ReceiverContext;
use super::header::ExtensionLists;
use super::list::{Item, MAX_ITEMS, encoding};
use super::list_state::{List, compressed_icv_len, resolve_current, resolve_list};
use super::rtp::CSRC_LEN;
use super::table::Pool;
use super::tail::Tail;
use super::{BASE_IPS, CSRC, LISTS, Rfc3095Fields, has_rtp};
use crate::decompressor::Failure;
use crate::id::Format;
use crate::mode::Mode;

/// Lists after a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListUpdate {
    pub(super) lists: [List; LISTS],
}

impl ListUpdate {
    /// Octets of CSRC identifiers.
    pub(super) fn csrc_len(&self) -> usize {
        self.lists[CSRC].len() * CSRC_LEN
    }
}

impl Rfc3095ReceiverContext {
    /// Stores an item of a packet that leads to an `update` of the lists. If there is no room, items that no list names any
    /// longer are removed.
    pub(super) fn receive(
        &mut self,
        pool: &mut Pool<'_>,
        owner: usize,
        index: u8,
        item: &Item<'_>,
        update: Option<&ListUpdate>,
    ) -> Result<(), Failure> {
        if self.table.receive(pool, owner, index, item).is_ok() {
            return Ok(());
        }
        let lists = &self.lists;
        // Static chains of further IP headers use the numbers of those, and CSRC identifiers that of a second one.
        let owners = if has_rtp(self.profile) { LISTS } else { BASE_IPS };
        self.table.retain(pool, |owner, index| {
            let is_named = |list: &List| list.has(index);
            owner >= owners
                || lists.get(owner).is_some_and(|list| is_named(&list.current))
                || update.and_then(|update| update.lists.get(owner)).is_some_and(is_named)
        });
        self.table.receive(pool, owner, index, item).map_err(|_| Failure::NoMemory)
    }

    /// Resolves the list of a compressed packet for header `owner`, and sets the parts of the tail that depend on it.
    pub(super) fn resolve<'i>(
        &self,
        x: &Rfc3095Fields<'i>,
        owner: usize,
        pool: &'i Pool<'_>,
        format: Format,
        extensions: &mut ExtensionLists<'i>,
        has: &mut Tail,
    ) -> Result<List, Failure> {
        let (state, list) = (&self.lists[owner], x.extra[owner].list());
        let resolved = if has_list(x, owner) {
            resolve_list(state, list, owner, &self.table, pool, format, extensions)?
        } else if state.current.is_empty() {
            return Ok(state.current);
        } else {
            resolve_current(state, owner, &self.table, pool, format, extensions)?
        };
        if let Some(icv) = has.icv.get_mut(owner) {
            *icv = compressed_icv_len(extensions, owner, list);
        }
        Ok(resolved)
    }

    /// Stores the items of a verified packet, and its lists if the format `keeps` them.
    pub(super) fn commit_lists(
        &mut self,
        x: &Rfc3095Fields<'_>,
        update: &ListUpdate,
        initialization: Option<Format>,
        keeps: bool,
        pool: &mut Pool<'_>,
    ) -> Result<(), Failure> {
        let reliable = self.mode.mode() == Mode::Reliable;
        for i in list_owners(x) {
            let sent = x.extra[i].list();
            if initialization.is_none() && !has_list(x, i) {
                continue;
            }
            let mut items = sent.items.iter();
            for xi in sent.xis[..sent.xi_count().min(MAX_ITEMS)].iter().filter(|xi| xi.x) {
                let Some(item) = items.next() else { break };
                self.receive(pool, i, xi.index, item, Some(update))?;
            }
            let state = &mut self.lists[i];
            // RFC 3095, section 5.8.2.1 d): a list without gen_id does not update the context; in an IR packet it is the only
            // one. In R-mode all lists update it.
            if keeps && (initialization == Some(Format::Ir) || sent.has_gen_id || reliable) {
                state.current = update.lists[i];
            }
            if reliable && !sent.has_gen_id {
                state.remember_by_sn(x.sn as u8, update.lists[i]);
                if sent.encoding != encoding::GENERIC {
                    state.forget_before(sent.ref_id);
                }
            }
            if keeps && sent.has_gen_id {
                state.remember(sent.gen_id, update.lists[i]);
                if sent.encoding != encoding::GENERIC {
                    state.forget_before(sent.ref_id);
                }
            }
        }
        Ok(())
    }
}

/// Iterates over the owners of lists in a packet: the base headers, and CSRC identifiers.
#[inline]
pub(super) fn list_owners(x: &Rfc3095Fields<'_>) -> impl Iterator<Item = usize> + use<> {
    (0..BASE_IPS.min(x.ip_count)).chain(has_rtp(x.profile).then_some(CSRC))
}

/// True if a compressed packet carries a list.
#[inline]
pub(super) fn has_list(x: &Rfc3095Fields<'_>, owner: usize) -> bool {
    x.extra[owner].has_list && (x.extra[owner].ipx || owner == CSRC)
}
