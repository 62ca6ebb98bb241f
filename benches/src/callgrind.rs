//! Counts the instructions of a part of this program under valgrind's callgrind. Counts are the
//! same on a busy machine and on a slow one, so they can be held to narrow goals.

use crate::process::{command, own};
use anyhow::{Context, ensure};
use std::process::{Command, Stdio};

/// How many instructions a part runs from its start to its end.
pub(crate) fn instructions(words: &[&str]) -> anyhow::Result<u64> {
    instructions_of(&own(words)?)
}

/// How many instructions a program runs, without what it starts.
pub(crate) fn instructions_of(program: &Command) -> anyhow::Result<u64> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("callgrind.out");
    let mut valgrind = command("valgrind");
    valgrind
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program.get_program())
        .args(program.get_args())
        .stdin(Stdio::null());
    if let Some(folder) = program.get_current_dir() {
        // Only what is given an own folder is given an own environment as well. Valgrind itself
        // has to be found and to know where its temporary files go.
        valgrind.current_dir(folder).env_clear();
        for name in ["PATH", "TMPDIR"] {
            valgrind.envs(std::env::var_os(name).map(|value| (name, value)));
        }
    }
    for (name, value) in program.get_envs() {
        valgrind.envs(value.map(|value| (name, value)));
    }
    let ran = valgrind.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => anyhow::anyhow!("valgrind is not installed"),
        _ => error.into(),
    })?;
    let said = String::from_utf8_lossy(&ran.stderr);
    ensure!(ran.status.success(), "{program:?} failed: {said}");
    let profile = std::fs::read_to_string(&out).context("callgrind wrote nothing")?;
    total(&profile).context("callgrind wrote no totals")
}

fn total(profile: &str) -> Option<u64> {
    let line = profile
        .lines()
        .find_map(|line| line.strip_prefix("totals:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found() {
        let profile = "version: 1\nevents: Ir\nfn=(1)\n5 7\n\ntotals: 1234\n";
        assert_eq!(total(profile), Some(1234));
        assert_eq!(total("version: 1\n"), None);
    }
}
