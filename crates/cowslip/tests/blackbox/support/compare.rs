//! Comparison of what was wanted with what came.
//!
//! Short forms in data: `"#3"` is the UUID `a0000000-0000-4000-8000-000000000003`, and `"<name>"` any UUID, the same
//! wherever the name occurs and another one for each name. Rows have no order; sets and maps are compared in the
//! order given, because programs rely on it that servers sort them. Of an error only its code counts, unless the data give its `details`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The UUIDs that stand for names so far.
#[derive(Debug, Default, Clone)]
pub(crate) struct Names(BTreeMap<String, String>);

/// Writes out the short form of UUIDs, in texts and in names of members.
pub(crate) fn expand(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(expand_text(text)),
        Value::Array(items) => Value::Array(items.iter().map(expand).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(k, v)| (expand_text(k), expand(v))).collect())
        }
        other => other.clone(),
    }
}

fn expand_text(text: &str) -> String {
    match text.strip_prefix('#') {
        Some(n) if !n.is_empty() && n.len() <= 12 && n.bytes().all(|b| b.is_ascii_hexdigit()) => {
            format!("a0000000-0000-4000-8000-{n:0>12}")
        }
        _ => text.to_owned(),
    }
}

/// Writes out the short form inside a JSON text.
pub(crate) fn expand_json_text(text: &str) -> String {
    let mut out = String::new();
    for (at, part) in text.split('"').enumerate() {
        if at > 0 {
            out.push('"');
        }
        out.push_str(&expand_text(part));
    }
    out
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit() && !b.is_ascii_uppercase(),
        })
}

impl Names {
    /// Whether `got` is what `want` describes; otherwise where and how it differs.
    pub(crate) fn compare(&mut self, want: &Value, got: &Value) -> Result<(), String> {
        let mut tried = self.clone();
        tried.at(want, got, "")?;
        *self = tried;
        Ok(())
    }

    fn at(&mut self, want: &Value, got: &Value, path: &str) -> Result<(), String> {
        let differ = || Err(format!("at {path:?}: want {want}, got {got}"));
        match (want, got) {
            (Value::String(name), Value::String(text)) if name.starts_with('<') && name.ends_with('>') => {
                if self.bind(name, text) {
                    Ok(())
                } else {
                    differ()
                }
            }
            (Value::Number(a), Value::Number(b)) => {
                let equal = match (a.as_i64(), b.as_i64()) {
                    (Some(a), Some(b)) => a == b,
                    _ => a.as_f64() == b.as_f64(),
                };
                if equal { Ok(()) } else { differ() }
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                a.iter().zip(b).enumerate().try_for_each(|(i, (x, y))| self.at(x, y, &format!("{path}/{i}")))
            }
            (Value::Object(a), Value::Object(b)) => self.members(a, b, path),
            (a, b) if a == b => Ok(()),
            _ => differ(),
        }
    }

    fn bind(&mut self, name: &str, text: &str) -> bool {
        if let Some(bound) = self.0.get(name) {
            return bound == text;
        }
        let free = is_uuid(text) && !self.0.values().any(|v| v == text);
        if free {
            self.0.insert(name.to_owned(), text.to_owned());
        }
        free
    }

    fn members(
        &mut self,
        want: &Map<String, Value>,
        got: &Map<String, Value>,
        path: &str,
    ) -> Result<(), String> {
        let is_error = want.get("error").is_some_and(Value::is_string);
        for (name, value) in got {
            let prose = is_error && matches!(name.as_str(), "details" | "syntax");
            if !want.contains_key(name) && !prose {
                return Err(format!("at {path:?}: unwanted member {name:?}: {value}"));
            }
        }
        for (name, value) in want {
            let below = format!("{path}/{name}");
            match (got.get(name), value) {
                (None, _) => return Err(format!("at {path:?}: no member {name:?}, wanted {value}")),
                (Some(Value::Array(b)), Value::Array(a)) if name == "rows" => self.rows(a, b, &below)?,
                (Some(other), _) => self.at(value, other, &below)?,
            }
        }
        Ok(())
    }

    fn rows(&mut self, want: &[Value], got: &[Value], path: &str) -> Result<(), String> {
        let mut left: Vec<&Value> = got.iter().collect();
        for row in want {
            let mut tries = left.iter().enumerate();
            let Some((at, names)) = tries.find_map(|(at, other)| {
                let mut names = self.clone();
                names.at(row, other, path).ok().map(|()| (at, names))
            }) else {
                return Err(format!("at {path:?}: no row {row} among {}", Value::from(got.to_vec())));
            };
            *self = names;
            left.remove(at);
        }
        match left.first() {
            None => Ok(()),
            Some(extra) => Err(format!("at {path:?}: unwanted row {extra}")),
        }
    }
}

/// The rows of a select in one order, so that two servers' answers can be compared as a whole.
pub(crate) fn sort_rows(result: &mut Value) {
    if let Some(rows) = result.get_mut("rows").and_then(Value::as_array_mut) {
        rows.sort_by_cached_key(sorted_text);
    }
}

/// The text of a value with its members in one order.
pub(crate) fn sorted_text(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(sorted_text).collect::<Vec<_>>().join(","))
        }
        Value::Object(members) => {
            let mut parts: Vec<String> = members
                .iter()
                .map(|(k, v)| format!("{}:{}", Value::from(k.as_str()), sorted_text(v)))
                .collect();
            parts.sort();
            format!("{{{}}}", parts.join(","))
        }
        other => other.to_string(),
    }
}
