//! Keeping house: how long sessions are kept, how much space they take, and what must stay free.

use crate::exit::Usage;
use crate::settings::Settings;
use crate::system::SystemClock;
use gaffer_protocol::Clock;
use gaffer_store::delete::remove_all;
use gaffer_store::retain::Rules;
use gaffer_store::{Found, Home};
use gaffer_tools::Floor;
use gaffer_workspace::scratchpad::Place;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PERIOD_DAYS: u32 = 30;
const MAX_SIZE: u64 = 5_000_000_000;
const MIN_FREE_SPACE: u64 = 500_000_000;

/// So long the daily cleaning may take at the end of a run. What is left is for the next one.
const LONGEST: Duration = Duration::from_secs(2);

/// How long sessions are kept, and how many.
pub(crate) fn rules(settings: &Settings) -> Rules {
    let days = settings.cleanup_period_days.unwrap_or(PERIOD_DAYS);
    let most = settings.sessions.max_size.map_or(MAX_SIZE, |size| size.0);
    Rules {
        period: Duration::from_secs(u64::from(days) * 24 * 60 * 60),
        max_size: (most > 0).then_some(most),
    }
}

/// What must stay free on the disk that sessions are on.
pub(crate) fn floor(settings: &Settings, home: &Home) -> Floor {
    let least = settings
        .min_free_space
        .map_or(MIN_FREE_SPACE, |size| size.0);
    Floor::new(home.path(), least, Arc::new(SystemClock))
}

/// A session is not begun where it could not be kept.
pub(crate) fn check(floor: &Floor) -> Result<(), Usage> {
    floor.check().map_err(|low| {
        Usage::new(format!(
            "{low}: make room (`gaffer sessions clean` removes old sessions), or set `minFreeSpace` lower; 0 turns it off"
        ))
    })
}

/// Cleans once a day, when a run is over and its answer is printed. Nobody is told: a run's output
/// is about its task.
pub(crate) fn after_run(home: &Home, rules: &Rules, transcript: &Path) {
    let began = Instant::now();
    let now = SystemClock.now();
    let Some(due) = home.due(now) else {
        return;
    };
    let has_time = || began.elapsed() < LONGEST;
    let done = home.clean(rules, now, transcript.parent(), &has_time, &remove_beside);
    if !done.is_cut {
        due.done(now);
    }
}

/// Removes a deleted session's scratchpad, if it is where scratchpads are now.
pub(crate) fn remove_beside(found: &Found) {
    let project = found.folder.path().parent().and_then(Path::file_name);
    let Some(project) = project.and_then(|name| name.to_str()) else {
        return;
    };
    let place = Place {
        temp: &std::env::temp_dir(),
        uid: rustix::process::getuid().as_raw(),
        folder: project,
        session: found.id.as_str(),
    };
    if let Some(path) = place.find() {
        // The system clears its temporary files by itself in any case.
        drop(remove_all(&path));
    }
}
