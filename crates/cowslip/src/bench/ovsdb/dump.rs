//! First dumps: one table, asked for with `monitor_cond_since` by one client and by many at once.

use super::DumpArgs;
use super::load::{Reader, read_all, send_all};
use super::peer::Peer;
use super::schema::{clear, fill_flows, monitor_flows, touch};
use crate::bench::error::BenchError;
use crate::bench::machine::{cpu_time, heading, resident_mb};
use crate::bench::report::{known, ratio, table};
use std::time::{Duration, Instant};

/// The most clients at once; each has two file descriptors in the end.
const CLIENTS_MAX: usize = 400;

/// What one number of clients led to.
struct Outcome {
    seconds: f64,
    megabytes: f64,
    cpu: Option<Duration>,
    resident: Option<(f64, f64)>,
}

/// Runs the measurement.
pub(super) fn run(args: &DumpArgs) -> Result<(), BenchError> {
    if args.clients.is_empty() || args.clients.iter().any(|n| !(1..=CLIENTS_MAX).contains(n)) {
        return Err(BenchError::Usage(format!("1 to {CLIENTS_MAX} clients")));
    }
    let peers = args.peers.peers();
    println!("{}", heading(&format!("OVSDB: first dump of {} rows", args.rows), &super::versions(&peers)?));
    let mut results = Vec::new();
    for peer in &peers {
        eprintln!("filling and dumping: {}", peer.name());
        results.push(measure(peer, args)?);
    }
    println!("{}", rows(&peers, args, &results));
    Ok(())
}

fn measure(peer: &Peer, args: &DumpArgs) -> Result<Vec<Outcome>, BenchError> {
    let server = peer.start()?;
    send_all(&server.address, &[clear()])?;
    send_all(&server.address, &fill_flows(args.rows))?;
    let request = monitor_flows();
    let length = reply_length(&server.address, &request, args)?;
    let mut outcomes = Vec::new();
    for count in &args.clients {
        send_all(&server.address, &[touch()])?;
        let mut readers = Vec::new();
        for _ in 0..*count {
            readers.push(Reader::open(&server.address)?);
        }
        let before = server.pid.and_then(cpu_time);
        let start = Instant::now();
        for reader in &mut readers {
            reader.send(&request)?;
        }
        let bytes = read_all(&mut readers, length)?;
        let seconds = start.elapsed().as_secs_f64();
        let cpu =
            before.zip(server.pid.and_then(cpu_time)).map(|(before, after)| after.saturating_sub(before));
        let resident = server.pid.and_then(resident_mb);
        outcomes.push(Outcome { seconds, megabytes: bytes as f64 / 1e6, cpu, resident });
    }
    Ok(outcomes)
}

/// Every client gets a reply of the same length; it is measured once where one client alone has the time to look for
/// the end of its reply and many have not.
fn reply_length(address: &str, request: &str, args: &DumpArgs) -> Result<Option<u64>, BenchError> {
    if args.clients.iter().all(|count| *count == 1) {
        return Ok(None);
    }
    let mut reader = Reader::open(address)?;
    reader.send(request)?;
    read_all(std::slice::from_mut(&mut reader), None).map(Some)
}

fn rows(peers: &[Peer], args: &DumpArgs, results: &[Vec<Outcome>]) -> String {
    let mut rows = Vec::new();
    let base = peers.iter().position(|peer| *peer == Peer::Real).filter(|_| peers.len() > 1);
    for (at, count) in args.clients.iter().enumerate() {
        for (peer, outcomes) in peers.iter().zip(results) {
            let outcome = &outcomes[at];
            let seconds = |outcome: &Outcome| Some(outcome.seconds);
            let cpu = |outcome: &Outcome| outcome.cpu.map(|cpu| cpu.as_secs_f64());
            let versus = |value: &dyn Fn(&Outcome) -> Option<f64>| match (peer, base) {
                (Peer::Real, _) => String::new(),
                (_, base) => ratio(value(outcome), base.and_then(|p| value(&results[p][at]))),
            };
            rows.push(vec![
                count.to_string(),
                peer.name().to_owned(),
                format!("{:.3}", outcome.seconds),
                format!("{:.1}", outcome.megabytes),
                known(cpu(outcome), 2),
                known(outcome.resident.map(|r| r.0), 0),
                known(outcome.resident.map(|r| r.1), 0),
                versus(&seconds),
                versus(&cpu),
            ]);
        }
    }
    let headings = [
        "clients",
        "server",
        "s to last byte",
        "MB each",
        "server CPU s",
        "RSS MB",
        "peak MB",
        "time to real",
        "CPU to real",
    ];
    table(&headings, &rows)
}
