//! `gaffer export`: a session as one document, read from its transcripts agent by agent.

use crate::args::Common;
use crate::args::sessions::{ExportArgs, Paper};
use crate::exit::{Exit, Usage};
use crate::sessions::{find, home};
use crate::settings::Settings;
use crate::setup::{places, working_folder};
use crate::show::{Account, not_found};
use crate::tracks::Story;
use crate::view::export::html::Html;
use crate::view::export::markdown::Markdown;
use crate::view::export::{Cover, Item, Page};
use anyhow::Context;
use gaffer_model::Prices;
use gaffer_protocol::{Answer, Block, Message, Origin, StopReason, Timestamp, ToolResult};
use gaffer_store::records::Line;
use gaffer_store::{Entry, Found};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn export(args: &ExportArgs) -> anyhow::Result<Exit> {
    let home = home()?;
    let common = Common {
        cwd: args.cwd.clone(),
        ..Common::default()
    };
    let cwd = working_folder(&common)?;
    let (settings, _) = Settings::load(&places(home.path(), &cwd, args.settings.clone()))?;
    let found = match &args.session {
        Some(wanted) => find(&home, &cwd, wanted)?,
        None => home
            .newest_session(&cwd)
            .map_err(|why| not_found(None, &why))?,
    };
    let paper = args
        .format
        .unwrap_or_else(|| by_name(args.output.as_deref()));
    let prices = Prices::new(&settings.prices);
    match &args.output {
        None => {
            let written = write(&found, &prices, paper, Box::new(io::stdout().lock()));
            match written {
                // Whoever read it has enough.
                Err(error) if is_closed(&error) => {}
                other => other?,
            }
        }
        Some(path) => to_file(path, &|out| write(&found, &prices, paper, out))?,
    }
    Ok(Exit::Done)
}

fn is_closed(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn by_name(path: Option<&Path>) -> Paper {
    let extension = path
        .and_then(Path::extension)
        .map(|it| it.to_ascii_lowercase());
    match extension {
        Some(it) if it == "html" || it == "htm" => Paper::Html,
        _ => Paper::Md,
    }
}

type Out<'a> = Box<dyn Write + 'a>;

/// Writes a file as a whole: what was there stays until all of the new one is.
fn to_file(path: &Path, write: &dyn Fn(Out<'_>) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let wrong = |why: &io::Error| Usage::new(format!("-o {}: {why}", path.display()));
    if path.is_dir() {
        return Err(Usage::new(format!("-o {}: it is a folder", path.display())).into());
    }
    // A pipe or a device is written as it is.
    if path.exists() && !path.is_file() {
        let file = File::options().write(true).open(path);
        return write(Box::new(file.map_err(|why| wrong(&why))?));
    }
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let file = File::create(&part).map_err(|why| wrong(&why))?;
    let written = write(Box::new(file)).and_then(|()| {
        std::fs::rename(&part, path).with_context(|| format!("cannot write {}", path.display()))
    });
    if written.is_err() {
        drop(std::fs::remove_file(&part));
    }
    written
}

fn write(found: &Found, prices: &Prices, paper: Paper, out: Out<'_>) -> anyhow::Result<()> {
    let account = Account::read(found, prices)?;
    let out = BufWriter::with_capacity(64 << 10, out);
    let mut page: Box<dyn Page + '_> = match paper {
        Paper::Html => Box::new(Html::new(out)),
        Paper::Md => Box::new(Markdown::new(out)),
    };
    let about = found.folder.about();
    let story = Story::read(found, &account)?;
    page.begin(&Cover {
        account: &account,
        about: about.as_ref(),
        story: &story,
    })?;
    for member in &account.members {
        page.agent(member)?;
        let records = found.folder.records(member.id)?;
        let mut teller = Teller::new(&mut *page);
        for line in records {
            teller.line(line?)?;
        }
        teller.end()?;
        page.agent_ends()?;
    }
    page.close()?;
    Ok(())
}

/// Tells a transcript to a page. Results come when they come; they are told with their calls.
struct Teller<'a> {
    page: &'a mut dyn Page,
    answer: Option<(Timestamp, Arc<Answer>)>,
    results: HashMap<String, Arc<ToolResult>>,
    has_begun: bool,
    has_order: bool,
    taken_up: Option<Timestamp>,
}

impl<'a> Teller<'a> {
    fn new(page: &'a mut dyn Page) -> Self {
        Self {
            page,
            answer: None,
            results: HashMap::new(),
            has_begun: false,
            has_order: false,
            taken_up: None,
        }
    }

    fn line(&mut self, line: Line) -> io::Result<()> {
        let record = match line {
            Line::Record(record) => *record,
            Line::Damaged => {
                self.flush()?;
                return self.page.item(&Item::Damaged);
            }
        };
        let at = record.at;
        match record.entry {
            // Results of calls that were under way before may follow.
            Entry::Start(_) if self.has_begun => self.taken_up = Some(at),
            Entry::Start(_) => self.has_begun = true,
            Entry::Input(message) => {
                self.flush()?;
                self.input(at, &message)?;
            }
            Entry::Answer(answer) => {
                self.flush()?;
                self.answer = Some((at, answer));
            }
            Entry::Result(result) => {
                self.results.entry(result.call.clone()).or_insert(result);
            }
            Entry::Compacted(compacted) => {
                self.flush()?;
                self.page.item(&Item::Compacted {
                    at,
                    before: compacted.tokens_before,
                    after: compacted.tokens_after,
                })?;
            }
            Entry::End(end) => {
                self.tell(true)?;
                self.page.item(&Item::End { at, end: &end })?;
            }
        }
        Ok(())
    }

    fn input(&mut self, at: Timestamp, message: &Message) -> io::Result<()> {
        for block in &message.blocks {
            let item = match block {
                Block::Text(text) => {
                    // What the agent above says first is what it was started for.
                    let is_order = text.origin == Some(Origin::Agent) && !self.has_order;
                    self.has_order |= is_order;
                    Item::Words {
                        at,
                        origin: text.origin,
                        is_order,
                        text: &text.text,
                    }
                }
                Block::Image(image) => Item::Image { at, image },
                Block::Reasoning(_) | Block::ToolUse(_) | Block::ToolResult(_) => continue,
            };
            self.page.item(&item)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tell(false)
    }

    /// Tells the last answer with its results.
    fn tell(&mut self, is_last: bool) -> io::Result<()> {
        let results = std::mem::take(&mut self.results);
        if let Some((at, answer)) = self.answer.take() {
            // Words before calls that never came to a result are no report.
            let is_last = is_last && answer.tool_uses().next().is_none();
            for block in &answer.blocks {
                let item = match block {
                    Block::Text(text) if text.text.trim().is_empty() => continue,
                    Block::Text(text) => Item::Answer {
                        at,
                        text: &text.text,
                        is_last,
                    },
                    Block::Reasoning(thought) => Item::Thought(&thought.text),
                    Block::ToolUse(call) => Item::Call {
                        call,
                        result: results.get(&call.id).map(|result| &**result),
                    },
                    Block::Image(image) => Item::Image { at, image },
                    Block::ToolResult(_) => continue,
                };
                self.page.item(&item)?;
            }
            if !matches!(answer.stop, StopReason::EndTurn | StopReason::ToolUse) {
                self.page.item(&Item::Cut(answer.stop.as_str()))?;
            }
        }
        match self.taken_up.take() {
            Some(at) => self.page.item(&Item::TakenUp(at)),
            None => Ok(()),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.flush()
    }
}
