//! What must hold for any events, keys and sizes.

#[path = "../../examples/scene/mod.rs"]
pub(crate) mod scene;

use crate::view::tests::{app, picture};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use gaffer_protocol::{End, EventKind, Timestamp, Waiting};
use proptest::prelude::*;
use scene::Scene;

/// What models and commands write, and worse.
const TEXTS: &[&str] = &[
    "",
    "plain words that go on for a while and have to be wrapped somewhere",
    "\x1b[31mred\x1b[0m \x07 \x1b]0;title\x07 \u{9b}2J",
    "日本語のテキスト 👩\u{200d}👧 e\u{301}\u{301}\u{301} \u{202e}back",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn main() { /* \n```",
    "\t\r\n\r\ttabs\r",
    "- a\n  - b\n    - c\n      - d\n        - e\n> > > quote\n# head\n***",
    "&#27;[2J &#x9b;",
    "averyveryveryveryveryveryveryveryveryveryveryverylongwordwithoutanyspaceatall",
];

fn event(scene: &mut Scene, kind: u8, agent: u32, text: &str) {
    let agent = agent % 6;
    match kind % 17 {
        0 => scene.start(
            agent,
            &format!("w{agent}"),
            (agent > 0).then_some(agent / 2),
            text,
        ),
        1 => scene.human(agent, text),
        2 => scene.add(agent, EventKind::TextDelta(text.to_owned())),
        3 => scene.add(agent, EventKind::ReasoningDelta(text.to_owned())),
        4 => scene.answers(agent, text, &[]),
        5 => scene.calls(
            agent,
            &(
                "c",
                "Edit",
                serde_json::json!({"file_path": text, "old_string": text, "new_string": "x"}),
            ),
        ),
        6 => scene.returns(agent, "c", "Edit", text, 1500),
        7 => scene.ends(agent, End::Crashed(text.to_owned()), text),
        8 => scene.asks(
            agent,
            u64::from(agent),
            "Bash",
            serde_json::json!({"command": text}),
            &[text],
        ),
        9 => scene.add(agent, EventKind::Settled(u64::from(agent))),
        10 => scene.add(agent, EventKind::Notice(text.to_owned())),
        11 => scene.waits(agent, Waiting::Queue(3)),
        12 => scene.waits(agent, Waiting::Mail),
        13 => scene.waits(agent, Waiting::Model),
        14 => scene.add(agent, EventKind::Continued),
        15 => scene.add(
            agent,
            EventKind::CallDelta {
                tool: text.to_owned(),
            },
        ),
        _ => scene.asks(
            agent,
            9,
            "ExitPlanMode",
            serde_json::json!({"plan": text, "workers": [{"name": text}, 3]}),
            &[],
        ),
    };
    scene.wait(700);
}

fn key(n: u8, c: char) -> KeyEvent {
    let codes = [
        KeyCode::Char(c),
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::F(1),
        KeyCode::F(2),
    ];
    let modifiers = [
        KeyModifiers::NONE,
        KeyModifiers::NONE,
        KeyModifiers::CONTROL,
        KeyModifiers::ALT,
    ];
    let code = codes[usize::from(n) % codes.len()];
    KeyEvent::new(code, modifiers[usize::from(n / 16) % modifiers.len()])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn nothing_breaks_the_picture(
        has_begun: bool,
        events in proptest::collection::vec((any::<u8>(), any::<u32>(), 0..TEXTS.len()), 0..40),
        steps in proptest::collection::vec(
            (any::<u8>(), prop_oneof![Just('/'), Just('@'), Just('日'), Just('y'), Just('\\'), any::<char>()], 1u16..=250, 1u16..=80),
            0..12,
        ),
        pasted in 0..TEXTS.len(),
    ) {
        let mut scene = Scene::default();
        if has_begun {
            scene.begin();
        }
        for (kind, agent, text) in events {
            event(&mut scene, kind, agent, TEXTS[text]);
        }
        let mut app = app(&scene);
        app.paste(TEXTS[pasted]);
        picture(&mut app, 1, 1);
        for (n, c, width, height) in steps {
            let now = Timestamp(app.now.0 + 400);
            app.key(key(n, c), now);
            let shown = picture(&mut app, width, height);
            prop_assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
            prop_assert!(!shown.contains('\u{202e}'), "it turns the line");
        }
    }
}
