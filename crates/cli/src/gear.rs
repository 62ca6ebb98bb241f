//! What a session's agents share: the way to the web, skills, hooks; and the tools made of it.

use crate::args::Common;
use crate::exit::Usage;
use crate::hooks::hooks;
use crate::meter::Meter;
use crate::model::{self, Chosen};
use crate::search::ProviderSearch;
use crate::settings::{Search, Settings};
use crate::small::Small;
use crate::system;
use gaffer_protocol::{Block, Origin};
use gaffer_tools::bash::Bash;
use gaffer_tools::edit::Edit;
use gaffer_tools::glob::Glob;
use gaffer_tools::grep::Grep;
use gaffer_tools::hook::Hooks;
use gaffer_tools::notebook_edit::NotebookEdit;
use gaffer_tools::permission::Policy;
use gaffer_tools::read::Read;
use gaffer_tools::skill::{self, Around, Skill, Skills};
use gaffer_tools::tool_search::{self, Pool};
use gaffer_tools::web::{
    Allow, SearchEngine, Searches, Summarise, Web, WebFetch, WebLimits, WebSearch, searxng,
};
use gaffer_tools::write::Write;
use gaffer_tools::{ToolSet, erase};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Clone)]
pub(crate) struct Gear {
    /// The folder that skills and hooks name as the project.
    pub(crate) project: PathBuf,
    pub(crate) hooks: Option<Hooks>,
    skills: Arc<Skills>,
    web: Option<Arc<Web>>,
    search: Option<Arc<dyn SearchEngine>>,
    searches: Searches,
    summarise: Option<Arc<dyn Summarise>>,
    glob: Glob,
    /// What these models of the tools' own cost.
    pub(crate) meter: Meter,
    /// Tools that agents load when they need them.
    pub(crate) pool: Pool,
}

impl Gear {
    /// What the settings give.
    pub(crate) fn choose(
        common: &Common,
        settings: &Settings,
        chosen: &Chosen,
        policy: &Policy,
        cwd: &Path,
    ) -> anyhow::Result<Self> {
        let repository = cwd.ancestors().find(|folder| folder.join(".git").exists());
        let project = repository.unwrap_or(cwd).to_owned();
        let home = system::variable("HOME").map(PathBuf::from);
        let skills = skill::find(&skill::folders(cwd, home.as_deref()));
        for problem in &skills.problems {
            system::say(&format!("gaffer: skill {problem}"));
        }
        let allow = Allow::parse(&settings.web.allow)
            .map_err(|why| Usage::new(format!("settings, web.allow: {why}")))?;
        let meter = Meter::default();
        let search = match &settings.web.search {
            Some(Search::Searxng(address)) => Some(
                searxng(address)
                    .map_err(|why| Usage::new(format!("settings, web.search: {why}")))?,
            ),
            Some(Search::Provider) => {
                ProviderSearch::choose(common, settings, chosen, meter.clone())?
            }
            None => None,
        };
        let small = model::small(common, settings, chosen)?;
        Ok(Self {
            hooks: hooks(settings, policy, &project),
            project,
            skills: Arc::new(skills),
            web: Some(Arc::new(Web::new(allow, WebLimits::default()))),
            search,
            searches: Searches::default(),
            summarise: small.map(|model| {
                let meter = meter.clone();
                Arc::new(Small { model, meter }) as Arc<dyn Summarise>
            }),
            meter,
            glob: Glob {
                respect_gitignore: settings.glob_respects_gitignore.unwrap_or_default(),
            },
            pool: Pool::default(),
        })
    }

    /// Nothing but files and the shell.
    pub(crate) fn bare(cwd: &Path) -> Self {
        Self {
            project: cwd.to_owned(),
            hooks: None,
            skills: Arc::default(),
            web: None,
            search: None,
            searches: Searches::default(),
            summarise: None,
            meter: Meter::default(),
            glob: Glob::default(),
            pool: Pool::default(),
        }
    }

    /// The tools of an agent with all of them, but for those that its policy takes away whole.
    pub(crate) fn tools(&self, session: &str, policy: Option<&Policy>) -> ToolSet {
        let mut tools = vec![
            erase(Bash),
            erase(Edit),
            erase(self.glob),
            erase(Grep),
            erase(NotebookEdit),
            erase(Read),
            erase(Write),
        ];
        if let Some(web) = &self.web {
            tools.push(erase(WebFetch::new(web.clone(), self.summarise.clone())));
        }
        tools.extend(WebSearch::new(self.search.clone(), self.searches.clone()).map(erase));
        let around = Around {
            project: self.project.clone(),
            session: session.to_owned(),
        };
        tools.extend(skill::tool(self.skills.clone(), around));
        tools.extend(tool_search::tool(self.pool.clone()));
        tools.retain(|tool| policy.is_none_or(|it| it.removes(&tool.spec().name).is_none()));
        ToolSet::new(tools)
    }

    /// A skill as it is read to a worker at its start.
    pub(crate) fn skill(&self, name: &str, session: &str) -> Option<Block> {
        let around = Around {
            project: self.project.clone(),
            session: session.to_owned(),
        };
        let text = match self.skills.get(name) {
            Some(skill) => skill
                .text("", &around)
                .unwrap_or_else(|why| format!("[The skill {name} cannot be read: {why}.]")),
            None => format!("[There is no skill {name}.]"),
        };
        Some(Block::from(Origin::Context, text))
    }

    /// The skills that people may call by name.
    pub(crate) fn skills(&self) -> impl Iterator<Item = &Skill> {
        self.skills.iter().filter(|skill| skill.is_for_people())
    }

    /// What a skill says that somebody calls with these words. None if there is no such skill.
    pub(crate) fn call_skill(
        &self,
        name: &str,
        args: &str,
        session: &str,
    ) -> Option<Result<String, String>> {
        let around = Around {
            project: self.project.clone(),
            session: session.to_owned(),
        };
        let skill = self.skills().find(|skill| skill.name == name)?;
        Some(skill.text(args, &around))
    }

    /// Folders that agents may read because skills tell them to.
    pub(crate) fn readable(&self) -> impl Iterator<Item = &Path> {
        self.skills.iter().map(|skill| skill.folder.as_path())
    }
}
