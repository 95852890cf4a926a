//! The same messages as `rasn-ldap` has them.

use cowslip_ldap::filter::Filter;
use cowslip_ldap::message::{ChangeOperation, Dereference, OperationKind, Scope};
use cowslip_ldap::result::ResultCode;
use rasn::types::{OctetString, SetOf};
use rasn_ldap as r;

use super::Named;
use super::model::{Answer, Ask, Message, Outcome};

fn text(text: &str) -> r::LdapString {
    r::LdapString::from(text)
}

fn octets(octets: &[u8]) -> OctetString {
    OctetString::from(octets)
}

fn oid(name: &str) -> OctetString {
    octets(name.as_bytes())
}

fn values(values: &[Vec<u8>]) -> SetOf<OctetString> {
    SetOf::from_vec(values.iter().map(|value| octets(value)).collect())
}

fn message<T>(message: &Message<T>, operation: r::ProtocolOp) -> r::LdapMessage {
    let mut out = r::LdapMessage::new(message.id, operation);
    if !message.controls.is_empty() {
        let control = |it: &super::model::AControl| {
            r::Control::new(oid(&it.oid), it.is_critical, it.value.as_deref().map(octets))
        };
        out.controls = Some(message.controls.iter().map(control).collect());
    }
    out
}

fn assertion(attribute: &str, value: &[u8]) -> r::AttributeValueAssertion {
    r::AttributeValueAssertion::new(text(attribute), octets(value))
}

fn filter(it: &Filter) -> r::Filter {
    let all = |parts: &[Filter]| SetOf::from_vec(parts.iter().map(filter).collect());
    match it {
        Filter::And(parts) => r::Filter::And(all(parts)),
        Filter::Or(parts) => r::Filter::Or(all(parts)),
        Filter::Not(part) => r::Filter::Not(Box::new(filter(part))),
        Filter::Equality { attribute, value } => r::Filter::EqualityMatch(assertion(attribute, value)),
        Filter::GreaterOrEqual { attribute, value } => r::Filter::GreaterOrEqual(assertion(attribute, value)),
        Filter::LessOrEqual { attribute, value } => r::Filter::LessOrEqual(assertion(attribute, value)),
        Filter::Approximate { attribute, value } => r::Filter::ApproxMatch(assertion(attribute, value)),
        Filter::Present(attribute) => r::Filter::Present(text(attribute)),
        Filter::Substrings { attribute, initial, any, last } => {
            let pieces = initial.iter().map(|it| r::SubstringChoice::Initial(octets(it)));
            let pieces = pieces.chain(any.iter().map(|it| r::SubstringChoice::Any(octets(it))));
            let pieces = pieces.chain(last.iter().map(|it| r::SubstringChoice::Final(octets(it))));
            r::Filter::Substrings(r::SubstringFilter::new(text(attribute), pieces.collect()))
        }
        Filter::Extensible { rule, attribute, value, dn_attributes } => {
            r::Filter::ExtensibleMatch(r::MatchingRuleAssertion::new(
                rule.as_deref().map(text),
                attribute.as_deref().map(text),
                octets(value),
                *dn_attributes,
            ))
        }
    }
}

fn search(ask: &Ask) -> r::ProtocolOp {
    let Ask::Search {
        base,
        scope,
        dereference,
        size_limit,
        time_limit_s,
        types_only,
        filter: by,
        attributes,
    } = ask
    else {
        unreachable!("called for searches")
    };
    let scope = match scope {
        Scope::Base => r::SearchRequestScope::BaseObject,
        Scope::One => r::SearchRequestScope::SingleLevel,
        _ => r::SearchRequestScope::WholeSubtree,
    };
    let dereference = match dereference {
        Dereference::Never => r::SearchRequestDerefAliases::NeverDerefAliases,
        Dereference::InSearching => r::SearchRequestDerefAliases::DerefInSearching,
        Dereference::FindingBase => r::SearchRequestDerefAliases::DerefFindingBaseObj,
        Dereference::Always => r::SearchRequestDerefAliases::DerefAlways,
    };
    r::ProtocolOp::SearchRequest(r::SearchRequest::new(
        text(base),
        scope,
        dereference,
        *size_limit,
        *time_limit_s,
        *types_only,
        filter(by),
        attributes.iter().map(|it| text(it)).collect(),
    ))
}

/// A request.
pub(crate) fn ask(it: &Message<Ask>) -> r::LdapMessage {
    let bind = |name: &str, choice| r::ProtocolOp::BindRequest(r::BindRequest::new(3, text(name), choice));
    let operation = match &it.what {
        Ask::Bind { name, password } => bind(name, r::AuthenticationChoice::Simple(octets(password))),
        Ask::Sasl { name, mechanism, credentials } => {
            let sasl = r::SaslCredentials::new(text(mechanism), credentials.as_deref().map(octets));
            bind(name, r::AuthenticationChoice::Sasl(sasl))
        }
        Ask::Unbind => r::ProtocolOp::UnbindRequest(r::UnbindRequest),
        Ask::Search { .. } => search(&it.what),
        Ask::Modify { name, changes } => {
            let change = |(operation, attribute, members): &(ChangeOperation, String, Vec<Vec<u8>>)| {
                let operation = match operation {
                    ChangeOperation::Add => r::ChangeOperation::Add,
                    ChangeOperation::Delete => r::ChangeOperation::Delete,
                    _ => r::ChangeOperation::Replace,
                };
                let modification = r::PartialAttribute::new(text(attribute), values(members));
                r::ModifyRequestChanges { operation, modification }
            };
            let changes = changes.iter().map(change).collect();
            r::ProtocolOp::ModifyRequest(r::ModifyRequest { object: text(name), changes })
        }
        Ask::Add { name, attributes } => {
            let attributes = attributes
                .iter()
                .map(|(name, members)| r::Attribute::new(text(name), values(members)))
                .collect();
            r::ProtocolOp::AddRequest(r::AddRequest { entry: text(name), attributes })
        }
        Ask::Delete(name) => r::ProtocolOp::DelRequest(r::DelRequest(text(name))),
        Ask::ModifyDn { name, new_rdn, deletes_old_rdn, new_superior } => {
            r::ProtocolOp::ModDnRequest(r::ModifyDnRequest {
                entry: text(name),
                new_rdn: text(new_rdn),
                delete_old_rdn: *deletes_old_rdn,
                new_superior: new_superior.as_deref().map(text),
            })
        }
        Ask::Compare { name, attribute, value } => r::ProtocolOp::CompareRequest(r::CompareRequest {
            entry: text(name),
            ava: assertion(attribute, value),
        }),
        Ask::Abandon(target) => r::ProtocolOp::AbandonRequest(r::AbandonRequest(*target)),
        Ask::Extended { name, value } => r::ProtocolOp::ExtendedReq(r::ExtendedRequest {
            request_name: oid(name),
            request_value: value.as_deref().map(octets),
        }),
    };
    message(it, operation)
}

fn code(code: ResultCode) -> r::ResultCode {
    match code {
        ResultCode::Success => r::ResultCode::Success,
        ResultCode::NoSuchObject => r::ResultCode::NoSuchObject,
        ResultCode::Referral => r::ResultCode::Referral,
        _ => r::ResultCode::Other,
    }
}

fn referral(outcome: &Outcome) -> Option<r::Referral> {
    (!outcome.referrals.is_empty()).then(|| outcome.referrals.iter().map(|url| text(url)).collect())
}

fn result(outcome: &Outcome) -> r::LdapResult {
    let mut out = r::LdapResult::new(code(outcome.code), text(&outcome.matched), text(&outcome.message));
    out.referral = referral(outcome);
    out
}

fn partial(attributes: &Named) -> r::PartialAttributeList {
    attributes.iter().map(|(name, members)| r::PartialAttribute::new(text(name), values(members))).collect()
}

/// A response.
pub(crate) fn answer(it: &Message<Answer>) -> r::LdapMessage {
    let operation = match &it.what {
        Answer::Bind { outcome, credentials } => r::ProtocolOp::BindResponse(r::BindResponse::new(
            code(outcome.code),
            text(&outcome.matched),
            text(&outcome.message),
            referral(outcome),
            credentials.as_deref().map(octets),
        )),
        Answer::Entry { name, attributes } => {
            r::ProtocolOp::SearchResEntry(r::SearchResultEntry::new(text(name), partial(attributes)))
        }
        Answer::Reference(urls) => {
            r::ProtocolOp::SearchResRef(r::SearchResultReference(urls.iter().map(|url| text(url)).collect()))
        }
        Answer::Done { operation, outcome } => {
            let result = result(outcome);
            match operation {
                OperationKind::Search => r::ProtocolOp::SearchResDone(r::SearchResultDone(result)),
                OperationKind::Modify => r::ProtocolOp::ModifyResponse(r::ModifyResponse(result)),
                OperationKind::Add => r::ProtocolOp::AddResponse(r::AddResponse(result)),
                OperationKind::Delete => r::ProtocolOp::DelResponse(r::DelResponse(result)),
                OperationKind::ModifyDn => r::ProtocolOp::ModDnResponse(r::ModifyDnResponse(result)),
                _ => r::ProtocolOp::CompareResponse(r::CompareResponse(result)),
            }
        }
        Answer::Extended { outcome, name, value } => r::ProtocolOp::ExtendedResp(r::ExtendedResponse {
            result_code: code(outcome.code),
            matched_dn: text(&outcome.matched),
            diagnostic_message: text(&outcome.message),
            referral: referral(outcome),
            response_name: name.as_deref().map(oid),
            response_value: value.as_deref().map(octets),
        }),
        Answer::Intermediate { name, value } => {
            r::ProtocolOp::IntermediateResponse(r::IntermediateResponse {
                response_name: name.as_deref().map(oid),
                response_value: value.as_deref().map(octets),
            })
        }
    };
    message(it, operation)
}
