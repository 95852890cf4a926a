//! What a lock on the schema costs: an ablation.
//!
//! `cargo bench -p cowslip-ldap-server --bench schema -- [SECONDS]`
//!
//! First a loop that does nothing but look attribute types up, each thread on its own, with the schema behind
//! * a read-write lock that is taken, and a count that is raised and lowered, for each look-up (389 Directory Server's way),
//! * a mutex around an `Arc`, cloned once for each operation of eight look-ups,
//! * the engine's reader: a generation that is compared, and a root that is borrowed.
//!
//! Then modifies of one directory in memory, planned by as many threads, each with its eight look-ups done in one of the
//! three ways. The modify rate is bounded by the one committer, so a lock shows there only as far as planning counts.
//! More threads than the machine has cores measure the scheduler, and are marked.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use cowslip_engine::Reader;
use cowslip_ldap::schema::{AttributeTypeId, Schema};
use cowslip_ldap_server::host::{Job, Progress, Request, WriteJob};
use cowslip_ldap_server::model::Directory;
use cowslip_ldap_server::operations::prepare::{self, Given, Origin};
use cowslip_ldap_server::operations::{Brought, ChangeKind, Plan};
use cowslip_ldap_server::service::{Service, ServiceOptions};

/// What a modify of two attributes of a person looks up: four types of its name, two that it changes, two of the rules.
const NAMES: [&str; 8] = ["uid", "ou", "dc", "dc", "street", "description", "objectClass", "modifiersName"];

const PEOPLE: usize = 10_000;

/// One way to share the schema.
trait Sharing: Send + Sync {
    fn name(&self) -> &'static str;
    /// A thread's own part in it.
    fn worker(self: Arc<Self>) -> Box<dyn FnMut() -> u32 + Send>;
}

struct Locked {
    schema: RwLock<Schema>,
    owners: Vec<AtomicU64>,
}

impl Sharing for Locked {
    fn name(&self) -> &'static str {
        "lock and count per look-up"
    }

    fn worker(self: Arc<Self>) -> Box<dyn FnMut() -> u32 + Send> {
        Box::new(move || {
            let mut sum = 0;
            for name in NAMES {
                let id = {
                    let schema = self.schema.read().expect("nobody panics");
                    let id = schema.attribute(black_box(name)).unwrap_or(AttributeTypeId::CN);
                    self.owners[id.0 as usize].fetch_add(1, Ordering::AcqRel);
                    id
                };
                sum += id.0;
                self.owners[id.0 as usize].fetch_sub(1, Ordering::AcqRel);
            }
            sum
        })
    }
}

struct Cell(Mutex<Arc<Schema>>);

impl Sharing for Cell {
    fn name(&self) -> &'static str {
        "mutex around an Arc"
    }

    fn worker(self: Arc<Self>) -> Box<dyn FnMut() -> u32 + Send> {
        Box::new(move || {
            let schema = Arc::clone(&self.0.lock().expect("nobody panics"));
            looked_up(&schema)
        })
    }
}

struct Borrowed(Reader<Directory>);

impl Sharing for Borrowed {
    fn name(&self) -> &'static str {
        "borrowed from the root"
    }

    fn worker(self: Arc<Self>) -> Box<dyn FnMut() -> u32 + Send> {
        let reader = self.0.clone();
        Box::new(move || looked_up(&reader.root().meta().schema))
    }
}

fn looked_up(schema: &Schema) -> u32 {
    NAMES.iter().map(|name| schema.attribute(black_box(name)).map_or(0, |id| id.0)).sum()
}

/// Runs `work` on so many threads for a while; gives how often per second in all.
fn rate(threads: usize, time: Duration, work: impl Fn(usize) -> Box<dyn FnMut() -> u32 + Send>) -> f64 {
    let is_over = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..threads)
        .map(|number| {
            let mut work = work(number);
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                let mut count = 0_u64;
                while !is_over.load(Ordering::Relaxed) {
                    black_box(work());
                    count += 1;
                }
                count
            })
        })
        .collect();
    let start = Instant::now();
    thread::sleep(time);
    is_over.store(true, Ordering::Relaxed);
    let count: u64 = workers.into_iter().map(|worker| worker.join().expect("a worker")).sum();
    count as f64 / start.elapsed().as_secs_f64()
}

fn directory() -> Service {
    let service = Service::in_memory(&ServiceOptions::new(["dc=example,dc=com"])).expect("a directory");
    let add = |dn: &str, attributes: &[(&str, &str)]| {
        let given: Vec<Given<'_>> = attributes
            .iter()
            .map(|(name, value)| Given { description: name.as_bytes(), values: vec![value.as_bytes()] })
            .collect();
        let root = service.root();
        let plan = prepare::add(dn.as_bytes(), &given, Brought::default(), Origin::Client, root.meta());
        submit(&service, Plan::Add(plan.expect("a plan")));
    };
    add("dc=example,dc=com", &[("objectClass", "domain")]);
    add("ou=People,dc=example,dc=com", &[("objectClass", "organizationalUnit")]);
    for number in 1..=PEOPLE {
        let dn = format!("uid=user.{number},ou=People,dc=example,dc=com");
        add(&dn, &[("objectClass", "inetOrgPerson"), ("cn", "A User"), ("sn", "User")]);
    }
    service
}

fn submit(service: &Service, plan: Plan) {
    let (sender, answer) = mpsc::channel();
    let job = WriteJob {
        request: Request::None,
        plan,
        version: service.reader().root().meta().version,
        who: "cn=admin".into(),
        progress: Progress::default(),
        is_durable: false,
        answer: Box::new(move |answer| sender.send(answer).expect("the bench waits")),
    };
    service.submit(Job::Write(Box::new(job))).expect("an open directory");
    answer.recv().expect("an answer").expect("a success");
}

fn modifier(
    service: &Service,
    number: usize,
    mut look_up: Box<dyn FnMut() -> u32 + Send>,
) -> Box<dyn FnMut() -> u32 + Send> {
    let (service, reader) = (service.clone(), service.reader());
    let mut state = number as u64 + 1;
    Box::new(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let person = 1 + (state >> 33) as usize % PEOPLE;
        let (dn, value) =
            (format!("uid=user.{person},ou=People,dc=example,dc=com"), format!("{:012}", state >> 24));
        let sum = look_up();
        let given =
            |name: &'static str| Given { description: name.as_bytes(), values: vec![value.as_bytes()] };
        let changes = [(ChangeKind::Replace, given("street")), (ChangeKind::Replace, given("description"))];
        let plan = prepare::modify(dn.as_bytes(), &changes, reader.root().meta()).expect("a plan");
        submit(&service, plan);
        sum
    })
}

fn main() {
    let seconds = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(1.0);
    let time = Duration::from_secs_f64(seconds);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let service = directory();
    let owners = (0..Schema::standard().attribute_type_count()).map(|_| AtomicU64::new(0)).collect();
    let ways: [Way; 3] = {
        fn way<S: Sharing + 'static>(sharing: S) -> Way {
            let sharing = Arc::new(sharing);
            Arc::new(move || (sharing.name(), Arc::clone(&sharing).worker()))
        }
        [
            way(Locked { schema: RwLock::new(Schema::standard()), owners }),
            way(Cell(Mutex::new(Arc::new(Schema::standard())))),
            way(Borrowed(service.reader())),
        ]
    };
    println!("eight look-ups of attribute types, millions per second in all; {cores} cores");
    table(cores, &ways, |way, threads| rate(threads, time, |_| way().1) / 1e6);
    println!("\nmodifies of a directory in memory, thousands per second in all");
    table(cores, &ways, |way, threads| {
        rate(threads, time, |number| modifier(&service, number, way().1)) / 1e3
    });
    service.shutdown().expect("a clean end");
}

type Way = Arc<dyn Fn() -> (&'static str, Box<dyn FnMut() -> u32 + Send>)>;

fn table(cores: usize, ways: &[Way], measure: impl Fn(&Way, usize) -> f64) {
    println!("{:30} {:>8} {:>8} {:>8} {:>8}   2 threads / 1", "threads", 1, 2, 4, 8);
    for way in ways {
        let rates = [1, 2, 4, 8].map(|threads| measure(way, threads));
        let cells: Vec<String> = rates.iter().map(|rate| format!("{rate:8.2}")).collect();
        println!("{:30} {}   {:.2}", way().0, cells.join(" "), rates[1] / rates[0]);
    }
    println!("(more threads than {cores} cores measure the scheduler)");
}
