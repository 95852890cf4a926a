//! `cowslip ldap`: files in and out of folders, and the same with a server.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const DN: &str = "cn=admin,dc=example,dc=com";

/// LDIF as other servers write it.
fn data(name: &str) -> String {
    format!("{}/../cowslip-ldap-server/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

struct Tools {
    folder: tempfile::TempDir,
}

struct Server {
    child: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

impl Tools {
    fn new() -> Self {
        Self { folder: tempfile::Builder::new().prefix("cow").tempdir_in("/tmp").unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cowslip"));
        command.arg("ldap").args(args).current_dir(self.folder.path()).output().unwrap()
    }

    /// Runs a tool that must succeed; gives what it prints.
    fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs a tool that must fail; gives what it prints, errors last.
    fn fails(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", text(&output.stdout));
        text(&output.stdout) + &text(&output.stderr)
    }

    /// Serves a folder on a socket.
    fn serve(&self, folder: &str) -> Server {
        let socket = self.path(&format!("{folder}.sock"));
        let url = format!("ldapi://{}", socket.to_str().unwrap().replace('/', "%2F"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_cowslip"));
        command.args([
            "ldap-server",
            "--suffix",
            "dc=example,dc=com",
            "--root-password",
            "secret",
            "--listen",
            &url,
        ]);
        command.arg("--data").arg(self.path(folder)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Server { child: command.spawn().unwrap(), url };
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(server.child.try_wait().unwrap().is_none(), "the server ended");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::File::create(self.path(name)).unwrap().write_all(content.as_bytes()).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

/// The arguments with a server and its root.
fn at<'a>(server: &'a Server, args: &[&'a str]) -> Vec<&'a str> {
    [args, &["-H", &server.url, "-D", DN, "-w", "secret"]].concat()
}

/// The records of LDIF, lines and records in order, without what servers make.
fn comparable(ldif: &str) -> Vec<String> {
    let made =
        ["entryUUID", "entryCSN", "createTimestamp", "modifyTimestamp", "creatorsName", "modifiersName"];
    let mut records: Vec<String> = ldif
        .replace("\n ", "")
        .split("\n\n")
        .filter(|record| record.contains("dn:"))
        .map(|record| {
            let lines = record.lines().filter(|line| !made.iter().any(|name| line.starts_with(name)));
            let mut lines: Vec<&str> = lines.collect();
            lines.sort_unstable();
            lines.join("\n")
        })
        .collect();
    records.sort();
    records
}

/// Whether the entry above stands before each entry.
fn assert_parents_first(ldif: &str) {
    let ldif = ldif.replace("\n ", "");
    let names: Vec<&str> = ldif.lines().filter_map(|line| line.strip_prefix("dn: ")).collect();
    for (place, name) in names.iter().enumerate().skip(1) {
        let parent = name.split_once(',').unwrap().1;
        assert!(names[..place].iter().any(|above| above.eq_ignore_ascii_case(parent)), "{name}");
    }
}

#[test]
fn access_rules_are_no_quiet_success() {
    let tools = Tools::new();
    let told = tools.fails(&["import", "--data", "slapd", &data("slapd.ldif")]);
    assert!(told.contains("4 imported, 0 rejected") && told.contains("not enforced"), "{told}");
    assert!(
        tools.fails(&["import", "--data", "slapd", &data("slapd.ldif")]).contains("already; to add to it")
    );
    let told = tools.ok(&["import", "--data", "more", "--ignore-access-rules", &data("slapd.ldif")]);
    assert!(told.contains("line 26: 1 pwdAccountLockedTime of uid=amy"), "{told}");
    let told = tools.fails(&["import", "--data", "ds", "--ignore-access-rules", &data("389ds.ldif")]);
    assert!(told.contains("line 93: ") && told.contains("5 imported, 1 rejected"), "{told}");
}

#[test]
fn a_folder_is_checked_explained_and_written() {
    let tools = Tools::new();
    tools.ok(&["import", "--data", "one", "--ignore-access-rules", &data("slapd.ldif")]);
    let told = tools.ok(&["verify", "--data", "one"]);
    assert!(told.contains(" whole\n") && told.contains("13 entries, 0 problems"), "{told}");
    let told = tools.ok(&["explain", "--data", "one", "(&(uid=amy)(sn=D*))"]);
    assert!(
        told.contains("uid, eq: 1 candidates") && told.contains("looked at 1 entries, 1 match"),
        "{told}"
    );
    assert!(tools.fails(&["explain", "--data", "one", "(uid=amy"]).contains("(uid=amy"));
    assert!(tools.fails(&["explain", "--data", "one", "-b", "dc=none", "(uid=*)"]).contains("no such entry"));
    let first = tools.ok(&["export", "--data", "one"]);
    tools.write("one.ldif", &first);
    tools.ok(&["import", "--data", "two", "one.ldif"]);
    assert_eq!(tools.ok(&["export", "--data", "two"]), first);
    let below =
        tools.ok(&["export", "--data", "two", "-b", "ou=people,dc=example,dc=com", "--user-attributes"]);
    assert!(below.starts_with("version: 1\n\ndn: ou=People,") && !below.contains("entryUUID"), "{below}");
    assert!(tools.fails(&["export", "--data", "none"]).contains("none"));
}

#[test]
fn damage_is_found_and_salvage_asked_for() {
    let tools = Tools::new();
    tools.ok(&["import", "--data", "one", "--ignore-access-rules", &data("slapd.ldif")]);
    let snapshot = std::fs::read_dir(tools.path("one")).unwrap().map(|file| file.unwrap().path());
    let snapshot =
        snapshot.into_iter().find(|path: &PathBuf| path.to_str().unwrap().contains("snapshot")).unwrap();
    let mut content = std::fs::read(&snapshot).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    std::fs::write(&snapshot, content).unwrap();
    assert!(
        tools
            .fails(&["verify", "--data", "one"])
            .contains(Path::new(&snapshot).file_name().unwrap().to_str().unwrap())
    );
    assert!(tools.fails(&["export", "--data", "one"]).contains("snapshot"));
}

#[test]
fn a_damaged_journal_is_given_up_only_when_told() {
    let tools = Tools::new();
    let mut server = tools.serve("served");
    let mut ldif = "dn: dc=example,dc=com\nobjectClass: domain\n\n".to_owned();
    for number in 0..500 {
        ldif += &format!("dn: cn=d{number},dc=example,dc=com\nobjectClass: device\n\n");
    }
    tools.write("in.ldif", &ldif);
    tools.ok(&at(&server, &["import", "in.ldif"]));
    // A connection is closed after the last answer, so all is on the disk.
    server.child.kill().unwrap();
    drop(server);
    let files = std::fs::read_dir(tools.path("served")).unwrap().map(|file| file.unwrap().path());
    let mut journals: Vec<PathBuf> =
        files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("journal-")).collect();
    journals.sort();
    let mut content = std::fs::read(&journals[0]).unwrap();
    let place = content.windows(5).position(|bytes| bytes == b"cn=d3").unwrap();
    content[place] ^= 1;
    std::fs::write(&journals[0], content).unwrap();
    let told = tools.fails(&["verify", "--data", "served"]);
    assert!(told.contains("is damaged at offset") && told.contains("--salvage gives them up"), "{told}");
    assert!(tools.fails(&["export", "--data", "served"]).contains("journal-"));
    let told = tools.ok(&["verify", "--data", "served", "--salvage"]);
    assert!(told.contains("everything up to commit") && told.contains("0 problems"), "{told}");
    let left = tools.ok(&["export", "--data", "served"]);
    assert!(!left.contains("dn: cn=d499,"), "what came after the damage is gone");
    assert!(
        std::fs::read_dir(tools.path("served"))
            .unwrap()
            .any(|file| { file.unwrap().file_name().to_str().unwrap().starts_with("aside-") })
    );
}

#[test]
fn a_server_takes_and_gives_the_same() {
    let tools = Tools::new();
    let server = tools.serve("served");
    let mut ldif = "dn: cn=late,ou=Later,dc=example,dc=com\nobjectClass: device\n\n".to_owned();
    ldif += "dn: dc=example,dc=com\nobjectClass: domain\nentryUUID: 51e3c5da-7a3c-103e-9d0e-2f1f3a5b7c9d\n\n";
    ldif += "dn: ou=Later,dc=example,dc=com\nobjectClass: organizationalUnit\n\n";
    for number in 0..1_000 {
        ldif +=
            &format!("dn: cn=d{number},ou=Later,dc=example,dc=com\nobjectClass: device\nserialNumber: 1\n\n");
    }
    ldif += "dn: cn=d7,ou=later,dc=example,dc=com\nchangetype: modify\nreplace: serialNumber\nserialNumber: 2\n-\n\n";
    ldif +=
        "dn: cn=d8,ou=later,dc=example,dc=com\nchangetype: modrdn\nnewrdn: cn=D8 again\ndeleteoldrdn: 1\n\n";
    ldif += "dn: cn=d9,ou=later,dc=example,dc=com\nchangetype: delete\n";
    tools.write("in.ldif", &ldif);
    let told = tools.ok(&at(&server, &["import", "in.ldif"]));
    assert!(told.contains("1006 imported, 0 rejected"), "{told}");
    assert!(told.contains("entryUUID 1"), "a server makes its own: {told}");
    let again = tools.fails(&at(&server, &["import", "in.ldif"]));
    assert!(again.contains("line 1: cn=late,ou=Later,dc=example,dc=com: entryAlreadyExists"), "{again}");
    tools.ok(&at(&server, &["export", "-o", "online.ldif"]));
    for tool in ["export", "verify"] {
        assert!(tools.fails(&[tool, "--data", "served"]).contains("is a server running on it?"));
    }
    drop(server);
    tools.ok(&["export", "--data", "served", "-o", "offline.ldif"]);
    let (online, offline) = (tools.read("online.ldif"), tools.read("offline.ldif"));
    assert_eq!(comparable(&online), comparable(&offline));
    // One was renamed and then added again.
    assert_eq!(comparable(&online).len(), 1_003);
    assert!(online.contains("\nentryUUID: ") && !online.contains("\nhasSubordinates"));
    assert_parents_first(&online);
    assert_parents_first(&offline);
    tools.ok(&["verify", "--data", "served"]);
}

#[test]
fn spelling_is_kept() {
    let tools = Tools::new();
    let server = tools.serve("served");
    let unit = "objectClass: organizationalUnit\n\n";
    tools.write(
        "in.ldif",
        &format!(
            "dn: dc=example,dc=com\nobjectClass: domain\n\ndn: ou=MiXed,DC=Example,dc=com\n{unit}\
             dn: cn=A  Child,ou=mixed,dc=example,dc=com\nobjectClass: device\n\n\
             dn: ou=mixed,dc=example,dc=com\nchangetype: modrdn\nnewrdn: OU=Other\ndeleteoldrdn: 1\n\n"
        ),
    );
    tools.ok(&at(&server, &["import", "in.ldif"]));
    let online = tools.ok(&at(&server, &["export"]));
    drop(server);
    for exported in [online, tools.ok(&["export", "--data", "served"])] {
        let names: Vec<&str> = exported.lines().filter(|line| line.starts_with("dn:")).collect();
        let child = "dn: cn=A  Child,OU=Other,dc=example,dc=com";
        assert_eq!(names, ["dn: dc=example,dc=com", "dn: OU=Other,dc=example,dc=com", child], "L036");
        assert!(
            exported.contains("\nou: Other\n") && !exported.to_lowercase().contains("mixed"),
            "L036: {exported}"
        );
    }
}

#[test]
fn a_new_directory_gets_its_schema_and_its_indexes() {
    let tools = Tools::new();
    tools.write("our.schema", "attributetype ( 1.3.6.1.4.1.32473.1 NAME 'ourValue' SUP name )\n");
    tools.write("photo", "caption");
    let photo = tools.path("photo");
    let ldif = format!(
        "dn: dc=example,dc=com\nobjectClass: domain\nobjectClass: extensibleObject\nourValue: seven\n\
         description:< file://{}\n",
        photo.to_str().unwrap()
    );
    tools.write("in.ldif", &ldif);
    assert!(tools.fails(&["import", "--data", "one", "in.ldif"]).contains("URL"));
    assert!(tools.fails(&["import", "--data", "two", "--read-files", "in.ldif"]).contains("ourValue"));
    let args =
        ["import", "--data", "three", "--read-files", "--schema", "our.schema", "--index", "ourvalue=eq,sub"];
    tools.ok(&[&args[..], &["in.ldif"]].concat());
    assert!(tools.ok(&["export", "--data", "three"]).contains("\ndescription: caption\n"));
    for (filter, form) in
        [("(ourValue=SEVEN)", "ourValue, eq: 1 "), ("(ourValue=*eve*)", "ourValue, sub: 1 ")]
    {
        let told = tools.ok(&["explain", "--data", "three", filter]);
        assert!(told.contains(form) && told.contains(", 1 match"), "{told}");
    }
    let told = tools.ok(&["import", "--data", "four", "--read-files", "--drop-unknown", "in.ldif"]);
    assert!(told.contains("unknown to the schema: ourValue 1"), "{told}");
    assert!(tools.fails(&["import", "--data", "five", "--index", "noSuch=eq", "in.ldif"]).contains("noSuch"));
    assert!(!tools.path("five").exists(), "nothing is made of what is refused");
}

#[test]
fn orphans_are_rejected_by_line() {
    let tools = Tools::new();
    let server = tools.serve("served");
    tools.write("in.ldif", "dn: ou=a,dc=example,dc=com\nobjectClass: organizationalUnit\n\ndn: cn=\n\ndn: ou=b,ou=a,dc=example,dc=com\nobjectClass: organizationalUnit\n");
    let told = tools.fails(&at(&server, &["import", "in.ldif"]));
    for line in [
        "line 1: ou=a,dc=example,dc=com: the entry above it is missing",
        "line 4: ",
        "line 6: ou=b",
        "0 imported, 3 rejected",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
}

#[test]
fn the_schema_of_a_server_is_changed_by_a_file() {
    let tools = Tools::new();
    let server = tools.serve("served");
    let value = "attributetype ( 1.3.6.1.4.1.32473.1 NAME 'ourValue' EQUALITY integerMatch ORDERING integerOrderingMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 )\n";
    let class = "objectclass ( 1.3.6.1.4.1.32473.2 NAME 'ourThing' AUXILIARY MAY ourValue )\n";
    tools.write("our.schema", &format!("{value}{class}"));
    let apply = |file: &str, more: &[&'static str]| {
        let args = [&["schema", "apply", file], more].concat();
        tools.ok(&at(&server, &args.iter().map(|arg| &**arg).collect::<Vec<_>>()))
    };
    assert!(apply("our.schema", &["--dry-run"]).contains("2 changes, not made"));
    assert!(apply("our.schema", &[]).contains("+ objectClasses: "));
    assert_eq!(apply("our.schema", &[]), "0 changes\n");
    let listed = tools.ok(&at(&server, &["schema", "list"]));
    assert_eq!(
        listed,
        "attribute type 1.3.6.1.4.1.32473.1 ourValue\nobject class 1.3.6.1.4.1.32473.2 ourThing\n"
    );
    tools.write(
        "our.schema",
        &format!("{}{class}", value.replace("'ourValue'", "( 'ourValue' 'ourNumber' )")),
    );
    assert!(apply("our.schema", &[]).ends_with("1 changes\n"));
    assert!(tools.ok(&at(&server, &["schema", "show", "OURNUMBER"])).contains("( 'ourValue' 'ourNumber' )"));
    assert!(tools.fails(&at(&server, &["schema", "show", "theirs"])).contains("theirs"));

    assert_eq!(tools.ok(&at(&server, &["index", "add", "ourValue", "eq,ord"])), "");
    let status = tools.ok(&at(&server, &["index", "status"]));
    assert!(status.contains("ourValue: eq, ord\n") && status.contains("cn: eq, sub\n"), "{status}");
    tools.ok(&at(&server, &["index", "add", "cn", "approx"]));
    tools.ok(&at(&server, &["index", "remove", "cn", "sub"]));
    assert!(tools.ok(&at(&server, &["index", "status"])).contains("cn: eq, approx\n"));
    assert!(tools.fails(&at(&server, &["index", "add", "jpegPhoto", "eq"])).contains("jpegPhoto"));
    assert!(tools.fails(&at(&server, &["index", "add", "cn", "no"])).contains("no form \"no\""));
    tools.ok(&at(&server, &["index", "remove", "ourValue"]));

    tools.write("empty.schema", "");
    assert!(apply("empty.schema", &["--delete-others"]).ends_with("2 changes\n"));
    assert_eq!(tools.ok(&at(&server, &["schema", "list"])), "");
    drop(server);
    assert_eq!(tools.ok(&["schema", "list", "--data", "served"]), "");
    assert!(tools.ok(&["schema", "list", "--all", "--data", "served"]).contains(" inetOrgPerson\n"));
}

#[test]
fn connections_that_fail_say_why() {
    let tools = Tools::new();
    let server = tools.serve("served");
    let cases: [(&[&str], &str); 5] = [
        (&["-H", "http://x"], "ldap://"),
        (&["-H", "ldaps://localhost"], "only ldap: and ldapi:"),
        (&["-H", "ldapi://%2Fno%2Fsuch"], "No such file"),
        (&["-H", &server.url, "-D", DN, "-w", "wrong"], "invalidCredentials"),
        (&["-H", &server.url, "-D", DN], "--password-file"),
    ];
    for (args, expected) in cases {
        let told = tools.fails(&[&["export"], args].concat());
        assert!(told.contains(expected), "{args:?}: {told}");
    }
    assert_eq!(tools.run(&["export"]).status.code(), Some(2));
    assert_eq!(tools.run(&["import", "--data", "x", "--index", "cn=none", "f"]).status.code(), Some(2));
}
