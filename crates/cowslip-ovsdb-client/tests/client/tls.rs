//! Over TLS to the real `ovsdb-server`: who trusts whom, in which version, and what becomes of certificates that change.

use crate::process::{PATIENCE, Process, create, wait_for};
use crate::support::{SCHEMA, text};
use cowslip_ovsdb_client::*;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// An authority that signs for servers and clients.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }
}

/// A server and its clients' files in one directory: `server-key`, `client-cert`, and so on.
struct Place {
    directory: TempDir,
    port: u16,
    process: Option<Process>,
    options: Vec<String>,
}

impl Place {
    /// A server that listens with TLS, with certificates of an authority for it and for a client.
    async fn new(authority: &Authority, options: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        create(directory.path(), "db", SCHEMA);
        let options = options.iter().map(|option| (*option).to_string()).collect();
        let mut place = Place { directory, port: 0, process: None, options };
        place.sign("server", authority);
        place.sign("client", authority);
        place.start().await;
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        // In one step, since a server may be reading.
        fs::write(self.path("new"), text).unwrap();
        fs::rename(self.path("new"), self.path(name)).unwrap();
    }

    fn sign(&self, whose: &str, authority: &Authority) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::default();
        let certificate = params.signed_by(&key, &authority.issuer).unwrap().pem();
        self.write(&format!("{whose}-ca"), &authority.pem);
        self.write(&format!("{whose}-key"), &key.serialize_pem());
        self.write(&format!("{whose}-cert"), &certificate);
    }

    /// Starts the server, at its old port if it had one.
    async fn start(&mut self) {
        let file = |option: &str, name: &str| format!("--{option}={}", self.path(name).display());
        let mut arguments = vec![
            file("private-key", "server-key"),
            file("certificate", "server-cert"),
            file("ca-cert", "server-ca"),
            format!("--remote=pssl:{}:127.0.0.1", self.port),
            "db".to_string(),
        ];
        arguments.extend(self.options.iter().cloned());
        self.process = Some(Process::start(self.directory.path(), &arguments));
        let log = self.path("log");
        let listening = || {
            let log = fs::read_to_string(&log).ok()?;
            let (_, rest) = log.split_once("127.0.0.1: listening on port ")?;
            rest.lines().next()?.parse().ok()
        };
        self.port = match self.port {
            0 => wait_for(listening).await,
            port => port,
        };
    }

    fn stop(&mut self) {
        self.process = None;
    }

    fn trusting(&self) -> TlsOptions {
        TlsOptions::new(self.path("client-ca"))
    }

    fn showing(&self) -> TlsOptions {
        self.trusting().identity(self.path("client-key"), self.path("client-cert"))
    }

    fn client(&self, tls: TlsOptions) -> Client {
        let quick = |o: &mut Options| {
            o.backoff_min = Duration::from_millis(5);
            o.backoff_max = Duration::from_millis(50);
        };
        let endpoint = format!("ssl:127.0.0.1:{}", self.port);
        let builder = Client::builder("T").endpoint(&endpoint).tls(tls).monitor(Monitor::everything());
        builder.with(quick).start().unwrap()
    }
}

async fn insert(client: &Client, name: &str) {
    let mut tx = client.transaction();
    let row = tx.insert("Plain", [("name", text(name))]);
    let results = client.transact(tx).await.unwrap();
    let snapshot = client.snapshot();
    let row = snapshot.row("Plain", results.uuid(row)).expect("own writes are in the cache");
    assert_eq!(row.value::<String>("name").unwrap(), name);
}

/// Waits until the client gives this reason for not being connected.
async fn wait_for_reason(client: &Client, wanted: &str) {
    let mut states = client.states();
    let has_reason =
        |state: &State| matches!(state, State::Waiting { reason, .. } if reason.contains(wanted));
    let found = tokio::time::timeout(PATIENCE, states.wait_for(has_reason)).await;
    assert!(found.is_ok(), "not {wanted}, but {:?}", client.state());
}

const UNSIGNED: &str = "the server's certificate is not signed by an authority of the CA certificate file";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_versions_carry_large_messages_both_ways() {
    let authority = Authority::new("ca");
    for versions in [&["--ssl-protocols=TLSv1.2"][..], &[]] {
        let place = Place::new(&authority, versions).await;
        let client = place.client(place.showing());
        client.ready().await.unwrap();
        insert(&client, &"x".repeat(3 << 20)).await;
        for n in 0..100 {
            insert(&client, &n.to_string()).await;
        }
        let other = place.client(place.showing());
        other.ready().await.unwrap();
        assert_eq!(other.snapshot().len("Plain"), 101, "{versions:?}");
        assert_eq!(other.counts().connections, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_transactions_at_once_are_all_brought_on_their_way() {
    let place = Place::new(&Authority::new("ca"), &[]).await;
    let client = place.client(place.showing());
    client.ready().await.unwrap();
    let tasks: Vec<_> = (0..300)
        .map(|n| {
            let client = client.clone();
            // Some larger than what TLS takes at once.
            let name = format!("{n}{}", "y".repeat(if n % 10 == 0 { 100_000 } else { 0 }));
            tokio::spawn(async move { insert(&client, &name).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!((client.snapshot().len("Plain"), client.counts().resyncs), (300, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_not_trusted_is_told_why() {
    let (authority, other) = (Authority::new("ca"), Authority::new("other"));
    for versions in [&["--ssl-protocols=TLSv1.2"][..], &[]] {
        let place = Place::new(&authority, versions).await;
        let silent = place.client(place.trusting());
        wait_for_reason(&silent, "it demands a certificate of its clients").await;

        place.sign("client", &other);
        place.write("client-ca", &authority.pem);
        let stranger = place.client(place.showing());
        wait_for_reason(&stranger, "the server does not trust the authority").await;

        place.write("client-ca", &other.pem);
        let distrustful = place.client(place.showing());
        wait_for_reason(&distrustful, UNSIGNED).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_looked_at_only_if_that_is_wanted() {
    let place = Place::new(&Authority::new("ca"), &[]).await;
    let named = place.client(place.showing().name_check(NameCheck::Host));
    wait_for_reason(&named, "the server's certificate is for another name").await;
    place.client(place.showing()).ready().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_replaced_while_the_client_runs() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let mut place = Place::new(&old, &[]).await;
    let client = place.client(place.showing());
    client.ready().await.unwrap();
    insert(&client, "a").await;

    // A certificate that is half written does no harm, on a connection and on the next one.
    place.write("client-cert", "-----BEGIN CERTIFICATE-----\nMII");
    let problem = client.reload_certificates().unwrap_err();
    assert_eq!(client.certificate_problem(), Some(problem));
    place.stop();
    client.states().wait_for(|state| !state.is_live()).await.unwrap();
    place.start().await;
    client.ready().await.unwrap();
    insert(&client, "b").await;
    assert!(client.certificate_problem().is_some());

    // The whole installation gets another authority; the client's files are the last to come.
    place.stop();
    client.states().wait_for(|state| !state.is_live()).await.unwrap();
    place.sign("server", &new);
    place.start().await;
    wait_for_reason(&client, UNSIGNED).await;
    place.sign("client", &new);
    client.ready().await.unwrap();
    assert_eq!(client.certificate_problem(), None);
    assert_eq!(client.reload_certificates(), Ok(false));
    insert(&client, "c").await;
    assert_eq!(client.snapshot().len("Plain"), 3);

    place.sign("client", &old);
    assert_eq!(client.reload_certificates(), Ok(true));
    insert(&client, "the connection goes on as it is").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_made_by_the_tools_of_open_vswitch_do() {
    let authority = Authority::new("unused");
    let mut place = Place::new(&authority, &[]).await;
    place.stop();
    let pki = |words: &[&str]| {
        let command = Command::new("ovs-pki")
            .current_dir(place.directory.path())
            .args(["--dir=pki", "--log=pki-log"])
            .args(words)
            .output()
            .expect("ovs-pki is missing: run `cargo xtask peers`");
        assert!(command.status.success(), "{}", String::from_utf8_lossy(&command.stderr));
    };
    pki(&["init"]);
    for (whose, kind) in [("server", "switch"), ("client", "controller")] {
        pki(&["req+sign", whose, kind]);
        fs::rename(place.path(&format!("{whose}-privkey.pem")), place.path(&format!("{whose}-key"))).unwrap();
        fs::rename(place.path(&format!("{whose}-cert.pem")), place.path(&format!("{whose}-cert"))).unwrap();
    }
    fs::copy(place.path("pki/controllerca/cacert.pem"), place.path("server-ca")).unwrap();
    fs::copy(place.path("pki/switchca/cacert.pem"), place.path("client-ca")).unwrap();
    place.start().await;
    let client = place.client(place.showing());
    client.ready().await.unwrap();
    insert(&client, "a").await;
}

#[tokio::test]
async fn tls_that_cannot_work_is_refused_at_the_start() {
    let builder = || Client::builder("T").endpoint("ssl:127.0.0.1:1");
    let missing = builder().tls(TlsOptions::new("/nonexistent/ca")).start().unwrap_err();
    assert!(matches!(missing, ClientError::Tls(TlsError::Read { .. })), "{missing}");
    let unset = builder().start().unwrap_err();
    assert!(matches!(unset, ClientError::Endpoint { .. }), "{unset}");
}
