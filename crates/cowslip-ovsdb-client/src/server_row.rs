//! What the database `_Server` tells of the one that is wanted: whether this server will do.

use crate::options::Options;
use cowslip_engine::Uuid;
use cowslip_ovsdb::atom::parse_uuid;
use cowslip_ovsdb::json::Json;
use std::collections::BTreeMap;

/// The rows of `_Server`'s table `Database`, as far as they are of interest.
#[derive(Debug, Default)]
pub(crate) struct ServerRows(BTreeMap<String, BTreeMap<String, Json<'static>>>);

impl ServerRows {
    /// Takes an initial dump or an update in the manner of `monitor_cond`. All columns hold at most one value, so what
    /// is sent is always the new value.
    pub(crate) fn update(&mut self, json: &Json<'_>) {
        let rows = json.as_object().and_then(|o| o.member("Database")).and_then(Json::as_object);
        for (id, change) in rows.into_iter().flat_map(|rows| rows.iter()) {
            for (kind, values) in change.as_object().into_iter().flat_map(|o| o.iter()) {
                if kind == "delete" {
                    self.0.remove(id);
                    continue;
                }
                let row = self.0.entry(id.to_string()).or_default();
                for (column, value) in values.as_object().into_iter().flat_map(|o| o.iter()) {
                    row.insert(column.to_string(), value.clone().into_owned());
                }
            }
        }
    }

    /// Whether the server will do; gives how far its log is, if it is part of a cluster.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(
        &self,
        database: &str,
        options: &Options,
        min_index: Option<i64>,
    ) -> Result<Option<i64>, String> {
        let named =
            |row: &&BTreeMap<String, Json<'static>>| row.get("name").and_then(Json::as_str) == Some(database);
        let row = self.0.values().find(named).ok_or_else(|| format!("no database {database}"))?;
        let is_true = |column| matches!(row.get(column), Some(Json::Bool(true)));
        let model = row.get("model").and_then(Json::as_str).unwrap_or("standalone");
        if model == "standalone" || model.is_empty() {
            return Ok(None);
        }
        if !is_true("connected") {
            return Err("the server is disconnected from its cluster or source".to_string());
        }
        if model != "clustered" {
            return Ok(None);
        }
        if options.leader_only && !is_true("leader") {
            return Err("the server is not the cluster's leader".to_string());
        }
        if let Some(wanted) = options.cluster {
            let cluster = row.get("cid").and_then(uuid);
            if cluster != Some(wanted) {
                return Err(format!("the server belongs to another cluster than {wanted}"));
            }
        }
        let index = match row.get("index") {
            Some(Json::Int(index)) => Some(*index),
            _ => None,
        };
        match (index, min_index) {
            (Some(index), Some(min)) if index < min => {
                Err(format!("the server is behind: its index is {index}, {min} was seen before"))
            }
            _ => Ok(index),
        }
    }
}

fn uuid(json: &Json<'static>) -> Option<Uuid> {
    match json.as_array()? {
        [Json::Str(tag), Json::Str(text)] if tag == "uuid" => parse_uuid(text),
        _ => None,
    }
}
