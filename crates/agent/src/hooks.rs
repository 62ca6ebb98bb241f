//! Where an agent's own steps meet the user's hooks: a prompt that comes in, a
//! compaction, and the end.

use crate::agent::Agent;
use gaffer_protocol::{Block, End, EventKind, Origin, Trigger};
use gaffer_tools::hook::{AgentHooks, EventKind as Kind, Moment, Source};

/// So often in a row hooks may make an agent go on. Whoever never lets go must not burn money.
const MOST_HOLDS: u32 = 8;

/// What hooks say to an agent that wants to end.
pub(crate) enum Leave {
    Granted,
    /// It goes on, with this.
    Held(Block),
}

impl Agent {
    /// Shows prompts of the user's to hooks. Blocks that they add stand behind the prompt.
    pub(crate) async fn show_prompts(&self, blocks: &mut Vec<Block>) -> Result<(), End> {
        let Some(hooks) = self.hooks(Kind::UserPromptSubmit) else {
            return Ok(());
        };
        let mut added = Vec::new();
        for block in blocks.iter() {
            let prompt = match block {
                Block::Text(text) if text.origin == Some(Origin::Human) => text.text.clone(),
                _ => continue,
            };
            let moment = Moment::UserPromptSubmit { prompt };
            let merged = hooks.at(self.cwd(), moment).await;
            let refused = merged.blocked().map(str::to_owned);
            if let Some(why) = merged.stop.or(refused) {
                return Err(End::Denied(format!("a hook refused the prompt: {why}")));
            }
            added.extend(merged.context.map(|text| Block::from(Origin::Hook, text)));
        }
        blocks.extend(added);
        Ok(())
    }

    /// Asks hooks whether the agent may end with these words.
    pub(crate) async fn ask_leave(&self, held: u32, last_words: &str) -> Leave {
        let worker = self.hooks(Kind::SubagentStop);
        let worker = worker.and_then(|hooks| Some((hooks, hooks.worker()?)));
        let is_worker = self.all_hooks().is_some_and(|it| it.worker().is_some());
        let own = self.hooks(Kind::Stop).filter(|_| !is_worker);
        let stop_hook_active = held > 0;
        let last_assistant_message = last_words.to_owned();
        let (hooks, moment) = match (worker, own) {
            (Some((hooks, agent_type)), _) => {
                let moment = Moment::SubagentStop {
                    stop_hook_active,
                    agent_id: hooks.agent().to_string(),
                    agent_type: agent_type.to_owned(),
                    agent_transcript_path: hooks.transcript().to_owned(),
                    last_assistant_message,
                };
                (hooks, moment)
            }
            (None, Some(hooks)) => {
                let moment = Moment::Stop {
                    stop_hook_active,
                    last_assistant_message,
                    background_tasks: Vec::new(),
                    session_crons: Vec::new(),
                };
                (hooks, moment)
            }
            (None, None) => return Leave::Granted,
        };
        let merged = hooks.at(self.cwd(), moment).await;
        match merged.blocked() {
            _ if merged.stop.is_some() => Leave::Granted,
            None => Leave::Granted,
            Some(why) if held >= MOST_HOLDS => {
                let text = format!(
                    "hooks kept the agent from ending {MOST_HOLDS} times in a row; it ends now. The last one said: {why}"
                );
                self.emit(EventKind::Notice(text));
                Leave::Granted
            }
            Some(why) => Leave::Held(Block::from(Origin::Hook, why)),
        }
    }

    /// Asks hooks whether the conversation may be compacted; why not, if they refuse.
    pub(crate) async fn before_compaction(
        &self,
        trigger: Trigger,
        wish: Option<&str>,
    ) -> Result<(), String> {
        let Some(hooks) = self.hooks(Kind::PreCompact) else {
            return Ok(());
        };
        let moment = Moment::PreCompact {
            trigger,
            custom_instructions: wish.map(str::to_owned),
        };
        let merged = hooks.at(self.cwd(), moment).await;
        let refused = merged.blocked().map(str::to_owned);
        merged.stop.or(refused).map_or(Ok(()), Err)
    }

    /// What hooks have to say to a session that begins anew after a compaction.
    pub(crate) async fn greet_again(&self) -> Option<String> {
        let hooks = self.hooks(Kind::SessionStart)?;
        if hooks.worker().is_some() {
            return None;
        }
        let moment = Moment::SessionStart {
            source: Source::Compact,
            model: Some(self.parts.model.name().to_owned()),
            session_title: None,
        };
        hooks.at(self.cwd(), moment).await.context
    }

    /// Tells hooks that it was compacted, and with which summary.
    pub(crate) async fn after_compaction(&self, trigger: Trigger, compact_summary: String) {
        if let Some(hooks) = self.hooks(Kind::PostCompact) {
            let moment = Moment::PostCompact {
                trigger,
                compact_summary,
            };
            hooks.at(self.cwd(), moment).await;
        }
    }

    fn hooks(&self, kind: Kind) -> Option<&AgentHooks> {
        self.all_hooks().filter(|hooks| hooks.has(kind))
    }
}
