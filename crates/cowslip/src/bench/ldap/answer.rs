//! A server that answers every request without doing anything. The rate that the load generator reaches against it is
//! the generator's own ceiling: what a real server cannot be measured beyond.

use crate::bench::error::BenchError;
use cowslip_ldap::framing::{Framing, MESSAGE_BYTES_MAX, frame};
use cowslip_ldap::message::{Limits, OperationKind, decode_request, write_result};
use cowslip_ldap::result::LdapResult;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

/// Starts it in a thread for `connections` clients, after which it ends by itself; gives its URL.
pub(crate) fn start(connections: usize) -> Result<String, BenchError> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let url = format!("ldap://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        // Its clients notice when it ends; there is nobody else to tell.
        let _ = serve(&listener, connections);
    });
    Ok(url)
}

struct Client {
    stream: TcpStream,
    input: Vec<u8>,
    is_gone: bool,
}

fn serve(listener: &TcpListener, connections: usize) -> io::Result<()> {
    let mut clients: Vec<Client> = Vec::new();
    let mut accepted = 0;
    let mut chunk = vec![0; 1 << 16];
    while accepted < connections || !clients.is_empty() {
        let mut fds: Vec<PollFd<'_>> =
            clients.iter().map(|client| PollFd::new(&client.stream, PollFlags::IN)).collect();
        if accepted < connections {
            fds.push(PollFd::new(listener, PollFlags::IN));
        }
        poll(&mut fds, None)?;
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        for (client, _) in clients.iter_mut().zip(&ready).filter(|(_, ready)| **ready) {
            client.answer(&mut chunk)?;
        }
        if ready.len() > clients.len() && ready[clients.len()] {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            clients.push(Client { stream, input: Vec::new(), is_gone: false });
            accepted += 1;
        }
        clients.retain(|client| !client.is_gone);
    }
    Ok(())
}

impl Client {
    fn answer(&mut self, chunk: &mut [u8]) -> io::Result<()> {
        let n = self.stream.read(chunk)?;
        self.is_gone = n == 0;
        self.input.extend_from_slice(&chunk[..n]);
        let mut out = Vec::new();
        let mut taken = 0;
        loop {
            let framing = frame(&self.input[taken..], MESSAGE_BYTES_MAX).map_err(io::Error::other)?;
            let Framing::Complete { bytes } = framing else { break };
            answer_one(&self.input[taken..taken + bytes], &mut out)?;
            taken += bytes;
        }
        self.input.drain(..taken);
        self.stream.write_all(&out)
    }
}

fn answer_one(message: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let request = decode_request(message, &Limits::DEFAULT).map_err(|e| io::Error::other(e.to_string()))?;
    let kind: OperationKind = request.operation.kind();
    write_result(out, request.id, kind, &LdapResult::SUCCESS, &[]);
    Ok(())
}
