//! Octets that are no messages, messages that are too large, and what several requests at once do (RFC 4511, sections 4
//! and 5.1; RFC 3909).

use cowslip_ldap::filter::Filter;
use cowslip_ldap::message::{
    ChangeOperation, Control, ExtendedRequest, Scope, SearchParameters, cancel_request_value, write_abandon,
    write_extended, write_modify, write_search,
};
use cowslip_ldap::oids;
use cowslip_ldap::result::ResultCode;
use cowslip_ldap_server::testing::TestServer;
use tokio::io::AsyncWriteExt;

use crate::client::{Client, Heard, id};
use crate::fixture::{AMY, PEOPLE, SUFFIX, end, server};

/// Octets written as in the cases: pairs of hexadecimal digits.
fn octets(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit");
    let pairs = text.split_ascii_whitespace().map(str::as_bytes);
    pairs.map(|pair| u8::try_from(digit(pair[0]) * 16 + digit(pair[1])).expect("a byte")).collect()
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    match length {
        0..128 => out.push(u8::try_from(length).expect("a byte")),
        _ => {
            out.push(0x84);
            out.extend_from_slice(&u32::try_from(length).expect("four bytes").to_be_bytes());
        }
    }
    out.extend_from_slice(content);
    out
}

/// A search of the root DSE with a filter in octets.
fn search_of_root(filter: &[u8]) -> Vec<u8> {
    let mut content = octets("04 00 0a 01 00 0a 01 00 02 01 00 02 01 00 01 01 00");
    content.extend_from_slice(filter);
    content.extend_from_slice(&[0x30, 0]);
    element(0x30, &[&[2, 1, 8][..], &element(0x63, &content)].concat())
}

/// The server says why, and closes.
async fn is_disconnected(client: &mut Client, code: ResultCode) {
    let Some((0, Heard::Done(notice))) = client.hear().await else { panic!("a notice of disconnection") };
    assert_eq!(notice.code, code, "{notice:?}");
    assert_eq!(notice.name.as_deref(), Some(oids::NOTICE_OF_DISCONNECTION));
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn l001_nested_filters() {
    let server = TestServer::in_memory().await;
    let present = element(0x87, b"objectClass");
    let nested = |depth: usize| (0..depth).fold(present.clone(), |inner, _| element(0xa2, &inner));
    for (depth, found) in [(2, 1), (3, 0), (62, 1), (63, 0)] {
        let mut client = Client::new(&server).await;
        client.send(&search_of_root(&nested(depth))).await;
        let answer = client.answer(8).await;
        assert_eq!((answer.code, answer.entries.len()), (ResultCode::Success, found), "{depth}");
    }
    for depth in [65, 1_000, 10_000] {
        let mut client = Client::new(&server).await;
        client.send(&search_of_root(&nested(depth))).await;
        let heard = client.hear().await;
        let Some((8 | 0, Heard::Done(answer))) = heard else { panic!("{depth}: {heard:?}") };
        let is_refused = matches!(answer.code, ResultCode::ProtocolError | ResultCode::UnwillingToPerform);
        assert!(is_refused, "{depth}: {answer:?}");
    }
    end(server).await;
}

#[tokio::test]
async fn l002_l003_l004_lengths_that_cannot_be() {
    let server = TestServer::in_memory().await;
    let cases = [
        ("L002", "30 84 7f ff ff ff 02 01 01"),
        ("L003", "30 0c 02 01 01 60 84 7f ff ff ff 02 01 03"),
        ("L004", "30 80 02 01 01 60 07 02 01 03 04 00 80 00 00 00"),
        ("no sequence", "02 01 01 60 07 02 01 03 04 00 80 00"),
    ];
    for (name, bytes) in cases {
        for _ in 0..20 {
            let mut client = Client::new(&server).await;
            client.send(&octets(bytes)).await;
            let heard = client.hear().await;
            let Some((0, Heard::Done(notice))) = heard else { panic!("{name}: {heard:?}") };
            assert_eq!(notice.code, ResultCode::ProtocolError, "{name}");
            assert!(client.is_closed().await, "{name}");
        }
    }
    end(server).await;
}

#[tokio::test]
async fn l002_more_than_nobody_may_send_is_refused_from_its_header() {
    let server = TestServer::in_memory().await;
    let mut client = Client::new(&server).await;
    client.send(&octets("30 83 10 00 00 02 01 01")).await;
    is_disconnected(&mut client, ResultCode::ProtocolError).await;
    let mut client = Client::root(&server).await;
    client.send(&octets("30 84 7f ff ff ff 02 01 01")).await;
    is_disconnected(&mut client, ResultCode::ProtocolError).await;
    end(server).await;
}

#[tokio::test]
async fn l006_numbers_of_messages() {
    let server = TestServer::in_memory().await;
    for bytes in [
        "30 0c 02 01 00 60 07 02 01 03 04 00 80 00",
        "30 0c 02 01 ff 60 07 02 01 03 04 00 80 00",
        "30 10 02 05 00 80 00 00 00 60 07 02 01 03 04 00 80 00",
    ] {
        let mut client = Client::new(&server).await;
        client.send(&octets(bytes)).await;
        is_disconnected(&mut client, ResultCode::ProtocolError).await;
    }
    end(server).await;
}

#[tokio::test]
async fn l006_a_number_that_is_open_is_not_used_twice() {
    let (server, mut client) = server().await;
    let mut message = Vec::new();
    let changes = [(ChangeOperation::Replace, "street", &["a"][..])];
    write_modify(&mut message, id(50), AMY.as_bytes(), changes, &[]);
    let again = message.clone();
    message.extend_from_slice(&again);
    client.send(&message).await;
    // The second one is refused or ends the connection; if the first was done before, it is done as well. Never are
    // there more answers of a number than requests.
    let mut answers = 0;
    while answers < 2 {
        match client.hear().await {
            Some((0, Heard::Done(notice))) => {
                assert_eq!(notice.code, ResultCode::ProtocolError);
                assert!(client.is_closed().await);
                break;
            }
            Some((50, Heard::Done(_))) => answers += 1,
            other => panic!("{other:?}"),
        }
    }
    end(server).await;
}

#[tokio::test]
async fn l007_controls() {
    let (server, mut client) = server().await;
    let filter = Filter::Present("objectClass".into());
    let base = SearchParameters { base: AMY, scope: Scope::Base, ..Default::default() };
    let control = |is_critical| Control { oid: "1.2.3.4.5", is_critical, value: None };
    let mut send = async |number: u32, count: usize, is_critical: bool| {
        let mut message = Vec::new();
        write_search(&mut message, id(number), &base, &filter, &vec![control(is_critical); count]);
        client.send(&message).await;
        client.answer(number).await
    };
    let answer = send(60, 10, false).await;
    assert_eq!((answer.code, answer.entries.len()), (ResultCode::Success, 1));
    assert_eq!(send(61, 1, true).await.code, ResultCode::UnavailableCriticalExtension);
    for (number, count) in [(62, 11), (63, 50_000)] {
        let answer = send(number, count, false).await;
        let is_refused = matches!(
            answer.code,
            ResultCode::UnwillingToPerform | ResultCode::ProtocolError | ResultCode::AdminLimitExceeded
        );
        assert!(is_refused && answer.entries.is_empty(), "{count}: {answer:?}");
    }
    end(server).await;
}

#[tokio::test]
async fn l011_l095_many_requested_attributes() {
    let (server, mut client) = server().await;
    let any = Filter::Present("objectClass".into());
    for count in [2, 10, 11, 1_000] {
        let attributes = vec![""; count];
        let parameters =
            SearchParameters { scope: Scope::Base, attributes: &attributes, ..Default::default() };
        let answer = client.search(parameters, &any).await;
        assert_eq!((answer.code, answer.entries.len()), (ResultCode::Success, 1), "{count}");
        assert_eq!(answer.entries[0].attributes, [], "{count}");
    }
    let names: Vec<String> = (0..998).map(|number| format!("x-none-{number}")).collect();
    for count in [33, 998] {
        let some = names[..count].iter().map(String::as_str);
        let attributes: Vec<&str> = some.chain(["cn", "mail"]).collect();
        let answer = client.find(AMY, "(uid=amy)", &attributes).await;
        assert_eq!(answer.entries[0].attributes.len(), 2, "L095: {count}");
    }
    let attributes = vec![""; 100_000];
    let parameters = SearchParameters { scope: Scope::Base, attributes: &attributes, ..Default::default() };
    let answer = client.search(parameters, &any).await;
    assert!(matches!(answer.code, ResultCode::ProtocolError | ResultCode::AdminLimitExceeded), "{answer:?}");
    end(server).await;
}

fn cancel(number: u32, target: u32) -> Vec<u8> {
    let mut message = Vec::new();
    let value = cancel_request_value(id(target));
    let request = ExtendedRequest { name: oids::CANCEL, value: Some(&value) };
    write_extended(&mut message, id(number), &request, &[]);
    message
}

#[tokio::test]
async fn l012_cancel() {
    let (server, mut client) = server().await;
    client
        .send(&octets("30 19 02 01 07 77 14 80 0b 31 2e 33 2e 36 2e 31 2e 31 2e 38 81 05 30 03 02 01 07"))
        .await;
    let code = client.answer(7).await.code;
    assert!(matches!(code, ResultCode::NoSuchOperation | ResultCode::CannotCancel), "{code:?}: itself");
    client.send(&cancel(70, 999)).await;
    assert_eq!(client.answer(70).await.code, ResultCode::NoSuchOperation);
    // A search that is still running when the cancel comes: more entries than the socket and the server's buffer take.
    fill_large(&mut client).await;
    let any = Filter::Present("objectClass".into());
    let mut message = Vec::new();
    let all = SearchParameters { base: SUFFIX, ..Default::default() };
    for number in 80..100 {
        write_search(&mut message, id(number), &all, &any, &[]);
    }
    message.extend_from_slice(&cancel(100, 99));
    client.send(&message).await;
    let mut ended = Vec::new();
    while ended.len() < 21 {
        if let (number, Heard::Done(answer)) = client.hear().await.expect("an answer") {
            ended.push((number, answer.code));
        }
    }
    ended.sort_by_key(|(number, _)| *number);
    let numbers: Vec<u32> = ended.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (80..=100).collect::<Vec<_>>(), "one answer each");
    let (last, canceled) = (ended[20].1, ended[19].1);
    assert_eq!((canceled, last), (ResultCode::Canceled, ResultCode::Success));
    end(server).await;
}

/// Adds entries of 64 kB each, 8 MB in all.
async fn fill_large(client: &mut Client) {
    let text = "x".repeat(64 << 10);
    for number in 0..128 {
        let lines = format!("objectClass: device\ndescription: {text}");
        let answer = client.add_lines(&format!("cn=large{number},{PEOPLE}"), &lines).await;
        assert_eq!(answer.code, ResultCode::Success);
    }
}

#[tokio::test]
async fn l013_abandon() {
    let (server, mut client) = server().await;
    fill_large(&mut client).await;
    let any = Filter::Present("objectClass".into());
    let mut message = Vec::new();
    write_search(&mut message, id(200), &SearchParameters { base: SUFFIX, ..Default::default() }, &any, &[]);
    write_abandon(&mut message, id(201), id(200));
    write_abandon(&mut message, id(202), id(999));
    let changes = [(ChangeOperation::Replace, "street", &["abandoned"][..])];
    write_modify(&mut message, id(203), AMY.as_bytes(), changes, &[]);
    write_abandon(&mut message, id(204), id(203));
    client.send(&message).await;
    let number = client.number();
    let mut message = Vec::new();
    write_search(
        &mut message,
        id(number),
        &SearchParameters { base: AMY, scope: Scope::Base, ..Default::default() },
        &any,
        &[],
    );
    client.send(&message).await;
    let mut is_last = false;
    while !is_last {
        match client.hear().await.expect("an answer") {
            // What was on its way already.
            (200, Heard::Entry(_)) => {}
            (200, Heard::Done(_)) => panic!("an abandoned search is not answered"),
            // It was done before its abandon came.
            (203, Heard::Done(answer)) => assert_eq!(answer.code, ResultCode::Success),
            (heard, Heard::Entry(_)) => assert_eq!(heard, number),
            (heard, Heard::Done(_)) => {
                assert_eq!(heard, number);
                is_last = true;
            }
        }
    }
    end(server).await;
}

#[tokio::test]
async fn l014_start_tls_that_is_not_there() {
    let server = TestServer::in_memory().await;
    let start =
        "30 1d 02 01 01 77 18 80 16 31 2e 33 2e 36 2e 31 2e 34 2e 31 2e 31 34 36 36 2e 32 30 30 33 37";
    let mut client = Client::new(&server).await;
    client.send(&octets(start)).await;
    let answer = client.answer(1).await;
    assert!(matches!(answer.code, ResultCode::ProtocolError | ResultCode::Unavailable), "{answer:?}");
    assert_eq!(client.who_am_i().await, "");
    let mut client = Client::new(&server).await;
    client.send(&octets(&format!("{start} 30 0c 02 01 02 60 07 02 01 03 04 00 80 00"))).await;
    while let Some((_, Heard::Done(answer))) = client.hear().await {
        if answer.name.is_none() && answer.code == ResultCode::Success {
            // The bind, in clear text as it was sent: nothing was encrypted.
            break;
        }
    }
    end(server).await;
}

#[tokio::test]
async fn l016_shapes_of_a_modify() {
    let (server, mut client) = server().await;
    let refused = [
        "30 20 02 01 09 66 1b 04 0a 75 69 64 3d 61 2c 64 63 3d 78 30 0d 30 0b 0a 01 07 30 06 04 02 63 6e 31 00",
        "30 29 02 01 09 66 24 04 0a 75 69 64 3d 61 2c 64 63 3d 78 30 16 30 14 0a 01 00 30 0f 04 0b 64 65 73 63 72 69 \
         70 74 69 6f 6e 31 00",
    ];
    for bytes in refused {
        client.send(&octets(bytes)).await;
        let code = client.answer(9).await.code;
        assert!(matches!(code, ResultCode::ProtocolError | ResultCode::NoSuchObject), "{code:?}");
    }
    client.send(&octets("30 13 02 01 09 66 0e 04 0a 75 69 64 3d 61 2c 64 63 3d 78 30 00")).await;
    assert_eq!(client.answer(9).await.code, ResultCode::NoSuchObject);
    assert_eq!(client.modify(AMY.as_bytes(), &[]).await.code, ResultCode::Success, "no change at all");
    let without = [(ChangeOperation::Add, "description".to_owned(), vec![])];
    assert_eq!(client.modify(AMY.as_bytes(), &without).await.code, ResultCode::ProtocolError);
    end(server).await;
}

#[tokio::test]
async fn l019_thousands_of_parts() {
    let (server, mut client) = server().await;
    let term =
        |number: usize| Filter::Equality { attribute: "uid".into(), value: format!("u{number}").into() };
    let mut parts: Vec<Filter> = (0..20_000).map(term).collect();
    parts.push(Filter::Equality { attribute: "uid".into(), value: b"amy".into() });
    let either = Filter::Or(parts);
    let all = SearchParameters { base: SUFFIX, ..Default::default() };
    let answer = client.search(all, &either).await;
    assert_eq!((answer.code, answer.entries.len()), (ResultCode::Success, 1), "{}", answer.message);
    let neither = Filter::And(vec![either.clone(), Filter::Not(Box::new(either))]);
    let answer = client.search(all, &neither).await;
    assert_eq!((answer.code, answer.entries.len()), (ResultCode::Success, 0), "{}", answer.message);
    end(server).await;
}

#[tokio::test]
async fn l033_many_commas() {
    let (server, mut client) = server().await;
    let answer = client.delete(&vec![b','; 64 << 10]).await;
    assert_eq!(answer.code, ResultCode::InvalidDnSyntax);
    end(server).await;
}

/// RFC 4514, section 2.4: a name within a name within a name, each escaped once more.
#[tokio::test]
async fn l037_names_within_names() {
    const LEVELS: usize = 15;
    let (server, mut client) = server().await;
    let mut name = "dc=x".to_owned();
    for _ in 0..LEVELS {
        name = format!("member={},dc=x", name.replace('\\', "\\\\").replace(',', "\\,"));
    }
    assert!(name.len() > 30_000, "{}", name.len());
    let filter = Filter::Equality { attribute: "seeAlso".into(), value: name.clone().into_bytes() };
    for _ in 0..100 {
        let all = SearchParameters { base: SUFFIX, ..Default::default() };
        let answer = client.search(all, &filter).await;
        assert_eq!((answer.code, answer.entries.len()), (ResultCode::Success, 0));
    }
    let answer = client.change(AMY, ChangeOperation::Add, "seeAlso", &[&name]).await;
    let is_taken_or_refused = matches!(answer.code, ResultCode::Success | ResultCode::InvalidAttributeSyntax);
    assert!(is_taken_or_refused, "{answer:?}");
    let found = client.find(SUFFIX, "(seeAlso=*)", &["1.1"]).await.entries.len();
    assert_eq!(found, usize::from(answer.code == ResultCode::Success));
    end(server).await;
}

#[tokio::test]
async fn l041_nothing_before_the_equals_sign() {
    let server = TestServer::in_memory().await;
    for attribute in [&b""[..], b";x", &[0xc3], b"cn;"] {
        let mut client = Client::new(&server).await;
        let content = [element(4, attribute), element(4, b"x")].concat();
        client.send(&search_of_root(&element(0xa3, &content))).await;
        let (_, heard) = client.hear().await.expect("an answer");
        let Heard::Done(answer) = heard else { panic!("{heard:?}") };
        assert!(matches!(answer.code, ResultCode::Success | ResultCode::ProtocolError), "{answer:?}");
    }
    end(server).await;
}

#[tokio::test]
async fn l047_true_and_false_as_octets() {
    let (server, mut client) = server().await;
    for (filter, found) in [("a0 00", 1), ("a1 00", 0)] {
        client.send(&search_of_root(&octets(filter))).await;
        assert_eq!(client.answer(8).await.entries.len(), found);
    }
    end(server).await;
}

#[tokio::test]
async fn octets_come_in_any_pieces() {
    let server = TestServer::in_memory().await;
    let mut client = Client::new(&server).await;
    for byte in search_of_root(&element(0x87, b"objectClass")) {
        client.send(&[byte]).await;
        client.stream.flush().await.expect("a socket");
        tokio::task::yield_now().await;
    }
    assert_eq!(client.answer(8).await.entries.len(), 1);
    end(server).await;
}
