//! Recordings of a terminal in asciinema's format, version 2: a line with the size, then a line for
//! each thing that was printed.

use serde_json::{Value, json};

#[derive(Debug, PartialEq)]
pub(crate) struct Cast {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    pub(crate) title: String,
    /// What was printed, and after how many milliseconds.
    pub(crate) events: Vec<(u64, String)>,
}

impl Cast {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let head = lines.next().ok_or("it is empty")?;
        let head: Value = serde_json::from_str(head).map_err(|error| format!("line 1: {error}"))?;
        if head["version"] != 2 {
            return Err("line 1: its version is not 2".to_owned());
        }
        let size = |key: &str| {
            let size = head[key].as_u64().filter(|size| (1..1000).contains(size));
            let size = size.and_then(|size| usize::try_from(size).ok());
            size.ok_or_else(|| format!("line 1: no sound {key}"))
        };
        let (columns, rows) = (size("width")?, size("height")?);
        let mut events: Vec<(u64, String)> = Vec::new();
        for (number, line) in (2..).zip(lines) {
            let event = event(line).ok_or_else(|| format!("line {number}: no event"))?;
            if events.last().is_some_and(|(last, _)| *last > event.0) {
                return Err(format!("line {number}: earlier than the line before"));
            }
            events.push(event);
        }
        Ok(Self {
            columns,
            rows,
            title: head["title"].as_str().unwrap_or_default().to_owned(),
            events,
        })
    }

    pub(crate) fn text(&self) -> String {
        let head = json!({
            "version": 2,
            "width": self.columns,
            "height": self.rows,
            "title": self.title,
            "env": { "TERM": "xterm-256color" },
        });
        let mut out = format!("{head}\n");
        for (ms, data) in &self.events {
            let event = json!([*ms as f64 / 1000.0, "o", data]);
            out.push_str(&format!("{event}\n"));
        }
        out
    }
}

fn event(line: &str) -> Option<(u64, String)> {
    let event: Value = serde_json::from_str(line).ok()?;
    let [seconds, kind, data] = event.as_array()?.as_slice() else {
        return None;
    };
    let seconds = seconds.as_f64().filter(|it| (0.0..1e6).contains(it))?;
    let is_output = kind == "o";
    let data = data.as_str().filter(|_| is_output)?;
    Some(((seconds * 1000.0).round() as u64, data.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let cast = Cast {
            columns: 80,
            rows: 24,
            title: "a \"demo\"".to_owned(),
            events: vec![(0, "$ x\r\n".to_owned()), (1250, "\u{1b}[1mé".to_owned())],
        };
        assert_eq!(Cast::parse(&cast.text()), Ok(cast));
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        let head = "{\"version\": 2, \"width\": 80, \"height\": 24}";
        for (text, why) in [
            (String::new(), "it is empty"),
            (
                "{\"version\": 1}".to_owned(),
                "line 1: its version is not 2",
            ),
            ("{\"version\": 2}".to_owned(), "line 1: no sound width"),
            (format!("{head}\n[1, \"o\"]"), "line 2: no event"),
            (format!("{head}\n[-1, \"o\", \"\"]"), "line 2: no event"),
            (
                format!("{head}\n[2, \"o\", \"\"]\n[1, \"o\", \"\"]"),
                "line 3: earlier than the line before",
            ),
        ] {
            assert_eq!(Cast::parse(&text), Err(why.to_owned()), "{text}");
        }
    }
}
