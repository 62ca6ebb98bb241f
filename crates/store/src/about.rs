//! What a session says of itself: `session.json` in its folder.

use crate::session::SessionFolder;
use crate::transcript::{Entry, Record};
use gaffer_protocol::{AgentId, Budget, BudgetSum, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const FILE: &str = "session.json";

/// Written when a session begins, and again as a whole when something of it changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    pub session: SessionId,
    /// The agent that talks with the user.
    pub main: AgentId,
    pub mode: String,
    pub cwd: String,
    pub created: Timestamp,
    /// What people call it, if they gave it a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The beginning of the first prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What the user allowed and denied on the command line, for as long as the session lives.
    #[serde(default, skip_serializing_if = "Rights::is_empty")]
    pub rights: Rights,
    /// The session that this one continues as another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// What it may use in all, for as long as it lives.
    #[serde(default, skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
    /// What that came to when it last ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<BudgetSum>,
}

/// What the user said about permissions beside the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rights {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
}

impl Rights {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Why a text cannot be a session's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a session's name is 1 to {LONGEST_NAME} characters long")]
    Length,
    #[error("a session's name is one line that can be printed")]
    Form,
}

const LONGEST_NAME: usize = 64;

impl About {
    /// A name as it is kept: without white space around it.
    pub fn name_of(text: &str) -> Result<String, NameError> {
        let name = text.trim();
        // What turns the direction of writing makes a name look like another one.
        let turns = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
        if name.chars().any(|c| c.is_control() || turns(c)) {
            return Err(NameError::Form);
        }
        match name.chars().count() {
            1..=LONGEST_NAME => Ok(name.to_owned()),
            _ => Err(NameError::Length),
        }
    }

    /// The first line of a prompt, short enough for a list.
    pub fn title_of(prompt: &str) -> String {
        const LONGEST: usize = 80;
        let line = prompt.lines().map(str::trim).find(|line| !line.is_empty());
        let line = line.unwrap_or_default();
        match line.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", line[..end].trim_end()),
            None => line.to_owned(),
        }
    }
}

impl SessionFolder {
    /// None where it was never written or cannot be understood: the transcripts are there still.
    pub fn about(&self) -> Option<About> {
        let text = std::fs::read(self.path().join(FILE)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// The same, from the first lines of the transcripts where nothing better is there.
    pub fn recovered_about(&self) -> Option<About> {
        let own = |path: &Path| {
            let mut line = String::new();
            BufReader::new(File::open(path).ok()?)
                .read_line(&mut line)
                .ok()?;
            let record: Record = serde_json::from_str(&line).ok()?;
            match record.entry {
                Entry::Start(start) if start.parent.is_none() => Some((record.at, *start)),
                _ => None,
            }
        };
        let starts = self.agents().ok()?;
        let starts = starts.iter().filter_map(|(_, path)| own(path));
        let (created, start) = starts.min_by_key(|(at, _)| *at)?;
        Some(About {
            session: start.session,
            main: start.agent,
            mode: start.mode,
            cwd: start.cwd,
            created,
            name: None,
            title: String::new(),
            rights: Rights::default(),
            forked_from: None,
            budget: Budget::default(),
            account: None,
        })
    }

    pub fn set_about(&self, about: &About) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(about)?;
        text.push(b'\n');
        replace(&self.path().join(FILE), &text)
    }
}

/// Writes a file as a whole: whoever reads it sees the old text or the new one, whatever happens.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file: File = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&fresh)?;
    file.write_all(text)?;
    std::fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_read_back_and_damage_is_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let folder = SessionFolder::at(temp.path().to_owned());
        assert_eq!(folder.about(), None);
        let about = About {
            session: SessionId::parse("s1").unwrap(),
            main: AgentId::parse("agent-00000001").unwrap(),
            mode: "normal".into(),
            cwd: "/p".into(),
            created: Timestamp(5),
            name: None,
            title: About::title_of("\n  Mend the check \nand more"),
            rights: Rights {
                denied: vec!["Bash(rm *)".into()],
                network: Some(false),
                ..Rights::default()
            },
            forked_from: None,
            budget: Budget {
                usd: Some(2.5),
                ..Budget::default()
            },
            account: None,
        };
        folder.set_about(&about).unwrap();
        assert_eq!(folder.about(), Some(about.clone()));
        let named = About {
            name: Some("friday".into()),
            ..about
        };
        folder.set_about(&named).unwrap();
        assert_eq!(folder.about(), Some(named));
        std::fs::write(temp.path().join(FILE), "{\"session\":").unwrap();
        assert_eq!(folder.about(), None);
    }

    #[test]
    fn names_are_short_and_can_be_printed() {
        assert_eq!(About::name_of(" fix the till "), Ok("fix the till".into()));
        assert_eq!(About::name_of(&"é".repeat(64)), Ok("é".repeat(64)));
        assert_eq!(About::name_of(&"é".repeat(65)), Err(NameError::Length));
        assert_eq!(About::name_of("  "), Err(NameError::Length));
        for bad in ["a\nb", "a\u{1b}[2J", "a\u{202e}b", "a\u{200b}b"] {
            assert_eq!(About::name_of(bad), Err(NameError::Form), "{bad:?}");
        }
    }

    #[test]
    fn titles_are_one_short_line() {
        assert_eq!(About::title_of(" \n\n Mend it \nnow"), "Mend it");
        assert_eq!(About::title_of(""), "");
        let long = About::title_of(&"é".repeat(100));
        assert_eq!(long.chars().count(), 81);
    }
}
