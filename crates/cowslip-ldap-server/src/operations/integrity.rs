//! References between entries: names that become entries, and entries that go.
//!
//! Invariants: what names an entry of ours is held as its number; what named an entry that is deleted is gone with it.

use std::ops::Bound;
use std::sync::Arc;

use cowslip_engine::Draft;
use cowslip_ldap::dn::Dn;
use cowslip_ldap::result::ResultCode;

use super::refusal::Refusal;
use super::write::Circumstances;
use crate::entry::{EntryEdit, EntryNumber, Incoming, StoredEntry};
use crate::key::{KEY_BYTES_MAX, Key};
use crate::meta::{ENTRIES, Meta, fixed};
use crate::model::Directory;
use crate::tree::{Path, Tree};

/// Turns names that a new entry has, or entries below it, into references.
///
/// # Errors
/// More entries use them than one operation may change.
pub(super) fn settle_names(
    draft: &mut Draft<'_, Directory>,
    path: &Path,
    now: &Circumstances<'_>,
) -> Result<(), Refusal> {
    let prefix = path.bytes();
    // Of a long name only the beginning is in the key; each holder is looked at in the end.
    let prefix = &prefix[..prefix.len().min(KEY_BYTES_MAX)];
    let start = Bound::Included(Key::least(prefix));
    let range = draft.range(ENTRIES, fixed::UNRESOLVED, (start, Bound::Unbounded));
    let mut holders: Vec<EntryNumber> =
        range.take_while(|(key, _)| key.bytes().starts_with(prefix)).map(|(_, holder)| holder).collect();
    holders.sort_unstable();
    holders.dedup();
    check_count(holders.len(), now)?;
    for holder in holders {
        settle_holder(draft, holder);
    }
    Ok(())
}

/// The same for an entry that got a new name, with all below it.
///
/// # Errors
/// More entries use such names than one operation may change.
pub(super) fn settle_names_below(
    draft: &mut Draft<'_, Directory>,
    number: EntryNumber,
    now: &Circumstances<'_>,
) -> Result<(), Refusal> {
    let dn = draft.dn(number);
    let path = Dn::parse(dn.as_bytes()).ok().and_then(|dn| Path::new(&dn, draft.meta()).ok());
    path.map_or(Ok(()), |path| settle_names(draft, &path, now))
}

/// Holds as numbers those names of one entry that are an entry's now.
fn settle_holder(draft: &mut Draft<'_, Directory>, holder: EntryNumber) {
    let meta: &Meta = draft.meta();
    let Some(entry) = draft.entry(holder).map(Arc::clone) else { return };
    let mut edit = EntryEdit::new(&entry, |kind, value: &[u8]| meta.value_key(kind, value));
    for attribute in entry.references() {
        for (key, text) in attribute.names.iter() {
            let dn = Dn::parse(text).ok();
            let path = dn.and_then(|dn| Path::new(&dn, meta).ok());
            let Some(target) = path.and_then(|path| draft.resolve(&path).ok()) else { continue };
            let name = Incoming { text: Arc::clone(text), key: key.clone(), target: None };
            let number = Incoming { target: Some(target), ..name.clone() };
            edit.exchange(attribute.kind, &attribute.options, &name, &number);
        }
    }
    if let Some((attributes, special, delta)) = edit.finish() {
        // The same entry is named as before, so this is no change of the holder that anybody should be told of.
        let changed = entry.with_attributes(attributes, special);
        draft.put(ENTRIES, holder, Arc::new(changed), delta);
    }
}

/// Takes the references to an entry out of all that hold one.
///
/// # Errors
/// More entries refer to it than one operation may change.
pub(super) fn drop_references(
    draft: &mut Draft<'_, Directory>,
    target: EntryNumber,
    now: &Circumstances<'_>,
) -> Result<(), Refusal> {
    let mut holders: Vec<EntryNumber> =
        Tree::referrers(draft, target).map(|referrer| referrer.source).collect();
    holders.sort_unstable();
    holders.dedup();
    check_count(holders.len(), now)?;
    let meta: &Meta = draft.meta();
    for holder in holders.into_iter().filter(|holder| *holder != target) {
        let Some(entry) = draft.entry(holder).map(Arc::clone) else { continue };
        let mut edit = EntryEdit::new(&entry, |kind, value: &[u8]| meta.value_key(kind, value));
        let gone = Incoming { text: Arc::default(), key: Key::new(b""), target: Some(target) };
        for attribute in entry.references() {
            edit.remove(attribute.kind, &attribute.options, true, &gone);
        }
        if let Some((attributes, special, delta)) = edit.finish() {
            let changed = StoredEntry {
                modified_us: now.now_us,
                modifier: Arc::clone(now.who),
                csn: now.csn,
                ..entry.with_attributes(attributes, special)
            };
            draft.put(ENTRIES, holder, Arc::new(changed), delta);
        }
    }
    Ok(())
}

fn check_count(count: usize, now: &Circumstances<'_>) -> Result<(), Refusal> {
    if count < now.changes_max {
        return Ok(());
    }
    let message = format!("{count} entries refer to it; one operation changes at most {}", now.changes_max);
    Err(Refusal::new(ResultCode::AdminLimitExceeded, message))
}
