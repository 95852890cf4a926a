//! Which server or folder a command is about.

use super::client::Client;
use cowslip_engine::Root;
use cowslip_engine::storage::FileSystem;
use cowslip_ldap_server::model::Directory;
use cowslip_ldap_server::offline;
use std::path::{Path, PathBuf};

/// A server, and who the command is there.
#[derive(clap::Args)]
pub(crate) struct Remote {
    /// The server: ldap://HOST:PORT or ldapi://%2Fpath%2Fto%2Fsocket
    #[arg(short = 'H', long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Who to be there
    #[arg(short = 'D', long, value_name = "DN", requires = "url")]
    bind_dn: Option<String>,
    /// That user's password; others can read it in the list of processes
    #[arg(
        short = 'w',
        long,
        value_name = "PASSWORD",
        requires = "bind_dn",
        conflicts_with = "password_file"
    )]
    password: Option<String>,
    /// A file whose first line is that user's password
    #[arg(short = 'y', long, value_name = "FILE", requires = "bind_dn")]
    password_file: Option<PathBuf>,
}

impl Remote {
    /// Connects and says who the client is.
    pub(crate) fn connect(&self) -> Result<Client, String> {
        let url = self.url.as_deref().ok_or("give a server with --url")?;
        let mut client = Client::connect(url).map_err(|error| error.to_string())?;
        if let Some(name) = &self.bind_dn {
            client.bind(name, &self.password()?).map_err(|error| error.to_string())?;
        }
        Ok(client)
    }

    fn password(&self) -> Result<Vec<u8>, String> {
        match (&self.password_file, &self.password) {
            (Some(path), _) => {
                let text = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
                let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
                Ok(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
            }
            (None, Some(password)) => Ok(password.clone().into_bytes()),
            (None, None) => Err("give a password with --password-file or --password".to_owned()),
        }
    }
}

/// Reads the directory in a folder that no server has open.
pub(crate) fn load(folder: &Path) -> Result<Root<Directory>, String> {
    let loaded = offline::load(&FileSystem::new(), folder).map_err(|error| error.to_string())?;
    for path in &loaded.report.damaged_snapshots {
        eprintln!("warning: {} is damaged; what it held was read from an older one", path.display());
    }
    Ok(loaded.root)
}
