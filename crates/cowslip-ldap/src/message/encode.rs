//! Requests as a client writes them. Each function appends one message.

use super::control::write_controls;
use super::filter::encode_filter;
use super::request::{
    Authentication, ChangeOperation, CompareRequest, Dereference, ExtendedRequest, ModifyDnRequest, Scope,
};
use super::{Control, MessageId, tags};
use crate::ber;
use crate::filter::Filter;

/// What a client searches for (RFC 4511 section 4.5.1). The default asks for all user attributes of every entry below
/// the root, without limits.
#[derive(Clone, Copy, Debug)]
pub struct SearchParameters<'a> {
    /// The entry to start from.
    pub base: &'a str,
    /// How far to go from there.
    pub scope: Scope,
    /// Which aliases to follow.
    pub dereference: Dereference,
    /// Most entries wanted; 0 for all.
    pub size_limit: u32,
    /// Most seconds to wait; 0 for any.
    pub time_limit_s: u32,
    /// Whether values are left out.
    pub types_only: bool,
    /// Which attributes; none stands for all user attributes.
    pub attributes: &'a [&'a str],
}

impl Default for SearchParameters<'_> {
    fn default() -> Self {
        Self {
            base: "",
            scope: Scope::Subtree,
            dereference: Dereference::Never,
            size_limit: 0,
            time_limit_s: 0,
            types_only: false,
            attributes: &[],
        }
    }
}

/// Appends a message: its number, what `operation` appends, controls.
pub(super) fn write_message(
    out: &mut Vec<u8>,
    id: MessageId,
    controls: &[Control<'_>],
    operation: impl FnOnce(&mut Vec<u8>),
) {
    let message = ber::begin(out, ber::SEQUENCE);
    ber::integer(out, ber::INTEGER, id.number().into());
    operation(out);
    write_controls(out, controls);
    ber::end(out, message);
}

/// Appends an element with what `content` appends within.
pub(super) fn write_within(out: &mut Vec<u8>, tag: u8, content: impl FnOnce(&mut Vec<u8>)) {
    let element = ber::begin(out, tag);
    content(out);
    ber::end(out, element);
}

/// Appends a bind.
///
/// ```
/// use cowslip_ldap::message::{Authentication, MessageId, write_bind};
/// let mut out = Vec::new();
/// write_bind(&mut out, MessageId::MAX, b"", Authentication::Simple(b""), &[]);
/// assert_eq!(out.len(), 17);
/// ```
pub fn write_bind(
    out: &mut Vec<u8>,
    id: MessageId,
    name: &[u8],
    authentication: Authentication<'_>,
    controls: &[Control<'_>],
) {
    write_message(out, id, controls, |out| {
        write_within(out, tags::BIND_REQUEST, |out| {
            ber::integer(out, ber::INTEGER, 3);
            ber::octets(out, ber::OCTET_STRING, name);
            match authentication {
                Authentication::Simple(password) => ber::octets(out, tags::SIMPLE, password),
                Authentication::Sasl { mechanism, credentials } => write_within(out, tags::SASL, |out| {
                    ber::octets(out, ber::OCTET_STRING, mechanism.as_bytes());
                    if let Some(credentials) = credentials {
                        ber::octets(out, ber::OCTET_STRING, credentials);
                    }
                }),
            }
        });
    });
}

/// Appends an unbind, after which the client sends nothing more.
pub fn write_unbind(out: &mut Vec<u8>, id: MessageId) {
    write_message(out, id, &[], |out| ber::octets(out, tags::UNBIND_REQUEST, &[]));
}

/// Appends a search.
pub fn write_search(
    out: &mut Vec<u8>,
    id: MessageId,
    search: &SearchParameters<'_>,
    filter: &Filter,
    controls: &[Control<'_>],
) {
    write_message(out, id, controls, |out| {
        write_within(out, tags::SEARCH_REQUEST, |out| {
            ber::octets(out, ber::OCTET_STRING, search.base.as_bytes());
            ber::integer(out, ber::ENUMERATED, search.scope.number().into());
            ber::integer(out, ber::ENUMERATED, search.dereference.number().into());
            ber::integer(out, ber::INTEGER, search.size_limit.into());
            ber::integer(out, ber::INTEGER, search.time_limit_s.into());
            ber::boolean(out, search.types_only);
            encode_filter(out, filter);
            write_within(out, ber::SEQUENCE, |out| {
                for attribute in search.attributes {
                    ber::octets(out, ber::OCTET_STRING, attribute.as_bytes());
                }
            });
        });
    });
}

/// Appends a modify: per change what to do, the attribute description and the values.
///
/// ```
/// use cowslip_ldap::message::{ChangeOperation, Limits, MessageId, Operation, decode_request, write_modify};
/// let mut out = Vec::new();
/// let id = MessageId::new(7).expect("in range");
/// write_modify(&mut out, id, b"uid=amy,dc=example", [(ChangeOperation::Replace, "sn", &["Doe"][..])], &[]);
/// let request = decode_request(&out, &Limits::DEFAULT)?;
/// let Operation::Modify(modify) = request.operation else { unreachable!() };
/// assert_eq!(modify.changes.iter().next().map(|change| change.attribute.description), Some("sn"));
/// # Ok::<(), cowslip_ldap::message::RequestError>(())
/// ```
pub fn write_modify<'v, V: AsRef<[u8]> + 'v>(
    out: &mut Vec<u8>,
    id: MessageId,
    name: &[u8],
    changes: impl IntoIterator<Item = (ChangeOperation, &'v str, &'v [V])>,
    controls: &[Control<'_>],
) {
    write_message(out, id, controls, |out| {
        write_within(out, tags::MODIFY_REQUEST, |out| {
            ber::octets(out, ber::OCTET_STRING, name);
            write_within(out, ber::SEQUENCE, |out| {
                for (operation, attribute, values) in changes {
                    write_within(out, ber::SEQUENCE, |out| {
                        ber::integer(out, ber::ENUMERATED, operation.number().into());
                        write_attribute(out, attribute, values);
                    });
                }
            });
        });
    });
}

/// Appends an add: per attribute its description and values.
pub fn write_add<'v, V: AsRef<[u8]> + 'v>(
    out: &mut Vec<u8>,
    id: MessageId,
    name: &[u8],
    attributes: impl IntoIterator<Item = (&'v str, &'v [V])>,
    controls: &[Control<'_>],
) {
    write_message(out, id, controls, |out| {
        write_within(out, tags::ADD_REQUEST, |out| {
            ber::octets(out, ber::OCTET_STRING, name);
            write_within(out, ber::SEQUENCE, |out| {
                for (attribute, values) in attributes {
                    write_attribute(out, attribute, values);
                }
            });
        });
    });
}

fn write_attribute(out: &mut Vec<u8>, description: &str, values: &[impl AsRef<[u8]>]) {
    write_within(out, ber::SEQUENCE, |out| {
        ber::octets(out, ber::OCTET_STRING, description.as_bytes());
        write_within(out, ber::SET, |out| {
            for value in values {
                ber::octets(out, ber::OCTET_STRING, value.as_ref());
            }
        });
    });
}

/// Appends a delete.
pub fn write_delete(out: &mut Vec<u8>, id: MessageId, name: &[u8], controls: &[Control<'_>]) {
    write_message(out, id, controls, |out| ber::octets(out, tags::DELETE_REQUEST, name));
}

/// Appends a rename or move.
pub fn write_modify_dn(
    out: &mut Vec<u8>,
    id: MessageId,
    request: &ModifyDnRequest<'_>,
    controls: &[Control<'_>],
) {
    write_message(out, id, controls, |out| {
        write_within(out, tags::MODIFY_DN_REQUEST, |out| {
            ber::octets(out, ber::OCTET_STRING, request.name);
            ber::octets(out, ber::OCTET_STRING, request.new_rdn);
            ber::boolean(out, request.deletes_old_rdn);
            if let Some(superior) = request.new_superior {
                ber::octets(out, tags::NEW_SUPERIOR, superior);
            }
        });
    });
}

/// Appends a compare.
pub fn write_compare(
    out: &mut Vec<u8>,
    id: MessageId,
    request: &CompareRequest<'_>,
    controls: &[Control<'_>],
) {
    write_message(out, id, controls, |out| {
        write_within(out, tags::COMPARE_REQUEST, |out| {
            ber::octets(out, ber::OCTET_STRING, request.name);
            write_within(out, ber::SEQUENCE, |out| {
                ber::octets(out, ber::OCTET_STRING, request.attribute.as_bytes());
                ber::octets(out, ber::OCTET_STRING, request.value);
            });
        });
    });
}

/// Appends an abandon of the operation of number `target`.
pub fn write_abandon(out: &mut Vec<u8>, id: MessageId, target: MessageId) {
    write_message(out, id, &[], |out| ber::integer(out, tags::ABANDON_REQUEST, target.number().into()));
}

/// Appends an extended operation.
pub fn write_extended(
    out: &mut Vec<u8>,
    id: MessageId,
    request: &ExtendedRequest<'_>,
    controls: &[Control<'_>],
) {
    write_message(out, id, controls, |out| {
        write_within(out, tags::EXTENDED_REQUEST, |out| {
            ber::octets(out, tags::EXTENDED_REQUEST_NAME, request.name.as_bytes());
            if let Some(value) = request.value {
                ber::octets(out, tags::EXTENDED_REQUEST_VALUE, value);
            }
        });
    });
}
