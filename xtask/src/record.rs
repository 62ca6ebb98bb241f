//! The demo as one sees it in a terminal: recorded for players, and drawn for the README.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::cast::Cast;
use crate::film;
use crate::process::{Invocation, root};
use crate::say;

const CAST: &str = "docs/demo.cast";
const FILM: &str = "docs/demo.svg";
const SIZE: (u16, u16) = (96, 30);
/// What the README says to type.
const TYPED: &str = "$ gaffer demo\r\n";
/// How long what was typed is seen before anything comes of it.
const BEFORE: u64 = 800;

/// Records the demo, and draws what was recorded.
pub(crate) fn record() -> Result<(), String> {
    let program = build()?;
    let place = Place::new("gaffer-recording")?;
    let folder = place.0.join("till").display().to_string();
    let demo = Invocation::new(&program, &["demo", "--dir", &folder])
        .with("GAFFER_HOME", &place.0.join("home").display().to_string());
    let (began, mut bytes) = (Instant::now(), Vec::new());
    let mut events = vec![(0, TYPED.to_owned())];
    demo.run_in_terminal(SIZE, |printed| {
        bytes.extend_from_slice(printed);
        let at = BEFORE + u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some(text) = take_text(&mut bytes) {
            events.push((at, text));
        }
    })?;
    let cast = Cast {
        columns: SIZE.0.into(),
        rows: SIZE.1.into(),
        title: "gaffer demo".to_owned(),
        events,
    };
    write(CAST, &cast.text())?;
    draw()
}

/// Draws what is recorded.
pub(crate) fn draw() -> Result<(), String> {
    write(FILM, &drawn()?)
}

/// The recording in the tree as a picture.
fn drawn() -> Result<String, String> {
    let text = fs::read_to_string(root().join(CAST)).map_err(|error| format!("{CAST}: {error}"))?;
    let cast = Cast::parse(&text).map_err(|why| format!("{CAST}: {why}"))?;
    Ok(film::svg(&cast))
}

fn write(file: &str, text: &str) -> Result<(), String> {
    fs::write(root().join(file), text).map_err(|error| format!("{file}: {error}"))?;
    say::note(&format!("wrote {file}, {} kB", text.len().div_ceil(1000)));
    Ok(())
}

/// The program as it is now, and where it is.
pub(crate) fn build() -> Result<String, String> {
    Invocation::cargo(&["build", "-q", "--locked", "-p", "gaffer"]).run()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let program = root().join(target).join("debug/gaffer");
    Ok(program.display().to_string())
}

/// A folder of our own that goes when it is not needed any more.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    /// Its name can be seen in what is made there, so it is the same each time.
    pub(crate) fn new(name: &str) -> Result<Self, String> {
        let place = Self(std::env::temp_dir().join(name));
        place.clear();
        fs::create_dir_all(&place.0).map_err(|error| format!("{}: {error}", place.0.display()))?;
        Ok(place)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn clear(&self) {
        drop(fs::remove_dir_all(Path::new(&self.0)));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The whole characters among these bytes; one that was cut waits for its rest.
fn take_text(bytes: &mut Vec<u8>) -> Option<String> {
    let whole = match std::str::from_utf8(bytes) {
        Ok(text) => text.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => bytes.len(),
    };
    let text = String::from_utf8_lossy(&bytes[..whole]).into_owned();
    bytes.drain(..whole);
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_in_the_tree_is_sound_and_the_picture_is_made_from_it() {
        let svg = drawn().unwrap();
        let stored = fs::read_to_string(root().join(FILM)).unwrap();
        assert!(
            stored == svg,
            "{FILM} is stale: run `cargo xtask record --draw`"
        );
        assert!(svg.len() < 300_000, "{}", svg.len());
        // It shows the whole demo: what is typed, the crew, and the end.
        for seen in ["$ gaffer demo", "[verifier] ■", "The transcript: "] {
            assert!(svg.contains(seen), "{seen}");
        }
    }

    #[test]
    fn a_character_that_was_cut_waits_for_its_rest() {
        let mut bytes = "aé".as_bytes()[..2].to_vec();
        assert_eq!(take_text(&mut bytes).as_deref(), Some("a"));
        assert_eq!(take_text(&mut bytes), None);
        bytes.push(0xa9);
        assert_eq!(take_text(&mut bytes).as_deref(), Some("é"));
        bytes.push(0xff);
        assert_eq!(take_text(&mut bytes).as_deref(), Some("\u{fffd}"));
    }
}
