//! Responses as a client sees them, borrowed from the frame.

use std::borrow::Cow;

use super::control::read_controls;
use super::error::{Fault, Problem};
use super::values::{Attributes, Texts, text};
use super::{Control, MessageId, OperationKind, tags};
use crate::ber::{self, BerError, Reader};
use crate::result::{LdapResult, ResultCode};

/// A response: the number of the request that it belongs to, what it says, and controls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The request's number, or [`MessageId::UNSOLICITED`].
    pub id: MessageId,
    /// What it says.
    pub operation: ResponseOperation<'a>,
    /// Its controls in the order sent.
    pub controls: Vec<Control<'a>>,
}

/// What a response says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseOperation<'a> {
    /// A bind ended, or its next step is due.
    Bind {
        /// How.
        result: LdapResult<'a>,
        /// The server's part of a SASL exchange.
        server_credentials: Option<&'a [u8]>,
    },
    /// A search found an entry.
    SearchEntry {
        /// Its name.
        name: &'a str,
        /// Its attributes, perhaps without values.
        attributes: Attributes<'a>,
    },
    /// A search goes on at these URLs.
    SearchReference(Texts<'a>),
    /// A search, modify, add, delete, modify DN or compare ended.
    Done {
        /// Which.
        operation: OperationKind,
        /// How.
        result: LdapResult<'a>,
    },
    /// An extended operation ended, or the server says something unasked.
    Extended {
        /// How it ended.
        result: LdapResult<'a>,
        /// The object identifier of what it says.
        name: Option<&'a str>,
        /// What it says.
        value: Option<&'a [u8]>,
    },
    /// An operation is under way.
    Intermediate {
        /// The object identifier of what it says.
        name: Option<&'a str>,
        /// What it says.
        value: Option<&'a [u8]>,
    },
}

/// Why octets are no response. The server is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseError {
    /// Tags or lengths are wrong.
    #[error("the message is damaged: {0}")]
    Damaged(#[from] BerError),
    /// The message's number is not between 0 and 2^31 - 1.
    #[error("message number {number}; responses have 0 to 2147483647")]
    MessageId {
        /// The number.
        number: i64,
    },
    /// The message is not one of LDAP's responses.
    #[error("tag {tag:#04x} is no response of LDAP")]
    UnknownOperation {
        /// Its tag.
        tag: u8,
    },
    /// The response says something that it may not.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<Problem> for ResponseError {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Damaged(error) => Self::Damaged(error),
            Problem::Fault(fault) => Self::Fault(fault),
        }
    }
}

/// Reads a response from the octets of one message.
///
/// # Errors
/// The octets are no response.
pub fn decode_response(frame: &[u8]) -> Result<Response<'_>, ResponseError> {
    let mut outer = Reader::new(frame);
    let mut message = outer.within(ber::SEQUENCE)?;
    outer.finish()?;
    let number = message.integer()?;
    let id = MessageId::from_received(number).ok_or(ResponseError::MessageId { number })?;
    let (tag, content) = message.element()?;
    let operation = read_operation(tag, content)?;
    let controls = read_controls(&mut message, usize::MAX)?;
    Ok(Response { id, operation, controls })
}

fn read_operation(tag: u8, content: &[u8]) -> Result<ResponseOperation<'_>, ResponseError> {
    let mut reader = Reader::new(content);
    let operation = match tag {
        tags::BIND_RESPONSE => ResponseOperation::Bind {
            result: read_result(&mut reader)?,
            server_credentials: reader.optional(tags::SERVER_CREDENTIALS)?,
        },
        tags::SEARCH_ENTRY => {
            let name = text(reader.octets()?, "an entry's name")?;
            let attributes = Attributes::read(reader.expect(ber::SEQUENCE)?, |_| Ok(()))?;
            ResponseOperation::SearchEntry { name, attributes }
        }
        tags::SEARCH_REFERENCE => {
            return Ok(ResponseOperation::SearchReference(Texts::read(content, "a reference", usize::MAX)?));
        }
        tags::EXTENDED_RESPONSE => ResponseOperation::Extended {
            result: read_result(&mut reader)?,
            name: optional_text(&mut reader, tags::EXTENDED_RESPONSE_NAME)?,
            value: reader.optional(tags::EXTENDED_RESPONSE_VALUE)?,
        },
        tags::INTERMEDIATE_RESPONSE => ResponseOperation::Intermediate {
            name: optional_text(&mut reader, tags::INTERMEDIATE_NAME)?,
            value: reader.optional(tags::INTERMEDIATE_VALUE)?,
        },
        _ => {
            let operation = OperationKind::ALL.into_iter().find(|kind| kind.answer_tag() == Some(tag));
            let operation = operation.ok_or(ResponseError::UnknownOperation { tag })?;
            ResponseOperation::Done { operation, result: read_result(&mut reader)? }
        }
    };
    reader.skip_extensions()?;
    Ok(operation)
}

fn optional_text<'a>(reader: &mut Reader<'a>, tag: u8) -> Result<Option<&'a str>, Problem> {
    Ok(reader.optional(tag)?.map(|octets| text(octets, "the name of a response")).transpose()?)
}

fn read_result<'a>(reader: &mut Reader<'a>) -> Result<LdapResult<'a>, Problem> {
    let number = reader.enumerated()?;
    let code = u32::try_from(number).map_err(|_| Fault::Number { field: "the result code", number })?;
    let matched = text(reader.octets()?, "the matched name")?;
    let message = text(reader.octets()?, "the diagnostic message")?;
    let referrals = match reader.optional(tags::REFERRAL)? {
        Some(content) => Texts::read(content, "a referral", usize::MAX)?.iter().map(Cow::Borrowed).collect(),
        None => Vec::new(),
    };
    let code = ResultCode::from_number(code);
    Ok(LdapResult { code, matched: Cow::Borrowed(matched), message: Cow::Borrowed(message), referrals })
}
