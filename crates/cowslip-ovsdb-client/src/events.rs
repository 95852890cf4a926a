//! What changed in the cache, transaction by transaction, in order.
//!
//! A stream of events is a place in the cache's history: it holds nothing itself, so a slow consumer costs no memory.
//! Only one that is older than the history is told that it lagged; it then takes a snapshot and goes on from there.

use crate::plan::Known;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use cowslip_engine::{ChangeSet, Entry, TableIx, Uuid};
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::executor::Knowledge;
use cowslip_ovsdb::row::{Ovsdb, Row};
use cowslip_ovsdb::schema::{Column, Schema};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

/// The changes that came as one: a transaction, several that the server merged, or a resynchronisation's differences.
#[derive(Clone)]
pub struct Batch {
    /// The first generation of the cache that has the changes.
    pub generation: u64,
    schema: Arc<Schema>,
    known: Arc<Known>,
    entry: Arc<Entry<Ovsdb>>,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("generation", &self.generation)
            .field("changes", self.changes())
            .finish()
    }
}

/// One changed row.
#[derive(Clone, Copy, Debug)]
pub struct RowEvent<'a> {
    /// The row.
    pub uuid: Uuid,
    /// The row before; none if it is new.
    pub old: Option<&'a Arc<Row>>,
    /// The row now; none if it is gone.
    pub new: Option<&'a Arc<Row>>,
    schema: &'a Schema,
    known: &'a Known,
    table: TableIx,
}

impl Batch {
    /// The engine's change set.
    pub fn changes(&self) -> &ChangeSet<Ovsdb> {
        &self.entry.changes
    }

    /// The changed rows, table by table.
    pub fn rows(&self) -> impl Iterator<Item = RowEvent<'_>> {
        self.entry.changes.tables().iter().flat_map(move |changes| {
            changes.records.iter().map(move |record| RowEvent {
                uuid: record.id,
                old: record.old.as_ref(),
                new: record.new.as_ref(),
                schema: &self.schema,
                known: &self.known,
                table: changes.table,
            })
        })
    }

    /// The changed rows of one table.
    pub fn rows_of(&self, table: &str) -> impl Iterator<Item = RowEvent<'_>> {
        let table = self.schema.table(table);
        self.rows().filter(move |row| Some(row.table) == table)
    }
}

impl<'a> RowEvent<'a> {
    /// The table's name.
    pub fn table(&self) -> &'a str {
        &self.schema.at(self.table).name
    }

    /// A column's value before.
    pub fn old_value(&self, column: &str) -> Option<&'a Datum> {
        self.value(self.old?, column)
    }

    /// A column's value now.
    pub fn new_value(&self, column: &str) -> Option<&'a Datum> {
        self.value(self.new?, column)
    }

    /// Whether a column's value before differs from its value now; of a new or deleted row, every column's does.
    pub fn differs(&self, column: &str) -> bool {
        match (self.old, self.new) {
            (Some(_), Some(_)) => self.old_value(column) != self.new_value(column),
            _ => true,
        }
    }

    fn value(&self, row: &'a Arc<Row>, column: &str) -> Option<&'a Datum> {
        match self.schema.at(self.table).column(column)? {
            Column::Data(column) if self.known.has_column(self.table, column) => Some(row.data(column)),
            _ => None,
        }
    }
}

/// Why a stream of events did not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventsError {
    /// The consumer is older than the history, or the cache began anew under another schema.
    #[error("events up to generation {floor} are gone: take a snapshot and go on from there")]
    Lagged {
        /// The oldest generation from which one could still go on.
        floor: u64,
    },
    /// The client was closed, and every event was taken.
    #[error("the client was closed")]
    Closed,
}

/// The changes of the cache after some generation.
#[derive(Debug)]
pub struct Events {
    shared: Arc<Shared>,
    cursor: u64,
    ready: VecDeque<Batch>,
    published: watch::Receiver<u64>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("database", &self.options.database).finish_non_exhaustive()
    }
}

impl Events {
    pub(crate) fn new(shared: Arc<Shared>, cursor: u64) -> Self {
        let published = shared.published.subscribe();
        Events { shared, cursor, ready: VecDeque::new(), published }
    }

    /// The next batch, as soon as there is one. Giving up waiting loses nothing.
    ///
    /// # Errors
    /// The consumer lagged, or the client was closed.
    pub async fn next(&mut self) -> Result<Batch, EventsError> {
        loop {
            if let Some(batch) = self.try_next()? {
                return Ok(batch);
            }
            let mut state = self.shared.state.subscribe();
            tokio::select! {
                _ = self.published.changed() => {}
                _ = state.wait_for(|s| *s == crate::State::Closed) => {
                    if self.shared.feed.newest() <= self.cursor {
                        return Err(EventsError::Closed);
                    }
                }
            }
        }
    }

    /// The next batch, if there is one.
    ///
    /// # Errors
    /// The consumer lagged.
    pub fn try_next(&mut self) -> Result<Option<Batch>, EventsError> {
        if self.ready.is_empty() {
            self.published.borrow_and_update();
            let (_, known) = self.shared.known();
            let schema = self.shared.publication.current().meta().clone();
            let entries = self.shared.feed.since(self.cursor);
            let entries = entries.map_err(|behind| EventsError::Lagged { floor: behind.floor })?;
            self.ready.extend(entries.into_iter().map(|entry| Batch {
                generation: entry.generation,
                schema: schema.clone(),
                known: known.clone(),
                entry,
            }));
        }
        let batch = self.ready.pop_front();
        if let Some(batch) = &batch {
            self.cursor = batch.generation;
        }
        Ok(batch)
    }

    /// The newest snapshot; from now on the stream gives what changes after it.
    pub fn resync(&mut self) -> Snapshot {
        let snapshot = self.shared.snapshot();
        self.ready.clear();
        self.cursor = snapshot.generation();
        snapshot
    }
}
