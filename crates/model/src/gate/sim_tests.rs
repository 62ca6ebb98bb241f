//! Three gates on one file against a provider that limits its rate, in simulated time: how much is
//! refused, how much of the rate is used, and that nobody starves.
#![expect(
    clippy::disallowed_methods,
    reason = "a test's own tasks need no supervisor"
)]

use super::*;
use gaffer_protocol::Entropy;
use std::sync::atomic::AtomicU64;

/// Xorshift: the same numbers each time.
#[derive(Debug)]
struct Numbers(AtomicU64);

impl Entropy for Numbers {
    fn next(&self) -> u64 {
        let mut x = self.0.load(Ordering::Relaxed);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.store(x, Ordering::Relaxed);
        x
    }
}

#[derive(Debug, Clone, Copy)]
struct Provider {
    rate: f64,
    burst: f64,
    retry_after: Option<Duration>,
    /// An answer takes between half of this and one and a half times as much.
    service: Duration,
}

#[derive(Debug)]
struct Bucket {
    provider: Provider,
    tokens: f64,
    at: Instant,
    /// When each request came, whether it passed, and whose it was.
    seen: Vec<(Duration, bool, usize)>,
    start: Instant,
}

impl Bucket {
    fn take(&mut self, who: usize) -> bool {
        let passed = self.at.elapsed().as_secs_f64();
        self.at = Instant::now();
        let tokens = self.tokens + passed * self.provider.rate;
        self.tokens = tokens.min(self.provider.burst);
        let passes = self.tokens >= 1.0;
        if passes {
            self.tokens -= 1.0;
        }
        self.seen.push((self.start.elapsed(), passes, who));
        passes
    }
}

/// What a provider saw after the warm-up: the refused share, the used share of the rate, and the
/// least that one of the three had of what it would have had at equal shares.
#[derive(Debug)]
struct Seen {
    refused: f64,
    used: f64,
    least: f64,
}

async fn play(provider: Provider, limit: u32, warm_up: u64, until: u64) -> Seen {
    let temp = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let bucket = Arc::new(Mutex::new(Bucket {
        provider,
        tokens: provider.burst,
        at: start,
        seen: Vec::new(),
        start,
    }));
    let numbers = Arc::new(Numbers(AtomicU64::new(88_172_645_463_325_252)));
    let mut tasks = Vec::new();
    for process in 0..3 {
        let folder = temp.path().join("gates/one");
        let gate = Gate::shared(folder, limit, usize::MAX, Arc::new(SinceStart::new(start)));
        for _ in 0..10 {
            let (gate, bucket, numbers) = (gate.clone(), bucket.clone(), numbers.clone());
            tasks.push(tokio::spawn(async move {
                let mut failed: u32 = 0;
                while start.elapsed() < Duration::from_secs(until) {
                    let share = numbers.next() as f64 / u64::MAX as f64;
                    let place = gate.enter(|| {}).await;
                    sleep(Duration::from_millis(1)).await;
                    if bucket.lock().unwrap().take(process) {
                        failed = 0;
                        sleep(provider.service.mul_f64(0.5 + share)).await;
                        place.succeeded();
                    } else {
                        place.pressed(Pressure::TooFast, provider.retry_after);
                        let delay = Duration::from_millis(500 << failed.min(7));
                        failed += 1;
                        let wait = provider.retry_after.unwrap_or_default();
                        sleep(wait + delay.mul_f64(0.5 + 0.5 * share)).await;
                    }
                }
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    let bucket = bucket.lock().unwrap();
    let window = Duration::from_secs(warm_up)..Duration::from_secs(until);
    let seen = bucket.seen.iter().filter(|(at, _, _)| window.contains(at));
    let seen: Vec<_> = seen.copied().collect();
    let passed = seen.iter().filter(|(_, passes, _)| *passes).count() as f64;
    let of = |process| seen.iter().filter(|it| it.1 && it.2 == process).count() as f64;
    Seen {
        refused: 1.0 - passed / seen.len() as f64,
        used: passed / (provider.rate * (until - warm_up) as f64),
        least: (0..3).map(of).fold(f64::MAX, f64::min) * 3.0 / passed,
    }
}

fn provider(rate: f64, burst: f64, retry_after: Option<u64>, service: u64) -> Provider {
    Provider {
        rate,
        burst,
        retry_after: retry_after.map(Duration::from_secs),
        service: Duration::from_millis(service),
    }
}

#[tokio::test(start_paused = true)]
async fn three_processes_use_a_limited_rate_and_are_seldom_refused() {
    let rows = [
        provider(100.0, 10.0, None, 50),
        provider(100.0, 100.0, None, 50),
        provider(100.0, 10.0, Some(1), 50),
        provider(100.0, 100.0, Some(1), 100),
        provider(20.0, 5.0, None, 500),
        provider(20.0, 20.0, Some(2), 500),
    ];
    for (row, limit) in rows.into_iter().zip([30, 1024].into_iter().cycle()) {
        let seen = play(row, limit, 30, 150).await;
        println!("limit {limit}: {row:?}: {seen:?}");
        assert!(seen.refused < 0.05, "{limit}: {row:?}: {seen:?}");
        assert!(seen.used > 0.9, "{limit}: {row:?}: {seen:?}");
        assert!(seen.least > 0.9, "{limit}: {row:?}: {seen:?}");
    }
}

/// Ninety a minute, as new accounts have it, with answers that take long.
#[tokio::test(start_paused = true)]
async fn a_slow_rate_is_learnt_too() {
    let slow = provider(1.5, 10.0, None, 8000);
    let seen = play(slow, 1024, 600, 3600).await;
    println!("{seen:?}");
    assert!(seen.refused < 0.05 && seen.used > 0.9, "{seen:?}");
}

/// A provider without a limit is as fast as with no gate at all.
#[tokio::test(start_paused = true)]
async fn nothing_is_held_back_where_nothing_is_refused() {
    let free = provider(1e6, 1e6, None, 50);
    let seen = play(free, 1024, 1, 11).await;
    let each = seen.used * 1e6 / 30.0;
    // Fifty milliseconds, the one before the answer, and the timer's own.
    assert!(seen.refused == 0.0 && each > 1000.0 / 53.0, "{each}");
}
