//! The real binary: built, found, and started in a folder of its own.

use crate::process::{command, own};
use crate::say;
use anyhow::{Context, ensure};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Answers where the binary is. Under cargo it is built each time: an old binary would give the
/// figures of old code.
pub(crate) fn binary() -> anyhow::Result<PathBuf> {
    // Both binaries are built by the same profile into the same folder.
    let path = Path::new(own(&[])?.get_program()).with_file_name("gaffer");
    match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(folder) => build(Path::new(&folder))?,
        None => say::note("bench: not run by cargo, so gaffer is measured as it was built last"),
    }
    ensure!(path.is_file(), "there is no {}", path.display());
    Ok(path)
}

fn build(folder: &Path) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = command(cargo);
    build
        .args(["build", "--quiet", "--package", "gaffer"])
        .current_dir(folder);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    // `cargo run` describes this crate in these. Build scripts that watch them (that of ring, for
    // one) would be run anew, and half of the build behind them.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            build.env_remove(&name);
        }
    }
    let status = build.status().context("cannot start cargo")?;
    ensure!(status.success(), "gaffer does not build");
    Ok(())
}

/// The binary with one prompt, an empty home and nothing of the environment that could change
/// what it does.
pub(crate) fn headless(binary: &Path, folder: &Path, server: SocketAddr) -> Command {
    in_mode("normal", binary, folder, server)
}

/// The same as a crew, with places for so many workers.
pub(crate) fn crew(binary: &Path, folder: &Path, server: SocketAddr, places: u64) -> Command {
    let mut gaffer = in_mode("coordinator", binary, folder, server);
    gaffer.args(["--max-workers", &places.to_string()]);
    gaffer
}

fn in_mode(mode: &str, binary: &Path, folder: &Path, server: SocketAddr) -> Command {
    let mut gaffer = command(binary);
    gaffer
        .args(["-p", "hi", "--provider", "anthropic", "--mode", mode])
        .env_clear()
        .env("HOME", folder)
        .env("ANTHROPIC_BASE_URL", format!("http://{server}"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    gaffer
}
