//! Skill: instructions that are read when they are needed.

mod file;
mod fill;
mod find;

pub use crate::front::Words;
pub use file::Front;
pub use find::{Skill, Skills, find, folders};

use crate::context::Context;
use crate::tool::{Access, Output, Run, Tool, erase_as};
use fill::Filling;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;

/// What the tool's description says of one skill, and of all.
const LONGEST_ABOUT: usize = 1536;
const LARGEST_LIST: usize = 16 << 10;

/// Reads a skill.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillInput {
    /// The skill's name.
    pub skill: String,
    /// What to give it, if it asks for something.
    pub args: Option<String>,
}

/// What a skill's text can refer to.
#[derive(Debug, Clone)]
pub struct Around {
    pub project: PathBuf,
    pub session: String,
}

#[derive(Debug)]
struct SkillTool {
    skills: Arc<Skills>,
    around: Around,
}

/// The tool that reads skills; there is none where no skill is meant for models.
pub fn tool(skills: Arc<Skills>, around: Around) -> Option<Arc<dyn Tool>> {
    let description = describe(&skills)?;
    Some(erase_as(SkillTool { skills, around }, description))
}

impl Run for SkillTool {
    const NAME: &'static str = "Skill";
    const ACCESS: Access = Access::Reads;
    type Input = SkillInput;

    async fn run(&self, input: SkillInput, _: &Context) -> Output {
        let name = input.skill.trim().trim_start_matches('/').to_owned();
        let Some(skill) = self.skills.get(&name) else {
            return Output::error(self.unknown(&name));
        };
        if !skill.is_for_models() {
            return Output::error(format!(
                "Only the user may start the skill {name}: ask for it if it is needed."
            ));
        }
        let skill = skill.clone();
        let around = self.around.clone();
        let args = input.args.unwrap_or_default();
        let read = tokio::task::spawn_blocking(move || skill.text(&args, &around));
        match read.await {
            Ok(Ok(text)) => Output::text(text),
            Ok(Err(why)) => Output::error(format!("The skill {name} cannot be read: {why}.")),
            Err(why) => Output::error(format!("The skill {name} cannot be read: {why}.")),
        }
    }
}

impl SkillTool {
    fn unknown(&self, name: &str) -> String {
        let names = self.skills.iter().filter(|skill| skill.is_for_models());
        let nearest = names.max_by(|a, b| {
            let near = |skill: &Skill| strsim::jaro_winkler(&skill.name, name);
            near(a).total_cmp(&near(b))
        });
        let nearest = nearest.map_or(String::new(), |skill| {
            format!(" The nearest is {}.", skill.name)
        });
        let shown: String = name.chars().take(64).collect();
        format!("There is no skill `{shown}`.{nearest}")
    }
}

impl Skill {
    /// The skill's text as it is now, filled in. Commands in it are not run.
    pub fn text(&self, args: &str, around: &Around) -> Result<String, String> {
        let (front, body) = file::read(&self.file())?;
        let names = front.arguments.as_ref().map(Words::list);
        let text = fill::fill(
            &body,
            &Filling {
                args,
                names: &names.unwrap_or_default(),
                folder: &self.folder,
                project: &around.project,
                session: &around.session,
            },
        );
        let folder = self.folder.display();
        let mut out = format!("[Skill {}; its files are in {folder}.", self.name);
        if has_commands(&body) {
            out.push_str(
                " Commands in it, written as !`command`, were not run: run those you need.",
            );
        }
        out.push_str("]\n\n");
        out.push_str(text.trim_end());
        Ok(out)
    }
}

fn has_commands(body: &str) -> bool {
    let mut places = body.match_indices("!`");
    places.any(|(at, found)| body[at + found.len()..].contains('`'))
}

/// What the tool is, with the skills there are. Those that no longer fit are only named.
fn describe(skills: &Skills) -> Option<String> {
    let skills: Vec<&Skill> = skills
        .iter()
        .filter(|skill| skill.is_for_models())
        .collect();
    if skills.is_empty() {
        return None;
    }
    let mut out = "Reads a skill: instructions for a kind of task. Read the one that fits before \
                   you begin, and follow it. The skills:"
        .to_owned();
    let mut left_out = 0;
    for skill in skills {
        let about = match skill.about.char_indices().nth(LONGEST_ABOUT) {
            Some((end, _)) => &skill.about[..end],
            None => &skill.about,
        };
        let entry = format!("\n- {}: {about}", skill.name);
        let name = format!("\n- {}", skill.name);
        // Room is kept for the last line.
        let room = (LARGEST_LIST - 64).saturating_sub(out.len());
        match (entry.len() <= room, name.len() <= room) {
            (true, _) => out.push_str(&entry),
            (false, true) => out.push_str(&name),
            (false, false) => left_out += 1,
        }
    }
    if left_out > 0 {
        out.push_str(&format!("\n[{left_out} more have no room here.]"));
    }
    Some(out)
}

#[cfg(test)]
mod tests;
