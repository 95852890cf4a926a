//! The targets: what is done with an input, what must hold, and what is said of it.

use std::sync::OnceLock;

use cowslip_ldap::description::AttributeDescription;
use cowslip_ldap::dn::{Dn, Rdn};
use cowslip_ldap::filter::{CompiledFilter, Filter};
use cowslip_ldap::framing::{Framing, MESSAGE_BYTES_ANONYMOUS_MAX, frame};
use cowslip_ldap::ldif::{LdifReader, LdifRecord, LdifWriter};
use cowslip_ldap::matching::MatchingRule;
use cowslip_ldap::message::{Limits, decode_filter, decode_request, decode_response, encode_filter};
use cowslip_ldap::prep::PieceKind;
use cowslip_ldap::schema::{Definition, Element, Schema, SchemaFile};
use cowslip_ldap::syntax::Syntax;
use cowslip_ldap::url::LdapUrl;
use cowslip_ldap_server::journal::{decode_journal_file, decode_snapshot_file};

use crate::{Outcome, kind};

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(Schema::standard)
}

/// Frames, and the request in them.
pub(crate) fn request(input: &[u8]) -> Outcome {
    match frame(input, MESSAGE_BYTES_ANONYMOUS_MAX) {
        Ok(Framing::Complete { bytes }) => {
            assert!(bytes <= input.len());
            match decode_request(&input[..bytes], &Limits::DEFAULT) {
                // Telling it walks over all its lists.
                Ok(request) => {
                    assert!(!format!("{request:?}").is_empty());
                    format!("{:?} {}", request.operation.kind(), request.controls.len())
                }
                Err(error) => kind(&error),
            }
        }
        Ok(Framing::Incomplete { missing_bytes_min }) => {
            assert!(missing_bytes_min > 0);
            "incomplete".to_owned()
        }
        Err(error) => kind(&error),
    }
}

/// What a client makes of bytes.
pub(crate) fn response(input: &[u8]) -> Outcome {
    match decode_response(input) {
        Ok(response) => kind(&response.operation),
        Err(error) => kind(&error),
    }
}

fn shape(filter: &Filter) -> Outcome {
    let text = format!("{filter:?}");
    let names =
        ["And", "Or", "Not", "Equality", "Substrings", "Greater", "Less", "Approx", "Present", "Extensible"];
    names.into_iter().filter(|name| text.contains(name)).collect()
}

/// A filter that was accepted: compiles, and comes back in both forms.
fn check_filter(filter: &Filter) -> Outcome {
    let _ = CompiledFilter::new(filter, schema());
    let mut out = Vec::new();
    encode_filter(&mut out, filter);
    assert_eq!(decode_filter(&out, &Limits::DEFAULT).as_ref(), Ok(filter), "as BER");
    shape(filter)
}

/// A filter as it travels.
pub(crate) fn ber_filter(input: &[u8]) -> Outcome {
    match decode_filter(input, &Limits::DEFAULT) {
        Ok(filter) => check_filter(&filter),
        Err(error) => kind(&error),
    }
}

/// A filter as text.
pub(crate) fn filter(input: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(input) else { return "not UTF-8".to_owned() };
    let _ = AttributeDescription::parse(text).map(|description| description.normalized_options());
    match Filter::parse(text) {
        Ok(filter) => {
            assert_eq!(Filter::parse(&filter.to_string()).as_ref(), Ok(&filter), "as text: {filter}");
            check_filter(&filter)
        }
        Err(error) => kind(&error),
    }
}

/// A distinguished name: its text and its normal form come back the same.
pub(crate) fn name(input: &[u8]) -> Outcome {
    let _ = Rdn::parse(input);
    match Dn::parse(input) {
        Ok(dn) => {
            let again = Dn::parse(dn.to_string().as_bytes());
            let again = again.unwrap_or_else(|e| panic!("{dn} does not come back: {e}"));
            assert_eq!(again.to_string(), dn.to_string());
            match (dn.normalized(schema()), again.normalized(schema())) {
                (Ok(one), Ok(other)) => {
                    assert_eq!(one.bytes(), other.bytes(), "{dn}");
                    assert_eq!(one.depth(), dn.rdns().len());
                    format!("good {}", one.depth().min(5))
                }
                (Err(error), Err(_)) => kind(&error),
                (one, other) => panic!("{dn}: {one:?}, then {other:?}"),
            }
        }
        Err(error) => kind(&error),
    }
}

/// A URL.
pub(crate) fn url(input: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(input) else { return "not UTF-8".to_owned() };
    match LdapUrl::parse(text) {
        Ok(url) => {
            let written = url.to_string();
            assert_eq!(LdapUrl::parse(&written).as_ref(), Ok(&url), "{written}");
            kind(&url)
        }
        Err(error) => kind(&error),
    }
}

fn read_ldif(input: &[u8]) -> (Vec<LdifRecord>, Option<Outcome>) {
    let mut reader = LdifReader::new(input);
    let mut records = Vec::new();
    loop {
        match reader.read() {
            Ok(Some(mut record)) => {
                record.line = 0;
                records.push(record);
            }
            Ok(None) => return (records, None),
            Err(error) => return (records, Some(kind(&error.kind))),
        }
    }
}

/// LDIF: what was read is written and read again.
pub(crate) fn ldif(input: &[u8]) -> Outcome {
    let (records, error) = read_ldif(input);
    let mut writer = LdifWriter::new(Vec::new());
    for record in &records {
        writer.record(record).expect("memory can be written");
    }
    let written = writer.into_inner();
    let again = read_ldif(&written);
    assert_eq!(again, (records.clone(), None), "written as {:?}", String::from_utf8_lossy(&written));
    error.unwrap_or_else(|| records.first().map_or_else(|| "nothing".to_owned(), |record| kind(&record.body)))
}

/// A schema file: each definition's text comes back the same, and the change can be tried.
pub(crate) fn schema_file(input: &[u8]) -> Outcome {
    match SchemaFile::from_bytes(input) {
        Ok(file) => {
            for located in &file.definitions {
                check_definition(&located.definition);
            }
            format!("{} definitions, {} others", file.definitions.len(), file.ignored.len())
        }
        Err(error) => kind(&error),
    }
}

fn check_definition(definition: &Definition) {
    let text = definition.to_string();
    let again = Definition::parse(definition.element(), &text);
    assert_eq!(again.as_ref(), Ok(definition), "{text}");
}

/// A text as a definition of every kind of element.
pub(crate) fn definition(input: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(input) else { return "not UTF-8".to_owned() };
    let outcomes = Element::ALL.map(|element| match Definition::parse(element, text) {
        Ok(definition) => {
            check_definition(&definition);
            "good".to_owned()
        }
        Err(error) => kind(&error),
    });
    outcomes.join(";")
}

/// A value for every syntax and every matching rule: normal forms are as they should be twice.
pub(crate) fn values(input: &[u8]) -> Outcome {
    let mut outcome = String::new();
    for syntax in Syntax::ALL {
        outcome.push(if syntax.check(input, schema()).is_ok() { '1' } else { '0' });
    }
    let (mut out, mut again) = (Vec::new(), Vec::new());
    for rule in MatchingRule::ALL {
        out.clear();
        again.clear();
        let first = rule.normalize(input, schema(), &mut out);
        assert_eq!(rule.normalize(input, schema(), &mut again).is_ok(), first.is_ok());
        assert_eq!(out, again, "{}", rule.name());
        assert!(first.is_ok() || out.is_empty(), "{}: an error leaves nothing", rule.name());
        outcome.push(if first.is_ok() { '1' } else { '0' });
        let _ = rule.normalize_assertion(input, schema(), &mut out);
        let _ = rule.normalize_for_substrings(input, schema(), &mut out);
        for place in [PieceKind::Initial, PieceKind::Any, PieceKind::Final] {
            let _ = rule.normalize_piece(input, place, schema(), &mut out);
        }
    }
    outcome
}

/// A journal file.
pub(crate) fn journal(input: &[u8]) -> Outcome {
    match decode_journal_file(input) {
        Ok(batches) => format!("{batches} batches"),
        Err(error) => kind(&error),
    }
}

/// A snapshot file.
pub(crate) fn snapshot(input: &[u8]) -> Outcome {
    match decode_snapshot_file(input) {
        Ok(records) => format!("{records} records"),
        Err(error) => kind(&error),
    }
}
