//! JSON-RPC 1.0 messages as OVSDB sends them (RFC 7047 section 4): the envelope, and the writers of each kind.
//!
//! As strict as the reference server: a message with an unknown member, a request without `params` or whose `params` are
//! no array, and anything that is neither request, notification nor reply ends the connection. Ids are any JSON value
//! and are given back as an equal one. Successful replies carry `"error":null`; failed ones carry no `result`.

use crate::error::Error;
use crate::json::{Json, write_str};
use crate::members::{Kind, Members};
use std::fmt;

/// A message taken apart.
#[derive(Clone, Debug, PartialEq)]
pub enum Message<'a> {
    /// A call that wants a reply.
    Request {
        /// The method's name.
        method: String,
        /// Its parameters.
        params: Vec<Json<'a>>,
        /// What the reply carries to be recognised.
        id: Json<'a>,
    },
    /// A call that wants none.
    Notification {
        /// The method's name.
        method: String,
        /// Its parameters.
        params: Vec<Json<'a>>,
    },
    /// The answer to a request.
    Reply {
        /// Which request.
        id: Json<'a>,
        /// Its result, or its error.
        outcome: Result<Json<'a>, Json<'a>>,
    },
}

/// A message whose envelope is not one of JSON-RPC's: the connection is to be closed.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvelopeError {
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a JSON-RPC message: {}", self.reason)
    }
}

impl std::error::Error for EnvelopeError {}

impl<'a> Message<'a> {
    /// Takes a message apart.
    ///
    /// # Errors
    /// The envelope is not one of JSON-RPC's.
    pub fn from_json(json: Json<'a>) -> Result<Self, EnvelopeError> {
        let invalid = |reason: &str| EnvelopeError { reason: reason.to_string() };
        let members = Members::new(&json, "JSON-RPC message");
        members.optional("method", Kind::String);
        members.optional("params", Kind::Array);
        for name in ["result", "error", "id"] {
            members.optional(name, Kind::Any);
        }
        members.finish().map_err(|e| EnvelopeError { reason: e.details })?;
        let Json::Object(object) = json else { return Err(invalid("no object")) };
        let (mut method, mut params, mut result, mut error, mut id) =
            (None, None, Json::Null, Json::Null, Json::Null);
        for (key, value) in object.into_members() {
            match (key.as_ref(), value) {
                ("method", Json::Str(name)) => method = Some(name.into_owned()),
                ("params", Json::Array(list)) => params = Some(list),
                ("result", value) => result = value,
                ("error", value) => error = value,
                ("id", value) => id = value,
                _ => {}
            }
        }
        match (method, params) {
            (Some(method), Some(params)) => {
                if result != Json::Null || error != Json::Null {
                    Err(invalid("a request with a result"))
                } else if id == Json::Null {
                    Ok(Message::Notification { method, params })
                } else {
                    Ok(Message::Request { method, params, id })
                }
            }
            (Some(_), None) => Err(invalid("a request without params")),
            (None, Some(_)) => Err(invalid("params without a method")),
            (None, None) if id == Json::Null => Err(invalid("a reply without an id")),
            (None, None) => match (result, error) {
                (Json::Null, Json::Null) => Ok(Message::Reply { id, outcome: Ok(Json::Null) }),
                (result, Json::Null) => Ok(Message::Reply { id, outcome: Ok(result) }),
                (_, error) => Ok(Message::Reply { id, outcome: Err(error) }),
            },
        }
    }
}

/// Appends a successful reply; `result` appends its result.
pub fn write_reply(out: &mut String, id: &str, result: impl FnOnce(&mut String)) {
    out.push_str("{\"id\":");
    out.push_str(id);
    out.push_str(",\"result\":");
    result(out);
    out.push_str(",\"error\":null}");
}

/// Appends a reply with an error object.
pub fn write_error_reply(out: &mut String, id: &str, error: &Error) {
    out.push_str("{\"id\":");
    out.push_str(id);
    out.push_str(",\"error\":");
    error.write(out);
    out.push('}');
}

/// Appends a reply whose error is a bare string, such as `"unknown method"`.
pub fn write_error_text_reply(out: &mut String, id: &str, error: &str) {
    out.push_str("{\"id\":");
    out.push_str(id);
    out.push_str(",\"error\":");
    write_str(out, error);
    out.push('}');
}

/// Appends a notification; `params` appends the parameter array.
pub fn write_notification(out: &mut String, method: &str, params: impl FnOnce(&mut String)) {
    out.push_str("{\"id\":null,\"method\":");
    write_str(out, method);
    out.push_str(",\"params\":");
    params(out);
    out.push('}');
}

/// Appends a request; `params` appends the parameter array.
pub fn write_request(out: &mut String, method: &str, id: &str, params: impl FnOnce(&mut String)) {
    out.push_str("{\"id\":");
    out.push_str(id);
    out.push_str(",\"method\":");
    write_str(out, method);
    out.push_str(",\"params\":");
    params(out);
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &str) {
        let got = match Json::parse(text.as_bytes()).map(Message::from_json) {
            Ok(Ok(Message::Request { .. })) => "request",
            Ok(Ok(Message::Notification { .. })) => "notification",
            Ok(Ok(Message::Reply { .. })) => "reply",
            Ok(Err(_)) => "invalid",
            Err(_) => "malformed",
        };
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn envelopes() {
        for (text, want) in [
            (r#"{"id":1,"method":"echo","params":[]}"#, "request"),
            (r#"{"id":{"x":[1,null]},"method":"echo","params":[],"error":null}"#, "request"),
            (r#"{"id":null,"method":"echo","params":[]}"#, "notification"),
            (r#"{"method":"echo","params":[]}"#, "notification"),
            (r#"{"id":1,"result":{},"error":null}"#, "reply"),
            (r#"{"id":1,"error":"no"}"#, "reply"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":[]}"#, "invalid"),
            (r#"{"id":1,"method":"echo"}"#, "invalid"),
            (r#"{"id":1,"method":"echo","params":{}}"#, "invalid"),
            (r#"{"id":1,"method":7,"params":[]}"#, "invalid"),
            ("[]", "invalid"),
            (r#"{"id":null,"result":1}"#, "invalid"),
        ] {
            check(text, want);
        }
    }
}
