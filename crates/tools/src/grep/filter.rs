//! Which files are searched: globs, types, and the rules of the tree.

use super::GrepInput;
use crate::context::Context;
use crate::walk::{Base, Stop, Walk};
use ignore::overrides::OverrideBuilder;
use ignore::types::{FileTypeDef, TypesBuilder};

pub(super) fn walk<'a>(
    input: &GrepInput,
    context: &'a Context,
    base: &'a Base,
    stop: &'a Stop,
) -> Result<Walk<'a>, String> {
    let mut walk = Walk::new(context, base, stop);
    if let Some(globs) = &input.glob {
        // As for ripgrep, globs with a slash start at the working folder.
        let root = if base.path.starts_with(&base.cwd) {
            &base.cwd
        } else {
            &base.path
        };
        let mut overrides = OverrideBuilder::new(root);
        for glob in split(globs) {
            overrides.add(glob).map_err(|why| bad_glob(&why))?;
        }
        walk.globs = overrides.build().map_err(|why| bad_glob(&why))?;
    }
    if let Some(name) = input.kind.as_deref().filter(|name| !name.is_empty()) {
        let mut types = TypesBuilder::new();
        types.add_defaults().select(name);
        let built = types.build();
        walk.types = built.map_err(|_| unknown_type(name, &types.definitions()))?;
    }
    Ok(walk)
}

fn bad_glob(why: &ignore::Error) -> String {
    format!(
        "The glob is not valid: {why}. Write a literal `{{`, `[` or `*` as `[{{]`, `[[]` or `[*]`."
    )
}

/// Several globs can be given at once, with commas or spaces between them. In braces a comma
/// belongs to the glob.
fn split(globs: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let between = move |c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    };
    globs.split(between).filter(|glob| !glob.is_empty())
}

/// Names the type that is meant, going by its files' endings or by its letters.
fn unknown_type(name: &str, known: &[FileTypeDef]) -> String {
    let ending = format!("*.{name}");
    let has_ending = |def: &&FileTypeDef| def.globs().contains(&ending);
    let by_ending = known.iter().find(has_ending);
    let distance = |def: &&FileTypeDef| {
        // Whole numbers can be compared; the likeness is between 0 and 1.
        let likeness = strsim::jaro_winkler(&name.to_lowercase(), def.name());
        (likeness * 1e6) as u32
    };
    let nearest = by_ending.or_else(|| known.iter().max_by_key(distance));
    let nearest = nearest.map_or("rust", FileTypeDef::name);
    format!(
        "There is no type {name:?}; the nearest is {nearest:?}. A glob such as `{ending}` does as well."
    )
}
