//! How a crew is taken up again by another process: what the book and the transcripts say
//! becomes the roster, and whoever ran when the session ended is told of in one notification.

use crate::crew::Crew;
use crate::depend::last_words;
use crate::notes::Notes;
use crate::report::Report;
use crate::roster::{Spending, State, Task};
use gaffer_agent::agent_type::AgentType;
use gaffer_protocol::notification::Worktree;
use gaffer_protocol::{
    AgentId, Block, CallId, End, MailId, Message, Notification, Origin, Phase, Status,
};
use gaffer_store::book::{self, BookError, Change, Contents, Entered, Letter, Step};
use gaffer_store::{Fold, Start};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Tools whose successful calls change the file that they name.
const WRITERS: [&str; 3] = ["Edit", "NotebookEdit", "Write"];

/// What had become of a task when the session ended.
#[derive(Debug, Clone, PartialEq)]
enum Was {
    /// It had ended, and this was told or is on its way.
    Ended(End),
    /// It had come to an end that nobody was told of.
    Done(End),
    /// It waited for its place.
    Queued,
    Interrupted,
    /// The book had lost it; its transcript ends so.
    Lost(Option<End>),
}

impl Was {
    fn end(&self) -> Option<End> {
        match self {
            Self::Queued => None,
            Self::Ended(end) | Self::Done(end) => Some(end.clone()),
            Self::Interrupted => Some(End::Interrupted),
            Self::Lost(end) => Some(end.clone().unwrap_or(End::Interrupted)),
        }
    }
}

/// A task as it is found.
struct Found {
    task: book::Task,
    runs: u32,
    was: Was,
    notes: Notes,
    heard: HashSet<MailId>,
    changed_files: Vec<String>,
    last_words: String,
}

impl Crew {
    /// Takes up a crew from its book, before the session's own agent works. `heard` are the
    /// letters that this agent's transcript has. All changes are one step, so a crash in the
    /// middle changes nothing.
    pub async fn take_up(
        &self,
        contents: Contents,
        heard: &HashSet<MailId>,
    ) -> Result<(), BookError> {
        self.0.count_letters_from(contents.last_letter);
        let found = self.find_tasks(contents.tasks).await;
        if found.is_empty() && contents.letters.is_empty() {
            return Ok(());
        }
        let mut heard = heard.clone();
        heard.extend(found.iter().flat_map(|it| &it.heard));
        let (old, letters): (Vec<Letter>, Vec<Letter>) = contents
            .letters
            .into_iter()
            .partition(|letter| heard.contains(&letter.id));
        let mut changes = vec![
            Change::Heard(old.iter().map(|letter| letter.id).collect()),
            Change::Settled(self.0.parts.main),
        ];
        let mut post = Post::sort(letters, &found, self.0.parts.main);
        changes.push(Change::Heard(post.replaced.clone()));
        changes.push(Change::Hold(post.held.clone()));
        for it in &found {
            changes.extend(it.changes());
            if let Was::Done(_) = it.was {
                // It may not have come to leave its worktree either.
                let worktree = match it.task.terms.isolated {
                    true => self.0.parts.outfitter.release(it.task.id).await,
                    false => None,
                };
                let letter = self.untold(it, worktree);
                changes.push(Change::Send(letter.clone()));
                post.news.push(letter.block);
            }
        }
        if let Some(letter) = self.interruptions(&found, &post.interrupted) {
            changes.push(Change::Send(letter.clone()));
            post.news.push(letter.block);
        }
        self.0.parts.book.write(Step::synced(changes)).await?;
        self.enter(found, &mut post.unread, contents.answers);
        for block in post.news {
            self.0.parts.main_inbox.send(block);
        }
        for id in post.queued {
            let blocks = post.unread.remove(&id).unwrap_or_default();
            self.queue_again(id, blocks);
        }
        for (id, blocks) in post.woken {
            self.go_on(id, blocks).await;
        }
        Ok(())
    }

    /// Looks at everybody whom the book knows, and at transcripts that it does not know.
    async fn find_tasks(&self, entered: Vec<Entered>) -> Vec<Found> {
        let parts = &self.0.parts;
        let known: BTreeSet<AgentId> = entered.iter().map(|it| it.task.id).collect();
        let mut all = Vec::new();
        for entry in entered {
            all.push(match entry.end.clone() {
                Some(end) => Found::ended(entry, end),
                None => {
                    let fold = self.fold(entry.task.id).await;
                    Found::cut_off(entry, &fold, &self.spent(&fold))
                }
            });
        }
        let there = parts.folder.agents().unwrap_or_default();
        for (id, _) in there {
            if id == parts.main || known.contains(&id) {
                continue;
            }
            let fold = self.fold(id).await;
            if let Some(start) = fold.start.clone() {
                all.push(Found::lost(start, &fold, &self.spent(&fold), parts.main));
            }
        }
        all
    }

    /// A transcript as it is. One that cannot be read says nothing.
    async fn fold(&self, id: AgentId) -> Fold {
        let path = self.0.parts.folder.transcript(id);
        let read = tokio::task::spawn_blocking(move || Fold::read(&path));
        read.await.ok().and_then(Result::ok).unwrap_or_default()
    }

    fn spent(&self, fold: &Fold) -> Spending {
        let mut spending = Spending {
            turns: u32::try_from(fold.turns.len()).unwrap_or(u32::MAX),
            tool_uses: fold.turns.iter().map(|turn| turn.calls).sum(),
            time: std::time::Duration::from_millis(fold.worked_ms),
            ..Spending::default()
        };
        for turn in &fold.turns {
            let entry = spending.by_model.entry(turn.model.to_string());
            let sum = entry.or_default();
            sum.0 += turn.usage;
            sum.1 += self.0.parts.prices.cost(&turn.model, turn.usage);
        }
        spending
    }

    /// The letter about an end that nobody was told of.
    fn untold(&self, it: &Found, worktree: Option<Worktree>) -> Letter {
        let parts = &self.0.parts;
        let end = it.was.end().unwrap_or(End::Interrupted);
        let terms = &it.task.terms;
        let is_verification = terms.phase == Some(Phase::Verification);
        let is_unverified = end == End::Done && !terms.has_proof() && !is_verification;
        let report = Report {
            task: it.task.id,
            name: it.task.name.clone(),
            is_open: !self.kind(&it.task.kind).is_one_shot,
            description: it.task.description.clone(),
            end,
            result: it.last_words.clone(),
            tokens: it.notes.spending.usage().total(),
            tool_uses: it.notes.spending.tool_uses,
            time: it.notes.spending.time,
            changed_files: it.changed_files.clone(),
            denials: Vec::new(),
            left_running: Vec::new(),
            worktree,
            unread: 0,
            letter: None,
            holds: Vec::new(),
            is_unverified,
            advice: None,
        };
        let file = parts.folder.result(it.task.id, it.runs);
        let room = parts.limits.result;
        if report.result.len() > room {
            // Where it cannot be kept, the transcript has it.
            drop(std::fs::create_dir_all(parts.folder.results()));
            drop(self.keep_result(&file, &report.result));
        }
        let text = report.notification(room, &file).render();
        self.news(Some(it.task.id), text)
    }

    /// One notification for all who were interrupted.
    fn interruptions(&self, found: &[Found], before: &BTreeSet<AgentId>) -> Option<Letter> {
        let is_one = |it: &&Found| {
            matches!(it.was, Was::Interrupted | Was::Lost(_)) || before.contains(&it.task.id)
        };
        let all: Vec<&Found> = found.iter().filter(is_one).collect();
        if all.is_empty() {
            return None;
        }
        let lines: Vec<String> = all.iter().map(|it| self.line(it)).collect();
        let changed: BTreeSet<String> = all
            .iter()
            .flat_map(|it| it.changed_files.iter().cloned())
            .collect();
        let count = match all.len() {
            1 => "1 agent was".to_owned(),
            count => format!("{count} agents were"),
        };
        let notification = Notification {
            task: None,
            status: Status::Failed,
            summary: format!("{count} interrupted: the session ended while they worked"),
            result: Some(lines.join("\n")),
            usage: None,
            reason: Some(End::Interrupted.reason().to_owned()),
            output_file: None,
            worktree: None,
            changed_files: changed.into_iter().collect(),
            denials: Vec::new(),
            is_unverified: false,
            advice: Some(
                "What they did until then stands. Continue those whose work is still needed"
                    .to_owned(),
            ),
        };
        Some(self.news(None, notification.render()))
    }

    fn line(&self, it: &Found) -> String {
        let book::Task {
            id,
            name,
            description,
            ..
        } = &it.task;
        let Spending {
            turns, tool_uses, ..
        } = &it.notes.spending;
        let how = match &it.was {
            Was::Lost(Some(end)) => format!("the record of it was lost; it ended: {end}"),
            _ => format!("interrupted after {turns} turns and {tool_uses} tool uses"),
        };
        let next = match self.kind(&it.task.kind).is_one_shot {
            true => "it cannot be continued: start a fresh one".to_owned(),
            false => format!("SendMessage to {name} continues it with all that it knows"),
        };
        format!("{name} ({id}, \"{description}\"): {how}; {next}")
    }

    fn news(&self, about: Option<AgentId>, text: String) -> Letter {
        let id = self.0.next_letter();
        Letter {
            id,
            to: self.0.parts.main,
            about,
            block: Block::from(Origin::TaskNotification, text).by_mail(id),
            is_held: false,
        }
    }

    fn kind(&self, name: &str) -> Arc<AgentType> {
        let kind = self.0.parts.outfitter.types().choose(name);
        kind.map_or_else(|_| Arc::new(AgentType::gone(name)), Arc::clone)
    }

    /// Puts all into the roster.
    fn enter(
        &self,
        found: Vec<Found>,
        unread: &mut BTreeMap<AgentId, Vec<Block>>,
        answers: Vec<(AgentId, CallId, String)>,
    ) {
        let parts = &self.0.parts;
        let stints = found.iter().flat_map(|it| &it.notes.stints);
        let moments = stints.flat_map(|it| [it.ordered, it.began, it.ended]);
        self.count_moments_from(moments.max().unwrap_or(0));
        let mut by_caller: BTreeMap<AgentId, HashMap<CallId, String>> = BTreeMap::new();
        for (caller, call, answer) in answers {
            by_caller.entry(caller).or_default().insert(call, answer);
        }
        for it in found {
            let id = it.task.id;
            let kind = self.kind(&it.task.kind);
            // One that waits for its place is brought to life in a moment.
            let state = State::Ended(it.was.end().unwrap_or(End::Interrupted));
            let is_queued = it.was == Was::Queued;
            let mut task = Task::new(&it.task, kind, parts.folder.transcript(id), state);
            task.runs = it.runs;
            task.spending = it.notes.spending;
            task.cwd = it.notes.cwd;
            task.history = it.notes.history;
            task.scores = it.notes.scores;
            task.stints = it.notes.stints;
            task.history.add_written(&it.changed_files);
            if is_queued {
                // It has yet to begin; nothing of it is over.
                task.add_stint(self.moment());
            } else {
                task.take_up_stints(|| self.moment());
            }
            task.answers = by_caller.remove(&id).unwrap_or_default();
            if !is_queued {
                task.unread = unread.remove(&id).unwrap_or_default();
            }
            self.restore_purse(&task);
            self.0.roster().add(task);
        }
    }
}

impl Found {
    fn ended(entered: Entered, end: End) -> Self {
        let notes = entered.notes.as_deref().map(Notes::parse);
        Self {
            task: entered.task,
            runs: entered.runs,
            was: Was::Ended(end),
            notes: notes.unwrap_or_default(),
            heard: HashSet::new(),
            changed_files: Vec::new(),
            last_words: String::new(),
        }
    }

    /// One that had not ended as far as the book knows.
    fn cut_off(entered: Entered, fold: &Fold, spending: &Spending) -> Self {
        let was = match &fold.end {
            // Nothing was recorded of this run: it had not got its place.
            None if fold.start.is_none() => Was::Queued,
            Some(_) if fold.ends < entered.runs => Was::Queued,
            Some(end) => Was::Done(end.clone()),
            None => Was::Interrupted,
        };
        let before = entered.notes.as_deref().map(Notes::parse);
        let mut found = Self::of(entered.task, fold, spending);
        found.notes.stints = before.unwrap_or_default().stints;
        Self {
            runs: entered.runs,
            was,
            ..found
        }
    }

    /// One that the book does not know.
    fn lost(start: Start, fold: &Fold, spending: &Spending, main: AgentId) -> Self {
        let task = book::Task {
            id: start.agent,
            name: start.name,
            kind: start.agent_type,
            description: start.description,
            parent: start.parent.unwrap_or(main),
            depth: 1,
            model: None,
            depends_on: Vec::new(),
            includes_results: false,
            terms: gaffer_protocol::Terms::default(),
        };
        Self {
            was: Was::Lost(fold.end.clone()),
            ..Self::of(task, fold, spending)
        }
    }

    fn of(task: book::Task, fold: &Fold, spending: &Spending) -> Self {
        Self {
            task,
            runs: fold.ends.max(1),
            was: Was::Interrupted,
            notes: Notes {
                cwd: fold.start.as_ref().map(|start| start.cwd.clone().into()),
                spending: spending.clone(),
                ..Notes::default()
            },
            heard: fold.heard.clone(),
            changed_files: changed(&fold.messages),
            last_words: last_words(fold),
        }
    }

    /// What the book is to know of it.
    fn changes(&self) -> Vec<Change> {
        let end = |end: End| Change::End {
            task: self.task.id,
            end,
            notes: self.notes.text(),
        };
        match (&self.was, self.was.end()) {
            (Was::Done(_) | Was::Interrupted, Some(how)) => vec![end(how)],
            (Was::Lost(_), Some(how)) => vec![Change::Start(Box::new(self.task.clone())), end(how)],
            _ => Vec::new(),
        }
    }
}

/// Letters that nobody has heard, by what becomes of them.
#[derive(Default)]
struct Post {
    /// For the session's own agent.
    news: Vec<Block>,
    /// For whoever goes on some day.
    unread: BTreeMap<AgentId, Vec<Block>>,
    /// Their readers have ended and are not woken by them.
    held: Vec<MailId>,
    /// Readers that had ended, and go on with what they were sent.
    woken: BTreeMap<AgentId, Vec<Block>>,
    queued: Vec<AgentId>,
    /// Tasks that were interrupted in good order, and the letters about it that nobody read.
    interrupted: BTreeSet<AgentId>,
    replaced: Vec<MailId>,
}

impl Post {
    fn sort(letters: Vec<Letter>, found: &[Found], main: AgentId) -> Self {
        let by_id: BTreeMap<AgentId, &Found> = found.iter().map(|it| (it.task.id, it)).collect();
        let is_queued = |it: &&Found| it.was == Was::Queued;
        let mut post = Self {
            queued: found
                .iter()
                .filter(is_queued)
                .map(|it| it.task.id)
                .collect(),
            ..Self::default()
        };
        for letter in letters {
            let about = letter.about.and_then(|id| by_id.get(&id));
            let reader = by_id.get(&letter.to);
            match (about, reader) {
                (Some(it), _) if it.was == Was::Ended(End::Interrupted) => {
                    post.interrupted.insert(it.task.id);
                    post.replaced.push(letter.id);
                }
                // Whoever was to read of an end has ended as well: the news are for the main agent.
                (Some(_), _) => post.news.push(letter.block),
                (None, None) if letter.to == main || letter.about.is_some() => {
                    post.news.push(letter.block);
                }
                // Mail to nobody.
                (None, None) => post.replaced.push(letter.id),
                (None, Some(it)) => {
                    let id = it.task.id;
                    let blocks = match (&it.was, letter.is_held) {
                        // It came after the end, and so wakes its reader. One that ended of its own
                        // accord had read all that came before.
                        (Was::Ended(_) | Was::Done(End::Done), false) => post.woken.entry(id),
                        (Was::Queued, _) | (_, true) => post.unread.entry(id),
                        (_, false) => {
                            post.held.push(letter.id);
                            post.unread.entry(id)
                        }
                    };
                    blocks.or_default().push(letter.block);
                }
            }
        }
        post
    }
}

/// The files that successful calls have changed, as the calls name them.
fn changed(messages: &[Message]) -> Vec<String> {
    let mut open: BTreeMap<&str, String> = BTreeMap::new();
    let mut files = BTreeSet::new();
    for block in messages.iter().flat_map(|message| &message.blocks) {
        match block {
            Block::ToolUse(call) if WRITERS.contains(&call.name.as_str()) => {
                let input: serde_json::Value =
                    serde_json::from_str(call.input.as_text()).unwrap_or_default();
                let path = input["file_path"].as_str();
                let path = path.or_else(|| input["notebook_path"].as_str());
                if let Some(path) = path {
                    open.insert(&call.id, path.to_owned());
                }
            }
            Block::ToolResult(result) if !result.is_error => {
                files.extend(open.remove(result.call.as_str()));
            }
            _ => {}
        }
    }
    files.into_iter().collect()
}
