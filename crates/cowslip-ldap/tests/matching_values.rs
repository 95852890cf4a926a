//! Syntaxes and matching rules by example: which values are accepted, which match, which come first, which pieces are
//! found. The cases' numbers are those of the project's list of LDAP cases.

use cowslip_ldap::matching::{MatchingRule, RuleKind};
use cowslip_ldap::prep::PieceKind;
use cowslip_ldap::schema::Schema;
use cowslip_ldap::syntax::Syntax;

fn rule(name: &str) -> MatchingRule {
    MatchingRule::by_name_or_oid(name).unwrap_or_else(|| panic!("no rule {name}"))
}

fn normal(rule: MatchingRule, value: &[u8], schema: &Schema) -> Vec<u8> {
    let mut out = b"before".to_vec();
    rule.normalize(value, schema, &mut out)
        .unwrap_or_else(|error| panic!("{} {}: {error}", rule.name(), value.escape_ascii()));
    out.split_off(6)
}

/// Syntax, values, and texts that are none.
const SYNTAXES: &[(Syntax, &[&str], &[&str])] = &[
    (Syntax::Boolean, &["TRUE", "false", "True"], &["1", "yes", "", "TRUE "]),
    (Syntax::BitString, &["''B", "'0'B", "'0101'B"], &["0101", "'012'B", "'01'", "''b", "'"]),
    (
        Syntax::Integer,
        &["0", "-1", "1234567890123456789012345678901234567890"],
        &["", "-", "01", "-0", "+1", "1 "],
    ),
    (Syntax::CountryString, &["DE", "us"], &["D", "DEU", "D\u{e9}", "D_"]),
    (Syntax::DeliveryMethod, &["mhs", "any $ telephone", "IA5$g3fax"], &["", "post", "mhs $"]),
    (Syntax::DirectoryString, &["x", " ", "\u{1f600}"], &[""]),
    (Syntax::FacsimileTelephoneNumber, &["+1 5", "+1 5$b4Length$a3Width"], &["", "+1 5$", "+1_5", "+1$x"]),
    (Syntax::Ia5String, &["", "a@b", "\u{7f}"], &["\u{e9}"]),
    (Syntax::NumericString, &["1 2", " "], &["", "1-2", "a"]),
    (
        Syntax::Oid,
        &["2.5.4.3", "cn", "x-y1"],
        &["", "2", "2.", ".2", "2..5", "02.5", "2.05", "1x", "c n", "x_y"],
    ),
    (Syntax::OtherMailbox, &["smtp$a@b", "x$"], &["smtp", "$a", "a_b$c"]),
    (Syntax::PostalAddress, &["a", "1234 Main St.$Anytown$USA", "\\241 $a$$b"], &[""]),
    (Syntax::PrintableString, &["a'b (c)+,-./:=?", " "], &["", "a*b", "a@b", "a&b"]),
    // L058: an empty number is none; a blank is a printable string.
    (Syntax::TelephoneNumber, &["+1 555-0100", " "], &["", "\u{2010}"]),
    (Syntax::TelexNumber, &["1$2$3"], &["1$2", "1$2$3$4", "1$$3"]),
    (Syntax::NetgroupTriple, &["(h,u,d)", "(,,)"], &["h,u,d", "(h,u)", "(a,b,c,d)", "("]),
    (Syntax::BootParameter, &["root=server:/path"], &["root", "root=server", "=a:b"]),
    (
        Syntax::Uuid,
        &["597ae2f6-16a6-1027-98f4-d28b5365dc14", "597AE2F6-16A6-1027-98F4-D28B5365DC14"],
        &["597ae2f616a6102798f4d28b5365dc14", "{97ae2f6-16a6-1027-98f4-d28b5365dc14", ""],
    ),
    (
        Syntax::AuthPassword,
        &["MD5$salt$hash", "SCRAM-SHA-256 $ 4096:x $ a=:b="],
        &["MD5", "MD5$a", "$a$b", "a b$c$d"],
    ),
    (Syntax::Dn, &["", "cn=x", "cn=a\\,b,dc=c"], &["x", "cn=x,", "cn=a\"b"]),
    (Syntax::NameAndOptionalUid, &["cn=x", "cn=x#'01'B", "cn=a#b", "#'0'B"], &["x", "x#'01'B"]),
    (Syntax::SubtreeSpecification, &["{ }", "{ base \"ou={x\", minimum 1 }"], &["", "{", "{}}{", "{\"}"]),
    (
        Syntax::Guide,
        &["person#cn$EQ", "sn$SUBSTR & !(cn$GE | ?true)", "2.5.6.6#?false"],
        &["", "person#", "person#cn", "(cn$EQ", "cn$EQ)", "cn$EQ cn$EQ", "cn$XX", "a#b#c"],
    ),
    (
        Syntax::EnhancedGuide,
        &["person#(sn$EQ)#oneLevel", "2.5.6.6#cn$APPROX#wholeSubtree"],
        &["person#sn$EQ", "person#sn$EQ#sub", "1x#sn$EQ#oneLevel"],
    ),
    (Syntax::UtcTime, &["2601020304Z", "260102030405-0100"], &["26010203Z", "2601020304.5Z"]),
    (
        Syntax::Csn,
        &["20260102030405.000006Z#000000#001#000000", "20260102030405Z#00000a#0F#000000"],
        &["20260102030405.000006Z", "20260102030405.000006Z#0#0#0", "x#000000#001#000000"],
    ),
    (Syntax::SubstringAssertion, &["*a", "a*b*"], &["", "ab"]),
    (
        Syntax::AttributeTypeDescription,
        &["( 1.2.3 NAME 'a' SUP b )"],
        &["( 1.2.3 NAME 'a' )", "1.2.3", "( 1.2.3 SUP b"],
    ),
    (Syntax::ObjectClassDescription, &["( 1.2.3 MUST ( a $ b ) )"], &["( 1.2.3 SYNTAX 1.2 )"]),
    (Syntax::SyntaxDescription, &["( 1.2.3 DESC 'x' )"], &["( 1.2.3 SUP x )"]),
    (Syntax::MatchingRuleDescription, &["( 1.2.3 SYNTAX 1.2 )"], &["( 1.2.3 )"]),
    (Syntax::MatchingRuleUseDescription, &["( 1.2.3 APPLIES cn )"], &["( 1.2.3 )"]),
    (Syntax::ContentRuleDescription, &["( 2.5.6.6 AUX pkiUser NOT cn )"], &["( 2.5.6.6 APPLIES cn )"]),
    (Syntax::StructureRuleDescription, &["( 2 FORM f SUP ( 1 3 ) )"], &["( 2 )"]),
    (Syntax::NameFormDescription, &["( 1.2.3 OC person MUST cn )"], &["( 1.2.3 OC person )"]),
];

#[test]
fn values_of_each_syntax() {
    let schema = Schema::standard();
    for (syntax, good, bad) in SYNTAXES {
        for value in *good {
            assert_eq!(syntax.check(value.as_bytes(), &schema), Ok(()), "{syntax}: {value:?}");
        }
        for value in *bad {
            let error = syntax.check(value.as_bytes(), &schema).expect_err(value);
            assert!(!error.to_string().is_empty(), "{syntax}: {value:?}");
        }
    }
    for syntax in [Syntax::OctetString, Syntax::Binary, Syntax::Fax, Syntax::Audio] {
        assert_eq!(syntax.check(b"\x00\xff", &schema), Ok(()));
    }
    assert!(Syntax::Jpeg.check(b"\xff\xd8\xff\xe0", &schema).is_ok());
    assert!(Syntax::Jpeg.check(b"GIF89a", &schema).is_err());
    for syntax in Syntax::ALL {
        // No syntax takes text that isn't UTF-8 for text, and none panics on octets.
        let is_taken = syntax.check(b"\xff\xfe\x80", &schema).is_ok();
        assert!(!is_taken || !syntax.is_human_readable() || syntax.is_assertion_only(), "{syntax}");
    }
}

#[test]
fn values_that_match_and_values_that_do_not() {
    let schema = Schema::standard();
    let cases: &[(&str, &str, &str, bool)] = &[
        // L050, L061
        ("caseIgnoreMatch", "Amy Doe", " amy   DOE ", true),
        ("caseIgnoreMatch", "\u{fb01}sh", "FISH", true),
        ("caseIgnoreMatch", "Stra\u{df}e", "STRASSE", true),
        ("caseExactMatch", "Amy  Doe", "Amy Doe", true),
        ("caseExactMatch", "Ab", "aB", false),
        ("caseIgnoreIA5Match", "A@B", "a@b", true),
        ("caseExactIA5Match", "A@B", "a@b", false),
        // L056
        ("booleanMatch", "true", "TRUE", true),
        ("booleanMatch", "False", "TRUE", false),
        // L057
        ("generalizedTimeMatch", "20260102083405+0530", "20260102030405Z", true),
        ("generalizedTimeMatch", "20260102030405.50Z", "20260102030405,5Z", true),
        ("generalizedTimeMatch", "20261231235960Z", "20270101000000Z", false),
        ("uTCTimeMatch", "2601020304Z", "260102030400+0000", true),
        // L058
        ("telephoneNumberMatch", "+1 555-0100", "+15550100", true),
        ("telephoneNumberMatch", "+1 555-0100", "+15550101", false),
        ("numericStringMatch", "12 34", "1234", true),
        ("integerMatch", "12", "12", true),
        ("integerMatch", "12", "-12", false),
        ("bitStringMatch", "'0100'B", "'01'B", false),
        ("caseIgnoreListMatch", "Main  St$Town", "main st$TOWN", true),
        ("caseIgnoreListMatch", "a$b", "a\\24b", false),
        ("caseIgnoreListMatch", "a$bc", "ab$c", false),
        ("objectIdentifierMatch", "PERSON", "2.5.6.6", true),
        ("objectIdentifierMatch", "commonName", "cn", true),
        ("objectIdentifierMatch", "caseIgnoreMatch", "2.5.13.2", true),
        ("objectIdentifierMatch", "unheard", "UNHEARD", true),
        ("distinguishedNameMatch", "CN=Amy  Doe, dc=x", "commonName=amy doe,DC=X", true),
        ("distinguishedNameMatch", "cn=a,dc=x", "cn=a", false),
        ("distinguishedNameMatch", "", "", true),
        ("uniqueMemberMatch", "cn=a#'01'B", "CN=A#'01'B", true),
        ("uniqueMemberMatch", "cn=a#'01'B", "CN=A", false),
        ("uuidMatch", "597ae2f6-16a6-1027-98f4-d28b5365dc14", "597AE2F6-16A6-1027-98F4-D28B5365DC14", true),
        ("octetStringMatch", "a", "A", false),
        ("authPasswordExactMatch", "md5 $ s $ h", "MD5$s$h", true),
        ("authPasswordExactMatch", "MD5$s$h", "MD5$s$H", false),
        ("CSNMatch", "20260102030405Z#00000a#00f#000000", "20260102030405Z#00000A#00F#000000", true),
    ];
    for &(name, one, other, expected) in cases {
        let is_equal =
            normal(rule(name), one.as_bytes(), &schema) == normal(rule(name), other.as_bytes(), &schema);
        assert_eq!(is_equal, expected, "{name}: {one:?} and {other:?}");
    }
}

#[test]
fn order_of_values() {
    let schema = Schema::standard();
    let ascending: &[(&str, &[&str])] = &[
        // L094
        ("caseIgnoreOrderingMatch", &["_", "a", "a b", "a  c", "ab", "B", "Z", "\u{e4}"]),
        ("caseExactOrderingMatch", &["B", "Z", "_", "a"]),
        (
            "integerOrderingMatch",
            &[
                "-1000000000000000000000000",
                "-10",
                "-9",
                "-1",
                "0",
                "1",
                "9",
                "10",
                "99999999999999999999999",
            ],
        ),
        ("numericStringOrderingMatch", &["1", "1 0", "2"]),
        (
            "generalizedTimeOrderingMatch",
            &[
                "00000101000000+0100",
                "00000101000000Z",
                "19691231235959.9Z",
                "20260102030405Z",
                "20260102030405.1Z",
                "20260102030405.11Z",
                "20260102000406-0300",
                "20261231235959.9Z",
                "20261231235960Z",
                "20270101000000Z",
                "99991231235959-0100",
            ],
        ),
        (
            "uuidOrderingMatch",
            &[
                "00000000-0000-0000-0000-0000000000ff",
                "00000000-0000-0000-0000-000000000100",
                "F0000000-0000-0000-0000-000000000000",
            ],
        ),
        ("octetStringOrderingMatch", &["", "a", "aa", "b"]),
        (
            "CSNOrderingMatch",
            &[
                "20260102030405.000006Z#000000#001#000000",
                "20260102030405.000006Z#00000a#001#000000",
                "20260102030405.000007Z#000000#001#000000",
            ],
        ),
    ];
    for (name, values) in ascending {
        let keys: Vec<Vec<u8>> =
            values.iter().map(|value| normal(rule(name), value.as_bytes(), &schema)).collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{name}: {values:?} {keys:?}");
        assert!(rule(name).accepts(&keys[0], &keys[1]) && !rule(name).accepts(&keys[1], &keys[0]));
    }
}

/// As a filter evaluates pieces: initial, any, final.
fn has_pieces(rule: MatchingRule, value: &str, pieces: &str, schema: &Schema) -> bool {
    let mut text = Vec::new();
    rule.normalize_for_substrings(value.as_bytes(), schema, &mut text).expect("a value");
    let parts: Vec<&str> = pieces.split('*').collect();
    let last = parts.len() - 1;
    let mut at = 0;
    for (index, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let kind = match index {
            0 => PieceKind::Initial,
            index if index == last => PieceKind::Final,
            _ => PieceKind::Any,
        };
        let mut piece = Vec::new();
        rule.normalize_piece(part.as_bytes(), kind, schema, &mut piece).expect("a piece");
        let rest = &text[at..];
        let found = match kind {
            PieceKind::Initial => rest.starts_with(&piece).then_some(0),
            PieceKind::Final => rest.ends_with(&piece).then(|| rest.len() - piece.len()),
            PieceKind::Any => rest.windows(piece.len().max(1)).position(|window| window == piece),
        };
        let Some(found) = found else { return false };
        at += found + piece.len();
    }
    true
}

#[test]
fn pieces_of_values() {
    let schema = Schema::standard();
    let cases: &[(&str, &str, &str, bool)] = &[
        // L046
        ("caseIgnoreSubstringsMatch", "a   b", "*a b*", true),
        ("caseIgnoreSubstringsMatch", "ab", "*a b*", false),
        ("caseIgnoreSubstringsMatch", "a   b", "a  *", true),
        ("caseIgnoreSubstringsMatch", "ab", "a  *", false),
        ("caseIgnoreSubstringsMatch", "a   b", "* b", true),
        ("caseIgnoreSubstringsMatch", "ab", "* b", false),
        ("caseIgnoreSubstringsMatch", "a   b", " *", true),
        ("caseIgnoreSubstringsMatch", "ab", " *", true),
        ("caseIgnoreSubstringsMatch", "ab", "a*b", true),
        ("caseIgnoreSubstringsMatch", "a", "a*a", false),
        ("caseIgnoreSubstringsMatch", "Stra\u{df}e", "*SS*", true),
        ("caseExactSubstringsMatch", "Ab", "a*", false),
        ("caseExactIA5SubstringsMatch", "Ab", "A*", true),
        ("caseIgnoreIA5SubstringsMatch", "Amy@Example", "amy@*", true),
        // L058
        ("telephoneNumberSubstringsMatch", "+1 555-0100", "*50100", true),
        ("telephoneNumberSubstringsMatch", "+1 555-0100", "+1-5*", true),
        ("numericStringSubstringsMatch", "12 34", "*23*", true),
        ("caseIgnoreListSubstringsMatch", "Main St$Town", "main*town*", true),
        ("caseIgnoreListSubstringsMatch", "Main St$Town", "*st town*", false),
    ];
    for &(name, value, pieces, expected) in cases {
        assert_eq!(has_pieces(rule(name), value, pieces, &schema), expected, "{name}: {value:?} {pieces:?}");
    }
    let mut out = Vec::new();
    assert!(rule("caseIgnoreMatch").normalize_piece(b"x", PieceKind::Any, &schema, &mut out).is_err());
    assert!(rule("caseIgnoreSubstringsMatch").normalize(b"x", &schema, &mut out).is_err());
    assert!(out.is_empty());
}

#[test]
fn assertions_that_differ_from_values() {
    let schema = Schema::standard();
    let definition = "( 2.5.4.3 NAME 'cn' SUP name )";
    let cases: &[(&str, &str, &str, bool)] = &[
        ("objectIdentifierFirstComponentMatch", definition, "2.5.4.3", true),
        ("objectIdentifierFirstComponentMatch", definition, "commonName", true),
        ("objectIdentifierFirstComponentMatch", definition, "sn", false),
        ("directoryStringFirstComponentMatch", definition, "2.5.4.3", true),
        ("integerFirstComponentMatch", "( 7 FORM x )", "7", true),
        ("integerFirstComponentMatch", "( 7 FORM x )", "8", false),
        ("integerBitAndMatch", "514", "514", true),
        ("integerBitAndMatch", "514", "2", true),
        ("integerBitAndMatch", "514", "3", false),
        ("integerBitOrMatch", "514", "3", true),
        ("integerBitOrMatch", "514", "4", false),
        ("integerBitAndMatch", "-1", "4611686018427387904", true),
        ("integerBitAndMatch", "99999999999999999999", "1", false),
        ("wordMatch", "The quick, brown-fox", "QUICK", true),
        ("wordMatch", "The quick, brown-fox", "qui", false),
        ("keywordMatch", "a b", "b", true),
    ];
    for &(name, value, assertion, expected) in cases {
        let mut wanted = Vec::new();
        rule(name).normalize_assertion(assertion.as_bytes(), &schema, &mut wanted).expect(assertion);
        let value = normal(rule(name), value.as_bytes(), &schema);
        assert_eq!(rule(name).accepts(&value, &wanted), expected, "{name}: {assertion:?}");
    }
    // Undefined: unknown names (RFC 4517 section 4.2.26), prohibited characters, other syntaxes (L049).
    let undefined = [
        ("objectIdentifierMatch", "unheard"),
        ("objectIdentifierFirstComponentMatch", "unheard"),
        ("caseIgnoreMatch", "\u{e000}"),
        ("integerMatch", "abc"),
        ("generalizedTimeOrderingMatch", "1"),
        ("distinguishedNameMatch", "x"),
        ("certificateExactMatch", "x"),
    ];
    for (name, assertion) in undefined {
        let mut out = vec![1];
        assert!(rule(name).normalize_assertion(assertion.as_bytes(), &schema, &mut out).is_err(), "{name}");
        assert_eq!(out, [1], "{name}");
    }
}

#[test]
fn l037_names_inside_names_end_somewhere() {
    let schema = Schema::standard();
    let mut text = "cn=x".to_owned();
    for level in 0..40 {
        let escaped: String =
            text.chars().flat_map(|c| if "\\=,".contains(c) { vec!['\\', c] } else { vec![c] }).collect();
        if escaped.len() > 30_000 {
            assert!(level > 8, "doubling at each level leaves room for some");
            break;
        }
        text = format!("member={escaped}");
        let mut out = Vec::new();
        // Either it is compared or it is too deep; both in linear time.
        let _ = rule("distinguishedNameMatch").normalize(text.as_bytes(), &schema, &mut out);
    }
}

#[test]
fn every_rule_and_syntax_is_found_by_its_names() {
    let schema = Schema::standard();
    for &rule in MatchingRule::ALL {
        assert_eq!(MatchingRule::by_name_or_oid(rule.oid()), Some(rule));
        assert_eq!(MatchingRule::by_name_or_oid(&rule.name().to_uppercase()), Some(rule));
        assert!(!rule.attribute_syntaxes().is_empty(), "{}", rule.name());
        // No octets make a rule panic.
        for octets in
            [b"" as &[u8], b"\x00", b"\xff", b"((((", b"{", b"#'", b"\x30\x84\xff\xff\xff\xff", b"$$$"]
        {
            let mut out = Vec::new();
            let _ = rule.normalize(octets, &schema, &mut out);
            let _ = rule.normalize_assertion(octets, &schema, &mut out);
            let _ = rule.accepts(octets, octets);
            let is_substring = rule.kind() == RuleKind::Substring;
            let mut piece = Vec::new();
            let is_taken = rule.normalize_piece(octets, PieceKind::Any, &schema, &mut piece).is_ok();
            assert!(is_substring || !is_taken, "{}", rule.name());
        }
    }
    for &syntax in Syntax::ALL {
        assert_eq!(Syntax::by_oid(syntax.oid()), Some(syntax));
    }
}

/// Issued by `cn=Ca,o=Example "Org"\, Inc.,dc=example,dc=com`, serial number 54324593501165176.
const CERTIFICATE: &str = "\
    308201fb308201a1a003020102020800c0ffee12345678300a06082a8648ce3d040302305931133011060a0992268993f22c6401191603\
    636f6d31173015060a0992268993f22c64011916076578616d706c65311c301a060355040a0c134578616d706c6520224f7267222c2049\
    6e632e310b300906035504030c024361301e170d3236313230313032333731315a170d3336313132383032333731315a30593113301106\
    0a0992268993f22c6401191603636f6d31173015060a0992268993f22c64011916076578616d706c65311c301a060355040a0c13457861\
    6d706c6520224f7267222c20496e632e310b300906035504030c0243613059301306072a8648ce3d020106082a8648ce3d030107034200\
    044be3a39de03b796feeff1a3d1244b9169361ed74639bdf6bcfd9117ab37cd1ee7489e1629402aa56f9ad87c3de4b09d4138940ddcc1b\
    151a2c4f90c4227d1454a3533051301d0603551d0e041604144bc02abd5eb3d23825a9e0701edff4b8092da3bf301f0603551d23041830\
    1680144bc02abd5eb3d23825a9e0701edff4b8092da3bf300f0603551d130101ff040530030101ff300a06082a8648ce3d040302034800\
    304502207d3b606987dca15861f79087e8fdedfa0d3789bbb4ddd9b94a136ac0fa48b4dd02210088fdaaa9f9aa91569b4968ba029498cf\
    a5a593d55d616767bd0810c16627d7c9";

/// Of the same issuer, issued at 2026-01-02 03:04:05.
const REVOCATIONS: &str = "\
    3081f1308198020101300a06082a8648ce3d040302305931133011060a0992268993f22c6401191603636f6d31173015060a0992268993\
    f22c64011916076578616d706c65311c301a060355040a0c134578616d706c6520224f7267222c20496e632e310b300906035504030c02\
    4361170d3236303130323033303430355a170d3336303130323033303430355aa00e300c300a0603551d140403020101300a06082a8648\
    ce3d0403020348003045022100efdd81c651a75a81e0869c42f6aae4a0335a609d0e280fc77f5e5ddce8027f0502207fae84c5f9724333\
    2ca5107bd02f81503240abb20e7e627cba5e63a68458ac73";

fn octets(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hexadecimal.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[test]
fn certificates_by_issuer_and_mark() {
    let schema = Schema::standard();
    let issuer = "CN=ca, o=example \\\"Org\\\"\\, Inc.,DC=Example,dc=com";
    let quoted = issuer.replace('"', "\"\"");
    let cases = [
        ("certificateExactMatch", CERTIFICATE, format!("54324593501165176${issuer}"), true),
        (
            "certificateExactMatch",
            CERTIFICATE,
            format!("{{ serialNumber 54324593501165176, issuer rdnSequence:\"{quoted}\" }}"),
            true,
        ),
        (
            "certificateExactMatch",
            CERTIFICATE,
            format!("{{ issuer rdnSequence:\"{quoted}\",serialNumber 54324593501165176 }}"),
            true,
        ),
        ("certificateExactMatch", CERTIFICATE, format!("54324593501165177${issuer}"), false),
        ("certificateExactMatch", CERTIFICATE, "54324593501165176$cn=ca".to_owned(), false),
        (
            "certificateListExactMatch",
            REVOCATIONS,
            format!("{{ issuer rdnSequence:\"{quoted}\", thisUpdate utcTime:\"260102030405Z\" }}"),
            true,
        ),
        (
            "certificateListExactMatch",
            REVOCATIONS,
            format!("{{ issuer rdnSequence:\"{quoted}\", thisUpdate generalizedTime:\"20260102030406Z\" }}"),
            false,
        ),
    ];
    for (name, value, assertion, expected) in cases {
        let value = octets(value);
        let mut wanted = Vec::new();
        rule(name).normalize_assertion(assertion.as_bytes(), &schema, &mut wanted).expect(&assertion);
        assert_eq!(normal(rule(name), &value, &schema) == wanted, expected, "{assertion}");
    }
    let whole = octets(CERTIFICATE);
    assert_eq!(Syntax::Certificate.check(&whole, &schema), Ok(()));
    for end in 0..whole.len() {
        assert!(Syntax::Certificate.check(&whole[..end], &schema).is_err(), "{end}");
        // Any octets may be damaged without harm to the reader.
        let mut damaged = whole.clone();
        damaged[end] ^= 0xff;
        let _ = Syntax::Certificate.check(&damaged, &schema);
        let _ = Syntax::CertificateList.check(&damaged, &schema);
    }
    assert!(Syntax::Certificate.check(&[&whole[..], b"x"].concat(), &schema).is_err());
}
