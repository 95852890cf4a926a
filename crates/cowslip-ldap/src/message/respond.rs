//! Answers as a server writes them. Each function appends one message.

use super::encode::{write_message, write_within};
use super::{Control, MessageId, OperationKind, tags};
use crate::ber;
use crate::oids;
use crate::result::LdapResult;

/// Appends the result that ends an operation (RFC 4511 section 4.1.9), under the tag that the operation asks for. Nothing
/// is written for an operation without an answer.
///
/// ```
/// use cowslip_ldap::message::{MessageId, OperationKind, write_result};
/// use cowslip_ldap::result::LdapResult;
/// let mut out = Vec::new();
/// let id = MessageId::new(2).expect("in range");
/// write_result(&mut out, id, OperationKind::Add, &LdapResult::SUCCESS, &[]);
/// assert_eq!(out, [0x30, 0x0c, 0x02, 0x01, 0x02, 0x69, 0x07, 0x0a, 0x01, 0x00, 0x04, 0x00, 0x04, 0x00]);
/// ```
pub fn write_result(
    out: &mut Vec<u8>,
    id: MessageId,
    operation: OperationKind,
    result: &LdapResult<'_>,
    controls: &[Control<'_>],
) {
    if let Some(tag) = operation.answer_tag() {
        write_message(out, id, controls, |out| write_within(out, tag, |out| write_fields(out, result)));
    }
}

/// Appends a bind's answer, with the server's part of a SASL exchange.
pub fn write_bind_response(
    out: &mut Vec<u8>,
    id: MessageId,
    result: &LdapResult<'_>,
    server_credentials: Option<&[u8]>,
    controls: &[Control<'_>],
) {
    write_message(out, id, controls, |out| {
        write_within(out, tags::BIND_RESPONSE, |out| {
            write_fields(out, result);
            if let Some(credentials) = server_credentials {
                ber::octets(out, tags::SERVER_CREDENTIALS, credentials);
            }
        });
    });
}

/// Appends an extended operation's answer, with what its specification adds (RFC 4511 section 4.12).
pub fn write_extended_response(
    out: &mut Vec<u8>,
    id: MessageId,
    result: &LdapResult<'_>,
    name: Option<&str>,
    value: Option<&[u8]>,
    controls: &[Control<'_>],
) {
    write_message(out, id, controls, |out| {
        write_within(out, tags::EXTENDED_RESPONSE, |out| {
            write_fields(out, result);
            if let Some(name) = name {
                ber::octets(out, tags::EXTENDED_RESPONSE_NAME, name.as_bytes());
            }
            if let Some(value) = value {
                ber::octets(out, tags::EXTENDED_RESPONSE_VALUE, value);
            }
        });
    });
}

/// Appends the server's last word before it closes (RFC 4511 section 4.4.1).
pub fn write_notice_of_disconnection(out: &mut Vec<u8>, result: &LdapResult<'_>) {
    let name = Some(oids::NOTICE_OF_DISCONNECTION);
    write_extended_response(out, MessageId::UNSOLICITED, result, name, None, &[]);
}

/// Appends a reference to where a search goes on, as URLs, at least one (RFC 4511 section 4.5.3).
pub fn write_reference<U: AsRef<str>>(
    out: &mut Vec<u8>,
    id: MessageId,
    urls: impl IntoIterator<Item = U>,
    controls: &[Control<'_>],
) {
    write_message(out, id, controls, |out| {
        write_within(out, tags::SEARCH_REFERENCE, |out| {
            for url in urls {
                ber::octets(out, ber::OCTET_STRING, url.as_ref().as_bytes());
            }
        });
    });
}

/// Appends an intermediate response (RFC 4511 section 4.13).
pub fn write_intermediate_response(
    out: &mut Vec<u8>,
    id: MessageId,
    name: Option<&str>,
    value: Option<&[u8]>,
    controls: &[Control<'_>],
) {
    write_message(out, id, controls, |out| {
        write_within(out, tags::INTERMEDIATE_RESPONSE, |out| {
            if let Some(name) = name {
                ber::octets(out, tags::INTERMEDIATE_NAME, name.as_bytes());
            }
            if let Some(value) = value {
                ber::octets(out, tags::INTERMEDIATE_VALUE, value);
            }
        });
    });
}

fn write_fields(out: &mut Vec<u8>, result: &LdapResult<'_>) {
    ber::integer(out, ber::ENUMERATED, result.code.number().into());
    ber::octets(out, ber::OCTET_STRING, result.matched.as_bytes());
    ber::octets(out, ber::OCTET_STRING, result.message.as_bytes());
    if !result.referrals.is_empty() {
        write_within(out, tags::REFERRAL, |out| {
            for url in &result.referrals {
                ber::octets(out, ber::OCTET_STRING, url.as_bytes());
            }
        });
    }
}
