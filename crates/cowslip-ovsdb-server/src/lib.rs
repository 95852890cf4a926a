//! An OVSDB server that Open vSwitch's and OVN's own programs use without knowing: sessions, monitors, locks and
//! database files around the executor of [`cowslip_ovsdb`] and the commit pipeline of [`cowslip_engine`].
#![forbid(unsafe_code)]

mod database;
mod dump;
pub mod file;
mod host;
mod locks;
mod server;
mod server_db;
mod session;
pub mod testing;

pub use host::{PARKED_MAX, PARKED_PER_SESSION_MAX};
pub use locks::LOCKS_PER_SESSION_MAX;
pub use server::{Server, ServerError, ServerOptions};
pub use server_db::SERVER_DATABASE;
pub use session::{
    HELD_BYTES_MAX, MONITORS_MAX, OUTPUT_BYTES_MAX, REQUEST_BYTES_OPEN_MAX, REQUESTS_OPEN_MAX,
};
