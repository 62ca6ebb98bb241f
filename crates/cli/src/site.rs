//! What agents in one place share of their surroundings. It is looked up once for all that begin
//! together: a hundred workers would each read the same links, mounts and settings of git.

use crate::limits::Occupant;
use gaffer_workspace::fence::Fence;
use gaffer_workspace::sandbox::Binding;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is older is looked up again: files and mounts change.
const FRESH: Duration = Duration::from_secs(1);

/// All but what is an agent's own.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) fence: Fence,
    /// The user's list of what git leaves out everywhere.
    pub(crate) excludes: Option<PathBuf>,
    /// What binds commands, where anything does.
    pub(crate) binding: Option<Binding>,
}

/// The site that was looked up last. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sites(Arc<Mutex<Option<Known>>>);

#[derive(Debug)]
struct Known {
    at: Instant,
    place: Place,
    site: Arc<Site>,
}

/// What a site depends on.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    cwd: PathBuf,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

impl Sites {
    /// The site of an agent that works in the user's checkout.
    pub(crate) fn get(&self, who: &Occupant<'_>, survey: impl FnOnce() -> Site) -> Arc<Site> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*last
            && known.at.elapsed() < FRESH
            && known.place.is_of(who)
        {
            return known.site.clone();
        }
        let site = Arc::new(survey());
        *last = Some(Known {
            at: Instant::now(),
            place: Place::of(who),
            site: site.clone(),
        });
        site
    }
}

impl Place {
    fn of(who: &Occupant<'_>) -> Self {
        let owned = |paths: &[&Path]| paths.iter().map(|path| path.to_path_buf()).collect();
        Self {
            cwd: who.cwd.to_owned(),
            readable: owned(&who.readable),
            writable: owned(&who.writable),
        }
    }

    fn is_of(&self, who: &Occupant<'_>) -> bool {
        self.cwd == who.cwd && self.readable == who.readable && self.writable == who.writable
    }
}
