//! Work that a change of the configuration makes and that is too long for the committer: building indexes, and looking
//! through all entries for what a new rule forbids.
//!
//! One thread does it, one task after the other. Invariants: the planner does not see an index before it is complete; a
//! new rule of uniqueness holds for all writes from its commit on, and if the entries before break it, its entry is
//! deleted again and the client is told which.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use cowslip_engine::{IndexBuilder, Pipeline, Root};
use cowslip_ldap::dn::{Ava, Dn, Rdn};

use crate::config::{CONFIG_DN, UNIQUENESS_DN};
use crate::host::{Answer, DirectoryHost, Install, Job, Progress, Request, WriteJob};
use crate::meta::{DataRules, ENTRIES, IndexSlot, Meta};
use crate::model::Directory;
use crate::operations::{Plan, Refusal, uniqueness};
use crate::tree::Path;

/// What a change of the configuration leaves to be done.
pub struct Task {
    /// The generation of the change.
    pub generation: u64,
    /// The meta from there on.
    pub meta: Arc<Meta>,
    /// The rules before.
    pub rules_before: Arc<DataRules>,
    /// The answer to the client, which waits for new rules to be looked through, but not for indexes.
    pub answer: Box<dyn FnOnce(Answer) + Send>,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("generation", &self.generation).finish_non_exhaustive()
    }
}

/// How much history is kept in memory while an index is built, in bytes: enough for it to catch up.
const HISTORY_BYTES_MAX: usize = 64 << 20;

/// An index that is so many records behind is caught up with outside the committer.
const INSTALL_BEHIND_MAX: usize = 1_000;

/// Does tasks until there can be no more.
pub fn run(tasks: &Receiver<Task>, pipeline: &Pipeline<Directory, DirectoryHost>) {
    while let Ok(task) = tasks.recv() {
        let root = pipeline.publication().current();
        let new = task.meta.rules.unique.iter().filter(|rule| !task.rules_before.unique.contains(rule));
        let broken = new.filter_map(|rule| Some((rule, uniqueness::check_all(&root, rule).err()?))).next();
        match broken {
            Some((rule, refusal)) => take_back(pipeline, &rule.name, refusal, task.answer),
            None => (task.answer)(Ok(task.generation)),
        }
        drop(root);
        build_missing(pipeline);
    }
}

/// Deletes the entry of a rule that the data breaks, then tells the client why.
fn take_back(
    pipeline: &Pipeline<Directory, DirectoryHost>,
    name: &str,
    refusal: Refusal,
    answer: Box<dyn FnOnce(Answer) + Send>,
) {
    let root = pipeline.publication().current();
    let meta = root.meta();
    let place = Dn::parse(UNIQUENESS_DN.as_bytes());
    let dn = Ava::new("cn", name.as_bytes()).and_then(|ava| place?.child(Rdn::new(vec![ava])?));
    let Ok(path) = dn.and_then(|dn| Path::new(&dn, meta)) else { return answer(Err(refusal)) };
    let job = WriteJob {
        request: Request::None,
        plan: Plan::Delete(path),
        version: meta.version,
        who: CONFIG_DN.into(),
        progress: Progress::default(),
        is_durable: true,
        answer: Box::new(move |_| answer(Err(refusal))),
    };
    // A directory that is shutting down has answered nobody.
    let _ = pipeline.submit(Job::Write(Box::new(job)));
}

/// Builds the indexes that are wanted and not there, one after the other.
fn build_missing(pipeline: &Pipeline<Directory, DirectoryHost>) {
    loop {
        if missing(&pipeline.publication().current()).is_none() {
            return;
        }
        let history = pipeline.feed().hold(HISTORY_BYTES_MAX);
        let root = pipeline.publication().current();
        let Some(slot) = missing(&root) else { return };
        let name = root.meta().schema.attribute_type(slot.kind).name().to_owned();
        tracing::info!(attribute = name, form = slot.form.name(), "building an index");
        if !build(pipeline, &root, slot) {
            return;
        }
        drop(history);
        let is_there = pipeline.publication().current().meta().index(slot.kind, slot.form).is_some();
        tracing::info!(attribute = name, form = slot.form.name(), is_there, "built an index");
    }
}

/// The first index that the configuration of a root asks for and that it does not have.
pub fn missing(root: &Root<Directory>) -> Option<IndexSlot> {
    let meta = root.meta();
    let wanted = crate::config::wanted_indexes(root, meta).ok()?;
    let missing = wanted.into_iter().find(|index| meta.index(index.kind, index.form).is_none())?;
    Some(IndexSlot { kind: missing.kind, form: missing.form, is_absent: false })
}

/// Builds one index and switches it in, or finds that it has to be begun again; false if the directory is shutting down.
fn build(pipeline: &Pipeline<Directory, DirectoryHost>, root: &Root<Directory>, slot: IndexSlot) -> bool {
    let meta = Arc::new(root.meta().with_slot(slot));
    let version = root.meta().version;
    let position = meta.last_index();
    let mut builder = IndexBuilder::build(root, meta, ENTRIES, position);
    loop {
        loop {
            match builder.catch_up(pipeline.feed()) {
                Ok(records) if records > INSTALL_BEHIND_MAX => {}
                Ok(_) => break,
                // The history no longer reaches back to where it began: it is built again from a new root.
                Err(_) => return true,
            }
        }
        let (reached, answered) = channel();
        let answer = move |builder| {
            // The other end waits below.
            let _ = reached.send(builder);
        };
        if pipeline
            .submit(Job::Install(Box::new(Install { slot, version, builder, answer: Box::new(answer) })))
            .is_err()
        {
            return false;
        }
        match answered.recv() {
            Ok(Some(refused)) => builder = refused,
            Ok(None) => return true,
            Err(_) => return false,
        }
        // It was too far behind: the writers are faster than this thread for the moment.
        std::thread::sleep(Duration::from_millis(10));
    }
}
