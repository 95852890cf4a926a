//! Database files on a simulated disk: power failures, full disks, failing devices, restarts, and files that other
//! programs wrote.

mod faults;
mod foreign;
mod history;
mod property;
mod support;
