//! Commands behind a slash that the session answers: sessions, worktrees, permissions, skills.

use super::desk::Desk;
use super::{Door, Ready};
use crate::args::RepositoryArgs;
use crate::show::not_found;
use crate::system::plain;
use crate::view::sessions::brief;
use crate::worktree::{Yard, listed};
use futures_util::future::LocalBoxFuture;
use gaffer_tools::nearest::nearest;
use gaffer_tools::permission::{Mode, Policy, Ruled};

/// So many sessions are listed.
const MOST_SESSIONS: usize = 15;

/// Answers at once, or with an errand.
pub(super) fn answer<'a>(desk: &'a Desk, name: &str, args: &str) -> Option<LocalBoxFuture<'a, ()>> {
    match name {
        "model" => desk.notice(&format!(
            "the model is {}; /model NAME takes another from the next turn on",
            desk.model_name()
        )),
        "mode" => desk.notice(&format!(
            "the permission mode is {}; there are {}",
            desk.workshop.limits.permission_mode(),
            modes()
        )),
        "permissions" => desk.notice(&permissions(desk)),
        "resume" => desk.notice(&sessions(desk)),
        "worktrees" => return Some(Box::pin(worktrees(desk))),
        _ => skill(desk, name, args),
    }
    None
}

pub(super) fn modes() -> String {
    let all = Mode::ALL.map(Mode::as_str);
    all.join(", ")
}

/// Calls a skill by its name, or says that there is none.
fn skill(desk: &Desk, name: &str, args: &str) {
    let gear = &desk.workshop.gear;
    let session = desk.workshop.session.as_str();
    match gear.call_skill(name, args, session) {
        Some(Ok(text)) => {
            let said = format!("/{name} {args}");
            let told = format!("The user calls the skill {name}, which says:\n\n{text}");
            desk.say_with(said.trim_end(), &told);
        }
        Some(Err(why)) => desk.notice(&format!("/{name} cannot be used: {why}")),
        None => {
            let skills = gear.skills().map(|skill| skill.name.as_str());
            let known: Vec<&str> = gaffer_tui::commands().chain(skills).collect();
            let near = nearest(name, known);
            let near = near.map_or_else(String::new, |near| format!("; did you mean /{near}?"));
            desk.notice(&format!("there is no /{}{near}", plain(name)));
        }
    }
}

fn permissions(desk: &Desk) -> String {
    let limits = &desk.workshop.limits;
    let mut text = format!("the permission mode is {}", limits.permission_mode());
    let given = limits.standing().allowed();
    let lists = |policy: &Policy| {
        let allow = policy.allow.iter().chain(&given).cloned().collect();
        [
            ("denied", policy.deny.clone()),
            ("asked about", policy.ask.clone()),
            ("allowed", allow),
        ]
    };
    let lists: Vec<(&str, Vec<Ruled>)> = limits.policy().map(lists).into_iter().flatten().collect();
    for (what, rules) in &lists {
        for ruled in rules {
            text.push_str(&format!(
                "\n{what}: {} ({})",
                ruled.rule, ruled.source.level
            ));
        }
    }
    if lists.iter().all(|(_, rules)| rules.is_empty()) {
        text.push_str("\nthere are no rules");
    }
    text
}

fn sessions(desk: &Desk) -> String {
    let mut all = desk.home.list(Some(&desk.workshop.cwd));
    let own = desk.workshop.session.as_str();
    all.retain(|it| it.found.id.as_str() != own);
    if all.is_empty() {
        return "there is no other session of this folder".to_owned();
    }
    let more = all.len().saturating_sub(MOST_SESSIONS);
    all.truncate(MOST_SESSIONS);
    let mut text = brief(&all);
    if more > 0 {
        text.push_str(&format!("and {more} more: gaffer sessions lists them\n"));
    }
    text + "/resume ID goes on with one"
}

/// Another session, ready to go on in this one's place.
pub(super) fn resume(desk: &Desk, door: &Door, wanted: &str) -> Result<Ready, String> {
    let found = desk.home.find_session(&desk.workshop.cwd, wanted);
    let found = found.map_err(|why| not_found(Some(wanted), &why).to_string())?;
    if found.id == desk.workshop.session {
        return Err("that is this session".to_owned());
    }
    if let Some(owner) = found.folder.owner() {
        return Err(format!("process {} works on it", owner.pid));
    }
    let busy: Vec<String> = desk
        .crew()
        .workers()
        .iter()
        .map(|it| it.name.to_string())
        .collect();
    if !busy.is_empty() {
        return Err(format!(
            "workers of this session have not ended: {}. Wait for them or stop them, or open the other one in a terminal of its own",
            busy.join(", ")
        ));
    }
    door.resume(&found.id).map_err(|why| format!("{why:#}"))
}

async fn worktrees(desk: &Desk) {
    let here = RepositoryArgs {
        cwd: Some(desk.workshop.cwd.clone()),
    };
    let text = match Yard::open(&here).await {
        Ok(yard) => listed(&yard).await,
        Err(why) => format!("{why:#}"),
    };
    desk.notice(text.trim_end());
}
