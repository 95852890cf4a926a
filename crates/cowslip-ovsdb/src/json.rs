//! JSON as OVSDB uses it: a tree that borrows from the message, a strict parser and a writer.
//!
//! Why not a general crate: integers must be exact over all 64 bits and `1e3`, `2.0` are integers here, the largest real
//! must survive (see [`crate::number`]), of repeated object keys the last wins, NUL and lone surrogates are malformed,
//! and errors show the offending value with sorted keys. Strings stay slices of the message until they become values.
//!
//! Invariants: a parsed tree is at most [`DEPTH_MAX`] deep; strings are valid UTF-8 without NUL; an [`Object`] holds each
//! key once, in the order of the text.

use crate::number;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// How deeply arrays and objects may be nested in one message.
pub const DEPTH_MAX: usize = 1000;

/// A JSON value; strings borrow from the text they were parsed from where they hold no escapes.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number without a fractional part that fits 64 bits, however it was written.
    Int(i64),
    /// Any other number; infinite if it exceeds the range of a double (the values of columns refuse that).
    Real(f64),
    /// A string.
    Str(Cow<'a, str>),
    /// An array.
    Array(Vec<Json<'a>>),
    /// An object.
    Object(Object<'a>),
    /// The text of an array or object that was left unparsed: see [`Json::parse_to_depth`].
    Raw(Cow<'a, str>),
}

/// An object's members, each key once, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object<'a> {
    members: Vec<(Cow<'a, str>, Json<'a>)>,
}

/// Why a text is not JSON as OVSDB accepts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// Byte offset in the text.
    pub offset: usize,
    /// What is wrong there.
    pub reason: &'static str,
    /// Whether the text merely ends too early: with more behind it, it might be JSON.
    pub is_incomplete: bool,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.reason, self.offset)
    }
}

impl std::error::Error for JsonError {}

impl<'a> Object<'a> {
    /// An object of these members; of repeated keys the last wins.
    pub fn new(members: Vec<(Cow<'a, str>, Json<'a>)>) -> Self {
        const LINEAR_MAX: usize = 12;
        let repeated = if members.len() <= LINEAR_MAX {
            members.iter().enumerate().any(|(i, (k, _))| members[..i].iter().any(|(j, _)| j == k))
        } else {
            let mut seen = std::collections::HashSet::with_capacity(members.len());
            members.iter().any(|(k, _)| !seen.insert(k.as_ref()))
        };
        if !repeated {
            return Object { members };
        }
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut kept: Vec<(Cow<'a, str>, Json<'a>)> = Vec::new();
        for (key, value) in members {
            match places.get(key.as_ref()) {
                Some(&at) => kept[at].1 = value,
                None => {
                    places.insert(key.to_string(), kept.len());
                    kept.push((key, value));
                }
            }
        }
        Object { members: kept }
    }

    /// The member with this key.
    pub fn member(&self, key: &str) -> Option<&Json<'a>> {
        self.members.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// The members in the order of the text.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Json<'a>)> {
        self.members.iter().map(|(k, v)| (k.as_ref(), v))
    }

    /// The members, to be kept.
    pub fn into_members(self) -> impl ExactSizeIterator<Item = (Cow<'a, str>, Json<'a>)> {
        self.members.into_iter()
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl<'a> Json<'a> {
    /// Parses one value; anything but white space after it is an error.
    ///
    /// # Errors
    /// Says where the text stops being JSON.
    ///
    /// ```
    /// use cowslip_ovsdb::json::Json;
    /// assert_eq!(Json::parse(b"[1e3, 2.50]").unwrap().to_string(), "[1000,2.5]");
    /// assert!(Json::parse(b"[1,]").is_err());
    /// ```
    pub fn parse(text: &'a [u8]) -> Result<Json<'a>, JsonError> {
        let text = checked(text)?;
        Parser::new(text, DEPTH_MAX).whole()
    }

    /// Parses one value of which what lies in more than `depth` brackets is left as text ([`Json::Raw`]), so that a
    /// large value can be taken apart piece by piece without being in memory as a tree.
    ///
    /// # Errors
    /// As [`Json::parse`]. Of what is left as text only the brackets are looked at.
    ///
    /// ```
    /// use cowslip_ovsdb::json::Json;
    /// let json = Json::parse_to_depth(b"[1,[2,{}],3]", 1).unwrap();
    /// assert_eq!(json.as_array().unwrap()[1], Json::Raw("[2,{}]".into()));
    /// assert_eq!(json.completed(), Json::parse(b"[1,[2,{}],3]"));
    /// ```
    pub fn parse_to_depth(text: &'a [u8], depth: usize) -> Result<Json<'a>, JsonError> {
        Parser::new(checked(text)?, depth).whole()
    }

    /// The value with everything parsed that was left as text.
    ///
    /// # Errors
    /// What was left is no JSON; offsets are within it.
    pub fn completed(self) -> Result<Json<'a>, JsonError> {
        match self {
            Json::Raw(Cow::Borrowed(text)) => Parser::new(text, DEPTH_MAX).whole(),
            Json::Raw(Cow::Owned(text)) => Json::parse(text.as_bytes()).map(Json::into_owned),
            Json::Array(elements) => {
                elements.into_iter().map(Json::completed).collect::<Result<_, _>>().map(Json::Array)
            }
            Json::Object(object) => {
                let members = object.members.into_iter();
                let members = members.map(|(key, value)| Ok((key, value.completed()?)));
                members.collect::<Result<_, _>>().map(|members| Json::Object(Object { members }))
            }
            scalar => Ok(scalar),
        }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The elements, if it is an array.
    pub fn as_array(&self) -> Option<&[Json<'a>]> {
        match self {
            Json::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The members, if it is an object.
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Json::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Whether every number in the value is one that a double can hold.
    pub fn is_finite(&self) -> bool {
        match self {
            Json::Real(r) => r.is_finite(),
            Json::Array(elements) => elements.iter().all(Json::is_finite),
            Json::Object(object) => object.iter().all(|(_, value)| value.is_finite()),
            Json::Null | Json::Bool(_) | Json::Int(_) | Json::Str(_) | Json::Raw(_) => true,
        }
    }

    /// A copy that borrows nothing.
    pub fn into_owned(self) -> Json<'static> {
        match self {
            Json::Null => Json::Null,
            Json::Bool(b) => Json::Bool(b),
            Json::Int(i) => Json::Int(i),
            Json::Real(r) => Json::Real(r),
            Json::Str(s) => Json::Str(Cow::Owned(s.into_owned())),
            Json::Raw(text) => Json::Raw(Cow::Owned(text.into_owned())),
            Json::Array(a) => Json::Array(a.into_iter().map(Json::into_owned).collect()),
            Json::Object(o) => Json::Object(Object {
                members: o
                    .members
                    .into_iter()
                    .map(|(k, v)| (Cow::Owned(k.into_owned()), v.into_owned()))
                    .collect(),
            }),
        }
    }

    /// Appends the text; with `sorted`, the members of objects are in the order of their keys.
    pub fn write(&self, out: &mut String, sorted: bool) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            Json::Int(i) => write_int(out, *i),
            Json::Real(r) => number::write_real(out, *r),
            Json::Str(s) => write_str(out, s),
            Json::Raw(text) => out.push_str(text),
            Json::Array(elements) => {
                out.push('[');
                for (i, element) in elements.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    element.write(out, sorted);
                }
                out.push(']');
            }
            Json::Object(object) => {
                let mut members: Vec<_> = object.iter().collect();
                if sorted {
                    members.sort_by_key(|(k, _)| *k);
                }
                out.push('{');
                for (i, (key, value)) in members.into_iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write_str(out, key);
                    out.push(':');
                    value.write(out, sorted);
                }
                out.push('}');
            }
        }
    }

    /// The text with sorted keys, as error messages show it.
    pub fn to_sorted_string(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, true);
        out
    }
}

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write(&mut out, false);
        f.write_str(&out)
    }
}

/// Appends a 64-bit integer.
pub fn write_int(out: &mut String, value: i64) {
    use fmt::Write;
    // Writing to a `String` cannot fail.
    let _ = write!(out, "{value}");
}

/// Appends a string in quotes, escaping what JSON requires and nothing else.
pub fn write_str(out: &mut String, text: &str) {
    out.push('"');
    let mut clean = 0;
    for (i, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[clean..i]);
        clean = i + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            _ => out.push_str(&format!("\\u{byte:04x}")),
        }
    }
    out.push_str(&text[clean..]);
    out.push('"');
}

fn checked(text: &[u8]) -> Result<&str, JsonError> {
    std::str::from_utf8(text).map_err(|e| JsonError {
        offset: e.valid_up_to(),
        reason: "invalid UTF-8",
        is_incomplete: e.error_len().is_none(),
    })
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// What lies in more brackets than that is left as text.
    parsed_depth: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, parsed_depth: usize) -> Self {
        Parser { text, bytes: text.as_bytes(), at: 0, parsed_depth }
    }

    /// The one value that the text is.
    fn whole(mut self) -> Result<Json<'a>, JsonError> {
        self.space();
        let value = self.value(0)?;
        self.space();
        if self.at < self.bytes.len() { self.fail("trailing garbage") } else { Ok(value) }
    }

    fn fail<T>(&self, reason: &'static str) -> Result<T, JsonError> {
        Err(JsonError { offset: self.at, reason, is_incomplete: self.at >= self.bytes.len() })
    }

    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        match self.peek() {
            b'"' => Ok(Json::Str(self.string()?)),
            b'[' | b'{' if depth == self.parsed_depth => self.raw(depth),
            b'[' => self.array(depth + 1),
            b'{' => self.object(depth + 1),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word("true", Json::Bool(true)),
            b'f' => self.word("false", Json::Bool(false)),
            b'n' => self.word("null", Json::Null),
            _ => self.fail("a JSON value is expected"),
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, JsonError> {
        let rest = &self.bytes[self.at..];
        if !rest.starts_with(word.as_bytes()) {
            let is_incomplete = word.as_bytes().starts_with(rest);
            return Err(JsonError { offset: self.at, reason: "unknown keyword", is_incomplete });
        }
        self.at += word.len();
        Ok(value)
    }

    /// Passes over a bracketed value.
    fn raw(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        let (start, mut open) = (self.at, 0);
        loop {
            let Some(byte) = self.bytes.get(self.at) else { return self.fail("a bracket is not closed") };
            self.at += 1;
            match byte {
                b'[' | b'{' if depth + open == DEPTH_MAX => return self.fail("nested too deeply"),
                b'[' | b'{' => open += 1,
                b']' | b'}' => open -= 1,
                b'"' => self.pass_string()?,
                _ => {}
            }
            if open == 0 {
                return Ok(Json::Raw(Cow::Borrowed(&self.text[start..self.at])));
            }
        }
    }

    /// Passes over the rest of a string.
    fn pass_string(&mut self) -> Result<(), JsonError> {
        loop {
            let end = memchr::memchr2(b'"', b'\\', &self.bytes[self.at..]);
            let Some(end) = end else { return self.fail("unterminated string") };
            self.at += end + 1;
            if self.bytes[self.at - 1] == b'"' {
                return Ok(());
            }
            self.at = (self.at + 1).min(self.bytes.len());
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        if depth > DEPTH_MAX {
            return self.fail("nested too deeply");
        }
        self.at += 1;
        self.space();
        let mut elements = Vec::new();
        if self.peek() == b']' {
            self.at += 1;
            return Ok(Json::Array(elements));
        }
        loop {
            elements.push(self.value(depth)?);
            self.space();
            match self.peek() {
                b',' => self.at += 1,
                b']' => break,
                _ => return self.fail("',' or ']' is expected"),
            }
            self.space();
        }
        self.at += 1;
        Ok(Json::Array(elements))
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        if depth > DEPTH_MAX {
            return self.fail("nested too deeply");
        }
        self.at += 1;
        self.space();
        let mut members = Vec::new();
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(Json::Object(Object::default()));
        }
        loop {
            if self.peek() != b'"' {
                return self.fail("a member's name is expected");
            }
            let key = self.string()?;
            self.space();
            if self.peek() != b':' {
                return self.fail("':' is expected");
            }
            self.at += 1;
            self.space();
            members.push((key, self.value(depth)?));
            self.space();
            match self.peek() {
                b',' => self.at += 1,
                b'}' => break,
                _ => return self.fail("',' or '}' is expected"),
            }
            self.space();
        }
        self.at += 1;
        Ok(Json::Object(Object::new(members)))
    }

    fn number(&mut self) -> Result<Json<'a>, JsonError> {
        let start = self.at;
        let digits = |p: &mut Self| {
            let from = p.at;
            while p.peek().is_ascii_digit() {
                p.at += 1;
            }
            p.at - from
        };
        if self.peek() == b'-' {
            self.at += 1;
        }
        let leading_zero = self.peek() == b'0';
        let whole = digits(self);
        if whole == 0 || (leading_zero && whole > 1) {
            return self.fail("malformed number");
        }
        let mut plain = true;
        if self.peek() == b'.' {
            plain = false;
            self.at += 1;
            if digits(self) == 0 {
                return self.fail("malformed number");
            }
        }
        if matches!(self.peek(), b'e' | b'E') {
            plain = false;
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            if digits(self) == 0 {
                return self.fail("malformed number");
            }
        }
        let text = &self.text[start..self.at];
        Ok(if plain { number::parse_plain(text) } else { number::parse_decimal(text) })
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.at += 1;
        let start = self.at;
        loop {
            match self.bytes.get(self.at) {
                None => return self.fail("unterminated string"),
                Some(b'"') => {
                    let text = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(Cow::Borrowed(text));
                }
                Some(b'\\') => return self.escaped_string(start),
                Some(0..0x20) => return self.fail("control character in string"),
                Some(_) => self.at += 1,
            }
        }
    }

    /// The rest of a string from its first escape on.
    fn escaped_string(&mut self, start: usize) -> Result<Cow<'a, str>, JsonError> {
        let mut out = String::from(&self.text[start..self.at]);
        let mut clean = self.at;
        loop {
            match self.bytes.get(self.at) {
                None => return self.fail("unterminated string"),
                Some(b'"') => {
                    out.push_str(&self.text[clean..self.at]);
                    self.at += 1;
                    return Ok(Cow::Owned(out));
                }
                Some(b'\\') => {
                    out.push_str(&self.text[clean..self.at]);
                    self.at += 1;
                    out.push(self.escape()?);
                    clean = self.at;
                }
                Some(0..0x20) => return self.fail("control character in string"),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let c = match self.peek() {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return self.fail("unknown escape"),
        };
        self.at += 1;
        Ok(c)
    }

    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let first = self.hex4()?;
        if first == 0 {
            return self.fail("NUL in string");
        }
        let code = if (0xd800..0xdc00).contains(&first) {
            let rest = &self.bytes[self.at..];
            if !rest.starts_with(b"\\u") {
                let is_incomplete = b"\\u".starts_with(rest);
                return Err(JsonError { offset: self.at, reason: "lone surrogate", is_incomplete });
            }
            self.at += 1;
            let second = self.hex4()?;
            if !(0xdc00..0xe000).contains(&second) {
                return self.fail("lone surrogate");
            }
            0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
        } else {
            first
        };
        let lone = JsonError { offset: self.at, reason: "lone surrogate", is_incomplete: false };
        char::from_u32(code).ok_or(lone)
    }

    /// Reads `uXXXX`, standing on the `u`.
    fn hex4(&mut self) -> Result<u32, JsonError> {
        const MALFORMED_ESCAPE: &str = "malformed escape of a character by its number";
        let digits = self.bytes.get(self.at + 1..self.at + 5).unwrap_or(&[]);
        if digits.len() < 4 {
            let is_incomplete = self.bytes[self.at + 1..].iter().all(u8::is_ascii_hexdigit);
            return Err(JsonError { offset: self.at, reason: MALFORMED_ESCAPE, is_incomplete });
        }
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return self.fail(MALFORMED_ESCAPE);
        }
        let code = digits.iter().fold(0, |n, d| n * 16 + char::from(*d).to_digit(16).unwrap_or(0));
        self.at += 5;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &str) {
        let got = match Json::parse(text.as_bytes()) {
            Ok(value) => value.to_string(),
            Err(error) => error.reason.to_string(),
        };
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn values() {
        for (text, want) in [
            (r#" {"b":1,"a":[null,true,false]} "#, r#"{"b":1,"a":[null,true,false]}"#),
            (r#"{"i":1,"j":3,"i":2}"#, r#"{"i":2,"j":3}"#),
            (r#""\u00e9\ud83d\ude00\/\b\u007f""#, "\"é😀/\\b\u{7f}\""),
            (r#""a\u0001b""#, r#""a\u0001b""#),
            ("[-0,1e3,2.0,9007199254740993.0,1.5e1,100e-2]", "[0,1000,2,9007199254740993,15,1]"),
            ("[9223372036854775807,-9223372036854775808]", "[9223372036854775807,-9223372036854775808]"),
            ("9223372036854775808", "9.223372036854776e+18"),
        ] {
            check(text, want);
        }
    }

    #[test]
    fn malformed() {
        for (text, want) in [
            ("[1,]", "a JSON value is expected"),
            ("{]", "a member's name is expected"),
            (r#""\ud83d""#, "lone surrogate"),
            (r#""\u0000""#, "NUL in string"),
            (r#""\x41""#, "unknown escape"),
            ("01", "malformed number"),
            ("1.", "malformed number"),
            ("[] x", "trailing garbage"),
            ("nul", "unknown keyword"),
            ("\"a", "unterminated string"),
        ] {
            check(text, want);
        }
    }

    #[test]
    fn a_text_that_ends_too_early_is_told_from_one_that_is_wrong() {
        let text = r#"{"a":[1.5e3,true,"\ud83d\ude00é",null],"b":{}}"#.as_bytes();
        for end in 1..text.len() {
            let error = Json::parse(&text[..end]).unwrap_err();
            assert!(error.is_incomplete, "{error} after {end} bytes");
        }
        for wrong in
            [r#"{"a""b"#, "{]", "[1 2", r#"["a{"b":1"#, "[tru,", r#"["\u00g"#, r#"["\ud83dx"#, "[01,"]
        {
            assert!(!Json::parse(wrong.as_bytes()).unwrap_err().is_incomplete, "{wrong}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(Json::parse(nested(DEPTH_MAX).as_bytes()).is_ok());
        assert!(Json::parse(nested(DEPTH_MAX + 1).as_bytes()).is_err());
    }

    #[test]
    fn large_objects_keep_the_last_of_repeated_keys() {
        let text: Vec<String> = (0..40).map(|i| format!("\"k{}\":{i}", i % 20)).collect();
        let text = format!("{{{}}}", text.join(","));
        let value = Json::parse(text.as_bytes()).unwrap();
        let object = value.as_object().unwrap();
        assert_eq!(object.len(), 20);
        assert_eq!(object.member("k3"), Some(&Json::Int(23)));
    }

    #[test]
    fn what_is_left_as_text_can_be_parsed_later() {
        let texts = [
            r#"{"a":[1,{"b":[]}],"c":"[\"{","d":{"]":"\\","e":[[[2]]]}}"#,
            r#"[[{"x":"}]"}],[],{},"y",1.5,null]"#,
            "7",
        ];
        for text in texts {
            for depth in 0..6 {
                let partly = Json::parse_to_depth(text.as_bytes(), depth).expect("it is JSON");
                assert_eq!(partly.to_string(), text, "depth {depth}");
                assert_eq!(partly.clone().into_owned().completed(), Json::parse(text.as_bytes()));
                assert_eq!(partly.completed(), Json::parse(text.as_bytes()), "{text}, depth {depth}");
            }
        }
        for text in ["[[1", r#"["[x]"#, r#"{"a":["b\"#, "[[1]]]", &"[".repeat(DEPTH_MAX + 1)] {
            assert!(Json::parse_to_depth(text.as_bytes(), 1).is_err(), "{text:.20}");
        }
        let fault = Json::parse_to_depth(b"[[1 2]]", 1).and_then(Json::completed);
        assert_eq!(fault.expect_err("two numbers without a comma").offset, 3);
    }
}
