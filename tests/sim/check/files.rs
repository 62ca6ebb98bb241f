//! What became of all that was written: no accepted change is missing, no two agents had one file,
//! nobody wrote outside of its order's files, and work in worktrees is where the notification says.

use super::{Past, news};
use crate::sim::diary::{Call, Entry};
use crate::sim::site::{FOLDERS, git};
use gaffer_protocol::{AgentId, AgentName, EventKind, Role};
use gaffer_tools::lease::{Member, Scope};
use gaffer_workspace::worktree::Worktree;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A change that a tool has accepted.
struct Change {
    agent: AgentId,
    at: usize,
    path: String,
    /// What the file must have from now on; for a counter, what it was before.
    line: String,
    is_count: bool,
}

pub(super) fn check(past: &Past<'_>) {
    let is_enforced = past.world.crew.parts().guardrails.leases.is_enforced;
    let changes: Vec<Change> = past.calls.iter().filter_map(change).collect();
    let mut by_file: BTreeMap<(Option<AgentId>, &str), Vec<&Change>> = BTreeMap::new();
    for change in &changes {
        let apart = past.tasks[&change.agent].terms.isolated;
        let tree = apart.then_some(change.agent);
        by_file
            .entry((tree, &change.path))
            .or_default()
            .push(change);
    }
    for ((tree, path), changes) in &by_file {
        let folder = match tree {
            Some(agent) => worktree(past, *agent),
            None => project(past),
        };
        let text = std::fs::read_to_string(folder.join(path));
        let text = text.unwrap_or_else(|why| panic!("{}: {why}", folder.join(path).display()));
        check_kept(path, &text, changes);
        if tree.is_none() && is_enforced {
            check_one_at_a_time(past, changes);
        }
    }
    for change in changes.iter().filter(|_| is_enforced) {
        check_bounds(past, change);
    }
    if is_enforced {
        check_scopes(past);
    }
    check_worktrees(past);
    check_free(past);
}

/// Workers whose orders name the same file never run at the same time.
fn check_scopes(past: &Past<'_>) {
    let tasks = past.tasks.values();
    let bound: Vec<_> = tasks
        .filter(|task| !task.terms.isolated && !task.terms.files.is_empty())
        .collect();
    for (n, one) in bound.iter().enumerate() {
        for other in &bound[n + 1..] {
            let is_above =
                past.above(one.id).contains(&other.id) || past.above(other.id).contains(&one.id);
            let mut all =
                (0..FOLDERS).flat_map(|n| [format!("d{n}/count.txt"), format!("d{n}/list.txt")]);
            let meets =
                |path: &String| covers(&one.terms.files, path) && covers(&other.terms.files, path);
            if is_above || !all.any(|path| meets(&path)) {
                continue;
            }
            for (from, to) in runs(past, one.id) {
                let both = runs(past, other.id)
                    .into_iter()
                    .find(|it| it.0 < to && from < it.1);
                assert_eq!(both, None, "{} and {} at once", one.id, other.id);
            }
        }
    }
}

/// From its first request to the last thing that it did, for each run of an agent.
fn runs(past: &Past<'_>, agent: AgentId) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let mut run: Option<(usize, usize)> = None;
    for (at, entry) in past.entries.iter().enumerate() {
        match entry {
            Entry::Request(id) if *id == agent => run = Some((run.map_or(at, |it| it.0), at)),
            Entry::Event(id, EventKind::AgentEnded(_)) if *id == agent => runs.extend(run.take()),
            Entry::Event(id, EventKind::ToolFinished { .. } | EventKind::Answered { .. })
                if *id == agent =>
            {
                run = run.map(|it| (it.0, at));
            }
            _ => {}
        }
    }
    runs
}

fn project(past: &Past<'_>) -> PathBuf {
    let site = past.world.folder.path();
    let root = site.ancestors().find(|it| it.join("project").is_dir());
    root.unwrap().join("project").canonicalize().unwrap()
}

fn worktree(past: &Past<'_>, agent: AgentId) -> PathBuf {
    let place = past.world.folder.worktrees();
    let tree = Worktree::find(&place, &agent.to_string());
    tree.unwrap_or_else(|| panic!("the worktree of {agent} is gone, and it has written"))
        .folder()
}

fn change(call: &Call) -> Option<Change> {
    let name = call.made.name.as_str();
    if !matches!(name, "Edit" | "Write") || call.result.is_error {
        return None;
    }
    let input: Value = serde_json::from_str(call.made.input.as_text()).unwrap();
    let text = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
    let is_count = call.made.id.starts_with("count");
    let new = text("new_string") + &text("content");
    let line = match is_count {
        true => text("old_string"),
        false => new.lines().last().unwrap().to_owned(),
    };
    Some(Change {
        agent: call.agent,
        at: call.at,
        path: text("file_path"),
        line,
        is_count,
    })
}

/// No update is lost: each line is there, and no number was counted on from twice.
fn check_kept(path: &str, text: &str, changes: &[&Change]) {
    let lines: BTreeSet<&str> = text.lines().collect();
    let mut counted = BTreeSet::new();
    for change in changes {
        if change.is_count {
            let before = number(&change.line);
            assert!(
                counted.insert(before),
                "{path}: two have counted on from {before}"
            );
            assert!(
                number(text.trim_end()) > before,
                "{path}: {text} after {before}"
            );
        } else {
            assert!(
                lines.contains(change.line.as_str()),
                "{path}: {} is lost: {text}",
                change.line
            );
        }
    }
}

fn number(text: &str) -> u64 {
    let digits = text
        .strip_prefix("count: ")
        .and_then(|it| it.strip_suffix(';'));
    digits.unwrap().parse().unwrap()
}

/// Whether an agent does anything more in the run that it is in.
fn goes_on(past: &Past<'_>, agent: AgentId, at: usize) -> bool {
    for entry in &past.entries[at + 1..] {
        match entry {
            Entry::Request(id) if *id == agent => return true,
            Entry::Event(id, kind) if *id == agent => match kind {
                EventKind::AgentEnded(_) => return false,
                EventKind::ToolStarted { .. } | EventKind::ToolFinished { .. } => return true,
                _ => {}
            },
            _ => {}
        }
    }
    false
}

/// Whether it has done anything yet in the run that it is in.
fn has_begun(past: &Past<'_>, agent: AgentId, at: usize) -> bool {
    for entry in past.entries[..at].iter().rev() {
        match entry {
            Entry::Request(id) if *id == agent => return true,
            Entry::Event(id, EventKind::AgentEnded(_) | EventKind::AgentStarted(_))
                if *id == agent =>
            {
                return false;
            }
            _ => {}
        }
    }
    false
}

/// Whoever wrote a file has it until its run ends; only to a worker that it waits for it may hand
/// it on.
fn check_one_at_a_time(past: &Past<'_>, changes: &[&Change]) {
    for pair in changes.windows(2) {
        let [before, after] = pair else { continue };
        let is_other = before.agent != after.agent;
        if is_other && !past.above(after.agent).contains(&before.agent) {
            let is_same_run = !past.entries[before.at..after.at].iter().any(|entry| {
                matches!(entry, Entry::Event(id, EventKind::AgentEnded(_)) if *id == before.agent)
            });
            let holds = is_same_run && goes_on(past, before.agent, after.at);
            assert!(
                !holds,
                "{} and {} both have {}",
                before.agent, after.agent, after.path
            );
        }
    }
    for change in changes {
        let above = past.above(change.agent);
        let others = past.tasks.values().filter(|task| {
            task.id != change.agent
                && !above.contains(&task.id)
                && !task.terms.isolated
                && covers(&task.terms.files, &change.path)
        });
        for task in others {
            let holds = has_begun(past, task.id, change.at) && goes_on(past, task.id, change.at);
            assert!(
                !holds,
                "{} wrote {}, which is of the order of {}",
                change.agent, change.path, task.id
            );
        }
    }
}

/// Nobody writes outside of the files of its order, nor of those above it.
fn check_bounds(past: &Past<'_>, change: &Change) {
    let all = [vec![change.agent], past.above(change.agent)].concat();
    for task in all.iter().filter_map(|id| past.tasks.get(id)) {
        let files = &task.terms.files;
        let is_in = files.is_empty() || covers(files, &change.path);
        assert!(
            is_in,
            "{} wrote {} beside {files:?}",
            change.agent, change.path
        );
    }
}

fn covers(files: &[String], path: &str) -> bool {
    files.iter().any(|glob| match glob.strip_suffix("**") {
        Some(folder) => path.starts_with(folder),
        None => glob == path,
    })
}

/// Where something was done in a worktree, it is there, its git works, and the last end names it.
fn check_worktrees(past: &Past<'_>) {
    let place = past.world.folder.worktrees();
    for tree in Worktree::all(&place) {
        assert!(tree.is_whole(), "{tree:?}");
        git(&tree.path, &["status", "--porcelain"]).unwrap();
        git(&tree.path, &["rev-parse", "--verify", &tree.branch]).unwrap();
    }
    for task in past.tasks.values().filter(|task| task.terms.isolated) {
        let Some(tree) = Worktree::find(&place, &task.id.to_string()) else {
            continue;
        };
        let readers = past.folds.values().flat_map(|fold| &fold.messages);
        let user = readers.filter(|message| message.role == Role::User);
        let read = user.flat_map(|message| &message.blocks);
        let told = read.chain(&past.unread).filter_map(news);
        let mut own = told.filter(|it| it.task == Some(task.id)).peekable();
        // Whoever waited for it heard of it in another form.
        if own.peek().is_some() {
            let path = tree.path.display().to_string();
            let named = own.any(|it| it.worktree.is_some_and(|it| it.path == path));
            assert!(named || past.calls.iter().any(|it| it.result.text().contains(&path)));
        }
    }
    git_is_sound(past);
}

fn git_is_sound(past: &Past<'_>) {
    let project = project(past);
    if project.join(".git").exists() {
        let list = git(&project, &["worktree", "list", "--porcelain"]).unwrap();
        assert!(!list.contains("prunable"), "{list}");
        let changed = git(&project, &["status", "--porcelain", "--", ":!own", ":!d*"]).unwrap();
        assert_eq!(changed, "");
    }
}

/// Nobody holds anything any more.
fn check_free(past: &Past<'_>) {
    let all = Member {
        id: AgentId::parse("agent-ffffffff").unwrap(),
        name: AgentName::parse("last").unwrap(),
        task: String::new(),
        above: Vec::new(),
        scope: Some(Scope::new(&["**".to_owned()], &project(past))),
    };
    assert_eq!(past.world.crew.leases().blocked(&all), None);
}
