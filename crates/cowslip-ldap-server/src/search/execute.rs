//! A search while it runs, in steps that a connection can stop between.
//!
//! Invariants: each entry is answered at most once; a step looks at a bounded number of entries; where a search stands is
//! a few numbers, never a list of entries to come.

use std::time::{Duration, Instant};

use cowslip_engine::{Posting, RecordNumber, Root};
use cowslip_ldap::dn::Dn;
use cowslip_ldap::filter::{CompiledFilter, Scratch};
use cowslip_ldap::message::{EntryWriter, MessageId, Scope, SearchRequest};
use cowslip_ldap::result::ResultCode;

use super::computed::{Computed, RootDse, root_dse, subschema};
use super::planner::{self, Explanation};
use super::select::Selection;
use super::view::{Context, View};
use crate::entry::{EntryNumber, NO_ENTRY};
use crate::meta::{ENTRIES, fixed};
use crate::model::{Directory, number_key};
use crate::operations::write::found;
use crate::operations::{Refusal, prepare};
use crate::schema_entry::SCHEMA_DN;
use crate::tree::{Path, Tree};

/// What a search may cost; 0 means any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The most entries answered.
    pub entries_max: u32,
    /// The most seconds.
    pub time_s: u32,
    /// The most entries looked at.
    pub looked_at_max: u64,
}

/// How far a step came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more to do.
    More,
    /// All is done; none means success.
    Done(Option<Refusal>),
}

/// A search while it runs.
#[derive(Debug)]
pub struct Search {
    filter: CompiledFilter,
    selection: Selection,
    source: Source,
    scope: Scope,
    base: EntryNumber,
    limits: Limits,
    deadline: Option<Instant>,
    sees_all: bool,
    context: Context,
    scratch: Scratch,
    name: String,
    answered: u32,
    looked_at: u64,
}

/// Where the next entry comes from.
#[derive(Debug)]
enum Source {
    /// Candidates of the indexes, from this number on.
    Candidates(Posting, EntryNumber),
    /// The tree below the base: entries whose children from this number on are still to be seen.
    Tree(Vec<(EntryNumber, EntryNumber)>),
    /// One entry.
    Base(Option<EntryNumber>),
    /// An entry that is computed.
    Computed(Box<Computation>),
    /// Nothing more.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Computation {
    RootDse(RootDseOf),
    Subschema,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RootDseOf(&'static str);

impl Search {
    /// Begins a search on a root. Each step must be given the same one. Whoever `sees_all` is shown passwords and the configuration, too.
    ///
    /// # Errors
    /// There is no such base, or its name is none.
    pub fn new(
        root: &Root<Directory>,
        request: &SearchRequest<'_>,
        limits: Limits,
        sees_all: bool,
        server: &RootDse,
    ) -> Result<Self, Refusal> {
        let meta = root.meta();
        let filter = CompiledFilter::new(&request.filter, &meta.schema);
        let selection = Selection::new(request.attributes.iter(), request.types_only, &meta.schema);
        let limits = Limits {
            entries_max: smaller(limits.entries_max, request.size_limit),
            time_s: smaller(limits.time_s, request.time_limit_s),
            ..limits
        };
        let deadline =
            (limits.time_s > 0).then(|| Instant::now() + Duration::from_secs(limits.time_s.into()));
        let dn = prepare::name(request.base)?;
        let mut search = Self {
            filter,
            selection,
            source: Source::Nothing,
            scope: request.scope,
            base: NO_ENTRY,
            limits,
            deadline,
            sees_all,
            context: Context::default(),
            scratch: Scratch::default(),
            name: String::new(),
            answered: 0,
            looked_at: 0,
        };
        search.begin(root, &dn, server)?;
        Ok(search)
    }

    fn begin(&mut self, root: &Root<Directory>, dn: &Dn, server: &RootDse) -> Result<(), Refusal> {
        if dn.is_root() && self.scope == Scope::Base {
            self.source = Source::Computed(Box::new(Computation::RootDse(RootDseOf(server.version))));
            self.selection = std::mem::take(&mut self.selection).with_operational();
            return Ok(());
        }
        if prepare::is_schema(dn) {
            if matches!(self.scope, Scope::Base | Scope::Subtree) {
                self.source = Source::Computed(Box::new(Computation::Subschema));
            }
            return Ok(());
        }
        if !dn.is_root() {
            let path = prepare::path(dn, root.meta())?;
            // What lies below a place that is not shown is not told by how far the name leads.
            self.base = found(root, &path)
                .map_err(|refusal| if self.sees_all { refusal } else { self.blind(root, &path, refusal) })?;
            if self.is_hidden(root, self.base) {
                return Err(Refusal::new(ResultCode::NoSuchObject, "there is no such entry"));
            }
        }
        if !self.filter.can_match() {
            return Ok(());
        }
        self.source = match self.scope {
            Scope::Base => Source::Base(Some(self.base)),
            _ => self.plan(root, None),
        };
        Ok(())
    }

    /// Chooses between the candidates of the indexes and the tree below the base.
    fn plan(&self, root: &Root<Directory>, mut explanation: Option<&mut Explanation>) -> Source {
        let candidates = match &mut explanation {
            Some(explanation) => planner::explained(root, self.filter.root(), &self.context, explanation),
            None => planner::candidates(root, self.filter.root(), &self.context),
        };
        let tree = Source::Tree(vec![(self.base, RecordNumber(0))]);
        let Some(candidates) = candidates else {
            tracing::info!(base = root.dn(self.base), "unindexed search");
            return tree;
        };
        let below = self.count_below(root, candidates.len());
        if let Some(explanation) = explanation {
            let size =
                below.map_or_else(|| format!("at least {}", candidates.len()), |count| count.to_string());
            explanation.note(0, |line| line.push_str(&format!("entries below the base: {size}")));
        }
        match below {
            Some(below) if below < candidates.len() => tree,
            _ => Source::Candidates(candidates, RecordNumber(0)),
        }
    }

    /// How many entries lie in the scope, if these are fewer than `most`.
    fn count_below(&self, root: &Root<Directory>, most: usize) -> Option<usize> {
        let children = |number| root.count(fixed::CHILDREN, &number_key(number));
        let mut count = children(self.base);
        if self.scope == Scope::One || count >= most {
            return (count < most).then_some(count);
        }
        let mut open = vec![self.base];
        while let Some(number) = open.pop() {
            for child in Tree::lookup(root, fixed::CHILDREN, &number_key(number)) {
                let below = children(child);
                count += below;
                if count >= most {
                    return None;
                }
                open.extend((below > 0).then_some(child));
            }
        }
        Some(count)
    }

    /// What the planner does with a search, without running it.
    pub fn explain(&self, root: &Root<Directory>) -> Explanation {
        let mut explanation = Explanation::default();
        let source = self.plan(root, Some(&mut explanation));
        explanation.note(0, |line| {
            line.push_str(&match source {
                Source::Candidates(candidates, _) => {
                    format!("tests {} candidates of the indexes", candidates.len())
                }
                _ => "walks the tree below the base".to_owned(),
            });
        });
        explanation
    }

    /// How many entries were looked at.
    pub fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// How many entries were answered.
    pub fn answered(&self) -> u32 {
        self.answered
    }

    /// Looks at up to `entries` entries of the root that the search began on, and writes those that match until `out` has `bytes` bytes more.
    pub fn step(
        &mut self,
        root: &Root<Directory>,
        id: MessageId,
        entries: usize,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> Progress {
        if self.deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return self
                .stop(ResultCode::TimeLimitExceeded, "the search took longer than asked for or allowed");
        }
        let end = out.len() + bytes;
        for _ in 0..entries {
            if out.len() >= end {
                return Progress::More;
            }
            let Some(number) = self.next(root) else { return self.compute(root, id, out) };
            self.looked_at += 1;
            if !self.is_candidate(root, number) {
                continue;
            }
            if self.limits.looked_at_max > 0 && self.looked_at > self.limits.looked_at_max {
                return self.stop(
                    ResultCode::AdminLimitExceeded,
                    "more entries would have to be looked at than allowed",
                );
            }
            if !self.answer(root, number, id, out) {
                return self
                    .stop(ResultCode::SizeLimitExceeded, "there are more entries than asked for or allowed");
            }
        }
        Progress::More
    }

    fn stop(&mut self, code: ResultCode, message: &str) -> Progress {
        self.source = Source::Nothing;
        Progress::Done(Some(Refusal::new(code, message)))
    }

    /// Writes an entry if it matches; false if that would be one too many.
    fn answer(
        &mut self,
        root: &Root<Directory>,
        number: EntryNumber,
        id: MessageId,
        out: &mut Vec<u8>,
    ) -> bool {
        let Self { filter, selection, context, scratch, name, sees_all, .. } = self;
        let Some(entry) = root.record(ENTRIES, &number) else { return true };
        let view = View::new(root, number, entry, context, *sees_all);
        if !filter.evaluate(&view, scratch).is_true() {
            return true;
        }
        if self.limits.entries_max > 0 && self.answered >= self.limits.entries_max {
            return false;
        }
        self.answered += 1;
        name.clear();
        view.write_dn(name);
        let mut writer = EntryWriter::new(out, id, name.as_bytes());
        selection.write(&view, &mut writer);
        writer.finish(&[]);
        true
    }

    /// The next entry to look at, whether it lies in the scope or not.
    fn next(&mut self, root: &Root<Directory>) -> Option<EntryNumber> {
        match &mut self.source {
            Source::Base(number) => number.take(),
            Source::Nothing | Source::Computed(_) => None,
            Source::Candidates(candidates, next) => {
                let number = candidates.iter_from(*next).next()?;
                *next = RecordNumber(number.0.checked_add(1)?);
                Some(number)
            }
            Source::Tree(_) => self.next_of_tree(root),
        }
    }

    /// Whether an entry lies in the scope and may be seen.
    fn is_candidate(&self, root: &Root<Directory>, number: EntryNumber) -> bool {
        let is_tested = matches!(self.source, Source::Candidates(..));
        // Below a base that is shown everything is: what is hidden are whole trees.
        let may_be_hidden = self.base == NO_ENTRY;
        (!is_tested || self.is_in_scope(root, number)) && !(may_be_hidden && self.is_hidden(root, number))
    }

    fn next_of_tree(&mut self, root: &Root<Directory>) -> Option<EntryNumber> {
        let Source::Tree(open) = &mut self.source else { return None };
        // The base comes first, before its children.
        if self.looked_at == 0
            && open.len() == 1
            && open[0].1 == RecordNumber(0)
            && self.scope == Scope::Subtree
        {
            open[0].1 = RecordNumber(1);
            if self.base != NO_ENTRY {
                return Some(self.base);
            }
        }
        loop {
            let (parent, next) = open.last_mut()?;
            let children = root.posting(ENTRIES, fixed::CHILDREN, &number_key(*parent));
            let child = children.and_then(|children| children.iter_from(*next).next());
            let Some(child) = child else {
                open.pop();
                continue;
            };
            *next = RecordNumber(child.0.checked_add(1)?);
            if self.scope != Scope::One {
                open.push((child, RecordNumber(0)));
            }
            return Some(child);
        }
    }

    fn is_in_scope(&self, root: &Root<Directory>, number: EntryNumber) -> bool {
        match self.scope {
            Scope::Base => number == self.base,
            Scope::One => root.entry(number).is_some_and(|entry| entry.parent == self.base),
            Scope::Subtree => self.base == NO_ENTRY || root.is_within(number, self.base),
            Scope::Subordinates => {
                number != self.base && (self.base == NO_ENTRY || root.is_within(number, self.base))
            }
        }
    }

    /// A refusal without the name of an entry that is not shown.
    fn blind(&self, root: &Root<Directory>, path: &Path, refusal: Refusal) -> Refusal {
        let last = root.resolve(path).err().flatten();
        let is_shown = last.is_none_or(|number| !self.is_hidden(root, number));
        if is_shown { refusal } else { refusal.with_matched(String::new()) }
    }

    /// Whether an entry is not shown: the configuration to others than root, and what stands for the schema.
    fn is_hidden(&self, root: &Root<Directory>, number: EntryNumber) -> bool {
        let rules = &root.meta().rules;
        if Some(number) == rules.schema {
            return true;
        }
        let is_configuration = |config| root.is_within(number, config);
        let is_asked =
            self.base != NO_ENTRY && rules.config.is_some_and(|config| root.is_within(self.base, config));
        rules.config.is_some_and(is_configuration) && !(self.sees_all && is_asked)
    }

    fn compute(&mut self, root: &Root<Directory>, id: MessageId, out: &mut Vec<u8>) -> Progress {
        let Source::Computed(computation) = std::mem::replace(&mut self.source, Source::Nothing) else {
            return Progress::Done(None);
        };
        let meta = root.meta();
        let (dn, attributes) = match *computation {
            Computation::RootDse(RootDseOf(version)) => ("", root_dse(meta, &RootDse { version })),
            Computation::Subschema => (SCHEMA_DN, subschema(root)),
        };
        let computed = Computed { dn, attributes, schema: &meta.schema };
        if self.filter.evaluate(&computed, &mut self.scratch).is_true() {
            let mut writer = EntryWriter::new(out, id, dn.as_bytes());
            self.selection.write_all(&computed.attributes, &meta.schema, &mut writer);
            writer.finish(&[]);
            self.answered += 1;
        }
        Progress::Done(None)
    }
}

/// The smaller of two limits of which 0 means none.
fn smaller(one: u32, other: u32) -> u32 {
    if one == 0 || other == 0 { one.max(other) } else { one.min(other) }
}
