//! The command line: help, wrong flags, exit codes, messages, a graceful stop, and the first start of `serve`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::content::content;
use crate::support::process::{self, Background, Finished};
use crate::support::rpc::{Outcome, Session};
use crate::support::server::{Peer, Server, Setup, binary};
use crate::support::{case_folder, report, scratch};

const LIMIT: Duration = Duration::from_secs(20);

fn lab_schema() -> PathBuf {
    case_folder().join("lab.ovsschema")
}

fn cowslip(dir: &Path, arguments: &[&str]) -> Finished {
    let mut command = Command::new(binary());
    command.args(arguments).current_dir(dir);
    process::isolate(&mut command, dir);
    process::run(&mut command, LIMIT)
}

/// Whether the binary is there to be tested; with `COWSLIP_TEST_SERVER=real` it is not asked for.
fn ours() -> bool {
    Peer::under_test() == Peer::Cowslip
}

#[test]
fn help_explains() {
    if !ours() {
        return;
    }
    let dir = scratch();
    for (arguments, words) in [
        (&["--help"][..], &["ovsdb-server", "ovsdb-client", "ovsdb-tool", "serve"][..]),
        (&["serve", "--help"], &["cowslip-data"]),
        (&["ovsdb-server", "--help"], &["--remote", "--unixctl", "--pidfile", "--log-file", "punix:"]),
        (&["ovsdb-tool", "--help"], &["create", "compact", "db-name", "show-log", "transact", "query"]),
        (&["ovsdb-client", "--help"], &["list-dbs", "get-schema", "transact", "dump", "monitor", "wait"]),
    ] {
        let done = cowslip(dir.path(), arguments);
        assert!(done.code == Some(0) && done.stderr.is_empty(), "{arguments:?}: {done:?}");
        assert!(done.stdout.to_lowercase().contains("usage"), "{arguments:?}: {done:?}");
        for word in words {
            assert!(done.stdout.contains(word), "{arguments:?} does not mention {word:?}:\n{}", done.stdout);
        }
        let longest = done.stdout.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(longest <= 120, "{arguments:?} has a line of {longest} characters");
    }
    let version = cowslip(dir.path(), &["--version"]);
    assert!(version.code == Some(0) && version.stdout.contains(env!("CARGO_PKG_VERSION")), "{version:?}");
}

/// What the real programs refuse ours refuse with the same exit code, and the message names what is wrong.
#[test]
fn refusals_have_the_real_exit_codes() {
    let dir = scratch();
    let path = |name: &str| dir.path().join(name);
    Peer::Real.create(dir.path(), &path("good.db"), &lab_schema()).success("ovsdb-tool create");
    std::fs::write(path("garbage.db"), "garbage\n").expect("a file can be written");
    std::fs::write(path("empty.db"), "").expect("a file can be written");
    std::fs::write(path("notaschema"), "{\"name\":7}\n").expect("a file can be written");
    let remote = "--remote=punix:s";
    let mut failures = Vec::new();
    let cases = [
        // Program, arguments, and what the message must name.
        ("ovsdb-server", &["--nosuch"][..], "--nosuch"),
        ("ovsdb-server", &["--remote"], "--remote"),
        ("ovsdb-server", &[remote, "nosuch.db"], "nosuch.db"),
        ("ovsdb-server", &[remote, "garbage.db"], "garbage.db"),
        ("ovsdb-server", &[remote, "empty.db"], "empty.db"),
        ("ovsdb-server", &["--remote=db:Lab,Nope,x", "good.db"], "db"),
        ("ovsdb-server", &["--log-file=/nonexistent/x", "good.db"], "/nonexistent/x"),
        ("ovsdb-tool", &[], ""),
        ("ovsdb-tool", &["nosuch"], "nosuch"),
        ("ovsdb-tool", &["--nosuch"], "--nosuch"),
        ("ovsdb-tool", &["create", "new.db", "nosuch.schema"], "nosuch.schema"),
        ("ovsdb-tool", &["create", "new.db", "notaschema"], ""),
        ("ovsdb-tool", &["create", "good.db", "notaschema"], ""),
        ("ovsdb-tool", &["db-name", "garbage.db"], "garbage.db"),
        ("ovsdb-tool", &["transact", "good.db", "{"], ""),
        ("ovsdb-tool", &["query", "good.db"], ""),
        ("ovsdb-client", &[], ""),
        ("ovsdb-client", &["nosuch"], "nosuch"),
        ("ovsdb-client", &["--nosuch"], "--nosuch"),
        ("ovsdb-client", &["list-dbs", "unix:/nonexistent"], "/nonexistent"),
        ("ovsdb-client", &["list-dbs", "foo:1"], "foo:1"),
        ("ovsdb-client", &["transact", "unix:/nonexistent", "[]"], ""),
    ];
    for (program, arguments, names) in &cases {
        let [real, ours] = [Peer::Real, Peer::under_test()].map(|peer| {
            let mut command = peer.command(program, dir.path());
            if *program == "ovsdb-server" {
                command.args(["--no-chdir", "--unixctl=none"]);
            }
            process::run(command.args(*arguments), LIMIT)
        });
        let says =
            ours.stderr.contains(names) && !ours.stderr.is_empty() && !ours.stderr.contains("panicked");
        let quiet = ours.stdout.is_empty() || real.stdout == ours.stdout;
        if real.code != Some(1) || ours.code != real.code || !says || !quiet {
            failures
                .push(format!("{program} {arguments:?} must name {names:?}\nreal: {real:?}\nours: {ours:?}"));
        }
    }
    report("refusals", cases.len(), &failures);
}

/// A clustered database is refused with the command that makes a standalone one of it.
#[test]
fn a_clustered_file_is_refused_with_a_way_out() {
    if !ours() {
        return;
    }
    let dir = scratch();
    let schema = lab_schema().display().to_string();
    let arguments = ["create-cluster", "c.db", &schema, "tcp:127.0.0.1:6644"];
    let mut command = process::command("ovsdb-tool", dir.path(), arguments);
    process::run(&mut command, LIMIT).success("ovsdb-tool create-cluster");
    let done =
        cowslip(dir.path(), &["ovsdb-server", "--no-chdir", "--unixctl=none", "--remote=punix:s", "c.db"]);
    assert!(done.code == Some(1), "{done:?}");
    assert!(done.stderr.contains("cluster-to-standalone") && done.stderr.contains("c.db"), "{done:?}");
}

/// SIGTERM and SIGINT end a server that answers what it was doing, removes what it made and exits with 0.
#[test]
fn a_signal_stops_gracefully() {
    if !ours() {
        return;
    }
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let dir = scratch();
        let file = dir.path().join("lab.db");
        Peer::Cowslip.create(dir.path(), &file, &lab_schema()).success("ovsdb-tool create");
        let mut setup = Setup::new(Peer::Cowslip, dir.path(), std::slice::from_ref(&file));
        let pidfile = dir.path().join("pid");
        setup.flags.push(format!("--pidfile={}", pidfile.display()));
        let mut command = setup.command();
        let mut server = Background::start(&mut command, &dir.path().join("log"));
        let mut session = connected(&dir.path().join("s"), &dir.path().join("log"));
        let pid = std::fs::read_to_string(&pidfile).unwrap_or_default();
        assert_eq!(pid.trim(), server.child().id().to_string());
        session.must("Lab", &[json!({"op": "insert", "table": "Plain", "row": {"name": "kept"}})]);
        let wait = json!(["Lab", {"op": "wait", "table": "Plain", "where": [], "until": "==", "rows": []}]);
        session.send("transact", &wait, &json!("parked"));
        process::signal(server.child(), signal);
        let log = || std::fs::read_to_string(dir.path().join("log")).unwrap_or_default();
        assert_eq!(server.wait(LIMIT), Some(Some(0)), "{}", log());
        assert!(matches!(session.reply(&json!("parked"), LIMIT), Outcome::Closed | Outcome::Error(_)));
        for name in ["s", "ctl", "pid"] {
            assert!(!dir.path().join(name).exists(), "{name} was left behind");
        }
        let again = setup.start();
        let rows = again
            .connect()
            .must("Lab", &[json!({"op": "select", "table": "Plain", "where": [], "columns": ["name"]})]);
        assert_eq!(rows[0]["rows"], json!([{"name": "kept"}]));
    }
}

fn connected(socket: &Path, log: &Path) -> Session {
    let end = Instant::now() + LIMIT;
    loop {
        if let Ok(session) = Session::try_connect(socket) {
            return session;
        }
        let text = std::fs::read_to_string(log).unwrap_or_default();
        assert!(Instant::now() < end, "nobody listens on {}\n{text}", socket.display());
        std::thread::sleep(process::POLL);
    }
}

/// A stale socket and pidfile of a server that was killed do not stop the next one; a living server's do.
#[test]
fn leftovers_do_not_stop_a_start() {
    let dir = scratch();
    let (mut server, setup) = Server::fresh(Peer::under_test(), dir.path(), &[&lab_schema()]);
    server.kill();
    assert!(dir.path().join("s").exists(), "a killed server cannot remove its socket");
    let mut command = setup.command();
    let log = dir.path().join("second.log");
    let _second = Background::start(&mut command, &log);
    assert_eq!(connected(&dir.path().join("s"), &log).call("echo", &json!([1])), Outcome::Result(json!([1])));
}

/// Started under the name `ovsdb-server` the binary is that program.
#[test]
fn the_name_decides() {
    if !ours() {
        return;
    }
    let dir = scratch();
    let link = dir.path().join("ovsdb-server");
    std::os::unix::fs::symlink(binary(), &link).expect("a link can be made");
    let done = process::run(Command::new(&link).arg("nosuch.db").current_dir(dir.path()), LIMIT);
    assert!(done.code == Some(1) && done.stderr.contains("nosuch.db"), "{done:?}");
}

/// With port 0 the chosen port is said in the log, in the words that scripts look for.
#[test]
fn a_port_of_the_systems_choice() {
    let dir = scratch();
    let file = dir.path().join("lab.db");
    let peer = Peer::under_test();
    peer.create(dir.path(), &file, &lab_schema()).success("ovsdb-tool create");
    let mut setup = Setup::new(peer, dir.path(), std::slice::from_ref(&file));
    setup.flags.push("--remote=ptcp:0:127.0.0.1".to_owned());
    let server = setup.start();
    let log = server.log_tail();
    let port =
        log.split("0:127.0.0.1: listening on port ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let port = port.unwrap_or_else(|| panic!("no port in the log: {log}"));
    let remote = format!("tcp:127.0.0.1:{port}");
    let mut command = process::command("ovsdb-client", dir.path(), ["list-dbs", &remote]);
    let text = process::run(&mut command, LIMIT).success("ovsdb-client list-dbs");
    assert!(text.contains("Lab"), "{text}");
}

/// A script that collects all that the starter prints goes on when the server has gone to the background.
#[test]
fn a_detached_server_lets_go_of_what_its_starter_writes_to() {
    for peer in [Peer::Real, Peer::under_test()] {
        let dir = scratch();
        let file = dir.path().join("lab.db");
        peer.create(dir.path(), &file, &lab_schema()).success("ovsdb-tool create");
        let (pid, socket) = (dir.path().join("pid"), dir.path().join("s"));
        let server = peer.command("ovsdb-server", dir.path());
        let mut command = Command::new("sh");
        command.args(["-c", "collected=$(\"$@\" 2>&1) && echo gone on", "sh"]);
        command.arg(server.get_program()).args(server.get_args()).current_dir(dir.path());
        process::isolate(&mut command, dir.path());
        command.args(["--detach", "--no-chdir", "--unixctl=none"]).arg(&file);
        command.arg(format!("--pidfile={}", pid.display()));
        command.arg(format!("--remote=punix:{}", socket.display()));
        let begun = Instant::now();
        let done = process::run(&mut command, LIMIT);
        let answers = Session::try_connect(&socket).is_ok();
        let number = std::fs::read_to_string(&pid).unwrap_or_default().trim().parse().ok();
        if let Some(number) = number.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(number, rustix::process::Signal::TERM);
        }
        assert_eq!(done.stdout, "gone on\n", "{peer:?} after {:?}: {done:?}", begun.elapsed());
        assert!(answers, "{peer:?}: nobody listens in the background");
    }
}

/// `serve` makes a data folder with sample data at its first start, says how to reach it, and finds it again.
#[test]
fn serve_starts_twice() {
    if !ours() {
        return;
    }
    let dir = scratch();
    let first = serve(dir.path(), true);
    assert!(dir.path().join("cowslip-data").is_dir(), "no data folder was made");
    let second = serve(dir.path(), false);
    assert_eq!(first, second, "the second start shows other data than the first");
}

/// One start of `serve`; everything in its databases.
fn serve(dir: &Path, fill: bool) -> Value {
    let mut command = Command::new(binary());
    command.arg("serve").current_dir(dir);
    let log = dir.join("serve.log");
    let mut process = Background::start(&mut command, &log);
    let end = Instant::now() + LIMIT;
    let socket = loop {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        if let Some(path) =
            text.split("unix:").nth(1).and_then(|rest| rest.split([' ', '\n', '\'', '"', '`']).next())
        {
            break dir.join(path);
        }
        assert!(Instant::now() < end, "serve prints no unix address:\n{text}");
        std::thread::sleep(process::POLL);
    };
    let mut session = connected(&socket, &log);
    let Outcome::Result(names) = session.call("list_dbs", &json!([])) else { panic!("list_dbs failed") };
    let mut all = json!({});
    for name in names.as_array().into_iter().flatten().filter(|name| *name != "_Server") {
        let Outcome::Result(schema) = session.call("get_schema", &json!([name])) else { panic!("no schema") };
        all[name.as_str().unwrap_or_default()] = content(&mut session, &schema);
    }
    let rows = all.as_object().into_iter().flatten().flat_map(|(_, tables)| tables.as_object());
    let rows: usize = rows.flatten().map(|(_, t)| t["rows"].as_array().map_or(0, Vec::len)).sum();
    assert!(rows > 0 || !fill, "there are no sample rows");
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    assert!(text.contains("ovsdb-client"), "no command to paste:\n{text}");
    process::signal(process.child(), rustix::process::Signal::TERM);
    assert_eq!(process.wait(LIMIT), Some(Some(0)), "{text}");
    all
}
