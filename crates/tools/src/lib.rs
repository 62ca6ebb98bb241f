//! What agents can do. A tool is one file: its input struct with doc comments is its schema and
//! its description, its `run` is its behaviour.

pub mod bash;
pub mod read;
mod set;
mod tool;

pub use set::ToolSet;
pub use tool::{Access, Context, Output, Run, Tool, erase};
