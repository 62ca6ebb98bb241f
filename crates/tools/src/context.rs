//! The agent that calls, as far as tools need to know it: where it is, what it may open, what it
//! has seen.

use crate::guard::Guard;
use crate::hook::AgentHooks;
use crate::lease::Lease;
use crate::shown::Shown;
use crate::tool_search::Pool;
use gaffer_workspace::fence::{Access, Fence};
use gaffer_workspace::floor::Floor;
use gaffer_workspace::job::Launcher;
use gaffer_workspace::jobs::Jobs;
use gaffer_workspace::sandbox::Binding;
use gaffer_workspace::scratchpad::Pen;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh3::xxh3_128;

/// One agent's surroundings. Clones share their state: they are the same agent.
#[derive(Debug, Clone)]
pub struct Context {
    /// What may be opened.
    pub fence: Fence,
    /// Where relative paths start. Bash moves it.
    pub cwd: Cwd,
    /// Which files the agent has seen, and as what.
    pub seen: Seen,
    /// What its conversation shows of files.
    pub shown: Shown,
    /// Which files its file tools have changed.
    pub changed: Changed,
    /// Variables that started processes must not see: keys, and gaffer's own.
    pub hidden: Arc<[String]>,
    /// Where long results are kept whole; the agent may read there.
    pub spill: PathBuf,
    /// With less free space than this nothing is kept there.
    pub floor: Floor,
    /// The crew's scratchpad, where there is one. Its folder is one of the fence's roots.
    pub scratchpad: Option<Pen>,
    /// A folder of its own for temporary files, which no other agent uses.
    pub temp: PathBuf,
    /// The commands it has started.
    pub jobs: Jobs,
    /// What a command leaves for the next one.
    pub shell: Shell,
    /// This program itself, for the roles that it plays in processes of its own.
    pub program: PathBuf,
    /// What binds its commands, where anything does.
    pub sandbox: Option<Sandbox>,
    /// Who decides on its calls. Without one, every tool that it has may be used.
    pub guard: Option<Guard>,
    /// The user's hooks, where there are any.
    pub hooks: Option<AgentHooks>,
    /// Its part in who may write which file, where others write as well.
    pub lease: Option<Lease>,
    /// Tools that the agent can load when it needs them.
    pub pool: Pool,
    /// The user's list of what git leaves out everywhere, which searches obey; it may not be there.
    pub excludes: Option<PathBuf>,
    /// Whether the model can be shown images.
    pub images: bool,
}

impl Context {
    /// An agent that works in one folder and nowhere else. `program` is a binary that plays the
    /// roles of a warden, and of a reader of PDFs.
    pub fn in_folder(folder: &Path, spill: &Path, temp: &Path, program: &Path) -> Self {
        let roots = [
            (folder, Access::Write),
            (temp, Access::Write),
            (spill, Access::Read),
        ];
        Self::fenced(Fence::new(roots), folder, spill, temp, program)
    }

    /// The same with other bounds than these folders.
    pub fn fenced(fence: Fence, folder: &Path, spill: &Path, temp: &Path, program: &Path) -> Self {
        Self {
            fence,
            cwd: Cwd::new(folder.to_owned()),
            seen: Seen::default(),
            shown: Shown::default(),
            changed: Changed::default(),
            hidden: Arc::new([]),
            spill: spill.to_owned(),
            floor: Floor::default(),
            scratchpad: None,
            temp: temp.to_owned(),
            jobs: Jobs::new(Launcher::new(program.to_owned())),
            shell: Shell::default(),
            program: program.to_owned(),
            sandbox: None,
            guard: None,
            hooks: None,
            lease: None,
            pool: Pool::default(),
            excludes: None,
            images: true,
        }
    }

    /// The folder for what its commands leave behind. It is made by the first that asks for it.
    pub(crate) fn made_temp(&self) -> io::Result<&Path> {
        match std::fs::create_dir(&self.temp) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(&self.temp),
        }
    }

    /// The same agent with the crew's scratchpad: its tools and its commands may write there. What
    /// may be done unasked is for its policy to say.
    pub fn with_scratchpad(mut self, pen: Pen) -> Self {
        self.fence = self.fence.join(pen.pad().fence());
        if let Some(sandbox) = &mut self.sandbox {
            sandbox.binding.write.push(pen.pad().path());
        }
        self.scratchpad = Some(pen);
        self
    }
}

/// What binds commands, and the program that plays the role of a sandbox.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub program: PathBuf,
    pub binding: Binding,
    /// Whether a call may ask to run outside of it. Whoever decides on calls decides on that too.
    pub may_leave: bool,
}

/// What shell commands leave for the next one: the file with the variables that the last one
/// exported.
#[derive(Debug, Clone, Default)]
pub struct Shell(Arc<Mutex<Option<PathBuf>>>);

impl Shell {
    pub(crate) fn state(&self) -> Option<PathBuf> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Takes over what a command left; the file of the one before is no longer needed.
    pub(crate) fn adopt(&self, file: PathBuf) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = state.replace(file) {
            drop(std::fs::remove_file(old));
        }
    }
}

/// The folder that an agent is in.
#[derive(Debug, Clone)]
pub struct Cwd(Arc<Mutex<PathBuf>>);

impl Cwd {
    pub fn new(folder: PathBuf) -> Self {
        Self(Arc::new(Mutex::new(folder)))
    }

    pub fn get(&self) -> PathBuf {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub fn set(&self, folder: PathBuf) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = folder;
    }
}

/// The files that an agent has read or written, by the hash of what it saw: an edit of something
/// that has changed since is refused.
#[derive(Debug, Clone, Default)]
pub struct Seen(Arc<Mutex<HashMap<PathBuf, u128>>>);

impl Seen {
    /// How many files it knows.
    pub fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, for showing.
    pub fn files(&self) -> Vec<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let files = seen.keys().map(|path| path.display().to_string());
        let mut files: Vec<String> = files.collect();
        files.sort();
        files
    }

    pub fn note(&self, path: PathBuf, bytes: &[u8]) {
        let hash = xxh3_128(bytes);
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(path, hash);
    }

    /// What the agent knows of a file.
    pub fn state(&self, path: &Path, bytes: &[u8]) -> State {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.get(path) {
            None => State::Unseen,
            Some(known) if *known == xxh3_128(bytes) => State::Current,
            Some(_) => State::Changed,
        }
    }
}

/// The files that an agent has changed with its file tools. What its commands changed only they
/// know.
#[derive(Debug, Clone, Default)]
pub struct Changed(Arc<Mutex<BTreeSet<PathBuf>>>);

impl Changed {
    pub(crate) fn note(&self, path: PathBuf) {
        let mut changed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changed.insert(path);
    }

    /// All of them, for showing.
    pub fn files(&self) -> Vec<String> {
        let changed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let files = changed.iter().map(|path| path.display().to_string());
        files.collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Unseen,
    Current,
    Changed,
}
