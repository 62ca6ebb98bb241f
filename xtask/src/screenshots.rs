//! Pictures of an exported session for the documentation, as a browser shows it.

use std::fs;
use std::path::Path;

use crate::process::{Invocation, root};
use crate::record::{Place, build};
use crate::say;

const FOLDER: &str = "docs/pictures";
/// Larger ones do not belong in the tree.
const LARGEST: u64 = 150_000;
const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// A picture: its name, its size, and how the page is seen in it.
struct Shot {
    name: &'static str,
    size: (u32, u32),
    is_dark: bool,
    /// What of the page comes first.
    anchor: &'static str,
}

const SHOTS: [Shot; 3] = [
    Shot {
        name: "export.png",
        size: (960, 1080),
        is_dark: false,
        anchor: "",
    },
    Shot {
        name: "export-dark.png",
        size: (960, 620),
        is_dark: true,
        anchor: "#timeline",
    },
    Shot {
        name: "export-phone.png",
        size: (400, 760),
        is_dark: false,
        anchor: "#timeline",
    },
];

/// Runs the demo, exports it, and takes the pictures.
pub(crate) fn make() -> Result<(), String> {
    let works = |name: &&&str| Invocation::new(name, &["--version"]).works();
    let browser = BROWSERS.iter().find(works).ok_or_else(|| {
        format!(
            "no browser: install chromium (one of {} has to be on the PATH)",
            BROWSERS.join(", ")
        )
    })?;
    let program = build()?;
    let place = Place::new("gaffer-pictures")?;
    let path = |name: &str| place.path(name).display().to_string();
    let (folder, home, page) = (path("till"), path("home"), path("demo.html"));
    let gaffer =
        |arguments: &[&str]| Invocation::new(&program, arguments).with("GAFFER_HOME", &home);
    gaffer(&["demo", "--dir", &folder]).output()?;
    // The demo's script is paid by nobody; the page of real work has figures.
    let settings = path("settings.json");
    write(
        Path::new(&settings),
        r#"{"prices": {"scripted": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}}}"#,
    )?;
    gaffer(&[
        "export",
        "--cwd",
        &folder,
        "--settings",
        &settings,
        "-o",
        &page,
    ])
    .run()?;
    let pictures = root().join(FOLDER);
    fs::create_dir_all(&pictures).map_err(|error| format!("{FOLDER}: {error}"))?;
    for shot in &SHOTS {
        take(browser, &place, shot)?;
    }
    Ok(())
}

fn take(browser: &str, place: &Place, shot: &Shot) -> Result<(), String> {
    let Shot { name, anchor, .. } = shot;
    let (width, height) = shot.size;
    // A browser's window has a smallest width; a frame in it has none.
    let frame = place.path("frame.html");
    let scheme = if shot.is_dark { "dark" } else { "light" };
    write(
        &frame,
        &format!(
            "<!doctype html><meta name=\"color-scheme\" content=\"{scheme}\"><body style=\"margin:0;color-scheme:{scheme}\"><iframe src=\"demo.html{anchor}\" width=\"{width}\" height=\"{height}\" style=\"border:0;color-scheme:{scheme}\"></iframe>"
        ),
    )?;
    let file = root().join(FOLDER).join(name);
    let options = [
        "--headless=new".to_owned(),
        "--no-sandbox".to_owned(),
        "--disable-gpu".to_owned(),
        "--hide-scrollbars".to_owned(),
        "--force-prefers-reduced-motion".to_owned(),
        "--allow-file-access-from-files".to_owned(),
        format!("--user-data-dir={}", place.path("browser").display()),
        format!("--window-size={width},{height}"),
        format!("--screenshot={}", file.display()),
        format!("file://{}", frame.display()),
    ];
    let invocation = Invocation::new(browser, &[]).and(&options);
    invocation.run_into(&place.path("browser.log"), || {})?;
    let size = fs::metadata(&file).map_err(|error| format!("{FOLDER}/{name}: {error}"))?;
    if size.len() > LARGEST {
        return Err(format!(
            "{FOLDER}/{name} has {} bytes: too large",
            size.len()
        ));
    }
    say::note(&format!("wrote {FOLDER}/{name}, {} kB", size.len() / 1000));
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
