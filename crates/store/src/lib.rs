//! What is on disk: where sessions are, who owns them, each agent's transcript, and what a
//! crew shares.

pub mod about;
pub mod book;
mod compacted;
pub mod find;
pub mod owner;
pub mod session;
pub mod transcript;

pub use about::{About, Rights};
pub use book::{Book, BookError};
pub use compacted::{Compacted, Notes};
pub use find::{Found, NotFound};
pub use owner::{Owner, OwnerError, Ownership};
pub use session::{Home, SessionError, SessionFolder};
pub use transcript::{Damage, Entry, Fold, Record, Start, TooLarge, Transcript, Turn};
