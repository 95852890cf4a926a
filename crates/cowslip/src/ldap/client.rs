//! One blocking LDAP connection to a server: for commands, which wait for each answer, and for loads, which do not.
//!
//! Invariant: answers are handed out in the order in which they come; who asks for one thing at a time never sees the
//! answer to another.

use cowslip_ldap::filter::Filter;
use cowslip_ldap::framing::{FrameError, Framing, MESSAGE_BYTES_MAX, frame};
use cowslip_ldap::ldif::{LdifBody, LdifOperation, LdifRecord};
use cowslip_ldap::message::{
    Attributes, Authentication, ChangeOperation, Control, MessageId, ModifyDnRequest, Response,
    ResponseError, ResponseOperation, SearchParameters, decode_response, write_add, write_bind, write_delete,
    write_modify, write_modify_dn, write_search, write_unbind,
};
use cowslip_ldap::result::{LdapResult, ResultCode};
use cowslip_ldap::url::{LdapUrl, UrlScheme};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

/// The port of an `ldap:` URL without one.
const PORT: u16 = 389;

/// How much is read at once.
const READ_BYTES: usize = 1 << 16;

/// Why a connection is of no use.
#[derive(Debug)]
pub(crate) enum ClientError {
    /// The URL is none, or of a kind that this client does not speak.
    Url { url: String, reason: String },
    /// The operating system.
    Io(io::Error),
    /// What the server sends is no LDAP message.
    Frame(FrameError),
    /// What the server sends is no response.
    Response(ResponseError),
    /// The server closed the connection, perhaps with words.
    Closed { reason: String },
    /// The server refused something without which the command has no purpose.
    Refused { what: String, result: LdapResult<'static> },
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { url, reason } => write!(f, "{url}: {reason}"),
            Self::Io(error) => write!(f, "the connection: {error}"),
            Self::Frame(error) => write!(f, "the server does not speak LDAP: {error}"),
            Self::Response(error) => write!(f, "the server's answer: {error}"),
            Self::Closed { reason } if reason.is_empty() => f.write_str("the server closed the connection"),
            Self::Closed { reason } => write!(f, "the server closed the connection: {reason}"),
            Self::Refused { what, result } => write!(f, "{what}: {}", said(result)),
        }
    }
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A result as people read it.
pub(crate) fn said(result: &LdapResult<'_>) -> String {
    match &*result.message {
        "" => result.code.name().to_owned(),
        message => format!("{}: {message}", result.code.name()),
    }
}

trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// A connection.
pub(crate) struct Client {
    stream: Box<dyn Stream>,
    input: Vec<u8>,
    /// Up to where the input was handed out.
    taken: usize,
    output: Vec<u8>,
    last_id: u32,
}

impl Client {
    /// Connects to `ldap://HOST:PORT` or `ldapi://%2Fpath`.
    pub(crate) fn connect(url: &str) -> Result<Self, ClientError> {
        let refused = |reason: String| ClientError::Url { url: url.to_owned(), reason };
        let parsed = LdapUrl::parse(url).map_err(|error| refused(error.to_string()))?;
        let host = parsed.host.unwrap_or_default();
        let stream: Box<dyn Stream> = match parsed.scheme {
            UrlScheme::Ldap => {
                let host = if host.is_empty() { "localhost" } else { &*host };
                let stream = TcpStream::connect((host, parsed.port.unwrap_or(PORT)))
                    .map_err(|error| refused(error.to_string()))?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            UrlScheme::Ldapi => {
                Box::new(UnixStream::connect(host).map_err(|error| refused(error.to_string()))?)
            }
            UrlScheme::Ldaps => return Err(refused("only ldap: and ldapi: are spoken".to_owned())),
        };
        Ok(Self { stream, input: Vec::new(), taken: 0, output: Vec::new(), last_id: 0 })
    }

    /// Says who the client is, by a password.
    pub(crate) fn bind(&mut self, name: &str, password: &[u8]) -> Result<(), ClientError> {
        let result = self.call(|out, id| {
            write_bind(out, id, name.as_bytes(), Authentication::Simple(password), &[]);
        })?;
        refuse(format!("bind as {name}"), result)
    }

    /// Queues a request.
    pub(crate) fn queue(&mut self, write: impl FnOnce(&mut Vec<u8>, MessageId)) -> MessageId {
        // Numbers are used again after two thousand million requests.
        self.last_id = self.last_id % MessageId::MAX.number() + 1;
        let id = MessageId::new(self.last_id).unwrap_or(MessageId::MAX);
        write(&mut self.output, id);
        id
    }

    /// Sends what was queued.
    pub(crate) fn flush(&mut self) -> Result<(), ClientError> {
        self.stream.write_all(&self.output)?;
        self.output.clear();
        Ok(())
    }

    /// Waits for the next message.
    pub(crate) fn receive<T>(&mut self, take: impl FnOnce(Response<'_>) -> T) -> Result<T, ClientError> {
        let bytes = loop {
            match frame(&self.input[self.taken..], MESSAGE_BYTES_MAX).map_err(ClientError::Frame)? {
                Framing::Complete { bytes } => break bytes,
                Framing::Incomplete { .. } => self.read_more()?,
            }
        };
        let message = &self.input[self.taken..self.taken + bytes];
        self.taken += bytes;
        let response = decode_response(message).map_err(ClientError::Response)?;
        if response.id == MessageId::UNSOLICITED
            && let ResponseOperation::Extended { result, .. } = &response.operation
        {
            return Err(ClientError::Closed { reason: said(result) });
        }
        Ok(take(response))
    }

    fn read_more(&mut self) -> Result<(), ClientError> {
        self.input.drain(..self.taken);
        self.taken = 0;
        let length = self.input.len();
        self.input.resize(length + READ_BYTES, 0);
        let read = self.stream.read(&mut self.input[length..])?;
        self.input.truncate(length + read);
        if read == 0 { Err(ClientError::Closed { reason: String::new() }) } else { Ok(()) }
    }

    /// Waits for the next operation to end.
    pub(crate) fn next_result(&mut self) -> Result<(MessageId, LdapResult<'static>), ClientError> {
        loop {
            let ended = self.receive(|response| {
                let result = result_of(response.operation)?;
                Some((response.id, result.into_owned()))
            })?;
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    /// Sends a request and waits for its end. Nothing else may be under way.
    pub(crate) fn call(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>, MessageId),
    ) -> Result<LdapResult<'static>, ClientError> {
        self.queue(write);
        self.flush()?;
        self.next_result().map(|(_, result)| result)
    }

    /// Searches, and gives each entry's name and attributes as they come. Nothing else may be under way.
    pub(crate) fn search(
        &mut self,
        parameters: &SearchParameters<'_>,
        filter: &Filter,
        mut each: impl FnMut(&str, Attributes<'_>),
    ) -> Result<LdapResult<'static>, ClientError> {
        self.queue(|out, id| write_search(out, id, parameters, filter, &[]));
        self.flush()?;
        loop {
            let ended = self.receive(|response| match response.operation {
                ResponseOperation::SearchEntry { name, attributes } => {
                    each(name, attributes);
                    None
                }
                operation => result_of(operation).map(LdapResult::into_owned),
            })?;
            if let Some(result) = ended {
                return Ok(result);
            }
        }
    }

    /// Queues what a record of LDIF asks for; an entry is added.
    pub(crate) fn queue_record(&mut self, record: &LdifRecord) -> MessageId {
        let name = record.dn.as_bytes();
        let controls: Vec<Control<'_>> = record
            .controls
            .iter()
            .map(|control| Control {
                oid: &control.oid,
                is_critical: control.is_critical,
                value: control.value.as_deref(),
            })
            .collect();
        self.queue(|out, id| match &record.body {
            LdifBody::Entry(attributes) | LdifBody::Add(attributes) => {
                let attributes = attributes.iter().map(|a| (&*a.description, &a.values[..]));
                write_add(out, id, name, attributes, &controls);
            }
            LdifBody::Delete => write_delete(out, id, name, &controls),
            LdifBody::Modify(modifications) => {
                let changes = modifications.iter().map(|one| {
                    (operation(one.operation), &*one.attribute.description, &one.attribute.values[..])
                });
                write_modify(out, id, name, changes, &controls);
            }
            LdifBody::Rename { new_rdn, deletes_old_rdn, new_superior } => {
                let request = ModifyDnRequest {
                    name,
                    new_rdn: new_rdn.as_bytes(),
                    deletes_old_rdn: *deletes_old_rdn,
                    new_superior: new_superior.as_ref().map(|superior| superior.as_bytes()),
                };
                write_modify_dn(out, id, &request, &controls);
            }
        })
    }

    /// Says goodbye.
    pub(crate) fn close(mut self) {
        self.queue(write_unbind);
        // Who does not hear it sees the connection close.
        let _ = self.flush();
    }
}

/// An error if the server refused.
pub(crate) fn refuse(what: String, result: LdapResult<'static>) -> Result<(), ClientError> {
    match result.code {
        ResultCode::Success => Ok(()),
        _ => Err(ClientError::Refused { what, result }),
    }
}

fn result_of(operation: ResponseOperation<'_>) -> Option<LdapResult<'_>> {
    match operation {
        ResponseOperation::Bind { result, .. }
        | ResponseOperation::Done { result, .. }
        | ResponseOperation::Extended { result, .. } => Some(result),
        _ => None,
    }
}

fn operation(operation: LdifOperation) -> ChangeOperation {
    match operation {
        LdifOperation::Add => ChangeOperation::Add,
        LdifOperation::Delete => ChangeOperation::Delete,
        LdifOperation::Replace => ChangeOperation::Replace,
        LdifOperation::Increment => ChangeOperation::Increment,
    }
}
