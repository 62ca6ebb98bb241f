//! A crew with a budget that is killed at its steps: what it spent before counts when it is taken
//! up again, and the cap holds.

use super::{Said, answer, at_steps, below, fold, history, shim};
use crate::harness::{Place, run};
use gaffer_model::script::Speaker;
use gaffer_protocol::{Answer, Usage};
use gaffer_store::SessionFolder;
use gaffer_testkit::{Server, WireKind};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Every answer costs this.
const EACH: u64 = 100;
const CAP: u64 = 2000;

/// Starts one worker, and lets it go on whenever it was interrupted.
fn lead(body: &Value) -> Answer {
    let said = history(body);
    let is_call = |said: &Said<'_>| matches!(said, Said::Call(_));
    let calls = said.iter().filter(|it| is_call(it)).count();
    let id = format!("call-{calls}");
    let has_started = said
        .iter()
        .any(|it| matches!(it, Said::Result { is_error: false, text } if text.contains("task_id")));
    if !has_started {
        let input = json!({"description": "Toil", "name": "w", "prompt": "go"});
        return answer(None, vec![(id, "Agent", input)]);
    }
    match said.last() {
        Some(Said::Text(text)) if text.contains("interrupted") => {
            let input = json!({"to": "w", "message": "go on"});
            answer(None, vec![(id, "SendMessage", input)])
        }
        _ => answer(Some("Waiting."), vec![]),
    }
}

/// Toils for ever.
fn work(body: &Value) -> Answer {
    let calls = history(body)
        .iter()
        .filter(|it| matches!(it, Said::Call(_)))
        .count();
    let input = json!({"file_path": format!("w-{calls}.txt"), "content": "x"});
    answer(
        Some("Half done."),
        vec![(format!("call-{calls}"), "Write", input)],
    )
}

struct Stage {
    place: Place,
    server: Server,
    shim: PathBuf,
    asked: Arc<AtomicU64>,
}

impl Stage {
    fn new(shim: &Path) -> Self {
        let asked: Arc<AtomicU64> = Arc::default();
        let seen = asked.clone();
        let decide = move |who: &Speaker, body: &Value| {
            seen.fetch_add(1, Ordering::Relaxed);
            let usage = Usage {
                input: EACH - 10,
                output: 10,
                ..Usage::default()
            };
            let answer = match who.name.as_str() {
                "main" => lead(body),
                _ => work(body),
            };
            Answer { usage, ..answer }
        };
        Self {
            place: Place::new(),
            server: Server::deciding(Box::new(decide)),
            shim: shim.to_owned(),
            asked,
        }
    }

    fn gaffer(&self, args: &[&str]) -> Command {
        let fixed = [
            "--mode",
            "coordinator",
            "--sandbox",
            "off",
            "--permission-mode",
            "bypassPermissions",
            "--output-format",
            "json",
        ];
        let args = [args, &fixed].concat();
        self.place.on_wire(WireKind::Anthropic, &self.server, &args)
    }

    fn first(&self, at: u64) -> Command {
        let cap = CAP.to_string();
        let args = ["-p", "go", "--session-id", "s", "--max-tokens-total", &cap];
        let count = self.place.root.path().join("count");
        below(
            self.gaffer(&args),
            &self.shim,
            &self.place.home(),
            &count,
            at,
        )
    }

    fn folder(&self) -> Option<SessionFolder> {
        let home = gaffer_store::Home::new(self.place.home().join(".gaffer"));
        let found = home.find_session(&self.place.project(), "s").ok()?;
        Some(found.folder)
    }

    /// What the transcripts say was spent.
    fn spent(&self, folder: &SessionFolder) -> u64 {
        let agents = folder.agents().unwrap().into_iter();
        agents.map(|(id, _)| fold(folder, id).usage.total()).sum()
    }
}

#[test]
fn what_was_spent_before_a_kill_counts_and_the_cap_holds() {
    let temp = tempfile::tempdir().unwrap();
    let shim = shim(temp.path());
    let stage = Stage::new(&shim);
    let ran = run(stage.first(0));
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let text = std::fs::read_to_string(stage.place.root.path().join("count")).unwrap();
    let count: u64 = text.parse().unwrap();
    let counted = AtomicU64::new(0);
    at_steps(
        count,
        |at| at % 5 == 2,
        |at| {
            let stage = Stage::new(&shim);
            let ran = run(stage.first(at));
            let what = format!("killed at step {at} of {count}");
            let Some(folder) = stage.folder().filter(|_| ran.code.is_none()) else {
                return;
            };
            let about = folder.about().or_else(|| folder.recovered_about());
            if about.is_none_or(|about| fold(&folder, about.main).messages.is_empty()) {
                return;
            }
            let before = stage.spent(&folder);
            let asked_before = stage.asked.load(Ordering::Relaxed);
            let ran = run(stage.gaffer(&["-p", "--resume", "s"]));
            let is_over = ran.err.contains("nothing is left to do");
            assert!(ran.code == Some(3) || is_over, "{what}: {ran:?}");
            let spent = stage.spent(&folder);
            assert!(
                (before..=CAP).contains(&spent),
                "{what}: {before}, then {spent}"
            );
            if is_over {
                return;
            }
            counted.fetch_add(u64::from(before > 0), Ordering::Relaxed);
            let budget = ran.result()["budget"].clone();
            assert_eq!(budget["spent"]["tokens"], spent, "{what}: {budget}");
            assert_eq!(budget["caps"]["tokens"], CAP, "{what}");
            // Answers that died with the process were never counted; all others stay under the cap.
            let unheard = asked_before * EACH - before;
            let asked = stage.asked.load(Ordering::Relaxed) * EACH;
            assert!(
                unheard <= 2 * EACH && asked <= CAP + unheard,
                "{what}: {asked}"
            );
        },
    );
    assert!(counted.load(Ordering::Relaxed) > 5);
}
