//! Logs, with the flags of Open vSwitch's programs.

use crate::environment;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::Arc;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The flags.
#[derive(clap::Args, Default)]
pub(crate) struct Logging {
    /// Log levels, such as -vwarn, -vconsole:dbg or -vfile:info; levels are off, emer, err, warn, info, dbg
    #[arg(short = 'v', long = "verbose", value_name = "SPEC", num_args = 0..=1, default_missing_value = "dbg")]
    verbose: Vec<String>,
    /// Also log to a file; by default PROGRAM.log in $OVS_LOGDIR (/var/log/openvswitch)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    log_file: Option<Option<PathBuf>>,
    /// Accepted for compatibility: nothing is sent to syslog
    #[arg(long, value_name = "METHOD", hide = true)]
    syslog_method: Option<String>,
    /// Accepted for compatibility: nothing is sent to syslog
    #[arg(long, value_name = "HOST:PORT", hide = true)]
    syslog_target: Option<String>,
}

fn level(word: &str) -> Option<LevelFilter> {
    match word.to_ascii_lowercase().as_str() {
        "off" => Some(LevelFilter::OFF),
        "emer" | "err" => Some(LevelFilter::ERROR),
        "warn" => Some(LevelFilter::WARN),
        "info" => Some(LevelFilter::INFO),
        "dbg" => Some(LevelFilter::DEBUG),
        _ => None,
    }
}

struct Levels {
    console: LevelFilter,
    file: LevelFilter,
}

impl Levels {
    /// A specification is words between colons, commas and spaces: a destination, a level, or a module, which is
    /// accepted and has no effect because our modules are others.
    fn apply(&mut self, specification: &str) {
        if specification.to_ascii_uppercase().starts_with("PATTERN") {
            return;
        }
        for part in specification.split([',', ' ']) {
            let words: Vec<&str> = part.split(':').filter(|w| !w.is_empty()).collect();
            let chosen = words.iter().find_map(|w| level(w)).unwrap_or(LevelFilter::DEBUG);
            let names = |destination: &str| words.iter().any(|w| w.eq_ignore_ascii_case(destination));
            let named = names("console") || names("file") || names("syslog");
            let is_module = !named && words.iter().all(|w| level(w).is_none());
            if is_module {
                continue;
            }
            if names("console") || !named {
                self.console = chosen;
            }
            if names("file") || !named {
                self.file = chosen;
            }
        }
    }
}

/// Starts logging to standard error, and to a file if that is asked for.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn start_logging(logging: &Logging, program: &str) -> Result<(), String> {
    let mut levels = Levels { console: LevelFilter::INFO, file: LevelFilter::INFO };
    for specification in &logging.verbose {
        levels.apply(specification);
    }
    let console = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_target(false)
        .with_filter(levels.console);
    let file = match &logging.log_file {
        None => None,
        Some(path) => {
            let default = || environment::log_directory().join(format!("{program}.log"));
            let path = path.clone().unwrap_or_else(default);
            let file = OpenOptions::new().create(true).append(true).open(&path);
            let file = file.map_err(|e| format!("cannot write the log {}: {e}", path.display()))?;
            let layer = tracing_subscriber::fmt::layer().with_writer(Arc::new(file)).with_ansi(false);
            Some(layer.with_target(false).with_filter(levels.file))
        }
    };
    // Only the first call can set the subscriber; a second one would be a mistake of ours and changes nothing.
    let _ = tracing_subscriber::registry().with(console).with(file).try_init();
    Ok(())
}
