//! The gate of one process, in simulated time.
#![expect(
    clippy::disallowed_methods,
    reason = "a test's own tasks need no supervisor"
)]

use super::*;

fn silent() {}

#[tokio::test(start_paused = true)]
async fn pressure_halves_once_for_requests_that_ran_together() {
    let gate = Gate::new(16);
    let mut places = Vec::new();
    for _ in 0..16 {
        places.push(gate.enter(silent).await);
    }
    for place in places {
        place.pressed(Pressure::TooFast, None);
    }
    assert_eq!(gate.view().width, 8);
    gate.enter(silent).await.pressed(Pressure::TooFast, None);
    assert_eq!(gate.view().width, 4);
}

#[tokio::test(start_paused = true)]
async fn it_never_closes_for_good_and_grows_back_to_its_limit() {
    let gate = Gate::new(8);
    for _ in 0..10 {
        gate.enter(silent).await.pressed(Pressure::TooFast, None);
    }
    assert_eq!(gate.view().width, 1);
    for _ in 0..200 {
        gate.enter(silent).await.succeeded();
    }
    assert_eq!(gate.view().width, 8);
}

#[tokio::test(start_paused = true)]
async fn a_wait_stops_everybody() {
    let gate = Gate::new(4);
    let start = Instant::now();
    gate.enter(silent)
        .await
        .pressed(Pressure::TooFast, Some(Duration::from_secs(7)));
    let mut waited = false;
    let place = gate.enter(|| waited = true).await;
    assert!(start.elapsed() >= Duration::from_secs(7));
    drop(place);
    assert!(waited);
}

#[tokio::test(start_paused = true)]
async fn who_came_first_goes_first_and_who_left_is_passed_over() {
    let gate = Gate::new(1);
    let first = gate.enter(silent).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for n in 0..5 {
        let (gate, order) = (gate.clone(), order.clone());
        tasks.push(tokio::spawn(async move {
            let place = gate.enter(silent).await;
            order.lock().unwrap().push(n);
            drop(place);
        }));
        tokio::task::yield_now().await;
    }
    tasks[2].abort();
    tokio::task::yield_now().await;
    drop(first);
    for (n, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.await.is_ok(), n != 2);
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 3, 4]);
    assert_eq!(gate.view().under_way, 0);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_comings_and_goings_leak_no_place() {
    let gate = Gate::new(3);
    let tasks: Vec<_> = (0..1000)
        .map(|n: u64| {
            let gate = gate.clone();
            tokio::spawn(async move {
                let place = gate.enter(silent).await;
                tokio::time::sleep(Duration::from_millis(n % 7)).await;
                match n % 3 {
                    0 => place.succeeded(),
                    1 => place.pressed(
                        Pressure::TooFast,
                        (n % 50 == 1).then_some(Duration::from_millis(20)),
                    ),
                    _ => drop(place),
                }
            })
        })
        .collect();
    for (n, task) in tasks.into_iter().enumerate() {
        if n % 11 == 5 {
            task.abort();
        }
        drop(task.await);
    }
    let view = gate.view();
    assert_eq!((view.under_way, view.waiting), (0, 0));
}
