//! `lock`, `steal` and `unlock`: send the request and print whatever becomes of the lock, until the program is ended.

use super::Context;
use super::connection::Message;
use super::error::ClientError;
use super::json::{strings, text};
use super::remote::Target;

/// `lock`
pub(super) fn lock(context: &mut Context, target: Target<'_>) -> Result<(), ClientError> {
    follow(context, target, "lock")
}

/// `steal`
pub(super) fn steal(context: &mut Context, target: Target<'_>) -> Result<(), ClientError> {
    follow(context, target, "steal")
}

/// `unlock`
pub(super) fn unlock(context: &mut Context, target: Target<'_>) -> Result<(), ClientError> {
    follow(context, target, "unlock")
}

fn follow(context: &mut Context, mut target: Target<'_>, method: &str) -> Result<(), ClientError> {
    let name = target.rest.first().map_or("", String::as_str);
    let request = target.connection.send(method, strings([name]))?;
    loop {
        match target.connection.receive()? {
            Message::Reply { id, outcome: Ok(result) } if id == request => context.print_json(&result)?,
            Message::Reply { id, outcome: Err(error) } if id == request => {
                return Err(ClientError::Refused { method: method.to_owned(), error: text(&error, false) });
            }
            Message::Reply { .. } => {}
            Message::Notice { method, params } => {
                context.print(&format!("{method}\n"))?;
                context.print_json(&params)?;
            }
        }
    }
}
