//! What is on disk: where sessions are, who owns them, and each agent's transcript.

pub mod about;
pub mod find;
pub mod owner;
pub mod session;
pub mod transcript;

pub use about::About;
pub use find::{Found, NotFound};
pub use owner::{Owner, OwnerError, Ownership};
pub use session::{Home, SessionError, SessionFolder};
pub use transcript::{Entry, Fold, Record, Start, Transcript, Turn};
