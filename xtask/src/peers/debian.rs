//! Debian packages: which are missing, and their installation as root.
//!
//! Invariant: what counts is whether a program or file is there, not which package manager brought it; so a machine
//! without apt-get passes if its owner has installed the programs in another way.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::python;
use crate::process::{self, Failure};

/// What must be there, and the package that brings it. A path is looked at as it is, a name is looked up.
const NEEDED: &[(&str, &str)] = &[
    ("ovsdb-client", "openvswitch-common"),
    ("ovs-appctl", "openvswitch-common"),
    ("ovsdb-server", "openvswitch-common"),
    ("ovsdb-tool", "openvswitch-common"),
    ("ovs-vsctl", "openvswitch-switch"),
    ("/usr/share/openvswitch/vswitch.ovsschema", "openvswitch-switch"),
    ("/usr/share/openvswitch/vtep.ovsschema", "openvswitch-vtep"),
    ("ovn-nbctl", "ovn-common"),
    ("ovn-sbctl", "ovn-common"),
    ("/usr/share/ovn/ovn-nb.ovsschema", "ovn-central"),
    ("/usr/share/ovn/ovn-sb.ovsschema", "ovn-central"),
    ("ovn-northd", "ovn-central"),
    ("strace", "strace"),
    ("ldapsearch", "ldap-utils"),
    ("slapd", "slapd"),
    ("/etc/ldap/schema/inetorgperson.schema", "slapd"),
    ("ns-slapd", "389-ds-base"),
    ("/usr/share/dirsrv/data/template-dse.ldif", "389-ds-base"),
    // For Debian's own interpreter, /usr/bin/python3: in a virtual environment python-ldap would have to be compiled.
    ("/usr/lib/python3/dist-packages/ldap/__init__.py", "python3-ldap"),
    ("/usr/lib/python3/dist-packages/ldap3/__init__.py", "python3-ldap3"),
];

/// Where Debian puts servers; often not on the search path of a person who is not root.
const SYSTEM_DIRS: [&str; 2] = ["/usr/sbin", "/sbin"];

const INSTALL_SCRIPT: &str = include_str!("install.sh");

/// The packages that bring what is missing, each once.
pub(super) fn missing() -> Vec<&'static str> {
    let search_path = env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = env::split_paths(&search_path).chain(SYSTEM_DIRS.map(PathBuf::from)).collect();
    let mut packages = missing_from(&dirs);
    if python::base_interpreter().is_none() {
        packages.extend(["python3", "python3-venv"]);
    }
    packages
}

fn missing_from(dirs: &[PathBuf]) -> Vec<&'static str> {
    let is_there = |what: &str| match what.strip_prefix('/') {
        Some(_) => Path::new(what).exists(),
        None => dirs.iter().any(|dir| dir.join(what).is_file()),
    };
    let mut packages = Vec::new();
    for (what, package) in NEEDED {
        if !is_there(what) && !packages.contains(package) {
            packages.push(*package);
        }
    }
    packages
}

/// Installs packages as root: directly, or through a sudo that asks for no password.
pub(super) fn install(packages: &[&str]) -> Result<(), Failure> {
    let by_hand = format!("apt-get install --no-install-recommends {}", packages.join(" "));
    if !process::succeeds(Command::new("apt-get").arg("--version")) {
        return Err(Failure::Missing(format!(
            "there is no apt-get here; the tests need what these Debian packages hold: {}",
            packages.join(" ")
        )));
    }
    let mut command = if process::output(Command::new("id").arg("-u"))?.trim() == "0" {
        Command::new("sh")
    } else if process::succeeds(Command::new("sudo").args(["-n", "true"])) {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "sh"]);
        sudo
    } else {
        return Err(Failure::Missing(format!("installing needs root; run this yourself:\n  {by_hand}")));
    };
    run_script(command.args(["-s", "--"]).args(packages))
}

/// Feeds the script to a shell on its standard input, so that sudo needs no file it can read.
fn run_script(command: &mut Command) -> Result<(), Failure> {
    let line = process::shown(command);
    eprintln!("+ {line} < xtask/src/peers/install.sh");
    let not_started = |source| Failure::NotStarted { command: line.clone(), source };
    let mut child = command.stdin(Stdio::piped()).spawn().map_err(not_started)?;
    let mut stdin = child.stdin.take().expect("standard input was asked to be a pipe");
    // A shell that ends before it has read the script shows in its status, which says more than a broken pipe.
    let _ = stdin.write_all(INSTALL_SCRIPT.as_bytes());
    drop(stdin);
    let status = child.wait().map_err(not_started)?;
    if status.success() { Ok(()) } else { Err(Failure::Status { command: line, status }) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn each_missing_package_is_named_once() {
        let packages = missing_from(&[]);
        for package in
            ["openvswitch-common", "openvswitch-switch", "ovn-common", "slapd", "389-ds-base", "strace"]
        {
            assert_eq!(packages.iter().filter(|named| **named == package).count(), 1, "{package}");
        }
    }

    /// A folder that is removed again, with an `apt-get` in it that records how it was called.
    struct Stage(PathBuf);

    impl Stage {
        fn new(name: &str, apt_get: &str) -> Stage {
            let dir = env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
            fs::create_dir_all(&dir).expect("a new folder");
            let stage = Stage(dir);
            stage.program("apt-get", apt_get);
            stage
        }

        fn program(&self, name: &str, body: &str) {
            let path = self.0.join(name);
            fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("a new file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
        }

        fn read(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.0.join(name)).ok()
        }

        fn install(&self) -> Result<(), Failure> {
            let mut command = Command::new("sh");
            command.args(["-s", "--", "strace", "ovn-common"]).env("XTASK_APT_GET", self.0.join("apt-get"));
            command.env("XTASK_POLICY_FILE", self.0.join("policy-rc.d")).current_dir(&self.0);
            run_script(&mut command)
        }
    }

    impl Drop for Stage {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Records the arguments and what the policy in force says about starting a service.
    const RECORDING: &str =
        r#"echo "$*" >> calls; ./policy-rc.d openvswitch-switch start; echo $? >> policy"#;

    #[test]
    fn services_are_forbidden_while_installing_and_the_policy_goes_afterwards() {
        let stage = Stage::new("forbid", RECORDING);
        stage.install().expect("installed");
        let calls = stage.read("calls").expect("apt-get was called");
        assert_eq!(calls.lines().next(), Some("update -q"));
        assert!(
            calls.lines().nth(1).is_some_and(|call| call.ends_with("install strace ovn-common")),
            "{calls}"
        );
        assert_eq!(stage.read("policy").as_deref(), Some("101\n101\n"));
        assert_eq!(stage.read("policy-rc.d"), None);
    }

    #[test]
    fn a_policy_that_was_there_comes_back_even_after_a_failure() {
        let stage = Stage::new("restore", &format!("{RECORDING}; exit 7"));
        stage.program("policy-rc.d", "exit 0 # the owner's");
        stage.install().expect_err("apt-get fails");
        assert_eq!(stage.read("policy").as_deref(), Some("101\n"));
        assert_eq!(stage.read("policy-rc.d").as_deref(), Some("#!/bin/sh\nexit 0 # the owner's\n"));
    }

    #[test]
    fn a_policy_that_forbids_already_is_not_touched() {
        let stage = Stage::new("keep", "cat policy-rc.d >> seen");
        stage.program("policy-rc.d", "exit 101 # the owner's");
        stage.install().expect("installed");
        assert!(stage.read("seen").is_some_and(|seen| seen.matches("the owner's").count() == 2));
    }
}
