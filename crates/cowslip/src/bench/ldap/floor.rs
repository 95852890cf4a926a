//! The floor: a server that only decodes, appends, syncs and answers, on the same input, committer and journal as ours.
//! What a directory takes beyond it is the directory's own work.

use crate::bench::error::BenchError;
use cowslip_engine::storage::FileSystem;
use cowslip_engine::{
    Batch, ChangeSet, Commit, Draft, Feed, Host, IndexIx, KeyChanges, Model, Outcome, Pipeline,
    PipelineOptions, RecordNumber, ReferenceChanges, Root, Step, TableIx, TableLayout,
};
use cowslip_ldap::framing::{Framing, MESSAGE_BYTES_MAX, frame};
use cowslip_ldap::message::{Limits, MessageId, Operation, OperationKind, decode_request, write_result};
use cowslip_ldap::result::{LdapResult, ResultCode};
use cowslip_ldap_server::journal::{
    self, Codec, CodecError, JournalOptions, SnapshotError, SnapshotReader, SnapshotWriter,
};
use cowslip_ldap_server::server::endpoint_of;
use cowslip_net::listener::Listener;
use cowslip_net::stream::Stream;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

/// The only record: what changes is the journal.
const RECORD: RecordNumber = RecordNumber(1);
/// How much is read at once.
const READ_BYTES: usize = 16 << 10;

/// One record with the newest request, so that each commit has something to publish.
struct Requests;

impl Model for Requests {
    type Id = RecordNumber;
    type Value = Vec<u8>;
    type Key = ();
    type Delta = ();
    type Meta = ();
    type Note = ();

    fn layout((): &()) -> Vec<TableLayout> {
        vec![TableLayout::default()]
    }

    fn keys((): &(), _: TableIx, _: IndexIx, _: &Step<'_, Self>, _: &mut KeyChanges<()>) {}

    fn references((): &(), _: TableIx, _: &Step<'_, Self>, _: &mut ReferenceChanges<RecordNumber>) {}

    fn merge((): &mut (), (): ()) {}
}

/// Appends requests as they came. The server is never started twice on one folder, so nothing is read.
struct AsTheyCame;

impl Codec<Requests> for AsTheyCame {
    type State = ();

    fn encode_commit(&self, commit: &Commit<Requests>, out: &mut Vec<u8>) -> Result<(), CodecError> {
        for change in commit.changes.tables().iter().flat_map(|table| &table.records) {
            change.new.iter().for_each(|request| out.extend_from_slice(request));
        }
        Ok(())
    }

    fn replay(&self, (): &mut (), _: u64, _: &[u8]) -> Result<(), CodecError> {
        Ok(())
    }

    fn write_snapshot(&self, _: &Root<Requests>, _: &mut SnapshotWriter<'_>) -> io::Result<()> {
        Ok(())
    }

    fn read_snapshot(&self, _: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        Ok(())
    }

    fn finish(&self, (): ()) -> Result<Root<Requests>, CodecError> {
        Ok(Root::new(Arc::new(())))
    }
}

/// A request to append, and who waits.
struct Job {
    request: Vec<u8>,
    id: MessageId,
    kind: OperationKind,
    answers: mpsc::UnboundedSender<Answer>,
}

struct Answer {
    id: MessageId,
    kind: OperationKind,
    is_done: bool,
}

struct Appender;

impl Host<Requests> for Appender {
    type Job = Job;

    fn run(&mut self, job: Job, batch: &mut Batch<'_, Requests>) {
        let Job { request, id, kind, answers } = job;
        let mut draft = Draft::new(batch.root());
        draft.put(TableIx(0), RECORD, Arc::new(request), ());
        let changes: ChangeSet<Requests> = draft.into_changes();
        batch.commit(changes, (), true, move |outcome| {
            let is_done = matches!(outcome, Outcome::Committed { .. });
            // A client that is gone needs no answer.
            let _ = answers.send(Answer { id, kind, is_done });
        });
    }
}

type Way = Pipeline<Requests, Appender>;

/// Serves until it is killed.
pub(crate) fn serve(folder: &Path, url: &str) -> Result<(), BenchError> {
    let failed = |output: String| BenchError::Failed { name: "floor".to_owned(), output };
    let storage = Arc::new(FileSystem::new());
    let root = Root::new(Arc::new(()));
    journal::create(&*storage, folder, &AsTheyCame, &root).map_err(|e| failed(e.to_string()))?;
    let opened = journal::open(storage, folder, AsTheyCame, &JournalOptions::default());
    let opened = opened.map_err(|e| failed(e.to_string()))?;
    let feed = Feed::new(0, opened.root.generation(), opened.position);
    let options = PipelineOptions { name: "floor".to_owned(), ..PipelineOptions::default() };
    let way = Pipeline::start(opened.root, feed, opened.journal, Appender, options)?;
    let endpoint = endpoint_of(url).map_err(|e| BenchError::Usage(e.to_string()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = Listener::bind(&endpoint).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            let way = way.clone();
            tokio::spawn(async move {
                // A client that breaks the rules is not there to be told.
                let _ = connection(stream, way).await;
            });
        }
    })
}

async fn connection(stream: Stream, way: Way) -> io::Result<()> {
    let (mut read, mut write) = tokio::io::split(stream);
    let (answers, mut arrivals) = mpsc::unbounded_channel();
    let (mut input, mut out, mut sent) = (Vec::new(), Vec::new(), 0);
    loop {
        input.reserve(READ_BYTES);
        let has_output = sent < out.len();
        tokio::select! {
            biased;
            Some(answer) = arrivals.recv() => {
                write_answer(&mut out, &answer);
                while let Ok(answer) = arrivals.try_recv() {
                    write_answer(&mut out, &answer);
                }
            }
            count = write.write(&out[sent..]), if has_output => {
                sent += count?;
                if sent == out.len() {
                    sent = 0;
                    out.clear();
                }
            }
            count = read.read_buf(&mut input) => {
                if count? == 0 {
                    return Ok(());
                }
                take(&mut input, &way, &answers)?;
            }
        }
    }
}

fn write_answer(out: &mut Vec<u8>, answer: &Answer) {
    let result = match answer.is_done {
        true => LdapResult::SUCCESS,
        false => LdapResult::new(ResultCode::Unavailable, "not written"),
    };
    write_result(out, answer.id, answer.kind, &result, &[]);
}

/// Takes all whole requests: what writes is submitted, the rest is answered with success.
fn take(input: &mut Vec<u8>, way: &Way, answers: &mpsc::UnboundedSender<Answer>) -> io::Result<()> {
    let mut taken = 0;
    while let Framing::Complete { bytes } =
        frame(&input[taken..], MESSAGE_BYTES_MAX).map_err(io::Error::other)?
    {
        let message = &input[taken..taken + bytes];
        taken += bytes;
        let request =
            decode_request(message, &Limits::DEFAULT).map_err(|e| io::Error::other(e.to_string()))?;
        let (id, kind) = (request.id, request.operation.kind());
        let writes =
            matches!(request.operation, Operation::Modify(_) | Operation::Add(_) | Operation::Delete(_));
        if writes {
            let job = Job { request: message.to_vec(), id, kind, answers: answers.clone() };
            way.submit(job).map_err(io::Error::other)?;
        } else {
            // The receiver lives as long as this connection.
            let _ = answers.send(Answer { id, kind, is_done: true });
        }
    }
    input.drain(..taken);
    Ok(())
}
