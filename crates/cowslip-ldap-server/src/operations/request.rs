//! From a decoded message to a plan.

use cowslip_ldap::message::{ChangeOperation, Limits, Operation, Request, decode_request};
use cowslip_ldap::result::ResultCode;

use super::plan::{Brought, ChangeKind, Plan};
use super::prepare::{self, Given, Origin};
use super::refusal::Refusal;
use crate::meta::Meta;

/// Makes a plan of a request that writes.
///
/// # Errors
/// See [`Refusal`].
pub fn plan(request: &Request<'_>, meta: &Meta) -> Result<Plan, Refusal> {
    match &request.operation {
        Operation::Add(add) => {
            let attributes: Vec<Given<'_>> = add
                .attributes
                .iter()
                .map(|attribute| Given {
                    description: attribute.description.as_bytes(),
                    values: attribute.values.iter().collect(),
                })
                .collect();
            prepare::add(add.name, &attributes, Brought::default(), Origin::Client, meta).map(Plan::Add)
        }
        Operation::Delete(name) => {
            let dn = prepare::name(name)?;
            if prepare::is_schema(&dn) {
                return Err(Refusal::new(ResultCode::UnwillingToPerform, "the schema's entry stays"));
            }
            Ok(Plan::Delete(prepare::path(&dn, meta)?))
        }
        Operation::Modify(modify) => {
            let changes: Vec<(ChangeKind, Given<'_>)> = modify
                .changes
                .iter()
                .map(|change| {
                    let values = change.attribute.values.iter().collect();
                    (
                        kind(change.operation),
                        Given { description: change.attribute.description.as_bytes(), values },
                    )
                })
                .collect();
            prepare::modify(modify.name, &changes, meta)
        }
        Operation::ModifyDn(rename) => {
            prepare::rename(rename.name, rename.new_rdn, rename.deletes_old_rdn, rename.new_superior, meta)
                .map(Plan::Rename)
        }
        other => {
            Err(Refusal::new(ResultCode::OperationsError, format!("{} writes nothing", other.kind().name())))
        }
    }
}

/// Makes a plan of a whole message, once more, because the rules have changed since it was read.
///
/// # Errors
/// See [`Refusal`].
pub fn plan_message(message: &[u8], meta: &Meta) -> Result<Plan, Refusal> {
    let request = decode_request(message, &Limits::default());
    plan(&request.map_err(|error| Refusal::new(ResultCode::ProtocolError, error.to_string()))?, meta)
}

fn kind(operation: ChangeOperation) -> ChangeKind {
    match operation {
        ChangeOperation::Add => ChangeKind::Add,
        ChangeOperation::Delete => ChangeKind::Delete,
        ChangeOperation::Replace => ChangeKind::Replace,
        ChangeOperation::Increment => ChangeKind::Increment,
    }
}
