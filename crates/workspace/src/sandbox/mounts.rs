//! What must stay as it is, mounted over itself in a namespace of the command's own.

use super::keep::{Hold, Kept};
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount_bind_recursive, mount_change, mount_remount,
};
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities, set_capabilities};
use std::path::Path;

/// Enters a mount namespace and holds what is to be held.
pub(super) fn keep(kept: &[Kept]) -> Result<(), String> {
    enter()?;
    let here = std::env::current_dir();
    for one in kept {
        match hold(one) {
            // What has gone since cannot be held.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(format!("cannot hold {}: {error}", one.path.display())),
        }
    }
    // This process may stand in a folder that has just been covered. Going there by name leads to
    // what covers it.
    match here {
        Ok(here) => std::env::set_current_dir(&here)
            .map_err(|error| format!("cannot enter {}: {error}", here.display())),
        // The folder is gone, and nothing can be made in it.
        Err(_) => Ok(()),
    }
}

/// Who may mount does so; anybody else needs a user namespace, in which they are who they were.
fn enter() -> Result<(), String> {
    let say = |what: &'static str| move |error: Errno| format!("{what}: {error}");
    let powers = capabilities(None).map_err(say("capabilities"))?;
    if powers.effective.contains(CapabilitySet::SYS_ADMIN) {
        unshare(UnshareFlags::NEWNS).map_err(say("no mount namespace"))?;
    } else {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS).map_err(say("no user namespace"))?;
        let write = |name: &str, text: String| {
            std::fs::write(format!("/proc/self/{name}"), text)
                .map_err(|error| format!("no user namespace: {name}: {error}"))
        };
        // Without this the kernel lets nobody map their group: leaving a group could add rights.
        write("setgroups", "deny".to_owned())?;
        write("uid_map", format!("{user} {user} 1"))?;
        write("gid_map", format!("{group} {group} 1"))?;
    }
    // What is mounted here must not show outside.
    let inward = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", inward).map_err(say("the mounts cannot be separated"))
}

#[expect(
    deprecated,
    reason = "what is unsafe in it are shared file tables, which are not asked for here"
)]
fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    rustix::thread::unshare(flags)
}

fn hold(one: &Kept) -> Result<(), Errno> {
    let path = one.path.as_path();
    mount_bind_recursive(path, path)?;
    match one.how {
        Hold::InPlace => Ok(()),
        Hold::ReadOnly => remount(path, MountFlags::RDONLY),
        Hold::Writable => match remount(path, MountFlags::empty()) {
            // It was read-only before, and stays so.
            Err(Errno::PERM | Errno::ROFS) => Ok(()),
            done => done,
        },
    }
}

/// The other flags stay: in a user namespace nobody may take them off.
fn remount(path: &Path, flags: MountFlags) -> Result<(), Errno> {
    const SAME: [(StatVfsMountFlags, MountFlags); 3] = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
    ];
    let set = statvfs(path)?.f_flag;
    let mut flags = flags | MountFlags::BIND;
    for (is_set, flag) in SAME {
        if set.contains(is_set) {
            flags |= flag;
        }
    }
    mount_remount(path, flags, c"")
}

/// Gives up the powers with which the rest of the sandbox could be taken off again. The user's own
/// rights over files stay, also root's.
pub(super) fn drop_powers() -> Result<(), Errno> {
    let mut powers = capabilities(None)?;
    let given_up = CapabilitySet::SYS_ADMIN
        | CapabilitySet::SYS_MODULE
        | CapabilitySet::SYS_RAWIO
        | CapabilitySet::SYS_BOOT
        | CapabilitySet::SYS_PTRACE
        | CapabilitySet::MKNOD
        | CapabilitySet::BPF
        | CapabilitySet::PERFMON;
    // Whoever has none of them need not ask, which some systems do not let them.
    if !powers.permitted.intersects(given_up) && !powers.inheritable.intersects(given_up) {
        return Ok(());
    }
    powers.effective.remove(given_up);
    powers.permitted.remove(given_up);
    powers.inheritable.remove(given_up);
    set_capabilities(None, powers)
}
