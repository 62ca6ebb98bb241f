//! Which session goes on, where, and as what.

use crate::args::{Common, SandboxMode, Switch};
use crate::exit::Usage;
use crate::mode::Mode;
use crate::show::not_found;
use anyhow::Context;
use clap::ValueEnum;
use gaffer_protocol::{Budget, SessionId};
use gaffer_store::{About, Found, Home, OwnerError, Ownership, Rights, SessionFolder};
use std::path::{Path, PathBuf};

/// A session that goes on.
#[derive(Debug)]
pub(crate) struct Old {
    pub(crate) folder: SessionFolder,
    pub(crate) about: About,
    /// It stays as it is, and a copy goes on.
    pub(crate) is_forked: bool,
    /// What the user is told because the mode is another one than was asked for.
    pub(crate) switched: Option<&'static str>,
}

impl Old {
    /// The session that the command line asks for, if it asks for one.
    pub(crate) fn find(home: &Home, cwd: &Path, common: &Common) -> anyhow::Result<Option<Self>> {
        let wanted = match (&common.resume, common.go_on) {
            (Some(Some(text)), _) => Some(text.as_str()),
            (Some(None), _) | (None, true) => None,
            (None, false) if common.fork_session => {
                let why = "--fork-session needs --resume or --continue: what is to be copied?";
                return Err(Usage::new(why).into());
            }
            (None, false) => return Ok(None),
        };
        if common.session_id.is_some() && !common.fork_session {
            let why = "--session-id names a new session; with --resume it needs --fork-session";
            return Err(Usage::new(why).into());
        }
        let found = match wanted {
            Some(text) => home.find_session(cwd, text),
            None => home.newest_session(cwd),
        };
        let Found { id, folder } = found.map_err(|why| not_found(wanted, &why))?;
        let about = folder.about().or_else(|| folder.recovered_about());
        let about = about.ok_or_else(|| {
            let path = folder.path().display();
            Usage::new(format!(
                "the session {id} has no transcript that can be read: {path}"
            ))
        })?;
        Ok(Some(Self {
            folder,
            about,
            is_forked: common.fork_session,
            switched: None,
        }))
    }

    /// Where it works.
    pub(crate) fn cwd(&self) -> Result<PathBuf, Usage> {
        let cwd = PathBuf::from(&self.about.cwd);
        match cwd.is_dir() {
            true => Ok(cwd),
            false => Err(Usage::new(format!(
                "the session {} works in {}, which is not there any more",
                self.about.session,
                cwd.display()
            ))),
        }
    }

    /// What the user allowed and denied before still holds. What is said now goes over it, but a
    /// denial is never taken back.
    pub(crate) fn restore_rights(&self, common: &mut Common) {
        let Rights {
            mode,
            allowed,
            denied,
            folders,
            sandbox,
            network,
        } = self.about.rights.clone();
        common.permission_mode = common.permission_mode.take().or(mode);
        join(&mut common.allowed_tools, allowed);
        join(&mut common.disallowed_tools, denied);
        join(&mut common.add_dir, folders);
        let sandbox = sandbox.and_then(|name| SandboxMode::from_str(&name, true).ok());
        common.sandbox = common.sandbox.or(sandbox);
        let network = network.map(|is_on| if is_on { Switch::On } else { Switch::Off });
        common.sandbox_network = common.sandbox_network.or(network);
        let budget = Budget::from(common.budget).or(self.about.budget);
        common.budget = budget.into();
    }

    /// The session's own mode wins over the one that was asked for.
    pub(crate) fn mode(&mut self, asked: Mode) -> Result<Mode, Usage> {
        if self.about.mode.is_empty() {
            return Ok(asked);
        }
        // A damaged word is none; the transcript has it too.
        let recovered = || self.folder.recovered_about().map(|about| about.mode);
        let mode = match Mode::parse(&self.about.mode) {
            Ok(mode) => mode,
            Err(why) => match recovered().map(|mode| Mode::parse(&mode)) {
                Some(Ok(mode)) => mode,
                _ => return Err(why),
            },
        };
        self.about.mode = mode.as_str().to_owned();
        if mode != asked {
            self.switched = Some(match mode {
                #[cfg(feature = "coordinator")]
                Mode::Coordinator => "Entered coordinator mode to match resumed session.",
                Mode::Normal => "Exited coordinator mode to match resumed session.",
            });
        }
        Ok(mode)
    }

    /// Makes this process its owner, or the owner of a copy.
    pub(crate) fn own(
        &mut self,
        home: &Home,
        cwd: &Path,
        id: &SessionId,
        now: gaffer_protocol::Timestamp,
    ) -> anyhow::Result<Ownership> {
        if self.is_forked {
            let folder = home
                .create_session(cwd, id)
                .map_err(crate::opening::exists)?;
            let copied = self.folder.copy_to(&folder);
            copied.with_context(|| format!("cannot copy {}", self.folder.path().display()))?;
            let before = std::mem::replace(&mut self.about.session, id.clone());
            self.about.forked_from = Some(before);
            self.about.name = None;
            self.about.created = now;
            self.folder = folder;
        }
        self.folder.own(now).map_err(|error| match error {
            OwnerError::Owned(_) => Usage::new(format!(
                "{error}: wait for its end, or go on in a copy with --fork-session"
            ))
            .into(),
            OwnerError::Io(_) => anyhow::Error::new(error),
        })
    }
}

/// Adds what is not there yet, before the rest: it was said first.
fn join<T: PartialEq>(now: &mut Vec<T>, mut before: Vec<T>) {
    before.retain(|it| !now.contains(it));
    before.append(now);
    *now = before;
}
