//! Process trees: what a command starts, however it hides, ends with it.

use gaffer_workspace::floor::Floor;
use gaffer_workspace::job::{Ended, Job, Launcher, Order, Status};
use gaffer_workspace::output::Keeper;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn order(folder: &Path, script: &str) -> Order {
    Order {
        command: ["sh", "-c", script].map(Into::into).into(),
        cwd: folder.to_owned(),
        hidden: Vec::new(),
        env: Vec::new(),
        keeper: Keeper {
            keep: 1000,
            file: Some(folder.join("output")),
            file_cap: 1 << 20,
            floor: Floor::default(),
        },
        unmade: Vec::new(),
    }
}

fn start(folder: &Path, script: &str) -> Arc<Job> {
    let launcher = Launcher::new(PathBuf::from(env!("CARGO_BIN_EXE_gaffer")));
    launcher.start(&order(folder, script)).unwrap()
}

/// Processes whose folder is this one: all that a test's command started.
fn alive(folder: &Path) -> usize {
    let folder = folder.canonicalize().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lives = |entry: &std::fs::DirEntry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let is_dead = stat
            .rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('Z'));
        !is_dead && std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder)
    };
    entries.filter(lives).count()
}

/// Waits until as many processes are there, without guessing how long that takes.
fn wait_for(folder: &Path, count: usize, limit: Duration) -> bool {
    let began = Instant::now();
    while alive(folder) != count {
        if began.elapsed() > limit {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

/// Waits until the warden, the shell and the five sleepers are there.
fn wait_for_hiders(folder: &Path) {
    let began = Instant::now();
    while alive(folder) < 7 {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "the command never began"
        );
        std::thread::yield_now();
    }
}

/// A plain child, one in a session of its own, one that ignores hang-ups, one forked twice.
const HIDERS: &str = "sleep 300 & setsid sleep 301 & nohup sleep 302 >/dev/null 2>&1 & (setsid sh -c '(sleep 303 &) & sleep 304' &) ; echo started; wait";

#[tokio::test]
async fn a_stop_ends_everything_and_answers_only_then() {
    let temp = tempfile::tempdir().unwrap();
    let job = start(temp.path(), HIDERS);

    wait_for_hiders(temp.path());
    let began = Instant::now();
    job.end().await.unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(alive(temp.path()), 0);
    assert!(!job.is_alive());
}

#[tokio::test]
async fn who_cleans_up_behind_itself_may_and_who_will_not_end_is_ended() {
    let temp = tempfile::tempdir().unwrap();
    let lock = temp.path().join("lock");
    let polite = "(trap 'rm lock; exit' TERM; touch lock; while :; do sleep 0.02; done)";
    let stubborn = "(trap '' TERM; while :; do sleep 0.02; done)";
    let job = start(temp.path(), &format!("{polite} & {stubborn} & wait"));
    while !lock.exists() {
        tokio::task::yield_now().await;
    }
    job.end().await.unwrap();
    assert!(!lock.exists());
    assert_eq!(alive(temp.path()), 0);
}

#[tokio::test]
async fn what_a_command_leaves_behind_lives_on_until_its_job_is_ended() {
    let temp = tempfile::tempdir().unwrap();
    let job = start(temp.path(), "echo hi; setsid sleep 300 & exit 3");
    assert_eq!(
        job.ended().await,
        Status {
            ended: Ended::Exited(3),
            left: true
        }
    );
    assert!(job.is_alive());
    assert!(alive(temp.path()) >= 1);
    while job.output.total() < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(job.output.text(), "hi\n");
    job.end().await.unwrap();
    assert_eq!(alive(temp.path()), 0);
}

#[tokio::test]
async fn dropping_a_job_ends_it() {
    let temp = tempfile::tempdir().unwrap();
    let job = start(temp.path(), HIDERS);
    wait_for_hiders(temp.path());
    drop(job);
    assert!(wait_for(temp.path(), 0, Duration::from_secs(5)));
}

#[tokio::test]
async fn a_command_that_kills_its_warden_is_still_found() {
    let temp = tempfile::tempdir().unwrap();
    let job = start(temp.path(), "setsid sleep 300 & kill -9 $PPID; sleep 301");
    assert!(matches!(job.ended().await.ended, Ended::Lost(_)));
    job.end().await.unwrap();
    assert_eq!(alive(temp.path()), 0);
}

#[tokio::test]
async fn a_fork_bomb_with_a_slow_fuse_is_ended() {
    let temp = tempfile::tempdir().unwrap();
    let job = start(
        temp.path(),
        "spawn() { for i in 1 2 3; do (sleep 0.01; [ $1 -lt 5 ] && spawn $(($1 + 1)); sleep 300) & done; }; spawn 1; wait",
    );
    while alive(temp.path()) < 60 {
        tokio::task::yield_now().await;
    }
    job.end().await.unwrap();
    assert_eq!(alive(temp.path()), 0);
}

#[tokio::test]
async fn a_flood_stays_under_its_cap_on_disk_and_in_memory() {
    let temp = tempfile::tempdir().unwrap();
    let job = start(temp.path(), "yes");
    while job.output.total() < 200 << 20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    job.end().await.unwrap();
    assert_eq!(
        std::fs::metadata(temp.path().join("output")).unwrap().len(),
        1 << 20
    );
    let text = job.output.text();
    assert!(
        text.len() < 3000 && text.contains("the first 1048576 bytes are in"),
        "{text}"
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let temp = tempfile::tempdir().unwrap();
    let launcher = Launcher::new(PathBuf::from(env!("CARGO_BIN_EXE_gaffer")));
    let mut order = order(temp.path(), "");
    order.command = vec!["no-such-program-here".into()];
    let job = launcher.start(&order).unwrap();
    assert!(matches!(job.ended().await.ended, Ended::Lost(why) if why.contains("No such file")));
}

/// The whole program is killed while its agent's command runs.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the program under test is started here"
)]
fn nothing_outlives_gaffer_itself() {
    let place = crate::harness::Place::new();
    let script = format!(
        "agents: [{{ steps: [{{ calls: [{{ tool: Bash, input: {{ command: {} }} }}] }}] }}]",
        serde_json::json!(HIDERS)
    );
    let path = place.write("s.yaml", &script);
    let mut child = Command::new(env!("CARGO_BIN_EXE_gaffer"))
        .args([
            "-p",
            "go",
            "--mode",
            "normal",
            "--provider",
            "scripted",
            "--model",
        ])
        .arg(&path)
        .current_dir(place.project())
        .env("HOME", place.home())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    wait_for_hiders(&place.project());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        wait_for(&place.project(), 0, Duration::from_secs(5)),
        "{} are left",
        alive(&place.project())
    );
}
