//! What an agent's tools may use: folders, variables, and the sandbox of its commands.

use crate::args::{Common, SandboxMode, Switch};
use crate::exit::Usage;
use crate::settings::SandboxSettings;
use crate::system;
use anyhow::Context as _;
use gaffer_protocol::AgentId;
use gaffer_store::SessionFolder;
use gaffer_tools::permission::{Mode, Policy};
use gaffer_tools::{Context, Guard, Sandbox};
use gaffer_workspace::fence::{Access, Fence};
use gaffer_workspace::sandbox::{Binding, git_paths, is_supported};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Variables that the model's commands have no business with.
pub(crate) const HIDDEN: [&str; 3] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GAFFER_HOME"];

#[derive(Debug, Clone, Default)]
pub(crate) struct Limits {
    /// Further folders that may be read and written.
    pub(crate) add_dirs: Vec<PathBuf>,
    /// Further folders that commands may write.
    allow_write: Vec<PathBuf>,
    sandboxed: bool,
    network: bool,
    policy: Option<Policy>,
}

impl Limits {
    /// The command line's word, then the settings', then the defaults: a sandbox where the system
    /// has one, with the network.
    pub(crate) fn choose(common: &Common, settings: &SandboxSettings) -> Result<Self, Usage> {
        let mode = common.sandbox.or(settings.mode).unwrap_or_default();
        let sandboxed = mode != SandboxMode::Off && is_supported();
        if mode == SandboxMode::Require && !sandboxed {
            return Err(Usage::new(NO_SANDBOX));
        }
        if mode == SandboxMode::Auto && !sandboxed {
            system::say(&format!("gaffer: {NO_SANDBOX}"));
        }
        let mut add_dirs = Vec::new();
        for folder in &common.add_dir {
            let wrong = |why: String| Usage::new(format!("--add-dir {}: {why}", folder.display()));
            let found = folder
                .canonicalize()
                .map_err(|error| wrong(error.to_string()))?;
            if !found.is_dir() {
                return Err(wrong("not a folder".to_owned()));
            }
            add_dirs.push(found);
        }
        let network = common.sandbox_network.map(|switch| switch == Switch::On);
        Ok(Self {
            add_dirs,
            allow_write: settings.allow_write.clone(),
            sandboxed,
            network: network.or(settings.network).unwrap_or(true),
            policy: None,
        })
    }

    /// The same under a policy.
    pub(crate) fn under(self, policy: Policy) -> Self {
        Self {
            policy: Some(policy),
            ..self
        }
    }

    /// The name of the permission mode in force.
    pub(crate) fn permission_mode(&self) -> &'static str {
        let mode = self.policy.as_ref().map(Policy::effective_mode);
        mode.unwrap_or(Mode::BypassPermissions).as_str()
    }

    pub(crate) fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    /// The surroundings of an agent that works in a folder and may also read some others.
    pub(crate) fn context<'a>(
        &'a self,
        cwd: &'a Path,
        readable: impl Iterator<Item = &'a Path>,
        folder: &SessionFolder,
        id: AgentId,
    ) -> anyhow::Result<Context> {
        let spill = folder.path().join("results");
        let temp = folder.path().join(format!("{id}.tmp"));
        for path in [&spill, &temp] {
            std::fs::create_dir_all(path)
                .with_context(|| format!("cannot create {}", path.display()))?;
        }
        let program = std::env::current_exe().context("cannot find the program itself")?;
        let mut context = Context::in_folder(cwd, &spill, &temp, &program);
        let mut roots: Vec<(&Path, Access)> = vec![(cwd, Access::Write)];
        roots.extend(
            self.add_dirs
                .iter()
                .map(|dir| (dir.as_path(), Access::Write)),
        );
        roots.extend([
            (temp.as_path(), Access::Write),
            (spill.as_path(), Access::Read),
        ]);
        roots.extend(readable.map(|folder| (folder, Access::Read)));
        context.fence = Fence::new(roots);
        context.hidden = HIDDEN.map(str::to_owned).into();
        if let Some(policy) = &self.policy {
            let mut policy = policy.clone();
            policy.sandboxed = self.sandboxed;
            policy.roots = context.fence.roots().map(Path::to_owned).collect();
            context.guard = Some(Guard::new(Arc::new(policy)));
        }
        if self.sandboxed {
            let mut write = vec![cwd.to_owned(), temp];
            write.extend(self.add_dirs.iter().chain(&self.allow_write).cloned());
            // In the user's own checkout an agent may commit.
            write.extend(git_paths(cwd, OsStr::new("refs")));
            let binding = Binding {
                write,
                network: self.network,
            };
            context.sandbox = Some(Sandbox { program, binding });
        }
        Ok(context)
    }
}

const NO_SANDBOX: &str = "this system has no sandbox (Landlock, Linux 5.13 or newer): commands may write wherever you may; --sandbox off says that this is all right";
