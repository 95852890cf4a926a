//! Requests and notifications by method (RFC 7047 section 4.1 and the reference server's extensions).
//!
//! Parameters of every method are checked, count included: a fault is an error reply, never more.

use super::{Ended, Session};
use crate::database::Database;
use crate::locks::LOCKS_PER_SESSION_MAX;
use cowslip_ovsdb::error::{Error, ErrorKind};
use cowslip_ovsdb::json::{Json, write_str};
use cowslip_ovsdb::members::is_id;
use cowslip_ovsdb::message::Message;
use cowslip_ovsdb::monitor::Dialect;
use std::sync::Arc;

/// The most transactions of one session that may be open; more are not read from the socket.
pub const REQUESTS_OPEN_MAX: usize = 5000;

/// How long the requests of a session's open transactions may be together, in bytes, before no more is read.
pub const REQUEST_BYTES_OPEN_MAX: usize = 64 << 20;

/// How much of what a client sends is held back while the first reply of a monitor is made, in bytes, before no more is
/// read.
pub const HELD_BYTES_MAX: usize = 1 << 20;

impl Session {
    /// Whether another request may be read: what was asked is not too far ahead of what was answered and sent.
    pub(super) fn wants_input(&self) -> bool {
        self.output.has_room()
            && self.open.len() < REQUESTS_OPEN_MAX
            && self.open_bytes < REQUEST_BYTES_OPEN_MAX
            && self.held_bytes < HELD_BYTES_MAX
    }

    /// Whether a message that was held back can be handled now.
    pub(super) fn has_held(&self) -> bool {
        self.beginning.is_none() && !self.held.is_empty()
    }

    /// The next message that was held back, if it can be handled now.
    pub(super) fn take_held(&mut self) -> Option<Vec<u8>> {
        if self.beginning.is_some() {
            return None;
        }
        let message = self.held.pop_front()?;
        self.held_bytes -= message.len();
        Some(message)
    }

    /// Takes a whole message from the client.
    pub(super) async fn handle_message(&mut self, text: &[u8]) -> Result<(), Ended> {
        let malformed = |reason: String| Ended::Malformed(reason);
        let json = Json::parse(text).map_err(|e| malformed(e.to_string()))?;
        match Message::from_json(json).map_err(|e| malformed(e.to_string()))? {
            Message::Request { method, .. } | Message::Notification { method, .. }
                if self.beginning.is_some() && method != "echo" =>
            {
                self.held_bytes += text.len();
                self.held.push_back(text.to_vec());
                Ok(())
            }
            Message::Request { method, params, id } => {
                self.flush_monitors()?;
                // The values of transactions are checked one by one, where the error can say more.
                if method != "transact" && !params.iter().all(Json::is_finite) {
                    self.reply_error(&id.to_sorted_string(), &fault(&params, "a number is out of range"));
                    return Ok(());
                }
                self.request(&method, &params, id.to_sorted_string(), text.len()).await
            }
            Message::Notification { method, params } => {
                if method == "cancel" {
                    self.cancel(&params);
                }
                Ok(())
            }
            Message::Reply { id, .. } => {
                if id.as_str() != Some("echo") {
                    return Err(Ended::Malformed("a reply to nothing".to_string()));
                }
                self.awaits_probe = false;
                Ok(())
            }
        }
    }

    async fn request(
        &mut self,
        method: &str,
        params: &[Json<'_>],
        id: String,
        bytes: usize,
    ) -> Result<(), Ended> {
        match method {
            "echo" => self.reply(&id, |out| write_array(params, out)),
            "transact" => match self.database(method, params) {
                Ok(database) => return self.transact(id, &database, &params[1..], bytes),
                Err(error) => self.reply_error(&id, &error),
            },
            "monitor" => return self.begin(method, Dialect::Plain, &id, params).await,
            "monitor_cond" => return self.begin(method, Dialect::Conditional, &id, params).await,
            "monitor_cond_since" => return self.begin(method, Dialect::Since, &id, params).await,
            "monitor_cond_change" => return self.monitor_cond_change(&id, params).await,
            "monitor_cancel" => self.monitor_cancel(&id, params),
            "lock" | "steal" => match self.acquire(method, params) {
                Ok(owns) => self.reply(&id, |out| out.push_str(&format!("{{\"locked\":{owns}}}"))),
                Err(error) => self.reply_error(&id, &error),
            },
            "unlock" => match self.release(params) {
                Ok(()) => self.reply(&id, |out| out.push_str("{}")),
                Err(error) => self.reply_error(&id, &error),
            },
            "list_dbs" => {
                let names = self.shared.database_names();
                self.reply(&id, |out| {
                    let names = names.into_iter().map(|name| Json::Str(name.into())).collect();
                    Json::Array(names).write(out, false);
                });
            }
            "get_schema" => match self.database(method, params) {
                Ok(database) => {
                    let schema = database.schema();
                    self.reply(&id, |out| out.push_str(schema.text()));
                }
                Err(error) => self.reply_error(&id, &error),
            },
            "get_server_id" => {
                let server = self.shared.id.to_string();
                self.reply(&id, |out| write_str(out, &server));
            }
            "set_db_change_aware" => match params {
                [Json::Bool(aware)] => {
                    self.is_change_aware = *aware;
                    self.reply(&id, |out| out.push_str("{}"));
                }
                _ => {
                    let error = fault(params, "set_db_change_aware: true or false parameter expected");
                    self.reply_error(&id, &error);
                }
            },
            _ => self.reply_error_text(&id, "unknown method"),
        }
        Ok(())
    }

    async fn begin(
        &mut self,
        method: &str,
        dialect: Dialect,
        id: &str,
        params: &[Json<'_>],
    ) -> Result<(), Ended> {
        match self.database(method, params) {
            Ok(database) => self.monitor(id, dialect, &database, params).await,
            Err(error) => {
                self.reply_error(id, &error);
                Ok(())
            }
        }
    }

    /// The database that the first parameter names.
    fn database(&self, method: &str, params: &[Json<'_>]) -> Result<Arc<Database>, Error> {
        let Some(Json::Str(name)) = params.first() else {
            return Err(fault(params, format!("{method} request params must begin with <db-name>")));
        };
        self.shared.database(name).ok_or_else(|| {
            let details = format!("{method} request specifies unknown database {name}");
            Error::at(&Json::Array(params.to_vec()), ErrorKind::UnknownDatabase, details)
        })
    }

    fn lock_name<'p>(&self, method: &str, params: &'p [Json<'_>]) -> Result<&'p str, Error> {
        match params {
            [Json::Str(name)] if is_id(name) => Ok(name),
            _ => Err(fault(params, format!("{method} request params must be <id>"))),
        }
    }

    fn acquire(&mut self, method: &str, params: &[Json<'_>]) -> Result<bool, Error> {
        let name = self.lock_name(method, params)?;
        if self.locks.iter().any(|n| n == name) {
            return Err(fault(params, format!("must issue \"unlock\" before new \"{method}\"")));
        }
        if self.locks.len() >= LOCKS_PER_SESSION_MAX {
            let details = format!("a session may have at most {LOCKS_PER_SESSION_MAX} locks");
            return Err(Error::new(ErrorKind::ResourcesExhausted, details));
        }
        self.locks.push(name.to_string());
        if method == "steal" {
            self.shared.locks.steal(name, self.id, &self.events);
            return Ok(true);
        }
        Ok(self.shared.locks.lock(name, self.id, &self.events))
    }

    fn release(&mut self, params: &[Json<'_>]) -> Result<(), Error> {
        let name = self.lock_name("unlock", params)?;
        let Some(at) = self.locks.iter().position(|n| n == name) else {
            return Err(fault(params, "unlock: \"unlock\" without \"lock\" or \"steal\""));
        };
        self.locks.remove(at);
        self.shared.locks.unlock(name, self.id);
        Ok(())
    }
}

fn fault(params: &[Json<'_>], details: impl Into<String>) -> Error {
    Error::syntax(&Json::Array(params.to_vec()), details)
}

fn write_array(elements: &[Json<'_>], out: &mut String) {
    Json::Array(elements.to_vec()).write(out, false);
}
