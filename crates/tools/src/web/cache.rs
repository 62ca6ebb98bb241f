//! Pages that were fetched a short while ago, for all agents of one tree.

use super::page::Page;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const FRESH: Duration = Duration::from_secs(15 * 60);
const MOST_PAGES: usize = 50;
const MOST_BYTES: usize = 20_000_000;

#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<VecDeque<Kept>>);

#[derive(Debug)]
struct Kept {
    key: String,
    since: Instant,
    page: Arc<Page>,
}

impl Cache {
    pub(super) fn get(&self, key: &str) -> Option<Arc<Page>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The oldest stand in front.
        while kept.front().is_some_and(|old| old.since.elapsed() >= FRESH) {
            kept.pop_front();
        }
        let found = kept.iter().find(|kept| kept.key == key)?;
        Some(found.page.clone())
    }

    pub(super) fn put(&self, key: String, page: Arc<Page>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.key != key);
        let since = Instant::now();
        kept.push_back(Kept { key, since, page });
        let size = |kept: &Kept| kept.page.size() + kept.key.len();
        let mut bytes: usize = kept.iter().map(size).sum();
        while kept.len() > MOST_PAGES || bytes > MOST_BYTES {
            let Some(old) = kept.pop_front() else { break };
            bytes -= size(&old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::Reply;
    use super::*;
    use url::Url;

    fn page(text: &str) -> Arc<Page> {
        let reply = Reply {
            url: Url::parse("https://a.example").unwrap(),
            content_type: None,
            body: text.as_bytes().to_owned(),
            whole: true,
        };
        Arc::new(Page::read(&reply).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn pages_are_kept_for_a_quarter_of_an_hour() {
        let cache = Cache::default();
        cache.put("a".into(), page("1"));
        tokio::time::advance(FRESH - Duration::from_millis(1)).await;
        assert_eq!(cache.get("a"), Some(page("1")));
        assert_eq!(cache.get("b"), None);
        cache.put("b".into(), page("2"));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(cache.get("a"), None);
        assert_eq!(cache.get("b"), Some(page("2")));
        cache.put("b".into(), page("3"));
        assert_eq!(cache.get("b"), Some(page("3")));
    }

    #[tokio::test]
    async fn the_oldest_make_room() {
        let cache = Cache::default();
        for n in 0..60 {
            cache.put(n.to_string(), page("x"));
        }
        assert_eq!(cache.get("9"), None);
        assert!(cache.get("10").is_some() && cache.get("59").is_some());
        // 400,000 bytes each, as many as a page can have.
        let large = page(&"\u{1f600}".repeat(100_000));
        for n in 0..50 {
            cache.put(format!("large {n}"), large.clone());
        }
        assert_eq!(cache.get("large 0"), None);
        assert!(cache.get("large 1").is_some() && cache.get("59").is_none());
    }
}
