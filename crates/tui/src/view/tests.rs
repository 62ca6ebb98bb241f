//! Every screen at two sizes, compared with what it looked like when somebody last looked at it.

use crate::app::{App, Page};
use crate::options::Options;
use crate::tests::scene::{self, BEGIN, Scene};
use crate::view;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use gaffer_protocol::{Budget, EventKind, Timestamp, Waiting};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use std::path::Path;

/// Set it to write the pictures anew; then look at what changed.
const REWRITE: &str = "GAFFER_REWRITE_SNAPSHOTS";

pub(crate) fn app(scene: &Scene) -> App {
    let mut app = App::new(Options {
        budget: Budget {
            usd: Some(0.20),
            workers: Some(10),
            ..Budget::default()
        },
        ..Options::default()
    });
    for event in &scene.events {
        app.event(event);
    }
    app
}

/// Workers run, and a question waits.
pub(crate) fn busy() -> App {
    app(&scene::asking())
}

/// Presses a key when the user had time to see what it is for.
pub(crate) fn press(
    app: &mut App,
    code: KeyCode,
    modifiers: KeyModifiers,
) -> Vec<gaffer_protocol::Command> {
    let now = Timestamp(app.now.0 + 400);
    app.key(KeyEvent::new(code, modifiers), now)
}

pub(crate) fn write(app: &mut App, text: &str) {
    for c in text.chars() {
        press(app, KeyCode::Char(c), KeyModifiers::NONE);
    }
}

pub(crate) fn picture(app: &mut App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a backend in memory");
    terminal
        .draw(|frame| view::draw(app, frame))
        .expect("it cannot fail");
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..height {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..width {
            let symbol = buffer[(x, y)].symbol();
            // The cell behind a wide letter is not seen.
            if skip > 0 {
                skip -= 1;
                continue;
            }
            skip = crate::text::columns(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn check(name: &str, app: &mut App) {
    for (width, height) in [(80, 24), (140, 40)] {
        let shown = picture(app, width, height);
        let file = format!("{name}-{width}x{height}.txt");
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("snapshots")
            .join(&file);
        if std::env::var_os(REWRITE).is_some() {
            std::fs::write(&path, &shown).expect("the folder can be written");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == shown,
            "{file} looks different now ({REWRITE}=1 takes it over):\n{shown}"
        );
    }
}

#[test]
fn before_anything_happened() {
    check("empty", &mut App::new(Options::default()));
}

#[test]
fn the_conversation_as_it_streams() {
    let mut scene = scene::crew();
    let end = scene
        .events
        .iter()
        .position(|event| matches!(event.kind, EventKind::Answered { .. }));
    scene.events.truncate(end.unwrap_or_default());
    check("streaming", &mut app(&scene));
}

#[test]
fn the_crew_at_work() {
    check("crew", &mut app(&scene::crew()));
}

#[test]
fn a_worker_opened() {
    let mut app = app(&scene::crew());
    picture(&mut app, 80, 24);
    press(&mut app, KeyCode::Tab, KeyModifiers::NONE);
    while app.crew.chosen != Some(scene::id(3)) {
        press(&mut app, KeyCode::Down, KeyModifiers::NONE);
    }
    press(&mut app, KeyCode::Enter, KeyModifiers::NONE);
    write(&mut app, "look at the\\");
    press(&mut app, KeyCode::Enter, KeyModifiers::NONE);
    write(&mut app, "edge case");
    check("worker", &mut app);
}

#[test]
fn the_crew_chosen_from() {
    let mut app = app(&scene::crew());
    picture(&mut app, 80, 24);
    press(&mut app, KeyCode::Tab, KeyModifiers::NONE);
    press(&mut app, KeyCode::Down, KeyModifiers::NONE);
    press(&mut app, KeyCode::Char('x'), KeyModifiers::NONE);
    check("crew-chosen", &mut app);
}

#[test]
fn a_question_about_a_change() {
    check("question", &mut busy());
}

#[test]
fn a_question_about_a_command_denied_with_words() {
    let mut app = busy();
    press(&mut app, KeyCode::Tab, KeyModifiers::NONE);
    press(&mut app, KeyCode::Char('d'), KeyModifiers::NONE);
    write(&mut app, "commit later");
    check("question-denied", &mut app);
}

#[test]
fn a_question_put_off() {
    let mut app = busy();
    press(&mut app, KeyCode::Esc, KeyModifiers::NONE);
    app.hint = None;
    check("question-later", &mut app);
}

#[test]
fn a_plan_to_approve() {
    check("plan", &mut app(&scene::planning()));
}

#[test]
fn the_timeline() {
    let mut app = busy();
    press(&mut app, KeyCode::Esc, KeyModifiers::NONE);
    app.hint = None;
    app.show(Page::Timeline);
    check("timeline", &mut app);
}

#[test]
fn cost_and_budget() {
    let mut app = app(&scene::crew());
    app.show(Page::Cost);
    check("cost", &mut app);
}

#[test]
fn the_help() {
    let mut app = app(&scene::crew());
    press(&mut app, KeyCode::Char('?'), KeyModifiers::NONE);
    check("help", &mut app);
}

#[test]
fn commands_offered() {
    let mut app = app(&scene::crew());
    write(&mut app, "/");
    check("commands", &mut app);
}

#[test]
fn about_to_leave() {
    let mut app = app(&scene::crew());
    press(&mut app, KeyCode::Char('c'), KeyModifiers::CONTROL);
    check("leaving", &mut app);
}

#[test]
fn a_hundred_workers() {
    let mut scene = Scene::default();
    scene.begin().human(0, "Do a hundred things.");
    for n in 1..=100 {
        scene.start(n, &format!("worker-{n}"), Some(0), "one of many");
        scene.waits(n, Waiting::Model).wait(50);
    }
    for n in (1..=100).filter(|n| n % 3 == 0) {
        scene.ends(n, gaffer_protocol::End::Done, "done with it");
    }
    for n in (1..=100).filter(|n| n % 7 == 1) {
        scene.waits(n, Waiting::Queue(n as usize));
    }
    let mut app = app(&scene);
    app.tick(Timestamp(BEGIN + 60_000));
    check("hundred", &mut app);
}

/// The colours that a picture has, front and back.
fn colors(app: &mut App) -> Vec<(Color, Color)> {
    let mut terminal = Terminal::new(TestBackend::new(130, 40)).expect("a backend in memory");
    terminal
        .draw(|frame| view::draw(app, frame))
        .expect("it cannot fail");
    let cells = terminal.backend().buffer().content().iter();
    cells.map(|cell| (cell.fg, cell.bg)).collect()
}

#[test]
fn any_background_does_and_no_color_means_none() {
    let mut app = busy();
    let shown = colors(&mut app);
    assert!(shown.iter().any(|(fg, _)| *fg != Color::Reset));
    let hard = [Color::Black, Color::White, Color::Gray, Color::DarkGray];
    let is_hard = |(fg, bg): &(Color, Color)| *bg != Color::Reset || hard.contains(fg);
    assert!(!shown.iter().any(is_hard));
    app.look.has_color = false;
    for agent in 0..5 {
        let agent = app.model.agent_mut(scene::id(agent)).expect("it is there");
        agent.transcript.forget_lines();
    }
    let plain = (Color::Reset, Color::Reset);
    assert!(colors(&mut app).iter().all(|cell| *cell == plain));
}
