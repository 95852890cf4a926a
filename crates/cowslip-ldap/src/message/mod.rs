//! The messages of RFC 4511, both ways: a server decodes requests and writes answers, a client writes requests and
//! decodes responses.
//!
//! What is decoded borrows from the frame. Lists (values, changes, attributes, names) are checked once, when the message
//! is decoded, and read again while they are walked, so that decoding allocates only for filters and controls. What is
//! written is appended to a buffer of the caller's, without anything in between.
//!
//! Invariant: decoding takes time proportional to the frame, recurses nowhere, and never allocates more than a constant
//! times the frame.

mod control;
mod decode;
mod encode;
mod entry;
mod error;
mod extended;
mod filter;
mod request;
mod respond;
mod response;
mod tags;
mod values;

use std::fmt;

pub use control::Control;
pub use decode::decode_request;
pub use encode::{
    SearchParameters, write_abandon, write_add, write_bind, write_compare, write_delete, write_extended,
    write_modify, write_modify_dn, write_search, write_unbind,
};
pub use entry::EntryWriter;
pub use error::{Fault, Remedy, RequestError};
pub use extended::{CancelError, cancel_request_value, canceled_operation};
pub use filter::{FilterDecodeError, decode_filter, encode_filter};
pub use request::{
    AddRequest, Authentication, BindRequest, ChangeOperation, CompareRequest, Dereference, ExtendedRequest,
    ModifyDnRequest, ModifyRequest, Operation, OperationKind, Request, Scope, SearchRequest,
};
pub use respond::{
    write_bind_response, write_extended_response, write_intermediate_response, write_notice_of_disconnection,
    write_reference, write_result,
};
pub use response::{Response, ResponseError, ResponseOperation, decode_response};
pub use values::{Attribute, Attributes, Change, Changes, Texts, Values};

/// Most controls of a request unless the server is told otherwise. As many as the strictest server in wide use takes.
pub const CONTROLS_MAX: usize = 10;

/// Most names in a search's list of attributes unless the server is told otherwise.
pub const SEARCH_ATTRIBUTES_MAX: usize = 1_024;

/// What a message may hold. Its size is bounded before, when it is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Most octets of a message before authentication, header included.
    pub message_bytes_anonymous_max: usize,
    /// Most octets of a message after authentication, header included.
    pub message_bytes_max: usize,
    /// Most controls of a message.
    pub controls_max: usize,
    /// Most names in a search's list of attributes.
    pub search_attributes_max: usize,
    /// Most levels of and, or, not in a filter; at most [`crate::filter::FILTER_DEPTH_MAX`].
    pub filter_depth_max: usize,
    /// Most parts of a filter.
    pub filter_terms_max: usize,
}

impl Limits {
    /// The limits that hold unless the server is told otherwise.
    pub const DEFAULT: Self = Self {
        message_bytes_anonymous_max: crate::framing::MESSAGE_BYTES_ANONYMOUS_MAX,
        message_bytes_max: crate::framing::MESSAGE_BYTES_MAX,
        controls_max: CONTROLS_MAX,
        search_attributes_max: SEARCH_ATTRIBUTES_MAX,
        filter_depth_max: crate::filter::FILTER_DEPTH_MAX,
        filter_terms_max: crate::filter::FILTER_TERMS_MAX,
    };

    /// The bound on a message's size for a peer that has authenticated, or not.
    #[must_use]
    pub const fn message_bytes(&self, is_authenticated: bool) -> usize {
        if is_authenticated { self.message_bytes_max } else { self.message_bytes_anonymous_max }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The number that ties responses to a request (RFC 4511 section 4.1.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(u32);

impl MessageId {
    /// The number of messages that answer no request.
    pub const UNSOLICITED: Self = Self(0);

    /// The largest number.
    pub const MAX: Self = Self(i32::MAX.cast_unsigned());

    /// A request's number: 1 to 2^31 - 1.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number == 0 || number > Self::MAX.0 { None } else { Some(Self(number)) }
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// A number read from a message; `0` included.
    fn from_received(number: i64) -> Option<Self> {
        u32::try_from(number).ok().filter(|number| *number <= Self::MAX.0).map(Self)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
