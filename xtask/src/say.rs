//! What the crate prints: results to standard output, everything else to standard error.

use std::io::{self, Write};

/// A line of the result, which somebody may pipe on.
pub(crate) fn out(line: &str) {
    // A closed pipe (`cargo xtask tidy | head`) is no reason to fail: the exit code still tells.
    drop(writeln!(io::stdout(), "{line}"));
}

/// A line about the run itself.
pub(crate) fn note(line: &str) {
    drop(writeln!(io::stderr(), "{line}"));
}
