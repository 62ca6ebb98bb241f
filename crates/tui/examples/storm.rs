//! A storm of events on the terminal UI: a hundred workers that stream, call tools and end. Says at
//! its end how much of a core the UI took, in the storm and at rest after it.

#[expect(dead_code, reason = "the tests use the rest")]
mod scene;

use gaffer_protocol::{Command, Event, EventKind, Timestamp, Waiting};
use gaffer_tui::{Options, run};
use std::io::Write;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const WORKERS: u32 = 100;
const A_SECOND: u64 = 10_000;
const STORM: Duration = Duration::from_secs(10);
const REST: Duration = Duration::from_secs(10);

fn main() -> std::io::Result<()> {
    let (events_in, events) = channel();
    let (commands, _commands_out) = channel::<Command>();
    let feeder = std::thread::spawn(move || {
        let (storm, fed) = storm(&events_in);
        // One goes on without a word, so the clock moves; then nobody.
        for n in 0..WORKERS {
            send(&events_in, n, EventKind::Waiting(Waiting::Mail));
        }
        let clock = calm();
        send(&events_in, WORKERS, EventKind::Waiting(Waiting::Mail));
        let rest = calm();
        drop(events_in);
        (storm, fed, clock, rest)
    });
    run(events, &commands, Options::default())?;
    let Ok((storm, fed, clock, rest)) = feeder.join() else {
        return Err(std::io::Error::other("the feeder ended early"));
    };
    writeln!(
        std::io::stdout(),
        "{fed} events: {storm:.1} % of a core in the storm, {clock:.2} % while one works silently, {rest:.2} % at rest"
    )
}

/// Feeds events at a steady rate. The share of a core that was not the feeder's own, and how many
/// there were.
fn storm(to: &Sender<Event>) -> (f64, u64) {
    let mut scene = scene::Scene::default();
    scene.begin().human(0, "Do a hundred things.");
    for n in 1..=WORKERS {
        scene.start(n, &format!("worker-{n}"), Some(0), "one of many");
    }
    for event in scene.events {
        let stamped = Event { at: now(), ..event };
        drop(to.send(stamped));
    }
    let (process, own) = (process_time(), thread_time());
    let began = Instant::now();
    let mut fed = 0u64;
    while began.elapsed() < STORM {
        let due = began.elapsed().as_millis() as u64 * A_SECOND / 1000;
        while fed < due {
            one(to, fed);
            fed += 1;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let own = thread_time().saturating_sub(own);
    let all = process_time().saturating_sub(process);
    (share(all.saturating_sub(own), began.elapsed()), fed)
}

fn one(to: &Sender<Event>, n: u64) {
    let agent = (n % u64::from(WORKERS + 1)) as u32;
    let turn = n / u64::from(WORKERS + 1);
    let call = (
        "c",
        "Bash",
        serde_json::json!({"command": format!("cargo test {turn}")}),
    );
    let mut scene = scene::Scene::default();
    match turn % 40 {
        30 => scene.answers(agent, "So it is `done`: **well**.\n\n- one\n- two", &[]),
        31 => scene.calls(agent, &call),
        32 => scene.returns(
            agent,
            "c",
            "Bash",
            "test result: ok. 12 passed\nall fine",
            5,
        ),
        33 => scene.waits(agent, Waiting::Model),
        _ => scene.add(
            agent,
            EventKind::TextDelta("some *words* and `code` ".to_owned()),
        ),
    };
    for event in scene.events {
        send(to, agent, event.kind);
    }
}

fn send(to: &Sender<Event>, agent: u32, kind: EventKind) {
    drop(to.send(Event {
        seq: 0,
        at: now(),
        agent: scene::id(agent),
        kind,
    }));
}

/// What is used while nothing comes.
fn calm() -> f64 {
    std::thread::sleep(Duration::from_secs(1));
    let (before, began) = (process_time(), Instant::now());
    std::thread::sleep(REST);
    share(process_time().saturating_sub(before), began.elapsed())
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp(since.unwrap_or_default().as_millis() as u64)
}

fn share(used: Duration, of: Duration) -> f64 {
    used.as_secs_f64() / of.as_secs_f64() * 100.0
}

/// What all threads of this process have computed, as the system counts it.
fn process_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    // User and system time, in hundredths of a second.
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|it| it.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 10)
}

/// The same for this thread alone.
fn thread_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat
        .split_whitespace()
        .next()
        .and_then(|it| it.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}
