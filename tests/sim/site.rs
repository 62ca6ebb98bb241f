//! Where simulated workers work: a project with files that several of them write, with the real
//! tools, and real worktrees where there is a repository.

use crate::crew_world::Work;
use crate::sim::diary::Brake;
use futures_util::future::BoxFuture;
use gaffer_agent::agent_type::{AgentType, AgentTypes};
use gaffer_crew::{Hand, Outfit, Outfitter};
use gaffer_model::Model;
use gaffer_protocol::{AgentId, Block, Origin, Timestamp, notification};
use gaffer_store::SessionFolder;
use gaffer_tools::edit::Edit;
use gaffer_tools::read::Read;
use gaffer_tools::write::Write;
use gaffer_tools::{Access, Context, Output, Run, ToolSet, erase};
use gaffer_workspace::worktree::{Base, Fate, Git, New, Worktree, Worktrees};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// So many folders there are, each with a counter and a list.
pub(crate) const FOLDERS: u64 = 3;

#[derive(Debug)]
pub(crate) struct Site {
    types: AgentTypes,
    model: Arc<dyn Model>,
    root: PathBuf,
    session: SessionFolder,
    has_repository: bool,
    trees: OnceCell<Worktrees>,
}

impl Site {
    pub(crate) fn new(
        root: &Path,
        session: SessionFolder,
        model: Arc<dyn Model>,
        has_repository: bool,
    ) -> Self {
        let project = root.join("project");
        for n in 0..FOLDERS {
            let folder = project.join(format!("d{n}"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("count.txt"), "count: 0;\n").unwrap();
            std::fs::write(folder.join("list.txt"), "start\n").unwrap();
        }
        for folder in ["tmp", "spill"] {
            std::fs::create_dir(root.join(folder)).unwrap();
        }
        if has_repository {
            let made = [
                &["init", "-q", "-b", "main"][..],
                &["add", "."],
                &["commit", "-qm", "one"],
            ];
            for args in made {
                git(&project, args).unwrap();
            }
        }
        Self {
            types: AgentTypes::built_in(),
            model,
            root: root.to_owned(),
            session,
            has_repository,
            trees: OnceCell::new(),
        }
    }

    fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    async fn trees(&self) -> Result<&Worktrees, String> {
        let project = self.project();
        let open = || Worktrees::of(Git::default(), &project, Base::Head);
        let trees = self.trees.get_or_try_init(open).await;
        trees.map_err(|error| error.to_string())
    }
}

/// Git in a folder; what it printed.
#[expect(clippy::disallowed_methods, reason = "the user's own git")]
pub(crate) fn git(folder: &Path, args: &[&str]) -> Result<String, String> {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
    let output = Command::new("git")
        .args(identity)
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("git {args:?}: {output:?}")),
    }
}

/// Commits all that is there.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Nothing {}

/// Commits what a worker that works apart has done.
#[derive(Debug)]
struct Commit;

impl Run for Commit {
    const NAME: &'static str = "Commit";
    const ACCESS: Access = Access::Writes;
    type Input = Nothing;

    async fn run(&self, _: Nothing, context: &Context) -> Output {
        let folder = context.cwd.get();
        if folder.ends_with("project") {
            return Output::error("this is the user's checkout");
        }
        let commit = move || {
            git(&folder, &["add", "."])?;
            git(&folder, &["commit", "-qm", "more", "--allow-empty"])
        };
        match tokio::task::spawn_blocking(commit).await.unwrap() {
            Ok(text) => Output::text(text),
            Err(why) => Output::error(why),
        }
    }
}

impl Outfitter for Site {
    fn types(&self) -> &AgentTypes {
        &self.types
    }

    fn outfit(&self, kind: &AgentType, _: Option<&str>) -> Result<Outfit, String> {
        let tools = ToolSet::new([
            erase(Read),
            erase(Write),
            erase(Edit),
            erase(Work),
            erase(Commit),
        ]);
        let (system, provider) = (kind.name.clone(), "scripted".to_owned());
        let model = self.model.clone();
        Ok(Outfit::new(model, tools, system, provider, String::new()))
    }

    fn place(&self, hand: &Hand<'_>) -> Result<Context, String> {
        let program = Path::new(env!("CARGO_BIN_EXE_gaffer"));
        let [temp, spill] = ["tmp", "spill"].map(|name| self.root.join(name));
        let folder = self.folder(hand);
        Ok(Context::in_folder(&folder, &spill, &temp, program))
    }

    fn folder(&self, hand: &Hand<'_>) -> PathBuf {
        let find = || Worktree::find(&self.session.worktrees(), &hand.id.to_string());
        let tree = hand.isolated.then(find).flatten();
        tree.map_or_else(|| self.project(), |tree| tree.folder())
    }

    fn opening(&self, _: &Hand<'_>) -> Vec<Block> {
        vec![Block::from(Origin::Context, "You are here.")]
    }

    fn has_worktrees(&self) -> bool {
        self.has_repository
    }

    fn isolate<'a>(&'a self, hand: &'a Hand<'_>) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let _brake = Brake::new();
            let (place, name) = (self.session.worktrees(), hand.id.to_string());
            if Worktree::find(&place, &name).is_some_and(|tree| tree.is_whole()) {
                return Ok(());
            }
            let new = New {
                place: &place,
                session: "s",
                name: &name,
                task: hand.description,
                now: Timestamp(0),
            };
            let made = self.trees().await?.create(&new).await;
            made.map(drop).map_err(|error| error.to_string())
        })
    }

    fn release(&self, id: AgentId) -> BoxFuture<'_, Option<notification::Worktree>> {
        Box::pin(async move {
            let _brake = Brake::new();
            let tree = Worktree::find(&self.session.worktrees(), &id.to_string())?;
            match self.trees().await.ok()?.finish(&tree).await {
                Fate::Removed { .. } => None,
                Fate::Kept { path, branch, .. } => Some(notification::Worktree {
                    path: path.display().to_string(),
                    branch,
                }),
            }
        })
    }
}
