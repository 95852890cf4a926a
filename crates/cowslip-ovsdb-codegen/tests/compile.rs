//! The models of the schemas that Debian's packages install compile, without a warning from rustc, clippy or rustfmt.
//!
//! They are put into a crate of their own in the target folder, which keeps what it has built from run to run.

use cowslip_ovsdb_codegen::Generator;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A module's name and the schema for it.
const SCHEMAS: [(&str, &str); 5] = [
    ("open_vswitch", "/usr/share/openvswitch/vswitch.ovsschema"),
    ("hardware_vtep", "/usr/share/openvswitch/vtep.ovsschema"),
    ("ovn_northbound", "/usr/share/ovn/ovn-nb.ovsschema"),
    ("ovn_southbound", "/usr/share/ovn/ovn-sb.ovsschema"),
    ("cases", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases.ovsschema")),
];

const MANIFEST: &str = r#"[package]
name = "generated-models"
version = "0.0.0"
edition = "2024"

[dependencies]
cowslip-ovsdb-client = { path = CLIENT }

[workspace]
"#;

/// Each schema's models as a folder of files, and once more as one file that is included, where nobody uses them.
fn write_crate(dir: &Path) {
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("cowslip-ovsdb-client");
    let manifest = MANIFEST.replace("CLIENT", &format!("{:?}", client.display().to_string()));
    write(&dir.join("Cargo.toml"), &manifest);
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    // Without the lock file the crate would want the newest version of everything, and so the network.
    write(&dir.join("Cargo.lock"), &fs::read_to_string(lock).expect("the workspace's lock file"));
    // rustfmt looks for its configuration upwards: this one says that there is none.
    write(&dir.join("rustfmt.toml"), "");
    write(&dir.join("clippy.toml"), "");
    let mut root = "//! Generated models.\n#![deny(warnings, missing_docs, unreachable_pub)]\n".to_owned();
    for (name, schema) in SCHEMAS {
        let generator = Generator::from_file(Path::new(schema))
            .unwrap_or_else(|error| panic!("{error}; `cargo xtask peers` installs what the tests need"));
        let models = generator.generate().expect("models of everything");
        models.write_dir(&dir.join("src").join(name)).expect("written");
        models.write_file(&dir.join(format!("included/{name}.rs"))).expect("written");
        root.push_str(&format!("\npub mod {name};\n"));
        root.push_str(&format!("\nmod {name}_included {{\n"));
        root.push_str(&format!("    include!(\"../included/{name}.rs\");\n}}\n"));
    }
    write(&dir.join("src/lib.rs"), &root);
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a new folder");
    if fs::read_to_string(path).ok().as_deref() != Some(text) {
        fs::write(path, text).expect("written");
    }
}

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", said(&output.stdout), said(&output.stderr));
}

#[test]
fn models_of_the_installed_schemas_compile_without_a_warning() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("generated-models");
    fs::create_dir_all(dir.join("included")).expect("a new folder");
    write_crate(&dir);
    let cargo = || {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // What the outer run was told about its own target folder and flags is not for this crate.
        for name in ["CARGO_TARGET_DIR", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
            command.env_remove(name);
        }
        command.current_dir(&dir);
        command
    };
    succeeds(cargo().args(["fmt", "--check"]));
    for (name, _) in SCHEMAS {
        succeeds(
            Command::new("rustfmt")
                .args(["--check", "--edition", "2024"])
                .arg(dir.join(format!("included/{name}.rs"))),
        );
    }
    succeeds(cargo().args([
        "clippy",
        "--offline",
        "--quiet",
        "--target-dir",
        "target",
        "--",
        "-D",
        "warnings",
    ]));
}
