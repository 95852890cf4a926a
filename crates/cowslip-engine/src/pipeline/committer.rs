//! The committer, and the thread that writes while the committer goes on.
//!
//! Invariants: at most one task is with the writing thread, and only while none is does the committer write itself;
//! messages are taken in the order of their arrival; when a batch failed, everything prepared on it fails with it.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::batch::{Batch, Prepared, Working};
use super::sink::{Failure, Sink, Written};
use super::turns::{Arrivals, Committing, Mailbox, Next};
use super::{Closed, CompactionAnswer, CompactionOutcome, Host, Outcome, PipelineOptions};
use crate::journal::Journal;
use crate::model::Model;
use crate::root::Root;

pub(super) enum Message<M: Model, H: Host<M>> {
    Job(H::Job),
    Call(Call<M, H>),
    Compact(CompactionAnswer),
    /// The writing thread is free again.
    Free(Report<M>),
    /// The long part of a compaction is done.
    CompactionRan,
    Stop,
}

/// Runs the committer, unless another thread does.
pub(super) type Drive = Arc<dyn Fn() + Send + Sync>;

/// The two ends of the committer's mailbox.
type Mails<M, H> = (Mailbox<Message<M, H>>, Arrivals<Message<M, H>>);

type Call<M, H> = Box<dyn FnOnce(&mut H, &mut Batch<'_, M>) + Send>;

pub(super) enum Report<M: Model> {
    Written(Written<M>),
    CompactionBegun(Result<(), Arc<str>>),
    CompactionFinished(Result<(), Failure>),
}

enum Task<M: Model> {
    Write(Box<Prepared<M>>, Root<M>),
    BeginCompaction,
    FinishCompaction,
}

/// How far a compaction is.
enum Stage {
    Running,
    Ran,
}

struct Compaction {
    stage: Stage,
    answers: Vec<CompactionAnswer>,
}

pub(super) struct Committer<M: Model, H: Host<M>, J: Journal<M>> {
    host: H,
    working: Working<M>,
    sink: Arc<Mutex<Sink<M, J>>>,
    arrivals: Arrivals<Message<M, H>>,
    /// Jobs and calls that arrived and have not run yet.
    waiting: VecDeque<Message<M, H>>,
    tasks: Sender<Task<M>>,
    writer: JoinHandle<()>,
    compaction: Option<Compaction>,
    stopping: bool,
    options: PipelineOptions,
}

impl<M: Model, H: Host<M>, J: Journal<M>> Committer<M, H, J> {
    pub(super) fn new(
        root: Root<M>,
        host: H,
        sink: Sink<M, J>,
        (messages, arrivals): Mails<M, H>,
        drive: Drive,
        options: PipelineOptions,
    ) -> io::Result<Self> {
        let working = Working::new(root, Arc::clone(sink.feed()));
        let sink = Arc::new(Mutex::new(sink));
        let (tasks, queue) = channel();
        let mail = Mail { messages, drive };
        let writer = Writer { sink: Arc::clone(&sink), mail, name: options.name.clone() };
        let name = format!("{}-write", options.name);
        let writer = thread::Builder::new().name(name).spawn(move || writer.run(&queue))?;
        Ok(Self {
            host,
            working,
            sink,
            arrivals,
            waiting: VecDeque::new(),
            tasks,
            writer,
            compaction: None,
            stopping: false,
            options,
        })
    }

    fn is_done(&self) -> bool {
        self.stopping
            && !self.working.in_flight
            && self.waiting.is_empty()
            && self.working.prepared.is_empty()
            && self.compaction.is_none()
            && self.working.compactions.is_empty()
    }

    fn accept(&mut self, message: Message<M, H>) {
        match message {
            Message::Job(_) | Message::Call(_) if self.stopping => {}
            Message::Job(_) | Message::Call(_) => self.waiting.push_back(message),
            Message::Compact(answer) => self.working.compactions.push(answer),
            Message::Free(report) => self.take_report(report),
            Message::CompactionRan => {
                if let Some(compaction) = &mut self.compaction {
                    compaction.stage = Stage::Ran;
                }
            }
            Message::Stop => self.stopping = true,
        }
    }

    fn run_waiting(&mut self) {
        self.tick();
        while !self.is_full() {
            let mut batch = self.working.batch();
            match self.waiting.pop_front() {
                Some(Message::Job(job)) => self.host.run(job, &mut batch),
                Some(Message::Call(call)) => call(&mut self.host, &mut batch),
                Some(_) => {}
                None => break,
            }
            self.working.prepared.jobs += 1;
            self.tick();
        }
    }

    fn tick(&mut self) {
        if let Some(deadline) = self.host.deadline() {
            let now = Instant::now();
            if deadline <= now && !self.is_full() {
                self.host.tick(now, &mut self.working.batch());
            }
        }
    }

    fn is_full(&self) -> bool {
        let prepared = &self.working.prepared;
        prepared.jobs >= self.options.jobs_per_batch_max || prepared.bytes >= self.options.batch_bytes_max
    }

    /// Writes what is prepared, here if it is quick and otherwise on the writing thread, if that is free.
    fn flush(&mut self) {
        if self.working.in_flight {
            return;
        }
        if self.working.prepared.durable {
            let mut in_flight = std::mem::take(&mut self.working.in_flight_changes);
            let changes = self.working.prepared_changes();
            in_flight.extend(changes.map(|(generation, changes)| (generation, Arc::clone(changes))));
            self.working.in_flight_changes = in_flight;
        }
        // Taken even if nothing is to be written: the jobs that were counted are done.
        let prepared = std::mem::take(&mut self.working.prepared);
        if prepared.is_empty() {
            return;
        }
        let root = self.working.root.clone();
        if prepared.durable {
            self.give(Task::Write(Box::new(prepared), root));
        } else {
            let written = write(&self.sink, prepared, root);
            self.take_report(Report::Written(written));
        }
    }

    fn give(&mut self, task: Task<M>) {
        self.working.in_flight = true;
        if let Err(refused) = self.tasks.send(task) {
            // The writing thread catches what panics in it, so this cannot happen; if it does, nobody may be left
            // without an answer.
            let unanswered = match refused.0 {
                Task::Write(prepared, _) => Some(*prepared),
                Task::BeginCompaction | Task::FinishCompaction => None,
            };
            self.take_report(Report::Written(Err((Failure::panicked(), unanswered))));
        }
    }

    fn take_report(&mut self, report: Report<M>) {
        self.working.in_flight = false;
        self.working.in_flight_changes.clear();
        match report {
            Report::Written(Ok(wants_compaction)) => {
                if wants_compaction && self.compaction.is_none() && self.working.compactions.is_empty() {
                    self.working.compactions.push(Box::new(|_| {}));
                }
            }
            Report::Written(Err((failure, unanswered))) => self.fall_back(&failure, unanswered),
            Report::CompactionBegun(Ok(())) => {}
            Report::CompactionBegun(Err(reason)) => {
                self.end_compaction(&CompactionOutcome::Failed { reason });
            }
            Report::CompactionFinished(Ok(())) => self.end_compaction(&CompactionOutcome::Done),
            Report::CompactionFinished(Err(failure)) => {
                let reason = Arc::clone(&failure.reason);
                self.end_compaction(&CompactionOutcome::Failed { reason });
                if failure.unknown {
                    self.fall_back(&failure, None);
                }
            }
        }
    }

    /// Goes back to the published root; only then the batch that failed is answered, and what was prepared on it.
    fn fall_back(&mut self, failure: &Failure, unanswered: Option<Prepared<M>>) {
        self.working.read_only |= failure.unknown;
        let prepared = std::mem::take(&mut self.working.prepared);
        let published = locked(&self.sink).publication().current();
        self.working.root = Root::clone(&published);
        self.working.replaced_at = None;
        self.host.reset();
        if let Some(unanswered) = unanswered {
            unanswered.answer_all(&failure.outcome());
        }
        prepared.answer_all(&Outcome::Failed { reason: Arc::clone(&failure.reason) });
    }

    fn advance_compaction(&mut self) {
        if self.working.in_flight {
            return;
        }
        match &self.compaction {
            Some(Compaction { stage: Stage::Ran, .. }) if self.working.read_only => {
                self.refuse_compaction("the database is read-only");
            }
            Some(Compaction { stage: Stage::Ran, .. }) => self.give(Task::FinishCompaction),
            Some(Compaction { stage: Stage::Running, .. }) => {}
            None if self.working.compactions.is_empty() => {}
            None => {
                let answers = std::mem::take(&mut self.working.compactions);
                self.compaction = Some(Compaction { stage: Stage::Running, answers });
                if self.working.read_only {
                    self.refuse_compaction("the database is read-only");
                } else if self.stopping {
                    self.refuse_compaction("the database is being shut down");
                } else {
                    self.give(Task::BeginCompaction);
                }
            }
        }
    }

    fn refuse_compaction(&mut self, reason: &str) {
        self.end_compaction(&CompactionOutcome::Failed { reason: reason.into() });
    }

    fn end_compaction(&mut self, outcome: &CompactionOutcome) {
        for answer in self.compaction.take().into_iter().flat_map(|compaction| compaction.answers) {
            answer(outcome.clone());
        }
    }
}

impl<M: Model, H: Host<M>, J: Journal<M>> Committing for Committer<M, H, J> {
    fn turn(&mut self) -> Next {
        while let Some(message) = self.arrivals.take() {
            self.accept(message);
        }
        loop {
            self.run_waiting();
            // Before the flush, because under load the writing thread is free for a moment only; and after it, because
            // what was just written may want a compaction.
            self.advance_compaction();
            self.flush();
            self.advance_compaction();
            // A batch that was full and has been written here leaves room for the rest.
            if self.waiting.is_empty() || self.is_full() {
                break;
            }
        }
        // A full batch takes no ticks; the writing thread's report brings the next turn.
        let deadline = if self.is_full() { None } else { self.host.deadline() };
        Next { deadline, is_done: self.is_done() }
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        drop(self.tasks);
        // It has no task, so it ends as soon as it sees the queue closed.
        let _ = self.writer.join();
        // What was written without asking for durability is made durable on an orderly end.
        if self.working.read_only { Ok(()) } else { locked(&self.sink).journal.make_durable() }
    }
}

/// The writing thread.
struct Writer<M: Model, H: Host<M>, J: Journal<M>> {
    sink: Arc<Mutex<Sink<M, J>>>,
    mail: Mail<M, H>,
    name: String,
}

/// How the threads below the committer reach it.
struct Mail<M: Model, H: Host<M>> {
    messages: Mailbox<Message<M, H>>,
    drive: Drive,
}

impl<M: Model, H: Host<M>> Clone for Mail<M, H> {
    fn clone(&self) -> Self {
        Self { messages: self.messages.clone(), drive: Arc::clone(&self.drive) }
    }
}

impl<M: Model, H: Host<M>> Mail<M, H> {
    fn send(&self, message: Message<M, H>) -> Result<(), Closed> {
        self.messages.post(message)?;
        (self.drive)();
        Ok(())
    }
}

impl<M: Model, H: Host<M>, J: Journal<M>> Writer<M, H, J> {
    fn run(&self, queue: &Receiver<Task<M>>) {
        let (ran, results) = channel();
        while let Ok(task) = queue.recv() {
            let report = match task {
                Task::Write(prepared, root) => Report::Written(write(&self.sink, *prepared, root)),
                Task::BeginCompaction => Report::CompactionBegun(self.begin_compaction(&ran)),
                Task::FinishCompaction => {
                    Report::CompactionFinished(self.finish_compaction(results.try_recv().ok().flatten()))
                }
            };
            if self.mail.send(Message::Free(report)).is_err() {
                return;
            }
        }
    }

    fn begin_compaction(&self, ran: &Sender<Option<J::Compacted>>) -> Result<(), Arc<str>> {
        let mut sink = locked(&self.sink);
        let snapshot = sink.publication().current();
        let begun = catch_unwind(AssertUnwindSafe(|| sink.journal.begin_compaction(snapshot)));
        let compaction = match begun {
            Ok(Ok(compaction)) => compaction,
            Ok(Err(error)) => return Err(error.to_string().into()),
            Err(_) => return Err(Failure::panicked().reason),
        };
        let (ran, mail) = (ran.clone(), self.mail.clone());
        let run = move || {
            let compacted = catch_unwind(AssertUnwindSafe(|| J::run_compaction(compaction))).ok();
            let _ = ran.send(compacted);
            let _ = mail.send(Message::CompactionRan);
        };
        let thread = thread::Builder::new().name(format!("{}-compact", self.name));
        thread.spawn(run).map(drop).map_err(|error| {
            sink.journal.abandon_compaction();
            error.to_string().into()
        })
    }

    fn finish_compaction(&self, compacted: Option<J::Compacted>) -> Result<(), Failure> {
        let mut sink = locked(&self.sink);
        let Some(compacted) = compacted else {
            sink.journal.abandon_compaction();
            return Err(Failure { reason: "the compaction panicked".into(), unknown: false });
        };
        match catch_unwind(AssertUnwindSafe(|| sink.journal.finish_compaction(compacted))) {
            Ok(finished) => finished.map_err(Failure::from),
            Err(_) => Err(Failure::panicked()),
        }
    }
}

fn write<M: Model, J: Journal<M>>(
    sink: &Mutex<Sink<M, J>>,
    prepared: Prepared<M>,
    root: Root<M>,
) -> Written<M> {
    catch_unwind(AssertUnwindSafe(|| locked(sink).write(prepared, root)))
        .unwrap_or_else(|_| Err((Failure::panicked(), None)))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
