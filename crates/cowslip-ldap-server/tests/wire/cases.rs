//! The cases that are data: `tests/cases/*.case`, described in the README next to them.

use std::path::Path;

use cowslip_ldap::filter::Filter;
use cowslip_ldap::message::{ChangeOperation, ModifyDnRequest, Scope, SearchParameters};
use cowslip_ldap_server::testing::{ROOT_DN, ROOT_PASSWORD, TestServer};

use crate::client::{Answer, Client, Found};
use crate::fixture;

/// One case: its title and its lines with their numbers.
struct Case {
    title: String,
    lines: Vec<(usize, String)>,
}

fn parse(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.strip_prefix("case ") {
            Some(title) => cases.push(Case { title: title.to_owned(), lines: Vec::new() }),
            None => {
                let case = cases.last_mut().expect("a case begins with its title");
                case.lines.push((number + 1, line.to_owned()));
            }
        }
    }
    cases
}

/// A text with names put in: `$P` and so on.
fn expanded(text: &str) -> String {
    let names = [
        ("$AMY", fixture::AMY),
        ("$ROOTPW", ROOT_PASSWORD),
        ("$ROOT", ROOT_DN),
        ("$P", fixture::PEOPLE),
        ("$G", fixture::GROUPS),
        ("$S", fixture::SUFFIX),
    ];
    names.iter().fold(text.to_owned(), |text, (short, long)| text.replace(short, long))
}

/// The bytes of a text: quotes around it go, `\xHH` is a byte.
fn bytes(text: &str) -> Vec<u8> {
    let text = text.trim();
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let mut rest = inner.unwrap_or(text).as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((first, after)) = rest.split_first() {
        let digits = rest.strip_prefix(b"\\x").and_then(|after| after.split_at_checked(2));
        let byte = digits.and_then(|(digits, after)| {
            Some((u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?, after))
        });
        match byte {
            Some((byte, after)) => {
                bytes.push(byte);
                rest = after;
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// `name: value` in its two parts.
fn attribute(line: &str) -> (String, Vec<Vec<u8>>) {
    let (name, values) = line.split_once(':').unwrap_or((line, ""));
    let values = values.split(" | ").map(str::trim).filter(|value| !value.is_empty());
    (name.trim().to_owned(), values.map(bytes).collect())
}

fn change(line: &str) -> (ChangeOperation, String, Vec<Vec<u8>>) {
    let (word, rest) = line.trim().split_once(' ').expect("a word and an attribute");
    let operation = match word {
        "add" => ChangeOperation::Add,
        "delete" => ChangeOperation::Delete,
        "replace" => ChangeOperation::Replace,
        "increment" => ChangeOperation::Increment,
        _ => panic!("no such change: {word}"),
    };
    let (name, values) = attribute(rest);
    (operation, name, values)
}

/// Does what a line and the indented ones after it say.
async fn act(client: &mut Client, line: &str, more: &[String]) -> Answer {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let parts: Vec<&str> = rest.split(" | ").map(str::trim).collect();
    let part = |place: usize| parts.get(place).copied().unwrap_or_default();
    match word {
        "bind" => client.bind(&bytes(part(0)), &bytes(part(1))).await,
        "add" => {
            let mut attributes: Vec<(String, Vec<Vec<u8>>)> = Vec::new();
            for (name, values) in more.iter().map(|line| attribute(line)) {
                match attributes.iter_mut().find(|(there, _)| *there == name) {
                    Some((_, there)) => there.extend(values),
                    None => attributes.push((name, values)),
                }
            }
            client.add(&bytes(rest), &attributes).await
        }
        "modify" => {
            let changes: Vec<_> = more.iter().map(|line| change(line)).collect();
            client.modify(&bytes(rest), &changes).await
        }
        "delete" => client.delete(&bytes(rest)).await,
        "rename" => {
            let (name, new_rdn, superior) = (bytes(part(0)), bytes(part(1)), bytes(part(3)));
            let request = ModifyDnRequest {
                name: &name,
                new_rdn: &new_rdn,
                deletes_old_rdn: part(2) == "drop",
                new_superior: (!superior.is_empty()).then_some(superior.as_slice()),
            };
            client.rename(&request).await
        }
        "compare" => {
            let (name, values) = attribute(part(1));
            client.compare(&bytes(part(0)), &name, values.first().map_or(&[][..], |value| value)).await
        }
        "base" | "one" | "sub" => {
            let scope = match word {
                "base" => Scope::Base,
                "one" => Scope::One,
                _ => Scope::Subtree,
            };
            let base = String::from_utf8(bytes(part(0))).expect("a base is text");
            let attributes: Vec<&str> =
                part(2).split(' ').filter(|name| !matches!(*name, "" | "\"\"")).collect();
            let attributes = if parts.len() > 2 { attributes } else { vec!["1.1"] };
            let parameters =
                SearchParameters { base: &base, scope, attributes: &attributes, ..Default::default() };
            client.search(parameters, &Filter::parse(part(1)).expect(line)).await
        }
        "whoami" => {
            let name = client.who_am_i().await;
            Answer {
                code: cowslip_ldap::result::ResultCode::Success,
                matched: String::new(),
                message: String::new(),
                name: None,
                value: Some(name.into_bytes()),
                entries: Vec::new(),
            }
        }
        _ => panic!("no such step: {line}"),
    }
}

/// Compares an answer with the lines that say what it must be; complaints are returned.
fn judge(answer: &Answer, wanted: &[String]) -> Result<(), String> {
    let mut found: Vec<&Found> = answer.entries.iter().collect();
    let mut entry: Option<&Found> = None;
    for line in wanted {
        let (sign, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        match sign {
            "=" => {
                let codes: Vec<&str> = rest.split(" or ").map(str::trim).collect();
                if !codes.contains(&answer.code.name()) {
                    return Err(format!("answered {} ({})", answer.code.name(), answer.message));
                }
            }
            "@" if answer.matched != rest => return Err(format!("matched \"{}\"", answer.matched)),
            "%" if answer.value.as_deref() != Some(rest.as_bytes()) => {
                return Err(format!("the value is {:?}", answer.value));
            }
            "@" | "%" => {}
            "-" => {
                let place = found.iter().position(|found| found.dn.as_bytes() == bytes(rest));
                let Some(place) = place else { return Err(format!("{rest} is not among {found:?}")) };
                entry = Some(found.swap_remove(place));
            }
            "." => {
                let (name, values) = attribute(rest);
                let entry = entry.ok_or("an attribute of no entry")?;
                let mut values: Vec<String> =
                    values.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect();
                values.sort();
                if entry.texts(&name).unwrap_or_default() != values {
                    return Err(format!("{name} is {:?}", entry.texts(&name)));
                }
            }
            "+" => {
                if entry.is_none_or(|entry| entry.texts(rest).is_none()) {
                    return Err(format!("{rest} is missing in {entry:?}"));
                }
            }
            _ => return Err(format!("no such expectation: {line}")),
        }
    }
    if found.is_empty() { Ok(()) } else { Err(format!("found {found:?}")) }
}

async fn run(case: &Case) -> Vec<String> {
    let server = TestServer::in_memory().await;
    let mut client = fixture::fill(&server).await;
    let mut complaints = Vec::new();
    let mut place = 0;
    while place < case.lines.len() {
        let (number, line) = &case.lines[place];
        let is_more = |line: &str| line.starts_with(' ');
        let is_wanted = |line: &str| line.starts_with(['=', '-', '.', '+', '@', '%']);
        let group = |from: usize, is: &dyn Fn(&str) -> bool| -> Vec<String> {
            let lines = case.lines[from..].iter().take_while(|(_, line)| is(line));
            lines.map(|(_, line)| expanded(line.trim())).collect()
        };
        let more = group(place + 1, &is_more);
        let wanted = group(place + 1 + more.len(), &is_wanted);
        assert!(wanted.first().is_some_and(|line| line.starts_with('=')), "{}: line {number}", case.title);
        let answer = act(&mut client, &expanded(line), &more).await;
        if let Err(complaint) = judge(&answer, &wanted) {
            complaints.push(format!("{}, line {number}: {line}: {complaint}", case.title));
        }
        place += 1 + more.len() + wanted.len();
    }
    fixture::end(server).await;
    complaints
}

async fn run_file(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    let cases = parse(&std::fs::read_to_string(&path).expect("the file of cases"));
    assert!(!cases.is_empty());
    let mut complaints = Vec::new();
    for case in &cases {
        complaints.extend(run(case).await);
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

macro_rules! files {
    ($($test:ident $file:literal;)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                run_file($file).await;
            }
        )*

        #[test]
        fn every_file_of_cases_is_run() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
            let files = std::fs::read_dir(folder).expect("the folder of cases");
            let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
            let mut names: Vec<String> = names.filter(|name| name.ends_with(".case")).collect();
            names.sort();
            assert_eq!(names, [$($file),*]);
        }
    };
}

files! {
    binds "bind.case";
    names "dn.case";
    filters "filter.case";
    modifies "modify.case";
    renames_and_deletes "rename.case";
    schema_and_syntaxes "schema.case";
    searches "search.case";
}
