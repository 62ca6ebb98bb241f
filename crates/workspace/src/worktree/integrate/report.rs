//! What came of an integration, for programs and as a text for whoever asked for it.

use serde::Serialize;
use std::fmt;

/// What came of an integration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Integrated {
    /// The branch that was moved, or was to be. None where a new one would have been made.
    pub into: Option<String>,
    /// The commit that it was at, or that a new one began from.
    pub before: String,
    /// The commit that it is at now; none where it was not moved.
    pub after: Option<String>,
    /// Why it was not moved although something was merged.
    pub refused: Option<String>,
    /// Whether it was only tried.
    pub is_trial: bool,
    /// The project's own test command, where there is one.
    pub test: Option<String>,
    /// In the order in which they were merged.
    pub items: Vec<Item>,
}

/// One branch of an integration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    #[serde(flatten)]
    pub side: Side,
    pub branch: String,
    pub outcome: Outcome,
    /// What became of its worktree: true if it is gone.
    pub is_removed: bool,
    /// Why its worktree stays although all of it was merged.
    pub kept: Option<String>,
}

/// A task as the other side of a conflict, or as the one that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    pub task_id: String,
    pub name: String,
    pub description: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Outcome {
    Merged {
        commit: String,
    },
    /// The target had all of it before.
    Contained,
    /// It has no commits of its own.
    Nothing,
    Conflict {
        files: Vec<Clash>,
    },
    CheckFailed {
        command: String,
        /// The last lines of what it printed, and how it ended.
        output: String,
    },
    LeftOut {
        because: String,
    },
}

/// A file that two sides changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Clash {
    pub file: String,
    /// Tasks of this integration whose changes it has already; none if it is the target's own.
    pub others: Vec<Side>,
    /// Both sides of each place, cut where they are long; or what git says of the file.
    pub hunks: String,
}

impl Outcome {
    /// Whether the target has all of it.
    pub fn is_in(&self) -> bool {
        matches!(self, Self::Merged { .. } | Self::Contained | Self::Nothing)
    }

    /// In a word, for those that depend on it.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Merged { .. } => "is merged",
            Self::Contained | Self::Nothing => "has nothing new",
            Self::Conflict { .. } => "conflicts",
            Self::CheckFailed { .. } => "fails a check",
            Self::LeftOut { .. } => "is left out",
        }
    }
}

impl Integrated {
    /// Whether nothing was left out, and the target is where it should be.
    pub fn is_whole(&self) -> bool {
        self.refused.is_none() && self.items.iter().all(|item| item.outcome.is_in())
    }

    pub fn merged(&self) -> usize {
        let is_merged = |item: &&Item| matches!(item.outcome, Outcome::Merged { .. });
        self.items.iter().filter(is_merged).count()
    }

    pub fn left_out(&self) -> usize {
        self.items.iter().filter(|it| !it.outcome.is_in()).count()
    }

    /// The first line: what became of the target.
    pub fn headline(&self) -> String {
        let into = self.into.as_deref().unwrap_or("a new branch");
        let (merged, all) = (self.merged(), self.items.len());
        let before = short(&self.before);
        match (&self.after, &self.refused) {
            (Some(after), _) => format!(
                "Merged {merged} of {all} branches into {into}: {before} → {}.",
                short(after)
            ),
            (None, Some(why)) => format!(
                "{merged} of {all} branches merge, but {into} was not moved and is still at {before}: {why}."
            ),
            (None, None) if self.is_trial => format!(
                "Tried only: {merged} of {all} branches would be merged into {into}, which is at {before}."
            ),
            (None, None) => format!("Nothing was merged: {into} is at {before} as before."),
        }
    }

    /// What to do next, for a person who has no crew at hand.
    pub fn next(&self) -> Option<String> {
        let with = match (&self.after, &self.into) {
            (Some(_), Some(into)) => into.clone(),
            _ => short(&self.before).to_owned(),
        };
        let mut steps = Vec::new();
        for item in &self.items {
            let who = &item.side;
            match &item.outcome {
                Outcome::Conflict { .. } => steps.push(format!(
                    "{}: in its worktree, merge {with}, resolve the conflict so that both sides' purpose is kept, run the checks, commit; then integrate it again",
                    who.short()
                )),
                Outcome::CheckFailed { .. } => steps.push(format!(
                    "{}: in its worktree, merge {with}, mend what the check found, commit; then integrate it again",
                    who.short()
                )),
                _ => {}
            }
        }
        (!steps.is_empty()).then(|| format!("- {}", steps.join("\n- ")))
    }
}

impl fmt::Display for Integrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.headline())?;
        for item in &self.items {
            write!(f, "{item}")?;
        }
        if self.test.is_none() {
            writeln!(
                f,
                "\nNo test command of the project was run: `integrate.test` in the settings names one."
            )?;
        }
        if let Some(next) = self.next() {
            writeln!(f, "\nNext:\n{next}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = &self.side;
        match &self.outcome {
            Outcome::Merged { commit } => write!(f, "merged: {side} as {}", short(commit))?,
            Outcome::Contained => write!(f, "already contained: {side}")?,
            Outcome::Nothing => write!(f, "nothing to merge: {side} has no commits of its own")?,
            Outcome::Conflict { .. } => {
                write!(
                    f,
                    "conflict: {side} is left out; its branch: {}",
                    self.branch
                )?;
            }
            Outcome::CheckFailed { command, .. } => write!(
                f,
                "check failed: {side} is left out; its branch: {}; the command: {command}",
                self.branch
            )?,
            Outcome::LeftOut { because } => write!(f, "left out: {side}: {because}")?,
        }
        match (self.is_removed, &self.kept) {
            (true, _) => writeln!(f, "; its worktree is removed")?,
            (false, Some(why)) => writeln!(f, "; its worktree stays: {why}")?,
            (false, None) => writeln!(f)?,
        }
        match &self.outcome {
            Outcome::Conflict { files } => files.iter().try_for_each(|clash| write!(f, "{clash}")),
            Outcome::CheckFailed { output, .. } => indent(f, output),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others: Vec<String> = self.others.iter().map(Side::to_string).collect();
        match others.is_empty() {
            true => writeln!(f, "  {}: the target changed it, too", self.file)?,
            false => writeln!(f, "  {}: changed by {}, too", self.file, others.join(", "))?,
        }
        indent(f, &self.hunks)
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.is_empty() {
            true => write!(f, "{} (\"{}\")", self.task_id, self.description),
            false => write!(
                f,
                "{} ({}, \"{}\")",
                self.name, self.task_id, self.description
            ),
        }
    }
}

impl Side {
    /// By the name that it is called by.
    pub(super) fn short(&self) -> &str {
        match self.name.is_empty() {
            true => &self.task_id,
            false => &self.name,
        }
    }
}

fn indent(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let mut lines = text.lines();
    lines.try_for_each(|line| writeln!(f, "    {line}"))
}

pub(super) fn short(commit: &str) -> &str {
    commit.get(..8).unwrap_or(commit)
}
