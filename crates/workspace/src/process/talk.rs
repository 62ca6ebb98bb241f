//! A process that is given a text on its standard input and answers on two outputs.

use super::{Group, How, Output, Plan, command};
use crate::handles;
use std::io;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

/// How a talk is bounded.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub time: Duration,
    /// Of standard output, so many bytes are kept at its beginning and as many at its end.
    pub stdout: usize,
    /// The same for standard error.
    pub stderr: usize,
}

/// What came of a talk.
#[derive(Debug)]
pub struct Talked {
    pub how: How,
    pub stdout: Output,
    pub stderr: Output,
}

/// Starts a process, gives it the input and waits for its end. Input that it does not read is no
/// error. Dropping the future ends the process group.
pub async fn talk(plan: &Plan, input: &[u8], limits: Limits) -> io::Result<Talked> {
    let mut command = command(plan);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    handles::give_back(child.id());
    let group = Group::of(&child);
    let deadline = Instant::now() + limits.time;
    let mut stdout = Output::keeping(limits.stdout);
    let mut stderr = Output::keeping(limits.stderr);
    let (to, from, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let how = {
        // All three at once: a process that prints before it reads would otherwise wait for us
        // while we wait for it.
        let mut pipes = pin!(async {
            tokio::join!(
                feed(to, input),
                drain(from, &mut stdout),
                drain(errors, &mut stderr)
            )
        });
        let mut is_open = true;
        let ended = async {
            loop {
                tokio::select! {
                    status = child.wait() => break status,
                    _ = &mut pipes, if is_open => is_open = false,
                }
            }
        };
        let how = match timeout_at(deadline, ended).await {
            Err(_) => How::TimedOut,
            Ok(status) => How::Exited(status?),
        };
        // What it left running in its group ends with it; then the pipes' ends are near.
        group.end();
        if is_open {
            // A process that left the group may hold a pipe; it is not waited for.
            drop(timeout(Duration::from_millis(500), pipes).await);
        }
        how
    };
    if how == How::TimedOut {
        child.wait().await?;
    }
    Ok(Talked {
        how,
        stdout,
        stderr,
    })
}

/// Writes the input and closes the pipe. A process may end, or close its input, without reading.
async fn feed(pipe: Option<impl AsyncWrite + Unpin>, input: &[u8]) {
    if let Some(mut pipe) = pipe {
        drop(pipe.write_all(input).await);
    }
}

async fn drain(pipe: Option<impl AsyncRead + Unpin>, output: &mut Output) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 << 10];
    while let Ok(size @ 1..) = pipe.read(&mut buffer).await {
        output.add(&buffer[..size]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::kill_process_group_is_gone;
    use super::*;

    const LIMITS: Limits = Limits {
        time: Duration::from_secs(20),
        stdout: 1000,
        stderr: 1000,
    };

    async fn shell(script: &str, input: &[u8], limits: Limits) -> Talked {
        let plan = Plan::new("sh", "/").args(["-c", script]);
        talk(&plan, input, limits).await.unwrap()
    }

    fn code(talked: &Talked) -> Option<i32> {
        match talked.how {
            How::Exited(status) => status.code(),
            How::TimedOut => None,
        }
    }

    #[tokio::test]
    async fn input_arrives_and_outputs_stay_apart() {
        let talked = shell("cat; echo no >&2; exit 2", b"one\ntwo\n", LIMITS).await;
        assert_eq!(code(&talked), Some(2));
        assert_eq!(talked.stdout.text(), "one\ntwo\n");
        assert_eq!(talked.stderr.text(), "no\n");
        assert!(talked.stdout.is_whole());
    }

    #[tokio::test]
    async fn unread_input_is_no_error_and_no_deadlock() {
        let input = vec![b'x'; 1 << 20];
        let talked = shell("echo done", &input, LIMITS).await;
        assert_eq!(
            (code(&talked), talked.stdout.text()),
            (Some(0), "done\n".to_owned())
        );
        let talked = shell("exec <&-; sleep 0.1; echo done", &input, LIMITS).await;
        assert_eq!(
            (code(&talked), talked.stdout.text()),
            (Some(0), "done\n".to_owned())
        );
        // It fills its own output before it reads anything.
        let talked = shell("head -c 1000000 /dev/zero; wc -c >&2", &input, LIMITS).await;
        assert_eq!(talked.stderr.text().trim(), "1048576");
        assert!(!talked.stdout.is_whole());
    }

    #[tokio::test]
    async fn a_time_limit_ends_what_never_reads() {
        let limits = Limits {
            time: Duration::from_millis(200),
            ..LIMITS
        };
        let talked = shell("sleep 60", &vec![b'x'; 1 << 20], limits).await;
        assert_eq!(talked.how, How::TimedOut);
    }

    #[tokio::test]
    async fn what_it_leaves_running_ends_with_it() {
        let temp = tempfile::tempdir().unwrap();
        let plan = Plan::new("sh", temp.path()).args(["-c", "sleep 60 & echo done"]);
        let talked = talk(&plan, b"", LIMITS).await.unwrap();
        assert_eq!(talked.stdout.text(), "done\n");
        assert!(kill_process_group_is_gone(&temp));
    }
}
