//! Import: from LDIF (RFC 2849) to a whole directory, without a server.
//!
//! Records are taken one by one, in any order: what comes before the entry above it waits for that. At the end names
//! become references and all indexes are built at once. What the records' server made is kept (`entryUUID`, times,
//! authors, `entryCSN`), what is computed when it is read is left out, and both are counted. Invariants: every record is
//! counted as imported or as rejected, with its line; an entry that was imported has passed the schema's rules; memory
//! is bounded by the entries.
//!
//! ```
//! use cowslip_ldap::ldif::LdifReader;
//! use cowslip_ldap_server::import::{ImportOptions, import};
//! let ldif = b"dn: dc=example\nobjectClass: domain\ndc: example\n\ndn: dc=b,dc=a\nobjectClass: domain\n";
//! let options = ImportOptions::new(["dc=example"]);
//! let mut rejected = Vec::new();
//! let reader = LdifReader::new(ldif.as_slice());
//! let imported = import(reader, &options, &mut |_| {}, &mut |rejection| rejected.push(rejection))?;
//! assert_eq!((imported.report.imported, rejected[0].line), (1, 5));
//! # Ok::<(), cowslip_ldap_server::import::ImportError>(())
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use cowslip_engine::{RecordNumber, Root, Uuid};
use cowslip_ldap::ldif::{LdifBody, LdifError, LdifErrorKind, LdifRecord};
use cowslip_ldap::schema::SchemaFile;

use crate::entry::{Csn, EntryEdit, EntryNumber, Incoming, NO_ENTRY, StoredEntry};
use crate::key::Key;
use crate::meta::{ENTRIES, IndexForm, Meta};
use crate::model::Directory;
use crate::operations::prepare::{self, Origin};
use crate::operations::write::{Circumstances, new_entry};
use crate::operations::{AddPlan, Refusal};
use crate::service::{ServiceError, ServiceOptions, meta_of};
use crate::tree::{Path, child_key};

pub use report::{ACCESS_RULES_LISTED_MAX, AccessRule, ImportReport, Rejection};
pub use sorting::for_client;

mod begin;
mod report;
mod sorting;

/// How an import behaves.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// What the directory is.
    pub service: ServiceOptions,
    /// Definitions that are added to the schema before the first entry.
    pub schema: Vec<SchemaFile>,
    /// Indexes besides those that every new directory has: attribute types, and their forms.
    pub indexes: Vec<(String, Vec<IndexForm>)>,
    /// Whether attributes and object classes that the schema does not have are left out; otherwise their entries are
    /// rejected.
    pub drops_unknown: bool,
    /// Who made entries that do not say it.
    pub who: Arc<str>,
}

impl ImportOptions {
    /// A directory of these names, with the standard schema.
    pub fn new(suffixes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let service = ServiceOptions::new(suffixes);
        let who = match service.suffixes.first() {
            Some(suffix) => format!("cn=admin,{suffix}"),
            None => crate::config::CONFIG_DN.to_owned(),
        };
        Self { service, schema: Vec::new(), indexes: Vec::new(), drops_unknown: false, who: who.into() }
    }
}

/// Why an import cannot be done at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The options contradict the schema.
    #[error(transparent)]
    Options(#[from] ServiceError),
    /// A definition or an index that was asked for is refused.
    #[error("{what}: {refusal}")]
    Refused {
        /// Which one.
        what: String,
        /// Why.
        refusal: Refusal,
    },
    /// The input can't be read.
    #[error("{0}")]
    Read(LdifError),
    /// What was imported contradicts itself. This is the server's fault.
    #[error("what was imported does not fit together: {0}")]
    Conflict(String),
}

/// A directory that was imported.
#[derive(Debug)]
pub struct Imported {
    /// The directory, for [`Service::create_from`](crate::service::Service::create_from).
    pub root: Root<Directory>,
    /// What became of the records.
    pub report: ImportReport,
}

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportProgress {
    /// So many records were read, up to this line.
    Reading {
        /// How many records.
        records: u64,
        /// The line, the first being 1.
        line: u64,
    },
    /// Names become references; so many entries have some that did not when they came.
    Settling {
        /// How many entries.
        entries: u64,
    },
    /// The indexes of so many entries are built.
    Indexing {
        /// How many entries.
        entries: u64,
    },
}

/// After how many records the progress is told.
const PROGRESS_RECORDS: u64 = 1_024;

/// Puts records into a new directory in memory. `tell` is told how far it is, `reject` each record that is not in it.
///
/// # Errors
/// See [`ImportError`]. A record that is wrong is none: it is rejected.
pub fn import(
    records: impl IntoIterator<Item = Result<LdifRecord, LdifError>>,
    options: &ImportOptions,
    tell: &mut dyn FnMut(ImportProgress),
    reject: &mut dyn FnMut(Rejection),
) -> Result<Imported, ImportError> {
    let mut importer = Importer::new(options)?;
    for record in records {
        let line = match record {
            Ok(record) => {
                importer.take(&record, reject);
                record.line
            }
            Err(error @ LdifError { kind: LdifErrorKind::Io(_), .. }) => {
                return Err(ImportError::Read(error));
            }
            Err(error) => {
                importer.unreadable(&error, reject);
                error.line
            }
        };
        if importer.report.read.is_multiple_of(PROGRESS_RECORDS) {
            tell(ImportProgress::Reading { records: importer.report.read, line });
        }
    }
    importer.finish(tell, reject)
}

/// An entry that is on its way into the directory.
struct Coming {
    line: u64,
    dn: String,
    plan: AddPlan,
}

/// An import while it runs, for who reads the records himself.
pub struct Importer<'o> {
    options: &'o ImportOptions,
    meta: Arc<Meta>,
    /// All entries; the number of the first is 1.
    entries: Vec<Arc<StoredEntry>>,
    /// The line of each entry; 0 for those that every directory has.
    lines: Vec<u64>,
    by_name: HashMap<Key, EntryNumber>,
    uuids: HashSet<Uuid>,
    /// Entries that came before the one above them, by its path.
    waiting: HashMap<Box<[u8]>, Vec<Coming>>,
    /// Entries with names that were no entry's when they came.
    unsettled: Vec<EntryNumber>,
    names: sorting::Names,
    report: ImportReport,
    now_us: u64,
}

impl std::fmt::Debug for Importer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Importer").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

impl<'o> Importer<'o> {
    /// An import without records.
    ///
    /// # Errors
    /// See [`ImportError`].
    pub fn new(options: &'o ImportOptions) -> Result<Self, ImportError> {
        let root = begin::root(options)?;
        let mut importer = Self {
            options,
            meta: Arc::clone(root.meta()),
            entries: Vec::new(),
            lines: Vec::new(),
            by_name: HashMap::new(),
            uuids: HashSet::new(),
            waiting: HashMap::new(),
            unsettled: Vec::new(),
            names: sorting::Names::default(),
            report: ImportReport::default(),
            now_us: crate::host::now_us(),
        };
        // The entries that every directory has are numbered from 1 on without a gap.
        for (_, entry) in root.scan(ENTRIES) {
            let name = crate::model::name_key(&importer.meta.schema, entry.parent, &entry.rdn);
            importer.insert(name, Arc::clone(entry), 0);
        }
        Ok(importer)
    }

    /// What became of the records so far.
    pub fn report(&self) -> &ImportReport {
        &self.report
    }

    /// Counts a record that could not be read.
    pub fn unreadable(&mut self, error: &LdifError, reject: &mut dyn FnMut(Rejection)) {
        self.report.read += 1;
        self.reject(
            Rejection { line: error.line, dn: String::new(), reason: error.kind.to_string() },
            reject,
        );
    }

    /// Takes a record.
    pub fn take(&mut self, record: &LdifRecord, reject: &mut dyn FnMut(Rejection)) {
        self.report.read += 1;
        let placed = self.coming(record).and_then(|coming| {
            let reason = |refusal: Refusal| refusal.message;
            self.place(coming, reject).map_err(reason)
        });
        if let Err(reason) = placed {
            self.reject(Rejection { line: record.line, dn: record.dn.clone(), reason }, reject);
        }
    }

    fn reject(&mut self, rejection: Rejection, reject: &mut dyn FnMut(Rejection)) {
        self.report.rejected += 1;
        reject(rejection);
    }

    /// Makes a plan of a record, by the schema alone.
    fn coming(&mut self, record: &LdifRecord) -> Result<Coming, String> {
        let (LdifBody::Entry(attributes) | LdifBody::Add(attributes)) = &record.body else {
            return Err("a change of an entry, which only a running server takes".to_owned());
        };
        let mut sorter = sorting::Sorter {
            schema: &self.meta.schema,
            drops_unknown: self.options.drops_unknown,
            names: &mut self.names,
            report: &mut self.report,
            line: record.line,
            dn: &record.dn,
        };
        let sorting::Sorted { given, brought, is_tombstone } = sorter.sort(attributes);
        if is_tombstone {
            return Err("an entry that was deleted (nsTombstone)".to_owned());
        }
        let plan = prepare::add(record.dn.as_bytes(), &given, brought, Origin::Import, &self.meta);
        let plan = plan.map_err(|refusal| refusal.message)?;
        if self.is_own(&plan.path) {
            return Err("an entry of the server's own configuration, which is not imported".to_owned());
        }
        Ok(Coming { line: record.line, dn: record.dn.clone(), plan })
    }

    fn is_own(&self, path: &Path) -> bool {
        let own = self.meta.rules.suffixes.iter().filter(|suffix| suffix.is_own);
        own.filter_map(|suffix| Path::new(&suffix.dn, &self.meta).ok()).any(|own| own.is_prefix_of(path))
    }

    /// Puts an entry below the one above it, and then those that waited for it; or lets it wait.
    fn place(&mut self, coming: Coming, reject: &mut dyn FnMut(Rejection)) -> Result<(), Refusal> {
        let Some(coming) = self.ready(coming)? else { return Ok(()) };
        let path = coming.plan.path.bytes();
        self.add(coming)?;
        let mut open: Vec<Coming> = self.take_waiting(&path);
        while let Some(next) = open.pop() {
            let (line, dn) = (next.line, next.dn.clone());
            let path = next.plan.path.bytes();
            match self.add(next) {
                Ok(()) => open.extend(self.take_waiting(&path)),
                Err(refusal) => self.reject(Rejection { line, dn, reason: refusal.message }, reject),
            }
        }
        Ok(())
    }

    fn take_waiting(&mut self, path: &[u8]) -> Vec<Coming> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let mut waiting = self.waiting.remove(path).unwrap_or_default();
        // The last one is taken first.
        waiting.reverse();
        waiting
    }

    /// The entry if the one above it is there; otherwise it waits.
    fn ready(&mut self, coming: Coming) -> Result<Option<Coming>, Refusal> {
        let path = &coming.plan.path;
        if !path.is_ours() {
            let code = cowslip_ldap::result::ResultCode::NoSuchObject;
            return Err(Refusal::new(code, "the name lies in none of the directory's suffixes"));
        }
        match path.parent() {
            Some(above) if self.resolve(&above).is_none() => {
                self.waiting.entry(above.bytes().into_boxed_slice()).or_default().push(coming);
                Ok(None)
            }
            _ => Ok(Some(coming)),
        }
    }

    fn resolve(&self, path: &Path) -> Option<EntryNumber> {
        let mut at = NO_ENTRY;
        for step in path.steps() {
            at = *self.by_name.get(&child_key(at, step))?;
        }
        (at != NO_ENTRY).then_some(at)
    }

    /// Adds an entry whose parent is there.
    fn add(&mut self, coming: Coming) -> Result<(), Refusal> {
        use cowslip_ldap::result::ResultCode::{AdminLimitExceeded, ConstraintViolation, EntryAlreadyExists};
        let Coming { line, plan, .. } = coming;
        let parent = plan.path.parent().and_then(|above| self.resolve(&above)).unwrap_or(NO_ENTRY);
        let name = child_key(parent, plan.path.last());
        if let Some(there) = self.by_name.get(&name) {
            let there = self.lines[there.0 as usize - 1];
            return Err(Refusal::new(EntryAlreadyExists, format!("line {there} has an entry of this name")));
        }
        let number = self.entries.len() as u64 + 1;
        let mut last_number = u32::try_from(number)
            .map_err(|_| Refusal::new(AdminLimitExceeded, "all entry numbers are used up"))?;
        let now = Circumstances {
            who: &self.options.who,
            now_us: self.now_us / 1_000_000 * 1_000_000,
            csn: Csn::new(self.now_us + number, self.options.service.host.server),
            last_number: &mut last_number,
            changes_max: 1,
        };
        let entry = new_entry(&self.meta, &plan, parent, &now, |attribute| {
            let resolved = attribute.values.iter().map(|value| Incoming {
                target: value.path.as_ref().and_then(|path| self.resolve(path)),
                ..value.incoming.clone()
            });
            resolved.collect()
        })?;
        if self.uuids.contains(&entry.uuid) {
            let message = format!("another entry has the entryUUID {}", entry.uuid);
            return Err(Refusal::new(ConstraintViolation, message));
        }
        let is_unsettled = entry.references().iter().any(|attribute| !attribute.names.is_empty());
        let number = self.insert(name, Arc::new(entry), line);
        if is_unsettled {
            self.unsettled.push(number);
        }
        self.report.imported += 1;
        Ok(())
    }

    fn insert(&mut self, name: Key, entry: Arc<StoredEntry>, line: u64) -> EntryNumber {
        let number = RecordNumber(u32::try_from(self.entries.len() + 1).unwrap_or(u32::MAX));
        self.by_name.insert(name, number);
        self.uuids.insert(entry.uuid);
        self.entries.push(entry);
        self.lines.push(line);
        number
    }

    /// Makes the directory.
    ///
    /// # Errors
    /// See [`ImportError`].
    pub fn finish(
        mut self,
        tell: &mut dyn FnMut(ImportProgress),
        reject: &mut dyn FnMut(Rejection),
    ) -> Result<Imported, ImportError> {
        self.reject_orphans(reject);
        tell(ImportProgress::Settling { entries: self.unsettled.len() as u64 });
        for number in std::mem::take(&mut self.unsettled) {
            self.settle(number);
        }
        let Self { entries, by_name, uuids, lines, options, report, .. } = self;
        drop((by_name, uuids, lines));
        tell(ImportProgress::Indexing { entries: entries.len() as u64 });
        let last_number = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        let entries: BTreeMap<EntryNumber, Arc<StoredEntry>> =
            (1..=last_number).map(RecordNumber).zip(entries).collect();
        let meta = meta_of(&entries, &options.service)?.with_last_number(last_number);
        let records = entries.into_iter().map(|(number, entry)| (ENTRIES, number, entry));
        let root = Root::load(Arc::new(meta), 0, records);
        let root = root.map_err(|conflict| ImportError::Conflict(conflict.to_string()))?;
        Ok(Imported { root, report })
    }

    /// Rejects what still waits for an entry above it, in the order of the file.
    fn reject_orphans(&mut self, reject: &mut dyn FnMut(Rejection)) {
        let mut orphans: Vec<Coming> = std::mem::take(&mut self.waiting).into_values().flatten().collect();
        orphans.sort_by_key(|orphan| orphan.line);
        for Coming { line, dn, .. } in orphans {
            let above = cowslip_ldap::dn::Dn::parse(dn.as_bytes()).ok().and_then(|dn| dn.parent());
            let reason = match above {
                Some(above) => format!("the entry above it is missing: {above}"),
                None => "the entry above it is missing".to_owned(),
            };
            self.reject(Rejection { line, dn, reason }, reject);
        }
    }

    /// Holds the names of one entry as references, as far as they are those of entries.
    fn settle(&mut self, number: EntryNumber) {
        let place = number.0 as usize - 1;
        let entry = Arc::clone(&self.entries[place]);
        let meta = Arc::clone(&self.meta);
        let mut edit = EntryEdit::new(&entry, |kind, value: &[u8]| meta.value_key(kind, value));
        for attribute in entry.references() {
            let known = attribute.entries.iter().map(|target| Incoming {
                text: Arc::default(),
                key: Key::new(b""),
                target: Some(target),
            });
            let mut values: Vec<Incoming> = known.collect();
            for (key, text) in attribute.names.iter() {
                let dn = cowslip_ldap::dn::Dn::parse(text).ok();
                let path = dn.and_then(|dn| Path::new(&dn, &meta).ok());
                let target = path.and_then(|path| self.resolve(&path));
                self.report.unresolved += u64::from(target.is_none());
                values.push(Incoming { text: Arc::clone(text), key: key.clone(), target });
            }
            edit.replace(attribute.kind, &attribute.options, true, &values);
        }
        if let Some((attributes, special, _)) = edit.finish() {
            self.entries[place] = Arc::new(StoredEntry { attributes, special, ..StoredEntry::clone(&entry) });
        }
    }
}
