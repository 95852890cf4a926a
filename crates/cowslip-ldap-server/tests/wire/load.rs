//! Many clients at once, and changes of everything under them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cowslip_ldap::filter::Filter;
use cowslip_ldap::message::{
    ChangeOperation, ModifyDnRequest, Scope, SearchParameters, write_modify, write_unbind,
};
use cowslip_ldap::result::ResultCode;
use cowslip_ldap_server::server::ServerOptions;
use cowslip_ldap_server::service::{Service, ServiceOptions};
use cowslip_ldap_server::testing::{ROOT_DN, ROOT_PASSWORD, TestServer};
use tokio::task::JoinSet;

use crate::client::{Client, Heard, id};
use crate::fixture::{self, AMY, GROUPS, PEOPLE, SUFFIX, end, server};

/// Adds people `u0` and so on, with a number each.
async fn people(client: &mut Client, count: usize) {
    for number in 0..count {
        let lines = format!(
            "objectClass: inetOrgPerson\nobjectClass: xExtra\ncn: User {number}\nsn: User\nxInt: {number}"
        );
        let answer = client.add_lines(&format!("uid=u{number},{PEOPLE}"), &lines).await;
        assert_eq!(answer.code, ResultCode::Success, "{answer:?}");
    }
}

/// Runs until told to stop, then says how often it has.
struct Stop(Arc<AtomicBool>);

impl Stop {
    fn new() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    fn also(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_on(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l015_clients_that_go_away_with_requests_open() {
    let (server, _) = server().await;
    let mut clients = JoinSet::new();
    for number in 0..20_u32 {
        let mut client = Client::root(&server).await;
        clients.spawn(async move {
            let mut message = Vec::new();
            for change in 0..100 {
                let value = format!("{number}-{change}");
                let values = [value.as_str()];
                let changes = [
                    (ChangeOperation::Replace, "street", &values[..]),
                    (ChangeOperation::Replace, "l", &values[..]),
                ];
                write_modify(&mut message, id(100 + change), AMY.as_bytes(), changes, &[]);
            }
            write_unbind(&mut message, id(999));
            client.send(&message).await;
            if number % 2 == 0 {
                // No more waiting for what is to be sent: the connection is reset.
                client.stream.set_zero_linger().expect("a socket");
            }
        });
    }
    clients.join_all().await;
    let mut client = Client::root(&server).await;
    let answer = client.find(AMY, "(uid=amy)", &["street", "l"]).await;
    let texts = |name: &str| answer.entries[0].texts(name);
    assert_eq!(texts("street"), texts("l"), "every modify is done as a whole or not at all");
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l018_clients_that_are_stuck_hold_nobody_up() {
    let service = Service::in_memory(&ServiceOptions::new([SUFFIX])).expect("a directory");
    let mut options = ServerOptions::new(ROOT_DN, Some(ROOT_PASSWORD.into()));
    options.write_stall = std::time::Duration::from_millis(300);
    let server = TestServer::with_options(service, options).await;
    let mut client = fixture::fill(&server).await;
    let text = "x".repeat(256 << 10);
    for number in 0..16 {
        let lines = format!("objectClass: device\ndescription: {text}");
        client.add_lines(&format!("cn=large{number},{PEOPLE}"), &lines).await;
    }
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut client = Client::new(&server).await;
        client.send(&[0x30]).await;
        slow.push(client);
    }
    let mut stuck = Vec::new();
    let any = Filter::Present("objectClass".into());
    for _ in 0..10 {
        let mut client = Client::new(&server).await;
        let mut message = Vec::new();
        for number in 1..20 {
            let all = SearchParameters { base: SUFFIX, ..Default::default() };
            cowslip_ldap::message::write_search(&mut message, id(number), &all, &any, &[]);
        }
        client.send(&message).await;
        stuck.push(client);
    }
    for _ in 0..50 {
        assert_eq!(client.find(SUFFIX, "(uid=amy)", &["1.1"]).await.entries.len(), 1);
        let answer = client.change(AMY, ChangeOperation::Replace, "street", &["x"]).await;
        assert_eq!(answer.code, ResultCode::Success);
    }
    for client in &mut stuck {
        client.is_cut_off().await;
    }
    drop(slow);
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l053_the_schema_changes_under_load() {
    const CHANGES: usize = 1_000;
    let (server, mut client) = server().await;
    people(&mut client, 12).await;
    let stop = Stop::new();
    let mut clients = JoinSet::new();
    for number in 0..12 {
        let mut client = Client::root(&server).await;
        let stop = stop.also();
        clients.spawn(async move {
            let dn = format!("uid=u{number},{PEOPLE}");
            let names: Vec<String> = (0..22).map(|number| format!("x-{number}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).chain(["cn", "street", "l"]).collect();
            let mut done = 0;
            while stop.is_on() {
                let value = vec![format!("value {done}").into_bytes()];
                let changes =
                    ["street", "l"].map(|name| (ChangeOperation::Replace, name.to_owned(), value.clone()));
                let answer = client.modify(dn.as_bytes(), &changes).await;
                assert_eq!(answer.code, ResultCode::Success, "{answer:?}");
                let found = client.find(PEOPLE, &format!("(uid=u{number})"), &names).await;
                assert_eq!((found.code, found.entries.len()), (ResultCode::Success, 1), "{found:?}");
                assert_eq!(found.entries[0].attributes.len(), 3, "own writes are seen");
                assert_eq!(found.entries[0].texts("l"), found.entries[0].texts("street"));
                done += 1;
            }
            done
        });
    }
    let definition = "( 1.3.6.1.4.1.32473.99 NAME 'xPassing' SUP name )";
    for change in 0..CHANGES {
        let what = if change % 2 == 0 { ChangeOperation::Add } else { ChangeOperation::Delete };
        let answer = client.change("cn=schema", what, "attributeTypes", &[definition]).await;
        assert_eq!(answer.code, ResultCode::Success, "{answer:?}");
    }
    stop.stop();
    let done = clients.join_all().await;
    assert!(done.iter().all(|done| *done > 0), "{done:?}");
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l071_a_group_that_is_replaced_by_almost_itself() {
    let (server, mut client) = server().await;
    people(&mut client, 200).await;
    let member = |number: usize| format!("uid=u{number},{PEOPLE}");
    let dn = format!("cn=g1,{GROUPS}");
    let members: Vec<String> = (0..199).map(member).collect();
    let texts = |members: &[String]| members.iter().map(|name| name.clone().into_bytes()).collect::<Vec<_>>();
    let replace = [(ChangeOperation::Replace, "member".to_owned(), texts(&members))];
    assert_eq!(client.modify(dn.as_bytes(), &replace).await.code, ResultCode::Success);
    let before = client.find(PEOPLE, "(uid=u*)", &["entryCSN", "modifyTimestamp"]).await.entries;
    let csn_of_group = client.find(&dn, "(cn=g1)", &["entryCSN"]).await.entries;
    let members: Vec<String> = (1..200).map(member).collect();
    let replace = [(ChangeOperation::Replace, "member".to_owned(), texts(&members))];
    assert_eq!(client.modify(dn.as_bytes(), &replace).await.code, ResultCode::Success);
    assert_eq!(client.find(PEOPLE, "(uid=u*)", &["entryCSN", "modifyTimestamp"]).await.entries, before);
    assert_ne!(client.find(&dn, "(cn=g1)", &["entryCSN"]).await.entries, csn_of_group);
    let found = client.find(PEOPLE, &format!("(memberOf={dn})"), &["1.1"]).await.entries;
    assert_eq!(found.len(), 199);
    assert!(!found.iter().any(|entry| entry.dn == member(0)));
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l072_one_value_out_of_very_many() {
    const MEMBERS: usize = 5_000;
    let (server, mut client) = server().await;
    let dn = format!("cn=big,{GROUPS}");
    let last = format!("cn=a\\2cb,{PEOPLE}");
    let mut lines = format!("objectClass: groupOfNames\nmember: {last}\n");
    (0..MEMBERS).for_each(|number| lines.push_str(&format!("member: uid=none{number},{PEOPLE}\n")));
    assert_eq!(client.add_lines(&dn, &lines).await.code, ResultCode::Success);
    for number in 0..50 {
        let name = format!("uid=none{},{PEOPLE}", number * 97);
        let values = [name.as_str()];
        let compared = client.compare(dn.as_bytes(), "member", name.as_bytes()).await.code;
        assert_eq!(compared, ResultCode::CompareTrue);
        let mut change = async |what| client.change(&dn, what, "member", &values).await.code;
        assert_eq!(change(ChangeOperation::Add).await, ResultCode::AttributeOrValueExists);
        assert_eq!(change(ChangeOperation::Delete).await, ResultCode::Success);
        assert_eq!(change(ChangeOperation::Delete).await, ResultCode::NoSuchAttribute);
        let compared = client.compare(dn.as_bytes(), "member", name.as_bytes()).await.code;
        assert_eq!(compared, ResultCode::CompareFalse);
        let added = client.change(&dn, ChangeOperation::Add, "member", &values).await.code;
        assert_eq!(added, ResultCode::Success);
    }
    let escaped = format!("cn=a\\,b,{PEOPLE}");
    let code = client.change(&dn, ChangeOperation::Delete, "member", &[&escaped]).await.code;
    assert_eq!(code, ResultCode::Success, "the same name, escaped otherwise");
    let code = client.change(&dn, ChangeOperation::Delete, "member", &[&last]).await.code;
    assert_eq!(code, ResultCode::NoSuchAttribute);
    let found = client.find(&dn, "(cn=big)", &["member"]).await.entries;
    assert_eq!(found[0].texts("member").map(|members| members.len()), Some(MEMBERS));
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l075_increments_from_many_clients() {
    const CLIENTS: usize = 50;
    const EACH: usize = 20;
    let (server, mut client) = server().await;
    assert_eq!(client.change(AMY, ChangeOperation::Add, "xInt", &["0"]).await.code, ResultCode::Success);
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let mut client = Client::root(&server).await;
        clients.spawn(async move {
            for _ in 0..EACH {
                let answer = client.change(AMY, ChangeOperation::Increment, "xInt", &["1"]).await;
                assert_eq!(answer.code, ResultCode::Success, "{answer:?}");
            }
        });
    }
    clients.join_all().await;
    let found = client.find(AMY, &format!("(xInt={})", CLIENTS * EACH), &["xInt"]).await;
    assert_eq!(found.entries[0].texts("xInt"), Some(vec![(CLIENTS * EACH).to_string()]));
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l076_what_was_refused_is_not_there_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = TestServer::in_folder(folder.path()).await;
    let mut client = fixture::fill(&server).await;
    let rule = "objectClass: cowslipUniqueRule\nuniqueAttribute: mail";
    assert_eq!(client.add_lines("cn=mail,cn=uniqueness,cn=config", rule).await.code, ResultCode::Success);
    let bob = "objectClass: inetOrgPerson\ncn: Bob\nsn: Doe\nmail: amy@example.com";
    let dn = format!("uid=bob,{PEOPLE}");
    assert_eq!(client.add_lines(&dn, bob).await.code, ResultCode::ConstraintViolation);
    assert_eq!(
        client.add_lines(&dn, "objectClass: inetOrgPerson\ncn: Bob\nsn: Doe").await.code,
        ResultCode::Success
    );
    let before = client.find(SUFFIX, "(objectClass=*)", &["*", "+"]).await.entries;
    let refused = client.change(&dn, ChangeOperation::Add, "mail", &["AMY@example.com"]).await;
    assert_eq!(refused.code, ResultCode::ConstraintViolation);
    let rename = ModifyDnRequest {
        name: dn.as_bytes(),
        new_rdn: b"mail=amy@example.com",
        deletes_old_rdn: true,
        new_superior: Some(GROUPS.as_bytes()),
    };
    assert_eq!(client.rename(&rename).await.code, ResultCode::ConstraintViolation);
    fixture::check(&server).await;
    server.stop().await;

    let server = TestServer::in_folder(folder.path()).await;
    let mut client = Client::root(&server).await;
    let mut after = client.find(SUFFIX, "(objectClass=*)", &["*", "+"]).await.entries;
    let sorted = |entries: &mut Vec<crate::client::Found>| {
        entries.sort_by(|one, other| one.dn.cmp(&other.dn));
        entries
            .iter_mut()
            .for_each(|entry| entry.attributes.iter_mut().for_each(|(_, values)| values.sort()));
    };
    let mut before = before;
    sorted(&mut before);
    sorted(&mut after);
    assert_eq!(after, before);
    let found = client.find(SUFFIX, "(|(mail=amy@example.com)(uid=bob))", &["1.1"]).await.entries;
    assert_eq!(found.len(), 2, "{found:?}");
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l083_a_subtree_is_renamed_under_searches() {
    const CHILDREN: usize = 300;
    let (server, mut client) = server().await;
    people(&mut client, CHILDREN).await;
    let stop = Stop::new();
    let mut clients = JoinSet::new();
    for _ in 0..4 {
        let mut client = Client::root(&server).await;
        let stop = stop.also();
        clients.spawn(async move {
            let mut searches = 0;
            while stop.is_on() {
                let answer = client.find(SUFFIX, "(sn=user)", &["1.1"]).await;
                assert_eq!(answer.entries.len(), CHILDREN);
                let parents = answer.entries.iter().filter_map(|entry| entry.dn.split_once(','));
                let mut parents: Vec<&str> = parents.map(|(_, parent)| parent).collect();
                parents.dedup();
                assert_eq!(parents.len(), 1, "the old tree or the new one: {parents:?}");
                searches += 1;
            }
            searches
        });
    }
    for round in 0..50 {
        let (old, new) = if round % 2 == 0 { ("People", "Staff") } else { ("Staff", "People") };
        let name = format!("ou={old},{SUFFIX}");
        let rdn = format!("ou={new}");
        let request = ModifyDnRequest {
            name: name.as_bytes(),
            new_rdn: rdn.as_bytes(),
            deletes_old_rdn: true,
            new_superior: None,
        };
        assert_eq!(client.rename(&request).await.code, ResultCode::Success);
    }
    stop.stop();
    assert!(clients.join_all().await.iter().sum::<usize>() > 0);
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l091_ranges_while_values_move() {
    const PEOPLE_MAX: usize = 40;
    let (server, mut client) = server().await;
    people(&mut client, PEOPLE_MAX).await;
    // Each writer swaps the numbers of its own entry between two values on the same side of 1,000: however many are
    // below, all who have a number are found.
    let stop = Stop::new();
    let mut writers = JoinSet::new();
    for writer in 0..4 {
        let mut client = Client::root(&server).await;
        let stop = stop.also();
        writers.spawn(async move {
            let mut round = 0;
            while stop.is_on() {
                let number = if round % 2 == 0 { 2_000 + round } else { round };
                let dn = format!("uid=u{writer},{PEOPLE}");
                let value = number.to_string();
                let answer = client.change(&dn, ChangeOperation::Replace, "xInt", &[&value]).await;
                assert_eq!(answer.code, ResultCode::Success);
                round += 1;
            }
        });
    }
    let any = Filter::parse("(|(xInt>=1000)(xInt<=999))").expect("a filter");
    for _ in 0..100 {
        let below =
            SearchParameters { base: PEOPLE, scope: Scope::One, attributes: &["xInt"], ..Default::default() };
        let answer = client.search(below, &any).await;
        assert_eq!((answer.code, answer.entries.len()), (ResultCode::Success, PEOPLE_MAX));
        let answer = client.find(PEOPLE, "(xInt>=1000)", &["xInt"]).await;
        assert_eq!(answer.code, ResultCode::Success);
        for entry in &answer.entries {
            let number: i64 = entry.texts("xInt").expect("a number")[0].parse().expect("a number");
            assert!(number >= 1_000, "{entry:?}");
        }
    }
    stop.stop();
    writers.join_all().await;
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_one_connection_are_never_mixed() {
    let (server, mut client) = server().await;
    people(&mut client, 30).await;
    let mut message = Vec::new();
    for number in 100..200 {
        let dn = format!("uid=u{},{PEOPLE}", number % 30);
        let value = number.to_string();
        let values = [value.as_str()];
        write_modify(
            &mut message,
            id(number),
            dn.as_bytes(),
            [(ChangeOperation::Replace, "street", &values[..])],
            &[],
        );
    }
    client.send(&message).await;
    let mut answered = Vec::new();
    while answered.len() < 100 {
        let (number, heard) = client.hear().await.expect("an answer");
        let Heard::Done(answer) = heard else { panic!("{heard:?}") };
        assert_eq!(answer.code, ResultCode::Success);
        answered.push(number);
    }
    assert_eq!(answered, (100..200).collect::<Vec<_>>(), "writes of one connection are done in their order");
    let found = client.find(PEOPLE, "(street=19*)", &["street"]).await.entries;
    assert_eq!(found.len(), 10, "the last ones won: {found:?}");
    end(server).await;
}
