//! Object identifiers of controls, extended operations and features, by the names that the specifications give them.
//! A name here says nothing about what a server offers.

/// StartTLS, an extended operation (RFC 4511 section 4.14).
pub const START_TLS: &str = "1.3.6.1.4.1.1466.20037";
/// Notice of disconnection, the server's last word (RFC 4511 section 4.4.1).
pub const NOTICE_OF_DISCONNECTION: &str = "1.3.6.1.4.1.1466.20036";
/// Cancel, an extended operation and a feature (RFC 3909).
pub const CANCEL: &str = "1.3.6.1.1.8";
/// Who am I?, an extended operation (RFC 4532).
pub const WHO_AM_I: &str = "1.3.6.1.4.1.4203.1.11.3";
/// Password modify, an extended operation (RFC 3062).
pub const PASSWORD_MODIFY: &str = "1.3.6.1.4.1.4203.1.11.1";

/// Entries that are referrals or aliases taken as entries, a control (RFC 3296).
pub const MANAGE_DSA_IT: &str = "2.16.840.1.113730.3.4.2";
/// Paged results, a control (RFC 2696).
pub const PAGED_RESULTS: &str = "1.2.840.113556.1.4.319";
/// Sort keys, a control on a search request (RFC 2891).
pub const SORT_REQUEST: &str = "1.2.840.113556.1.4.473";
/// What became of the sorting, a control on a search's end (RFC 2891).
pub const SORT_RESPONSE: &str = "1.2.840.113556.1.4.474";
/// Assertion, a control (RFC 4528).
pub const ASSERTION: &str = "1.3.6.1.1.12";
/// The entry before the change, a control (RFC 4527).
pub const PRE_READ: &str = "1.3.6.1.1.13.1";
/// The entry after the change, a control (RFC 4527).
pub const POST_READ: &str = "1.3.6.1.1.13.2";
/// Proxied authorization, a control (RFC 4370).
pub const PROXIED_AUTHORIZATION: &str = "2.16.840.1.113730.3.4.18";

/// `+` for all operational attributes, a feature (RFC 3673).
pub const ALL_OPERATIONAL_ATTRIBUTES: &str = "1.3.6.1.4.1.4203.1.5.1";
/// `@class` for all attributes of an object class, a feature (RFC 4529).
pub const OBJECT_CLASS_ATTRIBUTES: &str = "1.3.6.1.4.1.4203.1.5.2";
/// `(&)` and `(|)`, a feature (RFC 4526).
pub const TRUE_FALSE_FILTERS: &str = "1.3.6.1.4.1.4203.1.5.3";
/// Language tags as attribute options, a feature (RFC 3866).
pub const LANGUAGE_TAGS: &str = "1.3.6.1.4.1.4203.1.5.4";
/// Language ranges in requests, a feature (RFC 3866).
pub const LANGUAGE_RANGES: &str = "1.3.6.1.4.1.4203.1.5.5";
/// Increment in a modify, a feature (RFC 4525).
pub const MODIFY_INCREMENT: &str = "1.3.6.1.1.14";
