//! Every input that is kept is tried in the suite: the corpus, and what was once found.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in tests a broken assumption must stop the test, and says which input it was about"
)]

use gaffer_fuzz::{TARGETS, target};
use std::fs;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The names in a folder, sorted; none where it is not there.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

/// Tries all inputs of a target; the name of the one at work is printed for whoever reads a
/// failure.
fn replay(name: &str) {
    let target = target(name).unwrap();
    let (corpus, crashes) = (folder("corpus").join(name), folder("crashes").join(name));
    assert!(names(&corpus).len() >= 10, "the corpus of {name} is gone");
    for folder in [corpus, crashes] {
        for file in names(&folder) {
            let path = folder.join(file);
            println!("{}", path.display());
            (target.run)(&fs::read(path).unwrap());
        }
    }
}

#[test]
fn splitter() {
    replay("splitter");
}

#[test]
fn rules() {
    replay("rules");
}

#[test]
fn fence() {
    replay("fence");
}

#[test]
fn sse() {
    replay("sse");
}

#[test]
fn transcript() {
    replay("transcript");
}

#[test]
fn every_folder_of_inputs_belongs_to_a_target_that_is_replayed() {
    let mut replayed = ["splitter", "rules", "fence", "sse", "transcript"];
    replayed.sort_unstable();
    let mut targets = TARGETS.map(|target| target.name);
    targets.sort_unstable();
    assert_eq!(targets, replayed);
    assert_eq!(names(&folder("corpus")), targets);
    for name in names(&folder("crashes")) {
        assert!(targets.contains(&name.as_str()), "crashes/{name}");
    }
}

#[test]
fn the_corpus_stays_small() {
    let files = TARGETS.iter().flat_map(|target| {
        let folder = folder("corpus").join(target.name);
        names(&folder)
            .into_iter()
            .map(move |name| folder.join(name))
    });
    let bytes: u64 = files.map(|file| fs::metadata(file).unwrap().len()).sum();
    assert!(bytes < 200_000, "{bytes} bytes");
}
