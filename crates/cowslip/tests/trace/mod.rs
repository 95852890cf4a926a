//! System calls, traced by `strace -f -y`: does each reply leave after the sync that followed its write?
//!
//! `kill -9` never loses what was written, so only a trace (or a simulated disk) tells a server that syncs from one that
//! does not.

use std::collections::BTreeMap;

/// The calls to trace.
pub(crate) const CALLS: &str = "trace=write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,sendto,sendmsg";

/// How strace is started, up to the name of the file that takes the trace.
pub(crate) const STRACE: [&str; 8] = ["strace", "-f", "-y", "-s", "1000000", "-e", CALLS, "-o"];

/// A marked request: the text that its write to the disk has, and the one that its reply has, as strace prints them.
#[derive(Debug, Clone)]
pub(crate) struct Marked {
    /// What stands in the write to the disk.
    pub(crate) written: String,
    /// What stands in the reply.
    pub(crate) replied: String,
}

/// One system call: the lines where it began and ended, and what it was.
#[derive(Debug)]
struct Call {
    begin: usize,
    end: usize,
    text: String,
}

/// Reads a trace: calls of several threads may be cut in two lines.
fn calls(trace: &str) -> Vec<Call> {
    let (mut open, mut calls): (BTreeMap<&str, (usize, String)>, Vec<Call>) = (BTreeMap::new(), Vec::new());
    // Writes are padded with zeros, in which nothing is looked for.
    let trace = &trace.replace(r"\0\0\0\0\0\0\0\0", "");
    for (at, line) in trace.lines().enumerate() {
        // With one thread strace leaves the thread's number out.
        let (thread, rest) = match line.split_once(' ') {
            Some((number, rest)) if number.bytes().all(|b| b.is_ascii_digit()) => (number, rest.trim_start()),
            _ => ("", line),
        };
        if let Some(begun) = rest.strip_suffix(" <unfinished ...>") {
            open.insert(thread, (at, begun.to_owned()));
        } else if rest.starts_with("<... ") {
            if let Some((begin, begun)) = open.remove(thread) {
                calls.push(Call { begin, end: at, text: begun + rest });
            }
        } else {
            calls.push(Call { begin: at, end: at, text: rest.to_owned() });
        }
    }
    calls.extend(open.into_values().map(|(begin, text)| Call { begin, end: usize::MAX, text }));
    calls
}

/// For each marked request: was its record written, then a sync begun and ended, and only then the reply begun? `file` is
/// the beginning of the paths of the files that hold the records.
pub(crate) fn check(trace: &str, file: &str, marked: &[Marked]) -> Result<(), String> {
    let calls = calls(trace);
    let file = format!("<{file}");
    let name = |call: &Call| call.text.split('(').next().unwrap_or("").to_owned();
    let of_file = |call: &&Call| call.text.contains(&file);
    let sync =
        |call: &&Call| matches!(name(call).as_str(), "fdatasync" | "fsync") && call.text.ends_with("= 0");
    let write = |call: &&Call| name(call).contains("write");
    let to_socket = |call: &&Call| {
        let socket = ["<socket:[", "<UNIX", "<TCP"].iter().any(|kind| call.text.contains(kind));
        socket && matches!(name(call).as_str(), "write" | "writev" | "sendto" | "sendmsg")
    };
    let syncs: Vec<&Call> = calls.iter().filter(of_file).filter(sync).collect();
    let writes: Vec<&Call> = calls.iter().filter(of_file).filter(write).collect();
    let replies: Vec<&Call> = calls.iter().filter(to_socket).collect();
    let mut problems = Vec::new();
    for (n, mark) in marked.iter().enumerate() {
        let written = writes.iter().find(|call| call.text.contains(&mark.written));
        let replied = replies.iter().find(|call| call.text.contains(&mark.replied));
        let (Some(written), Some(replied)) = (written, replied) else {
            return Err(format!("request {n}, {mark:?}: write {written:?}, reply {replied:?}"));
        };
        if !syncs.iter().any(|sync| sync.begin > written.end && sync.end < replied.begin) {
            problems.push(n);
        }
    }
    match problems.first() {
        None => Ok(()),
        Some(n) => {
            Err(format!("{} replies without a sync before them, the first to request {n}", problems.len()))
        }
    }
}

/// The checker itself, on traces short enough to read.
#[test]
fn a_trace_is_understood() {
    let mark = |n| Marked { written: format!("mark-{n:05}"), replied: format!("reply-{n:05}") };
    let marked: Vec<Marked> = (0..5).map(mark).collect();
    let lines = |reply_after_sync: bool| {
        let mut text = String::new();
        for mark in &marked {
            let reply = format!("8 sendto(9<UNIX-STREAM:[1->2]>, \"{}\") = 5\n", mark.replied);
            text += &format!(
                "7 pwrite64(5</d/db>, \"{}\" <unfinished ...>\n8 write(6</x>, \"\") = 1\n",
                mark.written
            );
            text += "7 <... pwrite64 resumed>) = 30\n7 fdatasync(5</d/db> <unfinished ...>\n";
            if !reply_after_sync {
                text += &reply;
            }
            text += "7 <... fdatasync resumed>) = 0\n";
            if reply_after_sync {
                text += &reply;
            }
        }
        text
    };
    assert_eq!(check(&lines(true), "/d/db>", &marked), Ok(()));
    assert!(check(&lines(false), "/d/db>", &marked).is_err_and(|e| e.contains("without a sync")));
    assert!(check(&lines(true), "/d/other>", &marked).is_err());
    assert!(check("", "/d/db>", &marked).is_err());
}
