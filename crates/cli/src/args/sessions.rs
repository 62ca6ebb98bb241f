//! The command line of `gaffer sessions` and `gaffer export`.

use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  gaffer sessions                          this folder's sessions, the newest first
  gaffer sessions --all --json             those of all folders, for programs
  gaffer sessions search \"last line\"       who said it, and where
  gaffer sessions rename 3f2b till         then: gaffer -p --resume till \"…\"
  gaffer sessions delete 3f2b 9c01         with its transcripts and its scratchpad
  gaffer sessions clean --dry-run          what is too old or too much, removing nothing

A session is named by its id, a beginning that is its alone, or its name. What is in use, and what
has worktrees that were not merged, is never deleted. See docs/sessions.md.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SessionsCommand>,

    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, the newest first. The same as without a command.
    List(ListArgs),
    /// Look for words in names, titles and what was said.
    Search(SearchArgs),
    /// Give a session a name.
    Rename(RenameArgs),
    /// Delete sessions with all that belongs to them.
    Delete(DeleteArgs),
    /// Remove what is too old or too much now; gaffer does it by itself once a day.
    Clean(CleanArgs),
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ListArgs {
    /// The sessions of all folders.
    #[arg(long, conflicts_with = "cwd")]
    pub(crate) all: bool,

    /// The folder whose sessions are meant. Default: the current one.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,

    /// Print JSON: a list with an object for each session.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SearchArgs {
    /// What to look for, in capitals or small letters.
    pub(crate) text: String,

    /// Look through the calls and results of tools too.
    #[arg(long)]
    pub(crate) tools: bool,

    /// So many places are shown of each session.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_count: u32,

    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RenameArgs {
    /// The session: its id, a beginning of it, or its name.
    pub(crate) session: String,

    /// What to call it: 1 to 64 characters.
    pub(crate) name: String,

    /// The folder whose sessions are meant first. Default: the current one.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    /// The sessions: their ids, beginnings of them, or their names.
    #[arg(required = true, value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,

    /// Do not ask.
    #[arg(short = 'y', long)]
    pub(crate) yes: bool,

    /// The folder whose sessions are meant first. Default: the current one.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CleanArgs {
    /// Say what would be removed, and remove nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// A settings file that goes over the user's own.
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  gaffer export -o crew.html        the newest session of this folder as one page
  gaffer export 3f2b > crew.md      a session as Markdown
  gaffer export till --format html | upload

The page needs nothing else: no network, no scripts. It holds all that the agents read and wrote,
which may be secret: look before you share it.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArgs {
    /// The session: its id, a beginning of it, or its name. Default: the newest of this folder.
    pub(crate) session: Option<String>,

    /// What to write. Default: by the name of the file, else Markdown.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Paper>,

    /// The file to write, which is replaced if it is there. Default: standard output.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The folder whose sessions are meant first. Default: the current one.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,

    /// A settings file that goes over the others; its prices count.
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Paper {
    Html,
    Md,
}
