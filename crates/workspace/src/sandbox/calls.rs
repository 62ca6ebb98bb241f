//! seccomp: calls that reach around the file system or into the kernel, and the network by choice.

use super::Binding;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;

/// By call: any of these rules, or the call itself where there are none.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Never allowed.
const KERNEL: [i64; 13] = [
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_swapon,
    libc::SYS_swapoff,
];

/// What could take away or get around what is mounted: mounts, other namespaces, and files opened
/// by something else than their path.
const MOUNTS: [i64; 12] = [
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
];

/// Newer than the library: `open_tree_attr`, the same number everywhere.
const OPEN_TREE_ATTR: i64 = 467;

/// On this architecture calls have a second set of numbers, which may be switched on in a kernel.
#[cfg(target_arch = "x86_64")]
const SECOND: Option<i64> = Some(0x4000_0000);
#[cfg(not(target_arch = "x86_64"))]
const SECOND: Option<i64> = None;

pub(super) fn bind(binding: &Binding) -> Result<(), String> {
    let mut rules = Rules::new();
    for call in KERNEL.into_iter().chain(MOUNTS).chain([OPEN_TREE_ATTR]) {
        rules.insert(call, Vec::new());
    }
    // A namespace of one's own gives powers over mounts.
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        let flags = [libc::CLONE_NEWUSER, libc::CLONE_NEWNS];
        let rules_of_call: Result<Vec<_>, String> = flags.into_iter().map(with_flag).collect();
        rules.insert(call, rules_of_call?);
    }
    if !binding.network {
        // Rings carry out calls that no filter sees.
        rules.insert(libc::SYS_io_uring_setup, Vec::new());
        rules.insert(libc::SYS_socket, vec![not_local()?]);
    }
    forbid(rules, libc::EPERM)?;
    // Its flags lie in memory, where no filter sees them. Who hears that there is no such call
    // takes the older one.
    forbid(Rules::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)
}

fn with_flag(flag: i32) -> Result<SeccompRule, String> {
    let flag = u64::from(flag.cast_unsigned());
    let masked = SeccompCmpOp::MaskedEq(flag);
    SeccompCondition::new(0, SeccompCmpArgLen::Qword, masked, flag)
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .map_err(|error| error.to_string())
}

/// A socket of any family but those that stay on this machine.
fn not_local() -> Result<SeccompRule, String> {
    let other_than = |family: i32| {
        let family = u64::from(family.cast_unsigned());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    };
    let local = [libc::AF_UNIX, libc::AF_NETLINK];
    let conditions: Result<Vec<_>, _> = local.into_iter().map(other_than).collect();
    conditions
        .and_then(SeccompRule::new)
        .map_err(|error| error.to_string())
}

/// Answers these calls with an error instead.
fn forbid(mut rules: Rules, error: i32) -> Result<(), String> {
    if let Some(offset) = SECOND {
        let again: Rules = rules
            .iter()
            .map(|(call, rules)| (call + offset, rules.clone()))
            .collect();
        rules.extend(again);
    }
    let denied = SeccompAction::Errno(error.cast_unsigned());
    let arch = std::env::consts::ARCH
        .try_into()
        .map_err(|_| "unknown architecture".to_owned())?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch);
    let program: BpfProgram = filter
        .and_then(TryInto::try_into)
        .map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}
