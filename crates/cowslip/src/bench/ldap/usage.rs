//! What a process, and the machine around it, used during a load.

use std::fs;
use std::ops::Sub;

/// Processor time and context switches up to a moment, or between two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// Seconds in the program.
    pub(crate) user_s: f64,
    /// Seconds in the kernel on its behalf.
    pub(crate) system_s: f64,
    /// How often one of its threads gave way or was made to.
    pub(crate) switches: u64,
}

impl Usage {
    /// Of a process so far, all threads; the switches of threads that have ended are not known any more.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything; the fields after it are numbers.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let seconds = |at: usize| {
            let ticks = fields.get(at)?.parse::<u64>().ok()?;
            Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
        };
        Some(Self { user_s: seconds(11)?, system_s: seconds(12)?, switches: switches(pid) })
    }

    /// Both kinds of processor time.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            user_s: self.user_s - earlier.user_s,
            system_s: self.system_s - earlier.system_s,
            switches: self.switches.saturating_sub(earlier.switches),
        }
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.user_s += more.user_s;
        self.system_s += more.system_s;
        self.switches += more.switches;
    }
}

fn switches(pid: u32) -> u64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let of_thread = |thread: fs::DirEntry| {
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let counts = status.lines().filter(|line| line.contains("voluntary_ctxt_switches:"));
        counts.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum::<u64>()
    };
    threads.flatten().map(of_thread).sum()
}

/// The processor time that the whole machine has spent on anything, in seconds, as seen from within.
pub(crate) fn machine_busy_s() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<u64> =
        stat.lines().next()?.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; what guests used is part of user.
    let busy: u64 =
        fields.iter().take(8).enumerate().filter(|(at, _)| ![3, 4].contains(at)).map(|(_, n)| n).sum();
    Some(busy as f64 / rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.switches > 0);
        assert!(machine_busy_s().is_some_and(|busy_s| busy_s >= usage.cpu_s()));
    }
}
