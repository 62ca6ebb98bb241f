//! What the tests need from the system: a table, a look at the search path, and apt-get where it may.

use std::env;

use crate::process::Invocation;
use crate::say;

struct Need {
    program: &'static str,
    /// The Debian packages that bring it.
    packages: &'static [&'static str],
    why: &'static str,
}

const NEEDS: [Need; 7] = [
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
    if is_in_path("apt-get") && is_root() {
        install(&absent)?;
    }
    let absent = missing(needs, is_in_path);
    for need in &absent {
        say::note(&advice(need));
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

fn advice(need: &Need) -> String {
    format!(
        "missing: {} ({}); get it with: sudo apt-get install -y --no-install-recommends {}",
        need.program,
        need.why,
        need.packages.join(" ")
    )
}

fn install(absent: &[&Need]) -> Result<(), String> {
    for invocation in installation(absent) {
        say::note(&invocation.to_string());
        invocation.run()?;
    }
    Ok(())
}

/// One update and one installation for all that is missing.
fn installation(absent: &[&Need]) -> [Invocation; 2] {
    // Without this some packages stop to ask, and nobody may be there to answer.
    let silent = "DEBIAN_FRONTEND=noninteractive";
    let packages: Vec<String> = absent
        .iter()
        .flat_map(|need| need.packages)
        .map(|&package| package.to_owned())
        .collect();
    let arguments = [
        silent,
        "apt-get",
        "install",
        "-y",
        "--no-install-recommends",
    ];
    [
        Invocation::new("env", &[silent, "apt-get", "update"]),
        Invocation::new("env", &arguments).and(&packages),
    ]
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
        let lines: Vec<String> = installation(&absent)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            lines,
            [
                "env DEBIAN_FRONTEND=noninteractive apt-get update",
                "env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
                 git gcc libc6-dev",
            ]
        );
    }

    #[test]
    fn advice_is_one_line_with_program_reason_and_remedy() {
        for need in NEEDS.iter().chain(&FUZZING) {
            let line = advice(need);
            assert_eq!(line.lines().count(), 1);
            assert!(line.contains(need.program) && line.contains(need.why));
            assert!(line.ends_with(&need.packages.join(" ")));
        }
    }

    #[test]
    fn the_path_is_searched_for_files() {
        assert!(is_in_path("sh"));
        assert!(!is_in_path("no-such-program"));
    }
}
