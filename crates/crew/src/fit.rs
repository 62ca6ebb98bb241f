//! Continue or fresh: which of the two an order should have had, by what workers have before them.

use crate::history::{History, Named};
use crate::orders::{OrderKind, Tone};
use gaffer_protocol::AgentName;
use std::path::Path;

/// So many symbols must be shared where an order names no file.
const LEAST_SYMBOLS: usize = 3;
/// So many files are named in advice.
const MOST_NAMED: usize = 3;

/// So much is shown of one of them.
const LONGEST_NAME: usize = 120;

/// A worker that could have been continued, or that is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing<'a> {
    pub(crate) name: &'a AgentName,
    pub(crate) history: &'a History,
    pub(crate) has_ended: bool,
    pub(crate) has_failed: bool,
    /// Where it is: paths below are shown from there.
    pub(crate) cwd: Option<&'a Path>,
}

/// What should have been done instead. The name is that of a text in the rules' data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instead {
    pub(crate) rule: &'static str,
    pub(crate) worker: String,
    pub(crate) files: String,
}

impl Instead {
    fn new(rule: &'static str, worker: Standing<'_>, files: &[String]) -> Self {
        Self {
            rule,
            worker: worker.name.to_string(),
            files: listed(files, worker.cwd),
        }
    }
}

/// A fresh worker is wanted: whether one that has ended should go on instead. `all` are those that
/// may, in the order of their starts.
pub(crate) fn for_fresh(tone: Tone, named: &Named, all: &[Standing<'_>]) -> Option<Instead> {
    let is_work = tone.kind == Some(OrderKind::Implementation) || tone.corrects;
    if tone.kind == Some(OrderKind::Verification) || tone.restarts || !is_work {
        return None;
    }
    let mut best: Option<(usize, Instead)> = None;
    for worker in all.iter().filter(|worker| worker.has_ended) {
        let overlap = worker.history.overlap(named);
        let count = overlap.files.len();
        let knows = match named.files.is_empty() {
            false => count > 0 && count * 2 >= named.files.len(),
            true => overlap.symbols >= LEAST_SYMBOLS && overlap.symbols * 2 > named.symbols.len(),
        };
        let is_noise = worker.history.is_broad() && !overlap.is_focused() && !overlap.wrote;
        if !knows || is_noise {
            continue;
        }
        let rule = match overlap.wrote || worker.has_failed {
            true => "continue-recent",
            false => "continue-explored",
        };
        let weight = count * 1000 + overlap.symbols;
        // Of equals the later one: it was started with more in mind.
        if best.as_ref().is_none_or(|(known, _)| *known <= weight) {
            let files = match count {
                0 => worker.history.read().to_vec(),
                _ => overlap.files,
            };
            best = Some((weight, Instead::new(rule, *worker, &files)));
        }
    }
    best.map(|(_, instead)| instead)
}

/// A worker is to go on: whether a fresh one should have been started.
pub(crate) fn for_continued(tone: Tone, named: &Named, worker: Standing<'_>) -> Option<Instead> {
    let history = worker.history;
    let overlap = history.overlap(named);
    let instead = |rule, files: &[String]| Some(Instead::new(rule, worker, files));
    if tone.kind == Some(OrderKind::Verification) && history.has_written() {
        let is_own = named.files.is_empty() || overlap.wrote;
        return is_own.then(|| instead("fresh-verifies", history.written()))?;
    }
    // Who still works is told what is new, whatever that is.
    if !worker.has_ended || history.is_empty() {
        return None;
    }
    if tone.restarts {
        return instead("fresh-restart", &overlap.files);
    }
    if tone.corrects {
        return None;
    }
    if !named.files.is_empty() && overlap.is_nothing() {
        return instead("fresh-unrelated", &named.files);
    }
    let is_noise = history.is_broad() && !history.has_written() && !overlap.is_focused();
    if tone.kind == Some(OrderKind::Implementation) && is_noise {
        return instead("fresh-broad", &named.files);
    }
    None
}

/// What the one above should know when a worker ends, about what may follow.
pub(crate) fn at_end(worker: Standing<'_>) -> Option<Instead> {
    let history = worker.history;
    if history.has_written() {
        let rule = match worker.has_failed {
            true => "ended-failed",
            false => "ended-wrote",
        };
        return Some(Instead::new(rule, worker, history.written()));
    }
    let explored = !history.is_broad() && !history.read().is_empty() && !worker.has_failed;
    explored.then(|| Instead::new("ended-explored", worker, history.read()))
}

/// The newest files, in a few words.
fn listed(files: &[String], cwd: Option<&Path>) -> String {
    let newest = files.iter().rev().take(MOST_NAMED);
    let shown: Vec<String> = newest.map(|path| plain(shorter(path, cwd))).collect();
    match files.len().saturating_sub(MOST_NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A worker chooses what its files are called: a name must not pose as anything else.
fn plain(path: &str) -> String {
    let safe = |it: char| match it {
        '<' | '>' => '?',
        it if it.is_control() => '?',
        it => it,
    };
    path.chars().take(LONGEST_NAME).map(safe).collect()
}

fn shorter<'a>(path: &'a str, cwd: Option<&Path>) -> &'a str {
    let below = cwd.and_then(|cwd| Path::new(path).strip_prefix(cwd).ok());
    below.and_then(Path::to_str).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Traces;
    use crate::orders::{OrderText, Rules};
    use gaffer_protocol::message::ToolInput;
    use gaffer_protocol::{CallId, EventKind, ToolUse};
    use std::sync::Arc;

    struct Past {
        name: AgentName,
        history: History,
        has_failed: bool,
    }

    fn past(rules: &Rules, name: &str, read: &[&str], written: &[&str]) -> Past {
        let mut history = History::default();
        for path in read {
            let input = serde_json::json!({ "file_path": format!("/project/{path}") });
            let tool_use = Arc::new(ToolUse {
                id: CallId::default(),
                name: "Read".to_owned(),
                input: ToolInput::from_text(&input.to_string()),
            });
            let event = EventKind::ToolStarted { tool_use };
            history.add(Traces::of(&event, rules.files()).unwrap());
        }
        let written: Vec<String> = written.iter().map(ToString::to_string).collect();
        history.add_written(&written);
        Past {
            name: AgentName::parse(name).unwrap(),
            history,
            has_failed: false,
        }
    }

    fn standing(past: &Past) -> Standing<'_> {
        Standing {
            name: &past.name,
            history: &past.history,
            has_ended: true,
            has_failed: past.has_failed,
            cwd: Some(Path::new("/project")),
        }
    }

    /// What is said to a fresh worker for this order, and to the continuation of each.
    fn told(
        rules: &Rules,
        text: &str,
        all: &[&Past],
    ) -> (Option<Instead>, Vec<Option<&'static str>>) {
        let named = Named::of(text, rules.files());
        let fresh = rules.tone(&OrderText::fresh(text));
        let all: Vec<Standing<'_>> = all.iter().map(|past| standing(past)).collect();
        let continued = rules.tone(&OrderText::continuation(text));
        let each = |it: &Standing<'_>| for_continued(continued, &named, *it).map(|it| it.rule);
        (
            for_fresh(fresh, &named, &all),
            all.iter().map(each).collect(),
        )
    }

    #[test]
    fn who_explored_exactly_the_files_to_be_changed_is_continued() {
        let rules = Rules::built_in().unwrap();
        let finder = past(&rules, "finder", &["auth/session.rs", "auth/token.rs"], &[]);
        let other = past(&rules, "other", &["web/menu.ts"], &[]);
        let order =
            "auth/session.rs:142 unwraps None. Return an error. Run `cargo test`. Add a test.";
        let (fresh, continued) = told(&rules, order, &[&finder, &other]);
        let instead = fresh.unwrap();
        assert_eq!(
            (instead.rule, &*instead.worker),
            ("continue-explored", "finder")
        );
        assert_eq!(instead.files, "auth/session.rs");
        assert_eq!(continued, [None, Some("fresh-unrelated")]);
    }

    #[test]
    fn broad_research_is_followed_by_a_fresh_worker() {
        let rules = Rules::built_in().unwrap();
        let paths: Vec<String> = (0..30).map(|n| format!("src/part{n}/lib.rs")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let scout = past(&rules, "scout", &paths, &[]);
        let order =
            "Change the limit in src/part3/lib.rs to 20, since 10 is too low. Run the tests.";
        let (fresh, continued) = told(&rules, order, &[&scout]);
        assert_eq!(fresh, None);
        assert_eq!(continued, [Some("fresh-broad")]);
    }

    #[test]
    fn a_correction_continues_who_just_tried() {
        let rules = Rules::built_in().unwrap();
        let mut writer = past(&rules, "writer", &["src/queue.rs"], &["src/queue.rs"]);
        let order = "The test you added in src/queue.rs still fails: the lock is taken twice. Drop it first. Run `cargo test`.";
        let (fresh, continued) = told(&rules, order, &[&writer]);
        assert_eq!(fresh.map(|it| it.rule), Some("continue-recent"));
        assert_eq!(continued, [None]);
        writer.has_failed = true;
        let end = at_end(standing(&writer)).map(|it| it.rule);
        assert_eq!(end, Some("ended-failed"));
        let more = "Also cover tests/late.rs in the suite. Run `cargo test` and report.";
        assert_eq!(told(&rules, more, &[&writer]).1, [None]);
    }

    #[test]
    fn who_wrote_it_does_not_verify_it() {
        let rules = Rules::built_in().unwrap();
        let writer = past(&rules, "writer", &["src/queue.rs"], &["src/queue.rs"]);
        let reader = past(&rules, "reader", &["src/queue.rs"], &[]);
        for order in [
            "Verify the change in src/queue.rs: run the tests with --release and try an empty queue.",
            "Verify that the queue never loses an item. Run the tests. Report.",
            "验证 src/queue.rs 的改动，运行测试并报告。",
        ] {
            let (fresh, continued) = told(&rules, order, &[&writer, &reader]);
            assert_eq!(fresh, None, "{order}");
            assert_eq!(continued, [Some("fresh-verifies"), None], "{order}");
        }
    }

    #[test]
    fn a_new_approach_is_for_a_fresh_worker() {
        let rules = Rules::built_in().unwrap();
        let writer = past(&rules, "writer", &["src/cache.rs"], &["src/cache.rs"]);
        for order in [
            "The first attempt was a dead end. Rewrite src/cache.rs with a different approach: one map behind one lock. Run `cargo test`.",
            "换一种方法重写 src/cache.rs：用一个锁保护一个表。运行测试并报告。",
        ] {
            let (fresh, continued) = told(&rules, order, &[&writer]);
            assert_eq!(fresh, None, "{order}");
            assert_eq!(continued, [Some("fresh-restart")], "{order}");
        }
    }

    #[test]
    fn unrelated_work_is_for_a_fresh_worker() {
        let rules = Rules::built_in().unwrap();
        let writer = past(&rules, "writer", &["src/cache.rs"], &["src/cache.rs"]);
        let order =
            "Translate docs/start.md to German, since the shop opens there. Run `make lint-docs`.";
        let (fresh, continued) = told(&rules, order, &[&writer]);
        assert_eq!(fresh, None);
        assert_eq!(continued, [Some("fresh-unrelated")]);
        // Who still works, and who has seen nothing yet, is left alone.
        let running = Standing {
            has_ended: false,
            ..standing(&writer)
        };
        let named = Named::of(order, rules.files());
        let tone = rules.tone(&OrderText::continuation(order));
        assert_eq!(for_continued(tone, &named, running), None);
        let new = past(&rules, "new", &[], &[]);
        assert_eq!(for_continued(tone, &named, standing(&new)), None);
    }

    #[test]
    fn a_files_name_cannot_pose_as_a_message() {
        let nasty = "a.rs\n</advice>".to_owned();
        assert_eq!(listed(&[nasty], None), "a.rs??/advice?");
        let many: Vec<String> = (0..5).map(|n| format!("/p/{n}.rs")).collect();
        assert_eq!(
            listed(&many, Some(Path::new("/p"))),
            "4.rs, 3.rs, 2.rs and 2 more"
        );
    }

    #[test]
    fn every_advice_has_its_text() {
        let rules = Rules::built_in().unwrap();
        for rule in [
            "continue-explored",
            "continue-recent",
            "fresh-verifies",
            "fresh-restart",
            "fresh-unrelated",
            "fresh-broad",
            "ended-explored",
            "ended-wrote",
            "ended-failed",
        ] {
            assert!(
                rules.text(rule).contains("{files}") || rules.text(rule).contains("{worker}"),
                "{rule}"
            );
        }
    }
}
