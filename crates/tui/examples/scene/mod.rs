//! A scripted session: what a crew would say while it mends a small program.

#![allow(
    clippy::expect_used,
    reason = "these texts are written here and are sound"
)]

use gaffer_protocol::event::{AgentEnded, AgentStarted, SessionStarted};
use gaffer_protocol::message::{Answer, StopReason, ToolInput};
use gaffer_protocol::plan::{Plan, PlanState, Planned};
use gaffer_protocol::{
    AgentId, AgentName, Block, Cost, End, Event, EventKind, Json, Message, Phase, Question,
    ResultPart, SessionId, Timestamp, ToolResult, ToolUse, Usage, Waiting,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// When it begins.
pub(crate) const BEGIN: u64 = 1_763_200_000_000;

pub(crate) fn id(n: u32) -> AgentId {
    AgentId::parse(&format!("agent-{n:08x}")).expect("eight hex digits")
}

/// Collects events, each so many milliseconds after the one before it.
#[derive(Debug, Default)]
pub(crate) struct Scene {
    pub(crate) events: Vec<Event>,
    ms: u64,
}

impl Scene {
    pub(crate) fn wait(&mut self, ms: u64) -> &mut Self {
        self.ms += ms;
        self
    }

    pub(crate) fn add(&mut self, agent: u32, kind: EventKind) -> &mut Self {
        self.events.push(Event {
            seq: self.events.len() as u64,
            at: Timestamp(BEGIN + self.ms),
            agent: id(agent),
            kind,
        });
        self
    }

    pub(crate) fn begin(&mut self) -> &mut Self {
        let session = SessionStarted {
            session: SessionId::parse("5f0c2a4e").expect("an id"),
            cwd: "/srv/shop".to_owned(),
            mode: "coordinator".to_owned(),
            provider: "anthropic".to_owned(),
            model: "big-model-5".to_owned(),
            tools: vec!["Agent".to_owned()],
            agents: vec!["worker".to_owned()],
            permission_mode: "default".to_owned(),
            version: "0.1.0".to_owned(),
            key_source: "environment".to_owned(),
        };
        self.add(0, EventKind::SessionStarted(Box::new(session)));
        self.start(0, "main", None, "")
    }

    pub(crate) fn start(
        &mut self,
        agent: u32,
        name: &str,
        parent: Option<u32>,
        what: &str,
    ) -> &mut Self {
        let started = AgentStarted {
            name: AgentName::parse(name).expect("a name"),
            agent_type: if parent.is_some() {
                "worker"
            } else {
                "coordinator"
            }
            .to_owned(),
            parent: parent.map(id),
            description: what.to_owned(),
            call: parent.map(|_| format!("start-{agent}")),
            depth: parent.map_or(0, |_| 1),
            phase: None,
        };
        self.add(agent, EventKind::AgentStarted(Box::new(started)))
    }

    pub(crate) fn human(&mut self, agent: u32, text: &str) -> &mut Self {
        let message = Message::user(vec![Block::from_human(text)]);
        self.add(agent, EventKind::Input(Arc::new(message)))
    }

    pub(crate) fn waits(&mut self, agent: u32, waiting: Waiting) -> &mut Self {
        self.add(agent, EventKind::Waiting(waiting))
    }

    pub(crate) fn streams(&mut self, agent: u32, text: &str) -> &mut Self {
        for part in text.split_inclusive(' ') {
            self.wait(15)
                .add(agent, EventKind::TextDelta(part.to_owned()));
        }
        self
    }

    pub(crate) fn answers(
        &mut self,
        agent: u32,
        text: &str,
        calls: &[(&str, &str, Value)],
    ) -> &mut Self {
        let mut blocks = vec![Block::text(text)];
        blocks.extend(calls.iter().map(|call| Block::ToolUse(call_of(call))));
        let answer = Answer {
            blocks,
            stop: StopReason::EndTurn,
            usage: Usage {
                input: 900,
                cache_read: 5200,
                cache_write: 300,
                output: 240,
            },
            model: "big-model-5".to_owned(),
        };
        self.add(
            agent,
            EventKind::Answered {
                turn: 1,
                answer: Arc::new(answer),
                cost: Cost::MicroUsd(12_400),
            },
        )
    }

    pub(crate) fn calls(&mut self, agent: u32, call: &(&str, &str, Value)) -> &mut Self {
        let tool_use = Arc::new(call_of(call));
        self.waits(agent, Waiting::Tools(vec![call.0.to_owned()]));
        self.add(agent, EventKind::ToolStarted { tool_use })
    }

    pub(crate) fn returns(
        &mut self,
        agent: u32,
        call: &str,
        tool: &str,
        text: &str,
        ms: u64,
    ) -> &mut Self {
        let result = ToolResult {
            call: call.to_owned(),
            parts: vec![ResultPart::Text(text.to_owned())],
            is_error: text.starts_with("error"),
            mail: None,
        };
        self.wait(ms).add(
            agent,
            EventKind::ToolFinished {
                tool: tool.to_owned(),
                result: Arc::new(result),
                duration_ms: ms,
            },
        )
    }

    pub(crate) fn ends(&mut self, agent: u32, end: End, result: &str) -> &mut Self {
        let ended = AgentEnded {
            end,
            result: result.to_owned(),
            turns: 3,
            tool_uses: 2,
            usage: Usage::default(),
            cost: Cost::default(),
            duration_ms: 4000,
            model_ms: 3000,
            stop: None,
            denials: Vec::new(),
            phase: None,
            is_unverified: false,
            structured: None,
        };
        self.add(agent, EventKind::AgentEnded(Box::new(ended)))
    }

    pub(crate) fn asks(
        &mut self,
        agent: u32,
        number: u64,
        tool: &str,
        input: Value,
        rules: &[&str],
    ) -> &mut Self {
        let question = Question {
            number,
            tool: tool.to_owned(),
            input,
            reason: "no rule allows it".to_owned(),
            suggestions: rules.iter().map(|&rule| rule.to_owned()).collect(),
        };
        self.waits(agent, Waiting::User);
        self.add(agent, EventKind::Asked(Arc::new(question)))
    }
}

fn call_of((id, name, input): &(&str, &str, Value)) -> ToolUse {
    ToolUse {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        input: ToolInput::Json(Json::of(input)),
    }
}

const ANSWER: &str = "## What I found\n\nThe total is **wrong by one** because `sum` starts at *1*. \
I will let three workers look:\n\n1. one reads the code,\n2. one writes a test,\n3. one checks both.\n\n\
```rust\n// The first item is left out.\nfn sum(all: &[u32]) -> u32 {\n    let mut n = 0;\n    \
for i in 1..all.len() { n += all[i]; }\n    n\n}\n```\n\n| file | state |\n|---|---|\n| src/total.rs | wrong |\n\
| tests/total.rs | missing 日本語 |\n\nSee [the notes](https://example.org/notes).";

/// Up to the point where three workers run and one waits in the queue.
pub(crate) fn crew() -> Scene {
    let mut scene = Scene::default();
    scene
        .begin()
        .wait(400)
        .human(
            0,
            "The total in `sh check.sh` is wrong.\nFind out why, mend it and commit.",
        )
        .waits(0, Waiting::Model)
        .wait(900)
        .add(
            0,
            EventKind::ReasoningDelta("The user wants the total mended.".to_owned()),
        )
        .streams(0, ANSWER);
    let start = |n: u32, phase: &str| json!({"description": format!("task {n}"), "prompt": "…", "phase": phase, "budget": {"usd": 0.5}});
    let starts = [
        ("start-1", "Agent", start(1, "research")),
        ("start-2", "Agent", start(2, "implementation")),
        ("start-3", "Agent", start(3, "verification")),
        ("start-4", "Agent", start(4, "verification")),
    ];
    scene.answers(0, ANSWER, &starts);
    for (n, name, what) in [
        (1, "reader", "read the code that makes the total"),
        (2, "mender", "mend src/total.rs"),
        (3, "tester", "write a test for the total"),
        (4, "checker", "check what the others did"),
    ] {
        scene
            .calls(0, &starts[n as usize - 1])
            .start(n, name, Some(0), what)
            .returns(0, &format!("start-{n}"), "Agent", "started", 12);
    }
    scene
        .waits(4, Waiting::Queue(1))
        .waits(0, Waiting::Mail)
        .human(1, "Read src/total.rs and say why the total is wrong.")
        .waits(1, Waiting::Model)
        .wait(1200);
    let read = ("c1", "Read", json!({"file_path": "src/total.rs"}));
    scene
        .answers(1, "I look at the code first.", std::slice::from_ref(&read))
        .calls(1, &read)
        .returns(1, "c1", "Read", "fn sum(all: &[u32]) -> u32 {\n  let mut n = 0;\n  for i in 1..all.len() {\n    n += all[i];\n  }", 300);
    let edit = (
        "c2",
        "Edit",
        json!({"file_path": "src/total.rs", "old_string": "let mut n = 0;\nfor i in 1..all.len() {", "new_string": "let mut n = 0;\nfor i in 0..all.len() {"}),
    );
    scene
        .waits(2, Waiting::Model)
        .wait(800)
        .answers(2, "The loop begins too late.", std::slice::from_ref(&edit))
        .calls(2, &edit)
        .returns(2, "c2", "Edit", "src/total.rs was changed", 40);
    let test = ("c3", "Bash", json!({"command": "cargo test total"}));
    scene
        .waits(3, Waiting::Model)
        .wait(700)
        .answers(3, "I run the tests.", std::slice::from_ref(&test))
        .calls(3, &test)
        .returns(
            3,
            "c3",
            "Bash",
            "error: test failed\n\nfailures:\n    total::adds_all",
            2600,
        )
        .waits(3, Waiting::Model)
        .wait(500)
        .waits(1, Waiting::Model)
        .add(1, EventKind::TextDelta("The loop starts at `1`".to_owned()))
        .waits(2, Waiting::Model);
    scene
}

/// Then one is done, one asks, and one more.
pub(crate) fn asking() -> Scene {
    let mut scene = crew();
    scene
        .answers(1, "The loop starts at 1, so the first item is left out.", &[])
        .ends(1, End::Done, "The loop starts at 1, so the first item is left out.")
        .waits(4, Waiting::Model)
        .wait(600)
        .asks(
            2,
            1,
            "Edit",
            json!({"file_path": "src/total.rs", "old_string": "fn sum(all: &[u32]) -> u32 {\n    let mut n = 0;\n    for i in 1..all.len() {\n", "new_string": "fn sum(all: &[u32]) -> u32 {\n    let mut n = 0;\n    for i in 0..all.len() {\n"}),
            &["Edit(src/**)"],
        )
        .asks(
            3,
            2,
            "Bash",
            json!({"command": "cargo test total && git commit -am 'Mend the total'"}),
            &["Bash(cargo test:*)", "Bash(git commit:*)"],
        );
    scene
}

/// A coordinator that wants its plan approved.
pub(crate) fn planning() -> Scene {
    let planned = |phase: Phase, order: Value| Planned { phase, order };
    let plan = Plan {
        text: "1. Find **why** the total is wrong.\n2. Mend it in one place.\n3. Prove it with `sh check.sh`."
            .to_owned(),
        orders: vec![
            planned(
                Phase::Implementation,
                json!({"name": "mender", "phase": "implementation", "description": "mend src/total.rs and add a test for it", "files": ["src/total.rs", "tests/**"], "prompt": "src/total.rs, line 4: the loop begins at 1 and leaves out the first item. Let it begin at 0.\nDone when `sh check.sh` passes."}),
            ),
            planned(
                Phase::Verification,
                json!({"name": "checker", "subagent_type": "verifier", "description": "run sh check.sh, read the change", "depends_on": ["mender"], "prompt": "Read the diff of the last commit and run `sh check.sh`."}),
            ),
        ],
        state: PlanState::Waiting,
    };
    let mut scene = Scene::default();
    scene
        .begin()
        .human(0, "Mend the total, but show me a plan first.")
        .wait(2000)
        .asks(0, 7, "Agent", json!(plan), &[]);
    scene
}
