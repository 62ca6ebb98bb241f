//! The command line of `gaffer worktree integrate`.

use super::RepositoryArgs;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct IntegrateArgs {
    /// The workers' ids, beginnings that are theirs alone, names, or branches. Those that others
    /// depend on are merged first, otherwise the order is yours.
    #[arg(required = true, value_name = "TASK")]
    pub(crate) tasks: Vec<String>,

    /// `new` for a new branch from where you are, `current` for the branch that is checked out
    /// here, or a branch's name.
    #[arg(long, value_name = "BRANCH", default_value = "new")]
    pub(crate) into: String,

    /// A shell command that must succeed after each merge. Default: the setting `integrate.test`.
    #[arg(long, value_name = "CMD")]
    pub(crate) test: Option<String>,

    /// Try all of it, and move nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// A settings file that goes over the others.
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) repository: RepositoryArgs,
}
