//! The project's chores as one program: `cargo xtask COMMAND`.
//!
//! Invariants: every check that CI makes is a command here, so that a stranger can make it too; a command says what it
//! runs before it runs it; nothing is installed outside `target/` except Debian packages, and those only by `peers`
//! (and by `test` and `ci`, which begin with `peers`).
//!
//! Exit codes: 0 all is well, 1 a check or a program failed, 2 the command line is wrong.
#![forbid(unsafe_code)]

mod chores;
mod ci;
mod peers;
mod process;
mod tidy;
mod workspace;

use std::process::ExitCode;

use process::Failure;
use workspace::Workspace;

const HELP: &str = "\
Chores of the Cowslip workspace.

Usage: cargo xtask COMMAND [ARGUMENTS]

Commands:
  test [ARGUMENTS]  install the peers, build the release binary, run every test of the workspace;
                    ARGUMENTS go to `cargo test` (for example `-p cowslip-engine` or `-- name_of_a_test`)
  ci                every check that CI makes: fmt, clippy, tidy, docs, deny, then test
    --without-tests   the checks only
  tidy              the checks that no other tool makes: which crate depends on which, module docs,
                    file lengths, links in the documentation, leftovers
  docs              build the API documentation; a warning is an error
  fuzz              mutated input for every decoder of the directory, 20 seconds for each
    --seconds N     so many seconds instead
  bench [ARGUMENTS] the benches of every crate, then `cowslip bench`, which measures the real servers beside ours;
                    ARGUMENTS are filters for the benches of the crates and leave `cowslip bench` out
  peers             install what the tests talk to: Open vSwitch, OVN, OpenLDAP, 389-ds, Python's LDAP
                    libraries, strace (Debian packages, as root) and the Python IDL (into target/peers/venv);
                    does nothing when all is there
  help              this text

Exit codes: 0 all is well, 1 a check or a program failed, 2 the command line is wrong.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(Failure::Usage("which command?".to_owned()));
    };
    if matches!(command.as_str(), "help" | "--help" | "-h") || asks_for_help(rest) {
        println!("{HELP}");
        return Ok(());
    }
    let workspace = Workspace::current();
    match command.as_str() {
        "test" => chores::test(&workspace, rest),
        "bench" => chores::bench(&workspace, rest),
        "fuzz" => match rest {
            [] => chores::fuzz(&workspace, 20),
            [flag, number] if flag == "--seconds" => match number.parse() {
                Ok(seconds) => chores::fuzz(&workspace, seconds),
                Err(_) => Err(Failure::Usage(format!("`{number}` is no number of seconds"))),
            },
            _ => Err(Failure::Usage(format!("`fuzz` does not know `{}`", rest.join(" ")))),
        },
        "docs" => no_arguments(command, rest).and_then(|()| chores::docs(&workspace)),
        "peers" => no_arguments(command, rest).and_then(|()| peers::install(&workspace)),
        "tidy" => no_arguments(command, rest).and_then(|()| tidy::run(&workspace)),
        "ci" => match rest {
            [] => ci::run(&workspace, ci::Tests::Run),
            [flag] if flag == "--without-tests" => ci::run(&workspace, ci::Tests::Omit),
            _ => Err(Failure::Usage(format!("`ci` does not know `{}`", rest.join(" ")))),
        },
        other => Err(Failure::Usage(format!("there is no command `{other}`"))),
    }
}

/// Whether the command itself is asked for help; what stands behind `--` is for another program.
fn asks_for_help(arguments: &[String]) -> bool {
    arguments.iter().take_while(|word| *word != "--").any(|word| word == "--help" || word == "-h")
}

fn no_arguments(command: &str, rest: &[String]) -> Result<(), Failure> {
    match rest {
        [] => Ok(()),
        _ => Err(Failure::Usage(format!("`{command}` takes no arguments, got `{}`", rest.join(" ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn wrong_command_lines_exit_with_2() {
        for line in [
            "",
            "nonsense",
            "tidy now",
            "ci --fast",
            "ci --without-tests twice",
            "peers -v",
            "fuzz --seconds x",
        ] {
            let failure = run(&words(line)).expect_err(line);
            assert_eq!(failure.exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn help_is_for_the_command_and_not_for_what_it_starts() {
        assert!(asks_for_help(&words("--help")));
        assert!(!asks_for_help(&words("-- --help")));
        run(&words("test --help")).expect("help always works");
    }
}
