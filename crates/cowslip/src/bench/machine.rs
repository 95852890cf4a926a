//! What a measurement ran on, and what a process used, as the kernel tells it.

use crate::ovsdb_client::clock::timestamp;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The lines above every result.
pub(crate) fn heading(title: &str, versions: &[String]) -> String {
    let words: Vec<String> = std::env::args().map(|word| shown(&word)).collect();
    let build = if cfg!(debug_assertions) { " (debug build: use --release)" } else { "" };
    let mut lines = vec![
        format!("### {title}"),
        String::new(),
        format!("* {} UTC, {} x {}", &timestamp()[..16], processors(), processor_model()),
        format!("* `{}`{build}", words.join(" ")),
        format!("* database files on {}", file_system(&std::env::temp_dir())),
    ];
    lines.extend(versions.iter().map(|version| format!("* {version}")));
    lines.push(String::new());
    lines.join("\n")
}

/// A word of the command line without the directory of the program.
fn shown(word: &str) -> String {
    match word.rsplit_once('/') {
        Some((_, name)) if name.starts_with("cowslip") => name.to_owned(),
        _ => word.to_owned(),
    }
}

/// The kind of file system that a directory is on; it decides what a durable commit costs.
fn file_system(directory: &Path) -> String {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let directory = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    // A later mount hides an earlier one at the same place.
    let nearest = mounted.filter(|(at, _)| directory.starts_with(at)).max_by_key(|(at, _)| at.len());
    nearest.map_or("an unknown file system".to_owned(), |(at, kind)| format!("{kind} ({at})"))
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn processor_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|l| l.split_once(':'))
        .map_or("unknown processor".to_owned(), |(_, model)| model.trim().to_owned())
}

/// The first line of what a program says of its version.
pub(crate) fn version_of(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

/// The processor time that a process has used so far, in user and kernel, all threads.
pub(crate) fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the fields after it are numbers.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// The memory that a process has in use, and the most it ever had, in megabytes.
pub(crate) fn resident_mb(pid: u32) -> Option<(f64, f64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kb| kb / 1024.0)
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        assert!(cpu_time(std::process::id()).is_some());
        assert!(resident_mb(std::process::id()).is_some_and(|(now, peak)| now > 0.1 && peak >= now * 0.9));
    }
}
