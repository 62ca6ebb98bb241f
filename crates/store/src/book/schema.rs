//! The book's tables, and how they are brought up to date.

use rusqlite::Connection;
use std::time::Duration;

/// What this program writes. A higher number in a file means that a newer one wrote it.
const VERSION: i64 = 1;

/// Tasks in the order of their starts; letters in the order in which they were written. The number
/// of a letter is never used again, not even when it is gone: transcripts know letters by it.
const TABLES: &str = "
CREATE TABLE tasks (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    task TEXT NOT NULL,
    runs INTEGER NOT NULL,
    end TEXT,
    notes TEXT
);
CREATE TABLE mail (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    reader TEXT NOT NULL,
    about TEXT,
    block TEXT NOT NULL,
    is_held INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE answers (
    agent TEXT NOT NULL,
    call TEXT NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (agent, call)
) WITHOUT ROWID;
";

/// Others that write at the same time are waited for so long.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the write-ahead log may keep on disk after it was taken over.
const MOST_LOG: i64 = 4 << 20;

pub(super) fn prepare(connection: &mut Connection, most_pages: u32) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "max_page_count", most_pages)?;
    // A new book is put on the disk with the first step that has to be there.
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "journal_size_limit", MOST_LOG)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version > VERSION {
        let why = format!("a newer version of gaffer wrote it (form {version})");
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_MISMATCH);
        return Err(rusqlite::Error::SqliteFailure(code, Some(why)));
    }
    if version == 0 {
        // Another process may do the same: who comes second finds it done.
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let version: i64 =
            transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version == 0 {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        transaction.commit()?;
    }
    // Whoever closes the book last moves the log into it, and what was synced has to stay so.
    connection.pragma_update(None, "synchronous", "NORMAL")
}
