//! Several files at once on their way to the disk.

use std::fs::File;
use std::io;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// So few are synced one after another.
const FEW: usize = 4;
/// More threads than these gain nothing.
const MOST_THREADS: usize = 8;

/// When this answers, all that was written to these files is on the disk.
///
/// A file system writes its journal once for all that wait for it, but only if they wait at the
/// same time: a hundred files take a quarter of the time so.
pub(super) fn sync(files: &[&File]) -> io::Result<()> {
    let threads = files.len().div_ceil(FEW).clamp(1, MOST_THREADS);
    let mut shares = files.chunks(files.len().div_ceil(threads).max(1));
    let own = shares.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let others: Vec<_> = shares.map(|share| (share, begin(scope, share))).collect();
        let mut done = one_by_one(own);
        for (share, thread) in others {
            done = done.and(match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err(gone())),
                // No more threads are to be had.
                Err(_) => one_by_one(share),
            });
        }
        done
    })
}

fn begin<'scope>(
    scope: &'scope Scope<'scope, '_>,
    share: &'scope [&'scope File],
) -> io::Result<ScopedJoinHandle<'scope, io::Result<()>>> {
    let builder = Builder::new().name("sync".to_owned());
    builder.spawn_scoped(scope, move || one_by_one(share))
}

fn one_by_one(files: &[&File]) -> io::Result<()> {
    files.iter().try_for_each(|file| file.sync_data())
}

fn gone() -> io::Error {
    io::Error::other("a thread that synced has failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_files_can_be_synced_and_one_that_cannot_is_told() {
        let temp = tempfile::tempdir().unwrap();
        let file = |n: usize| File::create(temp.path().join(n.to_string())).unwrap();
        let files: Vec<File> = (0..70).map(file).collect();
        let all: Vec<&File> = files.iter().collect();
        for count in [0, 1, 4, 5, 9, 33, 70] {
            sync(&all[..count]).unwrap();
        }
        let (pipe, _writer) = io::pipe().unwrap();
        let pipe = File::from(std::os::fd::OwnedFd::from(pipe));
        for place in [0, 3, 40, 69] {
            let mut some = all.clone();
            some[place] = &pipe;
            assert!(sync(&some).is_err(), "{place}");
        }
    }
}
