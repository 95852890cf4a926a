//! No operation becomes an owner of the schema: it is borrowed from the root. Needs the feature `count-owners`, with which
//! each new owner is counted; a lock there is none to take, as the type that holds the schema has none.

use std::sync::atomic::Ordering;
use std::sync::mpsc;

use cowslip_ldap::message::{Dereference, MessageId, Scope, SearchParameters, decode_request, write_search};
use cowslip_ldap_server::host::{Job, Progress as WriteProgress, Request, WriteJob};
use cowslip_ldap_server::meta::{Meta, SCHEMA_OWNERS};
use cowslip_ldap_server::operations::prepare::{self, Given, Origin};
use cowslip_ldap_server::operations::{Brought, ChangeKind, Plan, Refusal};
use cowslip_ldap_server::search::{Limits, Progress, RootDse, Search};
use cowslip_ldap_server::service::{Service, ServiceOptions};

const AMY: &[u8] = b"uid=amy,dc=example,dc=com";

fn write(service: &Service, plan: impl Fn(&Meta) -> Result<Plan, Refusal>) {
    let reader = service.reader();
    let (plan, version) = {
        let root = reader.root();
        (plan(root.meta()).expect("a plan"), root.meta().version)
    };
    let (sender, answer) = mpsc::channel();
    let job = WriteJob {
        request: Request::None,
        plan,
        version,
        who: "cn=admin".into(),
        progress: WriteProgress::default(),
        is_durable: true,
        answer: Box::new(move |answer| sender.send(answer).expect("the test waits")),
    };
    service.submit(Job::Write(Box::new(job))).expect("an open directory");
    answer.recv().expect("an answer").expect("a success");
}

fn add(service: &Service, dn: &[u8], attributes: &[(&str, &str)]) {
    let given: Vec<Given<'_>> = attributes
        .iter()
        .map(|(name, value)| Given { description: name.as_bytes(), values: vec![value.as_bytes()] })
        .collect();
    write(service, |meta| prepare::add(dn, &given, Brought::default(), Origin::Client, meta).map(Plan::Add));
}

#[test]
fn operations_borrow_the_schema() {
    let service = Service::in_memory(&ServiceOptions::new(["dc=example,dc=com"])).expect("a directory");
    add(&service, b"dc=example,dc=com", &[("objectClass", "domain")]);
    add(&service, AMY, &[("objectClass", "inetOrgPerson"), ("cn", "Amy"), ("sn", "Doe")]);
    let mut frame = Vec::new();
    let id = MessageId::new(1).expect("a number");
    let filter = cowslip_ldap::filter::Filter::parse("(&(objectClass=person)(cn=am*))").expect("a filter");
    let parameters = SearchParameters {
        base: "dc=example,dc=com",
        scope: Scope::Subtree,
        dereference: Dereference::Never,
        size_limit: 0,
        time_limit_s: 0,
        types_only: false,
        attributes: &[],
    };
    write_search(&mut frame, id, &parameters, &filter, &[]);
    let request = decode_request(&frame, &cowslip_ldap::message::Limits::default()).expect("a request");
    let cowslip_ldap::message::Operation::Search(asked) = &request.operation else { panic!("a search") };

    let before = SCHEMA_OWNERS.load(Ordering::SeqCst);
    let reader = service.reader();
    for number in 0..1_000 {
        let value = number.to_string();
        let given = Given { description: b"description", values: vec![value.as_bytes()] };
        write(&service, |meta| prepare::modify(AMY, &[(ChangeKind::Replace, given.clone())], meta));
        let root = reader.root();
        let mut search =
            Search::new(&root, asked, Limits::default(), false, &RootDse::default()).expect("a search");
        let mut out = Vec::new();
        while search.step(&root, id, 100, 1 << 20, &mut out) == Progress::More {}
        assert_eq!(search.answered(), 1);
    }
    assert_eq!(SCHEMA_OWNERS.load(Ordering::SeqCst), before, "owners of the schema");

    // The count does count: a change of the rules makes an owner.
    let index = [("objectClass", "cowslipIndex"), ("indexForm", "eq")];
    add(&service, b"cn=title,cn=index,cn=config", &index);
    assert!(SCHEMA_OWNERS.load(Ordering::SeqCst) > before);
    service.shutdown().expect("a clean end");
}
