//! A client that sends any bytes and reads what comes.

use std::time::Duration;

use cowslip_ldap::filter::Filter;
use cowslip_ldap::framing::{Framing, frame};
use cowslip_ldap::message::{
    Authentication, ChangeOperation, CompareRequest, ExtendedRequest, MessageId, ModifyDnRequest,
    ResponseOperation, Scope, SearchParameters, decode_response, write_abandon, write_add, write_bind,
    write_compare, write_delete, write_extended, write_modify, write_modify_dn, write_search,
};
use cowslip_ldap::oids;
use cowslip_ldap::result::ResultCode;
use cowslip_ldap_server::testing::{ROOT_DN, ROOT_PASSWORD, TestServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// After so long an answer is not slow but lost.
const LOST: Duration = Duration::from_secs(120);

/// An entry of an answer: its name, and its attributes in the order sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) dn: String,
    pub(crate) attributes: Vec<(String, Vec<Vec<u8>>)>,
}

impl Found {
    /// The values of an attribute as texts, sorted; none if it is not there.
    pub(crate) fn texts(&self, name: &str) -> Option<Vec<String>> {
        let (_, values) = self.attributes.iter().find(|(there, _)| there == name)?;
        let mut texts: Vec<String> =
            values.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect();
        texts.sort();
        Some(texts)
    }
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) code: ResultCode,
    pub(crate) matched: String,
    pub(crate) message: String,
    pub(crate) name: Option<String>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) entries: Vec<Found>,
}

/// One message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Entry(Found),
    Done(Answer),
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    input: Vec<u8>,
    next: u32,
}

pub(crate) fn id(number: u32) -> MessageId {
    MessageId::new(number).expect("in range")
}

impl Client {
    /// A client that is nobody yet.
    pub(crate) async fn new(server: &TestServer) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        Self { stream, input: Vec::new(), next: 1 }
    }

    /// A client that may do everything.
    pub(crate) async fn root(server: &TestServer) -> Self {
        let mut client = Self::new(server).await;
        assert_eq!(client.bind(ROOT_DN.as_bytes(), ROOT_PASSWORD.as_bytes()).await.code, ResultCode::Success);
        client
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the server reads");
    }

    /// The next message and the number of its request; none if the server has closed the connection.
    pub(crate) async fn hear(&mut self) -> Option<(u32, Heard)> {
        loop {
            if let Framing::Complete { bytes } = frame(&self.input, usize::MAX).expect("whole frames") {
                let message: Vec<u8> = self.input.drain(..bytes).collect();
                return Some(heard(&message));
            }
            let read = tokio::time::timeout(LOST, self.stream.read_buf(&mut self.input));
            match read.await.expect("an answer") {
                Ok(0) | Err(_) => {
                    assert!(self.input.is_empty(), "half a message");
                    return None;
                }
                Ok(_) => {}
            }
        }
    }

    /// Whether the server says nothing more and closes.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.hear().await.is_none()
    }

    /// Waits until the server has ended the connection, without reading from it.
    pub(crate) async fn is_cut_off(&mut self) {
        const PAUSE: Duration = Duration::from_millis(10);
        let mut message = Vec::new();
        write_abandon(&mut message, id(1_000_000), id(999_999));
        let tried = async {
            while self.stream.write_all(&message).await.is_ok() {
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(LOST, tried).await.expect("who does not read is cut off");
    }

    /// Reads to the end of the operation of one number; answers to others are not expected.
    pub(crate) async fn answer(&mut self, number: u32) -> Answer {
        let mut entries = Vec::new();
        loop {
            let (id, heard) = self.hear().await.expect("an answer");
            assert_eq!(id, number, "{heard:?}");
            match heard {
                Heard::Entry(entry) => entries.push(entry),
                Heard::Done(answer) => return Answer { entries, ..answer },
            }
        }
    }

    async fn ask(&mut self, write: impl FnOnce(&mut Vec<u8>, MessageId)) -> Answer {
        let number = self.number();
        let mut message = Vec::new();
        write(&mut message, id(number));
        self.send(&message).await;
        self.answer(number).await
    }

    /// A number that no request has had.
    pub(crate) fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    pub(crate) async fn bind(&mut self, name: &[u8], password: &[u8]) -> Answer {
        self.ask(|out, id| write_bind(out, id, name, Authentication::Simple(password), &[])).await
    }

    pub(crate) async fn search(&mut self, search: SearchParameters<'_>, filter: &Filter) -> Answer {
        self.ask(|out, id| write_search(out, id, &search, filter, &[])).await
    }

    /// A search below a base with a filter as text.
    pub(crate) async fn find(&mut self, base: &str, filter: &str, attributes: &[&str]) -> Answer {
        let parameters = SearchParameters { base, scope: Scope::Subtree, attributes, ..Default::default() };
        self.search(parameters, &Filter::parse(filter).expect("a filter")).await
    }

    pub(crate) async fn add(&mut self, name: &[u8], attributes: &[(String, Vec<Vec<u8>>)]) -> Answer {
        let attributes = attributes.iter().map(|(name, values)| (name.as_str(), values.as_slice()));
        self.ask(|out, id| write_add(out, id, name, attributes, &[])).await
    }

    /// An add of an entry whose attributes are given as `name: value` lines.
    pub(crate) async fn add_lines(&mut self, name: &str, lines: &str) -> Answer {
        let mut attributes: Vec<(String, Vec<Vec<u8>>)> = Vec::new();
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(": ").expect("name: value");
            match attributes.iter_mut().find(|(there, _)| there == name) {
                Some((_, values)) => values.push(value.into()),
                None => attributes.push((name.to_owned(), vec![value.into()])),
            }
        }
        self.add(name.as_bytes(), &attributes).await
    }

    pub(crate) async fn modify(
        &mut self,
        name: &[u8],
        changes: &[(ChangeOperation, String, Vec<Vec<u8>>)],
    ) -> Answer {
        let changes = changes.iter().map(|(what, name, values)| (*what, name.as_str(), values.as_slice()));
        self.ask(|out, id| write_modify(out, id, name, changes, &[])).await
    }

    /// A modify with one change.
    pub(crate) async fn change(
        &mut self,
        name: &str,
        what: ChangeOperation,
        attribute: &str,
        values: &[&str],
    ) -> Answer {
        let values: Vec<Vec<u8>> = values.iter().map(|value| value.as_bytes().to_vec()).collect();
        self.modify(name.as_bytes(), &[(what, attribute.to_owned(), values)]).await
    }

    pub(crate) async fn delete(&mut self, name: &[u8]) -> Answer {
        self.ask(|out, id| write_delete(out, id, name, &[])).await
    }

    pub(crate) async fn rename(&mut self, request: &ModifyDnRequest<'_>) -> Answer {
        self.ask(|out, id| write_modify_dn(out, id, request, &[])).await
    }

    pub(crate) async fn compare(&mut self, name: &[u8], attribute: &str, value: &[u8]) -> Answer {
        self.ask(|out, id| write_compare(out, id, &CompareRequest { name, attribute, value }, &[])).await
    }

    /// Who the server takes this client for.
    pub(crate) async fn who_am_i(&mut self) -> String {
        let request = ExtendedRequest { name: oids::WHO_AM_I, value: None };
        let answer = self.ask(|out, id| write_extended(out, id, &request, &[])).await;
        assert_eq!(answer.code, ResultCode::Success);
        String::from_utf8(answer.value.expect("a name")).expect("text")
    }
}

fn heard(message: &[u8]) -> (u32, Heard) {
    let response = decode_response(message).expect("a response");
    let id = response.id.number();
    let done = |result: cowslip_ldap::result::LdapResult<'_>, name: Option<&str>, value: Option<&[u8]>| {
        Heard::Done(Answer {
            code: result.code,
            matched: result.matched.into_owned(),
            message: result.message.into_owned(),
            name: name.map(str::to_owned),
            value: value.map(<[u8]>::to_vec),
            entries: Vec::new(),
        })
    };
    let heard = match response.operation {
        ResponseOperation::SearchEntry { name, attributes } => Heard::Entry(Found {
            dn: name.to_owned(),
            attributes: attributes
                .iter()
                .map(|attribute| {
                    let values = attribute.values.iter().map(<[u8]>::to_vec).collect();
                    (attribute.description.to_owned(), values)
                })
                .collect(),
        }),
        ResponseOperation::Bind { result, .. } | ResponseOperation::Done { result, .. } => {
            done(result, None, None)
        }
        ResponseOperation::Extended { result, name, value } => done(result, name, value),
        other => panic!("{other:?} was not asked for"),
    };
    (id, heard)
}
