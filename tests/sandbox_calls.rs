//! Calls to the system that the sandbox refuses, made by this test program itself inside of it.

use crate::sandbox::Place;
use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// What a probe is to do; set only inside the sandbox.
const PROBE: &str = "GAFFER_TEST_PROBE";

/// Calls with arguments that do no harm where they are let through.
const CALLS: [(&str, i64); 26] = [
    ("bpf", libc::SYS_bpf),
    ("perf_event_open", libc::SYS_perf_event_open),
    ("kexec_load", libc::SYS_kexec_load),
    ("kexec_file_load", libc::SYS_kexec_file_load),
    ("init_module", libc::SYS_init_module),
    ("finit_module", libc::SYS_finit_module),
    ("delete_module", libc::SYS_delete_module),
    ("reboot", libc::SYS_reboot),
    ("keyctl", libc::SYS_keyctl),
    ("add_key", libc::SYS_add_key),
    ("request_key", libc::SYS_request_key),
    ("swapon", libc::SYS_swapon),
    ("swapoff", libc::SYS_swapoff),
    ("mount", libc::SYS_mount),
    ("umount2", libc::SYS_umount2),
    ("pivot_root", libc::SYS_pivot_root),
    ("move_mount", libc::SYS_move_mount),
    ("fsopen", libc::SYS_fsopen),
    ("fsmount", libc::SYS_fsmount),
    ("fsconfig", libc::SYS_fsconfig),
    ("fspick", libc::SYS_fspick),
    ("open_tree", libc::SYS_open_tree),
    ("open_tree_attr", 467),
    ("mount_setattr", libc::SYS_mount_setattr),
    ("setns", libc::SYS_setns),
    ("open_by_handle_at", libc::SYS_open_by_handle_at),
];

#[expect(unsafe_code, reason = "no safe function makes a call that is refused")]
fn call(number: i64, first: i64) -> i32 {
    // SAFETY: all pointers among the arguments are null, and what forks leaves at once.
    let answer = unsafe { libc::syscall(number, first, 0i64, 0i64, 0i64, 0i64) };
    if number == libc::SYS_clone && answer == 0 {
        std::process::exit(0);
    }
    match answer {
        -1 => std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or_default(),
        _ => 0,
    }
}

/// Not a test of its own: what runs inside the sandbox.
#[test]
fn probe() {
    let Ok(what) = std::env::var(PROBE) else {
        return;
    };
    if let Some(name) = what.strip_prefix("socket ") {
        let address = SocketAddr::from_abstract_name(name).unwrap();
        match UnixStream::connect_addr(&address) {
            Ok(mut stream) => {
                stream.write_all(b"hello").unwrap();
                println!("probe: connected");
            }
            Err(error) => println!("probe: {error}"),
        }
        return;
    }
    for (name, number) in CALLS {
        println!("probe: {name} {}", call(number, 0));
    }
    for (name, flag) in [("user", libc::CLONE_NEWUSER), ("mount", libc::CLONE_NEWNS)] {
        println!(
            "probe: unshare {name} {}",
            call(libc::SYS_unshare, flag.into())
        );
        let flags = i64::from(flag | libc::SIGCHLD);
        println!("probe: clone {name} {}", call(libc::SYS_clone, flags));
    }
    #[cfg(target_arch = "x86_64")]
    println!(
        "probe: second mount {}",
        call(0x4000_0000 + libc::SYS_mount, 0)
    );
    println!("allowed: unshare {}", call(libc::SYS_unshare, 0));
    println!("newer: clone3 {}", call(libc::SYS_clone3, 0));
}

/// What the probe says inside the sandbox.
async fn inside(what: &str) -> String {
    let place = Place::new(true);
    let program = std::env::current_exe().unwrap();
    let command = format!(
        "{PROBE}='{what}' {} --exact sandbox_calls::probe --nocapture",
        program.display()
    );
    let (text, is_error) = place.run(&command).await;
    assert!(!is_error, "{text}");
    text
}

#[tokio::test]
async fn calls_into_the_kernel_and_on_mounts_are_refused() {
    let text = inside("calls").await;
    let refused: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("probe: "))
        .collect();
    assert!(refused.len() >= CALLS.len() + 4, "{text}");
    for line in refused {
        assert!(line.ends_with(&format!(" {}", libc::EPERM)), "{line}");
    }
    assert!(text.contains("allowed: unshare 0"), "{text}");
    let missing = format!("newer: clone3 {}", libc::ENOSYS);
    assert!(text.contains(&missing), "{text}");
}

#[tokio::test]
async fn abstract_sockets_outside_are_out_of_reach_on_newer_kernels() {
    let name = format!("gaffer-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    listener.set_nonblocking(true).unwrap();
    let text = inside(&format!("socket {name}")).await;
    let is_connected = text.contains("probe: connected");
    assert_eq!(is_connected, kernel() < (6, 12), "{text}");
    let mut heard = String::new();
    if let Ok((mut stream, _)) = listener.accept() {
        drop(stream.read_to_string(&mut heard));
    }
    assert_eq!(heard.is_empty(), !is_connected);
}

fn kernel() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse().unwrap_or_default());
    (numbers.next().unwrap(), numbers.next().unwrap())
}
