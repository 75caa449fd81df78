//! The terminal's modes, and that they are always given back as they were: on exit, error, panic, signal, and around ctrl-z.
//!
//! Switches raw mode, the alternate screen and the cursor, and nothing else. What is held is noted in a static, because a panic hook
//! and a signal thread must be able to give it back as well; giving back twice does nothing.

use std::backtrace::Backtrace;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread::{self, ThreadId};

use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::terminal::{EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use signal_hook::consts::SIGSTOP;
use signal_hook::low_level::raise;

use super::cells;
use super::theme::Charset;

/// Whether the terminal is switched.
static HELD: AtomicBool = AtomicBool::new(false);
/// The thread that draws: a panic of another one leaves the screen alone.
static DRAWS: Mutex<Option<ThreadId>> = Mutex::new(None);

/// Holds the terminal; dropping it gives the terminal back.
#[derive(Debug)]
pub struct Guard(());

impl Guard {
    /// Switches the terminal. What was switched before a failure is given back.
    pub fn enter() -> io::Result<Self> {
        *DRAWS.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current().id());
        let guard = Self(());
        guard.take()?;
        Ok(guard)
    }

    /// Switches again after [`give_back`], or after somebody else changed the modes behind our back.
    pub fn take(&self) -> io::Result<()> {
        HELD.store(true, Ordering::SeqCst);
        // Off and on again: the library believes that raw mode is on even where a shell has ended it.
        disable_raw_mode()?;
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Hide)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back as it was. Errors are of no use to anybody here: the terminal may be gone.
pub fn give_back() {
    if HELD.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let _ = out.write_all(b"\x1b[0m");
        let _ = execute!(out, EndSynchronizedUpdate, Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// Gives back the modes without writing a byte, for a terminal that takes none any more (flow stopped by ctrl-s).
pub(crate) fn give_back_silently() {
    if HELD.swap(false, Ordering::SeqCst) {
        let _ = disable_raw_mode();
    }
}

/// Whether the terminal is switched now.
pub(crate) fn held() -> bool {
    HELD.load(Ordering::SeqCst)
}

/// Which of standard input and output is no terminal.
pub(crate) fn missing() -> Option<&'static str> {
    match (io::stdin().is_terminal(), io::stdout().is_terminal()) {
        (true, true) => None,
        (false, true) => Some("standard input"),
        (true, false) => Some("standard output"),
        (false, false) => Some("neither standard input nor output"),
    }
}

/// Whether somebody would continue us after a stop. A session leader has no shell above it, and would stay stopped for ever; the
/// kernel ignores ctrl-z there too.
pub(crate) fn can_stop() -> bool {
    rustix::process::getsid(None).is_ok_and(|session| session != rustix::process::getpgrp())
}

/// Tells the other programs of our job (`cargo run`, `kubectl` with a plugin) to stop, as the terminal itself does on ctrl-z. Our own
/// handler hears of it too.
pub(crate) fn stop_job() -> io::Result<()> {
    Ok(rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?)
}

/// Stops this process; returns when it is continued.
pub(crate) fn stop_here() -> io::Result<()> {
    raise(SIGSTOP)
}

/// From now on a panic gives the terminal back first, writes a report into `dir`, and then says one line on standard error.
/// A panic while no screen is held goes to the hook that was there before.
pub fn install_panic_hook(dir: Option<PathBuf>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !held() {
                return before(info);
            }
            let draws = *DRAWS.lock().unwrap_or_else(PoisonError::into_inner) == Some(thread::current().id());
            if draws {
                give_back();
            }
            let report = dir.as_deref().map(|dir| write_report(dir, info));
            if draws {
                let _ = writeln!(io::stderr(), "{}", message(info, report));
            }
        }));
    });
}

fn message(info: &PanicHookInfo<'_>, report: Option<io::Result<PathBuf>>) -> String {
    match report {
        Some(Ok(path)) => format!("modeldeck: internal error, the terminal was given back; details are in {}", path.display()),
        _ => format!("modeldeck: internal error, the terminal was given back; {}", summary(info)),
    }
}

/// What happened and where, on one harmless line.
fn summary(info: &PanicHookInfo<'_>) -> String {
    let what = info.payload_as_str().unwrap_or("no message");
    let place = info.location().map_or_else(|| "unknown place".to_owned(), ToString::to_string);
    cells::harmless(&format!("{what} at {place}"), Charset::Ascii)
}

fn write_report(dir: &Path, info: &PanicHookInfo<'_>) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let path = dir.join(format!("panic-{}.txt", std::process::id()));
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
    writeln!(file, "modeldeck {}\n{}\n{}", env!("CARGO_PKG_VERSION"), summary(info), Backtrace::force_capture())?;
    Ok(path)
}
