//! A model whose answers are thrown by dice: one mind for the agent that leads, one for workers.

use crate::sim::diary::Diary;
use crate::sim::site::FOLDERS;
use futures_util::future::BoxFuture;
use gaffer_model::provider::Deadlines;
use gaffer_model::script::{Script, Scripted};
use gaffer_model::{Conversation, DeltaSink, ErrorKind, Model, ModelError, Prefix, Who};
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{AgentId, Answer, Block, Entropy, Message, StopReason, ToolUse, Usage};
use gaffer_testkit::world::Seeded;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// No request costs more tokens than this.
pub(crate) const DEAREST: u64 = 150;
/// So often each is asked in one of its runs before it ends of its own accord.
const MOST_TURNS: u64 = 14;

#[derive(Debug)]
pub(crate) struct Mind {
    pub(crate) dice: Seeded,
    pub(crate) diary: Arc<Diary>,
    /// Nothing further is begun.
    pub(crate) is_calm: AtomicBool,
    pub(crate) ways: Ways,
    /// So many orders are still given.
    left: AtomicU64,
    calls: AtomicU64,
    names: Mutex<Vec<String>>,
    turns: Mutex<HashMap<AgentId, u64>>,
    opener: Scripted,
}

/// What may come up in a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways {
    /// Whether who leads waits for some of its workers.
    pub(crate) waits: bool,
    pub(crate) worktrees: bool,
    pub(crate) proofs: bool,
    pub(crate) task_budgets: bool,
    /// How many of a hundred answers of a worker begin with workers of its own.
    pub(crate) handed_on: u64,
    pub(crate) orders: u64,
}

pub(crate) fn roll(dice: &Seeded, below: u64) -> u64 {
    dice.next() % below
}

/// Mostly few distinct instants, so that much falls together; now and then a long time.
pub(crate) fn moment(dice: &Seeded) -> Duration {
    match roll(dice, 12) {
        0 => Duration::from_secs(roll(dice, 40)),
        _ => Duration::from_millis(10 * roll(dice, 6)),
    }
}

impl Mind {
    pub(crate) fn new(seed: u64, diary: Arc<Diary>, ways: Ways) -> Self {
        Self {
            dice: Seeded::new(seed),
            diary,
            is_calm: AtomicBool::new(false),
            ways,
            left: AtomicU64::new(ways.orders),
            calls: AtomicU64::new(0),
            names: Mutex::default(),
            turns: Mutex::default(),
            opener: Scripted::new(Script::parse("agents: []").unwrap(), Deadlines::default()),
        }
    }

    fn is(&self, in_hundred: u64) -> bool {
        roll(&self.dice, 100) < in_hundred
    }

    fn call(&self, label: &str, name: &str, input: &Value) -> Block {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        Block::ToolUse(ToolUse {
            id: format!("{label}-{number}"),
            name: name.to_owned(),
            input: ToolInput::from_text(&input.to_string()),
        })
    }

    /// Whether one more order may be given.
    fn takes_order(&self) -> bool {
        let take = |left: u64| left.checked_sub(1);
        let order = Ordering::Relaxed;
        self.left.fetch_update(order, order, take).is_ok()
    }

    fn any_name(&self) -> Option<String> {
        let names = self.names.lock().unwrap();
        match names.len() as u64 {
            0 => None,
            count => Some(names[roll(&self.dice, count) as usize].clone()),
        }
    }

    /// An order with some of all that an order can have.
    fn order(&self) -> Option<Block> {
        if !self.takes_order() {
            return None;
        }
        let mut names = self.names.lock().unwrap();
        let name = format!("w{}", names.len());
        let mut input =
            json!({"description": format!("Task {name}"), "name": name, "prompt": "go"});
        if self.is(35) && !names.is_empty() {
            let count = names.len() as u64;
            // Now and then one of the next order of the same message, or of nobody.
            let all: Vec<String> = (0..=roll(&self.dice, 2))
                .map(|_| format!("w{}", roll(&self.dice, count + u64::from(self.is(10)) * 2)))
                .collect();
            input["depends_on"] = json!(all);
            input["include_results"] = json!(self.is(50));
        }
        if self.is(30) {
            let folder = roll(&self.dice, FOLDERS);
            input["files"] = match roll(&self.dice, 3) {
                0 => json!([format!("d{folder}/count.txt")]),
                1 => json!([format!("d{folder}/**"), "own/**"]),
                _ => json!([
                    format!("d{folder}/list.txt"),
                    format!("d{}/count.txt", (folder + 1) % FOLDERS)
                ]),
            };
        }
        if self.ways.worktrees && self.is(40) {
            input["isolation"] = json!("worktree");
        }
        if self.ways.proofs && self.is(25) {
            input["done_when"] =
                json!(["true", "test -e d0/list.txt", "false"][roll(&self.dice, 3) as usize]);
        }
        if self.ways.task_budgets && self.is(40) {
            input["budget"] = match roll(&self.dice, 3) {
                0 => json!({"seconds": 1 + roll(&self.dice, 60)}),
                1 => json!({"usd": 0.002}),
                _ => json!({"tokens": 200 + roll(&self.dice, 1500)}),
            };
        }
        if self.is(10) {
            input["max_turns"] = json!(1 + roll(&self.dice, 3));
        }
        names.push(name);
        Some(self.call("order", "Agent", &input))
    }

    /// The agent that leads: orders, messages, stops, in any mixture.
    fn leads(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        for _ in 0..roll(&self.dice, 4) {
            let any = self.any_name();
            blocks.extend(match (roll(&self.dice, 10), any) {
                (0..6, _) | (_, None) => self.order().map(|order| self.background(order)),
                (6..8, Some(to)) => {
                    let to = if self.is(10) { "*".to_owned() } else { to };
                    let input = json!({"to": to, "message": "Go on with this."});
                    Some(self.call("send", "SendMessage", &input))
                }
                (_, Some(name)) => Some(self.call("stop", "TaskStop", &json!({"task_id": name}))),
            });
        }
        blocks
    }

    /// Where whoever orders could wait, it does not always.
    fn background(&self, order: Block) -> Block {
        let Block::ToolUse(mut call) = order else {
            return order;
        };
        if self.ways.waits && self.is(50) {
            let mut input: Value = serde_json::from_str(call.input.as_text()).unwrap();
            input["run_in_background"] = json!(true);
            call.input = ToolInput::from_text(&input.to_string());
        }
        Block::ToolUse(call)
    }

    /// A worker: reads what others write, writes it, works, hands on.
    fn works(&self, last: &Message) -> Result<Vec<Block>, ModelError> {
        let read = last.blocks.iter().find_map(|block| match block {
            Block::ToolResult(result) if result.call.starts_with("read") && !result.is_error => {
                Some((result.call.clone(), result.text()))
            }
            _ => None,
        });
        if let Some((call, text)) = read
            && self.is(90)
        {
            return Ok(vec![self.change(&call, &text)]);
        }
        if self.is(self.ways.handed_on)
            && let Some(order) = self.order()
        {
            let more = self.order().filter(|_| self.is(30));
            let orders = [Some(order), more].into_iter().flatten();
            return Ok(orders.map(|order| self.background(order)).collect());
        }
        let folder = roll(&self.dice, FOLDERS);
        let what = ["count", "list"][roll(&self.dice, 2) as usize];
        Ok(match roll(&self.dice, 100) {
            0..2 => return Err(ModelError::new(ErrorKind::Unauthorized, "no")),
            2..4 => Vec::new(),
            4..60 => {
                let input = json!({"file_path": format!("d{folder}/{what}.txt")});
                vec![self.call(&format!("read-{what}-{folder}"), "Read", &input)]
            }
            60..68 => {
                let number = self.calls.load(Ordering::Relaxed);
                let input = json!({"file_path": format!("own/{number}.txt"), "content": format!("own-{number}\n")});
                vec![self.call("own", "Write", &input)]
            }
            68..78 => {
                let ms = moment(&self.dice).as_millis() as u64;
                vec![self.call("work", "Work", &json!({"ms": ms}))]
            }
            78..82 => vec![self.call("commit", "Commit", &json!({}))],
            82..86 => {
                let to = self.any_name().unwrap_or_default();
                let input = json!({"to": to, "message": "Go on with this."});
                vec![self.call("send", "SendMessage", &input)]
            }
            _ => vec![Block::text("Done.")],
        })
    }

    /// What follows on what was read: one more in a counter, or a line in a list.
    fn change(&self, read: &str, text: &str) -> Block {
        let parts: Vec<&str> = read.split('-').collect();
        let path = format!("d{}/{}.txt", parts[2], parts[1]);
        let lines = text.lines().filter_map(|line| {
            let (number, line) = line.split_once('\t')?;
            number.trim().parse::<u64>().ok().map(|_| line)
        });
        let lines: Vec<&str> = lines.collect();
        if parts[1] == "count" {
            let count: u64 = lines[0]["count: ".len()..]
                .trim_end_matches(';')
                .parse()
                .unwrap();
            let input = json!({
                "file_path": path,
                "old_string": format!("count: {count};"),
                "new_string": format!("count: {};", count + 1),
            });
            return self.call("count", "Edit", &input);
        }
        let number = self.calls.load(Ordering::Relaxed);
        let line = format!("line-{number}");
        if self.is(50) {
            let last = lines.last().unwrap();
            let input = json!({
                "file_path": path,
                "old_string": format!("{last}\n"),
                "new_string": format!("{last}\n{line}\n"),
            });
            return self.call("line", "Edit", &input);
        }
        let content = format!("{}\n{line}\n", lines.join("\n"));
        self.call(
            "line",
            "Write",
            &json!({"file_path": path, "content": content}),
        )
    }

    fn says(&self, who: &Who, last: &Message) -> Result<Answer, ModelError> {
        let is_main = who.name.as_str() == "main";
        let turn = {
            let mut turns = self.turns.lock().unwrap();
            let turn = turns.entry(who.id).or_default();
            *turn += 1;
            *turn
        };
        let is_over = self.is_calm.load(Ordering::Relaxed) || (turn % MOST_TURNS == 0 && !is_main);
        let blocks = match (is_over, is_main) {
            (true, _) => vec![Block::text("Done.")],
            (false, true) => self.leads(),
            (false, false) => self.works(last)?,
        };
        let calls = blocks.iter().any(|it| matches!(it, Block::ToolUse(_)));
        let blocks = match (blocks.is_empty(), is_main) {
            (true, true) => vec![Block::text("Noted.")],
            _ => blocks,
        };
        Ok(Answer {
            blocks,
            stop: match calls {
                true => StopReason::ToolUse,
                false => StopReason::EndTurn,
            },
            usage: Usage {
                input: 30 + roll(&self.dice, 61),
                output: 10 + roll(&self.dice, 51),
                ..Usage::default()
            },
            model: "scripted".into(),
        })
    }
}

impl Model for Mind {
    fn name(&self) -> &str {
        "scripted"
    }

    fn open(&self, prefix: &Prefix, who: Who) -> Conversation {
        self.opener.open(prefix, who)
    }

    fn answer<'a>(
        &'a self,
        conversation: &'a Conversation,
        _: &'a mut DeltaSink<'_>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.diary.asked(conversation.who().id);
        Box::pin(async move {
            tokio::time::sleep(moment(&self.dice)).await;
            let body = conversation.request().to_vec();
            let mut lines = body.split(|byte| *byte == b'\n');
            let last = lines.rfind(|line| !line.is_empty()).unwrap();
            let last: Message = serde_json::from_slice(last).unwrap();
            self.says(conversation.who(), &last)
        })
    }
}
