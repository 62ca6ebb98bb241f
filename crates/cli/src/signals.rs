//! The signals by which the user or the system asks for an end.

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// From when this exists on they no longer end the process by themselves.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// The terminal has gone. Without a terminal of its own a run may outlive it on purpose.
    hangup: Option<Signal>,
}

impl Signals {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: None,
        })
    }

    /// The same for who sits at a terminal.
    pub(crate) fn at_terminal() -> anyhow::Result<Self> {
        let hangup = signal(SignalKind::hangup()).context("cannot listen for signals")?;
        let hangup = Some(hangup);
        Ok(Self {
            hangup,
            ..Self::listen()?
        })
    }

    pub(crate) async fn arrived(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            Some(_) = async { self.hangup.as_mut()?.recv().await } => {}
        }
    }
}
