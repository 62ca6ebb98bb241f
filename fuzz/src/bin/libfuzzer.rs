//! libFuzzer's program for all targets; which one it tries stands in `GAFFER_FUZZ_TARGET`. One
//! program is linked once, and `cargo xtask fuzz` is what people start.
#![no_main]

use gaffer_fuzz::Target;
use std::sync::LazyLock;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("GAFFER_FUZZ_TARGET").unwrap_or_default();
    match gaffer_fuzz::target(&name) {
        Some(target) => target,
        None => panic!("GAFFER_FUZZ_TARGET names no target: `{name}`"),
    }
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    (TARGET.run)(bytes);
});
