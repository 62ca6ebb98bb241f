//! Starting other programs: every process of this crate begins in `Invocation::command`.
#![expect(
    clippy::disallowed_methods,
    reason = "a developer's tool starts cargo, git and apt-get by itself; this is its one place"
)]

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The folder of the workspace, in which every process runs.
pub(crate) fn root() -> PathBuf {
    // The variable of this run comes first: with a target folder shared by several checkouts the
    // path known when this was compiled can be that of another one.
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    own.parent().map_or_else(|| own.clone(), Path::to_path_buf)
}

/// A program with its arguments; displayed as the line to type in a shell.
#[derive(Debug)]
pub(crate) struct Invocation {
    program: OsString,
    shown_as: String,
    arguments: Vec<String>,
}

impl Invocation {
    pub(crate) fn new(program: &str, arguments: &[&str]) -> Self {
        Self {
            program: program.into(),
            shown_as: program.to_owned(),
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
        }
    }

    /// The cargo that runs us, not whichever is first in the search path.
    pub(crate) fn cargo(arguments: &[&str]) -> Self {
        Self {
            program: std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into()),
            ..Self::new("cargo", arguments)
        }
    }

    pub(crate) fn and(mut self, more: &[String]) -> Self {
        self.arguments.extend_from_slice(more);
        self
    }

    /// Runs it with our own input and output.
    pub(crate) fn run(&self) -> Result<(), String> {
        let status = self.command().status();
        self.judge(status.map_err(|error| self.cannot_start(&error))?)
    }

    /// Runs it and returns its standard output; its standard error stays ours.
    pub(crate) fn output(&self) -> Result<Vec<u8>, String> {
        let output = self.command().stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| self.cannot_start(&error))?;
        self.judge(output.status)?;
        Ok(output.stdout)
    }

    /// Whether it can be started and succeeds; prints nothing.
    pub(crate) fn works(&self) -> bool {
        let output = self.command().stdin(Stdio::null()).output();
        output.is_ok_and(|output| output.status.success())
    }

    fn judge(&self, status: ExitStatus) -> Result<(), String> {
        if status.success() {
            return Ok(());
        }
        Err(format!("`{self}` failed: {status}"))
    }

    fn cannot_start(&self, error: &std::io::Error) -> String {
        format!("cannot start `{self}`: {error}")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(root());
        // `cargo run` describes xtask in these. Build scripts that watch them (that of ring, for
        // one) would be run anew with each change between `cargo xtask` and plain cargo.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        command
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.shown_as)?;
        for word in &self.arguments {
            let plain = |c: char| c.is_alphanumeric() || "-_=./:,+@%".contains(c);
            if !word.is_empty() && word.chars().all(plain) {
                write!(f, " {word}")?;
            } else {
                write!(f, " '{}'", word.replace('\'', r"'\''"))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_shown_as_a_line_for_the_shell() {
        let names = ["it's here".to_owned(), String::new(), "a::b".to_owned()];
        let shown = Invocation::cargo(&["test", "--locked"])
            .and(&names)
            .to_string();
        assert_eq!(shown, r"cargo test --locked 'it'\''s here' '' a::b");
    }

    #[test]
    fn tells_success_failure_and_absence_apart() {
        let echo = Invocation::new("sh", &["-c", "echo out"]).output();
        assert_eq!(echo.as_deref(), Ok(&b"out\n"[..]));
        let failed = Invocation::new("sh", &["-c", "exit 3"]).run();
        assert_eq!(
            failed,
            Err("`sh -c 'exit 3'` failed: exit status: 3".to_owned())
        );
        let absent = Invocation::new("no-such-program", &[]);
        assert!(!absent.works());
        assert!(
            absent
                .run()
                .is_err_and(|why| why.starts_with("cannot start"))
        );
    }

    #[test]
    fn children_do_not_see_the_package_variables_of_xtask() {
        let seen = Invocation::new("sh", &["-c", "echo \"<$CARGO_PKG_NAME>\""]).output();
        assert_eq!(seen.as_deref(), Ok(&b"<>\n"[..]));
    }
}
