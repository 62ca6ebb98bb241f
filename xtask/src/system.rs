//! What the tests need from the system: a table, a look at the search path, and the system's own
//! package manager where it may.

use std::env;

use crate::process::Invocation;
use crate::say;

struct Need {
    program: &'static str,
    /// The packages that bring it, by Debian's names.
    packages: &'static [&'static str],
    why: &'static str,
}

/// A program that installs others.
#[derive(Clone, Copy)]
struct Manager {
    program: &'static str,
    /// Before the first package of a day.
    update: Option<&'static [&'static str]>,
    install: &'static [&'static str],
    /// What Debian calls otherwise.
    names: &'static [(&'static str, &'static str)],
    /// Whether it works for the administrator or, on the contrary, for everybody else.
    as_root: bool,
}

const MANAGERS: [Manager; 4] = [
    Manager {
        program: "apt-get",
        update: Some(&["update"]),
        install: &["install", "-y", "--no-install-recommends"],
        names: &[],
        as_root: true,
    },
    Manager {
        program: "dnf",
        update: None,
        install: &["install", "-y", "--setopt=install_weak_deps=False"],
        names: &[
            ("g++", "gcc-c++"),
            ("libc6-dev", "glibc-devel"),
            ("python3-minimal", "python3"),
        ],
        as_root: true,
    },
    Manager {
        program: "apk",
        update: None,
        install: &["add", "--no-cache"],
        names: &[("libc6-dev", "musl-dev"), ("python3-minimal", "python3")],
        as_root: true,
    },
    Manager {
        program: "brew",
        update: None,
        install: &["install"],
        names: &[("libc6-dev", "gcc"), ("python3-minimal", "python3")],
        as_root: false,
    },
];

impl Manager {
    fn packages(self, needs: &[&Need]) -> Vec<String> {
        let own = |package: &&'static str| {
            let other = self.names.iter().find(|(debian, _)| debian == package);
            other.map_or(*package, |(_, own)| own).to_owned()
        };
        let all = needs.iter().flat_map(|need| need.packages);
        let mut all: Vec<String> = all.map(own).collect();
        let mut known = std::collections::HashSet::new();
        all.retain(|package| known.insert(package.clone()));
        all
    }
}

const NEEDS: [Need; 8] = [
    Need {
        program: "git",
        packages: &["git"],
        why: "tests make repositories and work trees, and tidy asks it for the list of files",
    },
    Need {
        program: "sh",
        packages: &["dash"],
        why: "commands of agents and of tests run in it",
    },
    Need {
        program: "cc",
        // gcc only recommends the headers, and we install without recommendations.
        packages: &["gcc", "libc6-dev"],
        why: "rustc links with it, and C sources of dependencies are compiled with it",
    },
    Need {
        program: "bash",
        packages: &["bash"],
        why: "agents' commands run in it, and the sandbox is tried with its sockets",
    },
    Need {
        program: "setsid",
        packages: &["util-linux"],
        why: "tests start processes that leave their session or give up rights",
    },
    Need {
        program: "python3",
        packages: &["python3-minimal"],
        why: "the sandbox is tried with sockets that a shell cannot make",
    },
    Need {
        program: "bwrap",
        packages: &["bubblewrap"],
        why: "the sandbox falls back to it where namespaces are refused",
    },
    Need {
        program: "tmux",
        packages: &["tmux"],
        why: "the terminal UI is tried in it, with real keys",
    },
];

/// What fuzzing needs beyond that.
const FUZZING: [Need; 1] = [Need {
    program: "c++",
    packages: &["g++"],
    why: "libFuzzer is compiled with it",
}];

/// Makes sure that everything for the tests is there, by installing it where that is ours to do.
pub(crate) fn check() -> Result<(), String> {
    provide(&NEEDS)
}

/// The same for fuzzing.
pub(crate) fn check_for_fuzzing() -> Result<(), String> {
    provide(&FUZZING)
}

fn provide(needs: &[Need]) -> Result<(), String> {
    let absent = missing(needs, is_in_path);
    if absent.is_empty() {
        return Ok(());
    }
    let there = MANAGERS.into_iter().find(|it| is_in_path(it.program));
    if let Some(manager) = there.filter(|it| it.as_root == is_root()) {
        install(manager, &absent)?;
    }
    let absent = missing(needs, is_in_path);
    for need in &absent {
        say::note(&advice(need, there.unwrap_or(MANAGERS[0])));
    }
    let names: Vec<&str> = absent.iter().map(|need| need.program).collect();
    match names.as_slice() {
        [] => Ok(()),
        [name] => Err(format!("a program is missing: {name}")),
        names => Err(format!("programs are missing: {}", names.join(", "))),
    }
}

fn missing(needs: &[Need], is_there: impl Fn(&str) -> bool) -> Vec<&Need> {
    needs
        .iter()
        .filter(|need| !is_there(need.program))
        .collect()
}

fn advice(need: &Need, manager: Manager) -> String {
    let sudo = if manager.as_root { "sudo " } else { "" };
    format!(
        "missing: {} ({}); get it with: {sudo}{} {} {}",
        need.program,
        need.why,
        manager.program,
        manager.install.join(" "),
        manager.packages(&[need]).join(" ")
    )
}

fn install(manager: Manager, absent: &[&Need]) -> Result<(), String> {
    for invocation in installation(manager, absent) {
        say::note(&invocation.to_string());
        invocation.run()?;
    }
    Ok(())
}

/// One update, where one is needed, and one installation for all that is missing.
fn installation(manager: Manager, absent: &[&Need]) -> Vec<Invocation> {
    // Without this some packages stop to ask, and nobody may be there to answer.
    let silent = ["DEBIAN_FRONTEND=noninteractive", manager.program];
    let call = |words: &[&str]| Invocation::new("env", &[&silent, words].concat());
    let update = manager.update.map(call);
    let install = call(manager.install).and(&manager.packages(absent));
    update.into_iter().chain([install]).collect()
}

fn is_in_path(program: &str) -> bool {
    let file = format!("{program}{}", env::consts::EXE_SUFFIX);
    env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(&file).is_file()))
}

fn is_root() -> bool {
    Invocation::new("id", &["-u"])
        .output()
        .is_ok_and(|id| id.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_absent_is_installed_with_one_update() {
        let absent = missing(&NEEDS, |program| !matches!(program, "git" | "cc"));
        let lines = |manager: usize| -> Vec<String> {
            let all = installation(MANAGERS[manager], &absent);
            all.iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            lines(0),
            [
                "env DEBIAN_FRONTEND=noninteractive apt-get update",
                "env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
                 git gcc libc6-dev",
            ]
        );
        assert_eq!(
            lines(2),
            ["env DEBIAN_FRONTEND=noninteractive apk add --no-cache git gcc musl-dev"]
        );
        assert_eq!(
            lines(3),
            ["env DEBIAN_FRONTEND=noninteractive brew install git gcc"]
        );
    }

    #[test]
    fn advice_is_one_line_with_program_reason_and_remedy() {
        for need in NEEDS.iter().chain(&FUZZING) {
            for manager in MANAGERS {
                let line = advice(need, manager);
                assert_eq!(line.lines().count(), 1);
                assert!(line.contains(need.program) && line.contains(need.why));
                assert!(line.ends_with(&manager.packages(&[need]).join(" ")));
            }
        }
    }

    #[test]
    fn the_path_is_searched_for_files() {
        assert!(is_in_path("sh"));
        assert!(!is_in_path("no-such-program"));
    }
}
