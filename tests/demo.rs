//! The README's first command, in an empty home.

use crate::harness::{Place, run};
use std::path::Path;

#[test]
fn the_demo_mends_its_project_and_shows_it() {
    let place = Place::new();
    let folder = place.root.path().join("new");
    let ran = run(place.gaffer(&["demo", "--dir", folder.to_str().unwrap()]));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let before = ran
        .out
        .find("FAIL  a last line without a line break")
        .unwrap();
    let diff = ran
        .out
        .find("+while read -r quantity price || [ -n \"$quantity\" ]; do")
        .unwrap();
    let after = ran
        .out
        .rfind("ok    a last line without a line break")
        .unwrap();
    assert!(before < diff && diff < after, "{}", ran.out);
    if cfg!(feature = "coordinator") {
        let lines: Vec<&str> = ran.out.lines().collect();
        for line in ["[reader] → Read src/total.sh", "[reader] completed"] {
            assert!(lines.contains(&line), "{line}: {}", ran.out);
        }
    }
    let transcript = ran
        .out
        .lines()
        .find_map(|line| line.strip_prefix("The transcript: "))
        .unwrap();
    assert!(Path::new(transcript).is_file());
    assert!(transcript.starts_with(place.home().to_str().unwrap()));
    // What it says is what is there: the check passes for whoever runs it.
    let committed = folder.join(".git/logs/HEAD");
    let log = std::fs::read_to_string(committed).unwrap();
    let (commits, agents) = match cfg!(feature = "coordinator") {
        true => (3, 6),
        false => (2, 1),
    };
    assert_eq!(log.lines().count(), commits, "{log}");
    let folds: Vec<_> = place
        .transcripts()
        .iter()
        .map(|path| gaffer_store::Fold::read(path).unwrap())
        .collect();
    assert_eq!(folds.len(), agents, "a coordinator and five workers");
    for fold in &folds {
        assert_eq!(fold.end, Some(gaffer_protocol::End::Done));
    }
}

#[test]
fn the_demo_writes_over_nothing() {
    let place = Place::new();
    place.write("project/mine.txt", "mine");
    let ran = run(place.gaffer(&["demo", "--dir", "."]));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("not an empty folder"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(place.project()).unwrap().count(), 1);
}
