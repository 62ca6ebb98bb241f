//! Tests of the board: events in, lines out.

use super::*;
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{AgentName, ResultPart, StopReason, ToolResult, ToolUse};
use std::sync::Arc;

fn id(n: u32) -> AgentId {
    AgentId::parse(&format!("agent-{n:08x}")).unwrap()
}

fn event(seconds: u64, agent: u32, kind: EventKind) -> Event {
    Event {
        seq: 0,
        at: Timestamp(seconds * 1000),
        agent: id(agent),
        kind,
    }
}

fn started(agent: u32, name: &str, description: &str) -> Event {
    let parent = (agent > 0).then(|| id(0));
    let started = AgentStarted {
        name: AgentName::parse(name).unwrap(),
        agent_type: "worker".to_owned(),
        parent,
        description: description.to_owned(),
        call: None,
        depth: u32::from(agent > 0),
        phase: None,
    };
    event(0, agent, EventKind::AgentStarted(Box::new(started)))
}

fn call(agent: u32, name: &str, input: &str) -> Event {
    let tool_use = Arc::new(ToolUse {
        id: "c".to_owned(),
        name: name.to_owned(),
        input: ToolInput::from_text(input),
    });
    event(1, agent, EventKind::ToolStarted { tool_use })
}

fn answered(agent: u32, text: &str) -> Event {
    let answer = Arc::new(Answer {
        blocks: vec![Block::text(text)],
        stop: StopReason::EndTurn,
        usage: Usage {
            input: 1500,
            ..Usage::default()
        },
        model: "m".to_owned(),
    });
    let cost = Cost::MicroUsd(10_000);
    event(
        1,
        agent,
        EventKind::Answered {
            turn: 1,
            answer,
            cost,
        },
    )
}

fn ended(agent: u32, end: End, result: &str) -> Event {
    let ended = AgentEnded {
        end,
        result: result.to_owned(),
        turns: 1,
        tool_uses: 0,
        usage: Usage::default(),
        cost: Cost::default(),
        duration_ms: 0,
        model_ms: 0,
        stop: None,
        denials: Vec::new(),
        phase: None,
        is_unverified: false,
        structured: None,
    };
    event(2, agent, EventKind::AgentEnded(Box::new(ended)))
}

fn waiting(agent: u32, waiting: Waiting) -> Event {
    event(1, agent, EventKind::Waiting(waiting))
}

/// What stays, as one text a line.
fn fold(board: &mut Board, events: &[Event]) -> Vec<String> {
    let said = events.iter().flat_map(|event| board.take(event));
    said.map(|said| {
        let who = said.who.map(|who| format!("[{who}] ")).unwrap_or_default();
        format!("{who}{} {}{}", said.about.mark(), said.text, said.more)
    })
    .collect()
}

fn crew() -> Vec<Event> {
    vec![
        started(0, "main", ""),
        started(1, "reader", "Read the code"),
        started(2, "cases", "Add cases"),
        started(3, "third", "Wait"),
        waiting(0, Waiting::Mail),
        answered(1, "x"),
        waiting(1, Waiting::Tools(vec!["c".to_owned()])),
        call(1, "Read", r#"{"file_path": "src/total.sh"}"#),
        waiting(2, Waiting::Model),
        waiting(3, Waiting::Queue(1)),
    ]
}

#[test]
fn the_block_shows_who_does_what() {
    let mut board = Board::default();
    let said = fold(&mut board, &crew());
    assert_eq!(said[0], "[reader] + started: Read the code (worker)");
    assert_eq!(said[3], "[reader] → Read src/total.sh");
    let block = board.block(Timestamp(4000), 80, 20);
    assert_eq!(
        block,
        [
            "main · waiting",
            "  ├ reader · 1 turn · 1.5k tokens · 4 s · Read src/total.sh",
            "  ├ cases  · 0 turns · 0 tokens · 4 s · thinking",
            "  └ third  · number 1 in the queue",
            "2 running, 1 in the queue, 0 ended · 1 turn · 1.5k tokens · $0.010 · 4 s",
        ]
    );
    // Time in the queue is not its own.
    fold(
        &mut board,
        &[event(3, 3, EventKind::Waiting(Waiting::Model))],
    );
    let third = &board.block(Timestamp(4000), 80, 20)[3];
    assert_eq!(third, "  └ third  · 0 turns · 0 tokens · 1 s · thinking");
    let small = board.block(Timestamp(4000), 20, 4);
    assert_eq!(small.len(), 4);
    assert_eq!(small[2], "  └ and 2 more");
    assert!(small.iter().all(|line| width(line) <= 20), "{small:?}");
}

#[test]
fn who_has_ended_leaves_the_block_and_comes_back_when_it_goes_on() {
    let mut board = Board::default();
    fold(&mut board, &crew());
    let events = [
        ended(1, End::Done, "It is line 4.\nMore."),
        ended(2, End::StoppedByCoordinator, "half"),
        ended(3, End::MaxTurns, ""),
    ];
    assert_eq!(
        fold(&mut board, &events),
        [
            "[reader] ■ completed: It is line 4. …",
            "[cases] ■ killed: stopped by the coordinator",
            "[third] ✗ failed: reached its limit of turns (raise it with --max-turns)",
        ]
    );
    let block = board.block(Timestamp(4000), 80, 20);
    assert_eq!(block.len(), 2, "{block:?}");
    assert!(
        block[1].starts_with("0 running, 3 ended · "),
        "{}",
        block[1]
    );
    fold(&mut board, &[event(3, 2, EventKind::Continued)]);
    let block = board.block(Timestamp(4000), 80, 20);
    assert_eq!(block[1], "  └ cases · 0 turns · 0 tokens · 1 s · thinking");
}

#[test]
fn words_before_a_rest_are_shown_and_the_result_is_not() {
    let mut board = Board::default();
    let events = [
        started(0, "main", ""),
        answered(0, "Two workers run."),
        waiting(0, Waiting::Mail),
        answered(0, "All done."),
        ended(0, End::Done, "All done."),
    ];
    assert_eq!(fold(&mut board, &events), ["  Two workers run."]);
    let one = board.block(Timestamp(1000), 80, 20);
    assert_eq!(one, ["waiting · 2 turns · 3.0k tokens · $0.020 · 1 s"]);
}

#[test]
fn hostile_text_reaches_no_terminal() {
    let nasty = "a\x1b[2Jb\x07\r\u{9b}31m\u{202e}c\0";
    let mut board = Board::default();
    let result = ToolResult {
        call: "c".to_owned(),
        parts: vec![ResultPart::Text(nasty.to_owned())],
        is_error: true,
        mail: None,
    };
    let said = fold(
        &mut board,
        &[
            started(0, "main", ""),
            started(1, "reader", nasty),
            waiting(1, Waiting::Tools(Vec::new())),
            call(
                1,
                nasty,
                &serde_json::json!({ "command": nasty }).to_string(),
            ),
            event(1, 1, EventKind::Notice(nasty.to_owned())),
        ],
    );
    let mut all = board.block(Timestamp(0), 200, 20);
    all.extend(said);
    let finished = EventKind::ToolFinished {
        tool: nasty.to_owned(),
        result: Arc::new(result),
        duration_ms: 0,
    };
    let last = [event(1, 1, finished), ended(1, End::Done, nasty)];
    all.extend(fold(&mut board, &last));
    for line in &all {
        let is_bad = |c: char| c.is_control() || c == '\u{202e}';
        assert!(!line.contains(is_bad), "{line:?}");
    }
    assert!(all.iter().any(|line| line.contains("a[2Jb")), "{all:?}");
}

#[test]
fn a_compaction_is_a_line_with_what_it_brought() {
    let mut board = Board::default();
    let compacted = EventKind::Compacted {
        trigger: gaffer_protocol::Trigger::Auto,
        tokens_before: 11_062,
        tokens_after: 900,
    };
    let said = fold(
        &mut board,
        &[started(0, "main", ""), event(1, 0, compacted)],
    );
    let last = said.last().map(String::as_str).unwrap_or_default();
    assert!(
        last.contains("compacted: 11.1k tokens are 900 now"),
        "{said:?}"
    );
}
