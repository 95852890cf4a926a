//! One client's conversation with a server, without I/O: messages in, messages out, and their effect on the cache.
//!
//! The order of a conversation's beginning: ask to be told of changes to the databases, look at `_Server` whether this
//! server will do, take the schema, monitor. Invariants: the id of the last transaction is only kept together with the
//! content that it names; updates for a monitor whose dump is due wait for it; those of a canceled monitor are dropped; a
//! parked client has nothing in flight and no monitor.

use crate::connection::{Name, write_name};
use crate::driver::Member;
use crate::options::EARLY_UPDATES_MAX;
use crate::plan::{Monitor, Plan};
use crate::server_row::ServerRows;
use crate::shared::{Command, Shared, Statistics};
use crate::state::State;
use crate::update::{self, Impossible};
use cowslip_engine::Uuid;
use cowslip_ovsdb::json::{Json, write_str};
use cowslip_ovsdb::message::write_request;
use cowslip_ovsdb::monitor::Dialect;
use cowslip_ovsdb::schema::Schema;
use std::sync::Arc;
use std::time::Duration;

/// What outlives a connection.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    plan: Option<Arc<Plan>>,
    /// The monitor that the plan was made of, and the number of the last change of conditions in it.
    planned: (Monitor, u64),
    /// The server's schema as it was sent.
    schema_text: String,
    /// The server's name for the content of the cache.
    last_id: Option<Uuid>,
    min_index: Option<i64>,
    /// How many resynchronisations in a row were of no use.
    futile: u32,
}

/// Why a conversation ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum End {
    /// The connection is gone.
    Lost(String),
    /// This server will not do; another one may.
    Unfit(String),
    /// No server with this schema will do.
    Mismatch(Vec<crate::error::Mismatch>),
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The server has not answered yet.
    Beginning,
    /// The dump is due.
    Dumping,
    Live,
    /// The next dump is asked for after a pause.
    Pausing,
    /// The server does not have what is wanted; it is asked again after a pause.
    Parked,
}

pub(crate) struct Session {
    shared: Arc<Shared>,
    memory: Memory,
    endpoint: Arc<str>,
    pub(crate) phase: Phase,
    pub(crate) out: String,
    /// After which pause it is to be resumed.
    pub(crate) pause: Option<Duration>,
    dialect: Dialect,
    /// The present monitor's number, and whether its dump is due.
    monitor: u64,
    is_due: bool,
    early: Vec<(Dialect, Vec<Json<'static>>)>,
    server: Option<ServerRows>,
    /// Conditions on their way: the number of the change.
    conditions: Option<u64>,
    /// How many times in a row it was parked, and whether the last time was for what `_Server` tells.
    parked: u32,
    is_turned_away: bool,
}

impl Session {
    /// Begins the conversation.
    pub(crate) fn new(shared: Arc<Shared>, mut memory: Memory, endpoint: Arc<str>) -> Self {
        if memory.min_index.is_none() {
            memory.min_index = shared.options.min_index;
        }
        let place = shared.place;
        let mut session = Session {
            shared,
            memory,
            endpoint,
            phase: Phase::Beginning,
            out: String::new(),
            pause: None,
            dialect: Dialect::Since,
            monitor: 0,
            is_due: false,
            early: Vec::new(),
            server: None,
            conditions: None,
            parked: 0,
            is_turned_away: false,
        };
        session.request("set_db_change_aware", "aware", |out| out.push_str("[true]"));
        session.request("monitor_cond", "server", |out| {
            out.push_str("[\"_Server\",");
            write_name(out, place, Name::Text("server"));
            out.push_str(",{\"Database\":[{\"columns\":");
            out.push_str("[\"name\",\"model\",\"connected\",\"leader\",\"cid\",\"index\"]}]}]");
        });
        session
    }

    /// Whose conversation it is.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn place(&self) -> u32 {
        self.shared.place
    }

    pub(crate) fn into_member(self) -> Member {
        (self.shared, self.memory)
    }

    fn request(&mut self, method: &str, id: &str, params: impl FnOnce(&mut String)) {
        let mut name = String::new();
        write_name(&mut name, self.shared.place, Name::Text(id));
        write_request(&mut self.out, method, &name, params);
    }

    /// Takes the reply to a request of this client's.
    pub(crate) fn reply(&mut self, name: Name<'_>, outcome: Result<Json<'_>, Json<'_>>) -> Result<(), End> {
        let id = match name {
            Name::Number(ticket) => {
                self.transaction_reply(ticket, outcome);
                return Ok(());
            }
            Name::Text(id) => id,
        };
        match id.split_once('-').unwrap_or((id, "")) {
            ("server", _) => self.server_dump(outcome),
            ("schema", number) if number == self.monitor.to_string() => self.schema(outcome),
            ("dump", number) if number == self.monitor.to_string() => self.dump(outcome),
            ("conditions", number) => {
                self.conditions_reply(number.parse().unwrap_or(0), outcome.is_ok());
                Ok(())
            }
            ("lock", name) => {
                let owned = outcome.ok().and_then(|json| locked(&json)).unwrap_or(false);
                if owned {
                    self.shared.locks.set(name, true);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn transaction_reply(&mut self, ticket: u64, outcome: Result<Json<'_>, Json<'_>>) {
        let answer = {
            let inner = self.shared.inner();
            match inner.in_flight.get(&ticket) {
                Some(transaction) => crate::results::answer(transaction, outcome),
                None => return,
            }
        };
        self.shared.end(ticket, answer);
    }

    fn server_dump(&mut self, outcome: Result<Json<'_>, Json<'_>>) -> Result<(), End> {
        // A server that does not know `_Server` is an old one, which is no cluster.
        if let Ok(json) = outcome {
            let mut rows = ServerRows::default();
            rows.update(&json);
            self.server = Some(rows);
            self.check_server()?;
        }
        self.request_schema();
        Ok(())
    }

    fn check_server(&mut self) -> Result<(), End> {
        let options = &self.shared.options;
        let Some(server) = &self.server else { return Ok(()) };
        let index = server.check(&options.database, options, self.memory.min_index).map_err(End::Unfit)?;
        self.memory.min_index = self.memory.min_index.max(index);
        Ok(())
    }

    fn request_schema(&mut self) {
        let (database, id) = (self.shared.options.database.clone(), format!("schema-{}", self.monitor));
        self.request("get_schema", &id, |out| {
            out.push('[');
            write_str(out, &database);
            out.push(']');
        });
    }

    fn schema(&mut self, outcome: Result<Json<'_>, Json<'_>>) -> Result<(), End> {
        let json = outcome.map_err(|error| End::Unfit(format!("get_schema: {error}")))?;
        let text = json.to_string();
        if self.memory.schema_text != text || self.memory.plan.is_none() {
            let schema = Schema::from_json(&json).map_err(|error| End::Unfit(format!("schema: {error}")))?;
            self.memory.schema_text = text;
            self.memory.last_id = None;
            self.plan(schema)?;
            if let Some(plan) = &self.memory.plan {
                self.shared.restart(&plan.schema);
            }
        } else if self.shared.inner().monitor != self.memory.planned.0 {
            self.memory.last_id = None;
            self.replan()?;
        }
        self.request_dump();
        Ok(())
    }

    /// Fits the monitor to a schema.
    fn plan(&mut self, schema: Schema) -> Result<(), End> {
        let planned = {
            let mut inner = self.shared.inner();
            // The plan has whatever these ask for.
            inner.commands.retain(|command| !matches!(command, Command::Conditions | Command::Monitor));
            (inner.monitor.clone(), inner.conditions_requested)
        };
        let plan = Plan::new(schema, &planned.0, &self.shared.options.indexes)
            .map_err(|error| End::Unfit(error.to_string()))?;
        if plan.is_fatal {
            return Err(End::Mismatch(plan.mismatches));
        }
        self.memory.plan = Some(Arc::new(plan));
        self.memory.planned = planned;
        Ok(())
    }

    /// Asks for the content, or for what changed since the last connection.
    fn request_dump(&mut self) {
        let Some(plan) = self.memory.plan.clone() else { return };
        let state = State::Synchronising { endpoint: self.endpoint.to_string() };
        self.shared.state.send_replace(state);
        self.phase = Phase::Dumping;
        self.pause = None;
        self.monitor += 1;
        self.is_due = true;
        self.early.clear();
        let (id, database) = (format!("dump-{}", self.monitor), self.shared.options.database.clone());
        let (dialect, monitor, last_id) = (self.dialect, self.monitor, self.memory.last_id);
        let place = self.shared.place;
        let method = match dialect {
            Dialect::Since => "monitor_cond_since",
            Dialect::Conditional => "monitor_cond",
            Dialect::Plain => "monitor",
        };
        self.request(method, &id, |out| {
            out.push('[');
            write_str(out, &database);
            out.push(',');
            write_name(out, place, Name::Number(monitor));
            out.push(',');
            plan.write_requests(out, dialect != Dialect::Plain);
            if dialect == Dialect::Since {
                out.push_str(",\"");
                out.push_str(&last_id.unwrap_or(Uuid::nil()).to_string());
                out.push('"');
            }
            out.push(']');
        });
    }

    fn dump(&mut self, outcome: Result<Json<'_>, Json<'_>>) -> Result<(), End> {
        let json = match outcome {
            Ok(json) => json,
            Err(error) => return self.fall_back(&error),
        };
        self.is_due = false;
        let applied = self.apply_dump(&json).and_then(|()| {
            let early = std::mem::take(&mut self.early);
            early.iter().try_for_each(|(dialect, params)| self.apply_update(*dialect, params))
        });
        match applied {
            Ok(()) => self.go_live(),
            Err(error) => self.part(&error),
        }
        Ok(())
    }

    /// Asks by the next older method, if the server does not know this one.
    fn fall_back(&mut self, error: &Json<'_>) -> Result<(), End> {
        let text = error.to_string();
        let is_unknown = text.contains("unknown method");
        self.dialect = match self.dialect {
            Dialect::Since if is_unknown => Dialect::Conditional,
            Dialect::Conditional if is_unknown => Dialect::Plain,
            _ => return Err(End::Unfit(format!("monitor: {text}"))),
        };
        self.memory.last_id = None;
        self.request_dump();
        Ok(())
    }

    fn apply_dump(&mut self, json: &Json<'_>) -> Result<(), Impossible> {
        let Some(plan) = self.memory.plan.clone() else { return Ok(()) };
        let (is_since, mut id, rows) = match (self.dialect, json.as_array()) {
            (Dialect::Since, Some([Json::Bool(found), Json::Str(id), rows])) => {
                (*found && self.memory.last_id.is_some(), cowslip_ovsdb::atom::parse_uuid(id), rows)
            }
            (Dialect::Since, _) => return Err(Impossible { reason: "malformed reply".to_string() }),
            _ => (false, None, json),
        };
        let updates = update::parse(&plan.schema, &plan.known, self.dialect, rows)?;
        let root = self.shared.publication.current();
        let changes = match is_since {
            true => update::apply(&root, updates)?,
            false => update::resync(&root, updates)?,
        };
        self.shared.publish(changes);
        id = id.filter(|id| !id.is_nil());
        self.memory.last_id = id;
        Ok(())
    }

    fn go_live(&mut self) {
        let Some(plan) = self.memory.plan.clone() else { return };
        let mut known = plan.known.clone();
        if self.dialect == Dialect::Plain {
            // The oldest method has no conditions: every row is here.
            known.tables.iter_mut().filter(|t| t.is_monitored).for_each(|t| t.has_all_rows = true);
        }
        self.shared.set_known(known);
        {
            let mut inner = self.shared.inner();
            inner.is_synchronised = true;
            inner.is_live = true;
        }
        if self.phase != Phase::Live {
            self.phase = Phase::Live;
            if self.conditions.is_none() {
                self.shared.conditions.send_replace(self.memory.planned.1);
            }
            for name in self.shared.locks.names(self.shared.place) {
                self.lock(&name, false);
            }
        }
        let missing = plan.mismatches.clone();
        self.parked = 0;
        self.shared.state.send_replace(State::Live { endpoint: self.endpoint.to_string(), missing });
        self.shared.ended.notify_waiters();
    }

    /// Takes a notification that is for a monitor of this client's.
    pub(crate) fn notification(
        &mut self,
        method: &str,
        monitor: Name<'_>,
        params: Vec<Json<'_>>,
    ) -> Result<(), End> {
        let dialect = match method {
            "update" => Dialect::Plain,
            "update2" => Dialect::Conditional,
            "update3" => Dialect::Since,
            "monitor_canceled" => return self.canceled(monitor),
            _ => return Ok(()),
        };
        match monitor {
            Name::Text("server") => {
                if let (Some(rows), Some(server)) = (params.last(), &mut self.server) {
                    server.update(rows);
                    return self.server_changed();
                }
                Ok(())
            }
            Name::Number(number) if number == self.monitor && self.pause.is_none() => {
                self.update(dialect, params);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What the server tells of the database has changed.
    fn server_changed(&mut self) -> Result<(), End> {
        match (self.phase, self.check_server()) {
            (Phase::Parked, Ok(())) if self.is_turned_away && self.pause.is_some() => self.resume(),
            // It is told already, and waits for better news.
            (Phase::Parked, _) => Ok(()),
            (_, checked) => checked,
        }
    }

    fn update(&mut self, dialect: Dialect, params: Vec<Json<'_>>) {
        Statistics::count(&self.shared.statistics.updates, "cowslip_ovsdb_client_updates_total");
        if self.is_due {
            if self.early.len() >= EARLY_UPDATES_MAX {
                return self.part(&Impossible { reason: "too many updates before the dump".to_string() });
            }
            let owned = params.into_iter().map(Json::into_owned).collect();
            self.early.push((dialect, owned));
            return;
        }
        match self.apply_update(dialect, &params) {
            Ok(()) => self.memory.futile = 0,
            Err(error) => self.part(&error),
        }
    }

    fn apply_update(&mut self, dialect: Dialect, params: &[Json<'_>]) -> Result<(), Impossible> {
        let Some(plan) = self.memory.plan.clone() else { return Ok(()) };
        let (id, rows) = match (dialect, params) {
            (Dialect::Since, [_, Json::Str(id), rows]) => (cowslip_ovsdb::atom::parse_uuid(id), rows),
            (Dialect::Plain | Dialect::Conditional, [_, rows]) => (None, rows),
            _ => return Err(Impossible { reason: "malformed update".to_string() }),
        };
        let updates = update::parse(&plan.schema, &plan.known, dialect, rows)?;
        let changes = update::apply(&self.shared.publication.current(), updates)?;
        self.shared.publish(changes);
        if dialect == Dialect::Since {
            // While conditions are on their way, nobody knows which of them the content follows.
            self.memory.last_id = id.filter(|id| !id.is_nil() && self.conditions.is_none());
        }
        Ok(())
    }

    /// The cache and the server have parted: the content is asked for anew, from zero, after a pause that grows while
    /// that does not help.
    fn part(&mut self, error: &Impossible) {
        Statistics::count(&self.shared.statistics.impossible, "cowslip_ovsdb_client_resyncs_total");
        tracing::warn!(reason = error.reason, "the cache is taken from the server anew");
        self.memory.last_id = None;
        self.early.clear();
        self.is_due = false;
        self.cancel_monitor();
        let options = &self.shared.options;
        let factor = 1_u32 << self.memory.futile.min(16);
        self.pause = Some(match self.memory.futile {
            0 => Duration::ZERO,
            _ => (options.backoff_min * factor).min(options.backoff_max),
        });
        self.memory.futile = self.memory.futile.saturating_add(1);
        self.phase = Phase::Pausing;
    }

    fn cancel_monitor(&mut self) {
        self.cancel(Name::Number(self.monitor));
    }

    fn cancel(&mut self, monitor: Name<'_>) {
        let place = self.shared.place;
        self.request("monitor_cancel", "cancel", |out| {
            out.push('[');
            write_name(out, place, monitor);
            out.push(']');
        });
    }

    /// The pause before a resynchronisation, or before this server is asked again, is over.
    pub(crate) fn resume(&mut self) -> Result<(), End> {
        self.pause = None;
        match self.phase {
            Phase::Parked => {
                self.check_server()?;
                self.request_schema();
            }
            _ => self.request_dump(),
        }
        Ok(())
    }

    /// This server cannot be used now, but its connection is used by others: the conversation rests for a while.
    pub(crate) fn park(&mut self, end: End) {
        self.shared.end_all(false);
        if matches!(self.phase, Phase::Live | Phase::Dumping) {
            self.cancel_monitor();
        }
        self.is_turned_away = self.check_server().is_err();
        // Whatever the server still has to say about the old one is not listened to.
        self.monitor += 1;
        self.is_due = false;
        self.early.clear();
        self.conditions = None;
        self.phase = Phase::Parked;
        let options = &self.shared.options;
        let pause = (options.backoff_min * (1_u32 << self.parked.min(16))).min(options.backoff_max);
        self.parked = self.parked.saturating_add(1);
        self.pause = Some(pause);
        let state = match end {
            End::Mismatch(mismatches) => State::Unfit { mismatches },
            End::Unfit(reason) | End::Lost(reason) => {
                State::Waiting { reason, pause_ms: pause.as_millis() as u64 }
            }
            End::Closed => State::Closed,
        };
        self.shared.state.send_replace(state);
    }

    /// The client is closed and the connection goes on: gives what is still to be sent.
    pub(crate) fn leave(&mut self) -> String {
        if matches!(self.phase, Phase::Live | Phase::Dumping) {
            self.cancel_monitor();
        }
        self.cancel(Name::Text("server"));
        std::mem::take(&mut self.out)
    }

    /// The server has ended a monitor: the database was converted or removed.
    fn canceled(&mut self, monitor: Name<'_>) -> Result<(), End> {
        match monitor {
            Name::Number(number) if number == self.monitor => {
                self.memory.last_id = None;
                self.is_due = false;
                self.early.clear();
                self.monitor += 1;
                self.phase = Phase::Dumping;
                self.request_schema();
                Ok(())
            }
            Name::Text("server") => Err(End::Lost("_Server was removed".to_string())),
            _ => Ok(()),
        }
    }

    /// Does what was asked for meanwhile, once there is a monitor to do it with.
    pub(crate) fn take_commands(&mut self) -> Result<(), End> {
        if self.phase != Phase::Live {
            return Ok(());
        }
        let commands = std::mem::take(&mut self.shared.inner().commands);
        for command in commands {
            match command {
                Command::Lock { name, steals } => self.lock(&name, steals),
                Command::Unlock { name } => self.request("unlock", "unlock", |out| {
                    out.push('[');
                    write_str(out, &name);
                    out.push(']');
                }),
                Command::Conditions => self.change_conditions()?,
                Command::Monitor => {
                    self.replan()?;
                    self.memory.last_id = None;
                    self.cancel_monitor();
                    self.request_dump();
                }
                Command::Resync => {
                    self.memory.last_id = None;
                    self.cancel_monitor();
                    self.request_dump();
                }
            }
        }
        Ok(())
    }

    fn lock(&mut self, name: &str, steals: bool) {
        // Two clients of one connection ask for a lock once.
        if !self.shared.locks.ask(name) && !steals {
            return;
        }
        let id = format!("lock-{name}");
        self.request(if steals { "steal" } else { "lock" }, &id, |out| {
            out.push('[');
            write_str(out, name);
            out.push(']');
        });
    }

    /// Fits a changed monitor to the present schema; what is then known of fewer rows is so from now on.
    fn replan(&mut self) -> Result<(), End> {
        let text = self.memory.schema_text.clone();
        let schema = Schema::parse(text.as_bytes()).map_err(|error| End::Unfit(error.to_string()))?;
        let before = self.memory.plan.clone();
        self.plan(schema)?;
        let (Some(before), Some(plan)) = (before, &mut self.memory.plan) else { return Ok(()) };
        let mut known = plan.known.clone();
        for (table, was) in known.tables.iter_mut().zip(&before.known.tables) {
            table.has_all_rows &= was.has_all_rows;
            table.is_monitored &= was.is_monitored;
        }
        if plan.schema.tables.iter().zip(&before.schema.tables).all(|(a, b)| a.indexes == b.indexes) {
            // The root keeps its schema; the two are alike.
            let mut same = plan.as_ref().clone();
            same.schema = before.schema.clone();
            *plan = Arc::new(same);
            self.shared.set_known(known);
        } else {
            self.shared.restart(&plan.schema);
        }
        Ok(())
    }

    fn change_conditions(&mut self) -> Result<(), End> {
        if self.conditions.is_some() {
            // The reply to the present change brings the next one under way.
            return Ok(());
        }
        let before = self.memory.plan.clone();
        self.replan()?;
        let (Some(before), Some(plan)) = (before, self.memory.plan.clone()) else { return Ok(()) };
        let number = self.memory.planned.1;
        if self.dialect == Dialect::Plain || before.tables() != plan.tables() {
            self.memory.last_id = None;
            self.cancel_monitor();
            self.request_dump();
            return Ok(());
        }
        self.conditions = Some(number);
        // Until the server has acknowledged it, nobody knows which rows it has sent: a new connection begins from zero.
        self.memory.last_id = None;
        let (place, monitor, id) =
            (self.shared.place, Name::Number(self.monitor), format!("conditions-{number}"));
        self.request("monitor_cond_change", &id, |out| {
            out.push('[');
            write_name(out, place, monitor);
            out.push(',');
            write_name(out, place, monitor);
            out.push_str(",{");
            let changed =
                plan.requests.iter().zip(&before.requests).filter(|(a, b)| a.condition != b.condition);
            for (i, (request, _)) in changed.enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_str(out, &request.name);
                out.push_str(":[{\"where\":");
                out.push_str(request.condition.as_deref().unwrap_or("[true]"));
                out.push_str("}]");
            }
            out.push_str("}]");
        });
        Ok(())
    }

    fn conditions_reply(&mut self, number: u64, is_accepted: bool) {
        if self.conditions.take() != Some(number) {
            return;
        }
        if !is_accepted {
            return self
                .part(&Impossible { reason: "the server refused a change of conditions".to_string() });
        }
        let is_newest = {
            let mut inner = self.shared.inner();
            let is_newest = inner.conditions_requested == number;
            if !is_newest {
                inner.commands.push_back(Command::Conditions);
            }
            is_newest
        };
        if let (Some(plan), true) = (&self.memory.plan, is_newest) {
            self.shared.set_known(plan.known.clone());
        }
        self.shared.conditions.send_replace(number);
    }
}

/// The `locked` member of a reply.
fn locked(json: &Json<'_>) -> Option<bool> {
    match json.as_object()?.member("locked")? {
        Json::Bool(owned) => Some(*owned),
        _ => None,
    }
}
