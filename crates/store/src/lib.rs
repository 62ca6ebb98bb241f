//! What is on disk: where sessions are, and each agent's transcript.

pub mod find;
pub mod session;
pub mod transcript;

pub use find::{Found, NotFound};
pub use session::{Home, SessionError, SessionFolder};
pub use transcript::{Entry, Fold, Record, Start, Transcript, Turn};
