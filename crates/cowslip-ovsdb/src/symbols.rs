//! The names that one transaction gives to its new rows (`uuid-name`, `named-uuid`; RFC 7047 section 5.1).
//!
//! A name may be used before the insert that defines it, and that insert may choose the row's UUID. So the names of all
//! inserts are collected before the first operation runs ([`Symbols::predefine`]), and a use always means the row's UUID.
//! A name that no insert defines stands for a random UUID that no row has.

use cowslip_engine::Uuid;
use std::collections::HashMap;

/// The names of one transaction.
#[derive(Debug, Default)]
pub struct Symbols {
    names: HashMap<String, Symbol>,
}

#[derive(Debug)]
struct Symbol {
    uuid: Uuid,
    defined: bool,
}

impl Symbols {
    /// Announces that an insert will define `name` for the row `uuid`; the first announcement of a name counts.
    pub fn predefine(&mut self, name: &str, uuid: Uuid) {
        self.names.entry(name.to_string()).or_insert(Symbol { uuid, defined: false });
    }

    /// The UUID that `name` stands for.
    pub fn refer(&mut self, name: &str) -> Uuid {
        if let Some(symbol) = self.names.get(name) {
            return symbol.uuid;
        }
        let uuid = Uuid::new_v4();
        self.names.insert(name.to_string(), Symbol { uuid, defined: false });
        uuid
    }

    /// An insert defines `name`: the UUID of its row, or `None` if an earlier insert has defined the name.
    pub fn define(&mut self, name: &str) -> Option<Uuid> {
        let uuid = self.refer(name);
        let symbol = self.names.get_mut(name)?;
        if std::mem::replace(&mut symbol.defined, true) { None } else { Some(uuid) }
    }
}
