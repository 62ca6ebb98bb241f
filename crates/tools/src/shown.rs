//! What an agent's conversation shows of files, so that nothing is shown twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xxhash_rust::xxh3::xxh3_128;

/// A text shorter than this is shown again: a word about it would be no shorter.
const SHORTEST: usize = 200;

/// The texts that reads have put into the conversation, by what was asked for. Who takes anything
/// out of the conversation forgets them all.
#[derive(Debug, Clone, Default)]
pub struct Shown(Arc<Mutex<HashMap<String, u128>>>);

impl Shown {
    /// Whether the last answer to this request was the same. It is remembered from now on.
    pub(crate) fn is_same(&self, request: String, text: &str) -> bool {
        if text.len() < SHORTEST {
            return false;
        }
        let hash = xxh3_128(text.as_bytes());
        self.texts().insert(request, hash) == Some(hash)
    }

    pub fn forget(&self) {
        self.texts().clear();
    }

    fn texts(&self) -> MutexGuard<'_, HashMap<String, u128>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
