//! How far a long command is, on one line of a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line is written.
const INTERVAL: Duration = Duration::from_millis(200);

/// How many characters the bar has.
const BAR_WIDTH: usize = 24;

/// A line that says how far a command is. Without a terminal nothing is written until the end.
pub(crate) struct Progress {
    unit: &'static str,
    started: Instant,
    shown: Option<Instant>,
    is_terminal: bool,
}

impl Progress {
    /// A line that counts these.
    pub(crate) fn new(unit: &'static str) -> Self {
        Self { unit, started: Instant::now(), shown: None, is_terminal: std::io::stderr().is_terminal() }
    }

    /// So many are done, of all of them this part, if that is known.
    pub(crate) fn tell(&mut self, count: u64, part: Option<f64>) {
        let is_due = self.shown.is_none_or(|shown| shown.elapsed() >= INTERVAL);
        if self.is_terminal && is_due {
            self.shown = Some(Instant::now());
            self.write(&line(self.unit, count, self.started.elapsed(), part));
        }
    }

    /// Something that takes its time and cannot be counted.
    pub(crate) fn say(&mut self, what: &str) {
        if self.is_terminal {
            self.shown = Some(Instant::now());
            self.write(what);
        }
    }

    fn write(&self, text: &str) {
        // A terminal that takes no more will not be missed.
        let _ = write!(std::io::stderr(), "\r{text}\x1b[K");
    }

    /// Takes the line away, so that something else can be written.
    pub(crate) fn clear(&mut self) {
        if self.shown.take().is_some() {
            self.write("");
        }
    }

    /// Takes the line away and gives the sum of it: how many in which time.
    pub(crate) fn end(&mut self, count: u64) -> String {
        self.clear();
        let elapsed = self.started.elapsed();
        format!("{} in {:.1} s{}", counted(count, self.unit), elapsed.as_secs_f64(), rate(count, elapsed))
    }
}

fn line(unit: &str, count: u64, elapsed: Duration, part: Option<f64>) -> String {
    let bar = part.map(|part| {
        let part = part.clamp(0.0, 1.0);
        let full = (part * BAR_WIDTH as f64) as usize;
        format!("[{}{}] {:3.0} %  ", "#".repeat(full), "-".repeat(BAR_WIDTH - full), part * 100.0)
    });
    format!("{}{}{}", bar.unwrap_or_default(), counted(count, unit), rate(count, elapsed))
}

fn rate(count: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if seconds < 0.05 { String::new() } else { format!(", {}/s", grouped((count as f64 / seconds) as u64)) }
}

/// A number of things.
pub(crate) fn counted(count: u64, unit: &str) -> String {
    format!("{} {unit}", grouped(count))
}

/// A number with its digits in groups.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let cases = [
            (0, 10, None, "0 entries, 0/s"),
            (1_234_567, 1, None, "1,234,567 entries, 1,234,567/s"),
            (999, 0, Some(0.5), "[############------------]  50 %  999 entries"),
            (1_000, 2, Some(7.0), "[########################] 100 %  1,000 entries, 500/s"),
        ];
        for (count, seconds, part, expected) in cases {
            assert_eq!(line("entries", count, Duration::from_secs(seconds), part), expected);
        }
    }
}
