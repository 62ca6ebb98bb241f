//! From moments of a session to places in its picture. Long times in which nobody worked are drawn
//! short, so that a session which was taken up a day later is no two dots.

use gaffer_protocol::Timestamp;

/// So much of the width a time without work has, and what it must be of all work to be cut to it.
const PAUSE: f64 = 2.0;
const LONG: f64 = 0.04;
/// So many pauses at most are cut; with more of them nothing would be left to draw on.
const MOST_PAUSES: usize = 10;
/// About so many moments are named below the picture.
const NAMED: u64 = 6;

/// A time with work, and where it is drawn: from 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    from: u64,
    to: u64,
    left: f64,
    right: f64,
}

#[derive(Debug)]
pub(super) struct Scale {
    pieces: Vec<Piece>,
}

impl Scale {
    /// None if there is nothing to draw.
    pub(super) fn new(mut spans: Vec<(Timestamp, Timestamp)>) -> Option<Self> {
        spans.sort_unstable();
        let mut busy: Vec<(u64, u64)> = Vec::new();
        for (from, to) in spans {
            match busy.last_mut() {
                Some(last) if from.0 <= last.1 => last.1 = last.1.max(to.0),
                _ => busy.push((from.0, to.0)),
            }
        }
        let worked: u64 = busy.iter().map(|(from, to)| to - from).sum();
        let shortest = (worked as f64 * LONG).max(1.0);
        let mut pauses: Vec<u64> = busy.windows(2).map(|two| two[1].0 - two[0].1).collect();
        pauses.retain(|pause| *pause as f64 > shortest);
        pauses.sort_unstable_by(|a, b| b.cmp(a));
        let shortest = match pauses.get(MOST_PAUSES) {
            Some(longest) => *longest as f64,
            None => shortest,
        };
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (from, to) in busy {
            match joined.last_mut() {
                Some(last) if (from - last.1) as f64 <= shortest => last.1 = to,
                _ => joined.push((from, to)),
            }
        }
        let all: u64 = joined.iter().map(|(from, to)| to - from).sum();
        let free = 100.0 - PAUSE * joined.len().checked_sub(1)? as f64;
        let mut left = 0.0;
        let piece = |(from, to): (u64, u64)| {
            let width = free * (to - from) as f64 / all.max(1) as f64;
            let piece = Piece {
                from,
                to,
                left,
                right: left + width,
            };
            left += width + PAUSE;
            piece
        };
        Some(Self {
            pieces: joined.into_iter().map(piece).collect(),
        })
    }

    /// Where a moment is, from 0 to 100.
    pub(super) fn place(&self, at: Timestamp) -> f64 {
        let mut before = 0.0;
        for piece in &self.pieces {
            if at.0 < piece.from {
                return before;
            }
            if at.0 <= piece.to {
                let share = (at.0 - piece.from) as f64 / (piece.to - piece.from).max(1) as f64;
                return piece.left + share * (piece.right - piece.left);
            }
            before = piece.right;
        }
        before
    }

    /// Times that are drawn short: where, and how long they were.
    pub(super) fn pauses(&self) -> impl Iterator<Item = (f64, u64)> {
        let pairs = self.pieces.windows(2);
        pairs.map(|two| (two[0].right + PAUSE / 2.0, two[1].from - two[0].to))
    }

    /// Moments that are named, with how long after the beginning each is.
    pub(super) fn named(&self) -> Vec<(f64, String)> {
        const STEPS: [u64; 22] = [
            100,
            200,
            500,
            1000,
            2000,
            5000,
            10_000,
            15_000,
            30_000,
            60_000,
            120_000,
            300_000,
            600_000,
            900_000,
            1_800_000,
            3_600_000,
            7_200_000,
            10_800_000,
            21_600_000,
            43_200_000,
            86_400_000,
            604_800_000,
        ];
        let all: u64 = self.pieces.iter().map(|it| it.to - it.from).sum();
        let step = STEPS.into_iter().find(|step| all / step <= NAMED);
        let step = step.unwrap_or(all / NAMED).max(1);
        let start = self.pieces.first().map_or(0, |piece| piece.from);
        let mut named = Vec::new();
        for piece in &self.pieces {
            let mut after = (piece.from - start).div_ceil(step) * step;
            while start + after <= piece.to {
                let at = self.place(Timestamp(start + after));
                // A name needs its room.
                let is_near = |(other, _): &(f64, String)| at - other < 9.0;
                if !named.last().is_some_and(is_near) {
                    named.push((at, elapsed(after, step)));
                }
                after += step;
            }
        }
        named
    }
}

/// How long after the beginning, no more exact than the steps are.
fn elapsed(ms: u64, step: u64) -> String {
    let seconds = ms / 1000;
    match (seconds / 3600, step) {
        (_, 0..1000) if seconds < 60 => format!("{:.1} s", ms as f64 / 1000.0),
        (0, _) if seconds < 60 => format!("{seconds} s"),
        (0, _) => format!("{}:{:02}", seconds / 60, seconds % 60),
        (hours, _) => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(from: u64, to: u64) -> (Timestamp, Timestamp) {
        (Timestamp(from), Timestamp(to))
    }

    #[test]
    fn a_session_without_pauses_is_drawn_as_it_was() {
        let scale = Scale::new(vec![span(1000, 3000), span(2000, 5000)]).unwrap();
        assert_eq!(scale.place(Timestamp(1000)), 0.0);
        assert_eq!(scale.place(Timestamp(2000)), 25.0);
        assert_eq!(scale.place(Timestamp(9000)), 100.0);
        assert_eq!(scale.pauses().count(), 0);
        let named = scale.named();
        let words: Vec<&str> = named.iter().map(|(_, word)| word.as_str()).collect();
        assert_eq!(words, ["0 s", "1 s", "2 s", "3 s", "4 s"]);
        assert!(Scale::new(Vec::new()).is_none());
    }

    #[test]
    fn a_night_between_two_days_is_short() {
        let hour = 3_600_000;
        let scale = Scale::new(vec![span(0, hour), span(20 * hour, 21 * hour)]).unwrap();
        assert_eq!(scale.place(Timestamp(hour)), 49.0);
        assert_eq!(scale.place(Timestamp(10 * hour)), 49.0);
        assert_eq!(scale.place(Timestamp(20 * hour)), 51.0);
        let pauses: Vec<(f64, u64)> = scale.pauses().collect();
        assert_eq!(pauses, [(50.0, 19 * hour)]);
        assert!(scale.named().iter().any(|(_, word)| word == "20:30:00"));
    }

    proptest! {
        #[test]
        fn later_is_never_further_left(spans in prop::collection::vec((0u64..1 << 40, 0u64..1 << 30), 1..40)) {
            let spans: Vec<_> = spans.into_iter().map(|(from, long)| span(from, from + long)).collect();
            let mut moments: Vec<Timestamp> = spans.iter().flat_map(|it| [it.0, it.1]).collect();
            moments.sort_unstable();
            let scale = Scale::new(spans).unwrap();
            let places: Vec<f64> = moments.iter().map(|at| scale.place(*at)).collect();
            prop_assert!(places.is_sorted());
            prop_assert!(places[0] >= 0.0 && places[places.len() - 1] <= 100.001);
            prop_assert!(scale.named().len() < 13);
        }
    }
}
