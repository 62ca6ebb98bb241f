//! Tests of retention: ages, sizes, what is never removed, and the day between two cleanings.

use super::*;
use crate::about::About;
use crate::session::SessionFolder;
use gaffer_protocol::{AgentId, SessionId};
use std::time::SystemTime;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

struct World {
    temp: tempfile::TempDir,
    home: Home,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().to_owned());
        Self { temp, home }
    }

    fn session(&self, id: &str, days: u64, name: Option<&str>) -> SessionFolder {
        let session = SessionId::parse(id).unwrap();
        let folder = self.home.create_session(Path::new("/a"), &session).unwrap();
        let main = AgentId::parse("agent-00000001").unwrap();
        folder
            .set_about(&About {
                session,
                main,
                mode: "normal".into(),
                cwd: "/a".into(),
                created: Timestamp(0),
                name: name.map(str::to_owned),
                title: String::new(),
                rights: crate::Rights::default(),
                forked_from: None,
                budget: gaffer_protocol::Budget::default(),
                account: None,
            })
            .unwrap();
        std::fs::write(folder.transcript(main), vec![b' '; 50_000]).unwrap();
        let at = Duration::from_millis(NOW.0 - days * DAY);
        let file = File::options().write(true).open(folder.transcript(main));
        let file = file.unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + at).unwrap();
        folder
    }

    fn left(&self) -> Vec<String> {
        let mut ids: Vec<String> = self
            .home
            .list(None)
            .iter()
            .map(|it| it.found.id.to_string())
            .collect();
        ids.sort();
        ids
    }

    fn clean(&self, rules: &Rules, spared: Option<&Path>) -> Cleaned {
        self.home.clean(rules, NOW, spared, &|| true, &|_| {})
    }
}

fn rules(max_size: Option<u64>) -> Rules {
    Rules {
        period: Duration::from_millis(30 * DAY),
        max_size,
    }
}

#[test]
fn the_old_go_and_names_keep_longer() {
    let world = World::new();
    world.session("young", 29, None);
    world.session("old", 31, None);
    world.session("named", 119, Some("friday"));
    world.session("forgotten", 121, Some("monday"));
    let would = world.home.would_clean(&rules(None), NOW, None);
    assert_eq!(would.removed.len(), 2);
    assert_eq!(world.left().len(), 4, "a look removes nothing");
    let done = world.clean(&rules(None), None);
    let ids: Vec<&str> = done
        .removed
        .iter()
        .map(|(it, _)| it.found.id.as_str())
        .collect();
    assert_eq!(ids, ["forgotten", "old"], "the oldest first");
    assert_eq!(world.left(), ["named", "young"]);
}

#[test]
fn what_is_in_use_holds_work_or_is_our_own_stays() {
    let world = World::new();
    let used = world.session("used", 90, None);
    let trees = world.session("trees", 90, None);
    let own = world.session("own", 90, None);
    world.session("old", 90, None);
    let owned = used.own(NOW).unwrap();
    std::fs::create_dir_all(trees.path().join("worktrees/fix")).unwrap();
    let done = world.clean(&rules(Some(0)), Some(own.path()));
    assert!(done.failed.is_empty());
    assert_eq!(world.left(), ["own", "trees", "used"]);
    drop(owned);
}

#[test]
fn over_the_size_the_oldest_without_a_name_go_until_it_fits() {
    let world = World::new();
    for (id, days) in [("a", 5), ("b", 4), ("c", 3), ("d", 2)] {
        world.session(id, days, (id == "b").then_some("kept"));
    }
    world.session("e", 0, None);
    let one = world.home.list(None)[0].size;
    let done = world.clean(&rules(Some(3 * one)), None);
    assert!(done.removed.iter().all(|(_, why)| *why == Why::Size));
    assert_eq!(done.bytes(), 2 * one);
    assert_eq!(world.left(), ["b", "d", "e"]);
    assert!(world.clean(&rules(Some(3 * one)), None).removed.is_empty());
    world.clean(&rules(Some(1)), None);
    assert_eq!(
        world.left(),
        ["b", "e"],
        "one has a name, one is of this hour"
    );
}

#[test]
fn a_cleaning_without_time_removes_one_and_says_so() {
    let world = World::new();
    world.session("a", 50, None);
    world.session("b", 40, None);
    let beside = std::cell::RefCell::new(Vec::new());
    let done = world
        .home
        .clean(&rules(None), NOW, None, &|| false, &|found| {
            beside.borrow_mut().push(found.id.to_string());
        });
    assert!(done.is_cut);
    assert_eq!(beside.into_inner(), ["a"]);
    assert_eq!(world.left(), ["b"]);
}

#[test]
fn cleaning_is_due_once_a_day_and_for_one_process() {
    let world = World::new();
    let due = world.home.due(NOW).unwrap();
    assert!(world.home.due(NOW).is_none(), "somebody is at it");
    drop(due);
    let due = world.home.due(NOW).unwrap();
    due.done(NOW);
    assert!(world.home.due(Timestamp(NOW.0 + DAY - 1)).is_none());
    assert!(world.home.due(Timestamp(NOW.0 + DAY)).is_some());
    assert!(
        world.home.due(Timestamp(NOW.0 - 1)).is_some(),
        "a clock that was wrong"
    );
    std::fs::write(world.temp.path().join("cleaned"), "no time").unwrap();
    assert!(world.home.due(NOW).is_some());
}
