//! Landlock: which files may be written, and who may be signalled.

use super::Binding;
use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::path::{Path, PathBuf};

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

/// Whether this system has Landlock.
pub(super) fn is_supported() -> bool {
    let tried = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(ABI::V1))
        .and_then(Ruleset::create);
    tried.is_ok()
}

/// Writing is forbidden but beneath the folders that are allowed; reading is left alone. Newer
/// kernels also keep signals and abstract sockets inside.
pub(super) fn bind(binding: &Binding) -> Result<(), String> {
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
