//! Tags of RFC 4511's messages and their parts.

pub(super) const BIND_REQUEST: u8 = 0x60;
pub(super) const BIND_RESPONSE: u8 = 0x61;
pub(super) const UNBIND_REQUEST: u8 = 0x42;
pub(super) const SEARCH_REQUEST: u8 = 0x63;
pub(super) const SEARCH_ENTRY: u8 = 0x64;
pub(super) const SEARCH_DONE: u8 = 0x65;
pub(super) const SEARCH_REFERENCE: u8 = 0x73;
pub(super) const MODIFY_REQUEST: u8 = 0x66;
pub(super) const MODIFY_RESPONSE: u8 = 0x67;
pub(super) const ADD_REQUEST: u8 = 0x68;
pub(super) const ADD_RESPONSE: u8 = 0x69;
pub(super) const DELETE_REQUEST: u8 = 0x4a;
pub(super) const DELETE_RESPONSE: u8 = 0x6b;
pub(super) const MODIFY_DN_REQUEST: u8 = 0x6c;
pub(super) const MODIFY_DN_RESPONSE: u8 = 0x6d;
pub(super) const COMPARE_REQUEST: u8 = 0x6e;
pub(super) const COMPARE_RESPONSE: u8 = 0x6f;
pub(super) const ABANDON_REQUEST: u8 = 0x50;
pub(super) const EXTENDED_REQUEST: u8 = 0x77;
pub(super) const EXTENDED_RESPONSE: u8 = 0x78;
pub(super) const INTERMEDIATE_RESPONSE: u8 = 0x79;

/// The controls of a message.
pub(super) const CONTROLS: u8 = 0xa0;

/// A bind's password.
pub(super) const SIMPLE: u8 = 0x80;
/// A bind's SASL mechanism and credentials.
pub(super) const SASL: u8 = 0xa3;
/// The server's part of a SASL exchange, in a bind response.
pub(super) const SERVER_CREDENTIALS: u8 = 0x87;
/// A new parent, in a modify DN.
pub(super) const NEW_SUPERIOR: u8 = 0x80;
/// The URLs of a referral, in a result.
pub(super) const REFERRAL: u8 = 0xa3;

pub(super) const EXTENDED_REQUEST_NAME: u8 = 0x80;
pub(super) const EXTENDED_REQUEST_VALUE: u8 = 0x81;
pub(super) const EXTENDED_RESPONSE_NAME: u8 = 0x8a;
pub(super) const EXTENDED_RESPONSE_VALUE: u8 = 0x8b;
pub(super) const INTERMEDIATE_NAME: u8 = 0x80;
pub(super) const INTERMEDIATE_VALUE: u8 = 0x81;

pub(super) const FILTER_AND: u8 = 0xa0;
pub(super) const FILTER_OR: u8 = 0xa1;
pub(super) const FILTER_NOT: u8 = 0xa2;
pub(super) const FILTER_EQUALITY: u8 = 0xa3;
pub(super) const FILTER_SUBSTRINGS: u8 = 0xa4;
pub(super) const FILTER_GREATER_OR_EQUAL: u8 = 0xa5;
pub(super) const FILTER_LESS_OR_EQUAL: u8 = 0xa6;
pub(super) const FILTER_PRESENT: u8 = 0x87;
pub(super) const FILTER_APPROXIMATE: u8 = 0xa8;
pub(super) const FILTER_EXTENSIBLE: u8 = 0xa9;

pub(super) const SUBSTRING_INITIAL: u8 = 0x80;
pub(super) const SUBSTRING_ANY: u8 = 0x81;
pub(super) const SUBSTRING_LAST: u8 = 0x82;

pub(super) const EXTENSIBLE_RULE: u8 = 0x81;
pub(super) const EXTENSIBLE_ATTRIBUTE: u8 = 0x82;
pub(super) const EXTENSIBLE_VALUE: u8 = 0x83;
pub(super) const EXTENSIBLE_DN_ATTRIBUTES: u8 = 0x84;
