//! Where Open vSwitch's programs keep their files, which the environment can change.

use std::path::PathBuf;

fn directory(variable: &str, default: &str) -> PathBuf {
    std::env::var_os(variable).filter(|v| !v.is_empty()).map_or_else(|| default.into(), PathBuf::from)
}

/// Sockets and files with process ids: `OVS_RUNDIR`.
pub(crate) fn run_directory() -> PathBuf {
    directory("OVS_RUNDIR", "/var/run/openvswitch")
}

/// Logs: `OVS_LOGDIR`.
pub(crate) fn log_directory() -> PathBuf {
    directory("OVS_LOGDIR", "/var/log/openvswitch")
}

/// Databases: `OVS_DBDIR`.
pub(crate) fn database_directory() -> PathBuf {
    directory("OVS_DBDIR", "/etc/openvswitch")
}
