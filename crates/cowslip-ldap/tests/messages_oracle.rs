//! Messages beside `rasn-ldap`, whose codec is derived from RFC 4511's ASN.1: each reads what the other wrote. The octets
//! differ only in the order of sets, which it sorts. It knows no increment, no scope beyond the RFC's, and no codes of
//! extensions.

#[path = "messages_oracle/model.rs"]
mod model;
#[path = "messages_oracle/theirs.rs"]
mod theirs;

use std::borrow::Cow;

use cowslip_ldap::message::{
    Authentication, CompareRequest, Control, ExtendedRequest, ModifyDnRequest, Request,
};
use cowslip_ldap::message::{
    EntryWriter, Limits, Operation, ResponseOperation, SearchParameters, decode_request, decode_response,
    write_abandon, write_add, write_bind, write_bind_response, write_compare, write_delete, write_extended,
    write_extended_response, write_intermediate_response, write_modify, write_modify_dn, write_reference,
    write_result, write_search, write_unbind,
};
use cowslip_ldap::result::LdapResult;
use model::{Answer, Ask, Message, Outcome, answers, asks, id};
use proptest::prelude::*;

type Named = Vec<(String, Vec<Vec<u8>>)>;

fn controls(message: &Message<impl Sized>) -> Vec<Control<'_>> {
    message
        .controls
        .iter()
        .map(|it| Control { oid: &it.oid, is_critical: it.is_critical, value: it.value.as_deref() })
        .collect()
}

fn write_ask(message: &Message<Ask>) -> Vec<u8> {
    let mut out = Vec::new();
    let id = id(message.id);
    let controls = &controls(message)[..];
    match &message.what {
        Ask::Bind { name, password } => {
            write_bind(&mut out, id, name.as_bytes(), Authentication::Simple(password), controls);
        }
        Ask::Sasl { name, mechanism, credentials } => {
            let sasl = Authentication::Sasl { mechanism, credentials: credentials.as_deref() };
            write_bind(&mut out, id, name.as_bytes(), sasl, controls);
        }
        Ask::Unbind => write_unbind(&mut out, id),
        Ask::Search {
            base,
            scope,
            dereference,
            size_limit,
            time_limit_s,
            types_only,
            filter,
            attributes,
        } => {
            let attributes: Vec<&str> = attributes.iter().map(String::as_str).collect();
            let parameters = SearchParameters {
                base,
                scope: *scope,
                dereference: *dereference,
                size_limit: *size_limit,
                time_limit_s: *time_limit_s,
                types_only: *types_only,
                attributes: &attributes,
            };
            write_search(&mut out, id, &parameters, filter, controls);
        }
        Ask::Modify { name, changes } => {
            let changes = changes
                .iter()
                .map(|(operation, attribute, values)| (*operation, &attribute[..], &values[..]));
            write_modify(&mut out, id, name.as_bytes(), changes, controls);
        }
        Ask::Add { name, attributes } => {
            let attributes = attributes.iter().map(|(description, values)| (&description[..], &values[..]));
            write_add(&mut out, id, name.as_bytes(), attributes, controls);
        }
        Ask::Delete(name) => write_delete(&mut out, id, name.as_bytes(), controls),
        Ask::ModifyDn { name, new_rdn, deletes_old_rdn, new_superior } => {
            let request = ModifyDnRequest {
                name: name.as_bytes(),
                new_rdn: new_rdn.as_bytes(),
                deletes_old_rdn: *deletes_old_rdn,
                new_superior: new_superior.as_deref().map(str::as_bytes),
            };
            write_modify_dn(&mut out, id, &request, controls);
        }
        Ask::Compare { name, attribute, value } => {
            write_compare(
                &mut out,
                id,
                &CompareRequest { name: name.as_bytes(), attribute, value },
                controls,
            );
        }
        Ask::Abandon(target) => write_abandon(&mut out, id, model::id(*target)),
        Ask::Extended { name, value } => {
            write_extended(&mut out, id, &ExtendedRequest { name, value: value.as_deref() }, controls);
        }
    }
    out
}

fn string(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).expect("text was written")
}

fn read_ask(request: &Request<'_>) -> Ask {
    match &request.operation {
        Operation::Bind(bind) => match bind.authentication {
            Authentication::Simple(password) => {
                Ask::Bind { name: string(bind.name), password: password.to_vec() }
            }
            Authentication::Sasl { mechanism, credentials } => Ask::Sasl {
                name: string(bind.name),
                mechanism: mechanism.to_owned(),
                credentials: credentials.map(<[u8]>::to_vec),
            },
        },
        Operation::Unbind => Ask::Unbind,
        Operation::Search(search) => Ask::Search {
            base: string(search.base),
            scope: search.scope,
            dereference: search.dereference,
            size_limit: search.size_limit,
            time_limit_s: search.time_limit_s,
            types_only: search.types_only,
            filter: search.filter.clone(),
            attributes: search.attributes.iter().map(str::to_owned).collect(),
        },
        Operation::Modify(modify) => Ask::Modify {
            name: string(modify.name),
            changes: modify
                .changes
                .iter()
                .map(|it| {
                    let values = it.attribute.values.iter().map(<[u8]>::to_vec).collect();
                    (it.operation, it.attribute.description.to_owned(), values)
                })
                .collect(),
        },
        Operation::Add(add) => Ask::Add { name: string(add.name), attributes: named(&add.attributes) },
        Operation::Delete(name) => Ask::Delete(string(name)),
        Operation::ModifyDn(it) => Ask::ModifyDn {
            name: string(it.name),
            new_rdn: string(it.new_rdn),
            deletes_old_rdn: it.deletes_old_rdn,
            new_superior: it.new_superior.map(string),
        },
        Operation::Compare(it) => Ask::Compare {
            name: string(it.name),
            attribute: it.attribute.to_owned(),
            value: it.value.to_vec(),
        },
        Operation::Abandon(target) => Ask::Abandon(target.number()),
        Operation::Extended(it) => {
            Ask::Extended { name: it.name.to_owned(), value: it.value.map(<[u8]>::to_vec) }
        }
    }
}

fn named(attributes: &cowslip_ldap::message::Attributes<'_>) -> Named {
    attributes
        .iter()
        .map(|it| (it.description.to_owned(), it.values.iter().map(<[u8]>::to_vec).collect()))
        .collect()
}

fn result(outcome: &Outcome) -> LdapResult<'_> {
    LdapResult {
        code: outcome.code,
        matched: Cow::Borrowed(&outcome.matched),
        message: Cow::Borrowed(&outcome.message),
        referrals: outcome.referrals.iter().map(|url| Cow::Borrowed(&url[..])).collect(),
    }
}

fn write_answer(message: &Message<Answer>) -> Vec<u8> {
    let mut out = Vec::new();
    let id = id(message.id);
    let controls = &controls(message)[..];
    match &message.what {
        Answer::Bind { outcome, credentials } => {
            write_bind_response(&mut out, id, &result(outcome), credentials.as_deref(), controls);
        }
        Answer::Entry { name, attributes } => {
            let mut entry = EntryWriter::new(&mut out, id, name.as_bytes());
            for (description, values) in attributes {
                entry.attribute(description, values);
            }
            entry.finish(controls);
        }
        Answer::Reference(urls) => write_reference(&mut out, id, urls, controls),
        Answer::Done { operation, outcome } => {
            write_result(&mut out, id, *operation, &result(outcome), controls)
        }
        Answer::Extended { outcome, name, value } => {
            write_extended_response(
                &mut out,
                id,
                &result(outcome),
                name.as_deref(),
                value.as_deref(),
                controls,
            );
        }
        Answer::Intermediate { name, value } => {
            write_intermediate_response(&mut out, id, name.as_deref(), value.as_deref(), controls);
        }
    }
    out
}

fn read_outcome(result: &LdapResult<'_>) -> Outcome {
    Outcome {
        code: result.code,
        matched: result.matched.to_string(),
        message: result.message.to_string(),
        referrals: result.referrals.iter().map(ToString::to_string).collect(),
    }
}

fn read_answer(operation: &ResponseOperation<'_>) -> Answer {
    let octets = |value: &Option<&[u8]>| value.map(<[u8]>::to_vec);
    match operation {
        ResponseOperation::Bind { result, server_credentials } => {
            Answer::Bind { outcome: read_outcome(result), credentials: octets(server_credentials) }
        }
        ResponseOperation::SearchEntry { name, attributes } => {
            Answer::Entry { name: (*name).to_owned(), attributes: named(attributes) }
        }
        ResponseOperation::SearchReference(urls) => {
            Answer::Reference(urls.iter().map(str::to_owned).collect())
        }
        ResponseOperation::Done { operation, result } => {
            Answer::Done { operation: *operation, outcome: read_outcome(result) }
        }
        ResponseOperation::Extended { result, name, value } => Answer::Extended {
            outcome: read_outcome(result),
            name: name.map(str::to_owned),
            value: octets(value),
        },
        ResponseOperation::Intermediate { name, value } => {
            Answer::Intermediate { name: name.map(str::to_owned), value: octets(value) }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn requests_agree(message in asks()) {
        let ours = write_ask(&message);
        let theirs = theirs::ask(&message);
        let octets = rasn::ber::encode(&theirs).expect("encoded");
        prop_assert_eq!(octets.len(), ours.len());
        prop_assert_eq!(rasn::ber::decode::<rasn_ldap::LdapMessage>(&ours).expect("decoded"), theirs);
        for octets in [&ours, &octets] {
            let request = decode_request(octets, &Limits::DEFAULT).expect("decoded");
            prop_assert_eq!(request.id.number(), message.id);
            prop_assert_eq!(&request.controls, &controls(&message));
            prop_assert_eq!(read_ask(&request).sorted(), message.what.clone().sorted());
        }
        let request = decode_request(&ours, &Limits::DEFAULT).expect("decoded");
        prop_assert_eq!(read_ask(&request), message.what);
    }

    #[test]
    fn responses_agree(message in answers()) {
        let ours = write_answer(&message);
        let theirs = theirs::answer(&message);
        let octets = rasn::ber::encode(&theirs).expect("encoded");
        prop_assert_eq!(octets.len(), ours.len());
        prop_assert_eq!(rasn::ber::decode::<rasn_ldap::LdapMessage>(&ours).expect("decoded"), theirs);
        for octets in [&ours, &octets] {
            let response = decode_response(octets).expect("decoded");
            prop_assert_eq!(response.id.number(), message.id);
            prop_assert_eq!(&response.controls, &controls(&message));
            prop_assert_eq!(read_answer(&response.operation).sorted(), message.what.clone().sorted());
        }
        let response = decode_response(&ours).expect("decoded");
        prop_assert_eq!(read_answer(&response.operation), message.what);
    }

    /// A request with one octet changed is a request or an error that says what to do; what is a request reads the same
    /// when it is walked.
    #[test]
    fn damage_is_found_when_decoding(message in asks(), at in any::<prop::sample::Index>(), octet in any::<u8>()) {
        let mut octets = write_ask(&message);
        let at = at.index(octets.len());
        octets[at] = octet;
        if let Ok(request) = decode_request(&octets, &Limits::DEFAULT) {
            let counts_hold = match &request.operation {
                Operation::Modify(modify) => modify.changes.iter().count() == modify.changes.len(),
                Operation::Add(add) => add.attributes.iter().count() == add.attributes.len(),
                Operation::Search(search) => search.attributes.iter().count() == search.attributes.len(),
                _ => true,
            };
            prop_assert!(counts_hold);
        }
    }
}
