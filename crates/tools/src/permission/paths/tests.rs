//! Patterns of paths and protected paths, as tables.

use super::*;
use proptest::prelude::*;

fn fits(pattern: &str, path: &str) -> bool {
    let pattern = PathPattern::parse(pattern).unwrap();
    let start = match pattern.start {
        Start::Root => "/",
        Start::Home => "/h",
        Start::Settings => "/p",
        Start::Folder => "/p/cwd",
    };
    pattern.matches(Path::new(path), [Path::new(start)], false)
}

#[test]
fn patterns_start_at_the_root_at_home_at_the_settings_or_in_the_folder() {
    let rows = [
        ("//etc/passwd", "/etc/passwd", true),
        ("//etc", "/etc/passwd", true),
        ("//etc/passwd", "/p/cwd/etc/passwd", false),
        ("//**/.env", "/a/b/.env", true),
        ("//", "/a", true),
        ("~/.ssh/**", "/h/.ssh/id", true),
        ("~/.ssh/**", "/h/.sshx", false),
        ("~", "/h/x", true),
        ("~/", "/h/x", true),
        ("~/", "/p/x", false),
        ("/src/**", "/p/src/a/b.rs", true),
        ("/src/**", "/p/cwd/src/a.rs", false),
        ("/src/*.rs", "/p/src/a.rs", true),
        ("/src/*.rs", "/p/src/a/b.rs", false),
        ("*.env", "/p/cwd/a.env", true),
        ("*.env", "/p/cwd/a/b/c.env", true),
        ("*.env", "/p/a.env", false),
        (".env", "/p/cwd/x/.env", true),
        ("src/*.rs", "/p/cwd/src/a.rs", true),
        ("src/*.rs", "/p/cwd/x/src/a.rs", false),
        ("src", "/p/cwd/x/src/a.rs", true),
        ("./src", "/p/cwd/src/a.rs", true),
        ("./src", "/p/cwd/x/src/a.rs", false),
        ("./.env", "/p/cwd/.env", true),
        ("./.env", "/p/cwd/x/.env", false),
        ("../lib/**", "/p/lib/a", true),
        ("../lib/**", "/p/cwd/lib/a", false),
        ("../../x", "/x", true),
        ("./../lib", "/p/lib", true),
        ("..", "/p/x", true),
        ("**", "/p/cwd/a/b", true),
        ("**", "/p/b", false),
        ("**/test/**", "/p/cwd/a/test/b", true),
        ("build/", "/p/cwd/build/x", true),
        ("build/", "/p/cwd/build", false),
        ("#x", "/p/cwd/#x", true),
        ("a{b,c}", "/p/cwd/ac", true),
        (".", "/p/cwd/x", true),
        ("a b", "/p/cwd/a b", true),
    ];
    for (pattern, path, want) in rows {
        assert_eq!(fits(pattern, path), want, "{pattern} {path}");
    }
}

#[test]
fn paths_are_put_in_order_by_their_text() {
    let rows = [
        ("a", "/p/a"),
        ("../a", "/a"),
        ("../../../a", "/a"),
        ("/x/./y//z/..", "/x/y"),
        ("", "/p"),
        ("a/../../p/b", "/p/b"),
    ];
    for (path, want) in rows {
        assert_eq!(absolute(Path::new(path), Path::new("/p")), Path::new(want));
    }
}

#[test]
fn protected_paths() {
    let roots = ["/p", "/h/.gaffer/s/pad", "/h/.claude/worktrees/w"].map(PathBuf::from);
    let rows = [
        ("/p/.git/config", Some(".git")),
        ("/p/.git", Some(".git")),
        ("/p/.GIT/config", Some(".git")),
        ("/p/sub/.git/hooks/x", Some(".git")),
        ("/p/.gitignore", None),
        ("/p/.github/workflows/ci.yml", None),
        ("/h/.config/git/config", Some(".config/git")),
        ("/h/.config/other", None),
        ("/p/git/config", None),
        ("/p/.vscode/tasks.json", Some(".vscode")),
        ("/p/.husky/pre-commit", Some(".husky")),
        ("/p/.cargo/config.toml", Some(".cargo")),
        ("/p/a/.npmrc", Some(".npmrc")),
        ("/h/.bashrc", Some(".bashrc")),
        ("/p/.mcp.json", Some(".mcp.json")),
        (
            "/p/.pre-commit-config.yaml",
            Some(".pre-commit-config.yaml"),
        ),
        ("/p/.claude/settings.json", Some(".claude")),
        ("/p/.claude/worktrees/x/a.rs", None),
        ("/p/.claude/worktrees/x/.git", Some(".git")),
        ("/p/.claude/worktrees/x/.claude/y", Some(".claude")),
        ("/p/.gaffer/settings.json", Some(".gaffer")),
        ("/p/.gaffer/agent-memory/w/MEMORY.md", None),
        ("/p/.gaffer/agent-memory-local/w/MEMORY.md", None),
        ("/h/.gaffer/settings.json", Some(".gaffer")),
        ("/h/.gaffer/s/pad/notes.md", None),
        ("/h/.gaffer/s/pad/.gaffer/x", Some(".gaffer")),
        ("/h/.claude/worktrees/w/src/a.rs", None),
        ("/p/src/main.rs", None),
        ("/p/.env", None),
    ];
    for (path, want) in rows {
        assert_eq!(protected(Path::new(path), &roots), want, "{path}");
    }
}

proptest! {
    #[test]
    fn a_pattern_for_one_path_fits_that_path_and_no_other(
        path in "[a*?\\[\\]{}!#\\\\ ]{0,5}a(/[a*.#]{0,3}a){0,2}", other in "[a*?]{1,5}(/[a*.]{1,3}){0,2}",
    ) {
        let path = absolute(Path::new(&path), Path::new("/p"));
        let other = absolute(Path::new(&other), Path::new("/p"));
        let text = PathPattern::exactly(&path, Path::new("/p")).unwrap();
        let pattern = PathPattern::parse(&text).unwrap();
        prop_assert!(pattern.matches(&path, [Path::new("/p")], false), "{text}");
        let fits = pattern.matches(&other, [Path::new("/p")], false);
        prop_assert_eq!(fits, other.starts_with(&path), "{}", text);
        let text = PathPattern::exactly(&path, Path::new("/q")).unwrap();
        let pattern = PathPattern::parse(&text).unwrap();
        prop_assert!(pattern.matches(&path, [Path::new("/")], false), "{text}");
    }
}
