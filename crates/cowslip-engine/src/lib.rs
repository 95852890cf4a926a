//! Copy-on-write tables, drafts and change sets: the engine under Cowslip's servers and clients.
//!
//! A [`Root`] is one immutable version of a small database: records by id, indexes and references, together with the
//! schema and configuration they were made under ([`Model::Meta`]). A transaction runs as a [`Draft`], an overlay on a
//! root; throwing the draft away undoes it, finishing it gives a [`ChangeSet`], and applying that to a root gives the
//! next version. What the records mean is told by a [`Model`]. Around this, [`Pipeline`] turns many small transactions
//! into few writes to a [`Journal`], [`Publication`] hands the newest root to readers that never lock each other out,
//! and [`Feed`] lets monitors and reconnecting clients follow at their own pace.
//!
//! The engine knows nothing of sockets, encodings, asynchronous runtimes, or of any protocol.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//! use cowslip_engine::*;
//!
//! /// Hosts, found by their address, which must be unique.
//! struct Hosts;
//!
//! impl Model for Hosts {
//!     type Id = Uuid;
//!     type Value = String; // the address
//!     type Key = String;
//!     type Delta = ();
//!     type Meta = ();
//!     type Note = ();
//!
//!     fn layout(_: &()) -> Vec<TableLayout> {
//!         vec![TableLayout { indexes: vec![IndexKind::Primary] }]
//!     }
//!     fn keys(_: &(), _: TableIx, _: IndexIx, step: &Step<'_, Self>, out: &mut KeyChanges<String>) {
//!         out.removed.extend(step.old.cloned());
//!         out.added.extend(step.new.cloned());
//!     }
//!     fn references(_: &(), _: TableIx, _: &Step<'_, Self>, _: &mut ReferenceChanges<Uuid>) {}
//!     fn merge(_: &mut (), _: ()) {}
//! }
//!
//! const HOSTS: TableIx = TableIx(0);
//! const BY_ADDRESS: IndexIx = IndexIx(0);
//! let mut root = Root::<Hosts>::new(Arc::new(()));
//!
//! let mut draft = Draft::new(&root);
//! let first = Uuid::from_u128(1);
//! draft.put(HOSTS, first, Arc::new("192.0.2.1".to_owned()), ());
//! let changes = draft.finish()?;
//! root.apply(&changes);
//! assert_eq!(root.lookup(HOSTS, BY_ADDRESS, &"192.0.2.1".to_owned()).next(), Some(first));
//!
//! // A second record with the same key is refused, and nothing of it is left.
//! let mut draft = Draft::new(&root);
//! draft.put(HOSTS, Uuid::from_u128(2), Arc::new("192.0.2.1".to_owned()), ());
//! let conflict = draft.finish().unwrap_err();
//! assert_eq!(conflict.ids.len(), 2);
//! assert_eq!(root.len(HOSTS), 1);
//! # Ok::<(), Conflict<Hosts>>(())
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub use change::{ChangeSet, RecordChange, TableChanges};
pub use draft::{Conflict, Draft, Touched};
pub use feed::{Behind, Entry, Feed, HISTORY_BYTES_MAX_DEFAULT, Hold};
pub use id::{RecordId, RecordNumber};
pub use index_builder::{CATCH_UP_RECORDS_MAX, IndexBuilder, IndexRefusal, RefusedIndexes};
pub use journal::{AppendError, Commit, Journal, NullJournal};
pub use key_bytes::KeyBytes;
pub use merge::{MergedChange, MergedChanges, merge};
pub use model::{
    IndexIx, IndexKind, KeyChanges, Model, Reference, ReferenceChanges, Referrer, Step, Strength, TableIx,
    TableLayout,
};
pub use pipeline::{Batch, Closed, CompactionOutcome, Host, Outcome, Pipeline, PipelineOptions};
pub use posting::{Posting, PostingIter};
pub use publication::{Publication, Reader, Readers, RootGuard};
pub use reclaim::{Reclaimer, Retired};
pub use root::Root;
pub use uuid::Uuid;

mod change;
mod draft;
mod either;
mod feed;
mod id;
mod index;
mod index_builder;
mod journal;
mod key_bytes;
mod loading;
mod merge;
mod model;
mod number_map;
mod overlay;
mod pipeline;
mod posting;
mod publication;
mod reclaim;
mod records;
mod root;
pub mod sim;
mod sorting;
pub mod storage;
mod table;
