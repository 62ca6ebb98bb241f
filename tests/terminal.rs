//! The real program in a real terminal: keys go in, screens come out, and the shell is as it was.

use crate::harness::Place;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a machine that is busy.
const DEADLINE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(30);
const GRACE: Duration = Duration::from_millis(500);
const NO_TMUX: &str = "these tests need tmux: `cargo xtask test` installs it where it may; else use `apt-get install tmux`, `dnf install tmux`, `apk add tmux` or `brew install tmux`";

/// A terminal of 80 columns and 24 rows with a server of its own.
struct Tmux {
    place: Place,
    socket: PathBuf,
}

impl Tmux {
    /// With a shell in it.
    fn new(place: Place) -> Self {
        let socket = place.root.path().join("tmux");
        let tmux = Self { place, socket };
        let path = std::env::var("PATH").unwrap_or_default();
        let (home, project) = (tmux.place.home(), tmux.place.project());
        let temp = tmux.place.root.path().join("tmp");
        let line = format!(
            "cd '{}' && exec env -i PATH='{path}' HOME='{}' TMPDIR='{}' TERM=screen PS1='ready$ ' sh",
            project.display(),
            home.display(),
            temp.display(),
        );
        tmux.tmux(&[
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            "-s",
            "t",
            &line,
        ]);
        tmux
    }

    #[expect(clippy::disallowed_methods, reason = "the terminal is started here")]
    fn call(&self, args: &[&str]) -> std::io::Result<Output> {
        Command::new("tmux")
            .args(["-u", "-f", "/dev/null", "-S"])
            .arg(&self.socket)
            .args(args)
            .env_remove("TMUX")
            .output()
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output = self.call(args);
        let output = output.unwrap_or_else(|why| panic!("{why}: {NO_TMUX}"));
        assert!(output.status.success(), "tmux {args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "-t", "t"], keys].concat());
    }

    /// Writes a line and sends it.
    fn enter(&self, text: &str) {
        self.tmux(&["send-keys", "-t", "t", "-l", text]);
        self.sees(text.rsplit(' ').next().unwrap_or(text));
        self.press(&["Enter"]);
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "t"])
    }

    /// Looks at the screen until it is as it should be.
    fn until(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let begin = Instant::now();
        loop {
            let screen = self.screen();
            if is(&screen) {
                return screen;
            }
            assert!(begin.elapsed() < DEADLINE, "never seen: {what}\n{screen}");
            std::thread::sleep(LOOK);
        }
    }

    fn sees(&self, words: &str) -> String {
        self.until(words, |screen| screen.contains(words))
    }

    /// The question of a worker. Somebody who has just typed calls it up.
    fn question(&self, name: &str) -> String {
        let (asks, waits) = (format!("{name} asks for "), format!("{name} wants "));
        let seen = self.until("a question", |it| it.contains(&asks) || it.contains(&waits));
        if !seen.contains(&asks) {
            self.press(&["C-o"]);
        }
        self.sees(&asks)
    }

    /// Answers the question that is shown, once it takes keys.
    fn answer(&self, key: &str) {
        let asks = |screen: &str| screen.contains(" asks for ");
        self.press(&[key]);
        let is_new = |screen: &str| screen.contains("press again");
        let seen = self.until("what came of it", |it| !asks(it) || is_new(it));
        if asks(&seen) {
            // A question that has just come takes no key for a moment.
            std::thread::sleep(GRACE);
            self.press(&[key]);
            self.until("the answer taken", |it| !asks(it));
        }
    }

    /// The line that starts the program with a script.
    fn gaffer(&self, args: &str) -> String {
        format!("{}/gaffer {args}", self.place.root.path().display())
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It may not have come to be there.
        drop(self.call(&["kill-server"]));
    }
}

/// A folder with the program under a short name, bound to a script.
fn place(script: &str) -> Place {
    let place = Place::new();
    let settings = r#"{"prices": {"scripted": {"input": 1.0, "output": 10.0}}}"#;
    let settings = place.write("settings.json", settings);
    let script = place.write("script.yaml", script);
    let start = format!(
        "#!/bin/sh\necho $$ > '{}/program'\nexec '{}' --provider scripted --model '{}' --settings '{}' --sandbox off \"$@\"\n",
        place.root.path().display(),
        env!("CARGO_BIN_EXE_gaffer"),
        script.display(),
        settings.display(),
    );
    let start = place.write("gaffer", &start);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(start, mode).unwrap();
    place
}

fn is_sane(stty: &str) -> bool {
    let words: Vec<&str> = stty.split([' ', '\n', ';']).collect();
    ["icanon", "echo", "isig", "icrnl", "opost"]
        .iter()
        .all(|word| words.contains(word))
}

const CREW: &str = r"
agents:
  - name: main
    steps:
      - say: Two workers begin.
        calls:
          - { tool: Agent, input: { description: Make a file, name: maker, phase: implementation, prompt: Write made.txt and stop. } }
          - { tool: Agent, input: { description: Look at the tests, name: tester, phase: research, prompt: Look. } }
      - { say: They run. }
      - { say: Still one. }
      - { say: All are back. }
      - { delay: 1h, say: Never said. }
      - { repeat: 9, say: As you like. }
  - name: maker
    steps:
      - { calls: [{ tool: Bash, as: t, input: { command: sh make.sh } }] }
      - { expect: [{ of: t, error: false }], say: The file is made. }
  - name: tester
    steps:
      - { delay: 1h, say: Never said. }
      - { expect: [{ text: wrap it up }], say: Wrapped up. }
";

#[test]
fn a_session_from_the_first_key_to_the_last() {
    let place = place(CREW);
    place.write("project/make.sh", "echo x > made.txt\n");
    let tmux = Tmux::new(place);
    tmux.sees("ready$");
    tmux.enter(&tmux.gaffer(""));
    tmux.sees("say what is to be done");
    tmux.enter("make the file");
    let asked = tmux.question("maker");
    assert!(asked.contains("sh make.sh"), "{asked}");
    assert!(!tmux.place.project().join("made.txt").exists());
    tmux.answer("y");
    tmux.sees("maker completed: The file is made.");
    assert!(tmux.place.project().join("made.txt").exists());
    tmux.sees("Still one.");

    // The crew, and a worker of it that is turned another way.
    tmux.press(&["Tab"]);
    tmux.sees("Enter open");
    tmux.press(&["Down", "Enter"]);
    tmux.sees("tester (worker) · Esc back");
    tmux.press(&["C-g"]);
    tmux.sees("it waits for your word");
    tmux.enter("wrap it up");
    tmux.sees("Wrapped up.");
    tmux.press(&["Escape"]);
    tmux.sees("tester completed: Wrapped up.");
    tmux.sees("All are back.");

    tmux.enter("think about it");
    tmux.sees("… thinks");
    tmux.press(&["Escape"]);
    tmux.sees("interrupted: what do you want instead?");

    // Wide enough, the crew stands beside the conversation.
    tmux.tmux(&["resize-window", "-t", "t", "-x", "140", "-y", "40"]);
    tmux.until("the crew beside it", |screen| {
        screen.lines().any(|line| line.contains("│ crew"))
    });
    tmux.tmux(&["resize-window", "-t", "t", "-x", "80", "-y", "24"]);
    tmux.sees("── crew");

    tmux.enter("/modle");
    tmux.sees("did you mean /mode or /model?");
    tmux.enter("/cost");
    let cost = tmux.sees("cost · Esc back");
    assert!(cost.contains("maker") && cost.contains('$'), "{cost}");
    tmux.press(&["Escape"]);
    tmux.sees("interrupted: what do you want instead?");

    tmux.press(&["C-c"]);
    tmux.sees("Ctrl-C again leaves; come back: gaffer --resume");
    tmux.press(&["C-c"]);
    let left = tmux.sees("to go on: gaffer --resume");
    assert!(
        !left.contains("They run."),
        "the shell's own screen is back: {left}"
    );
    tmux.enter("clear; stty -a");
    let stty = tmux.sees("opost");
    assert!(is_sane(&stty), "{stty}");

    // All of it is there again, the workers with their words.
    tmux.enter(&format!("clear; {}", tmux.gaffer("--continue")));
    tmux.sees("tester completed: Wrapped up.");
    tmux.press(&["Tab"]);
    tmux.sees("Enter open");
    tmux.press(&["Down", "Enter"]);
    let opened = tmux.sees("(worker) · Esc back");
    let words = match opened.contains("tester (worker)") {
        true => "› wrap it up",
        false => "✓ Bash sh make.sh",
    };
    tmux.sees(words);
    tmux.press(&["C-c", "C-c"]);
    tmux.sees("to go on: gaffer --resume");
}

#[test]
fn another_session_takes_this_ones_place() {
    let script = "agents: [{ prompt: the first, steps: [{ say: First said. }, { expect: [{ text: what now }], say: Third said. }] }, { prompt: the second, steps: [{ say: Second said. }] }]";
    let tmux = Tmux::new(place(script));
    tmux.sees("ready$");
    tmux.enter(&tmux.gaffer("--mode normal 'the first'"));
    tmux.sees("First said.");
    tmux.press(&["C-c", "C-c"]);
    tmux.sees("to go on:");
    tmux.enter(&format!(
        "clear; {}",
        tmux.gaffer("--mode normal 'the second'")
    ));
    tmux.sees("Second said.");
    tmux.enter("/resume");
    let list = tmux.sees("/resume ID goes on with one");
    let line = list.lines().find(|line| line.contains("“the first”"));
    let id = line
        .unwrap()
        .split_whitespace()
        .find(|word| word.len() == 8);
    tmux.enter(&format!("/resume {}", id.unwrap()));
    // What was before is drawn, and the other one is gone from the screen.
    tmux.until("the first session", |screen| {
        screen.contains("First said.") && !screen.contains("Second said.")
    });
    tmux.enter("what now");
    tmux.sees("Third said.");
    tmux.press(&["C-c", "C-c"]);
    tmux.sees("to go on:");
    tmux.enter(&format!(
        "clear; {}",
        tmux.gaffer("--mode normal --continue")
    ));
    tmux.until("the past of the session", |screen| {
        screen.contains("First said.") && screen.contains("Third said.")
    });
    tmux.press(&["C-z"]);
    tmux.sees("ready$");
    tmux.enter("clear; fg");
    tmux.sees("Third said.");
    tmux.press(&["C-c", "C-c"]);
    tmux.sees("to go on:");
}

const SLEEP: &str = r"
agents:
  - name: main
    steps:
      - calls: [{ tool: Agent, input: { description: Sleep, name: sleeper, phase: research, prompt: Sleep. } }]
      - { say: It sleeps. }
  - name: sleeper
    steps:
      - { calls: [{ tool: Bash, input: { command: echo $$ > pid; exec sleep 4000 } }] }
";

/// Whether a process runs. One that has ended may wait for long until somebody asks how.
fn is_alive(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    test_kill_process(pid).is_ok() && !state.starts_with('Z')
}

/// A session whose worker runs a command, and the processes of both.
fn asleep() -> (Tmux, [Pid; 2]) {
    let tmux = Tmux::new(place(SLEEP));
    tmux.sees("ready$");
    tmux.enter(&tmux.gaffer("--allowed-tools Bash 'let it sleep'"));
    tmux.sees("It sleeps.");
    let file = tmux.place.project().join("pid");
    tmux.until("the command", |_| {
        std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'))
    });
    let pid = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        Pid::from_raw(text.trim().parse().unwrap()).unwrap()
    };
    let program = tmux.place.root.path().join("program");
    let processes = [pid(&program), pid(&file)];
    assert!(processes.iter().all(|it| is_alive(*it)));
    (tmux, processes)
}

/// The records of all agents end with a word about it.
fn assert_interrupted(place: &Place) {
    let records = place.transcripts();
    let ends = records.iter().filter(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.trim_end().ends_with(r#"{"end":"interrupted"}}"#)
    });
    assert_eq!(ends.count(), 2, "{records:?}");
}

#[test]
fn a_signal_ends_the_crew_and_gives_the_terminal_back() {
    let (tmux, [program, sleeper]) = asleep();
    kill_process(program, Signal::TERM).unwrap();
    let left = tmux.sees("to go on: gaffer --resume");
    assert!(!left.contains("It sleeps."), "{left}");
    tmux.enter("echo code=$?; stty -a");
    let stty = tmux.sees("opost");
    assert!(stty.contains("code=130") && is_sane(&stty), "{stty}");
    assert!(!is_alive(sleeper));
    assert_interrupted(&tmux.place);
}

#[test]
fn with_the_terminal_goes_the_crew() {
    let (tmux, processes) = asleep();
    tmux.tmux(&["kill-server"]);
    let begin = Instant::now();
    while processes.iter().any(|it| is_alive(*it)) {
        assert!(begin.elapsed() < DEADLINE, "still there: {processes:?}");
        std::thread::sleep(LOOK);
    }
    assert_interrupted(&tmux.place);
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let place = Place::new();
    let ran = crate::harness::run(place.gaffer(&[]));
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("gaffer -p"), "{}", ran.err);
    assert_eq!(ran.out, "");
    assert!(place.transcripts().is_empty());
}
