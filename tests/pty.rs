//! The real binary in a pseudo-terminal: it draws, obeys keys, and gives the terminal back as it was, however it ends.
#![cfg(all(feature = "tui", unix))]
// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

const MODELDECK: &str = env!("CARGO_BIN_EXE_modeldeck");
const BUNDLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cases/B001-engine-core-silent");
const NOW: &str = "2026-11-12T10:00:00Z";
/// Looks at the screen before a test gives up, and the pause between them: half a minute, for a busy machine.
const LOOKS: usize = 600;
const PAUSE: Duration = Duration::from_millis(50);

struct Terminal {
    master: Box<dyn MasterPty + Send>,
    writer: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    screen: Arc<Mutex<vt100::Parser>>,
    /// All bytes that the program wrote.
    raw: Arc<Mutex<Vec<u8>>>,
    state: tempfile::TempDir,
    modes_before: String,
}

impl Terminal {
    fn open(size: (u16, u16), program: &str, args: &[&str], env: &[(&str, &str)]) -> Self {
        let pty = native_pty_system();
        let pair = pty.openpty(PtySize { rows: size.1, cols: size.0, pixel_width: 0, pixel_height: 0 }).unwrap();
        let state = tempfile::tempdir().unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.env_clear();
        for (name, value) in [("TERM", "xterm-256color"), ("LANG", "C.UTF-8"), ("PATH", "/usr/bin:/bin"), ("PS1", "shell> ")] {
            command.env(name, value);
        }
        command.env("XDG_STATE_HOME", state.path());
        for (name, value) in env {
            command.env(name, value);
        }
        let modes_before = format!("{:?}", pair.master.get_termios());
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let (rows, columns) = (size.1.try_into().unwrap(), size.0.try_into().unwrap());
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (into_screen, into_raw) = (Arc::clone(&screen), Arc::clone(&raw));
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut bytes) {
                into_raw.lock().unwrap().extend_from_slice(&bytes[..n]);
                into_screen.lock().unwrap().process(&bytes[..n]);
            }
        });
        let writer = pair.master.take_writer().unwrap();
        Self { master: pair.master, writer, child, screen, raw, state, modes_before }
    }

    /// The console on the bundle.
    fn console(env: &[(&str, &str)]) -> Self {
        let terminal = Self::open((100, 30), MODELDECK, &["open", BUNDLE, "--now", NOW], env);
        terminal.until("the Fleet page", |screen| screen.contains("[1 Fleet]"));
        terminal
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until the screen is as wanted.
    fn until(&self, what: &str, wanted: impl Fn(&str) -> bool) {
        for _ in 0..LOOKS {
            if wanted(&self.text()) {
                return;
            }
            thread::sleep(PAUSE);
        }
        panic!("waited for {what}; the screen shows:\n{}", self.text());
    }

    fn keys(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).unwrap();
        self.writer.flush().unwrap();
    }

    fn signal(&self, name: &str) {
        let pid = self.child.process_id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args([format!("-{name}"), pid]).status().unwrap().success());
    }

    /// Waits for the end, and returns the exit code.
    fn ended(&mut self) -> u32 {
        for _ in 0..LOOKS {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.exit_code();
            }
            thread::sleep(PAUSE);
        }
        panic!("did not end; the screen shows:\n{}", self.text());
    }

    /// The terminal is as it was: main screen, cursor, line discipline.
    fn assert_given_back(&self) {
        // The reader may still have to hear the last bytes.
        for _ in 0..LOOKS {
            if !self.screen.lock().unwrap().screen().alternate_screen() {
                break;
            }
            thread::sleep(PAUSE);
        }
        let screen = self.screen.lock().unwrap();
        assert!(!screen.screen().alternate_screen(), "still on the alternate screen");
        assert!(!screen.screen().hide_cursor(), "the cursor is still hidden");
        assert_eq!(format!("{:?}", self.master.get_termios()), self.modes_before, "the modes differ");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn draws_obeys_keys_and_gives_the_terminal_back() {
    let mut terminal = Terminal::console(&[]);
    terminal.until("the model", |screen| screen.contains("qwen-a"));
    terminal.keys("?");
    terminal.until("help", |screen| screen.contains("help ──"));
    terminal.keys("\x1b");
    terminal.until("no help", |screen| !screen.contains("help ──"));
    terminal.keys("\r");
    terminal.until("the Model page", |screen| screen.contains("[2 Model]") && screen.contains("FUNNEL"));
    terminal.keys("\x7f");
    terminal.until("the Fleet page again", |screen| screen.contains("[1 Fleet]"));
    terminal.keys("/zzz");
    terminal.until("an empty table", |screen| screen.contains("no row contains the filter"));
    terminal.keys("\x1b");
    terminal.until("all rows", |screen| !screen.contains("no row contains the filter"));
    terminal.keys("q");
    assert_eq!(terminal.ended(), 0);
    terminal.assert_given_back();
}

#[test]
fn follows_the_size_of_the_terminal() {
    let mut terminal = Terminal::console(&[]);
    for (columns, rows) in [(20u16, 5u16), (140, 40)] {
        terminal.screen.lock().unwrap().screen_mut().set_size(rows.try_into().unwrap(), columns.try_into().unwrap());
        terminal.master.resize(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }).unwrap();
        let wanted = if columns < 40 { "too small: 20x5" } else { "BOTTLENECK" };
        terminal.until(wanted, |screen| screen.contains(wanted));
    }
    terminal.keys(":q\r");
    assert_eq!(terminal.ended(), 0);
    terminal.assert_given_back();
}

#[test]
fn a_signal_ends_it_and_the_terminal_is_given_back() {
    for (name, number) in [("TERM", 15), ("HUP", 1), ("INT", 2)] {
        let mut terminal = Terminal::console(&[]);
        // Half a character: the reader now waits for the rest of it, and the signal must be heard all the same.
        terminal.keys("\u{e9}");
        terminal.writer.write_all(&[0xc3]).unwrap();
        terminal.signal(name);
        assert_eq!(terminal.ended(), 128 + number, "{name}");
        terminal.assert_given_back();
    }
}

/// The window is closed: a hang-up, and no terminal to write to any more.
#[test]
fn ends_when_the_terminal_is_gone() {
    let pair = native_pty_system().openpty(PtySize { rows: 30, cols: 100, pixel_width: 0, pixel_height: 0 }).unwrap();
    let mut command = CommandBuilder::new(MODELDECK);
    command.args(["open", BUNDLE, "--now", NOW]);
    command.env("TERM", "xterm");
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().unwrap();
    let (mut seen, mut bytes) = (Vec::new(), [0; 4096]);
    // Blanks are not written, so no more than one word can be looked for.
    while !String::from_utf8_lossy(&seen).contains("Fleet]") {
        let n = reader.read(&mut bytes).unwrap();
        assert!(n > 0, "ended before it drew anything: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..n]);
    }
    drop((reader, pair.master));
    for _ in 0..LOOKS {
        if child.try_wait().unwrap().is_some() {
            return;
        }
        thread::sleep(PAUSE);
    }
    child.kill().unwrap();
    panic!("lives on without a terminal");
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_again() {
    let mut terminal = Terminal::open((100, 30), "/bin/sh", &["-i"], &[]);
    terminal.until("the shell", |screen| screen.contains("shell> "));
    terminal.keys(&format!("{MODELDECK} open {BUNDLE} --now {NOW}\r"));
    terminal.until("the Fleet page", |screen| screen.contains("[1 Fleet]"));
    for _ in 0..2 {
        terminal.keys("\x1a");
        terminal.until("the shell again", |screen| screen.contains("shell> ") && !screen.contains("[1 Fleet]"));
        terminal.keys("echo back-$((40+2))\r");
        terminal.until("an echo", |screen| screen.contains("back-42"));
        terminal.keys("fg\r");
        terminal.until("the Fleet page again", |screen| screen.contains("[1 Fleet]") && screen.contains("qwen-a"));
    }
    terminal.keys("j?");
    terminal.until("keys to work", |screen| screen.contains("help ──"));
    terminal.keys("qq");
    terminal.until("the shell at the end", |screen| !screen.contains("[1 Fleet]"));
    terminal.keys("clear; echo code-$?\r");
    terminal.until("the exit code", |screen| screen.contains("code-0"));
    terminal.keys("exit\r");
    terminal.ended();
}

#[test]
fn without_a_shell_above_ctrl_z_does_not_stop_it_for_ever() {
    let mut terminal = Terminal::console(&[]);
    terminal.keys("\x1a");
    terminal.until("a notice", |screen| screen.contains("no shell to return to"));
    terminal.keys("q");
    assert_eq!(terminal.ended(), 0);
}

/// Debug builds only: release builds have no way to fail on purpose.
#[cfg(debug_assertions)]
#[test]
fn a_panic_gives_the_terminal_back_and_says_where_the_details_are() {
    let mut terminal = Terminal::open((100, 30), MODELDECK, &["open", BUNDLE, "--now", NOW], &[("MODELDECK_TEST_PANIC", "1")]);
    assert_eq!(terminal.ended(), 101);
    terminal.until("a message", |screen| screen.contains("internal error") && screen.contains("details are in"));
    terminal.assert_given_back();
    let reports: Vec<_> = std::fs::read_dir(terminal.state.path().join("modeldeck")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(reports.len(), 1);
    assert!(std::fs::read_to_string(&reports[0]).unwrap().contains("MODELDECK_TEST_PANIC"));
    assert!(!terminal.text().contains("RUST_BACKTRACE"), "the report is in the file, not on the screen");
}

#[test]
fn no_color_writes_no_colour() {
    for env in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut terminal = Terminal::console(&[env]);
        terminal.keys("\r");
        terminal.until("the Model page", |screen| screen.contains("[2 Model]"));
        terminal.keys("q");
        assert_eq!(terminal.ended(), 0);
        let raw = String::from_utf8_lossy(&terminal.raw.lock().unwrap()).into_owned();
        let mut seen = 0;
        for rest in raw.split("\x1b[").skip(1) {
            let Some((codes, _)) = rest.split_once(|c: char| c.is_ascii_alphabetic()) else { continue };
            if rest.as_bytes().get(codes.len()) == Some(&b'm') {
                seen += 1;
                assert!(codes.split(';').all(|code| matches!(code, "0" | "1" | "2" | "4" | "7")), "{codes:?}");
            }
        }
        assert!(seen > 0);
    }
}

#[test]
fn refuses_where_there_is_no_terminal() {
    let output =
        std::process::Command::new(MODELDECK).args(["open", BUNDLE, "--now", NOW]).stdin(std::process::Stdio::null()).output().unwrap();
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("needs a terminal"));
    assert!(Path::new(BUNDLE).is_dir());
}
