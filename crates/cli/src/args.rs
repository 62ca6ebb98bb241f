//! The command line.

pub(crate) mod budget;
pub(crate) mod integrate;
pub(crate) mod sessions;

use clap::{Parser, Subcommand, ValueEnum};
use serde::Deserialize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  gaffer demo                                       see it work: no key, no network
  gaffer                                            talk with it at the terminal
  gaffer \"why does the check fail?\"                 the same, with the first words said
  gaffer --resume                                   the last session, at the terminal
  gaffer -p \"why does the check fail? mend it\"       one task, then the answer
  git diff | gaffer -p \"review this\"                 with more on standard input
  gaffer -p --output-format stream-json < task.md   every event as a line of JSON
  gaffer -p --continue \"and now the other one\"       go on with the last session
  gaffer -p \"mend it\" --max-budget-usd 2.50          stop in good order at $2.50
  gaffer show                                       what the last session's agents did and cost
  gaffer sessions                                   the sessions of this folder
  gaffer export -o crew.html                        the last session as one page
  gaffer -p \"…\" --provider openai-chat --model qwen  a local server (OPENAI_BASE_URL)

Exit codes: 0 done, 1 failed, 2 usage, 3 budget, 4 denied, 130 interrupted.
Keys: ANTHROPIC_API_KEY or OPENAI_API_KEY; addresses: ANTHROPIC_BASE_URL, OPENAI_BASE_URL.";

/// A coding agent that works as a crew.
#[derive(Debug, Parser)]
#[command(name = "gaffer", version, about, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Work on one prompt without a terminal interface, print the answer and exit. Without a
    /// prompt it is read from standard input.
    #[arg(short = 'p', long = "print", value_name = "PROMPT", num_args = 0..=1)]
    pub(crate) print: Option<Option<String>>,

    /// The prompt: what is said first at the terminal, or the task where it does not stand right
    /// behind -p.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    #[command(flatten)]
    pub(crate) common: Common,

    /// What is printed: the answer alone, one JSON object at the end, or every event as a line of
    /// JSON.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output_format: Format,

    /// A JSON schema that the answer has to meet, or the file with it.
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) json_schema: Option<String>,

    /// Show results of tools and reasoning in the progress too.
    #[arg(long)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Clone, clap::Args, Default)]
pub(crate) struct Common {
    /// The model; for the provider `scripted`, the script's file.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Who answers: anthropic, openai, openai-chat or scripted.
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,

    /// coordinator (the default: it plans and hands tasks to workers) or normal (one agent with
    /// all the tools).
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,

    /// How many workers run at once; more wait for a place. Default: 16.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_workers: Option<u32>,

    /// Workers get Bash, Edit and Read alone; no skills, hooks, memory or project documents.
    #[arg(long)]
    pub(crate) bare: bool,

    /// Stop after so many answers of the model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    #[command(flatten)]
    pub(crate) budget: budget::BudgetArgs,

    /// Go on with a session: its id, a beginning of it, or its name. Without one: the newest of
    /// this folder.
    #[arg(short = 'r', long, value_name = "SESSION", num_args = 0..=1)]
    pub(crate) resume: Option<Option<String>>,

    /// Go on with the newest session of this folder.
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) go_on: bool,

    /// With --resume or --continue: leave that session as it is, and go on in a copy of it.
    #[arg(long)]
    pub(crate) fork_session: bool,

    /// What to call the session.
    #[arg(short = 'n', long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The new session's id. Default: a random UUID.
    #[arg(long, value_name = "ID")]
    pub(crate) session_id: Option<String>,

    /// The folder to work in. Default: the current one.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,

    /// A settings file that goes over the user's own.
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    /// What is done without asking: default, acceptEdits, plan, dontAsk or bypassPermissions.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<String>,

    /// In coordinator mode, where the plan is to be approved first: approve it beforehand.
    #[arg(long)]
    pub(crate) approve_plan: bool,

    /// Rules for calls that are allowed, such as `Bash(git log *)`. May be given more than once.
    #[arg(long, alias = "allowedTools", value_name = "RULES")]
    pub(crate) allowed_tools: Vec<String>,

    /// Rules for calls that are denied, whoever makes them. May be given more than once.
    #[arg(long, alias = "disallowedTools", value_name = "RULES")]
    pub(crate) disallowed_tools: Vec<String>,

    /// Whether commands run in a sandbox: where the system has one, always, or never.
    #[arg(long, value_name = "WHEN")]
    pub(crate) sandbox: Option<SandboxMode>,

    /// Whether commands in the sandbox reach the network.
    #[arg(long, value_name = "WHETHER")]
    pub(crate) sandbox_network: Option<Switch>,

    /// Another folder that may be read and written. May be given more than once.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Write the run as a script that replays it with --provider scripted.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SandboxMode {
    Off,
    #[default]
    Auto,
    Require,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    StreamJson,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See gaffer mend a small project: the real engine, git and shell; only the model is a script.
    Demo(DemoArgs),
    /// Show every setting that is in force and where it comes from.
    Config(ConfigArgs),
    /// Show what the agents of a session did and what they cost, as a tree.
    Show(ShowArgs),
    /// List, search, rename and delete sessions.
    Sessions(sessions::SessionsArgs),
    /// Write a session as one page: what every agent was told, said and did.
    Export(sessions::ExportArgs),
    /// Work with the files that scripted models play.
    #[command(subcommand)]
    Script(ScriptCommand),
    /// See, merge and remove the worktrees that workers left.
    #[command(subcommand, after_help = WORKTREE_EXAMPLES)]
    Worktree(WorktreeCommand),
}

const WORKTREE_EXAMPLES: &str = "\
Examples:
  gaffer worktree list                     what workers left, and where
  gaffer worktree diff agent-3f2b          all that a worker changed
  gaffer worktree merge agent-3f2b         bring its commits into your branch
  gaffer worktree integrate agent-3f2b agent-77c1 --test 'cargo test'
                                           merge several, with tests after each, into a new branch
  gaffer worktree remove agent-3f2b        remove it, if nothing would be lost
  gaffer worktree remove agent-3f2b --ignored
                                           the same with its build output

A worktree is named by its worker's id or a beginning of it, or by its branch. Nothing is forced:
what could be lost is said, and stays.

Exit codes: 0 done, 1 refused or failed, 2 usage.";

#[derive(Debug, Subcommand)]
pub(crate) enum WorktreeCommand {
    /// Show the worktrees of this repository: what they were for, and what is in them.
    List(RepositoryArgs),
    /// Print all that differs from where a worktree began: commits, changes and new files.
    Diff(WorktreeArgs),
    /// Merge a worktree's branch into the branch that is checked out here. A conflict changes
    /// nothing.
    Merge(WorktreeArgs),
    /// Merge the branches of finished tasks one after another, with their checks, and move the
    /// target once all are through.
    Integrate(integrate::IntegrateArgs),
    /// Remove a worktree, and its branch if another one has all of it. Refuses, with the reason,
    /// where work would be lost.
    Remove {
        #[command(flatten)]
        which: WorktreeArgs,

        /// Files that git ignores, such as build output, may go.
        #[arg(long)]
        ignored: bool,

        /// Remove the files and leave the branch, whose commits need not be anywhere else then.
        #[arg(long)]
        keep_branch: bool,
    },
    /// Forget worktrees whose folders are gone.
    Prune(RepositoryArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct RepositoryArgs {
    /// A folder in the repository. Default: the current one.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WorktreeArgs {
    /// The worker's id, a beginning that is its alone, or the branch.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) repository: RepositoryArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// The folder to create the project in; it must not exist or be empty. Default: a new one
    /// among the temporary files.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    /// Show one key and what is below it, such as `permissions`.
    pub(crate) key: Option<String>,

    /// The folder to work in. Default: the current one.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,

    /// A settings file that goes over the others.
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    /// Print JSON: an object with `value`, `level` and `file` for each key.
    #[arg(long)]
    pub(crate) json: bool,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  gaffer show                 the newest session of this folder
  gaffer show 3f2b            the session whose id begins so
  gaffer show 3f2b --json     the same for programs

Figures come from the transcripts, so a session that was killed has them too. Tokens are those that the
provider reported; input, cache read and cache write do not overlap.";

#[derive(Debug, clap::Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub(crate) struct ShowArgs {
    /// The session's id, or a beginning that is its alone: of this folder first, then of all.
    /// Default: the newest of this folder.
    pub(crate) session: Option<String>,

    /// The folder whose sessions are meant. Default: the current one.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,

    /// A settings file that goes over the others; its prices count.
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    /// Print JSON: the agents with their figures, and the sums by type and by model.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScriptCommand {
    /// Read a script and say whether it is sound.
    Check {
        /// The script.
        file: PathBuf,
    },
    /// Print the format's JSON schema.
    Schema,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_prompt_may_stand_in_both_places() {
        let parse = |args: &[&str]| Args::try_parse_from(args).unwrap();
        assert_eq!(
            parse(&["gaffer", "-p", "demo"]).print,
            Some(Some("demo".into()))
        );
        let args = parse(&["gaffer", "-p", "--max-turns", "3", "hello"]);
        assert_eq!(
            (args.print, args.prompt),
            (Some(None), Some("hello".into()))
        );
        assert!(Args::try_parse_from(["gaffer", "-p", "--max-turns", "0"]).is_err());
        assert!(Args::try_parse_from(["gaffer", "--no-such-flag"]).is_err());
    }
}
