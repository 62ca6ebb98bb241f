//! Keys while the crew or a question has them.

use super::Commands;
use crate::app::{App, Focus, Page};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use gaffer_protocol::{Command, Permission};

/// What can be answered to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Once,
    /// With this rule, further calls are not asked about.
    Always(String),
    Deny,
    DenyWithWords,
}

impl App {
    pub(super) fn look_at_crew(&mut self) {
        if self.model.workers().next().is_none() {
            self.hint = Some("there are no workers yet".to_owned());
            return;
        }
        self.page = Page::Talk;
        self.focus = Focus::Crew;
        // There is nobody else to choose.
        self.crew.shows_ended |= self.running().is_empty();
        let is_known = self
            .crew
            .chosen
            .is_some_and(|id| self.model.agent(id).is_some());
        if !is_known || self.opened.is_some() {
            let first = self.model.workers().next().map(|worker| worker.id);
            self.crew.chosen = self.opened.or(self.crew.order.first().copied()).or(first);
        }
    }

    pub(super) fn crew_key(&mut self, key: KeyEvent) -> Commands {
        let chosen = self.crew.chosen;
        match key.code {
            KeyCode::Esc | KeyCode::Tab | KeyCode::Char('q') => self.focus = Focus::Input,
            KeyCode::Up | KeyCode::Char('k') => self.choose_agent(-1),
            KeyCode::Down | KeyCode::Char('j') => self.choose_agent(1),
            KeyCode::Home => self.choose_agent(isize::MIN),
            KeyCode::End => self.choose_agent(isize::MAX),
            KeyCode::Enter | KeyCode::Right => self.open(chosen),
            KeyCode::Char('f') => self.crew.shows_ended = !self.crew.shows_ended,
            KeyCode::Char('x') => {
                let worker = chosen.filter(|id| Some(*id) != self.model.main_id());
                return worker.map_or_else(Vec::new, |worker| self.stop(worker, "x"));
            }
            KeyCode::Char('i') => {
                let agent = chosen.filter(|id| Some(*id) != self.model.main_id());
                return vec![Command::Interrupt { agent }];
            }
            _ => {}
        }
        Vec::new()
    }

    fn choose_agent(&mut self, by: isize) {
        self.stopping = None;
        let order = &self.crew.order;
        let at = order.iter().position(|id| Some(*id) == self.crew.chosen);
        let last = order.len().saturating_sub(1);
        let at = match at {
            Some(at) => at.saturating_add_signed(by).min(last),
            None => 0,
        };
        if let Some(id) = order.get(at) {
            self.crew.chosen = Some(*id);
        }
    }

    /// The answers that this question has, with their keys.
    pub(crate) fn replies(&self) -> Vec<(char, Reply)> {
        let Some(parked) = self.question() else {
            return Vec::new();
        };
        let mut replies = vec![('y', Reply::Once)];
        let keys = ['a', '2', '3', '4', '5', '6', '7', '8', '9'];
        let rules = parked.question.suggestions.iter();
        replies.extend(
            keys.into_iter()
                .zip(rules)
                .map(|(key, rule)| (key, Reply::Always(rule.clone()))),
        );
        replies.push(('n', Reply::Deny));
        replies.push(('d', Reply::DenyWithWords));
        replies
    }

    pub(super) fn question_key(&mut self, key: KeyEvent) -> Commands {
        let replies = self.replies();
        if replies.is_empty() {
            self.focus = Focus::Input;
            return Vec::new();
        }
        let has_modifier = key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let last = replies.len() - 1;
        let reply = match key.code {
            KeyCode::Esc => {
                self.focus = Focus::Input;
                self.asking.is_put_off = true;
                self.hint = Some("the question waits; Ctrl-O comes back to it".to_owned());
                None
            }
            KeyCode::Up => {
                self.asking.chosen = self.asking.chosen.saturating_sub(1);
                None
            }
            KeyCode::Down => {
                self.asking.chosen = (self.asking.chosen + 1).min(last);
                None
            }
            KeyCode::Tab => {
                self.following_question();
                None
            }
            KeyCode::Enter => replies.get(self.asking.chosen.min(last)),
            KeyCode::Char(c) if !has_modifier => replies.iter().find(|(key, _)| *key == c),
            _ => None,
        };
        let Some((_, reply)) = reply else {
            return Vec::new();
        };
        if self.now < self.asking.armed_at {
            self.hint = Some("this question has just come: press again".to_owned());
            return Vec::new();
        }
        let permission = match reply.clone() {
            Reply::Once => Permission::Allow { rules: Vec::new() },
            Reply::Always(rule) => Permission::Allow { rules: vec![rule] },
            Reply::Deny => Permission::Deny {
                message: String::new(),
            },
            Reply::DenyWithWords => {
                self.asking.is_denying = true;
                self.put_aside = Some(std::mem::take(&mut self.editor));
                self.focus = Focus::Input;
                return Vec::new();
            }
        };
        self.answer(permission)
    }

    fn following_question(&mut self) {
        let all = &self.model.questions;
        let at = all
            .iter()
            .position(|parked| Some(parked.question.number) == self.asking.number);
        let next = at.map_or(0, |at| (at + 1) % all.len().max(1));
        if let Some(parked) = all.get(next) {
            self.asking.number = Some(parked.question.number);
            self.asking.chosen = 0;
            self.down = 0;
        }
    }

    /// The first answer counts, so the question goes from the screen at once.
    pub(super) fn answer(&mut self, permission: Permission) -> Commands {
        let Some(number) = self.asking.number else {
            return Vec::new();
        };
        self.model
            .questions
            .retain(|parked| parked.question.number != number);
        self.focus = Focus::Question;
        self.next_question();
        vec![Command::Answer { number, permission }]
    }
}
