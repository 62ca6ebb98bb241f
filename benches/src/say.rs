//! What the crate prints: figures to standard output, everything else to standard error.

use std::io::{self, Write};

/// A line of the result.
pub(crate) fn out(line: &str) {
    // A closed pipe is no reason to fail: the exit code still tells.
    drop(writeln!(io::stdout(), "{line}"));
}

/// A line about the run itself.
pub(crate) fn note(line: &str) {
    drop(writeln!(io::stderr(), "{line}"));
}
