//! An agent's own record: one JSON record a line, appended before the next step is taken, and
//! read back by a fold.

mod calls;
mod damage;
mod fold;
mod heal;
mod lines;
mod reading;
mod record;
mod repair;
mod secrets;
mod writing;

pub use calls::{ANSWER_CUT, Known, interrupted};
pub use damage::Damage;
pub use fold::{Fold, Turn};
pub use record::{Entry, Record, Start};
pub use writing::{MOST_RECORD, MOST_TRANSCRIPT, TooLarge, Transcript};

#[cfg(test)]
mod sample;
