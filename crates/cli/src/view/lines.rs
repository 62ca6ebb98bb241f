//! What agents do, a line each, where there is no terminal to draw on.

use super::View;
use super::board::{About, Board, Said};
use super::words::first_line;
use gaffer_protocol::Event;
use std::io::Write;

#[derive(Debug, Default)]
pub(crate) struct Lines(Board);

impl View for Lines {
    fn event(&mut self, event: &Event) {
        let mut out = std::io::stdout().lock();
        for text in self.0.take(event).iter().filter_map(text) {
            drop(writeln!(out, "{text}"));
        }
    }
}

fn text(said: &Said) -> Option<String> {
    let name = said.who.as_ref().map(|who| format!("[{who}] "));
    let name = name.unwrap_or_default();
    let (first, more) = first_line(&said.text);
    Some(match said.about {
        About::Session | About::Fine | About::Reasoning => return None,
        About::Words if name.is_empty() => format!("  {}", said.text.trim_end()),
        About::Words => format!("{name}{}", said.text.trim_end()),
        // The name says enough.
        About::Started | About::Ended => format!("{name}{first}{more}"),
        about => format!("{name}{} {first}{more}", about.mark()),
    })
}
