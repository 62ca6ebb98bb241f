//! What sessions there are: each with what it says of itself, its size and how it stands. No
//! transcript is read but for its end, so that thousands are listed at once.

use crate::about::About;
use crate::delete::kept_because;
use crate::find::{Found, sessions, written};
use crate::owner::Owner;
use crate::session::{Home, SessionFolder};
use crate::transcript::{Entry, Record};
use gaffer_protocol::{AgentId, End, Timestamp};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// One session of a list.
#[derive(Debug, Clone)]
pub struct Listed {
    pub found: Found,
    /// None where neither it nor a transcript says anything.
    pub about: Option<About>,
    pub agents: usize,
    /// When a transcript was last written.
    pub written: Timestamp,
    /// What its folder takes on the disk.
    pub size: u64,
    pub state: State,
    /// Why it may not be deleted.
    pub kept: Option<String>,
}

/// How a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// A process has it.
    Running(Owner),
    Ended(End),
    /// Nobody has it, and its own agent came to no end.
    Interrupted,
}

impl Listed {
    pub fn name(&self) -> Option<&str> {
        self.about.as_ref()?.name.as_deref()
    }
}

impl Home {
    /// The sessions of one folder, or of all, the newest first.
    pub fn list(&self, cwd: Option<&Path>) -> Vec<Listed> {
        let found = match cwd {
            Some(cwd) => sessions(&self.project(cwd)),
            None => self.all_sessions(),
        };
        let mut all: Vec<Listed> = found.into_iter().map(look).collect();
        all.sort_by(|a, b| {
            let by_id = || a.found.id.as_str().cmp(b.found.id.as_str());
            b.written.cmp(&a.written).then_with(by_id)
        });
        all
    }
}

/// What can be said of a session without reading it.
pub fn look(found: Found) -> Listed {
    let folder = &found.folder;
    let about = folder.about().or_else(|| folder.recovered_about());
    let end = about
        .as_ref()
        .and_then(|about| last_end(folder, about.main));
    let state = match (folder.owner(), end) {
        (Some(owner), _) => State::Running(owner),
        (None, Some(end)) => State::Ended(end),
        (None, None) => State::Interrupted,
    };
    Listed {
        about,
        agents: folder.agents().map_or(0, |agents| agents.len()),
        written: timestamp(written(folder)),
        size: size(folder.path()),
        state,
        kept: kept_because(folder),
        found,
    }
}

fn timestamp(at: SystemTime) -> Timestamp {
    let since = at.duration_since(UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| since.as_millis() as u64))
}

/// What a folder takes on the disk, with all below it. Links count as themselves.
fn size(path: &Path) -> u64 {
    let Ok(meta) = path.symlink_metadata() else {
        return 0;
    };
    let own = meta.blocks() * 512;
    if !meta.is_dir() {
        return own;
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    own + entries.map(|entry| size(&entry.path())).sum::<u64>()
}

/// How an agent ended, if its transcript ends with that. A process that took the session up and
/// did nothing yet changes nothing, as in the fold.
fn last_end(folder: &SessionFolder, agent: AgentId) -> Option<End> {
    const FIRST: u64 = 8 << 10;
    const MOST: u64 = 1 << 20;
    let mut file = File::open(folder.transcript(agent)).ok()?;
    let length = file.metadata().ok()?.len();
    let mut take = FIRST;
    loop {
        let from = length.saturating_sub(take);
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut tail = Vec::new();
        file.by_ref().take(take).read_to_end(&mut tail).ok()?;
        let mut lines: Vec<&[u8]> = tail.split(|byte| *byte == b'\n').collect();
        if from > 0 {
            // Its beginning may be missing.
            lines.remove(0);
        }
        for line in lines.iter().rev() {
            match serde_json::from_slice::<Record>(line).map(|record| record.entry) {
                Ok(Entry::End(end)) => return Some(end),
                // Torn or empty lines say nothing.
                Ok(Entry::Start(_)) | Err(_) => {}
                Ok(_) => return None,
            }
        }
        if from == 0 || take >= MOST {
            return None;
        }
        take *= 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gaffer_protocol::SessionId;

    const AT: &str = r#""at":"2026-11-15T09:00:00.000Z""#;

    fn end_of(lines: &[String]) -> Option<End> {
        let temp = tempfile::tempdir().unwrap();
        let folder = SessionFolder::at(temp.path().to_owned());
        let agent = AgentId::parse("agent-00000001").unwrap();
        std::fs::write(folder.transcript(agent), lines.join("\n")).unwrap();
        last_end(&folder, agent)
    }

    #[test]
    fn the_end_is_read_from_the_end_of_the_transcript_alone() {
        let end = format!(r#"{{{AT},"entry":{{"end":"max_turns"}}}}"#);
        let long = format!(
            r#"{{{AT},"entry":{{"end":{{"provider_error":"{}"}}}}}}"#,
            "x".repeat(20_000)
        );
        let input = format!(
            r#"{{{AT},"entry":{{"input":{{"role":"user","blocks":[{{"text":{{"text":"{}"}}}}]}}}}}}"#,
            "é".repeat(30_000)
        );
        let torn = r#"{"at":"2026-"#.to_owned();
        assert_eq!(end_of(&[input.clone(), end.clone()]), Some(End::MaxTurns));
        assert_eq!(end_of(&[end.clone(), torn.clone()]), Some(End::MaxTurns));
        assert_eq!(end_of(&[end.clone(), input.clone(), torn]), None);
        assert!(matches!(
            end_of(&[input.clone(), long]),
            Some(End::ProviderError(_))
        ));
        assert_eq!(end_of(&[end, input]), None);
        assert_eq!(end_of(&[String::new()]), None);
    }

    #[test]
    fn a_list_is_newest_first_and_knows_who_runs() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().to_owned());
        let make = |cwd: &str, id: &str| {
            let id = SessionId::parse(id).unwrap();
            let folder = home.create_session(Path::new(cwd), &id).unwrap();
            std::fs::write(folder.path().join("agent-00000001.jsonl"), "").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            folder
        };
        make("/a", "one");
        let two = make("/a", "two");
        make("/b", "three");
        std::fs::create_dir(temp.path().join("projects/-a/.deleted-old")).unwrap();
        let owned = two.own(Timestamp(7)).unwrap();
        let ids = |cwd: Option<&str>| -> Vec<String> {
            let all = home.list(cwd.map(Path::new));
            all.iter().map(|it| it.found.id.to_string()).collect()
        };
        assert_eq!(ids(Some("/a")), ["two", "one"]);
        assert_eq!(ids(None), ["three", "two", "one"]);
        let all = home.list(Some(Path::new("/a")));
        assert!(matches!(&all[0].state, State::Running(owner) if owner.pid == std::process::id()));
        assert_eq!(all[1].state, State::Interrupted);
        assert_eq!((all[1].agents, all[1].about.is_none()), (1, true));
        drop(owned);
    }
}
