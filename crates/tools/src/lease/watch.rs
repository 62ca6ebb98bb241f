//! What a shell command did to files that others hold, or that its agent was not to write. A
//! command cannot be kept from it; so the files are compared, and it is told at once.

use super::table::Command;
use super::{Lease, stamp, stamp_of};
use crate::context::Context;
use crate::file::aside;
use crate::tool::Output;
use gaffer_protocol::{AgentId, ResultPart};
use gaffer_workspace::fence::Stamp;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// So many files are looked at for a worker that may write only some.
const MOST_FILES: usize = 20_000;
/// So many are named.
const MOST_NAMED: usize = 10;
const LONGEST_LINE: usize = 200;
/// The clock of files may be so much behind.
const SLACK: Duration = Duration::from_millis(20);

/// A command under way.
#[derive(Debug)]
pub(crate) struct Watch {
    lease: Lease,
    number: u64,
    jobs: HashSet<String>,
    before: Before,
    /// Whether something of the command goes on.
    is_left: bool,
}

#[derive(Debug, Default)]
struct Before {
    /// Files of others.
    held: HashMap<PathBuf, (AgentId, Option<Stamp>)>,
    /// What the agent is not to write; none where it may write all.
    outside: Option<BTreeMap<PathBuf, Stamp>>,
}

/// What has come of a command.
#[derive(Debug, Default)]
struct Found {
    /// Files of others with who holds them.
    foreign: Vec<(PathBuf, String)>,
    outside: Vec<PathBuf>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.is_left {
            self.lease.leases.table().end_command(self.number);
        }
    }
}

impl Watch {
    /// Looks at what a command must not change, before it begins.
    pub(crate) async fn begin(context: &Context, line: Option<&str>) -> Option<Self> {
        let (lease, line) = (context.lease.clone()?, line?);
        let number = {
            let mut table = lease.leases.table();
            table.begin_command(lease.id, &short(line))?
        };
        let jobs = alive(context);
        let mut watch = Self {
            lease: lease.clone(),
            number,
            jobs,
            before: Before::default(),
            is_left: false,
        };
        let held = lease.leases.table().held_by_others(lease.id);
        if held.is_empty() && lease.bounds.is_empty() {
            return Some(watch);
        }
        let before = aside(context, move |_| {
            let look = |(path, by, _): (PathBuf, AgentId, _)| {
                let stamp = stamp(&path);
                (path, (by, stamp))
            };
            Ok(Before {
                held: held.into_iter().map(look).collect(),
                outside: outside(&lease),
            })
        });
        watch.before = before.await.unwrap_or_default();
        Some(watch)
    }

    /// Looks again, and adds to the command's output what it must be told.
    pub(crate) async fn end(mut self, mut output: Output, context: &Context) -> Output {
        self.is_left = !alive(context).is_subset(&self.jobs);
        let lease = self.lease.clone();
        let held = lease.leases.table().held_by_others(lease.id);
        if held.is_empty() && self.before.outside.is_none() {
            return output;
        }
        let before = std::mem::take(&mut self.before);
        let number = self.number;
        let found = aside(context, move |_| {
            Ok(compare(&lease, number, &held, &before))
        });
        let Ok((found, commands)) = found.await else {
            return output;
        };
        let (text, is_error) = self.told(&found, &commands);
        if !text.is_empty() {
            output.is_error |= is_error;
            output.parts.push(ResultPart::Text(text));
        }
        output
    }

    fn told(&self, found: &Found, commands: &[Command]) -> (String, bool) {
        let lease = &self.lease;
        let is_enforced = lease.leases.0.limits.is_enforced;
        let lines: Vec<String> = commands
            .iter()
            .map(|it| format!("{}: `{}`", it.name, it.line))
            .collect();
        let ran = format!("Commands that ran in that time: {}", lines.join("; "));
        let mut text = String::new();
        let mut is_error = false;
        for (path, holder) in found.foreign.iter().take(MOST_NAMED) {
            let path = path.display().to_string();
            let why = format!(
                "{path} changed while this command ran, and {holder} holds it. {ran}. If yours did it, take it back or report it"
            );
            lease.tell("changed-by-command", &path, why.clone(), is_enforced);
            text.push_str(&format!("\n[{why}.]"));
            is_error |= is_enforced;
        }
        if !found.outside.is_empty() {
            let named = found.outside.iter().take(MOST_NAMED);
            let named: Vec<String> = named.map(|it| it.display().to_string()).collect();
            let more = match found.outside.len().saturating_sub(MOST_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let bounds: Vec<String> = lease.bounds.iter().map(super::Scope::shown).collect();
            let why = format!(
                "{}{more} changed while this command ran, outside the files of this task ({}). {ran}. If yours did it, take it back or report it",
                named.join(", "),
                bounds.join("; ")
            );
            // With others at work it is only likely.
            let is_sure = commands.iter().all(|it| it.agent == lease.id);
            let is_refusal = is_enforced && is_sure;
            lease.tell("outside-files", &named.join(", "), why.clone(), is_refusal);
            text.push_str(&format!("\n[{why}.]"));
            is_error |= is_refusal;
        }
        (text.trim_start().to_owned(), is_error)
    }
}

fn short(line: &str) -> String {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn alive(context: &Context) -> HashSet<String> {
    context.jobs.alive().into_iter().map(|it| it.id).collect()
}

fn compare(
    lease: &Lease,
    number: u64,
    held: &[(PathBuf, AgentId, Option<Stamp>)],
    before: &Before,
) -> (Found, Vec<Command>) {
    let now: Vec<Option<Stamp>> = held.iter().map(|(path, ..)| stamp(path)).collect();
    let after = before.outside.as_ref().and_then(|_| outside(lease));
    let table = lease.leases.table();
    let commands = table.ran_with(number);
    let mut found = Found::default();
    for ((path, by, known), now) in held.iter().zip(now) {
        let was = match before.held.get(path) {
            Some((holder, was)) if holder == by => *was,
            _ => *known,
        };
        let Some(held) = table.held.get(path).filter(|it| it.by == *by) else {
            continue;
        };
        // What the holder's tools did is not news: they note it when they are done.
        let is_own = held.is_written || held.known == now || held.known != *known;
        let by_command = |it: &Command| it.agent == *by && wrote_then(it, now);
        if now != was && !is_own && !commands.iter().any(by_command) {
            let holder = table.member(*by).map(super::Member::shown);
            found
                .foreign
                .push((path.clone(), holder.unwrap_or_default()));
        }
    }
    if let (Some(before), Some(after)) = (&before.outside, &after) {
        let all: std::collections::BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
        let changed = all
            .into_iter()
            .filter(|path| before.get(*path) != after.get(*path));
        // What others hold, or have by their orders, is theirs to change.
        let changed = changed.filter(|path| table.holder(path, lease.id).is_none());
        found.outside = changed.cloned().collect();
    }
    (found, commands)
}

/// Whether a command ran when a file was last changed. One that is gone may have gone then.
fn wrote_then(command: &Command, now: Option<Stamp>) -> bool {
    let Some(stamp) = now else {
        return true;
    };
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(stamp.modified_ms()) + SLACK;
    time >= command.began
        && command
            .ended
            .is_none_or(|ended| time <= ended + SLACK + SLACK)
}

/// The files of the project that an agent is not to write, as they are now. What git leaves out
/// and what is hidden is not looked at: builds and caches change there.
fn outside(lease: &Lease) -> Option<BTreeMap<PathBuf, Stamp>> {
    let root = lease.bounds.first()?.root();
    let is_bound = |path: &Path| lease.bounds.iter().all(|it| it.covers(path));
    let files = ignore::WalkBuilder::new(root).require_git(false).build();
    let files = files.flatten().take(MOST_FILES);
    let files = files.filter_map(|entry| {
        let about = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let path = entry.into_path();
        (!is_bound(&path)).then(|| (path, stamp_of(&about)))
    });
    Some(files.collect())
}
