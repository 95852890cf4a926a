//! A server that answers every request without doing anything. The rate that the load generator reaches against it is
//! the generator's own ceiling: what a real server cannot be measured beyond.

use crate::bench::error::BenchError;
use cowslip_ovsdb::framing::{Framer, MESSAGE_BYTES_MAX};
use memchr::memmem;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

/// The server; it runs in a thread until all its clients are gone.
pub(crate) struct Answerer {
    /// Where it listens.
    pub(crate) address: String,
    _directory: tempfile::TempDir,
}

impl Answerer {
    /// Starts it for `connections` clients.
    pub(crate) fn start(connections: usize) -> Result<Answerer, BenchError> {
        let directory = tempfile::Builder::new().prefix("cowslip-bench-").tempdir()?;
        let path = directory.path().join("s");
        let listener = UnixListener::bind(&path)?;
        std::thread::spawn(move || {
            let accepted =
                (0..connections).map(|_| Ok((listener.accept()?.0, Framer::new(MESSAGE_BYTES_MAX))));
            let clients = accepted.collect::<std::io::Result<Vec<_>>>();
            // Its clients notice when it ends; there is nobody else to tell.
            let _ = clients.map_err(BenchError::from).and_then(serve);
        });
        Ok(Answerer { address: format!("unix:{}", path.display()), _directory: directory })
    }
}

fn serve(mut clients: Vec<(UnixStream, Framer)>) -> Result<(), BenchError> {
    let mut chunk = vec![0; 1 << 16];
    let mut out = Vec::new();
    while !clients.is_empty() {
        let mut fds: Vec<PollFd<'_>> = clients.iter().map(|(s, _)| PollFd::new(s, PollFlags::IN)).collect();
        poll(&mut fds, None).map_err(std::io::Error::from)?;
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut gone = vec![false; clients.len()];
        for (at, (stream, framer)) in clients.iter_mut().enumerate().filter(|(at, _)| ready[*at]) {
            let n = stream.read(&mut chunk)?;
            gone[at] = n == 0;
            framer.push(&chunk[..n]);
            out.clear();
            while let Some(request) = framer.message()? {
                let id = memmem::find(request, b"\"id\":\"").and_then(|at| request.get(at + 6..at + 16));
                out.extend_from_slice(b"{\"id\":\"");
                out.extend_from_slice(id.unwrap_or_default());
                out.extend_from_slice(b"\",\"result\":[{\"count\":1}],\"error\":null}");
            }
            stream.write_all(&out)?;
        }
        let mut gone = gone.into_iter();
        clients.retain(|_| gone.next() == Some(false));
    }
    Ok(())
}
