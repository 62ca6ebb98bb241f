//! The terminal itself: taken for the UI, and given back however the UI ends.

use crate::app::App;
use crate::view;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::io::{self, BufWriter, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Whether the terminal is ours now: a panic on any thread has to know.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();
/// When a panic took it from us.
static LOST: Mutex<Option<Instant>> = Mutex::new(None);
/// Held while a picture is on its way to the terminal.
static DRAWING: Mutex<()> = Mutex::new(());
/// So long a panic waits for a picture to be whole. The one that panics may be who draws it.
const WHOLE: Duration = Duration::from_millis(20);
/// A process that lives so long after a panic goes on: the panic was caught.
const CAUGHT: Duration = Duration::from_millis(300);

/// Enough for a whole picture, so that it reaches the terminal in one piece.
const BUFFER: usize = 64 << 10;

pub(crate) struct Screen(Terminal<CrosstermBackend<BufWriter<Stdout>>>);

impl Screen {
    pub(crate) fn take() -> io::Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                // What the panic says must be readable, and it may be the last that happens. The
                // rest of a picture would otherwise be written over it.
                let picture = picture_is_whole();
                if give_back() {
                    *LOST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                }
                drop(picture);
                before(panic);
            }));
        });
        let out = BufWriter::with_capacity(BUFFER, io::stdout());
        let terminal = Terminal::new(CrosstermBackend::new(out))?;
        enter()?;
        Ok(Self(terminal))
    }

    /// False while the terminal is not ours.
    pub(crate) fn draw(&mut self, app: &mut App) -> io::Result<bool> {
        let _drawing = DRAWING.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_ours()? {
            return Ok(false);
        }
        if std::mem::take(&mut app.wants_redraw) {
            self.draw_anew()?;
        }
        queue!(self.0.backend_mut(), BeginSynchronizedUpdate)?;
        self.0.draw(|frame| view::draw(app, frame))?;
        execute!(self.0.backend_mut(), EndSynchronizedUpdate)?;
        Ok(true)
    }

    /// Takes the terminal again that a panic elsewhere gave back.
    fn is_ours(&mut self) -> io::Result<bool> {
        let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
        match *lost {
            None => return Ok(true),
            Some(at) if at.elapsed() < CAUGHT => return Ok(false),
            Some(_) => *lost = None,
        }
        drop(lost);
        enter()?;
        self.draw_anew()?;
        Ok(true)
    }

    /// The next picture is drawn whole. `Terminal::clear` would ask the terminal where its cursor
    /// is, and wait for the thread that reads keys to let the answer through.
    fn draw_anew(&mut self) -> io::Result<()> {
        execute!(self.0.backend_mut(), Clear(ClearType::All))?;
        self.0.swap_buffers();
        Ok(())
    }

    /// Gives the terminal back while `during` lasts.
    pub(crate) fn pause(&mut self, during: impl FnOnce()) -> io::Result<()> {
        give_back();
        during();
        enter()?;
        self.draw_anew()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Waits until nothing is being drawn, or for as long as that is worth.
fn picture_is_whole() -> Option<MutexGuard<'static, ()>> {
    let began = Instant::now();
    loop {
        match DRAWING.try_lock() {
            Ok(held) => return Some(held),
            Err(TryLockError::Poisoned(held)) => return Some(held.into_inner()),
            Err(TryLockError::WouldBlock) if began.elapsed() < WHOLE => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(TryLockError::WouldBlock) => return None,
        }
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    IS_TAKEN.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)
}

/// As it was before. A terminal that has gone cannot be mended, so errors say nothing here.
/// False if it was not taken.
fn give_back() -> bool {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return false;
    }
    let mut out = io::stdout();
    drop(execute!(
        out,
        EndSynchronizedUpdate,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    ));
    drop(out.flush());
    drop(disable_raw_mode());
    true
}
