//! Which commands come of which keys.

use crate::app::{App, Focus, Page};
use crate::options::Options;
use crate::tests::scene::{self, id};
use crate::view::tests::{app, busy, picture, press, write};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use gaffer_protocol::{Command, EventKind, Permission};
use std::sync::{Arc, Mutex};

const NONE: KeyModifiers = KeyModifiers::NONE;
const CTRL: KeyModifiers = KeyModifiers::CONTROL;

fn enter(app: &mut App, text: &str) -> Vec<Command> {
    write(app, text);
    press(app, KeyCode::Enter, NONE)
}

fn say(to: Option<u32>, text: &str) -> Command {
    Command::Say {
        to: to.map(id),
        text: text.to_owned(),
    }
}

#[test]
fn what_is_written_goes_to_whom_it_is_seen_to_go() {
    let mut app = app(&scene::crew());
    assert_eq!(enter(&mut app, "hello"), [say(None, "hello")]);
    app.open(Some(id(2)));
    assert_eq!(enter(&mut app, "and you"), [say(Some(2), "and you")]);
    assert_eq!(press(&mut app, KeyCode::Esc, NONE), []);
    assert_eq!(enter(&mut app, "back"), [say(None, "back")]);
}

#[test]
fn escape_interrupts_the_foreground_alone() {
    let mut scene = scene::crew();
    assert_eq!(press(&mut app(&scene), KeyCode::Esc, NONE), []);
    scene.waits(0, gaffer_protocol::Waiting::Model);
    let mut app = app(&scene);
    app.show(Page::Cost);
    assert_eq!(press(&mut app, KeyCode::Esc, NONE), []);
    assert_eq!(
        press(&mut app, KeyCode::Esc, NONE),
        [Command::Interrupt { agent: None }]
    );
    app.open(Some(id(3)));
    assert_eq!(
        press(&mut app, KeyCode::Char('g'), CTRL),
        [Command::Interrupt { agent: Some(id(3)) }]
    );
}

#[test]
fn a_worker_is_stopped_by_the_second_press() {
    let mut app = app(&scene::crew());
    app.open(Some(id(3)));
    assert_eq!(press(&mut app, KeyCode::Char('x'), CTRL), []);
    assert_eq!(
        press(&mut app, KeyCode::Char('x'), CTRL),
        [Command::Stop { agent: id(3) }]
    );
}

#[test]
fn ctrl_c_clears_then_asks_then_leaves() {
    let mut app = app(&scene::crew());
    write(&mut app, "draft");
    assert_eq!(press(&mut app, KeyCode::Char('c'), CTRL), []);
    assert!(app.editor.is_empty());
    assert_eq!(press(&mut app, KeyCode::Char('c'), CTRL), []);
    assert!(picture(&mut app, 100, 20).contains("gaffer --resume 5f0c2a4e"));
    // Any other key means to stay.
    press(&mut app, KeyCode::Left, NONE);
    assert_eq!(press(&mut app, KeyCode::Char('c'), CTRL), []);
    assert_eq!(press(&mut app, KeyCode::Char('c'), CTRL), [Command::Quit]);
    let left = app.left();
    assert!(left.is_by_user);
    assert_eq!(left.running, ["reader", "mender", "tester", "checker"]);
    assert!(
        left.to_string()
            .ends_with("to go on: gaffer --resume 5f0c2a4e")
    );
}

#[test]
fn questions_are_answered_one_after_another() {
    let mut app = busy();
    assert_eq!(app.focus, Focus::Question);
    let allow = |number, rules: &[&str]| Command::Answer {
        number,
        permission: Permission::Allow {
            rules: rules.iter().map(|&rule| rule.to_owned()).collect(),
        },
    };
    assert_eq!(press(&mut app, KeyCode::Char('y'), NONE), [allow(1, &[])]);
    assert_eq!(
        press(&mut app, KeyCode::Char('2'), NONE),
        [allow(2, &["Bash(git commit:*)"])]
    );
    assert_eq!(app.focus, Focus::Input);
}

#[test]
fn a_denial_carries_its_words_and_the_draft_comes_back() {
    let mut app = busy();
    press(&mut app, KeyCode::Esc, NONE);
    write(&mut app, "draft");
    press(&mut app, KeyCode::Char('o'), CTRL);
    press(&mut app, KeyCode::Char('d'), NONE);
    let message = "not there".to_owned();
    assert_eq!(
        enter(&mut app, "not there"),
        [Command::Answer {
            number: 1,
            permission: Permission::Deny { message }
        }]
    );
    assert_eq!(app.editor.text(), "draft");
}

#[test]
fn a_question_takes_no_key_that_was_meant_for_something_else() {
    let mut app = app(&scene::crew());
    write(&mut app, "ye");
    let asking = scene::asking();
    for event in &asking.events[scene::crew().events.len()..] {
        app.event(event);
    }
    // Somebody who types goes on typing.
    assert_eq!(press(&mut app, KeyCode::Char('y'), NONE), []);
    assert_eq!(app.editor.text(), "yey");
    // And one that has just come is not answered at once.
    let mut app = busy();
    let now = app.now;
    assert_eq!(app.key(KeyEvent::new(KeyCode::Char('y'), NONE), now), []);
    assert_eq!(app.model.questions.len(), 2);
}

#[test]
fn a_question_that_came_too_early_comes_up_when_nobody_types() {
    let asking = scene::asking();
    let (before, questions) = asking.events.split_at(scene::crew().events.len());
    let mut app = App::new(Options::default());
    before.iter().for_each(|event| app.event(event));
    app.tick(questions[questions.len() - 1].at);
    press(&mut app, KeyCode::Char('x'), NONE);
    press(&mut app, KeyCode::Backspace, NONE);
    questions.iter().for_each(|event| app.event(event));
    app.idle();
    assert_eq!(app.focus, Focus::Input, "somebody has just typed");
    app.tick(gaffer_protocol::Timestamp(app.now.0 + 1500));
    app.idle();
    assert_eq!(app.focus, Focus::Question);
    press(&mut app, KeyCode::Esc, NONE);
    app.tick(gaffer_protocol::Timestamp(app.now.0 + 5000));
    app.idle();
    assert_eq!(app.focus, Focus::Input, "it was put off");
}

#[test]
fn another_session_begins_with_an_empty_screen() {
    let mut app = busy();
    let before = app.model.session.clone().expect("a session");
    let mut other = before.clone();
    other.session = gaffer_protocol::SessionId::parse("another").expect("an id");
    let event = |session| gaffer_protocol::Event {
        seq: 0,
        at: app.now,
        agent: id(0),
        kind: EventKind::SessionStarted(session),
    };
    let (same, other) = (event(before), event(other));
    let workers = app.model.workers().count();
    app.event(&same);
    assert_eq!(app.model.workers().count(), workers, "it may be told again");
    app.event(&other);
    assert_eq!(app.model.workers().count(), 0);
    assert!(app.question().is_none());
}

#[test]
fn words_for_a_question_that_went_are_not_sent_to_anybody() {
    let mut app = busy();
    press(&mut app, KeyCode::Char('d'), NONE);
    write(&mut app, "because");
    let mut scene = scene::Scene::default();
    scene.add(2, EventKind::Settled(1));
    app.event(&scene.events[0]);
    assert!(app.editor.is_empty());
}

#[test]
fn commands_of_the_ui_stay_here_and_others_go_out() {
    let mut app = app(&scene::crew());
    assert_eq!(enter(&mut app, "/timeline"), []);
    assert_eq!(app.page, Page::Timeline);
    let mode = "plan".to_owned();
    assert_eq!(enter(&mut app, "/mode plan"), [Command::SetMode { mode }]);
    let slash = Command::Slash {
        name: "permissions".to_owned(),
        args: String::new(),
    };
    assert_eq!(enter(&mut app, "/permissions"), [slash]);
    assert_eq!(enter(&mut app, "/nonsense"), []);
    assert!(picture(&mut app, 80, 24).contains("there is no /nonsense"));
}

#[test]
fn a_name_is_completed_behind_an_at_sign() {
    let mut app = App::new(Options {
        files: Some(Box::new(|_| {
            vec!["src/a.rs".to_owned(), "src/b.rs".to_owned()]
        })),
        ..Options::default()
    });
    write(&mut app, "see @s");
    press(&mut app, KeyCode::Down, NONE);
    press(&mut app, KeyCode::Tab, NONE);
    assert_eq!(app.editor.text(), "see @src/b.rs ");
}

#[test]
fn what_was_sent_is_kept_and_found_again() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&kept);
    let mut app = App::new(Options {
        history: vec!["yesterday".to_owned()],
        keep: Some(Box::new(move |text| {
            keep.lock().expect("no panic").push(text.to_owned());
        })),
        ..Options::default()
    });
    enter(&mut app, "today");
    press(&mut app, KeyCode::Up, NONE);
    press(&mut app, KeyCode::Up, NONE);
    assert_eq!(app.editor.text(), "yesterday");
    assert_eq!(*kept.lock().expect("no panic"), ["today"]);
}

#[test]
fn scrolling_stays_where_it_is_while_more_comes() {
    let mut scene = scene::Scene::default();
    scene.begin();
    for n in 0..100 {
        scene.add(0, EventKind::Notice(format!("line {n}")));
    }
    let mut app = app(&scene);
    assert!(picture(&mut app, 60, 12).contains("line 99"));
    press(&mut app, KeyCode::PageUp, NONE);
    let before = picture(&mut app, 60, 12);
    assert!(!before.contains("line 99"), "{before}");
    app.event(&{
        let mut more = scene::Scene::default();
        more.add(0, EventKind::Notice("line 100".to_owned()));
        more.events.remove(0)
    });
    assert_eq!(picture(&mut app, 60, 12), before);
    press(&mut app, KeyCode::Home, CTRL);
    assert!(picture(&mut app, 60, 12).starts_with("! line 0\n"));
    press(&mut app, KeyCode::End, CTRL);
    assert!(picture(&mut app, 60, 12).contains("line 100"));
}

#[test]
fn a_question_hides_nothing_of_its_call() {
    let mut scene = scene::crew();
    let input = serde_json::json!({"command": "ls", "plan": "harmless", "is_unbound": true});
    scene.asks(2, 1, "Bash", input, &[]);
    let shown = picture(&mut app(&scene), 80, 24);
    for part in ["asks for Bash", "ls", "plan: harmless", "is_unbound: true"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}
