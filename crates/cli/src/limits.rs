//! What an agent's tools may use: folders, variables, and the sandbox of its commands.

use crate::args::{Common, SandboxMode, Switch};
use crate::exit::Usage;
use crate::settings::SandboxSettings;
use crate::site::{Site, Sites};
use crate::system;
use anyhow::Context as _;
use gaffer_crew::PlanFirst;
use gaffer_protocol::{AgentId, AgentName};
use gaffer_store::SessionFolder;
use gaffer_tools::permission::{Mode, Policy, Role};
use gaffer_tools::question::Questions;
use gaffer_tools::{Context, Floor, Guard, Sandbox, Standing};
use gaffer_workspace::fence::{Access, Fence};
use gaffer_workspace::sandbox::{Binding, Level, git_paths, kept, kept_but, unmade};
use gaffer_workspace::scratchpad::Scratchpad;
use gaffer_workspace::worktree::Worktree;
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
    level: Option<Level>,
    network: bool,
    /// Whether a command may ask to run outside the sandbox.
    may_leave: bool,
    policy: Option<Policy>,
    /// Who answers questions; none where nobody can.
    questions: Option<Questions>,
    /// What the user says while the session goes on.
    standing: Standing,
    /// Nothing is changed before the user has approved it.
    plan: PlanFirst,
    /// With less free space than this nothing is kept of long outputs.
    floor: Floor,
    sites: Sites,
}

/// An agent that gets surroundings.
#[derive(Debug)]
pub(crate) struct Occupant<'a> {
    pub(crate) id: AgentId,
    pub(crate) name: &'a AgentName,
    pub(crate) cwd: &'a Path,
    /// Further folders that it may read, or write.
    pub(crate) readable: Vec<&'a Path>,
    pub(crate) writable: Vec<&'a Path>,
    pub(crate) folder: &'a SessionFolder,
    pub(crate) pad: &'a Scratchpad,
    /// What a worker's type asks for; none for the session's own agent.
    pub(crate) role: Option<Role>,
    /// The worktree that it works in, apart from the user's checkout.
    pub(crate) worktree: Option<&'a Worktree>,
}

impl Limits {
    /// The command line's word, then the settings', then the defaults: a sandbox where the system
    /// has one, with the network.
    pub(crate) fn choose(common: &Common, settings: &SandboxSettings) -> Result<Self, Usage> {
        let mode = common.sandbox.or(settings.mode).unwrap_or_default();
        let level = level(mode)?;
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
            level,
            network: network.or(settings.network).unwrap_or(true),
            may_leave: settings.allow_unsandboxed_commands.unwrap_or(false),
            policy: None,
            questions: None,
            standing: Standing::default(),
            plan: PlanFirst::default(),
            floor: Floor::default(),
            sites: Sites::default(),
        })
    }

    /// The same under a policy.
    pub(crate) fn under(self, policy: Policy) -> Self {
        Self {
            policy: Some(policy),
            ..self
        }
    }

    /// The same with a plan that is to be approved first.
    pub(crate) fn after(self, plan: PlanFirst) -> Self {
        Self { plan, ..self }
    }

    /// The same where somebody can be asked.
    pub(crate) fn asking(self, questions: Option<Questions>) -> Self {
        Self { questions, ..self }
    }

    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    pub(crate) fn plan(&self) -> &PlanFirst {
        &self.plan
    }

    /// The same above a floor of free space.
    pub(crate) fn above(self, floor: Floor) -> Self {
        Self { floor, ..self }
    }

    pub(crate) fn floor(&self) -> &Floor {
        &self.floor
    }

    /// The name of the permission mode in force.
    pub(crate) fn permission_mode(&self) -> &'static str {
        if self.plan.is_pending() {
            return Mode::Plan.as_str();
        }
        let set = self.policy.as_ref().map(Policy::effective_mode);
        let mode = self.standing.mode().or(set);
        mode.unwrap_or(Mode::BypassPermissions).as_str()
    }

    pub(crate) fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    /// The surroundings of an agent that only manages: the scratchpad and results.
    #[cfg(feature = "coordinator")]
    pub(crate) fn office(&self, who: &Occupant<'_>) -> anyhow::Result<Context> {
        let mut context = self.context(who)?;
        let roots = [(context.spill.as_path(), Access::Read)];
        context.fence = Fence::new(roots);
        context.sandbox = None;
        context.cwd = gaffer_tools::Cwd::new(who.pad.path());
        Ok(context.with_scratchpad(who.pad.pen(who.id, who.name.to_string())))
    }

    /// The surroundings of an agent that works in a folder.
    pub(crate) fn workplace(&self, who: &Occupant<'_>) -> anyhow::Result<Context> {
        let context = self.context(who)?;
        Ok(context.with_scratchpad(who.pad.pen(who.id, who.name.to_string())))
    }

    fn context(&self, who: &Occupant<'_>) -> anyhow::Result<Context> {
        let Occupant { id, cwd, .. } = who;
        let spill = who.folder.results();
        let temp = who.folder.path().join(format!("{id}.tmp"));
        std::fs::create_dir_all(&spill)
            .with_context(|| format!("cannot create {}", spill.display()))?;
        let program = std::env::current_exe().context("cannot find the program itself")?;
        let site = match who.worktree {
            // Each has its own.
            Some(_) => Arc::new(self.survey(who, &spill)),
            None => self.sites.get(who, || self.survey(who, &spill)),
        };
        let fence = site.fence.with_promised(&temp, Access::Write);
        let mut context = Context::fenced(fence, cwd, &spill, &temp, &program);
        context.floor = self.floor.clone();
        context.excludes.clone_from(&site.excludes);
        context.hidden = HIDDEN.map(str::to_owned).into();
        if who.worktree.is_some() {
            // They would lead its git to whatever gaffer was started from.
            let git = gaffer_workspace::worktree::HIDDEN.map(str::to_owned);
            context.hidden = context.hidden.iter().cloned().chain(git).collect();
        }
        if let Some(policy) = &self.policy {
            let mut policy = policy.clone();
            if self.plan.is_pending() {
                policy.mode = Mode::Plan;
            }
            let mut policy = match who.role.clone() {
                Some(mut role) => {
                    if self.plan.is_pending() {
                        role.mode = Some(Mode::Plan);
                    }
                    Arc::new(policy).child(role)
                }
                None => policy,
            };
            policy.sandboxed = self.level.is_some();
            policy.may_leave = self.may_leave;
            policy.roots = context.fence.roots().map(Path::to_owned).collect();
            policy.roots.push(who.pad.path());
            policy.scratchpad = Some(who.pad.path());
            let guard = Guard::new(Arc::new(policy)).heeding(self.standing.clone());
            context.guard = Some(match &self.questions {
                Some(questions) => guard.asking(*id, questions.clone()),
                None => guard,
            });
        }
        if let Some(binding) = &site.binding {
            let mut binding = binding.clone();
            if let Some(temp) = context.fence.roots().last() {
                binding.kept = kept_but(&binding.kept, temp);
            }
            binding.write.push(temp);
            context.sandbox = Some(Sandbox {
                program,
                binding,
                may_leave: self.may_leave,
            });
        }
        Ok(context)
    }

    /// What agents in one place share of their surroundings.
    fn survey(&self, who: &Occupant<'_>, spill: &Path) -> Site {
        let root = who.worktree.map_or(who.cwd, |tree| &tree.path);
        let add_dirs = apart(&self.add_dirs, who.worktree);
        let mut roots: Vec<(&Path, Access)> = vec![(root, Access::Write)];
        roots.extend(who.writable.iter().map(|folder| (*folder, Access::Write)));
        roots.extend(add_dirs.iter().map(|dir| (dir.as_path(), Access::Write)));
        roots.push((spill, Access::Read));
        roots.extend(who.readable.iter().map(|folder| (*folder, Access::Read)));
        Site {
            fence: Fence::new(roots),
            excludes: system::excludes(),
            binding: self.level.as_ref().map(|level| self.binding(level, who)),
        }
    }

    /// What an agent's commands may do.
    fn binding(&self, level: &Level, who: &Occupant<'_>) -> Binding {
        let cwd = who.cwd;
        let lifted: Vec<PathBuf> = self.allow_write.iter().map(|path| cwd.join(path)).collect();
        let lifted = apart(&lifted, who.worktree);
        let mut folders = vec![who.worktree.map_or(cwd, |tree| &tree.path).to_owned()];
        folders.extend(apart(&self.add_dirs, who.worktree));
        let mut write = folders.clone();
        write.extend(lifted.iter().cloned());
        match who.worktree {
            Some(tree) => write.extend(tree.writable()),
            // In the user's own checkout an agent may commit.
            None => write.extend(git_paths(cwd, OsStr::new("refs"))),
        }
        let means = level.means().cloned();
        let (kept, unmade) = match means {
            Some(_) => (kept(&folders, &write, &lifted), unmade(&folders, &lifted)),
            None => (Vec::new(), Vec::new()),
        };
        let own = who.writable.iter().map(|folder| folder.to_path_buf());
        write.extend(own);
        Binding {
            write,
            network: self.network,
            kept,
            means,
            unmade,
        }
    }
}

/// What of these folders a worker may write that works apart: none through which it could reach
/// the user's checkout.
fn apart(folders: &[PathBuf], worktree: Option<&Worktree>) -> Vec<PathBuf> {
    let is_apart = |folder: &&PathBuf| worktree.is_none_or(|tree| !tree.is_threatened_by(folder));
    folders.iter().filter(is_apart).cloned().collect()
}

/// The sandbox that commands get. `auto` takes what there is and says what is missing; `require`
/// means all of it. Nothing stands for no sandbox.
fn level(mode: SandboxMode) -> Result<Option<Level>, Usage> {
    if mode == SandboxMode::Off {
        return Ok(None);
    }
    let program = std::env::current_exe();
    let program = program.map_err(|error| Usage::new(format!("cannot find itself: {error}")))?;
    let level = Level::find(&program);
    let missing = match level {
        Level::Rules => NO_SANDBOX,
        Level::Bound => NO_MOUNTS,
        Level::Kept(_) => return Ok(Some(level)),
    };
    match mode {
        SandboxMode::Require => Err(Usage::new(missing)),
        _ => {
            system::say(&format!("gaffer: {missing}"));
            Ok((level != Level::Rules).then_some(level))
        }
    }
}

const NO_SANDBOX: &str = "this system has no sandbox (Landlock, Linux 5.13 or newer): commands may write wherever you may; --sandbox off says that this is all right";

const NO_MOUNTS: &str = "the sandbox is not whole here: user namespaces are refused and bubblewrap (bwrap) is not there or does not work, so commands may change .git/hooks, .git/config, .gaffer and .claude in the folder they work in; install bubblewrap, or work in a worktree";
