//! A measurement: every number of connections on every server, the servers in turns, as a table and as JSON.

use super::LoadArgs;
use super::answer;
use super::load::{Generator, Outcome};
use super::peer::{Peer, Server, Setup};
use super::population::people;
use super::requests::{Kind, Requests, Subject};
use super::usage::{Usage, machine_busy_s};
use crate::bench::error::BenchError;
use crate::bench::machine::heading;
use crate::bench::report::{known, milliseconds, quantile, ratio, table};
use cowslip_ldap::result::ResultCode;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

/// How long the generator is measured against the server that does nothing.
const CEILING_TIME: Duration = Duration::from_millis(500);
/// How long a load may run, in seconds.
const SECONDS_MAX: f64 = 600.0;
/// The names of added entries of one load are below this many.
const NEW_PER_LOAD: u64 = 100_000_000;

/// All rounds of one number of connections on one server.
#[derive(Default)]
struct Cell {
    outcome: Outcome,
    server: Option<Usage>,
    generator: Usage,
    /// Seconds that others kept the processors busy.
    others_s: f64,
    memory_mb: Option<f64>,
}

impl Cell {
    fn count(&self) -> f64 {
        self.outcome.latencies.len() as f64
    }

    fn rate(&self) -> Option<f64> {
        let seconds = self.outcome.elapsed.as_secs_f64();
        (seconds > 0.0).then(|| self.count() / seconds)
    }

    /// A share of something that was used per operation done.
    fn per_operation(&self, amount: f64) -> Option<f64> {
        (self.count() > 0.0).then(|| amount / self.count())
    }

    fn server_us(&self, seconds: fn(&Usage) -> f64) -> Option<f64> {
        self.per_operation(seconds(self.server.as_ref()?) * 1e6)
    }

    fn errors(&self) -> String {
        let one = |(code, count): (&u32, &u64)| format!("{count} x {}", ResultCode::from_number(*code));
        let errors: Vec<String> = self.outcome.refused.iter().map(one).collect();
        if errors.is_empty() { "0".to_owned() } else { errors.join(", ") }
    }
}

/// What a measurement measures: a server to be started, or one that runs.
#[derive(Clone, Copy)]
enum Target<'a> {
    Start(Peer),
    Running(&'a LoadArgs, &'a str),
}

impl Target<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Start(peer) => peer.name(),
            Self::Running(_, url) => url,
        }
    }

    fn server(&self, setup: &Setup) -> Result<Server, BenchError> {
        match self {
            Self::Start(peer) => peer.start(setup),
            Self::Running(args, url) => {
                Ok(Server::running(url, &args.bind_dn, &args.bind_password, args.pid))
            }
        }
    }

    fn version(&self) -> Result<String, BenchError> {
        match self {
            Self::Start(peer) => peer.version(),
            Self::Running(_, url) => Ok(format!("the server at {url}")),
        }
    }
}

/// Runs the measurement.
pub(super) fn run(kind: Kind, args: &LoadArgs) -> Result<(), BenchError> {
    check(kind, args)?;
    let targets: Vec<Target<'_>> = match &args.url {
        Some(url) => vec![Target::Running(args, url)],
        None => args.against.iter().map(|peer| Target::Start(*peer)).collect(),
    };
    let mut lines = targets.iter().map(Target::version).collect::<Result<Vec<_>, _>>()?;
    lines.push(conditions(args));
    println!("{}", heading(&format!("LDAP: {}", kind.name()), &lines));
    let subject = subject(args);
    println!("{}\n", ceiling(kind, args, &subject)?);
    let mut results: Vec<Vec<Cell>> =
        targets.iter().map(|_| args.connections.iter().map(|_| Cell::default()).collect()).collect();
    for round in 0..args.rounds {
        for (target, cells) in targets.iter().zip(&mut results) {
            eprintln!("round {} of {}: {}", round + 1, args.rounds, target.name());
            let server = target.server(&setup(args))?;
            turn(&server, kind, args, &subject, u64::from(round), cells)?;
        }
    }
    results.iter_mut().flatten().for_each(|cell| cell.outcome.latencies.sort_unstable());
    println!("{}", rows(kind, args, &targets, &results));
    args.json.as_ref().map_or(Ok(()), |path| {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all(json(kind, args, &targets, &results).as_bytes())?;
        Ok(())
    })
}

fn check(kind: Kind, args: &LoadArgs) -> Result<(), BenchError> {
    let usage = |text: &str| Err(BenchError::Usage(text.to_owned()));
    let in_range = |seconds: f64| (0.0..=SECONDS_MAX).contains(&seconds);
    if !in_range(args.duration) || args.duration < 0.01 || !in_range(args.warm_up) {
        return usage("a load runs for 0.01 to 600 seconds");
    }
    let writes = matches!(kind, Kind::Modify | Kind::Add | Kind::Delete);
    if args.against.contains(&Peer::Floor) && !writes {
        return usage("the floor only takes writes: modrate, addrate, deleterate");
    }
    if kind == Kind::Bind && args.pipeline > 1 {
        return usage("a client may send nothing behind a bind before its answer (RFC 4511 section 4.2.1)");
    }
    if kind == Kind::Delete && args.connections.len() > 1 {
        return usage("deleterate takes one number of connections, because each entry goes once");
    }
    Ok(())
}

fn setup(args: &LoadArgs) -> Setup {
    Setup {
        entries: args.entries,
        indexes: args.indexes,
        access_log: args.access_log,
        is_durable: !args.no_sync,
    }
}

fn subject(args: &LoadArgs) -> Subject {
    let entries = args.entry_dn.clone().unwrap_or_else(|| people(args.entries));
    let mut subject = Subject::new(entries, &args.base);
    if !args.attributes.is_empty() {
        subject.attributes.clone_from(&args.attributes);
    }
    subject.value_bytes = args.value_length as usize;
    subject.password.clone_from(&args.entry_password);
    subject
}

fn conditions(args: &LoadArgs) -> String {
    if args.url.is_some() {
        return "its entries, indexes and durability as they are".to_owned();
    }
    let indexes = match args.indexes {
        super::Indexes::Common => "objectClass and uid eq",
        super::Indexes::Dirsrv => {
            "objectClass and uid eq; cn, sn, givenName, mail, telephoneNumber eq and sub"
        }
    };
    format!(
        "{} entries; indexes of all: {indexes} (and what each needs for itself); access log {}; {}",
        args.entries,
        if args.access_log { "on" } else { "off" },
        if args.no_sync {
            "writes answered before they are on the disk"
        } else {
            "writes durable before their answer"
        },
    )
}

/// One turn of a server: one load after the other.
fn turn(
    server: &Server,
    kind: Kind,
    args: &LoadArgs,
    subject: &Subject,
    round: u64,
    cells: &mut [Cell],
) -> Result<(), BenchError> {
    for ((at, connections), cell) in (0..).zip(&args.connections).zip(cells) {
        let user = (server.user.as_str(), server.password.as_str());
        let mut generator =
            Generator::open(&server.url, user, usize::from(*connections), usize::from(args.pipeline))?;
        let first_new = (round * args.connections.len() as u64 + at) * NEW_PER_LOAD + 1;
        let mut requests = Requests::new(kind, subject, first_new, first_new);
        generator.run(&mut requests, Duration::from_secs_f64(args.warm_up))?;
        let own = std::process::id();
        let busy = machine_busy_s();
        let before = (server.pid.and_then(Usage::of), Usage::of(own));
        let outcome = generator.run(&mut requests, Duration::from_secs_f64(args.duration))?;
        let after = (server.pid.and_then(Usage::of), Usage::of(own));
        let used = after.0.zip(before.0).map(|(after, before)| after - before);
        let generated = after.1.zip(before.1).map_or(Usage::default(), |(after, before)| after - before);
        if let Some(used) = used {
            *cell.server.get_or_insert_default() += used;
        }
        let busy_s = machine_busy_s().zip(busy).map_or(0.0, |(after, before)| after - before);
        cell.others_s += (busy_s - used.map_or(0.0, |used| used.cpu_s()) - generated.cpu_s()).max(0.0);
        cell.generator += generated;
        cell.memory_mb = server.memory_mb();
        cell.outcome.add(outcome);
        if kind == Kind::Delete && requests.made() == subject.entries.len() {
            eprintln!("all entries are deleted; the load ended there");
        }
    }
    Ok(())
}

/// What the generator reaches when the server does nothing.
fn ceiling(kind: Kind, args: &LoadArgs, subject: &Subject) -> Result<String, BenchError> {
    let mut rates = Vec::new();
    for connections in &args.connections {
        let connections = usize::from(*connections);
        let url = answer::start(connections)?;
        let mut generator = Generator::open(&url, ("", ""), connections, usize::from(args.pipeline))?;
        let mut requests = Requests::new(kind, subject, 1, 1);
        let before = Usage::of(std::process::id());
        let outcome = generator.run(&mut requests, CEILING_TIME)?;
        let used = Usage::of(std::process::id()).zip(before).map(|(after, before)| after - before);
        let count = outcome.latencies.len() as f64;
        rates.push(format!(
            "{connections}x{}: {:.0}/s at {} us for both ends",
            args.pipeline,
            count / outcome.elapsed.as_secs_f64(),
            known(used.map(|used| used.cpu_s() * 1e6 / count), 1),
        ));
    }
    Ok(format!(
        "The generator's own ceiling, against a server that answers without working: {}.",
        rates.join("; ")
    ))
}

fn rows(kind: Kind, args: &LoadArgs, targets: &[Target<'_>], results: &[Vec<Cell>]) -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let mut rows = Vec::new();
    for (at, connections) in args.connections.iter().enumerate() {
        let base = &results[0][at];
        for (target, cells) in targets.iter().zip(results) {
            let cell = &cells[at];
            let seconds = cell.outcome.elapsed.as_secs_f64();
            let quantile = |share| milliseconds(quantile(&cell.outcome.latencies, share));
            let server_cpu = cell.server_us(Usage::cpu_s);
            rows.push(vec![
                kind.name().to_owned(),
                format!("{connections}x{}", args.pipeline),
                target.name().to_owned(),
                known(cell.rate(), 0),
                quantile(0.5),
                quantile(0.95),
                quantile(0.99),
                milliseconds(cell.outcome.latencies.last().copied().unwrap_or_default()),
                known(cell.server_us(|used| used.user_s), 1),
                known(cell.server_us(|used| used.system_s), 1),
                known(server_cpu, 1),
                known(cell.server.and_then(|used| cell.per_operation(used.switches as f64)), 1),
                known(cell.per_operation(cell.generator.cpu_s() * 1e6), 1),
                format!("{:.0}", cell.others_s * 100.0 / (seconds * processors).max(f64::MIN_POSITIVE)),
                known(cell.memory_mb, 0),
                cell.errors(),
                ratio(cell.rate(), base.rate()),
                ratio(server_cpu, base.server_us(Usage::cpu_s)),
            ]);
        }
    }
    let of_base = |what: &str| format!("{what} to {}", targets[0].name());
    let (rate, cpu) = (of_base("rate"), of_base("CPU"));
    let headings = [
        "operation",
        "conns x depth",
        "server",
        "ops/s",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "max ms",
        "user us/op",
        "system us/op",
        "server CPU us/op",
        "switches/op",
        "client us/op",
        "others' CPU %",
        "server MB",
        "errors",
        &rate,
        &cpu,
    ];
    table(&headings, &rows)
}

/// One object a line, with numbers that are not known left out.
fn json(kind: Kind, args: &LoadArgs, targets: &[Target<'_>], results: &[Vec<Cell>]) -> String {
    let mut out = String::new();
    for (target, cells) in targets.iter().zip(results) {
        for (connections, cell) in args.connections.iter().zip(cells) {
            let ms = |share| Some(quantile(&cell.outcome.latencies, share).as_secs_f64() * 1e3);
            let errors = cell.outcome.refused.values().sum::<u64>() as f64;
            let numbers = [
                ("connections", Some(f64::from(*connections))),
                ("pipeline", Some(f64::from(args.pipeline))),
                ("operations", Some(cell.count())),
                ("seconds", Some(cell.outcome.elapsed.as_secs_f64())),
                ("operations_per_s", cell.rate()),
                ("p50_ms", ms(0.5)),
                ("p95_ms", ms(0.95)),
                ("p99_ms", ms(0.99)),
                ("max_ms", ms(1.0)),
                ("server_user_us", cell.server_us(|used| used.user_s)),
                ("server_system_us", cell.server_us(|used| used.system_s)),
                ("server_switches", cell.server.map(|used| used.switches as f64)),
                ("client_us", cell.per_operation(cell.generator.cpu_s() * 1e6)),
                ("others_cpu_s", Some(cell.others_s)),
                ("server_mb", cell.memory_mb),
                ("entries", Some(cell.outcome.entries as f64)),
                ("errors", Some(errors)),
            ];
            let name = target.name().replace(['"', '\\'], "");
            let _ = write!(out, "{{\"operation\":\"{}\",\"server\":\"{name}\"", kind.name());
            for (key, number) in numbers {
                if let Some(number) = number.filter(|number| number.is_finite()) {
                    let _ = write!(out, ",\"{key}\":{number}");
                }
            }
            out.push_str("}\n");
        }
    }
    out
}
