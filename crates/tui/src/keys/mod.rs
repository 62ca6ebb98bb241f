//! Keys: what each does where, and the commands that come of them.

pub(crate) mod complete;
pub(crate) mod editor;
pub(crate) mod history;
pub(crate) mod lists;
pub(crate) mod slash;
#[cfg(test)]
mod tests;

use crate::app::{App, Focus, Page};
use crate::words::count;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use editor::To;
use gaffer_protocol::{AgentId, Command, Permission, Timestamp};
use slash::Wish;

type Commands = Vec<Command>;

impl App {
    /// What comes of a key.
    pub(crate) fn key(&mut self, key: KeyEvent, now: Timestamp) -> Commands {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        self.tick(now);
        self.hint = None;
        let has_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        if has_ctrl && key.code == KeyCode::Char('c') {
            return self.ctrl_c();
        }
        self.is_leaving = false;
        let commands = self.anywhere(key).unwrap_or_else(|| match self.focus {
            Focus::Question => self.question_key(key),
            Focus::Crew => self.crew_key(key),
            Focus::Input => self.input_key(key),
        });
        self.last_key = now;
        commands
    }

    /// What was pasted as a whole.
    pub(crate) fn paste(&mut self, text: &str) {
        self.is_leaving = false;
        if self.focus == Focus::Input {
            self.editor.paste(text);
            self.complete();
        }
    }

    /// The first clears what was written, or asks; the next leaves.
    fn ctrl_c(&mut self) -> Commands {
        if !self.editor.is_empty() {
            self.editor.clear();
            self.completion = None;
            self.hint = Some("cleared; Ctrl-Y puts it back".to_owned());
            return Vec::new();
        }
        if self.is_leaving {
            return self.quit();
        }
        self.is_leaving = true;
        Vec::new()
    }

    fn quit(&mut self) -> Commands {
        self.has_quit = true;
        vec![Command::Quit]
    }

    /// Keys that mean the same everywhere.
    fn anywhere(&mut self, key: KeyEvent) -> Option<Commands> {
        let has_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let has_shift = key.modifiers.contains(KeyModifiers::SHIFT);
        let page = i32::try_from(self.page_height).unwrap_or(10).max(2) - 1;
        match key.code {
            KeyCode::PageUp => self.scroll(-page),
            KeyCode::PageDown => self.scroll(page),
            KeyCode::Up if has_shift => self.scroll(-1),
            KeyCode::Down if has_shift => self.scroll(1),
            KeyCode::Home if has_ctrl => self.scroll(i32::MIN / 2),
            KeyCode::End if has_ctrl => self.scroll(i32::MAX / 2),
            KeyCode::F(1) => self.show(Page::Help),
            KeyCode::F(2) => self.show(Page::Cost),
            KeyCode::Char('t') if has_ctrl => self.show(Page::Timeline),
            KeyCode::Char('l') if has_ctrl => self.wants_redraw = true,
            KeyCode::Char('z') if has_ctrl => self.wants_suspend = true,
            KeyCode::Char('o') if has_ctrl => self.look_at_questions(),
            KeyCode::Char('g') if has_ctrl => return Some(self.interrupt_seen()),
            _ => return None,
        }
        Some(Vec::new())
    }

    fn scroll(&mut self, by: i32) {
        if self.page != Page::Talk || self.focus == Focus::Question {
            let by_lines = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
            self.down = if by < 0 {
                self.down.saturating_sub(by_lines)
            } else {
                self.down.saturating_add(by_lines)
            };
            return;
        }
        let scroll = self.scrolls.entry(self.opened).or_default();
        scroll.pending = scroll.pending.saturating_add(by);
    }

    fn look_at_questions(&mut self) {
        if self.focus == Focus::Question {
            self.focus = Focus::Input;
            self.asking.is_put_off = true;
            return;
        }
        if self.question().is_none() {
            self.next_question();
        }
        if self.question().is_some() {
            self.focus = Focus::Question;
        } else {
            self.hint = Some("nobody asks anything".to_owned());
        }
    }

    /// Breaks off what the agent does that is looked at, and nobody else.
    fn interrupt_seen(&mut self) -> Commands {
        match self.seen_agent() {
            Some(agent) if agent.is_working() => {
                let name = agent.name.clone();
                self.hint = Some(format!("{name} is interrupted; the others go on"));
                vec![Command::Interrupt { agent: self.opened }]
            }
            Some(agent) => {
                self.hint = Some(format!("{} is not working", agent.name));
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// The first press asks, the second stops.
    pub(super) fn stop(&mut self, agent: AgentId, key: &str) -> Commands {
        let Some(worker) = self.model.agent(agent) else {
            return Vec::new();
        };
        let name = worker.name.clone();
        if worker.has_ended() {
            self.hint = Some(format!("{name} has ended"));
            return Vec::new();
        }
        if self.stopping == Some(agent) {
            self.stopping = None;
            self.hint = Some(format!("{name} is being stopped"));
            return vec![Command::Stop { agent }];
        }
        self.stopping = Some(agent);
        self.hint = Some(format!("{key} again stops {name}"));
        Vec::new()
    }

    fn escape(&mut self) -> Commands {
        if self.asking.is_denying {
            self.stop_denying();
            self.focus = Focus::Question;
        } else if self.page != Page::Talk {
            self.page = Page::Talk;
        } else if self.opened.is_some() {
            self.open(None);
        } else {
            return self.interrupt_seen();
        }
        Vec::new()
    }

    fn input_key(&mut self, key: KeyEvent) -> Commands {
        if self.completion.is_some() && self.completion_key(key) {
            return Vec::new();
        }
        let has_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let has_alt = key.modifiers.contains(KeyModifiers::ALT);
        let is_empty = self.editor.is_empty();
        match key.code {
            KeyCode::Esc => return self.escape(),
            KeyCode::Enter if has_alt || key.modifiers.contains(KeyModifiers::SHIFT) => {
                self.editor.insert("\n");
            }
            KeyCode::Enter if self.editor.breaks_line() => {}
            KeyCode::Enter => return self.send(),
            KeyCode::Char('j') if has_ctrl => self.editor.insert("\n"),
            KeyCode::Char('d') if has_ctrl && is_empty => {
                self.hint = Some("Ctrl-C leaves".to_owned());
            }
            KeyCode::Char('x') if has_ctrl => {
                return match self.opened {
                    Some(worker) => self.stop(worker, "Ctrl-X"),
                    None => Vec::new(),
                };
            }
            KeyCode::Char('p') if has_ctrl => self.look_back(),
            KeyCode::Char('n') if has_ctrl => self.look_forth(),
            KeyCode::Up if is_empty && self.page != Page::Talk => self.scroll(-1),
            KeyCode::Down if is_empty && self.page != Page::Talk => self.scroll(1),
            KeyCode::Up if !self.editor.go_line(true) => self.look_back(),
            KeyCode::Down if !self.editor.go_line(false) => self.look_forth(),
            KeyCode::Tab if is_empty => self.look_at_crew(),
            KeyCode::Char('?') if is_empty => self.show(Page::Help),
            _ => {
                if self.edit(key) {
                    self.complete();
                }
            }
        }
        Vec::new()
    }

    /// Keys that change the text or move in it. False if it was no such key.
    fn edit(&mut self, key: KeyEvent) -> bool {
        let has_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let has_alt = key.modifiers.contains(KeyModifiers::ALT);
        let editor = &mut self.editor;
        match key.code {
            KeyCode::Char('a') if has_ctrl => editor.go(To::Home),
            KeyCode::Char('e') if has_ctrl => editor.go(To::End),
            KeyCode::Char('b') if has_ctrl => editor.go(To::Left),
            KeyCode::Char('f') if has_ctrl => editor.go(To::Right),
            KeyCode::Char('d') if has_ctrl => editor.delete(To::Right),
            KeyCode::Char('h') if has_ctrl => editor.delete(To::Left),
            KeyCode::Char('w') if has_ctrl => editor.delete(To::WordLeft),
            KeyCode::Char('u') if has_ctrl => editor.delete(To::Home),
            KeyCode::Char('k') if has_ctrl => editor.delete(To::End),
            KeyCode::Char('y') if has_ctrl => editor.put_back(),
            KeyCode::Char('b') if has_alt => editor.go(To::WordLeft),
            KeyCode::Char('f') if has_alt => editor.go(To::WordRight),
            KeyCode::Char('d') if has_alt => editor.delete(To::WordRight),
            KeyCode::Char(c) if !has_ctrl && !has_alt => {
                editor.insert(c.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Left if has_ctrl || has_alt => editor.go(To::WordLeft),
            KeyCode::Right if has_ctrl || has_alt => editor.go(To::WordRight),
            KeyCode::Left => editor.go(To::Left),
            KeyCode::Right => editor.go(To::Right),
            KeyCode::Home => editor.go(To::Home),
            KeyCode::End => editor.go(To::End),
            KeyCode::Backspace if has_alt || has_ctrl => editor.delete(To::WordLeft),
            KeyCode::Backspace => editor.delete(To::Left),
            KeyCode::Delete => editor.delete(To::Right),
            _ => return false,
        }
        true
    }

    fn look_back(&mut self) {
        if let Some(text) = self.history.back(self.editor.text()) {
            self.editor.set(text);
        }
        self.completion = None;
    }

    fn look_forth(&mut self) {
        if let Some(text) = self.history.forth() {
            self.editor.set(text);
        }
        self.completion = None;
    }

    fn complete(&mut self) {
        let none = |_: &str| Vec::new();
        let files: &dyn Fn(&str) -> Vec<String> = match &self.options.files {
            Some(files) => files,
            None => &none,
        };
        let found = complete::find(self.editor.before(), &self.options.commands, files);
        self.completion = found.filter(|_| !self.asking.is_denying);
    }

    /// False if the key is not for the list.
    fn completion_key(&mut self, key: KeyEvent) -> bool {
        let Some(completion) = &mut self.completion else {
            return false;
        };
        match key.code {
            KeyCode::Up => completion.go(true),
            KeyCode::Down => completion.go(false),
            KeyCode::Esc => self.completion = None,
            KeyCode::Tab | KeyCode::Enter => {
                // A command that stands there whole is sent, not completed.
                let is_whole = |text: &str| text.trim_end() == self.editor.text();
                if key.code == KeyCode::Enter && completion.text().is_some_and(is_whole) {
                    self.completion = None;
                    return false;
                }
                if let Some(text) = completion.text() {
                    self.editor.complete(completion.from, text);
                }
                self.completion = None;
            }
            _ => return false,
        }
        true
    }

    fn send(&mut self) -> Commands {
        self.completion = None;
        if self.asking.is_denying {
            let message = self.editor.take();
            self.stop_denying();
            return self.answer(Permission::Deny { message });
        }
        if self.editor.text().trim().is_empty() {
            return Vec::new();
        }
        let text = self.editor.take();
        let text = text.trim_end();
        if self.history.add(text)
            && let Some(keep) = &mut self.options.keep
        {
            keep(text);
        }
        match slash::read(text, self.opened, &self.options.commands) {
            Some(wish) => self.wish(wish),
            None => {
                self.scrolls.remove(&self.opened);
                self.page = Page::Talk;
                self.model.unheard.push((self.opened, text.to_owned()));
                vec![Command::Say {
                    to: self.opened,
                    text: text.to_owned(),
                }]
            }
        }
    }

    fn wish(&mut self, wish: Wish) -> Commands {
        match wish {
            Wish::Help => self.page = Page::Help,
            Wish::Cost => self.page = Page::Cost,
            Wish::Timeline => self.page = Page::Timeline,
            Wish::Agents => self.look_at_crew(),
            Wish::Clear => {
                self.open(None);
                self.cleared = self.model.main().map_or(0, |main| main.transcript.end());
                self.scrolls.clear();
            }
            Wish::Quit => {
                let running = self.running().len();
                if running == 0 || self.is_leaving {
                    return self.quit();
                }
                self.is_leaving = true;
                let running = count(running, "worker");
                self.hint = Some(format!("{running} not ended: Ctrl-C leaves all the same"));
            }
            Wish::Do(command) => return vec![command],
            Wish::Unknown(name) => {
                let near = slash::near(&name, &self.options.commands);
                let near = match near.as_slice() {
                    [] => "/help lists what there is".to_owned(),
                    near => format!("did you mean {}?", near.join(" or ")),
                };
                self.hint = Some(format!("there is no /{name}: {near}"));
            }
        }
        self.down = 0;
        Vec::new()
    }
}
