//! The words that all parts of gaffer share: pure data, no I/O, no runtime.

pub mod budget;
pub mod clock;
pub mod command;
pub mod course;
pub mod diff;
pub mod end;
pub mod event;
pub mod ids;
pub mod json;
pub mod mail;
pub mod message;
pub mod notification;
pub mod plan;
pub mod tags;
pub mod terms;
pub mod tool;
pub mod usage;

pub use budget::{BudgetNews, BudgetSum, Cap, CapUse, Used};
pub use clock::{Clock, Entropy, Timestamp};
pub use command::Command;
pub use course::Course;
pub use end::{End, Status};
pub use event::{Event, EventKind, EventSink, Permission, Question, Trigger, Waiting};
pub use ids::{AgentId, AgentName, CallId, IdError, MailId, SessionId};
pub use json::Json;
pub use message::{
    Answer, Block, Image, Message, Origin, Reasoning, ResultPart, Role, StopReason, Text,
    ToolResult, ToolUse,
};
pub use notification::Notification;
pub use plan::Plan;
pub use terms::{Budget, Phase, Terms};
pub use tool::ToolSpec;
pub use usage::{Cost, Usage};
