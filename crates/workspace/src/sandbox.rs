//! The sandbox of commands: writes only where they belong, the network by choice.
//!
//! Landlock and seccomp bind the process that asks for them and all below it, for good. So a
//! command is started through this program in the role of a sandbox, which binds itself and then
//! becomes the command. Allocating between fork and exec, which the crates do, is no matter there.

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{Signal, set_parent_process_death_signal};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first argument that makes this program a sandbox.
pub const ROLE: &str = "__sandbox";

/// What the exit code says when the sandbox itself could not be set up: nothing was run.
const FAILED: u8 = 126;

/// What a command may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Folders and files that it may write; everything else it may only read.
    pub write: Vec<PathBuf>,
    pub network: bool,
}

/// Devices that every command may write to.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

impl Binding {
    /// The command line that runs a command under this binding.
    pub fn wrap(&self, program: &Path, command: Vec<OsString>) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec![program.into(), ROLE.into()];
        line.push(
            if self.network {
                "network"
            } else {
                "no-network"
            }
            .into(),
        );
        line.push(self.write.len().to_string().into());
        line.extend(self.write.iter().map(OsString::from));
        line.extend(command);
        line
    }

    /// Reads what `wrap` wrote behind the role.
    fn unwrap(mut args: impl Iterator<Item = OsString>) -> Option<(Self, Vec<OsString>)> {
        let network = args.next()? == "network";
        let count: usize = args.next()?.to_str()?.parse().ok()?;
        let write: Vec<PathBuf> = args.by_ref().take(count).map(PathBuf::from).collect();
        let command: Vec<OsString> = args.collect();
        (write.len() == count && !command.is_empty()).then_some((Self { write, network }, command))
    }
}

/// Whether this system can hold a sandbox.
pub fn is_supported() -> bool {
    let tried = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(ABI::V1))
        .and_then(Ruleset::create);
    tried.is_ok()
}

/// Binds this process and becomes the command. Returns only if that failed.
#[expect(
    clippy::disallowed_methods,
    reason = "the command takes the place of this process"
)]
pub fn main(args: impl Iterator<Item = OsString>) -> u8 {
    let Some((binding, command)) = Binding::unwrap(args) else {
        return fail("it was called with the wrong arguments");
    };
    if let Err(why) = bind(&binding) {
        return fail(&why);
    }
    let error = Command::new(&command[0]).args(&command[1..]).exec();
    fail(&format!(
        "cannot run {}: {error}",
        Path::new(&command[0]).display()
    ))
}

fn fail(why: &str) -> u8 {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "sandbox: {why}"));
    FAILED
}

fn bind(binding: &Binding) -> Result<(), String> {
    // If the warden is killed, the command goes with it.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    bind_files(binding).map_err(|error| format!("Landlock: {error}"))?;
    bind_calls(binding).map_err(|error| format!("seccomp: {error}"))
}

/// Writing is forbidden but beneath the folders that are allowed; reading is left alone. Newer
/// kernels also keep signals and abstract sockets inside.
fn bind_files(binding: &Binding) -> Result<(), String> {
    let say = |error: &dyn std::error::Error| error.to_string();
    let writes = AccessFs::from_write(ABI::V5);
    let mut rules = Ruleset::default()
        .handle_access(writes)
        .and_then(|rules| rules.scope(Scope::from_all(ABI::V6)))
        .and_then(Ruleset::create)
        .map_err(|error| say(&error))?;
    let devices = DEVICES.iter().map(Path::new);
    for path in binding.write.iter().map(PathBuf::as_path).chain(devices) {
        // What does not exist cannot be written to either.
        let Ok(handle) = PathFd::new(path) else {
            continue;
        };
        let access = if path.is_dir() {
            writes
        } else {
            writes & AccessFs::from_file(ABI::V5)
        };
        rules = rules
            .add_rule(PathBeneath::new(handle, access))
            .map_err(|error| say(&error))?;
    }
    let status = rules.restrict_self().map_err(|error| say(&error))?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("this kernel does not have it".to_owned()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}

/// Calls that reach around the file system or into the kernel, and the network where it is off.
fn bind_calls(binding: &Binding) -> Result<(), String> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let always = [
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_kexec_load,
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
    for call in always {
        rules.insert(call, Vec::new());
    }
    if !binding.network {
        // Rings carry out calls that no filter sees.
        rules.insert(libc::SYS_io_uring_setup, Vec::new());
        let other_than = |family: i32| {
            let family = u64::try_from(family).unwrap_or_default();
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
        };
        let local = [libc::AF_UNIX, libc::AF_NETLINK];
        let conditions: Result<Vec<_>, _> = local.into_iter().map(other_than).collect();
        let rule = conditions
            .and_then(SeccompRule::new)
            .map_err(|error| error.to_string())?;
        rules.insert(libc::SYS_socket, vec![rule]);
    }
    let denied = SeccompAction::Errno(u32::try_from(libc::EPERM).unwrap_or(1));
    let arch = std::env::consts::ARCH
        .try_into()
        .map_err(|_| "unknown architecture".to_owned())?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch);
    let program: BpfProgram = filter
        .and_then(TryInto::try_into)
        .map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}

/// Where git keeps what a commit writes, for a folder in a checkout.
///
/// A plain checkout's `.git` is written as a whole. A linked worktree has a folder of its own in
/// it, and shares objects and branches; it gets its own folder, the objects, and the branches
/// below `branches`, such as `refs/heads/gaffer`.
pub fn git_paths(folder: &Path, branches: &OsStr) -> Vec<PathBuf> {
    let Some(dot_git) = folder
        .ancestors()
        .map(|above| above.join(".git"))
        .find(|git| git.exists())
    else {
        return Vec::new();
    };
    if dot_git.is_dir() {
        return vec![dot_git];
    }
    let text = std::fs::read_to_string(&dot_git).unwrap_or_default();
    let Some(own) = text
        .strip_prefix("gitdir: ")
        .map(|own| PathBuf::from(own.trim_end()))
    else {
        return Vec::new();
    };
    let common = std::fs::read_to_string(own.join("commondir")).unwrap_or_default();
    let common = own.join(common.trim_end());
    let Ok(common) = common.canonicalize() else {
        return Vec::new();
    };
    vec![
        own,
        common.join("objects"),
        common.join(branches),
        common.join("logs").join(branches),
    ]
}
