//! `monitor`, `monitor_cond`, `monitor_cond_since`, `monitor_cond_change`, `monitor_cancel` and their updates
//! (RFC 7047 sections 4.1.5 to 4.1.7 and the reference server's extensions).

use super::{Ended, Event, Session};
use crate::database::Database;
use crate::dump::Dump;
use cowslip_engine::{Entry, MergedChange, MergedChanges, Model, TableIx, Uuid, merge};
use cowslip_ovsdb::error::Error;
use cowslip_ovsdb::json::{Json, write_str};
use cowslip_ovsdb::message::write_notification;
use cowslip_ovsdb::monitor::{Dialect, MonitorSpec, RowChange, UpdateWriter, write_condition_change};
use cowslip_ovsdb::row::{Ovsdb, RowDelta};
use cowslip_ovsdb::schema::Schema;
use std::sync::Arc;

/// The most monitors of one session.
pub const MONITORS_MAX: usize = 1000;

/// A monitor of this session.
pub(super) struct Monitor {
    /// Its id as JSON text, keys sorted.
    id: String,
    database: Arc<Database>,
    spec: Arc<MonitorSpec>,
    /// The generation up to which the client was told everything.
    seen: u64,
}

/// A monitor whose first reply is being made.
pub(super) struct Beginning {
    /// The request's id.
    id: String,
    monitor_id: String,
    database: Arc<Database>,
    spec: MonitorSpec,
}

type Merged<'e> = MergedChanges<'e, Ovsdb>;

impl Session {
    /// Begins a monitor and replies with what is there.
    pub(super) async fn monitor(
        &mut self,
        id: &str,
        dialect: Dialect,
        database: &Arc<Database>,
        params: &[Json<'_>],
    ) -> Result<(), Ended> {
        let (monitor_id, spec, last_id) = match self.monitor_spec(dialect, database, params) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.reply_error(id, &error);
                return Ok(());
            }
        };
        self.catch_up(database).await?;
        if let Some(generation) = last_id.and_then(|last| self.resume(id, database, &spec, &last)) {
            self.begin_monitor(monitor_id, database, spec, generation);
            return Ok(());
        }
        let key = format!("{dialect:?} {}", params[2]);
        let (source, wanted, events) = (database.clone(), spec.clone(), self.events.clone());
        tokio::spawn(async move {
            let dump = source.dumps.of(&source, &wanted, key).await;
            events.send(Event::Dumped(dump));
        });
        let (id, database) = (id.to_string(), database.clone());
        self.beginning = Some(Beginning { id, monitor_id, database, spec });
        Ok(())
    }

    /// Replies with what is there; what was published since it was put together comes after that.
    pub(super) fn reply_dump(&mut self, dump: &Dump) {
        let Some(Beginning { id, monitor_id, database, spec }) = self.beginning.take() else { return };
        let dialect = spec.dialect;
        self.output.append(|out| {
            out.push_str("{\"id\":");
            out.push_str(&id);
            out.push_str(",\"result\":");
            if dialect == Dialect::Since {
                out.push_str("[false,\"");
                out.push_str(&dump.position.to_string());
                out.push_str("\",");
            }
        });
        self.output.append_shared(dump.text.clone());
        let end = if dialect == Dialect::Since { "],\"error\":null}" } else { ",\"error\":null}" };
        self.output.append(|out| out.push_str(end));
        self.begin_monitor(monitor_id, &database, spec, dump.generation);
    }

    fn begin_monitor(&mut self, id: String, database: &Arc<Database>, spec: MonitorSpec, seen: u64) {
        self.monitors.push(Monitor { id, database: database.clone(), spec: Arc::new(spec), seen });
    }

    fn monitor_spec(
        &self,
        dialect: Dialect,
        database: &Database,
        params: &[Json<'_>],
    ) -> Result<(String, MonitorSpec, Option<Uuid>), Error> {
        let count = if dialect == Dialect::Since { 4 } else { 3 };
        if params.len() != count {
            return Err(Error::syntax(&Json::Array(params.to_vec()), "invalid parameters"));
        }
        let last_id = match params.get(3) {
            None => None,
            Some(json) => match json.as_str().map(Uuid::try_parse) {
                Some(Ok(id)) => Some(id),
                _ => return Err(Error::syntax(json, "last-txn-id must be UUID format.")),
            },
        };
        let id = params[1].to_sorted_string();
        if self.monitors.iter().any(|m| m.id == id) {
            return Err(Error::syntax(&params[1], "duplicate monitor ID"));
        }
        if self.monitors.len() >= MONITORS_MAX {
            let details = format!("a session may have at most {MONITORS_MAX} monitors");
            return Err(Error::new(cowslip_ovsdb::error::ErrorKind::ResourcesExhausted, details));
        }
        let spec = MonitorSpec::from_json(&database.schema(), dialect, &params[2])?;
        Ok((id, spec, last_id))
    }

    /// Replies with the changes since the state `last`, if the history still has them; tells the generation they lead
    /// to.
    fn resume(&mut self, id: &str, database: &Database, spec: &MonitorSpec, last: &Uuid) -> Option<u64> {
        let schema = database.schema();
        let feed = database.pipeline.feed();
        let cursor = feed.cursor_at(last)?;
        if cursor <= database.first_generation && spec.shows_what_is_not_stored(&schema) {
            return None;
        }
        let entries = feed.since(cursor).ok()?;
        if entries.iter().any(|e| e.meta.is_some()) {
            return None;
        }
        let generation = entries.last().map_or(cursor, |e| e.generation);
        let position = entries.last().map_or(*last, |e| e.position);
        let merged = merge(entries.iter().map(|e| e.changes.as_ref()));
        self.reply(id, |out| {
            out.push_str("[true,\"");
            out.push_str(&position.to_string());
            out.push_str("\",");
            write_merged(&schema, spec, &merged, out);
            out.push(']');
        });
        Some(generation)
    }

    /// Ends a monitor.
    pub(super) fn monitor_cancel(&mut self, id: &str, params: &[Json<'_>]) {
        let [monitor_id] = params else {
            return self.reply_error_text(id, "invalid parameters");
        };
        let monitor_id = monitor_id.to_sorted_string();
        match self.monitors.iter().position(|m| m.id == monitor_id) {
            Some(at) => {
                self.monitors.remove(at);
                self.reply(id, |out| out.push_str("{}"));
            }
            None => self.reply_error_text(id, "unknown monitor"),
        }
    }

    /// Tells the client that the monitors of a database that is gone have ended.
    pub(super) fn cancel_monitors(&mut self, database: &Arc<Database>) {
        let (gone, kept) =
            std::mem::take(&mut self.monitors).into_iter().partition(|m| Arc::ptr_eq(&m.database, database));
        self.monitors = kept;
        let gone: Vec<Monitor> = gone;
        for monitor in gone {
            self.output.append(|out| {
                write_notification(out, "monitor_canceled", |out| {
                    out.push('[');
                    out.push_str(&monitor.id);
                    out.push(']');
                });
            });
        }
    }

    /// Changes a monitor's conditions; what enters or leaves the client's sight goes out before the reply, under the
    /// new id.
    pub(super) async fn monitor_cond_change(&mut self, id: &str, params: &[Json<'_>]) -> Result<(), Ended> {
        let monitor_id = params.first().map(Json::to_sorted_string);
        let monitor = self.monitors.iter().find(|m| Some(&m.id) == monitor_id.as_ref());
        if let Some(database) = monitor.map(|m| m.database.clone()) {
            self.catch_up(&database).await?;
        }
        match self.condition_change(params) {
            Ok((at, new_id, spec)) => {
                self.change_conditions(at, new_id, spec)?;
                self.reply(id, |out| out.push_str("{}"));
            }
            Err(error) => self.reply_error(id, &error),
        }
        Ok(())
    }

    /// Which monitor is to change, its new id and what it is to show.
    fn condition_change(&self, params: &[Json<'_>]) -> Result<(usize, String, MonitorSpec), Error> {
        let [old_id, new_id, requests] = params else {
            return Err(Error::syntax(&Json::Array(params.to_vec()), "invalid parameters"));
        };
        if requests.as_object().is_none() {
            return Err(Error::syntax(requests, "monitor-requests must be object"));
        }
        let (old_text, new_text) = (old_id.to_sorted_string(), new_id.to_sorted_string());
        let unknown = || Error::syntax(old_id, "unknown monitor session");
        let at = self.monitors.iter().position(|m| m.id == old_text).ok_or_else(unknown)?;
        if new_text != old_text && self.monitors.iter().any(|m| m.id == new_text) {
            return Err(Error::syntax(new_id, "duplicate monitor ID"));
        }
        let monitor = &self.monitors[at];
        let spec = monitor.spec.with_conditions(&monitor.database.schema(), requests)?;
        if monitor.spec.dialect == Dialect::Plain {
            // Such a monitor has no conditions; the reference server accepts the request and changes nothing.
            return Ok((at, new_text, monitor.spec.as_ref().clone()));
        }
        Ok((at, new_text, spec))
    }

    fn change_conditions(&mut self, at: usize, new_id: String, spec: MonitorSpec) -> Result<(), Ended> {
        let monitor = &mut self.monitors[at];
        let schema = monitor.database.schema();
        let (root, position) = monitor.database.snapshot();
        let entries = monitor.database.pipeline.feed().since(monitor.seen).map_err(|_| Ended::Behind)?;
        let until = entries.iter().filter(|e| e.generation <= root.generation());
        let merged = merge(until.map(|e| e.changes.as_ref()));
        let before = std::mem::replace(&mut monitor.spec, Arc::new(spec));
        if !merged.is_empty() {
            write_update(&mut self.output, &before, &monitor.id, &position, |out| {
                write_merged(&schema, &before, &merged, out)
            });
        }
        monitor.id = new_id;
        monitor.seen = root.generation();
        write_update(&mut self.output, &monitor.spec, &monitor.id, &position, |out| {
            write_condition_change(&before, &monitor.spec, &root, out)
        });
        Ok(())
    }

    /// Whether any monitor of this session is behind its database.
    pub(super) fn has_updates(&self) -> bool {
        self.monitors.iter().any(|m| m.database.pipeline.publication().generation() > m.seen)
    }

    /// Whether this session has monitors at all.
    pub(super) fn is_monitoring(&self) -> bool {
        !self.monitors.is_empty()
    }

    /// Sends each monitor what happened since it was last told.
    pub(super) fn flush_monitors(&mut self) -> Result<(), Ended> {
        let mut at = 0;
        while at < self.monitors.len() {
            let database = self.monitors[at].database.clone();
            let seen = self.monitors[at].seen;
            if database.pipeline.publication().generation() > seen {
                let entries = database.pipeline.feed().since(seen).map_err(|_| Ended::Behind)?;
                self.tell(&database, seen, &entries);
            }
            at += 1;
        }
        Ok(())
    }

    /// Tells all monitors of a database that have seen it up to `seen` what `entries` changed.
    fn tell(&mut self, database: &Arc<Database>, seen: u64, entries: &[Arc<Entry<Ovsdb>>]) {
        let Some(last) = entries.last() else { return };
        let schema = database.schema();
        let merged = match entries {
            [_] => None,
            many => Some(merge(many.iter().map(|e| e.changes.as_ref()))),
        };
        for monitor in
            self.monitors.iter_mut().filter(|m| m.seen == seen && Arc::ptr_eq(&m.database, database))
        {
            monitor.seen = last.generation;
            let spec = &monitor.spec;
            write_update(&mut self.output, spec, &monitor.id, &last.position, |out| match &merged {
                Some(merged) => write_merged(&schema, spec, merged, out),
                None => write_entry(&schema, spec, last, out),
            });
        }
    }
}

/// Appends a notification, unless `updates` has nothing to say.
fn write_update(
    output: &mut super::Output,
    spec: &MonitorSpec,
    id: &str,
    position: &Uuid,
    updates: impl FnOnce(&mut String) -> bool,
) {
    output.append(|out| {
        let start = out.len();
        let mut says_something = false;
        write_notification(out, spec.dialect.notification(), |out| {
            out.push('[');
            out.push_str(id);
            out.push(',');
            if spec.dialect == Dialect::Since {
                write_str(out, &position.to_string());
                out.push(',');
            }
            says_something = updates(out);
            out.push(']');
        });
        if !says_something {
            out.truncate(start);
        }
    });
}

fn write_entry(schema: &Schema, spec: &MonitorSpec, entry: &Entry<Ovsdb>, out: &mut String) -> bool {
    let mut writer = UpdateWriter::new(schema, spec.dialect, out);
    for table in &spec.tables {
        let Some(changes) = entry.changes.table(table.table) else { continue };
        for change in &changes.records {
            let (old, new) = (change.old.as_deref(), change.new.as_deref());
            writer.add(table, &RowChange { id: &change.id, old, new, delta: &change.delta });
        }
    }
    writer.finish()
}

fn write_merged(schema: &Schema, spec: &MonitorSpec, merged: &Merged<'_>, out: &mut String) -> bool {
    let mut writer = UpdateWriter::new(schema, spec.dialect, out);
    for table in &spec.tables {
        for (id, change) in merged.get(&table.table).into_iter().flatten() {
            let (old, new) = (change.old.map(Arc::as_ref), change.new.map(Arc::as_ref));
            let delta = net_delta(schema, table.table, change);
            writer.add(table, &RowChange { id, old, new, delta: &delta });
        }
    }
    writer.finish()
}

/// The delta between a row's first and last version.
fn net_delta(schema: &Schema, table: TableIx, change: &MergedChange<'_, Ovsdb>) -> RowDelta {
    match (&change.deltas, change.old, change.new) {
        (Some(deltas), _, _) => deltas.iter().fold(RowDelta::default(), |mut net, step| {
            Ovsdb::merge(&mut net, (*step).clone());
            net
        }),
        // Deleted and inserted again: no delta leads from the one row to the other.
        (None, Some(old), Some(new)) => Ovsdb::difference(schema, table, old, new),
        (None, _, _) => RowDelta::default(),
    }
}
