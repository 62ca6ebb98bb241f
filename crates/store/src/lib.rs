//! What is on disk: where sessions are, who owns them, each agent's transcript, what a crew
//! shares; listing, searching and deleting sessions, and which of them are kept.

pub mod about;
pub mod book;
mod compacted;
pub mod delete;
pub mod find;
pub mod list;
pub mod owner;
pub mod records;
pub mod retain;
pub mod search;
pub mod session;
pub mod transcript;

pub use about::{About, NameError, Rights};
pub use book::{Book, BookError};
pub use compacted::{Compacted, Notes};
pub use delete::DeleteError;
pub use find::{Found, NotFound};
pub use list::{Listed, State};
pub use owner::{Owner, OwnerError, Ownership};
pub use session::{Home, SessionError, SessionFolder};
pub use transcript::{Damage, Entry, Fold, Record, Start, TooLarge, Transcript, Turn};
