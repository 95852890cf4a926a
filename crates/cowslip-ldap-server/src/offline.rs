//! Tools on the folder of a directory that no server has open: reading it, checking it, asking the planner.
//!
//! Nothing here changes a folder; [`crate::journal::salvage`] does. Invariants: a folder is read by the same code as at a
//! server's start; no server that takes the lock writes to it meanwhile.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use cowslip_engine::Root;
use cowslip_engine::storage::{LockError, Storage, StorageLock};
use cowslip_ldap::dn::Dn;
use cowslip_ldap::filter::Filter;
use cowslip_ldap::message::{
    Limits, MessageId, Operation, Scope, SearchParameters, decode_request, write_search,
};
use cowslip_ldap::result::ResultCode;

use crate::codec::DirectoryCodec;
use crate::config::CONFIG_DN;
use crate::entry::{EntryNumber, NO_ENTRY, StoredEntry};
use crate::journal::{self, FolderReport, Loaded, LogItem, OpenError};
use crate::meta::{ENTRIES, Meta, fixed};
use crate::model::Directory;
use crate::operations::{Refusal, check_stored, uniqueness};
use crate::schema_entry::SCHEMA_DN;
use crate::search::{Progress, Search};
use crate::service::{ServiceOptions, meta_of};
use crate::tree::{Tree, normalized_name};

/// Reads the directory in a folder. Its suffixes are those that have an entry.
///
/// # Errors
/// See [`OpenError`]; a server may have it open.
pub fn load(storage: &dyn Storage, folder: &Path) -> Result<Loaded<Directory>, OpenError> {
    let _kept = keep_servers_out(storage, folder)?;
    journal::load(storage, folder, &codec())
}

/// Takes the folder's lock. A lock file that is not there, or cannot be opened for writing, is none: whoever reads a
/// backup on a read-only medium needs no lock.
fn keep_servers_out(storage: &dyn Storage, folder: &Path) -> Result<Option<Box<dyn StorageLock>>, OpenError> {
    let path = journal::lock_path(folder);
    if !storage.exists(&path).unwrap_or(false) {
        return Ok(None);
    }
    match storage.lock(&path) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Io { .. }) => Ok(None),
        Err(source) => Err(OpenError::Lock { path, source }),
    }
}

/// A codec that takes the entries at the top for the suffixes.
fn codec() -> DirectoryCodec {
    DirectoryCodec::new(Box::new(|entries| {
        let tops = entries.values().filter(|entry| entry.parent == NO_ENTRY).map(|entry| &*entry.rdn);
        let suffixes = tops.filter(|name| ![CONFIG_DN, SCHEMA_DN].contains(name));
        meta_of(entries, &ServiceOptions::new(suffixes)).map_err(|error| error.to_string())
    }))
}

/// Something about an entry that should not be so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The entry above it is not there.
    NoParent {
        /// The entry.
        number: EntryNumber,
        /// Its RDN.
        rdn: String,
        /// The number of the missing entry.
        parent: EntryNumber,
    },
    /// The entries above it lead back to it.
    Loop {
        /// The entry.
        number: EntryNumber,
        /// Its RDN.
        rdn: String,
    },
    /// Its RDN is no name under the schema.
    Name {
        /// The entry.
        number: EntryNumber,
        /// Its RDN.
        rdn: String,
        /// Why not.
        reason: String,
    },
    /// An attribute names an entry that is not there.
    NoTarget {
        /// The entry's name.
        dn: String,
        /// The attribute.
        attribute: String,
        /// The number of the missing entry.
        target: EntryNumber,
    },
    /// The schema does not allow the entry as it is.
    Schema {
        /// The entry's name.
        dn: String,
        /// Why not.
        refusal: Refusal,
    },
    /// What should be unique is not.
    NotUnique {
        /// The rule.
        rule: String,
        /// What is there twice.
        refusal: Refusal,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoParent { number, rdn, parent } => {
                write!(f, "entry {number} ({rdn}): the entry above it, {parent}, is missing")
            }
            Self::Loop { number, rdn } => {
                write!(f, "entry {number} ({rdn}): the entries above it lead back to it")
            }
            Self::Name { number, rdn, reason } => write!(f, "entry {number} ({rdn}): no name: {reason}"),
            Self::NoTarget { dn, attribute, target } => {
                write!(f, "{dn}: {attribute} names entry {target}, which is missing")
            }
            Self::Schema { dn, refusal } => write!(f, "{dn}: {}", refusal.message),
            Self::NotUnique { rule, refusal } => write!(f, "{rule}: {}", refusal.message),
        }
    }
}

/// What a look through a folder found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Verified {
    /// The files.
    pub folder: FolderReport,
    /// How many entries there are; none if the files are damaged and the entries were not looked at.
    pub entries: Option<u64>,
    /// How many problems the entries have.
    pub problems: u64,
}

/// Looks through a folder: its files' checksums, then, if they are whole, every entry. `visit` is given the batches and
/// records behind the snapshot, `tell` each problem.
///
/// # Errors
/// See [`OpenError`]; two entries of one name are one of the codec's.
pub fn verify(
    storage: &dyn Storage,
    folder: &Path,
    visit: &mut dyn FnMut(LogItem<'_>),
    tell: &mut dyn FnMut(Problem),
) -> Result<Verified, OpenError> {
    let kept = keep_servers_out(storage, folder)?;
    let report = journal::verify(storage, folder, visit)?;
    if report.damage.is_some() {
        return Ok(Verified { folder: report, entries: None, problems: 0 });
    }
    let loaded = journal::load(storage, folder, &codec())?;
    drop(kept);
    let mut problems = 0;
    check(&loaded.root, &mut |problem| {
        problems += 1;
        tell(problem);
    });
    Ok(Verified { folder: report, entries: Some(loaded.root.len(ENTRIES) as u64), problems })
}

/// Looks at every entry of a root.
pub fn check(root: &Root<Directory>, tell: &mut dyn FnMut(Problem)) {
    let meta = root.meta();
    let mut lineages = Lineages::default();
    let mut has_loop = false;
    for (number, entry) in root.scan(ENTRIES) {
        let rdn = || entry.rdn.to_string();
        match lineages.of(root, number) {
            Lineage::Whole => {}
            Lineage::Broken if root.entry(entry.parent).is_none() => {
                tell(Problem::NoParent { number, rdn: rdn(), parent: entry.parent });
            }
            // The entry above it is told of.
            Lineage::Broken => {}
            Lineage::Loop => {
                has_loop = true;
                tell(Problem::Loop { number, rdn: rdn() });
            }
        }
        if let Err(reason) = check_name(root, number, entry) {
            tell(Problem::Name { number, rdn: rdn(), reason });
        }
        check_references(root, number, entry, tell);
        if let Err(refusal) = check_stored(meta, entry) {
            tell(Problem::Schema { dn: lineages.dn(root, number), refusal });
        }
    }
    // Who asks what is below a name goes up until there is nothing above.
    for rule in meta.rules.unique.iter().filter(|_| !has_loop) {
        if let Err(refusal) = uniqueness::check_all(root, rule) {
            tell(Problem::NotUnique { rule: rule.name.clone(), refusal });
        }
    }
}

/// What became of a search that was explained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explained {
    /// What the planner did, one line for each step, indented by depth.
    pub plan: Vec<String>,
    /// How many entries were looked at.
    pub looked_at: u64,
    /// How many matched.
    pub matched: u32,
}

/// How many entries a step of an explained search looks at.
const STEP_ENTRIES: usize = 4_096;

/// Says what the planner does with a search by somebody who sees everything, and runs it.
///
/// # Errors
/// There is no such base, or its name is none.
pub fn explain(
    root: &Root<Directory>,
    base: &str,
    scope: Scope,
    filter: &Filter,
) -> Result<Explained, Refusal> {
    let parameters = SearchParameters { base, scope, attributes: &["1.1"], ..SearchParameters::default() };
    let mut message = Vec::new();
    let id = MessageId::MAX;
    write_search(&mut message, id, &parameters, filter, &[]);
    let wrong = |reason: String| Refusal::new(ResultCode::ProtocolError, reason);
    let request = decode_request(&message, &Limits::DEFAULT).map_err(|error| wrong(error.to_string()))?;
    let Operation::Search(request) = &request.operation else {
        return Err(wrong("not a search".to_owned()));
    };
    let dse = crate::search::RootDse::default();
    let limits = crate::search::Limits::default();
    let mut search = Search::new(root, request, limits, true, &dse)?;
    let plan = match scope {
        Scope::Base => vec!["looks at the base alone".to_owned()],
        _ => search.explain(root).lines,
    };
    let mut out = Vec::new();
    while search.step(root, id, STEP_ENTRIES, usize::MAX / 2, &mut out) == Progress::More {
        out.clear();
    }
    Ok(Explained { plan, looked_at: search.looked_at(), matched: search.answered() })
}

/// Whether an entry's name leads to it.
fn check_name(root: &Root<Directory>, number: EntryNumber, entry: &StoredEntry) -> Result<(), String> {
    let meta: &Meta = root.meta();
    let dn = Dn::parse(entry.rdn.as_bytes()).map_err(|error| error.to_string())?;
    let name = normalized_name(&dn, &meta.schema).map_err(|error| error.to_string())?;
    match root.child(entry.parent, &name) {
        Some(found) if found == number => {}
        Some(other) => return Err(format!("it leads to entry {other}")),
        None => return Err("it is not in the index of names".to_owned()),
    }
    for ava in dn.rdns().first().iter().flat_map(|rdn| rdn.avas()) {
        let kind = meta.schema.attribute(ava.attribute());
        let key = |kind, value: &[u8]| meta.value_key(kind, value);
        let holds = kind.is_some_and(|kind| {
            let wanted = key(kind, ava.value());
            let mut held = entry.attributes.attribute(kind, "").into_iter().flat_map(|held| held.values());
            held.any(|value| key(kind, value) == wanted)
                || meta.is_reference(kind)
                || !entry.large().is_empty()
        });
        if !holds {
            return Err(format!("the entry has no such value of {}", ava.attribute()));
        }
    }
    Ok(())
}

fn check_references(
    root: &Root<Directory>,
    number: EntryNumber,
    entry: &StoredEntry,
    tell: &mut dyn FnMut(Problem),
) {
    for attribute in entry.references() {
        for target in attribute.entries.iter().filter(|target| root.entry(*target).is_none()) {
            let name = root.meta().schema.attribute_type(attribute.kind).name().to_owned();
            tell(Problem::NoTarget { dn: root.dn(number), attribute: name, target });
        }
    }
    let is_listed =
        Tree::lookup(root, fixed::UUID, &crate::key::Key::new(entry.uuid.as_bytes())).any(|n| n == number);
    if !is_listed {
        let (rdn, reason) = (entry.rdn.to_string(), "its entryUUID leads elsewhere".to_owned());
        tell(Problem::Name { number, rdn, reason });
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lineage {
    Whole,
    Broken,
    Loop,
}

/// What is known of the entries above others, so that each is looked at once.
#[derive(Default)]
struct Lineages(HashMap<EntryNumber, Lineage>);

impl Lineages {
    fn of(&mut self, root: &Root<Directory>, number: EntryNumber) -> Lineage {
        let mut way = Vec::new();
        let mut at = number;
        let found = loop {
            if at == NO_ENTRY {
                break Lineage::Whole;
            }
            if let Some(known) = self.0.get(&at) {
                break *known;
            }
            let Some(entry) = root.entry(at) else { break Lineage::Broken };
            // Until the end is known, whoever comes back here has gone round.
            self.0.insert(at, Lineage::Loop);
            way.push(at);
            at = entry.parent;
        };
        for at in way {
            self.0.insert(at, found);
        }
        found
    }

    /// The name of an entry, or its RDN if the entries above it lead nowhere.
    fn dn(&mut self, root: &Root<Directory>, number: EntryNumber) -> String {
        match self.of(root, number) {
            Lineage::Whole => root.dn(number),
            _ => root.entry(number).map(|entry| entry.rdn.to_string()).unwrap_or_default(),
        }
    }
}
