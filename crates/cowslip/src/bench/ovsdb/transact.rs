//! Transactions: every operation in every shape, the servers in turns.

use super::TransactArgs;
use super::answer::Answerer;
use super::load::{self, Outcome, Shape, Template};
use super::peer::Peer;
use super::schema::{Operation, clear, fill_network};
use crate::bench::error::BenchError;
use crate::bench::machine::{cpu_time, heading};
use crate::bench::report::{known, milliseconds, quantile, ratio, table};
use std::time::Duration;

/// The numbers of requests of one cell of the table; the next cell's start above them.
const NUMBERS_PER_CELL: u64 = 50_000_000;
/// The most cells whose numbers still have the digits of a request's field.
const CELLS_MAX: u64 = 199;
/// How long the generator is measured against the server that does nothing.
const CEILING_TIME: Duration = Duration::from_millis(500);

/// All rounds of one operation in one shape on one server.
#[derive(Default)]
struct Cell {
    outcome: Outcome,
    cpu: Option<Duration>,
}

impl Cell {
    fn add(&mut self, outcome: Outcome, cpu: Option<Duration>) {
        self.outcome.latencies.extend(outcome.latencies);
        self.outcome.elapsed += outcome.elapsed;
        self.cpu = cpu.map(|cpu| self.cpu.unwrap_or_default() + cpu);
    }

    fn rate(&self) -> Option<f64> {
        let seconds = self.outcome.elapsed.as_secs_f64();
        (seconds > 0.0).then(|| self.outcome.latencies.len() as f64 / seconds)
    }

    fn cpu_us(&self) -> Option<f64> {
        let count = self.outcome.latencies.len();
        self.cpu.filter(|_| count > 0).map(|cpu| cpu.as_secs_f64() * 1e6 / count as f64)
    }
}

/// Runs the measurement.
pub(super) fn run(args: &TransactArgs) -> Result<(), BenchError> {
    let peers = args.peers.peers();
    let cells: Vec<(Operation, Shape)> =
        args.ops.iter().flat_map(|op| args.shapes.iter().map(|shape| (*op, *shape))).collect();
    if cells.is_empty() || cells.len() as u64 > CELLS_MAX || !(0.01..=600.0).contains(&args.seconds) {
        return Err(BenchError::Usage(format!(
            "1 to {CELLS_MAX} operations times shapes, 0.01 to 600 seconds each"
        )));
    }
    let kind = if args.durable { "durable transactions" } else { "transactions" };
    println!("{}", heading(&format!("OVSDB: {kind}"), &super::versions(&peers)?));
    println!("{}\n", ceiling(args)?);
    let mut results: Vec<Vec<Cell>> =
        peers.iter().map(|_| cells.iter().map(|_| Cell::default()).collect()).collect();
    for round in 1..=args.rounds {
        for (peer, results) in peers.iter().zip(&mut results) {
            eprintln!("round {round} of {}: {}", args.rounds, peer.name());
            measure(peer, args, &cells, results)?;
        }
    }
    println!("{}", rows(&peers, &cells, &mut results));
    Ok(())
}

/// One turn of a server: a fresh start, then cell after cell.
fn measure(
    peer: &Peer,
    args: &TransactArgs,
    cells: &[(Operation, Shape)],
    results: &mut [Cell],
) -> Result<(), BenchError> {
    let server = peer.start()?;
    load::send_all(&server.address, &[clear()])?;
    load::send_all(&server.address, &fill_network())?;
    let cpu = || server.pid.and_then(cpu_time);
    for (at, ((operation, shape), result)) in cells.iter().zip(results).enumerate() {
        let template = Template::new(*operation, args.durable);
        let first = at as u64 * NUMBERS_PER_CELL;
        let before = cpu();
        let outcome =
            load::run(&server.address, &template, *shape, Duration::from_secs_f64(args.seconds), first)?;
        let used = before.zip(cpu()).map(|(before, after)| after.saturating_sub(before));
        result.add(outcome, used);
    }
    Ok(())
}

/// What the generator reaches when the server does nothing.
fn ceiling(args: &TransactArgs) -> Result<String, BenchError> {
    let template = Template::new(args.ops[0], args.durable);
    let mut rates = Vec::new();
    for shape in &args.shapes {
        let answerer = Answerer::start(shape.connections)?;
        let outcome = load::run(&answerer.address, &template, *shape, CEILING_TIME, 0)?;
        let rate = outcome.latencies.len() as f64 / outcome.elapsed.as_secs_f64();
        rates.push(format!("{shape}: {rate:.0}/s"));
    }
    Ok(format!(
        "The generator's own ceiling, against a server that answers without working: {}.",
        rates.join(", ")
    ))
}

fn rows(peers: &[Peer], cells: &[(Operation, Shape)], results: &mut [Vec<Cell>]) -> String {
    let mut rows = Vec::new();
    for (at, (operation, shape)) in cells.iter().enumerate() {
        let base = peers.iter().position(|peer| *peer == Peer::Real).filter(|_| peers.len() > 1);
        let base = base.map(|p| (results[p][at].rate(), results[p][at].cpu_us()));
        for (p, peer) in peers.iter().enumerate() {
            let cell = &mut results[p][at];
            cell.outcome.latencies.sort_unstable();
            let cell = &results[p][at];
            let versus = |value, base: Option<Option<f64>>| match peer {
                Peer::Real => String::new(),
                _ => ratio(value, base.flatten()),
            };
            rows.push(vec![
                operation.name().to_owned(),
                shape.to_string(),
                peer.name().to_owned(),
                known(cell.rate(), 0),
                milliseconds(quantile(&cell.outcome.latencies, 0.5)),
                milliseconds(quantile(&cell.outcome.latencies, 0.99)),
                known(cell.cpu_us(), 1),
                versus(cell.rate(), base.map(|b| b.0)),
                versus(cell.cpu_us(), base.map(|b| b.1)),
            ]);
        }
    }
    let headings = [
        "transaction",
        "conns x depth",
        "server",
        "ops/s",
        "p50 ms",
        "p99 ms",
        "server CPU us/op",
        "rate to real",
        "CPU to real",
    ];
    table(&headings, &rows)
}
