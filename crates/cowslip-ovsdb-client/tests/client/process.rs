//! The real `ovsdb-server` with options of a test's own.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const MISSING: &str = "ovsdb-server, ovsdb-tool and ovs-appctl are missing: run `cargo xtask peers`";

/// How long a test waits for what a server does by itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A server process in a directory: its log is the file `log`, its control socket `ctl`.
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    pub(crate) fn start(directory: &Path, arguments: &[String]) -> Self {
        let at = |name: &str| directory.join(name).display().to_string();
        let _ = std::fs::remove_file(directory.join("log"));
        let child = Command::new("ovsdb-server")
            .current_dir(directory)
            .args(arguments)
            .arg("--no-chdir")
            .args([format!("--unixctl={}", at("ctl")), format!("--log-file={}", at("log"))])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect(MISSING);
        Process(child)
    }
}

/// Makes a database file.
pub(crate) fn create(directory: &Path, file: &str, schema: &str) {
    let path = directory.join(format!("{file}.ovsschema"));
    std::fs::write(&path, schema).unwrap();
    let made = Command::new("ovsdb-tool").arg("create").args([&directory.join(file), &path]).status();
    assert!(made.expect(MISSING).success());
}

/// Tells the server something over its control socket.
pub(crate) fn control(directory: &Path, words: &[&str]) {
    let done = Command::new("ovs-appctl").arg("-t").arg(directory.join("ctl")).args(words).output();
    let done = done.expect(MISSING);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Waits for something in the directory to come about.
pub(crate) async fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let wait = async {
        loop {
            match look() {
                Some(found) => return found,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it comes about")
}
