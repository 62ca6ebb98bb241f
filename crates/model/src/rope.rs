//! Bytes that only grow at the end, held so that a snapshot costs a few pointers.
//!
//! A conversation is sent whole with every request and grows by a little each time. Copying it
//! into one buffer for each request would make a turn cost the whole conversation; one piece for
//! each message would make the list of pieces grow. So neighbours are joined as they come, like
//! the digits of a binary counter, up to a size from which on a piece stays as it is.

use bytes::{Bytes, BytesMut};

/// Pieces of this size and over are not joined further.
const FULL: usize = 64 * 1024;

#[derive(Debug, Clone, Default)]
pub(crate) struct Rope {
    pieces: Vec<Bytes>,
    len: usize,
}

impl Rope {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        self.len += piece.len();
        self.pieces.push(piece);
        self.join();
    }

    /// Joins the last pieces while the one before is less than twice as long: what stays at least
    /// halves from piece to piece, so their number is logarithmic, and so is how often a byte moves.
    fn join(&mut self) {
        let mut from = self.pieces.len() - 1;
        let mut size = self.pieces[from].len();
        while from > 0 {
            let before = self.pieces[from - 1].len();
            if before >= FULL || before >= 2 * size {
                break;
            }
            size += before;
            from -= 1;
        }
        if from + 1 < self.pieces.len() {
            let mut joined = BytesMut::with_capacity(size);
            for piece in self.pieces.drain(from..) {
                joined.extend_from_slice(&piece);
            }
            self.pieces.push(joined.freeze());
        }
    }

    /// The bytes from `start` to `end` as pieces that share memory with this rope.
    pub(crate) fn slice(&self, start: usize, end: usize, out: &mut Vec<Bytes>) {
        let mut at = 0;
        for piece in &self.pieces {
            let (from, to) = (start.max(at), end.min(at + piece.len()));
            if from < to {
                out.push(piece.slice(from - at..to - at));
            }
            at += piece.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes_of(pieces: &[Bytes]) -> Vec<u8> {
        pieces.iter().flat_map(|piece| piece.to_vec()).collect()
    }

    proptest! {
        #[test]
        fn a_rope_is_what_was_pushed(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..60), a in 0usize..2000, b in 0usize..2000) {
            let mut rope = Rope::default();
            let mut plain = Vec::new();
            for part in &parts {
                rope.push(Bytes::copy_from_slice(part));
                plain.extend_from_slice(part);
            }
            prop_assert_eq!(rope.len(), plain.len());
            let (a, b) = (a.min(b).min(plain.len()), a.max(b).min(plain.len()));
            let mut pieces = Vec::new();
            rope.slice(a, b, &mut pieces);
            prop_assert_eq!(bytes_of(&pieces), &plain[a..b]);
        }
    }

    #[test]
    fn a_thousand_small_pieces_become_a_handful() {
        let mut rope = Rope::default();
        for _ in 0..1000 {
            rope.push(Bytes::from_static(&[7; 400]));
        }
        assert!(rope.pieces.len() <= 20, "{}", rope.pieces.len());
    }
}
