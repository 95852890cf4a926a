//! Good input to begin with: the cases of other tests, and a directory's own files.

use std::borrow::Cow;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::OnceLock;

use cowslip_ldap::filter::Filter;
use cowslip_ldap::framing::{Framing, frame};
use cowslip_ldap::message::{
    Authentication, Control, MessageId, OperationKind, encode_filter, write_add, write_bind,
    write_bind_response, write_extended_response, write_intermediate_response, write_reference, write_result,
};
use cowslip_ldap::oids;
use cowslip_ldap::result::{LdapResult, ResultCode};
use cowslip_ldap_server::testing::{ROOT_DN, ROOT_PASSWORD, SUFFIX, TestServer};

/// Most octets of a seed, so that a run sees many inputs.
const SEED_BYTES_MAX: usize = 4_000;

/// Filters, good ones and what only looks like one.
pub(crate) const FILTERS: &[&str] = &[
    "(objectClass=*)",
    "(&(uid=amy)(!(description=one))(|(cn=a*b*c)(cn=*b*)(cn=a*)))",
    "(cn;lang-en:dn:2.4.6.8.10:=Dino)",
    "(:DN:caseExactMatch:=x)",
    "(uidNumber>=1000)",
    "(createTimestamp<=20260101000000Z)",
    "(sn~=Smith)",
    "(o=\\00\\2a\\28\\29\\5c)",
    "(&)",
    "(|)",
    "cn=without",
    "(member=cn=a\\2Cb,dc=example)",
    "(userCertificate;binary=\\30\\03)",
    "(jpegPhoto=\\ff\\d8)",
    "(xInt:1.2.840.113556.1.4.803:=6)",
];

/// Distinguished names.
pub(crate) const NAMES: &[&str] = &[
    "",
    "dc=example,dc=com",
    "cn=a\\,b+sn=c\\+d,ou=e\\\"f",
    "UID=jsmith,DC=example,DC=net",
    "CN=James \\\"Jim\\\" Smith\\, III,DC=example,DC=net",
    "1.3.6.1.4.1.1466.0=#04024869",
    "CN=Lu\\C4\\8Di\\C4\\87",
    "cn=\\20 blanks \\20,o=#04026869",
    "member=cn\\=a\\,member\\=b,dc=x",
    "uniqueMember=dc\\=x#'0101'B,ou=y",
    "OID.2.5.4.3=x;o=\"quoted, old\"",
    "xTime=20260101000000Z,uidNumber=0012,c=de",
];

/// LDAP URLs.
pub(crate) const URLS: &[&str] = &[
    "ldap:///o=University%20of%20Michigan,c=US",
    "ldap://ldap1.example.net:389/o=x?postalAddress?sub?(cn=Babs%20Jensen)",
    "ldap://[::1]:1389/??one?(&(cn=a)(sn=b))?!bindname=cn=Manager%2cdc=example",
    "ldapi://%2Ftmp%2Fsocket/dc=x",
    "ldaps://h/",
    "ldap:///??base??bindname=cn=a,e-x=%5c",
];

/// Values of many syntaxes.
pub(crate) const VALUES: &[&str] = &[
    "",
    "TRUE",
    "-120",
    "20261231235960.123456Z",
    "199412161032-0500",
    "9412161032Z",
    "'010111'B",
    "1234 Main St.$Anytown, CA 12345$USA",
    "+1 512 315 0280",
    "+1-512$twoDimensional$fineResolution",
    "DE",
    "cn=Amy Doe,dc=example,dc=com",
    "dc=x#'0101'B",
    "597ae2f6-16a6-1027-98f4-d28b5365dc14",
    "20260101120000.000000Z#000000#000#000000",
    "{SSHA}c2FsdA==",
    "CRAM-MD5$salt$YXV0aA==",
    "person#(cn$EQ|sn$APPROX)#oneLevel",
    "( 2.5.4.3 NAME 'cn' SUP name )",
    "( 1.2.3 NAME 'x' SUP top AUXILIARY MAY ( cn $ sn ) )",
    "{ serialNumber 3, issuer rdnSequence:\"cn=ca,o=x\" }",
    "3$cn=ca,o=x",
    "e\u{301}\u{ad} \u{1680}Ŝtrasse ﬁ",
    "2.5.13.2",
    "(user,host,example.com)",
    "abcdef0123456789$x1",
    "1b-9 (-.x",
];

/// Texts as inputs.
pub(crate) fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The requests of the protocol crate's cases.
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let cases = file("../cowslip-ldap/tests/cases/messages.json");
    let frames = cases.split("\"frame\": \"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default());
    let octet = |pair: &str| u8::from_str_radix(pair, 16).expect("two hexadecimal digits");
    let frames: Vec<Vec<u8>> = frames.map(|hex| hex.split(' ').map(octet).collect()).collect();
    assert!(frames.len() > 50, "the file of cases has another form");
    frames
}

/// One response of each kind.
pub(crate) fn responses() -> Vec<Vec<u8>> {
    let id = MessageId::MAX;
    let control = [Control {
        oid: oids::PAGED_RESULTS,
        is_critical: true,
        value: Some(b"\x30\x05\x02\x01\x00\x04\x00"),
    }];
    let mut result = LdapResult::new(ResultCode::Referral, "è").with_matched("dc=x");
    result.referrals = vec![Cow::Borrowed("ldap://a/"), Cow::Borrowed("ldap://b/")];
    let write = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        out
    };
    let mut all: Vec<Vec<u8>> = OperationKind::ALL
        .into_iter()
        .filter(|kind| kind.has_answer())
        .map(|kind| write(&|out| write_result(out, id, kind, &result, &control)))
        .collect();
    all.push(write(&|out| write_bind_response(out, id, &result, Some(b"x"), &[])));
    all.push(write(&|out| write_extended_response(out, id, &result, Some("1.2.3"), Some(b"v"), &control)));
    all.push(write(&|out| write_reference(out, id, ["ldap://a/", "ldap://b/"], &[])));
    all.push(write(&|out| write_intermediate_response(out, id, Some("1.2.3"), Some(b"v"), &[])));
    all.push(write(&|out| {
        let mut entry = cowslip_ldap::message::EntryWriter::new(out, id, b"dc=x");
        entry.attribute("cn", [&b"a"[..], b"b"]);
        entry.attribute("jpegPhoto;binary", [b""]);
        entry.finish(&control);
    }));
    all
}

/// The filters as they travel.
pub(crate) fn ber_filters() -> Vec<Vec<u8>> {
    let parsed = FILTERS.iter().filter_map(|text| Filter::parse(text).ok());
    let encoded = parsed.map(|filter| {
        let mut out = Vec::new();
        encode_filter(&mut out, &filter);
        out
    });
    encoded.collect()
}

/// LDIF of other servers, and each kind of change.
pub(crate) fn ldif() -> Vec<Vec<u8>> {
    let changes = "version: 1\n# comment\n folded\ndn: cn=a,dc=x\ncontrol: 1.2.840.113556.1.4.805 true\nchangetype: delete\n\n\
        dn:: Y249YixkYz14\nchangetype: modify\nadd: cn\ncn: b\ncn:: Yg==\n-\ndelete: sn\n-\nreplace: o\no: c\n-\n\
        increment: uidNumber\nuidNumber: 1\n-\n\ndn: cn=c,dc=x\nchangetype: modrdn\nnewrdn: cn=d\ndeleteoldrdn: 1\n\
        newsuperior: dc=y\n\ndn: cn=e,dc=x\nchangetype: add\nobjectClass: device\ncn: e\njpegPhoto:< file:///none\n";
    let mut all = vec![changes.as_bytes().to_vec()];
    for name in ["tests/data/389ds.ldif", "tests/data/slapd.ldif"] {
        all.extend(file(name).split("\n\n").map(|record| record.as_bytes().to_vec()));
    }
    all
}

/// Beginnings of the schema's own files, and an LDIF form.
pub(crate) fn schema_files() -> Vec<Vec<u8>> {
    let names = ["core", "rfc2079", "rfc2307bis", "rfc2798", "rfc3112", "rfc4519", "rfc4523", "rfc4524"];
    let read = |name: &&str| {
        let mut text = file(&format!("../cowslip-ldap/src/schema/data/{name}.schema")).into_bytes();
        text.truncate(SEED_BYTES_MAX);
        text
    };
    let mut all: Vec<Vec<u8>> = names.iter().map(read).collect();
    let ldif = "dn: cn=schema\nobjectClass: top\nattributeTypes: ( 1.3.6.1.4.1.32473.1 NAME 'a' SYNTAX 1.3.6.\n \
        1.4.1.1466.115.121.1.15{64} )\nolcObjectClasses: {0}( 1.3.6.1.4.1.32473.2 NAME ( 'b' 'c' ) SUP top AUXILIARY \
        MUST cn MAY ( sn $ o ) X-ORIGIN ( 'd' 'e' ) )\n";
    let macros = "objectidentifier Ours 1.3.6.1.4.1.32473\nobjectidentifier More Ours:1\nattributetype ( More:1 NAME 'd'\n\
        \tDESC 'it''s'\n\tEQUALITY caseIgnoreMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 SINGLE-VALUE )\n";
    all.extend([ldif.as_bytes().to_vec(), macros.as_bytes().to_vec()]);
    all
}

/// Single definitions of each kind.
pub(crate) fn definitions() -> Vec<Vec<u8>> {
    texts(&[
        "( 2.5.4.3 NAME ( 'cn' 'commonName' ) DESC 'a \\27quoted\\27 \\5c' OBSOLETE SUP name EQUALITY caseIgnoreMatch \
          ORDERING caseIgnoreOrderingMatch SUBSTR caseIgnoreSubstringsMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15{32768} \
          SINGLE-VALUE COLLECTIVE NO-USER-MODIFICATION USAGE directoryOperation X-ORIGIN 'RFC 4519' )",
        "( 2.5.6.6 NAME 'person' DESC 'd' SUP ( top $ x ) STRUCTURAL MUST ( sn $ cn ) MAY seeAlso X-A ( 'b' 'c' ) )",
        "( 1.3.6.1.4.1.1466.115.121.1.15 DESC 'Directory String' X-NOT-HUMAN-READABLE 'TRUE' )",
        "( 2.5.13.2 NAME 'caseIgnoreMatch' SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )",
        "( 2.5.13.2 APPLIES ( cn $ sn ) )",
        "( 2.5.6.4 DESC 'c' AUX ( a $ b ) MUST x MAY y NOT z )",
        "( 2 NAME 's' FORM f SUP ( 1 2 ) )",
        "( 1.2.3 NAME 'f' OC person MUST cn MAY sn )",
    ])
}

/// Journals, and snapshots.
type Files = (Vec<Vec<u8>>, Vec<Vec<u8>>);

/// A directory's journals and snapshots, with some entries in both.
pub(crate) fn journal_and_snapshot() -> Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(make_files).clone()
}

fn make_files() -> Files {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let server = runtime.block_on(TestServer::in_folder(folder.path()));
    add_entries(server.port);
    runtime.block_on(server.stop());
    let (mut journals, mut snapshots) = (Vec::new(), Vec::new());
    for file in std::fs::read_dir(folder.path()).expect("the folder is there") {
        let path = file.expect("a file").path();
        let Ok(content) = std::fs::read(&path) else { continue };
        if cowslip_ldap_server::journal::decode_snapshot_file(&content).is_ok() {
            snapshots.push(content);
        } else if cowslip_ldap_server::journal::decode_journal_file(&content).is_ok() {
            // Journals have megabytes of room at their ends, in which there is nothing to change.
            let used = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            journals.push(content[..used.next_multiple_of(4_096).min(content.len())].to_vec());
        }
    }
    assert!(!journals.is_empty() && !snapshots.is_empty(), "a directory has both");
    (journals, snapshots)
}

/// Binds as root and adds entries.
fn add_entries(port: u16) {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    let mut ask = |request: &[u8]| {
        stream.write_all(request).expect("sent");
        let (mut answer, mut piece) = (Vec::new(), [0; 4_096]);
        while !matches!(frame(&answer, 1 << 20), Ok(Framing::Complete { .. })) {
            let bytes = stream.read(&mut piece).expect("an answer");
            assert!(bytes > 0, "the server closed");
            answer.extend_from_slice(&piece[..bytes]);
        }
    };
    let id = |number| MessageId::new(number).expect("in range");
    let mut out = Vec::new();
    write_bind(&mut out, id(1), ROOT_DN.as_bytes(), Authentication::Simple(ROOT_PASSWORD.as_bytes()), &[]);
    ask(&out);
    let mut add = |number: u32, name: &str, attributes: &[(&str, &[&str])]| {
        out.clear();
        write_add(&mut out, id(number), name.as_bytes(), attributes.iter().copied(), &[]);
        ask(&out);
    };
    add(2, SUFFIX, &[("objectClass", &["domain"]), ("dc", &["example"])]);
    for number in 3..20 {
        let cn = format!("d{number}");
        let name = format!("cn={cn},{SUFFIX}");
        add(number, &name, &[("objectClass", &["device"]), ("cn", &[&cn]), ("owner", &[SUFFIX])]);
    }
}
