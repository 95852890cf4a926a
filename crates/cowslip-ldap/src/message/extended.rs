//! What extended operations say: cancel (RFC 3909).

use super::MessageId;
use crate::ber::{self, BerError, Reader};

/// Why a cancel's value names no operation. The request is answered with `protocolError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CancelError {
    /// There is no value.
    #[error("a cancel says which operation it means")]
    Missing,
    /// The value is damaged.
    #[error("the cancel's value is damaged: {0}")]
    Damaged(#[from] BerError),
    /// The number is none of a request.
    #[error("a cancel of operation {number}; requests have 1 to 2147483647")]
    Number {
        /// The number.
        number: i64,
    },
}

/// The operation that a cancel's value names (RFC 3909 section 2.1).
///
/// ```
/// use cowslip_ldap::message::{MessageId, cancel_request_value, canceled_operation};
/// let id = MessageId::new(7).expect("in range");
/// assert_eq!(canceled_operation(Some(&cancel_request_value(id))), Ok(id));
/// ```
///
/// # Errors
/// The value is missing, damaged or names no request.
pub fn canceled_operation(value: Option<&[u8]>) -> Result<MessageId, CancelError> {
    let mut outer = Reader::new(value.ok_or(CancelError::Missing)?);
    let mut sequence = outer.within(ber::SEQUENCE)?;
    outer.finish()?;
    let number = sequence.integer()?;
    sequence.skip_extensions()?;
    u32::try_from(number).ok().and_then(MessageId::new).ok_or(CancelError::Number { number })
}

/// The value of a cancel of this operation (RFC 3909 section 2.1).
#[must_use]
pub fn cancel_request_value(id: MessageId) -> Vec<u8> {
    let mut value = Vec::new();
    let sequence = ber::begin(&mut value, ber::SEQUENCE);
    ber::integer(&mut value, ber::INTEGER, id.number().into());
    ber::end(&mut value, sequence);
    value
}
