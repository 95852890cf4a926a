//! OpenLDAP's slapd and 389 Directory Server, in a folder of the test's own and on loopback, filled from LDIF, served, and
//! written as LDIF again. Neither systemd nor an installer of theirs is asked.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{ROOT_DN, ROOT_PASSWORD, SUFFIX, Server, program, run, scratch};

/// Whose server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// OpenLDAP's.
    Slapd,
    /// 389 Directory Server.
    Dirsrv,
}

/// What 389 Directory Server is configured from.
const TEMPLATE: &str = "/usr/share/dirsrv/data/template-dse.ldif";
/// Where its schema is.
const CONFIGURATION: &str = "/etc/dirsrv";
/// Folders of the server below its own.
const FOLDERS: [&str; 11] =
    ["bak", "config", "config/schema", "db", "db/userRoot", "inst", "ldif", "lock", "logs", "run", "tmp"];
/// Its user who may do everything.
const DIRECTORY_MANAGER: &str = "cn=Directory Manager";

/// A server's folder, filled.
pub(crate) struct Store {
    peer: Peer,
    dir: tempfile::TempDir,
    port: u16,
}

impl Store {
    /// Fills a new folder with the entries of a file, by the server's own program for that.
    pub(crate) fn import(peer: Peer, ldif: &Path) -> Store {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let store = Store { peer, dir: scratch(), port };
        let mut command = match peer {
            Peer::Slapd => {
                store.configure_slapd();
                let mut command = store.slapd_tool("slapadd");
                command.arg("-l").arg(ldif);
                command
            }
            Peer::Dirsrv => {
                store.configure_dirsrv();
                let mut command = Command::new(program("ns-slapd"));
                command.arg("ldif2db").arg("-D").arg(store.path("config"));
                command.args(["-n", "userRoot", "-i"]).arg(ldif);
                command
            }
        };
        let outcome = run(&mut command, "");
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        outcome.success("the import");
        // ldif2db succeeds although it leaves entries out.
        let warns = ["skipping entry", "Skipping", "bad entry"].iter().any(|word| said.contains(word));
        assert!(!warns, "{peer:?} leaves entries out: {said}");
        store
    }

    /// Writes the folder's entries to a file, by the server's own program for that.
    pub(crate) fn export(&self, ldif: &Path) {
        let mut command = match self.peer {
            Peer::Slapd => {
                let mut command = self.slapd_tool("slapcat");
                command.arg("-l").arg(ldif);
                command
            }
            Peer::Dirsrv => {
                let mut command = Command::new(program("ns-slapd"));
                command.arg("db2ldif").arg("-D").arg(self.path("config"));
                command.args(["-n", "userRoot", "-a"]).arg(ldif);
                command
            }
        };
        run(&mut command, "").success("the export");
    }

    /// Serves the folder.
    pub(crate) fn serve(&self) -> Server {
        let log = self.path("server.log");
        match self.peer {
            Peer::Slapd => {
                let mut command = Command::new(program("slapd"));
                command.arg("-f").arg(self.path("slapd.conf"));
                // With a debug level it stays in the foreground.
                command.args(["-h", &format!("ldap://127.0.0.1:{}", self.port), "-d", "0"]);
                Server::foreign(&mut command, self.port, (ROOT_DN, ROOT_PASSWORD), &log)
            }
            Peer::Dirsrv => {
                let mut command = Command::new(program("ns-slapd"));
                command.arg("-D").arg(self.path("config")).arg("-i").arg(self.path("run/pid"));
                command.args(["-d", "0"]);
                Server::foreign(&mut command, self.port, (DIRECTORY_MANAGER, ROOT_PASSWORD), &log)
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn slapd_tool(&self, name: &str) -> Command {
        let mut command = Command::new(program(name));
        command.arg("-f").arg(self.path("slapd.conf"));
        command
    }

    fn configure_slapd(&self) {
        fs::create_dir(self.path("db")).expect("a new folder");
        let mut out = String::new();
        for schema in ["core", "cosine", "nis", "inetorgperson"] {
            out += &format!("include /etc/ldap/schema/{schema}.schema\n");
        }
        out += &format!(
            "modulepath /usr/lib/ldap\nmoduleload back_mdb\npidfile {}\ndatabase mdb\nsuffix {SUFFIX}\n\
             rootdn {ROOT_DN}\nrootpw {ROOT_PASSWORD}\ndirectory {}\nmaxsize 1073741824\n",
            self.text("pid"),
            self.text("db"),
        );
        fs::write(self.path("slapd.conf"), out).expect("the configuration can be written");
    }

    fn configure_dirsrv(&self) {
        for folder in FOLDERS {
            fs::create_dir_all(self.path(folder)).expect("a new folder");
        }
        let configuration = Path::new(CONFIGURATION);
        copy_files(&configuration.join("schema"), &self.path("config/schema"));
        copy_files(&configuration.join("config"), &self.path("config"));
        let template = fs::read_to_string(TEMPLATE).unwrap_or_else(|e| {
            panic!("{TEMPLATE}: {e}: run `cargo xtask peers`, which installs 389-ds-base")
        });
        fs::write(self.path("config/dse.ldif"), self.dirsrv_text(&template)).expect("written");
    }

    /// The template's entries and those of the database.
    fn dirsrv_text(&self, template: &str) -> String {
        let filled = self.filled(template);
        let mut entries: Vec<String> = Vec::new();
        for entry in filled.split("\n\n").map(str::trim).filter(|entry| !entry.is_empty()) {
            if entry.starts_with("dn: cn=config\n") {
                let kept = entry.lines().filter(|line| !line.starts_with("nsslapd-ldapifilepath"));
                entries.push(kept.collect::<Vec<_>>().join("\n") + "\nnsslapd-listenhost: 127.0.0.1");
            } else {
                entries.push(entry.to_owned());
            }
        }
        let escaped = SUFFIX.replace('=', "\\3D").replace(',', "\\2C");
        entries.push(format!(
            "dn: cn={escaped},cn=mapping tree,cn=config\nobjectClass: top\nobjectClass: extensibleObject\n\
             objectClass: nsMappingTree\ncn: {SUFFIX}\nnsslapd-state: backend\nnsslapd-backend: userRoot"
        ));
        entries.push(format!(
            "dn: cn=userRoot,cn=ldbm database,cn=plugins,cn=config\nobjectClass: top\n\
             objectClass: extensibleObject\nobjectClass: nsBackendInstance\ncn: userRoot\n\
             nsslapd-suffix: {SUFFIX}\nnsslapd-directory: {}",
            self.text("db/userRoot")
        ));
        entries.join("\n\n") + "\n"
    }

    /// The template with its blanks, `%name%`, filled in.
    fn filled(&self, template: &str) -> String {
        let mut user = Command::new("id");
        let user = run(user.arg("-un"), "").success("id").trim().to_owned();
        let folders = [
            ("bak_dir", "bak"),
            ("cert_dir", "config"),
            ("config_dir", "config"),
            ("db_dir", "db"),
            ("db_home_dir", "db"),
            ("inst_dir", "inst"),
            ("ldif_dir", "ldif"),
            ("lock_dir", "lock"),
            ("log_dir", "logs"),
            ("run_dir", "run"),
            ("schema_dir", "config/schema"),
            ("tmp_dir", "tmp"),
        ];
        let others = [
            ("db_lib", "bdb".to_owned()),
            ("ds_passwd", format!("{{CLEAR}}{ROOT_PASSWORD}")),
            ("ds_port", self.port.to_string()),
            ("ds_suffix", SUFFIX.to_owned()),
            ("ds_user", user),
            ("fqdn", "localhost.localdomain".to_owned()),
            ("ldapi", String::new()),
            ("ldapi_autobind", "off".to_owned()),
            ("ldapi_enabled", "off".to_owned()),
            ("rootdn", DIRECTORY_MANAGER.to_owned()),
        ];
        let values = folders.map(|(name, folder)| (name, self.text(folder))).into_iter().chain(others);
        values.fold(template.to_owned(), |text, (name, value)| text.replace(&format!("%{name}%"), &value))
    }
}

fn copy_files(from: &Path, to: &Path) {
    let files = fs::read_dir(from).unwrap_or_else(|e| {
        panic!("{}: {e}: run `cargo xtask peers`, which installs 389-ds-base", from.display())
    });
    for file in files {
        let file = file.expect("a file of the folder");
        fs::copy(file.path(), to.join(file.file_name())).expect("the file can be copied");
    }
}
