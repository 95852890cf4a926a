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

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: &str = "00000000-0000-0000-0000-000000000007";

    fn update(rows: &mut ServerRows, text: &str) {
        rows.update(&Json::parse(text.as_bytes()).expect("the test's text is JSON"));
    }

    /// What is said of a server whose row has these columns.
    fn verdict(columns: &str) -> Result<Option<i64>, String> {
        let mut options = Options::new("T");
        options.leader_only = true;
        options.cluster = parse_uuid(CLUSTER);
        let mut rows = ServerRows::default();
        update(
            &mut rows,
            &format!(
                r#"{{"Database":{{"1":{{"initial":{{"name":"T"{columns}}}}},"2":{{"initial":{{"name":"U"}}}}}}}}"#
            ),
        );
        rows.check("T", &options, Some(20))
    }

    fn clustered(connected: bool, leader: bool, cid: &str, index: &str) -> String {
        format!(
            r#","model":"clustered","connected":{connected},"leader":{leader},"cid":{cid},"index":{index}"#
        )
    }

    /// CLI-14, and what else a row can say.
    #[test]
    fn servers_that_will_not_do_are_told_apart() {
        let ours = format!(r#"["uuid","{CLUSTER}"]"#);
        let other = r#"["uuid","00000000-0000-0000-0000-000000000008"]"#;
        let none = r#"["set",[]]"#;
        let cases = [
            (String::new(), Ok(None)),
            (r#","model":"""#.to_string(), Ok(None)),
            (r#","model":"standalone","connected":false,"leader":false"#.to_string(), Ok(None)),
            (r#","model":"relay","connected":true,"leader":false"#.to_string(), Ok(None)),
            (r#","model":"relay","connected":false"#.to_string(), Err("disconnected")),
            (clustered(true, true, &ours, "20"), Ok(Some(20))),
            (clustered(true, true, &ours, none), Ok(None)),
            (clustered(false, true, &ours, "30"), Err("disconnected")),
            (clustered(true, false, &ours, "30"), Err("leader")),
            (clustered(true, true, other, "30"), Err("another cluster")),
            (clustered(true, true, none, "30"), Err("another cluster")),
            (clustered(true, true, &ours, "10"), Err("behind")),
        ];
        for (columns, wanted) in cases {
            match (verdict(&columns), wanted) {
                (Ok(index), Ok(wanted)) => assert_eq!(index, wanted, "{columns}"),
                (Err(reason), Err(word)) => assert!(reason.contains(word), "{columns}: {reason}"),
                (found, wanted) => panic!("{columns}: {found:?}, not {wanted:?}"),
            }
        }
    }

    #[test]
    fn rows_follow_updates() {
        let options = Options::new("T");
        let mut rows = ServerRows::default();
        let check = |rows: &ServerRows| rows.check("T", &options, None);
        assert!(check(&rows).expect_err("there is no row").contains("no database T"));
        update(
            &mut rows,
            r#"{"Database":{"1":{"insert":{"name":"T","model":"clustered","connected":true,"index":1}}}}"#,
        );
        assert_eq!(check(&rows), Ok(Some(1)));
        update(&mut rows, r#"{"Database":{"1":{"modify":{"index":2}}},"Other":{}}"#);
        assert_eq!(check(&rows), Ok(Some(2)));
        update(&mut rows, r#"{"Database":{"1":{"modify":{"connected":false}}}}"#);
        assert!(check(&rows).is_err());
        update(&mut rows, r#"{"Database":{"1":{"delete":null}}}"#);
        assert!(check(&rows).expect_err("the row is gone").contains("no database T"));
        // What is no update changes nothing.
        for text in
            ["[]", "{}", r#"{"Database":7}"#, r#"{"Database":{"1":7}}"#, r#"{"Database":{"1":{"modify":7}}}"#]
        {
            update(&mut rows, text);
        }
        assert!(check(&rows).is_err());
    }
}
