//! Requests from the frame.

use super::control::read_controls;
use super::error::{Fault, Problem, RequestError};
use super::filter::read_filter;
use super::request::{
    AddRequest, Authentication, BindRequest, CompareRequest, Dereference, ExtendedRequest, ModifyDnRequest,
    ModifyRequest, Operation, OperationKind, Request, Scope, SearchRequest,
};
use super::values::{Attributes, Changes, Texts, text};
use super::{Limits, MessageId, tags};
use crate::ber::{self, BerError, Reader};

/// The one version of LDAP that binds may ask for.
const VERSION: i64 = 3;

/// Reads a request from the octets of one message, as [`crate::framing::frame`] marks it off.
///
/// ```
/// use cowslip_ldap::message::{Limits, Operation, decode_request};
/// let abandon = [0x30, 0x06, 0x02, 0x01, 0x06, 0x50, 0x01, 0x05];
/// let request = decode_request(&abandon, &Limits::DEFAULT)?;
/// assert_eq!(request.id.number(), 6);
/// assert!(matches!(request.operation, Operation::Abandon(id) if id.number() == 5));
/// # Ok::<(), cowslip_ldap::message::RequestError>(())
/// ```
///
/// # Errors
/// The octets are no request, or one that may not be; [`RequestError::remedy`] says what to do about it.
pub fn decode_request<'a>(frame: &'a [u8], limits: &Limits) -> Result<Request<'a>, RequestError> {
    let mut outer = Reader::new(frame);
    let mut message = outer.within(ber::SEQUENCE)?;
    outer.finish()?;
    let number = message.integer()?;
    let id = u32::try_from(number).ok().and_then(MessageId::new).ok_or(RequestError::MessageId { number })?;
    let (tag, content) = message.element()?;
    let kind = OperationKind::from_tag(tag).ok_or(RequestError::UnknownOperation { tag })?;
    let request = read_operation(kind, content, limits).and_then(|operation| {
        let controls = read_controls(&mut message, limits.controls_max)?;
        Ok(Request { id, operation, controls })
    });
    request.map_err(|problem| match problem {
        Problem::Damaged(error) => RequestError::Damaged(error),
        Problem::Fault(fault) => RequestError::Refused { id, operation: kind, fault },
    })
}

fn read_operation<'a>(
    kind: OperationKind,
    content: &'a [u8],
    limits: &Limits,
) -> Result<Operation<'a>, Problem> {
    let mut reader = Reader::new(content);
    let operation = match kind {
        OperationKind::Bind => Operation::Bind(read_bind(&mut reader)?),
        OperationKind::Unbind if content.is_empty() => return Ok(Operation::Unbind),
        OperationKind::Unbind => {
            return Err(BerError::ContentSize { tag: tags::UNBIND_REQUEST, octets: content.len() }.into());
        }
        OperationKind::Search => Operation::Search(Box::new(read_search(&mut reader, limits)?)),
        OperationKind::Modify => {
            let name = reader.octets()?;
            Operation::Modify(ModifyRequest { name, changes: Changes::read(reader.expect(ber::SEQUENCE)?)? })
        }
        OperationKind::Add => Operation::Add(read_add(&mut reader)?),
        OperationKind::Delete => return Ok(Operation::Delete(content)),
        OperationKind::ModifyDn => Operation::ModifyDn(ModifyDnRequest {
            name: reader.octets()?,
            new_rdn: reader.octets()?,
            deletes_old_rdn: reader.boolean()?,
            new_superior: reader.optional(tags::NEW_SUPERIOR)?,
        }),
        OperationKind::Compare => Operation::Compare(read_compare(&mut reader)?),
        OperationKind::Abandon => return read_abandon(content),
        OperationKind::Extended => Operation::Extended(read_extended(&mut reader)?),
    };
    reader.skip_extensions()?;
    Ok(operation)
}

fn read_bind<'a>(reader: &mut Reader<'a>) -> Result<BindRequest<'a>, Problem> {
    let number = reader.integer()?;
    if number != VERSION {
        return Err(Fault::Version { number }.into());
    }
    let name = reader.octets()?;
    let authentication = match reader.element()? {
        (tags::SIMPLE, password) => Authentication::Simple(password),
        (tags::SASL, content) => {
            let mut sasl = Reader::new(content);
            let mechanism = sasl.octets()?;
            let credentials = sasl.optional(ber::OCTET_STRING)?;
            sasl.skip_extensions()?;
            Authentication::Sasl { mechanism: text(mechanism, "the SASL mechanism")?, credentials }
        }
        (tag, _) => return Err(Fault::Authentication { tag }.into()),
    };
    Ok(BindRequest { name, authentication })
}

fn read_search<'a>(reader: &mut Reader<'a>, limits: &Limits) -> Result<SearchRequest<'a>, Problem> {
    let base = reader.octets()?;
    let scope = reader.enumerated()?;
    let dereference = reader.enumerated()?;
    let size_limit = reader.integer()?;
    let time_limit_s = reader.integer()?;
    let types_only = reader.boolean()?;
    let filter = read_filter(reader, limits)?;
    let attributes = reader.expect(ber::SEQUENCE)?;
    Ok(SearchRequest {
        base,
        scope: Scope::from_number(scope).ok_or(Fault::Number { field: "the scope", number: scope })?,
        dereference: Dereference::from_number(dereference)
            .ok_or(Fault::Number { field: "derefAliases", number: dereference })?,
        size_limit: limit(size_limit, "the size limit")?,
        time_limit_s: limit(time_limit_s, "the time limit")?,
        types_only,
        filter,
        attributes: Texts::read(attributes, "a requested attribute", limits.search_attributes_max)?,
    })
}

/// A number from 0 to 2^31 - 1 (RFC 4511's `maxInt`).
fn limit(number: i64, field: &'static str) -> Result<u32, Fault> {
    i32::try_from(number)
        .ok()
        .and_then(|number| u32::try_from(number).ok())
        .ok_or(Fault::Number { field, number })
}

fn read_add<'a>(reader: &mut Reader<'a>) -> Result<AddRequest<'a>, Problem> {
    let name = reader.octets()?;
    let attributes = Attributes::read(reader.expect(ber::SEQUENCE)?, |attribute| {
        if attribute.values.is_empty() {
            return Err(Fault::NoValues { attribute: attribute.description.to_owned() });
        }
        Ok(())
    })?;
    if attributes.is_empty() {
        return Err(Fault::NoAttributes.into());
    }
    Ok(AddRequest { name, attributes })
}

fn read_compare<'a>(reader: &mut Reader<'a>) -> Result<CompareRequest<'a>, Problem> {
    let name = reader.octets()?;
    let mut assertion = reader.within(ber::SEQUENCE)?;
    let attribute = assertion.octets()?;
    let value = assertion.octets()?;
    assertion.skip_extensions()?;
    Ok(CompareRequest { name, attribute: text(attribute, "an attribute description")?, value })
}

fn read_abandon(content: &[u8]) -> Result<Operation<'_>, Problem> {
    let number = ber::integer_of(tags::ABANDON_REQUEST, content)?;
    let id = u32::try_from(number).ok().and_then(MessageId::new);
    Ok(Operation::Abandon(
        id.ok_or(Fault::Number { field: "the number of the operation to abandon", number })?,
    ))
}

fn read_extended<'a>(reader: &mut Reader<'a>) -> Result<ExtendedRequest<'a>, Problem> {
    let name = reader.expect(tags::EXTENDED_REQUEST_NAME)?;
    let value = reader.optional(tags::EXTENDED_REQUEST_VALUE)?;
    Ok(ExtendedRequest { name: text(name, "the name of an extended operation")?, value })
}
