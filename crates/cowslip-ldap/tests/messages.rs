//! Requests from their octets (`cases/messages.json`), limits, responses there and back.

use std::borrow::Cow;

use cowslip_ldap::filter::{FILTER_DEPTH_MAX, Filter};
use cowslip_ldap::framing::{Framing, frame};
use cowslip_ldap::message::{
    Authentication, CONTROLS_MAX, Control, EntryWriter, Fault, FilterDecodeError, Limits, MessageId,
    Operation, OperationKind, Remedy, Request, RequestError, ResponseOperation, SEARCH_ATTRIBUTES_MAX,
    SearchParameters, decode_filter, decode_request, decode_response, encode_filter, write_bind_response,
    write_extended_response, write_intermediate_response, write_notice_of_disconnection, write_reference,
    write_result, write_search,
};
use cowslip_ldap::oids;
use cowslip_ldap::result::{LdapResult, ResultCode};

fn id(number: u32) -> MessageId {
    MessageId::new(number).expect("in range")
}

fn octets(hex: &str) -> Vec<u8> {
    hex.split(' ').map(|octet| u8::from_str_radix(octet, 16).expect("two hexadecimal digits")).collect()
}

fn name(octets: &[u8]) -> String {
    format!("'{}'", String::from_utf8_lossy(octets))
}

fn values<'a>(values: impl Iterator<Item = &'a [u8]>) -> String {
    values.map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}

/// A request in short.
fn told(request: &Request<'_>) -> String {
    let mut text = format!("{} {}", request.id, request.operation.kind().name());
    let mut tell = |more: &str| {
        text.push(' ');
        text.push_str(more);
    };
    match &request.operation {
        Operation::Bind(bind) => {
            tell(&name(bind.name));
            tell(&format!("{:?}", bind.authentication));
        }
        Operation::Unbind => {}
        Operation::Search(search) => {
            let attributes = search.attributes.iter().collect::<Vec<_>>().join(",");
            tell(&format!("{} {:?} {} [{attributes}]", name(search.base), search.scope, search.filter));
        }
        Operation::Modify(modify) => {
            tell(&name(modify.name));
            for change in modify.changes.iter() {
                let attribute = change.attribute;
                let equals = if attribute.values.is_empty() { "" } else { "=" };
                let values = values(attribute.values.iter());
                tell(&format!("{:?} {}{equals}{values}", change.operation, attribute.description));
            }
        }
        Operation::Add(add) => {
            tell(&name(add.name));
            let attributes =
                add.attributes.iter().map(|it| format!("{}={}", it.description, values(it.values.iter())));
            tell(&attributes.collect::<Vec<_>>().join("  "));
        }
        Operation::Delete(dn) => tell(&name(dn)),
        Operation::ModifyDn(rename) => {
            tell(&format!("{} {} {}", name(rename.name), name(rename.new_rdn), rename.deletes_old_rdn));
            if let Some(superior) = rename.new_superior {
                tell(&name(superior));
            }
        }
        Operation::Compare(compare) => {
            tell(&format!(
                "{} {}={}",
                name(compare.name),
                compare.attribute,
                String::from_utf8_lossy(compare.value)
            ));
        }
        Operation::Abandon(target) => tell(&target.to_string()),
        Operation::Extended(extended) => {
            tell(extended.name);
            if let Some(value) = extended.value {
                tell(&format!("({} bytes)", value.len()));
            }
        }
    }
    for control in &request.controls {
        let critical = if control.is_critical { "!" } else { "" };
        let value = control.value.map(|value| format!("({} bytes)", value.len())).unwrap_or_default();
        text.push_str(&format!(" +{}{critical}{value}", control.oid));
    }
    text
}

fn outcome(frame: &[u8]) -> String {
    match decode_request(frame, &Limits::DEFAULT).map_err(|error| error.remedy()) {
        Ok(request) => told(&request),
        Err(Remedy::Answer { id, operation, code }) => {
            format!("answer {id} {} {}", operation.name(), code.name())
        }
        Err(Remedy::Ignore) => "ignore".to_owned(),
        Err(Remedy::Disconnect { code }) => format!("disconnect {}", code.name()),
    }
}

#[test]
fn requests_come_out_as_they_should() {
    let cases: serde_json::Value = serde_json::from_str(include_str!("cases/messages.json")).expect("JSON");
    let cases = cases.as_array().expect("a list");
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let text = |key: &str| case[key].as_str().expect("a string");
            let found = outcome(&octets(text("frame")));
            (found != text("outcome")).then(|| format!("{}: {found}", text("name")))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Every octet of every case replaced and every case cut short: an outcome each time, never a panic; and a message cut
/// short is never a request.
#[test]
fn damaged_frames_have_an_outcome_too() {
    let cases: serde_json::Value = serde_json::from_str(include_str!("cases/messages.json")).expect("JSON");
    for case in cases.as_array().expect("a list") {
        let frame = octets(case["frame"].as_str().expect("a string"));
        let is_whole = decode_request(&frame, &Limits::DEFAULT)
            .map_or_else(|error| !matches!(error.remedy(), Remedy::Disconnect { .. }), |_| true);
        for at in 0..frame.len() {
            let cut = outcome(&frame[..at]);
            assert!(!is_whole || cut == "disconnect protocolError", "{case} up to {at}: {cut}");
            let mut damaged = frame.clone();
            for octet in [0x00, 0x01, 0x7f, 0x80, 0x84, 0xff, frame[at] ^ 0x20, frame[at].wrapping_add(1)] {
                damaged[at] = octet;
                assert!(!outcome(&damaged).is_empty());
            }
        }
    }
}

/// A search with these attributes and so many controls.
fn search(attributes: &[&str], controls: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let control = Control { oid: "1.2.3", is_critical: false, value: None };
    let parameters = SearchParameters { attributes, ..Default::default() };
    write_search(&mut out, id(5), &parameters, &Filter::Present("a".to_owned()), &vec![control; controls]);
    out
}

/// A search of the root with this filter's octets, put together by hand.
fn search_by(filter: &[u8]) -> Vec<u8> {
    let wrap = |tag: u8, content: &[u8]| {
        let mut out = vec![tag, 0x84];
        out.extend_from_slice(&u32::try_from(content.len()).expect("small").to_be_bytes());
        out.extend_from_slice(content);
        out
    };
    let before = [4, 0, 10, 1, 0, 10, 1, 0, 2, 1, 0, 2, 1, 0, 1, 1, 0];
    let operation = wrap(0x63, &[&before, filter, &[0x30, 0]].concat());
    wrap(0x30, &[&[2, 1, 5], &operation[..]].concat())
}

/// L001: `objectClass=*` within so many nots.
fn nested(levels: usize) -> Vec<u8> {
    let mut filter = b"\x87\x0bobjectClass".to_vec();
    // From the inside out, each header in front.
    let mut headers = Vec::new();
    let mut bytes = filter.len();
    for _ in 0..levels {
        let mut header = vec![0xa2, 0x84];
        header.extend_from_slice(&u32::try_from(bytes).expect("small").to_be_bytes());
        bytes += header.len();
        headers.push(header);
    }
    let mut all: Vec<u8> = headers.into_iter().rev().flatten().collect();
    all.append(&mut filter);
    all
}

#[test]
fn l001_filters_are_bounded_in_depth() {
    for levels in [0, 3, 63, 64, 65, 10_000, 100_000] {
        let frame = search_by(&nested(levels));
        let decoded = decode_request(&frame, &Limits::DEFAULT);
        if levels <= FILTER_DEPTH_MAX {
            assert!(
                matches!(decoded, Ok(request) if told(&request).matches('!').count() == levels),
                "{levels}"
            );
        } else {
            let expected = RequestError::Refused {
                id: id(5),
                operation: OperationKind::Search,
                fault: Fault::FilterDepth { max: FILTER_DEPTH_MAX },
            };
            assert_eq!(decoded, Err(expected), "{levels}");
        }
    }
}

#[test]
fn l002_large_messages_are_refused_by_their_header() {
    let header = octets("30 84 7f ff ff ff 02 01 01");
    for is_authenticated in [false, true] {
        let error =
            frame(&header, Limits::DEFAULT.message_bytes(is_authenticated)).map_err(RequestError::from);
        let remedy = error.expect_err("too large").remedy();
        assert_eq!(remedy, Remedy::Disconnect { code: ResultCode::ProtocolError });
    }
}

#[test]
fn l007_controls_are_bounded() {
    for (controls, is_taken) in [(0, true), (CONTROLS_MAX, true), (CONTROLS_MAX + 1, false), (50_000, false)]
    {
        let frame = search(&[], controls);
        match decode_request(&frame, &Limits::DEFAULT) {
            Ok(request) => assert!(is_taken && request.controls.len() == controls),
            Err(error) => {
                let operation = OperationKind::Search;
                let code = ResultCode::UnwillingToPerform;
                assert!(!is_taken);
                assert_eq!(error.remedy(), Remedy::Answer { id: id(5), operation, code });
            }
        }
    }
}

#[test]
fn l011_requested_attributes_are_bounded() {
    let max = SEARCH_ATTRIBUTES_MAX;
    for (count, is_taken) in [(2, true), (max, true), (max + 1, false), (100_000, false)] {
        let frame = search(&vec![""; count], 0);
        match decode_request(&frame, &Limits::DEFAULT) {
            Ok(request) => {
                let Operation::Search(search) = request.operation else {
                    unreachable!("a search was written")
                };
                assert!(
                    is_taken && search.attributes.len() == count && search.attributes.iter().count() == count
                );
            }
            Err(error) => {
                let fault = Fault::TooManyAttributes { max };
                assert!(!is_taken);
                assert_eq!(
                    error,
                    RequestError::Refused { id: id(5), operation: OperationKind::Search, fault }
                );
            }
        }
    }
}

#[test]
fn l019_filters_are_bounded_in_size() {
    let limits = Limits::DEFAULT;
    for (terms, is_taken) in
        [(20_001, true), (limits.filter_terms_max, true), (limits.filter_terms_max + 1, false)]
    {
        let filter = Filter::Or(vec![Filter::Present("a".to_owned()); terms - 1]);
        let mut octets = Vec::new();
        encode_filter(&mut octets, &filter);
        match decode_filter(&octets, &limits) {
            Ok(found) => assert!(is_taken && found == filter, "{terms}"),
            Err(error) => {
                let max = limits.filter_terms_max;
                assert_eq!(error, FilterDecodeError::Fault(Fault::FilterTerms { max }));
                assert!(!is_taken, "{terms}");
            }
        }
    }
}

#[test]
fn secrets_stay_out_of_debug_output() {
    let bind = Authentication::Simple(b"secret");
    let sasl = Authentication::Sasl { mechanism: "PLAIN", credentials: Some(b"\0amy\0secret") };
    assert!(!format!("{bind:?}{sasl:?}").contains("secret"));
}

/// One message of its own, whole.
fn whole(out: &[u8]) -> &[u8] {
    assert_eq!(frame(out, out.len()), Ok(Framing::Complete { bytes: out.len() }));
    out
}

#[test]
fn results_come_back() {
    let control = Control { oid: oids::PAGED_RESULTS, is_critical: false, value: Some(b"\x30\x00") };
    let mut result = LdapResult::new(ResultCode::Referral, "é".repeat(100)).with_matched("dc=x");
    result.referrals = vec![Cow::Borrowed("ldap://a/"), Cow::Borrowed("ldap://b/")];
    for kind in OperationKind::ALL {
        let mut out = Vec::new();
        write_result(&mut out, id(7), kind, &result, &[control]);
        if !kind.has_answer() {
            assert!(out.is_empty(), "{kind:?}");
            continue;
        }
        let response = decode_response(whole(&out)).expect("a response");
        let found = match response.operation {
            ResponseOperation::Bind { result, server_credentials: None } if kind == OperationKind::Bind => {
                result
            }
            ResponseOperation::Extended { result, name: None, value: None }
                if kind == OperationKind::Extended =>
            {
                result
            }
            ResponseOperation::Done { operation, result } if operation == kind => result,
            other => unreachable!("{kind:?}: {other:?}"),
        };
        assert_eq!((response.id, found, response.controls), (id(7), result.clone(), vec![control]));
    }
}

#[test]
fn other_responses_come_back() {
    let success = LdapResult::SUCCESS;
    let mut out = Vec::new();
    write_bind_response(&mut out, id(1), &success, Some(b"more"), &[]);
    let expected = ResponseOperation::Bind { result: success.clone(), server_credentials: Some(b"more") };
    assert_eq!(decode_response(whole(&out)).expect("a response").operation, expected);

    out.clear();
    write_extended_response(&mut out, id(1), &success, Some("1.2.3"), Some(b"v"), &[]);
    let expected =
        ResponseOperation::Extended { result: success.clone(), name: Some("1.2.3"), value: Some(b"v") };
    assert_eq!(decode_response(whole(&out)).expect("a response").operation, expected);

    out.clear();
    write_intermediate_response(&mut out, id(1), None, Some(b"v"), &[]);
    let expected = ResponseOperation::Intermediate { name: None, value: Some(b"v") };
    assert_eq!(decode_response(whole(&out)).expect("a response").operation, expected);

    out.clear();
    write_reference(&mut out, id(1), ["ldap://a/", "ldap://b/"], &[]);
    let response = decode_response(whole(&out)).expect("a response");
    let ResponseOperation::SearchReference(urls) = response.operation else { unreachable!("{response:?}") };
    assert_eq!(urls.iter().collect::<Vec<_>>(), ["ldap://a/", "ldap://b/"]);

    out.clear();
    write_notice_of_disconnection(&mut out, &LdapResult::new(ResultCode::Unavailable, "shutting down"));
    let response = decode_response(whole(&out)).expect("a response");
    assert_eq!(response.id, MessageId::UNSOLICITED);
    let ResponseOperation::Extended { result, name, value: None } = response.operation else {
        unreachable!("a notice was written")
    };
    assert_eq!((result.code, name), (ResultCode::Unavailable, Some(oids::NOTICE_OF_DISCONNECTION)));
}

#[test]
fn an_entry_that_is_not_finished_leaves_nothing() {
    let mut out = b"before".to_vec();
    let mut entry = EntryWriter::new(&mut out, id(1), b"dc=x");
    entry.attribute("cn", ["a", "b"]);
    entry.begin_attribute("sn");
    assert!(entry.bytes() > 0);
    drop(entry);
    assert_eq!(out, b"before");
}

#[test]
fn entries_written_in_pieces_are_the_same() {
    let long = "v".repeat(300);
    let (mut at_once, mut in_pieces) = (Vec::new(), Vec::new());
    let mut entry = EntryWriter::new(&mut at_once, id(1), b"cn=a,dc=x");
    entry.attribute("cn;lang-en", ["a", &long]);
    entry.attribute("none", [""; 0]);
    entry.finish(&[]);
    let mut entry = EntryWriter::with_name(&mut in_pieces, id(1), |out| {
        out.extend_from_slice(b"cn=a");
        out.extend_from_slice(b",dc=x");
    });
    entry.begin_attribute_with(|out| {
        out.extend_from_slice(b"cn");
        out.extend_from_slice(b";lang-en");
    });
    entry.value(b"a");
    entry.value_with(|out| out.extend_from_slice(long.as_bytes()));
    // The open attribute is ended by the next.
    entry.begin_attribute("none");
    entry.finish(&[]);
    assert_eq!(at_once, in_pieces);
    let response = decode_response(whole(&at_once)).expect("a response");
    let ResponseOperation::SearchEntry { name, attributes } = response.operation else {
        unreachable!("an entry")
    };
    let found: Vec<_> = attributes.iter().map(|it| (it.description, it.values.len())).collect();
    assert_eq!((name, found), ("cn=a,dc=x", vec![("cn;lang-en", 2), ("none", 0)]));
}

#[test]
fn responses_in_error_are_told_apart() {
    for hex in [
        "30 0c 02 01 ff 65 07 0a 01 00 04 00 04 00",
        "30 0c 02 01 01 63 07 0a 01 00 04 00 04 00",
        "30 0c 02 01 01 65 07 0a 01 ff 04 00 04 00",
        "30 0d 02 01 01 65 08 0a 01 00 04 01 c3 04 00",
        "30 0c 02 01 01 65 07 0a 01 00 04 00 04 01",
    ] {
        assert!(decode_response(&octets(hex)).is_err(), "{hex}");
    }
    let unknown = octets("30 0d 02 01 01 65 08 0a 02 20 00 04 00 04 00");
    let response = decode_response(&unknown).expect("a response");
    let ResponseOperation::Done { result, .. } = response.operation else { unreachable!("a result") };
    assert_eq!(result.code, ResultCode::Unknown(8192));
}
