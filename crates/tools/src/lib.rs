//! What agents can do. A tool is one file: its input struct with doc comments is its schema and
//! its description, its `run` is its behaviour.

pub mod admit;
pub mod bash;
mod context;
pub mod edit;
mod file;
pub mod front;
pub mod glob;
pub mod grep;
mod guard;
pub mod hook;
pub mod lease;
pub mod nearest;
mod notebook;
pub mod notebook_edit;
pub mod pdf;
pub mod permission;
pub mod proof;
pub mod question;
pub mod read;
pub mod scratchpad;
mod set;
mod shown;
pub mod skill;
mod standing;
pub mod structured;
#[cfg(test)]
mod testing;
mod tool;
pub mod tool_search;
mod walk;
pub mod web;
pub mod write;

#[cfg(test)]
mod bad_input_tests;
#[cfg(test)]
mod file_tests;

pub use context::{Changed, Context, Cwd, Sandbox, Seen, Shell, State};
pub use gaffer_workspace::floor::{Floor, Low};
pub use guard::Guard;
pub use set::ToolSet;
pub use shown::Shown;
pub use standing::Standing;
pub use tool::{Access, Output, Run, Tool, erase, erase_as, erase_without};
