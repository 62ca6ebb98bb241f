//! Plays a scripted session in the terminal UI, to look at it and to try keys. Messages and answers
//! are echoed as an engine would.

#[expect(dead_code, reason = "the tests use the rest")]
mod scene;

use gaffer_protocol::{Block, Budget, Command, Event, EventKind, Message, Waiting};
use gaffer_tui::{Options, SlashCommand, run};
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

fn main() -> std::io::Result<()> {
    let (events_in, events) = channel();
    let (commands, commands_out) = channel::<Command>();
    let echo = events_in.clone();
    std::thread::spawn(move || {
        for event in scene::asking().events {
            std::thread::sleep(Duration::from_millis(20));
            send(&events_in, event.agent, event.kind);
        }
    });
    std::thread::spawn(move || {
        for command in commands_out {
            if matches!(&command, Command::Slash { name, .. } if name == "panic") {
                drop(std::thread::spawn(|| panic!("as you wished")).join());
            }
            let notice = EventKind::Notice(format!("command: {command:?}"));
            send(&echo, scene::id(0), notice);
            if let Command::Say { to, text } = command {
                let message = Arc::new(Message::user(vec![Block::from_human(text)]));
                let to = to.unwrap_or(scene::id(0));
                send(&echo, to, EventKind::Input(message));
                send(&echo, to, EventKind::Waiting(Waiting::Model));
            }
        }
    });
    let options = Options {
        files: Some(Box::new(|name| {
            ["src/main.rs", "src/total.rs", "tests/total.rs"]
                .into_iter()
                .filter(|file| file.starts_with(name))
                .map(str::to_owned)
                .collect()
        })),
        commands: vec![
            SlashCommand {
                name: "review".to_owned(),
                what: "a skill: read a change closely".to_owned(),
            },
            SlashCommand {
                name: "panic".to_owned(),
                what: "let a thread panic: the picture comes back".to_owned(),
            },
        ],
        budget: Budget {
            usd: Some(2.0),
            ..Budget::default()
        },
        // A program would stop itself here.
        suspend: Some(Box::new(|| {
            drop(writeln!(std::io::stdout(), "suspended for two seconds"));
            std::thread::sleep(Duration::from_secs(2));
        })),
        ..Options::default()
    };
    let left = run(events, &commands, options)?;
    writeln!(std::io::stdout(), "{left}")
}

fn send(to: &Sender<Event>, agent: gaffer_protocol::AgentId, kind: EventKind) {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ms = since.unwrap_or_default().as_millis();
    let at = gaffer_protocol::Timestamp(u64::try_from(ms).unwrap_or(u64::MAX));
    let event = Event {
        seq: 0,
        at,
        agent,
        kind,
    };
    // The UI may have left.
    drop(to.send(event));
}
