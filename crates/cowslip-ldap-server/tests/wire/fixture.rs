//! The directory that the cases are about: people, groups, a few attribute types of its own, and indexes.

use cowslip_ldap::filter::Filter;
use cowslip_ldap::message::{ChangeOperation, Scope, SearchParameters};
use cowslip_ldap::result::ResultCode;
use cowslip_ldap_server::indexing;
use cowslip_ldap_server::testing::TestServer;

use crate::client::Client;

pub(crate) const SUFFIX: &str = "dc=example,dc=com";
pub(crate) const PEOPLE: &str = "ou=People,dc=example,dc=com";
pub(crate) const GROUPS: &str = "ou=Groups,dc=example,dc=com";
pub(crate) const AMY: &str = "uid=amy,ou=People,dc=example,dc=com";

/// Definitions of the fixture.
const TYPES: [&str; 5] = [
    "( 1.3.6.1.4.1.32473.10.1 NAME 'xInt' EQUALITY integerMatch ORDERING integerOrderingMatch \
     SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )",
    "( 1.3.6.1.4.1.32473.10.2 NAME 'xBool' EQUALITY booleanMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.7 SINGLE-VALUE )",
    "( 1.3.6.1.4.1.32473.10.3 NAME 'xTime' EQUALITY generalizedTimeMatch ORDERING generalizedTimeOrderingMatch \
     SYNTAX 1.3.6.1.4.1.1466.115.121.1.24 )",
    "( 1.3.6.1.4.1.32473.10.4 NAME 'xExact' EQUALITY caseExactMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )",
    "( 1.3.6.1.4.1.32473.10.5 NAME 'xOwner' EQUALITY distinguishedNameMatch \
     SYNTAX 1.3.6.1.4.1.1466.115.121.1.12 SINGLE-VALUE )",
];

const CLASSES: [&str; 2] = [
    "( 1.3.6.1.4.1.32473.20.1 NAME 'xOwned' SUP top AUXILIARY MUST xOwner )",
    "( 1.3.6.1.4.1.32473.20.2 NAME 'xExtra' SUP top AUXILIARY MAY ( xInt $ xBool $ xTime $ xExact ) )",
];

const INDEXES: [(&str, &str); 3] = [
    ("member", "indexForm: eq"),
    ("xInt", "indexForm: eq\nindexForm: ord"),
    ("cn", "indexForm: eq\nindexForm: sub"),
];

/// Fills a server, and gives a client of its root.
pub(crate) async fn fill(server: &TestServer) -> Client {
    let mut client = Client::root(server).await;
    let schema = [("attributeTypes", &TYPES[..]), ("objectClasses", &CLASSES[..])];
    for (attribute, definitions) in schema {
        let answer = client.change("cn=schema", ChangeOperation::Add, attribute, definitions).await;
        assert_eq!(answer.code, ResultCode::Success, "{answer:?}");
    }
    let amy = "objectClass: inetOrgPerson\nobjectClass: posixAccount\nobjectClass: xExtra\nuid: amy\ncn: Amy Doe\n\
               sn: Doe\nmail: amy@example.com\ntelephoneNumber: +1 555-0100\ndescription: one\ndescription: two\n\
               uidNumber: 1000\ngidNumber: 1000\nhomeDirectory: /people/amy\nuserPassword: amypw";
    let group = format!("objectClass: groupOfNames\nmember: {AMY}");
    let entries = [
        (SUFFIX.to_owned(), "objectClass: domain\ndc: example"),
        (PEOPLE.to_owned(), "objectClass: organizationalUnit\nou: People"),
        (GROUPS.to_owned(), "objectClass: organizationalUnit\nou: Groups"),
        (AMY.to_owned(), amy),
        (format!("cn=g1,{GROUPS}"), &group),
        (format!("cn=g2,{GROUPS}"), &group),
    ];
    for (dn, lines) in &entries {
        let answer = client.add_lines(dn, lines).await;
        assert_eq!(answer.code, ResultCode::Success, "{dn}: {answer:?}");
    }
    for (name, forms) in INDEXES {
        let lines = format!("objectClass: cowslipIndex\n{forms}");
        let answer = client.add_lines(&format!("cn={name},cn=index,cn=config"), &lines).await;
        let is_there = matches!(answer.code, ResultCode::Success | ResultCode::EntryAlreadyExists);
        assert!(is_there, "{name}: {answer:?}");
    }
    while indexing::missing(&server.server.service().root()).is_some() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    client
}

/// A filled server in memory, and a client of its root.
pub(crate) async fn server() -> (TestServer, Client) {
    let server = TestServer::in_memory().await;
    let client = fill(&server).await;
    (server, client)
}

/// What must be so after every case: somebody else is answered, and every index is what the entries give.
pub(crate) async fn check(server: &TestServer) {
    let mut other = Client::new(server).await;
    let base = SearchParameters { scope: Scope::Base, ..Default::default() };
    let answer = other.search(base, &Filter::Present("objectClass".into())).await;
    assert_eq!(answer.entries.len(), 1);
    crate::support::assert_indexes(&server.server.service().root());
}

/// The end of a case.
pub(crate) async fn end(server: TestServer) {
    check(&server).await;
    server.stop().await;
}
