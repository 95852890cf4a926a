//! The directory's part of the committer: runs one write after the other.
//!
//! Invariants: numbers of entries and of changes only grow, also across restarts; a write that was planned under another
//! schema or other rules than those of its turn is planned again; what is refused leaves nothing. After a change below
//! `cn=config` or of `cn=schema` the next write sees the new rules: both are committed in one batch.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{SystemTime, UNIX_EPOCH};

use cowslip_engine::{Batch, ChangeSet, Conflict, Draft, Host, IndexBuilder, Outcome};
use cowslip_ldap::result::ResultCode;
use cowslip_ldap::schema::Schema;

use crate::entry::{Csn, EntryNumber, StoredEntry};
use crate::indexing::Task;
use crate::meta::{ENTRIES, IndexSlot, Meta, fixed};
use crate::model::{Directory, Note};
use crate::operations::write::{self, Circumstances};
use crate::operations::{Plan, Refusal, uniqueness};
use crate::tree::Tree;
use crate::{config, schema_entry};

/// What became of a write: the generation from which on it can be seen, or why it was not done.
pub type Answer = Result<u64, Refusal>;

/// A write on its way through the pipeline.
pub struct WriteJob {
    /// The request as it came, to plan it again if need be.
    pub request: Request,
    /// The plan.
    pub plan: Plan,
    /// The version of the meta that it was planned under.
    pub version: u64,
    /// Who writes.
    pub who: Arc<str>,
    /// Where it stands, for abandon and cancel.
    pub progress: Progress,
    /// Whether the answer waits until it would survive a crash.
    pub is_durable: bool,
    /// Gets the answer, on a thread of the pipeline.
    pub answer: Box<dyn FnOnce(Answer) + Send>,
}

/// From what a plan is made again.
pub enum Request {
    /// A whole LDAP message (RFC 4511, section 4.1.1), and what makes a plan of it.
    Message(Vec<u8>, fn(&[u8], &Meta) -> Result<Plan, Refusal>),
    /// Nothing: the plan does not depend on the schema, or the caller answers for it.
    None,
}

impl fmt::Debug for WriteJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteJob").field("plan", &self.plan).field("who", &self.who).finish_non_exhaustive()
    }
}

/// Where a write stands: it can be taken back until the committer has it.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU8>);

const WAITING: u8 = 0;
const TAKEN: u8 = 1;
const CANCELED: u8 = 2;

impl Progress {
    /// Takes the write back; false if the committer has it already.
    pub fn cancel(&self) -> bool {
        self.0.compare_exchange(WAITING, CANCELED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn take(&self) -> bool {
        self.0.compare_exchange(WAITING, TAKEN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// What the committer is asked to do.
#[derive(Debug)]
pub enum Job {
    /// Change entries.
    Write(Box<WriteJob>),
    /// Switch an index in that was built aside.
    Install(Box<Install>),
}

/// An index that was built aside.
pub struct Install {
    /// What it indexes; its position is the first free one.
    pub slot: IndexSlot,
    /// The version of the meta of the root that it was built from.
    pub version: u64,
    /// Its content.
    pub builder: IndexBuilder<Directory>,
    /// Gets it back if it is too far behind, and nothing if it is in or nobody wants it any more.
    pub answer: Box<dyn FnOnce(Option<IndexBuilder<Directory>>) + Send>,
}

impl fmt::Debug for Install {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Install").field("slot", &self.slot).finish_non_exhaustive()
    }
}

/// The directory's part of the committer.
#[derive(Debug)]
pub struct DirectoryHost {
    last_number: u32,
    last_csn_us: u64,
    server: u16,
    changes_max: usize,
    tasks: Option<Sender<Task>>,
    planned_again: Arc<AtomicU64>,
}

/// How a directory numbers and bounds its changes.
#[derive(Clone, Copy, Debug)]
pub struct HostOptions {
    /// The server's number in change sequence numbers, 0 to 4095.
    pub server: u16,
    /// How many entries one operation may change.
    pub changes_max: usize,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self { server: 0, changes_max: write::CHANGES_PER_OPERATION_MAX_DEFAULT }
    }
}

impl DirectoryHost {
    /// A host that goes on after these numbers. Index work goes to `tasks`, if anybody does it.
    pub fn new(
        last_number: u32,
        last_csn_us: u64,
        options: HostOptions,
        tasks: Option<Sender<Task>>,
    ) -> Self {
        let HostOptions { server, changes_max } = options;
        Self { last_number, last_csn_us, server, changes_max, tasks, planned_again: Arc::default() }
    }

    /// How many writes were planned again because the rules had changed; for who wants to look at it.
    pub fn planned_again(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.planned_again)
    }

    fn write(&mut self, mut job: WriteJob, batch: &mut Batch<'_, Directory>) {
        if !job.progress.take() {
            let canceled = Refusal::new(ResultCode::Canceled, "canceled");
            return batch.answer(move |_| (job.answer)(Err(canceled)));
        }
        match self.prepared(&mut job, batch) {
            Ok(done) => self.commit(job, done, batch),
            Err(refusal) => batch.answer(move |outcome| {
                // What it was refused for may rest on something that was not written.
                let refusal = failure(&outcome).unwrap_or(refusal);
                (job.answer)(Err(refusal));
            }),
        }
    }

    fn prepared(&mut self, job: &mut WriteJob, batch: &Batch<'_, Directory>) -> Result<Done, Refusal> {
        let root = batch.root();
        let meta = root.meta();
        if job.version != meta.version
            && let Request::Message(message, plan) = &job.request
        {
            job.plan = plan(message, meta)?;
            self.planned_again.fetch_add(1, Ordering::Relaxed);
        }
        let now_us = now_us();
        let csn_us = now_us.max(self.last_csn_us + 1);
        let mut last_number = self.last_number;
        let mut now = Circumstances {
            who: &job.who,
            // Tools expect whole seconds of the two timestamps; the change's number has the rest.
            now_us: now_us / 1_000_000 * 1_000_000,
            csn: Csn::new(csn_us, self.server),
            last_number: &mut last_number,
            changes_max: self.changes_max,
        };
        let mut draft = Draft::new(root);
        let schema = match &job.plan {
            Plan::Schema(plan) => Some(schema_entry::change(&mut draft, plan, &mut now)?),
            plan => {
                write::run(&mut draft, plan, &mut now)?;
                None
            }
        };
        uniqueness::check(&draft)?;
        let meta = match schema {
            Some(schema) => Some(under_schema(&draft, meta, schema)?),
            None => configured(&draft, meta)?,
        };
        let changes = draft.finish().map_err(|conflict| taken(&conflict))?;
        self.last_number = last_number;
        self.last_csn_us = csn_us;
        Ok(Done { changes, meta })
    }

    fn commit(&mut self, job: WriteJob, Done { changes, meta }: Done, batch: &mut Batch<'_, Directory>) {
        let note = Note { last_number: self.last_number };
        let WriteJob { answer, is_durable, .. } = job;
        let Some(meta) = meta else {
            return batch.commit(changes, note, is_durable, move |outcome| answer(answered(&outcome)));
        };
        // Nobody waits for indexes; a new rule of uniqueness has to be looked through first.
        let before = &batch.root().meta().rules.unique;
        let has_new_rule = meta.rules.unique.iter().any(|rule| !before.contains(rule));
        let tasks = self.tasks.clone();
        let rules_before = Arc::clone(&batch.root().meta().rules);
        batch.commit(changes, note, is_durable, |_| {});
        let meta = Arc::new(meta);
        let whole = Arc::clone(&meta);
        let done = move |outcome: Outcome| match (answered(&outcome), tasks) {
            // Somebody has to build what is new and to look through what is there, before the client is told.
            (Ok(generation), Some(tasks)) => {
                let answer = if has_new_rule {
                    answer
                } else {
                    answer(Ok(generation));
                    Box::new(|_| {})
                };
                let task = Task { generation, meta: whole, rules_before, answer };
                if let Err(lost) = tasks.send(task) {
                    (lost.0.answer)(Ok(generation));
                }
            }
            (answered, _) => answer(answered),
        };
        // Nothing that was not there is in the new layout, so there is nothing to refuse.
        let switched = batch.set_meta_with(meta, Vec::new(), note, is_durable, done);
        debug_assert!(switched.is_ok(), "a layout without new indexes is taken");
    }

    fn install(&mut self, install: Install, batch: &mut Batch<'_, Directory>) {
        let Install { slot, version, builder, answer } = install;
        let meta = Arc::clone(batch.root().meta());
        if meta.version != version {
            // It was built under another schema: whoever built it looks again what is missing.
            return batch.answer(move |_| answer(None));
        }
        let wanted = config::wanted_indexes(batch.root(), &meta).unwrap_or_default();
        let is_wanted = wanted.iter().any(|index| index.kind == slot.kind && index.form == slot.form);
        if !is_wanted || meta.index(slot.kind, slot.form).is_some() {
            return batch.answer(move |_| answer(None));
        }
        let note = Note { last_number: self.last_number };
        let meta = Arc::new(meta.with_slot(slot));
        let answer = Arc::new(std::sync::Mutex::new(Some(answer)));
        let take = |answer: &std::sync::Mutex<Option<_>>| {
            answer.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
        };
        let done = Arc::clone(&answer);
        let installed = move |_| {
            if let Some(answer) = take(&done) {
                answer(None);
            }
        };
        if let Err(refused) = batch.set_meta_with(meta, vec![builder], note, false, installed) {
            let builder = refused.indexes.into_iter().next();
            if let Some(answer) = take(&answer) {
                batch.answer(move |_| answer(builder));
            }
        }
    }
}

/// A write that passed.
struct Done {
    changes: ChangeSet<Directory>,
    /// The rules from now on, if it changed them.
    meta: Option<Meta>,
}

impl Host<Directory> for DirectoryHost {
    type Job = Job;

    fn run(&mut self, job: Job, batch: &mut Batch<'_, Directory>) {
        match job {
            Job::Write(job) => self.write(*job, batch),
            Job::Install(install) => self.install(*install, batch),
        }
    }
}

/// The meta after a change of the configuration; none if the draft changed none of it.
fn configured(draft: &Draft<'_, Directory>, meta: &Meta) -> Result<Option<Meta>, Refusal> {
    let Some(config) = meta.rules.config else { return Ok(None) };
    let is_touched = draft.touched(ENTRIES).any(|(number, touched)| {
        // What was neither moved nor deleted is where it was, so one walk tells.
        let parent = |entry: Option<&Arc<StoredEntry>>| entry.map(|entry| entry.parent);
        let is_moved = parent(touched.first) != parent(touched.last);
        let was_there = is_moved && touched.first.is_some() && draft.base().is_within(*number, config);
        was_there || draft.is_within(*number, config)
    });
    if !is_touched {
        return Ok(None);
    }
    let wanted = config::wanted_indexes(draft, meta)?;
    let unique = config::unique_rules(draft, meta, &wanted)?;
    Ok(Some(meta.with_configuration(&wanted, unique)))
}

/// The meta under another schema, which the configuration must still fit.
fn under_schema(draft: &Draft<'_, Directory>, meta: &Meta, schema: Arc<Schema>) -> Result<Meta, Refusal> {
    let meta = meta.with_schema(schema);
    let wanted = config::wanted_indexes(draft, &meta)?;
    config::unique_rules(draft, &meta, &wanted)?;
    Ok(meta)
}

fn taken(conflict: &Conflict<Directory>) -> Refusal {
    match conflict.index {
        fixed::UUID => Refusal::new(ResultCode::ConstraintViolation, "another entry has this entryUUID"),
        _ => Refusal::new(ResultCode::EntryAlreadyExists, "an entry of this name exists"),
    }
}

fn answered(outcome: &Outcome) -> Answer {
    match outcome {
        Outcome::Committed { generation } => Ok(*generation),
        other => Err(failure(other).unwrap_or_else(|| Refusal::new(ResultCode::Other, "unknown outcome"))),
    }
}

fn failure(outcome: &Outcome) -> Option<Refusal> {
    match outcome {
        Outcome::Committed { .. } => None,
        Outcome::Failed { reason } => Some(Refusal::new(
            ResultCode::Unavailable,
            format!("not stored, and nothing of it was done: {reason}"),
        )),
        Outcome::ReadOnly => Some(Refusal::new(
            ResultCode::UnwillingToPerform,
            "the directory takes no changes until it is started again, because the fate of an earlier one is unknown",
        )),
        _ => {
            Some(Refusal::new(ResultCode::Other, "whether it was stored is known only after the next start"))
        }
    }
}

/// The time, in microseconds since 1970.
pub(crate) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The largest entry number and the latest change in a root, as a host goes on from them.
pub fn numbers_of(root: &cowslip_engine::Root<Directory>) -> (u32, u64) {
    let largest = |(number, us): (u32, u64), (id, entry): (EntryNumber, &Arc<StoredEntry>)| {
        (number.max(id.0), us.max(entry.csn.time_us))
    };
    root.scan(ENTRIES).fold((0, 0), largest)
}
