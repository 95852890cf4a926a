//! Starting other programs, and the one error type of all chores.
//!
//! Invariant: a program's command line is printed before it starts, in a form that can be pasted into a shell.

use std::fmt;
use std::io;
use std::process::{Command, ExitStatus, Stdio};

/// Why a chore did not succeed.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum Failure {
    /// The person called xtask wrongly; the text says how.
    Usage(String),
    /// The program could not be started at all.
    NotStarted {
        /// The command line.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// The program ran and said no.
    Status {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// The program ran, but what it printed is not what it promises to print.
    Output {
        /// The command line.
        command: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file could not be read or written.
    File {
        /// Which one.
        path: std::path::PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Checks that did not pass; each has said on its own what is wrong.
    Checks(Vec<String>),
    /// Something that the chore needs and cannot get by itself; the text says what to do.
    Missing(String),
}

impl Failure {
    /// The exit code of xtask: 2 for a wrong command line, 1 for everything else.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            _ => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) => write!(f, "{text}\nTry `cargo xtask help`."),
            Failure::NotStarted { command, source } => write!(f, "cannot start `{command}`: {source}"),
            Failure::Status { command, status } => write!(f, "`{command}` failed: {status}"),
            Failure::Output { command, problem } => write!(f, "unexpected output of `{command}`: {problem}"),
            Failure::File { path, source } => write!(f, "{}: {source}", path.display()),
            Failure::Checks(names) => write!(f, "failed: {}", names.join(", ")),
            Failure::Missing(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Failure {}

/// The command line as a person would type it.
pub(crate) fn shown(command: &Command) -> String {
    let quoted = |word: &std::ffi::OsStr| {
        let word = word.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let settings = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), quoted(value?))));
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(quoted);
    settings.chain(words).collect::<Vec<_>>().join(" ")
}

/// Says what is about to run, runs it with our own standard output and error, and fails if it fails.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let line = shown(command);
    eprintln!("+ {line}");
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Status { command: line, status }),
        Err(source) => Err(Failure::NotStarted { command: line, source }),
    }
}

/// Runs a program quietly and answers what it printed on standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let line = shown(command);
    match command.stdin(Stdio::null()).stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout)
            .map_err(|error| Failure::Output { command: line, problem: error.to_string() }),
        Ok(output) => Err(Failure::Status { command: line, status: output.status }),
        Err(source) => Err(Failure::NotStarted { command: line, source }),
    }
}

/// Whether a program can be started and exits with 0; what it prints is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let silenced = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silenced.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_command_can_be_pasted() {
        let mut command = Command::new("echo");
        command.args(["plain", "two words", "it's", ""]).env("KEY", "a b");
        assert_eq!(shown(&command), r"KEY='a b' echo plain 'two words' 'it'\''s' ''");
    }

    #[test]
    fn failures_carry_the_command() {
        let failure = run(&mut Command::new("/nonexistent/program")).expect_err("no such program");
        assert!(failure.to_string().starts_with("cannot start `/nonexistent/program`"));
        let failure = run(&mut Command::new("false")).expect_err("false fails");
        assert_eq!((failure.exit_code(), failure.to_string().contains("exit status: 1")), (1, true));
    }
}
