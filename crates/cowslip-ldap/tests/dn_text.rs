//! Names as text: the cases on names of the public bug reports (by L-number) and RFC 4514's rules.

use cowslip_ldap::dn::{Ava, DN_BYTES_MAX, DN_RDNS_MAX, Dn, DnError, RDN_AVAS_MAX, Rdn};
use proptest::prelude::*;

/// What parsing should give.
enum Outcome {
    /// The values, RDN after RDN, and the text that is written.
    Name(&'static [&'static [u8]], &'static str),
    /// An error of this kind.
    Refused(fn(&DnError) -> bool),
}

use Outcome::{Name, Refused};

fn check(case: &str, text: &[u8], outcome: &Outcome) {
    let shown = text.escape_ascii();
    match (Dn::parse(text), outcome) {
        (Ok(dn), Name(values, written)) => {
            let found: Vec<&[u8]> = dn.rdns().iter().flat_map(Rdn::avas).map(Ava::value).collect();
            assert_eq!(&found, values, "{case}: {shown}");
            assert_eq!(&dn.to_string(), written, "{case}: {shown}");
            assert_eq!(Dn::parse(written.as_bytes()), Ok(dn), "{case}: {shown}");
        }
        (Err(error), Refused(is_expected)) => assert!(is_expected(&error), "{case}: {shown}: {error:?}"),
        (found, _) => panic!("{case}: {shown}: {found:?}"),
    }
}

macro_rules! refused {
    ($pattern:pat) => {
        Refused(|error| matches!(error, $pattern))
    };
}

#[test]
fn l028_trailing_blanks_and_backslashes() {
    for (text, outcome) in [
        (r"cn=a\ ,dc=x", Name(&[b"a ", b"x"], r"cn=a\ ,dc=x")),
        (r"cn=a\\ ,dc=x", Name(&[b"a\\", b"x"], r"cn=a\\,dc=x")),
        (r"cn=a\\\ ,dc=x", Name(&[b"a\\ ", b"x"], r"cn=a\\\ ,dc=x")),
        (r"cn=a\  ,dc=x", Name(&[b"a ", b"x"], r"cn=a\ ,dc=x")),
        (r"cn= a b ,dc=x", Name(&[b"a b", b"x"], r"cn=a b,dc=x")),
        (r"cn=\  a \20 ", Name(&[b"  a  "], r"cn=\  a \ ")),
        (r"cn=a\", refused!(DnError::Escape { offset: 4 })),
        (r"cn=\ ", Name(&[b" "], r"cn=\ ")),
    ] {
        check("L028", text.as_bytes(), &outcome);
    }
}

#[test]
fn l030_hexadecimal_values() {
    for (text, outcome) in [
        ("1.2.3=#0402486900", refused!(DnError::Ber { .. })),
        ("1.2.3=#04024869", Name(&[b"Hi"], "1.2.3=#04024869")),
        ("1.2.3=#04024869 , dc=x", Name(&[b"Hi", b"x"], "1.2.3=#04024869,dc=x")),
        ("1.2.3=#0402", refused!(DnError::Ber { .. })),
        ("1.2.3=#04zz", refused!(DnError::Hexadecimal { offset: 6 })),
        ("1.2.3=#0402486", refused!(DnError::Hexadecimal { .. })),
        ("1.2.3=#04 024869", refused!(DnError::Hexadecimal { .. })),
        ("1.2.3=#", refused!(DnError::Hexadecimal { .. })),
        ("cn=#0C024869", Name(&[b"Hi"], "cn=#0c024869")),
    ] {
        check("L030", text.as_bytes(), &outcome);
    }
}

#[test]
fn l031_raw_special_characters() {
    for (text, outcome) in [
        ("cn=a\"b", refused!(DnError::Character { offset: 4, byte: b'"' })),
        ("cn=\"a,b\"", refused!(DnError::Character { offset: 3, byte: b'"' })),
        ("cn=a<b", refused!(DnError::Character { byte: b'<', .. })),
        ("cn=a>b", refused!(DnError::Character { byte: b'>', .. })),
        ("cn=a;b", refused!(DnError::Character { byte: b';', .. })),
        ("cn=a;dc=b", refused!(DnError::Character { byte: b';', .. })),
        ("cn=a,b", refused!(DnError::NoEqualsSign { offset: 5 })),
        ("cn=#x", refused!(DnError::Hexadecimal { offset: 3 })),
        ("cn=a=b", Name(&[b"a=b"], "cn=a=b")),
        ("cn=a#b", Name(&[b"a#b"], "cn=a#b")),
        (r"cn=\#b", Name(&[b"#b"], r"cn=\#b")),
        (r"cn=a\2cb", Name(&[b"a,b"], r"cn=a\,b")),
        (r"cn=a\,b", Name(&[b"a,b"], r"cn=a\,b")),
        (r"cn=a\=b\<\>\;\+\22", Name(&[b"a=b<>;+\""], r#"cn=a=b\<\>\;\+\""#)),
        (r"cn=a\b", refused!(DnError::Escape { offset: 4 })),
        (r"cn=a\zz", refused!(DnError::Escape { offset: 4 })),
        (r"cn=\C3\84\FF", Name(&[b"\xc3\x84\xff"], r"cn=Ä\FF")),
    ] {
        check("L031", text.as_bytes(), &outcome);
    }
}

#[test]
fn l032_nul_in_names() {
    for (text, outcome) in [
        (&b"cn=a\\00b"[..], Name(&[b"a\0b"], r"cn=a\00b")),
        (b"cn=a\0b", refused!(DnError::Character { offset: 4, byte: 0 })),
        (b"c\0n=a", refused!(DnError::Attribute { offset: 0 })),
        (b"cn=a\x01\\7f", Name(&[b"a\x01\x7f"], r"cn=a\01\7F")),
        (b"cn=\xff", refused!(DnError::NotUtf8 { offset: 3 })),
    ] {
        check("L032", text, &outcome);
    }
}

#[test]
fn l033_separators_at_the_edge() {
    for (text, outcome) in [
        ("", Name(&[], "")),
        ("  ", Name(&[], "")),
        ("uid=amy,", refused!(DnError::NoEqualsSign { offset: 8 })),
        (",dc=x", refused!(DnError::NoEqualsSign { offset: 0 })),
        ("uid=amy,,dc=x", refused!(DnError::NoEqualsSign { offset: 8 })),
        ("uid=amy, ,dc=x", refused!(DnError::NoEqualsSign { .. })),
        ("uid=amy+,dc=x", refused!(DnError::NoEqualsSign { offset: 8 })),
        ("uid=amy+", refused!(DnError::NoEqualsSign { .. })),
        ("=amy,dc=x", refused!(DnError::Attribute { offset: 0 })),
        ("uid,dc=x", refused!(DnError::NoEqualsSign { offset: 0 })),
        ("uid;x=amy", refused!(DnError::Attribute { offset: 0 })),
        ("u d=amy", refused!(DnError::Attribute { .. })),
        ("2.5.=amy", refused!(DnError::Attribute { .. })),
        ("uid=", Name(&[b""], "uid=")),
        ("uid=,dc=x", Name(&[b"", b"x"], "uid=,dc=x")),
        (" UID = amy + cn = b , dc = x ", Name(&[b"amy", b"b", b"x"], "UID=amy+cn=b,dc=x")),
    ] {
        check("L033", text.as_bytes(), &outcome);
    }
    check("L033", &vec![b','; DN_BYTES_MAX], &refused!(DnError::NoEqualsSign { offset: 0 }));
    check("L033", &vec![b','; DN_BYTES_MAX + 1], &refused!(DnError::TooLong { .. }));
}

#[test]
fn limits_hold() {
    let rdns = |count: usize| vec!["a=b"; count].join(",");
    assert_eq!(Dn::parse(rdns(DN_RDNS_MAX).as_bytes()).map(|dn| dn.rdns().len()), Ok(DN_RDNS_MAX));
    assert_eq!(Dn::parse(rdns(DN_RDNS_MAX + 1).as_bytes()), Err(DnError::TooManyRdns));
    let avas = |count: usize| vec!["a=b"; count].join("+");
    assert_eq!(Rdn::parse(avas(RDN_AVAS_MAX).as_bytes()).map(|rdn| rdn.avas().len()), Ok(RDN_AVAS_MAX));
    assert_eq!(Rdn::parse(avas(RDN_AVAS_MAX + 1).as_bytes()), Err(DnError::TooManyAvas));
    let full = Dn::parse(rdns(DN_RDNS_MAX).as_bytes()).expect("a name of as many RDNs as are allowed");
    let rdn = Rdn::parse(b"c=d").expect("an RDN");
    assert_eq!(full.child(rdn.clone()), Err(DnError::TooManyRdns));
    assert_eq!(
        full.parent().and_then(|above| above.child(rdn).ok()).map(|dn| dn.rdns().len()),
        Some(DN_RDNS_MAX)
    );
    assert_eq!(Rdn::parse(b""), Err(DnError::NotOneRdn { count: 0 }));
    assert_eq!(Rdn::parse(b"a=b,c=d"), Err(DnError::NotOneRdn { count: 2 }));
    assert_eq!(Rdn::new(Vec::new()), Err(DnError::NotOneRdn { count: 0 }));
    assert!(matches!(Ava::new("c n", b""), Err(DnError::Attribute { .. })));
    assert!(matches!(Ava::new("cn", &vec![b'x'; DN_BYTES_MAX]), Err(DnError::TooLong { .. })));
}

fn ava() -> impl Strategy<Value = Ava> {
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..12),
        "[ #,+\"\\\\<>;=a\u{e4}\u{0}\u{7f}]{0,8}".prop_map(String::into_bytes),
    ];
    ("[a-zA-Z][a-zA-Z0-9-]{0,5}|2(\\.[1-9][0-9]{0,2}){1,4}", value)
        .prop_map(|(attribute, value)| Ava::new(&attribute, &value).expect("a short assertion"))
}

fn dn() -> impl Strategy<Value = Dn> {
    let rdn = prop::collection::vec(ava(), 1..4).prop_map(|avas| Rdn::new(avas).expect("a few assertions"));
    prop::collection::vec(rdn, 0..6).prop_map(|rdns| Dn::new(rdns).expect("a few RDNs"))
}

proptest! {
    #[test]
    fn what_is_written_reads_back(dn in dn()) {
        let text = dn.to_string();
        prop_assert_eq!(Dn::parse(text.as_bytes()), Ok(dn), "{}", text);
    }

    #[test]
    fn any_octets_are_read_or_refused(octets in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(dn) = Dn::parse(&octets) {
            prop_assert_eq!(Dn::parse(dn.to_string().as_bytes()), Ok(dn));
        }
    }

    #[test]
    fn nearly_names_are_read_or_refused(text in "([ ]?(cn|2.5.4.3|=|,|\\+|\\\\|#|04|2c|a|\"|\u{e4})){0,16}") {
        if let Ok(dn) = Dn::parse(text.as_bytes()) {
            prop_assert_eq!(Dn::parse(dn.to_string().as_bytes()), Ok(dn));
        }
    }
}
