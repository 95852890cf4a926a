//! Small helpers to build JSON values and to print them as the command line tools do: members sorted, on request one
//! member or element per line.

use cowslip_ovsdb::json::{Json, Object, write_str};

/// A value that borrows nothing, as the whole client handles it.
pub(crate) type Value = Json<'static>;

/// A string.
pub(crate) fn string(text: &str) -> Value {
    Json::Str(text.to_owned().into())
}

/// An object of these members.
pub(crate) fn object<'k>(members: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
    Json::Object(Object::new(members.into_iter().map(|(k, v)| (k.to_owned().into(), v)).collect()))
}

/// An array of strings.
pub(crate) fn strings<'s>(texts: impl IntoIterator<Item = &'s str>) -> Value {
    Json::Array(texts.into_iter().map(string).collect())
}

/// A `select` of these columns of all rows of a table.
pub(crate) fn select_all(table: &str, columns: Value) -> Value {
    object([
        ("op", string("select")),
        ("table", string(table)),
        ("where", Json::Array(Vec::new())),
        ("columns", columns),
    ])
}

/// The text of a value with sorted members, spread over lines if `pretty`.
pub(crate) fn text(value: &Json<'_>, pretty: bool) -> String {
    let mut out = String::new();
    if pretty {
        write_pretty(&mut out, value, 0);
    } else {
        value.write(&mut out, true);
    }
    out
}

fn write_pretty(out: &mut String, value: &Json<'_>, depth: usize) {
    match value {
        Json::Array(elements) if !elements.is_empty() => {
            out.push('[');
            for (i, element) in elements.iter().enumerate() {
                next_line(out, i, depth + 1);
                write_pretty(out, element, depth + 1);
            }
            out.push(']');
        }
        Json::Object(object) if !object.is_empty() => {
            let mut members: Vec<_> = object.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (i, (key, member)) in members.into_iter().enumerate() {
                next_line(out, i, depth + 1);
                write_str(out, key);
                out.push_str(": ");
                write_pretty(out, member, depth + 1);
            }
            out.push('}');
        }
        _ => value.write(out, true),
    }
}

fn next_line(out: &mut String, index: usize, depth: usize) {
    out.push_str(if index > 0 { ",\n" } else { "\n" });
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pretty_closes_brackets_on_the_last_line() {
        let value = Json::parse(br#"{"b":[1,{"x":[]}],"a":{}}"#).unwrap();
        assert_eq!(text(&value, false), r#"{"a":{},"b":[1,{"x":[]}]}"#);
        assert_eq!(text(&value, true), "{\n  \"a\": {},\n  \"b\": [\n    1,\n    {\n      \"x\": []}]}");
    }
}
