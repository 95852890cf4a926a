//! How long TCP may take to notice that the other end is gone.
//!
//! A machine that loses power sends nothing, so its peer's connection stays open for ever unless something asks.
//! *Keep-alive* asks while nothing is on its way; the *user time-out* bounds how long something may be on its way without
//! being acknowledged. Both are the kernel's work and also end connections whose program is busy.

use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;

/// When an idle connection's other end is asked whether it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// The idle time before the first question; whole seconds, at least one.
    pub time: Duration,
    /// The time between questions without an answer; whole seconds, at least one.
    pub interval: Duration,
    /// How many such questions end the connection.
    pub retries: u32,
}

impl Default for KeepAlive {
    /// After a minute, every ten seconds, six times: two minutes until a dead peer is noticed.
    fn default() -> Self {
        KeepAlive { time: Duration::from_secs(60), interval: Duration::from_secs(10), retries: 6 }
    }
}

/// The settings of a TCP connection, with or without TLS on it.
///
/// ```
/// use cowslip_net::tcp::{KeepAlive, TcpOptions};
/// use std::time::Duration;
/// let options = TcpOptions {
///     keep_alive: Some(KeepAlive { time: Duration::from_secs(10), ..KeepAlive::default() }),
///     ..TcpOptions::default()
/// };
/// assert_eq!(options.user_timeout, Some(Duration::from_secs(60)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Keep-alive; none for the system's own default, which mostly is none.
    pub keep_alive: Option<KeepAlive>,
    /// How long sent bytes may stay unacknowledged before the connection ends (`TCP_USER_TIMEOUT`; Linux only, elsewhere
    /// without effect); none for the system's own default, about fifteen minutes. It takes the place of
    /// [`KeepAlive::retries`] where both are set, as the kernel has it.
    pub user_timeout: Option<Duration>,
}

impl Default for TcpOptions {
    /// Keep-alive by [`KeepAlive::default`], and a user time-out of one minute.
    fn default() -> Self {
        TcpOptions { keep_alive: Some(KeepAlive::default()), user_timeout: Some(Duration::from_secs(60)) }
    }
}

impl TcpOptions {
    /// Sets them on a connection, and has small messages sent at once.
    ///
    /// # Errors
    /// The system's: a value that it does not take.
    pub fn apply(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let socket = SockRef::from(stream);
        if let Some(keep_alive) = &self.keep_alive {
            // The system counts in seconds and takes no zero.
            let second = Duration::from_secs(1);
            let settings = TcpKeepalive::new()
                .with_time(keep_alive.time.max(second))
                .with_interval(keep_alive.interval.max(second))
                .with_retries(keep_alive.retries.max(1));
            socket.set_tcp_keepalive(&settings)?;
        }
        #[cfg(target_os = "linux")]
        if self.user_timeout.is_some() {
            socket.set_tcp_user_timeout(self.user_timeout)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn settings_reach_the_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let connect = || async { TcpStream::connect(address).await.expect("it listens") };

        let set = connect().await;
        let keep_alive =
            KeepAlive { time: Duration::from_secs(7), interval: Duration::from_millis(3), retries: 4 };
        let user_timeout = Some(Duration::from_millis(2500));
        TcpOptions { keep_alive: Some(keep_alive), user_timeout }.apply(&set).expect("all are allowed");
        let socket = SockRef::from(&set);
        assert!(socket.keepalive().expect("it can be read"));
        assert_eq!(socket.tcp_keepalive_time().expect("it can be read"), Duration::from_secs(7));
        assert_eq!(socket.tcp_keepalive_interval().expect("it can be read"), Duration::from_secs(1));
        assert_eq!(socket.tcp_keepalive_retries().expect("it can be read"), 4);
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_user_timeout().expect("it can be read"), user_timeout);

        let unset = connect().await;
        TcpOptions { keep_alive: None, user_timeout: None }.apply(&unset).expect("nothing is set");
        assert!(!SockRef::from(&unset).keepalive().expect("it can be read"));
        assert!(unset.nodelay().expect("it can be read"));
    }
}
