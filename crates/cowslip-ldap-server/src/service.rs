//! A directory that is open: its data, its journal, and the way into its committer.
//!
//! Invariants: while a [`Service`] is open its folder is locked; the meta of its root is always the one that
//! its entries give.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use cowslip_engine::storage::Storage;
use cowslip_engine::{
    Closed, CompactionOutcome, Draft, Feed, Journal, NullJournal, Pipeline, PipelineOptions, Reader, Root,
    Uuid,
};
use cowslip_ldap::dn::Dn;
use cowslip_ldap::schema::AttributeTypeId;

use crate::codec::{DirectoryCodec, MetaOf};
use crate::config::{self, CONFIG_DN, INDEX_DN, INDEXES_DEFAULT, UNIQUENESS_DN};
use crate::entry::{Csn, EntryNumber, NO_ENTRY, StoredEntry};
use crate::host::{DirectoryHost, HostOptions, Job, numbers_of};
use crate::indexing;
use crate::journal::{self, JournalOptions, OpenError, OpenReport};
use crate::meta::{DataRules, ENTRIES, IndexSlot, Meta};
use crate::model::Directory;
use crate::operations::prepare::{self, Given, Origin};
use crate::operations::uniqueness;
use crate::operations::write::{self, Circumstances};
use crate::operations::{Brought, Plan, Refusal};
use crate::schema_entry::{self, SCHEMA_DN};
use crate::tree::Suffix;

/// The attributes under referential integrity unless told otherwise.
pub const REFERENCES_DEFAULT: [&str; 7] =
    ["member", "uniqueMember", "owner", "manager", "secretary", "seeAlso", "roleOccupant"];

/// The attributes that make their holder a group unless told otherwise.
pub const GROUPS_DEFAULT: [&str; 2] = ["member", "uniqueMember"];

/// What a directory is.
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// The names at the top of its trees.
    pub suffixes: Vec<String>,
    /// The attribute types under referential integrity.
    pub references: Vec<String>,
    /// The attribute types whose values make the holder a group of those they name.
    pub groups: Vec<String>,
    /// How changes are numbered and bounded.
    pub host: HostOptions,
    /// How the journal is kept.
    pub journal: JournalOptions,
}

impl ServiceOptions {
    /// A directory of these names.
    pub fn new(suffixes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            suffixes: suffixes.into_iter().map(Into::into).collect(),
            references: REFERENCES_DEFAULT.map(str::to_owned).to_vec(),
            groups: GROUPS_DEFAULT.map(str::to_owned).to_vec(),
            host: HostOptions::default(),
            journal: JournalOptions::default(),
        }
    }
}

/// Why a directory cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// Its folder.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What it is told to be.
    #[error("{0}")]
    Options(String),
    /// A thread could not be had.
    #[error("cannot start a thread: {0}")]
    Io(#[from] io::Error),
}

/// A directory that is open. Clones share it. It stays open until it is [shut down](Self::shutdown).
#[derive(Clone)]
pub struct Service {
    pipeline: Pipeline<Directory, DirectoryHost>,
    indexing: Arc<Mutex<Option<JoinHandle<()>>>>,
    planned_again: Arc<AtomicU64>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("pipeline", &self.pipeline).finish_non_exhaustive()
    }
}

impl Service {
    /// A directory that lives as long as the process, without entries of users.
    ///
    /// # Errors
    /// The options contradict the schema, or a thread could not be had.
    pub fn in_memory(options: &ServiceOptions) -> Result<Self, ServiceError> {
        let root = initial_root(options)?;
        let journal = NullJournal::new();
        let position = Journal::<Directory>::position(&journal);
        Self::start(root, position, journal, options)
    }

    /// Makes a directory in a folder, without entries of users.
    ///
    /// # Errors
    /// The options contradict the schema, or the folder holds one already or cannot be written.
    pub fn create(
        storage: &dyn Storage,
        folder: &Path,
        options: &ServiceOptions,
    ) -> Result<Uuid, ServiceError> {
        Self::create_from(storage, folder, options, &initial_root(options)?)
    }

    /// Makes a directory in a folder from a root, for instance one that was imported.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_from(
        storage: &dyn Storage,
        folder: &Path,
        options: &ServiceOptions,
        root: &Root<Directory>,
    ) -> Result<Uuid, ServiceError> {
        Ok(journal::create(storage, folder, &codec(options), root)?)
    }

    /// Opens the directory in a folder.
    ///
    /// # Errors
    /// See [`ServiceError`].
    pub fn open(
        storage: Arc<dyn Storage>,
        folder: &Path,
        options: &ServiceOptions,
    ) -> Result<(Self, OpenReport), ServiceError> {
        let opened = journal::open(storage, folder, codec(options), &options.journal)?;
        let service = Self::start(opened.root, opened.position, opened.journal, options)?;
        Ok((service, opened.report))
    }

    fn start<J: Journal<Directory>>(
        root: Root<Directory>,
        position: Uuid,
        journal: J,
        options: &ServiceOptions,
    ) -> Result<Self, ServiceError> {
        for rule in &root.meta().rules.unique {
            // A crash between a rule's commit and its taking back leaves one that the data breaks.
            if let Err(refusal) = uniqueness::check_all(&root, rule) {
                tracing::error!(rule = rule.name, %refusal, "a rule of uniqueness does not hold for what is there");
            }
        }
        let (last_number, last_csn_us) = numbers_of(&root);
        let last_number = last_number.max(root.meta().last_number());
        let (tasks, to_do) = channel();
        let host = DirectoryHost::new(last_number, last_csn_us, options.host, Some(tasks));
        let planned_again = host.planned_again();
        // Nobody follows but an index that is built, which holds what it needs.
        let feed = Feed::new(0, root.generation(), position);
        let pipeline_options = PipelineOptions { name: "directory".to_owned(), ..PipelineOptions::default() };
        let pipeline = Pipeline::start(root, feed, journal, host, pipeline_options)?;
        // The host holds the other end of the channel, so the thread ends when the pipeline is shut down.
        let own = pipeline.clone();
        let thread = std::thread::Builder::new().name("directory-index".to_owned());
        let thread = thread.spawn(move || indexing::run(&to_do, &own))?;
        Ok(Self { pipeline, indexing: Arc::new(Mutex::new(Some(thread))), planned_again })
    }

    /// The newest root. For each operation of a worker a [`Reader`] is better.
    pub fn root(&self) -> Arc<Root<Directory>> {
        self.pipeline.publication().current()
    }

    /// A reader of the newest root; each worker should have its own.
    pub fn reader(&self) -> Reader<Directory> {
        self.pipeline.reader()
    }

    /// The pipeline: its feed and its publication.
    pub fn pipeline(&self) -> &Pipeline<Directory, DirectoryHost> {
        &self.pipeline
    }

    /// How many writes were planned again, because schema or rules changed between their reading and their turn.
    pub fn planned_again(&self) -> u64 {
        self.planned_again.load(Ordering::Relaxed)
    }

    /// Queues a job.
    ///
    /// # Errors
    /// The directory has been shut down.
    pub fn submit(&self, job: Job) -> Result<(), Closed> {
        self.pipeline.submit(job)
    }

    /// Asks for a snapshot and a new journal, made beside the commits.
    ///
    /// # Errors
    /// The directory has been shut down.
    pub fn compact(&self, answer: impl FnOnce(CompactionOutcome) + Send + 'static) -> Result<(), Closed> {
        self.pipeline.compact(answer)
    }

    /// Makes durable what was submitted before, and ends the threads.
    ///
    /// # Errors
    /// The last sync failed.
    pub fn shutdown(&self) -> io::Result<()> {
        let ended = self.pipeline.shutdown();
        let thread = self.indexing.lock().unwrap_or_else(PoisonError::into_inner).take();
        match thread.map(JoinHandle::join) {
            Some(Err(_)) => ended.and(Err(io::Error::other("the thread that builds indexes panicked"))),
            _ => ended,
        }
    }
}

/// The codec of a directory with these options.
pub fn codec(options: &ServiceOptions) -> DirectoryCodec {
    let options = options.clone();
    let meta_of: Box<MetaOf> =
        Box::new(move |entries| meta_of(entries, &options).map_err(|error| error.to_string()));
    DirectoryCodec::new(meta_of)
}

/// The meta that a set of entries gives.
///
/// # Errors
/// The options or the entries of the configuration contradict the schema.
pub fn meta_of(
    entries: &BTreeMap<EntryNumber, Arc<StoredEntry>>,
    options: &ServiceOptions,
) -> Result<Meta, ServiceError> {
    let top = |name: &str| {
        let found = entries
            .iter()
            .find(|(_, entry)| entry.parent == NO_ENTRY && entry.rdn.eq_ignore_ascii_case(name));
        found.map(|(number, entry)| (*number, entry))
    };
    let schema_top = top(SCHEMA_DN);
    let schema =
        schema_entry::schema_of(schema_top.map(|(_, entry)| &**entry)).map_err(ServiceError::Options)?;
    let config = top(CONFIG_DN).map(|(number, _)| number);
    let invalid = |what: &str, error: &dyn fmt::Display| ServiceError::Options(format!("{what}: {error}"));
    let mut suffixes = Vec::new();
    for text in options.suffixes.iter().map(String::as_str).chain([CONFIG_DN, SCHEMA_DN]) {
        let dn = Dn::parse(text.as_bytes()).map_err(|error| invalid(text, &error))?;
        suffixes.push(
            Suffix::new(dn, [CONFIG_DN, SCHEMA_DN].contains(&text), &schema)
                .map_err(|error| invalid(text, &error))?,
        );
    }
    let types = |names: &[String]| -> Result<Vec<AttributeTypeId>, ServiceError> {
        let known =
            |name: &String| schema.attribute(name).ok_or_else(|| invalid(name, &"no such attribute type"));
        let mut types = names.iter().map(known).collect::<Result<Vec<_>, _>>()?;
        types.sort_unstable();
        types.dedup();
        Ok(types)
    };
    let rules = DataRules {
        suffixes,
        references: types(&options.references)?,
        groups: types(&options.groups)?,
        unique: Vec::new(),
        config,
        schema: schema_top.map(|(number, _)| number),
    };
    let meta = Meta::new(Arc::new(schema), Arc::new(rules), Vec::new(), 1);
    configured(entries, meta).map_err(|refusal| ServiceError::Options(refusal.message))
}

/// The meta with what the entries below `cn=config` say.
fn configured(entries: &BTreeMap<EntryNumber, Arc<StoredEntry>>, meta: Meta) -> Result<Meta, Refusal> {
    let Some(config) = meta.rules.config else { return Ok(meta) };
    let mut numbers = vec![config];
    for _ in 0..2 {
        let below =
            entries.iter().filter(|(_, entry)| numbers.contains(&entry.parent)).map(|(number, _)| *number);
        numbers = [config].into_iter().chain(below).collect();
    }
    let records =
        numbers.iter().filter_map(|number| Some((ENTRIES, *number, Arc::clone(entries.get(number)?))));
    let meta = Arc::new(meta);
    // Two entries of one name are a matter for whoever loads all of them.
    let Ok(root) = Root::<Directory>::load(Arc::clone(&meta), 0, records) else {
        return Ok(Meta::new(meta.schema.clone(), Arc::clone(&meta.rules), Vec::new(), 1));
    };
    let wanted = config::wanted_indexes(&root, &meta)?;
    let unique = config::unique_rules(&root, &meta, &wanted)?;
    let slot =
        |index: config::WantedIndex| IndexSlot { kind: index.kind, form: index.form, is_absent: false };
    let rules = DataRules { unique, ..DataRules::clone(&meta.rules) };
    Ok(Meta::new(meta.schema.clone(), Arc::new(rules), wanted.into_iter().map(slot).collect(), 1))
}

/// A root with the entries that every directory has: schema and configuration.
///
/// # Errors
/// The options contradict the schema.
pub fn initial_root(options: &ServiceOptions) -> Result<Root<Directory>, ServiceError> {
    let meta = meta_of(&BTreeMap::new(), options)?;
    let mut root = Root::<Directory>::new(Arc::new(meta));
    let who: Arc<str> = CONFIG_DN.into();
    let now_us = crate::host::now_us();
    let mut last_number = 0;
    for (dn, attributes) in initial_entries() {
        let given: Vec<Given<'_>> = attributes
            .iter()
            .map(|(name, values)| Given {
                description: name.as_bytes(),
                values: values.iter().map(|value| value.as_bytes()).collect(),
            })
            .collect();
        let refused = |refusal: Refusal| ServiceError::Options(format!("{dn}: {refusal}"));
        let plan = prepare::add(dn.as_bytes(), &given, Brought::default(), Origin::Import, root.meta())
            .map_err(refused)?;
        let mut draft = Draft::new(&root);
        let mut now = Circumstances {
            who: &who,
            now_us: now_us / 1_000_000 * 1_000_000,
            csn: Csn::new(now_us + u64::from(last_number), options.host.server),
            last_number: &mut last_number,
            changes_max: options.host.changes_max,
        };
        write::run(&mut draft, &Plan::Add(plan), &mut now).map_err(refused)?;
        let changes = draft.into_changes();
        root.apply(&changes);
    }
    let entries: BTreeMap<_, _> =
        root.scan(ENTRIES).map(|(number, entry)| (number, Arc::clone(entry))).collect();
    let meta = meta_of(&entries, options)?.with_last_number(last_number);
    let records = entries.into_iter().map(|(number, entry)| (ENTRIES, number, entry));
    Root::load(Arc::new(meta), 0, records).map_err(|conflict| ServiceError::Options(conflict.to_string()))
}

type Initial = (String, Vec<(&'static str, Vec<String>)>);

fn initial_entries() -> Vec<Initial> {
    let container = |dn: &str| (dn.to_owned(), vec![("objectClass", vec!["cowslipContainer".to_owned()])]);
    let schema = vec![("objectClass", vec!["cowslipContainer".to_owned(), "subschema".to_owned()])];
    let mut entries = vec![
        (SCHEMA_DN.to_owned(), schema),
        container(CONFIG_DN),
        container(INDEX_DN),
        container(UNIQUENESS_DN),
    ];
    for (name, forms) in INDEXES_DEFAULT {
        let forms = forms.iter().map(|form| form.name().to_owned()).collect();
        let attributes = vec![("objectClass", vec!["cowslipIndex".to_owned()]), ("indexForm", forms)];
        entries.push((format!("cn={name},{INDEX_DN}"), attributes));
    }
    entries
}
