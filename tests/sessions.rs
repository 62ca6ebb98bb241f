//! `gaffer sessions`: listing, searching, naming and deleting what runs left, and what is removed
//! by itself.

use crate::harness::{Place, Ran, run};
use gaffer_protocol::Timestamp;
use gaffer_store::{Home, SessionFolder};
use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const SCRIPT: &str = "agents: [{ name: main, steps: [
  { calls: [{ tool: Bash, input: { command: 'echo Zebra' } }] },
  { say: \"The Check fails.\\nIt is the LAST line.\" }] }]";

fn session(place: &Place, id: &str, prompt: &str) {
    let ran = run(place.scripted(SCRIPT, &["-p", prompt, "--session-id", id]));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

fn sessions(place: &Place, args: &[&str]) -> Ran {
    run(place.gaffer(&[&["sessions"], args].concat()))
}

fn listed(place: &Place, args: &[&str]) -> Vec<Value> {
    let ran = sessions(place, &[args, &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    serde_json::from_str(&ran.out).unwrap()
}

fn ids(place: &Place) -> Vec<String> {
    let all = listed(place, &["--all"]);
    let ids = all.iter().map(|it| it["session_id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

fn folder(place: &Place, id: &str) -> SessionFolder {
    let home = Home::new(place.home().join(".gaffer"));
    home.find_session(&place.project(), id).unwrap().folder
}

/// Makes a session look as if it was last written so many days ago.
fn age(place: &Place, id: &str, days: u64) {
    let at = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    for (_, path) in folder(place, id).agents().unwrap() {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(at).unwrap();
    }
}

#[test]
fn a_list_says_what_there_is_the_newest_first() {
    let place = Place::new();
    let ran = sessions(&place, &[]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""));
    assert!(ran.err.contains("no session of this folder"), "{}", ran.err);
    session(&place, "first", "mend the till");
    session(&place, "second", "\u{1b}[2Jand the\u{202e} door");
    session(&place, "third", "and more");
    std::fs::create_dir(place.root.path().join("other")).unwrap();
    let other = place.root.path().join("other").display().to_string();
    let args = ["-p", "x", "--session-id", "elsewhere", "--cwd", &other];
    run(place.scripted(SCRIPT, &args));

    let all = listed(&place, &[]);
    let names: Vec<&str> = all
        .iter()
        .map(|it| it["session_id"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["third", "second", "first"]);
    assert_eq!(ids(&place).len(), 4);
    assert_eq!(all[2]["title"], "mend the till");
    assert_eq!(
        (&all[2]["state"], &all[2]["reason"]),
        (&json!("ended"), &json!("done"))
    );
    assert_eq!(
        (&all[2]["mode"], &all[2]["agents"]),
        (&json!("normal"), &json!(1))
    );
    assert!(all[2]["size_bytes"].as_u64().unwrap() > 0);

    // One that was killed, and one that somebody has.
    let (_, path) = folder(&place, "first").agents().unwrap().remove(0);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.lines().take(3).collect::<Vec<_>>().join("\n")).unwrap();
    let owned = folder(&place, "second").own(Timestamp(0)).unwrap();
    let ran = sessions(&place, &["list"]);
    let line = |id: &str| ran.out.lines().find(|line| line.starts_with(id)).unwrap();
    assert!(line("first").ends_with("interrupted"), "{}", ran.out);
    let running = format!("running (process {})", std::process::id());
    assert!(line("second").ends_with(&running), "{}", ran.out);
    assert!(line("third").ends_with("done"), "{}", ran.out);
    assert!(!ran.out.contains(['\u{1b}', '\u{202e}']), "{:?}", ran.out);
    drop(owned);
}

#[test]
fn words_are_found_with_who_said_them() {
    let place = Place::new();
    session(&place, "first", "mend the Till");
    session(&place, "second", "and the door");
    let ran = sessions(&place, &["search", "last LINE"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(
        ran.out
            .matches("  main, answer: It is the LAST line.")
            .count(),
        2
    );
    let ran = sessions(&place, &["search", "till", "--json"]);
    let hits = ran.events();
    assert_eq!(hits.len(), 2, "{hits:#?}");
    assert_eq!(hits[0]["where"], "title");
    assert_eq!(hits[1]["where"], "the user");
    assert_eq!(hits[1]["line"], "mend the Till");
    // What tools did is asked for.
    assert_eq!(sessions(&place, &["search", "zebra"]).code, Some(1));
    let ran = sessions(&place, &["search", "zebra", "--tools", "--max-count", "1"]);
    assert!(ran.out.contains("  main, call: Bash"), "{}", ran.out);
    assert!(ran.out.contains("  …\n"), "{}", ran.out);
    let ran = sessions(&place, &["search", " "]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let ran = sessions(&place, &["search", "none\u{1b}[2J"]);
    assert_eq!(ran.err, "gaffer: `none[2J` was not found\n");
}

#[test]
fn a_session_is_called_by_its_name() {
    let place = Place::new();
    session(&place, "first", "one");
    session(&place, "second", "two");
    let ran = sessions(&place, &["rename", "fir", " the till "]);
    assert_eq!(ran.out, "first is called the till\n", "{ran:?}");
    assert_eq!(listed(&place, &[])[1]["name"], "the till");
    let resumed = ["-p", "more", "--resume", "the till"];
    let longer = SCRIPT.replace("] }]", ", { say: Still here. }] }]");
    let ran = run(place.scripted(&longer, &resumed));
    assert_eq!(ran.out, "Still here.\n", "{ran:#?}");
    assert_eq!(listed(&place, &[])[0]["name"], "the till", "it keeps it");
    for (name, why) in [
        ("the till", "the session first is called so"),
        ("first", "the session first is called so"),
        ("", "1 to 64 characters"),
        ("a\nb", "one line that can be printed"),
    ] {
        let ran = sessions(&place, &["rename", "second", name]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains(why), "{}", ran.err);
    }
    let ran = sessions(&place, &["rename", "nosuch", "x"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let long = "x".repeat(65);
    let ran = run(place.scripted(
        SCRIPT,
        &["-p", "x", "--name", &long, "--session-id", "third"],
    ));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(ids(&place).len(), 2, "nothing was written");
}

/// A session's scratchpad with something in it.
fn pad(place: &Place, id: &str) -> PathBuf {
    let temp = place.root.path().join("tmp");
    let uid = temp.metadata().unwrap().uid();
    let project = folder(place, id).path().parent().unwrap().to_owned();
    let project = project.file_name().unwrap().to_owned();
    let path = temp.join(format!("gaffer-{uid}")).join(project).join(id);
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path.join("scratchpad")).unwrap();
    std::fs::write(path.join("scratchpad/notes"), "x").unwrap();
    path
}

#[test]
fn deleting_takes_all_of_a_session_and_nothing_that_is_needed() {
    let place = Place::new();
    for id in ["first", "second", "third"] {
        session(&place, id, "go");
    }
    let pads = ["first", "second"].map(|id| pad(&place, id));
    let ran = sessions(&place, &["delete", "first"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("--yes"), "{}", ran.err);

    let owned = folder(&place, "second").own(Timestamp(0)).unwrap();
    let ran = sessions(&place, &["delete", "--yes", "first", "second"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let told = format!(
        "the session second is in use by process {}",
        std::process::id()
    );
    assert!(ran.err.contains(&told), "{}", ran.err);
    drop(owned);
    let tree = folder(&place, "third").path().join("worktrees/fix");
    std::fs::create_dir_all(&tree).unwrap();
    let ran = sessions(&place, &["delete", "--yes", "first", "third"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("worktrees that were not merged"),
        "{}",
        ran.err
    );
    let ran = sessions(&place, &["delete", "--yes", "first", "nosuch"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(ids(&place).len(), 3, "all of them go or none");

    let ran = sessions(&place, &["delete", "--yes", "first", "first"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with("deleted first ("), "{}", ran.out);
    assert_eq!(ids(&place), ["third", "second"]);
    assert_eq!(pads.map(|pad| pad.exists()), [false, true]);
    let project = folder(&place, "second").path().parent().unwrap().to_owned();
    assert_eq!(
        std::fs::read_dir(project).unwrap().count(),
        2,
        "nothing is left of it"
    );
}

#[test]
fn cleaning_is_shown_before_it_is_done() {
    let place = Place::new();
    for id in ["old", "named", "young"] {
        session(&place, id, "go");
    }
    sessions(&place, &["rename", "named", "friday"]);
    age(&place, "old", 40);
    age(&place, "named", 40);
    let ran = sessions(&place, &["clean", "--dry-run"]);
    assert!(ran.out.starts_with("old "), "{ran:?}");
    assert!(ran.out.ends_with("too old\n"), "{ran:?}");
    assert!(
        ran.err.starts_with("gaffer: would remove 1 session, "),
        "{ran:?}"
    );
    assert_eq!(ids(&place).len(), 3);
    let ran = sessions(&place, &["clean"]);
    assert!(
        ran.err.starts_with("gaffer: removed 1 session, "),
        "{ran:?}"
    );
    assert_eq!(ids(&place), ["young", "named"]);
    age(&place, "young", 1);
    let small = json!({"sessions": {"maxSize": "1KB"}, "cleanupPeriodDays": 5});
    let small = place.write("small.json", &small.to_string());
    let ran = sessions(&place, &["clean", "--settings", small.to_str().unwrap()]);
    assert!(ran.out.contains("young "), "{ran:?}");
    assert!(ran.out.contains("too much in all"), "{ran:?}");
    // Four periods of five days have passed for the one with a name.
    assert_eq!(ids(&place), Vec::<String>::new());
    for wrong in [
        "{\"cleanupPeriodDays\": 0}",
        "{\"sessions\": {\"maxSize\": \"much\"}}",
    ] {
        let wrong = place.write("wrong.json", wrong);
        let ran = sessions(&place, &["clean", "--settings", wrong.to_str().unwrap()]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
}

#[test]
fn a_run_cleans_up_once_a_day_and_says_nothing_of_it() {
    let place = Place::new();
    session(&place, "old", "go");
    session(&place, "older", "go");
    let stamp = place.home().join(".gaffer/cleaned");
    assert!(stamp.exists());
    age(&place, "old", 31);
    session(&place, "today", "go");
    assert!(ids(&place).contains(&"old".to_owned()), "it was done today");
    std::fs::write(&stamp, "2020-01-01T00:00:00.000Z\n").unwrap();
    let ran = run(place.scripted(SCRIPT, &["-p", "go", "--session-id", "next"]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(ids(&place), ["next", "today", "older"]);
    let again = std::fs::read_to_string(&stamp).unwrap();
    assert!(!again.starts_with("2020"), "{again}");
}

#[test]
fn a_project_cannot_have_the_users_sessions_removed() {
    let place = Place::new();
    session(&place, "first", "go");
    age(&place, "first", 3);
    let evil = json!({"cleanupPeriodDays": 1, "sessions": {"maxSize": 1}});
    place.write("project/.gaffer/settings.json", &evil.to_string());
    std::fs::remove_file(place.home().join(".gaffer/cleaned")).unwrap();
    session(&place, "second", "go");
    assert_eq!(ids(&place), ["second", "first"]);
}

#[test]
fn without_room_no_session_begins() {
    let place = Place::new();
    let settings = json!({"minFreeSpace": "9000TB"}).to_string();
    place.write("home/.gaffer/settings.json", &settings);
    let ran = run(place.scripted(SCRIPT, &["-p", "go"]));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let home = place.home().join(".gaffer").display().to_string();
    for word in [
        "are free on the disk of",
        &home,
        "9000000000 MB",
        "`gaffer sessions clean`",
    ] {
        assert!(ran.err.contains(word), "{word}: {}", ran.err);
    }
    assert_eq!(ran.err.lines().count(), 1);
    assert!(!place.home().join(".gaffer/projects").exists());
    place.write("home/.gaffer/settings.json", "{\"minFreeSpace\": 0}");
    session(&place, "first", "go");
}
