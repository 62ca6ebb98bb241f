//! Many agents: who is in the crew, how tasks begin, how messages find them, how they are stopped,
//! and how each end is told exactly once.

mod budget;
mod course;
mod crew;
mod depend;
mod ends;
mod fit;
mod guardrails;
mod history;
mod integrate;
mod lead;
mod lease;
pub mod ledger;
mod mail;
mod notes;
pub mod orders;
mod outfit;
mod phases;
mod plan;
mod proof;
mod report;
mod resume;
mod roster;
mod shape;
mod start;
mod state;
pub mod tools;
mod verbs;
mod worker;

pub use course::{Kept, KeptTask};
pub use crew::{Crew, CrewLimits, CrewParts, Stopped};
pub use guardrails::Guardrails;
pub use integrate::{Branch, Integration};
pub use mail::{Fate, MailError, Receipt, Sender as MailSender};
pub use outfit::{Hand, Outfit, Outfitter};
pub use plan::{Approver, PlanFirst};
pub use report::Report;
pub use roster::Spending;
pub use shape::told as form_block;
pub use start::{Order, Refused, Started};
pub use state::WorkerState;
