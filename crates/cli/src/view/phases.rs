//! The course of a session: as JSON, and as lines for people.

use super::json::usage;
use gaffer_protocol::Course;
use gaffer_protocol::course::Share;
use serde_json::{Map, Value, json};

/// For programs: in the result, and in the account of a session.
pub(crate) fn json(course: &Course) -> Value {
    json!({
        "course": course.stretches,
        "left_out": course.left_out,
        "unchecked": course.unchecked,
        "unverified": course.unverified,
        "totals": course.shares.iter().map(share).collect::<Map<String, Value>>(),
    })
}

fn share(share: &Share) -> (String, Value) {
    let figures = json!({
        "agents": share.agents,
        "turns": share.turns,
        "tool_uses": share.tool_uses,
        "usage": usage(share.usage),
        "cost_usd": share.cost.usd(),
        "duration_ms": share.time.as_millis() as u64,
    });
    (share.phase.as_str().to_owned(), figures)
}

/// What happened in which order, and what did not.
pub(crate) fn text(course: &Course) -> String {
    let names = |all: &[gaffer_protocol::AgentName]| {
        let names: Vec<&str> = all.iter().map(|name| name.as_str()).collect();
        names.join(", ")
    };
    let all: Vec<String> = course.stretches.iter().map(ToString::to_string).collect();
    let mut out = format!("phases: {}\n", all.join(" → "));
    if !course.left_out.is_empty() {
        let all: Vec<&str> = course.left_out.iter().map(|it| it.as_str()).collect();
        out.push_str(&format!("left out: {}\n", all.join(", ")));
    }
    if !course.unchecked.is_empty() {
        let all = names(&course.unchecked);
        out.push_str(&format!("changed, and not verified since: {all}\n"));
    }
    if !course.unverified.is_empty() {
        let all = names(&course.unverified);
        out.push_str(&format!("unverified, by their word alone: {all}\n"));
    }
    out
}
