//! What the user has said during a session that holds for all of its agents: a mode, and rules
//! that allow.

use crate::permission::{Mode, Policy, Ruled};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Clones are the same: those who ask and those who are told.
#[derive(Debug, Clone, Default)]
pub struct Standing(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    said: Mutex<Said>,
    changes: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Said {
    mode: Option<Mode>,
    allow: Vec<Ruled>,
}

impl Standing {
    /// The mode that the user has chosen since the session began.
    pub fn mode(&self) -> Option<Mode> {
        self.said().mode
    }

    pub fn set_mode(&self, mode: Mode) {
        self.said().mode = Some(mode);
        self.0.changes.send_replace(());
    }

    /// Rules that were allowed, as they were given.
    pub fn allowed(&self) -> Vec<Ruled> {
        self.said().allow.clone()
    }

    pub(crate) fn allow(&self, rules: impl IntoIterator<Item = Ruled>) {
        let mut said = self.said();
        for ruled in rules {
            if !said.allow.contains(&ruled) {
                said.allow.push(ruled);
            }
        }
        drop(said);
        self.0.changes.send_replace(());
    }

    /// Changes with all that is said.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.0.changes.subscribe()
    }

    /// A policy as it is after all that.
    pub fn over(&self, policy: &Arc<Policy>) -> Arc<Policy> {
        let said = self.said();
        if said.mode.is_none() && said.allow.is_empty() {
            return policy.clone();
        }
        let mut changed = match said.mode {
            Some(mode) => policy.with_top_mode(mode),
            None => Policy::clone(policy),
        };
        changed.allow.extend(said.allow.iter().cloned());
        Arc::new(changed)
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.0.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::Role;

    fn child(of: &Arc<Policy>, mode: Option<Mode>) -> Arc<Policy> {
        let role = Role {
            mode,
            ..Role::default()
        };
        Arc::new(of.child(role))
    }

    #[test]
    fn a_mode_holds_for_all_within_what_their_roles_ask_for() {
        let top = Arc::new(Policy::new(Mode::Default, Vec::new(), "/nowhere".into()));
        let (worker, planner) = (child(&top, None), child(&top, Some(Mode::Plan)));
        let standing = Standing::default();
        let seen = |policy: &Arc<Policy>| standing.over(policy).effective_mode();
        assert_eq!(seen(&worker), Mode::AcceptEdits);
        standing.set_mode(Mode::BypassPermissions);
        assert_eq!(seen(&top), Mode::BypassPermissions);
        assert_eq!(seen(&worker), Mode::BypassPermissions);
        assert_eq!(seen(&planner), Mode::Plan, "a role is not lifted");
        standing.set_mode(Mode::Plan);
        assert_eq!(seen(&worker), Mode::Plan);
        standing.set_mode(Mode::AcceptEdits);
        assert_eq!(seen(&worker), Mode::AcceptEdits, "and comes back");
    }
}
