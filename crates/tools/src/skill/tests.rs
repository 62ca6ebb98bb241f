//! Skills as they lie on disk.

use super::*;
use crate::testing::call;
use serde_json::json;
use std::path::Path;

fn write(folder: &Path, text: &str) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
}

fn skill(about: &str, extra: &str) -> String {
    format!("---\ndescription: {about}\n{extra}\n---\n\nDo $ARGUMENTS.\n")
}

fn around() -> Around {
    Around {
        project: "/p".into(),
        session: "s".into(),
    }
}

fn names(skills: &Skills) -> Vec<(&str, &str)> {
    let pair = |skill| -> (&str, &str) {
        let skill: &Skill = skill;
        (&skill.name, &skill.about)
    };
    skills.iter().map(pair).collect()
}

#[test]
fn the_users_own_come_first_and_then_the_nearest() {
    let temp = tempfile::tempdir().unwrap();
    let home = temp.path().join("home");
    let repo = temp.path().join("repo");
    let cwd = repo.join("a/b");
    std::fs::create_dir_all(&cwd).unwrap();
    std::fs::create_dir_all(repo.join(".git")).unwrap();
    let put = |folder: &Path, holder: &str, name: &str, about: &str| {
        write(
            &folder.join(holder).join("skills").join(name),
            &skill(about, ""),
        );
    };
    put(&home, ".agents", "one", "home agents");
    put(&cwd, ".gaffer", "one", "cwd gaffer");
    put(&cwd, ".claude", "two", "cwd claude");
    put(&cwd, ".gaffer", "two", "cwd gaffer");
    put(&repo, ".gaffer", "two", "repo gaffer");
    put(&repo, ".agents", "three", "repo agents");
    put(&repo.join("a"), ".claude", "three", "a claude");
    put(temp.path(), ".gaffer", "four", "outside");
    put(&cwd, ".gaffer", "synced", "another program's");
    let places = folders(&cwd, Some(&home));
    assert_eq!(places.len(), 12);
    assert_eq!(places[0], home.join(".gaffer/skills"));
    assert_eq!(
        names(&find(&places)),
        [
            ("one", "home agents"),
            ("three", "a claude"),
            ("two", "cwd gaffer")
        ]
    );
    // Outside of a repository there is no way up, and home is not looked at twice.
    let alone = folders(temp.path(), Some(temp.path()));
    assert_eq!(names(&find(&alone)), [("four", "outside")]);
    assert_eq!(alone.len(), 3);
}

#[test]
fn a_broken_skill_is_named_and_the_others_stay() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path();
    write(&root.join("good"), &skill("works", ""));
    write(
        &root.join("first-line"),
        "---\nlicense: x\n---\n\n# Title\n\nText",
    );
    write(&root.join("broken"), "---\ndescription: [\n---\n");
    write(&root.join("Bad Name"), &skill("x", ""));
    write(&root.join("bare"), "no frontmatter");
    write(&root.join("silent"), "---\nname: silent\n---\n");
    write(&root.join("large"), &skill("x", &"#".repeat(300_000)));
    write(
        &root.join("type"),
        &skill("x", "disable-model-invocation: 7"),
    );
    std::fs::create_dir_all(root.join("folder/SKILL.md")).unwrap();
    std::fs::create_dir_all(root.join("empty")).unwrap();
    std::fs::write(root.join("file"), "x").unwrap();
    std::fs::create_dir_all(root.join("linked")).unwrap();
    std::os::unix::fs::symlink("/nowhere/at/all", root.join("linked/SKILL.md")).unwrap();
    std::os::unix::fs::symlink(root.join("good"), root.join("same")).unwrap();
    let found = find(&[root.to_owned(), root.join("none")]);
    assert_eq!(
        names(&found),
        [
            ("first-line", "Title"),
            ("good", "works"),
            ("same", "works")
        ]
    );
    for name in [
        "Bad Name", "bare", "broken", "folder", "large", "linked", "silent", "type",
    ] {
        let file = root.join(name).join("SKILL.md").display().to_string();
        let problem = found.problems.iter().find(|told| told.starts_with(&file));
        assert!(problem.is_some(), "{name}: {:?}", found.problems);
    }
    assert_eq!(found.problems.len(), 8);
}

#[tokio::test]
async fn a_skill_is_read_when_it_is_called() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path();
    write(&root.join("do-it"), &skill("does it", "arguments: what"));
    write(
        &root.join("commands"),
        "---\ndescription: x\n---\nNow: !`git status`\n$what",
    );
    write(
        &root.join("mine"),
        &skill("mine", "disable-model-invocation: true"),
    );
    let skills = Arc::new(find(&[root.to_owned()]));
    assert!(!skills.get("mine").unwrap().is_for_models());
    assert!(skills.get("mine").unwrap().is_for_people());
    let tool = tool(skills, around()).unwrap();
    let description = &tool.spec().description;
    assert!(
        description.ends_with("\n- commands: x\n- do-it: does it"),
        "{description}"
    );

    let read =
        async |name: &str, args: &str| call(&*tool, json!({"skill": name, "args": args})).await;
    let folder = root.join("do-it");
    let folder = folder.display();
    let want = format!("[Skill do-it; its files are in {folder}.]\n\nDo the thing.");
    assert_eq!(read("/do-it", "the thing").await, (want, false));
    let (text, is_error) = read("commands", "").await;
    assert!(!is_error && text.contains("were not run"), "{text}");
    assert!(text.ends_with("Now: !`git status`\n$what"), "{text}");

    let (text, is_error) = read("mine", "").await;
    assert!(is_error && text.contains("Only the user"), "{text}");
    let (text, is_error) = read("doit", "").await;
    assert!(
        is_error && text.contains("`doit`. The nearest is do-it."),
        "{text}"
    );
    assert!(read("../do-it", "").await.1);
    assert!(call(&*tool, json!({"args": "x"})).await.1);

    // Changes count at once, and a skill that is gone is an error.
    write(
        &root.join("do-it"),
        "---\narguments: [what]\n---\nNow do $what!",
    );
    assert!(
        read("do-it", "'this one'")
            .await
            .0
            .ends_with("Now do this one!")
    );
    std::fs::remove_file(root.join("do-it/SKILL.md")).unwrap();
    let (text, is_error) = read("do-it", "").await;
    assert!(is_error && text.contains("cannot be read"), "{text}");
}

#[test]
fn the_list_of_skills_has_bounds() {
    let mut skills = Skills::default();
    assert!(tool(Arc::new(skills.clone()), around()).is_none());
    for n in 0..1500 {
        let name = format!("skill-{n:04}");
        let skill = Skill {
            name: name.clone(),
            about: "é".repeat(2000),
            front: Front::default(),
            folder: "/x".into(),
        };
        skills.all.insert(name, skill);
    }
    let list = describe(&skills).unwrap();
    assert!(list.len() <= LARGEST_LIST, "{}", list.len());
    let entries: Vec<&str> = list.lines().collect();
    assert_eq!(
        entries[1].chars().count(),
        "- skill-0000: ".len() + LONGEST_ABOUT
    );
    assert!(entries[10].ends_with("- skill-0009"));
    assert!(list.ends_with(" more have no room here.]"));
}
