//! The loop: keys, signals and new snapshots in, frames out. One thread owns all state and draws; two others only wait and tell it.
//!
//! Input has a thread of its own because crossterm's reader can block inside a half-received key and never returns from a terminal
//! that hung up; signals have one because they must be heard meanwhile, and must end the program even where drawing blocks.

use std::io::{self, Stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crossterm::event::{self, Event, KeyEvent};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::iterator::backend::Handle;
use signal_hook::low_level::{emulate_default_handler, signal_name};

use super::app::{App, Effect};
use super::frame;
use super::keymap::Chord;
use super::scene::Scene;
use super::screen::{self, Screen};
use super::surroundings::Surroundings;
use super::terminal::{self, Guard};
use crate::model::finding::Finding;
use crate::world::World;

/// Messages that may wait for the drawing thread.
const QUEUE: usize = 1024;
/// How long the input thread waits before it looks whether it should end.
const INPUT_WAIT: Duration = Duration::from_millis(500);
/// How long a signal that ends us waits for an orderly end.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Why the console could not open, or how it ended other than by a key.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// There is no terminal to draw on.
    #[error("the console needs a terminal, and {0} is none; `modeldeck status` and `modeldeck explain` need none")]
    NoTerminal(&'static str),
    /// The terminal failed.
    #[error("terminal: {what}: {source}")]
    Terminal {
        /// What was tried.
        what: &'static str,
        /// What came back.
        source: io::Error,
    },
    /// A signal ended it; the terminal was given back. Nothing needs to be said, and the exit code is 128 and the number.
    #[error("ended by signal {}", signal_name(*.0).unwrap_or("of unknown name"))]
    Signal(i32),
}

impl ConsoleError {
    /// The signal that ended the console, if one did.
    pub fn signal(&self) -> Option<i32> {
        match self {
            Self::Signal(number) => Some(*number),
            _ => None,
        }
    }

    fn terminal(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Terminal { what, source }
    }
}

/// Where newer snapshots come from.
pub trait Feed {
    /// The newest snapshot, if there is one that was not handed out yet. Must not block.
    fn latest(&mut self) -> Option<Scene>;

    /// How often to ask; `None` where nothing new ever comes.
    fn period(&self) -> Option<Duration>;
}

/// A snapshot that stays as it is: a bundle.
struct Still;

impl Feed for Still {
    fn latest(&mut self) -> Option<Scene> {
        None
    }

    fn period(&self) -> Option<Duration> {
        None
    }
}

/// Opens the console on one snapshot, and returns when it is closed. `title` names where the snapshot comes from.
pub fn open(world: Arc<World>, findings: Vec<Finding>, title: String) -> Result<(), ConsoleError> {
    run(Scene::new(world, findings, title), &mut Still)
}

/// Opens the console on a snapshot and on those that follow it.
pub fn run(scene: Scene, feed: &mut dyn Feed) -> Result<(), ConsoleError> {
    if let Some(which) = terminal::missing() {
        return Err(ConsoleError::NoTerminal(which));
    }
    let surroundings = Surroundings::read();
    terminal::install_panic_hook(surroundings.state_dir.clone());
    let (sender, messages) = sync_channel(QUEUE);
    // Before the first mode is switched: from then on a signal must find somebody who gives it back.
    let signals = listen(sender.clone())?;
    let guard = Guard::enter().map_err(ConsoleError::terminal("switch to the alternate screen"))?;
    let stop = Arc::new(AtomicBool::new(false));
    read_keys(sender, Arc::clone(&stop));
    let size = size()?;
    let console =
        Console { app: App::new(scene, surroundings.theme, size), screen: Screen::new(io::stdout()), guard: &guard, expect_stop: 0 };
    let ended = console.run(feed, &messages, surroundings.fail_on_purpose);
    stop.store(true, Ordering::SeqCst);
    drop(guard);
    signals.close();
    ended
}

enum Message {
    Key(KeyEvent),
    Resize(u16, u16),
    Signal(i32),
    Lost(io::Error),
}

fn size() -> Result<(u16, u16), ConsoleError> {
    let (columns, rows) = crossterm::terminal::size().map_err(ConsoleError::terminal("ask for the size"))?;
    Ok(if columns == 0 || rows == 0 { (80, 24) } else { (columns, rows) })
}

/// Tells of signals. One that ends us is given some time, then the program ends without asking anybody.
fn listen(sender: SyncSender<Message>) -> Result<Handle, ConsoleError> {
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGTSTP, SIGCONT]).map_err(ConsoleError::terminal("listen for signals"))?;
    let handle = signals.handle();
    thread::spawn(move || {
        for signal in signals.forever() {
            let told = sender.try_send(Message::Signal(signal)).is_ok();
            if !matches!(signal, SIGTERM | SIGHUP | SIGINT) {
                continue;
            }
            if told {
                let step = PATIENCE / 30;
                for _ in 0..30 {
                    if !terminal::held() {
                        break;
                    }
                    thread::sleep(step);
                }
            }
            if terminal::held() {
                terminal::give_back_silently();
                let _ = emulate_default_handler(signal);
            }
        }
    });
    Ok(handle)
}

fn read_keys(sender: SyncSender<Message>, stop: Arc<AtomicBool>) {
    thread::spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            let message = match event::poll(INPUT_WAIT).and_then(|ready| if ready { event::read().map(Some) } else { Ok(None) }) {
                Ok(Some(Event::Key(key))) => Message::Key(key),
                Ok(Some(Event::Resize(columns, rows))) => Message::Resize(columns, rows),
                Ok(_) => continue,
                Err(error) => Message::Lost(error),
            };
            let last = matches!(message, Message::Lost(_));
            if sender.send(message).is_err() || last {
                return;
            }
        }
    });
}

struct Console<'a> {
    app: App,
    screen: Screen<Stdout>,
    guard: &'a Guard,
    /// Stop signals that we sent ourselves and that still come back to us.
    expect_stop: usize,
}

impl Console<'_> {
    fn run(mut self, feed: &mut dyn Feed, messages: &Receiver<Message>, fail_on_purpose: bool) -> Result<(), ConsoleError> {
        loop {
            self.draw()?;
            #[cfg(debug_assertions)]
            #[allow(clippy::panic)]
            // Debug builds only, for the test of the panic hook.
            if fail_on_purpose {
                panic!("asked to fail by MODELDECK_TEST_PANIC");
            }
            let _ = fail_on_purpose;
            let first = match feed.period() {
                None => Some(messages.recv().map_err(|_| gone())?),
                Some(period) => match messages.recv_timeout(period) {
                    Ok(message) => Some(message),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return Err(gone()),
                },
            };
            // All that waits is handled before anything is drawn: typing ahead never makes the screen lag.
            for message in first.into_iter().chain(messages.try_iter().take(QUEUE)) {
                if self.handle(message)? == Effect::Quit {
                    return Ok(());
                }
            }
            if let Some(scene) = feed.latest() {
                self.app.replace_scene(scene);
            }
        }
    }

    fn draw(&mut self) -> Result<(), ConsoleError> {
        let mut buffer = screen::frame(self.app.size);
        frame::draw(&self.app, &mut buffer);
        self.screen.show(buffer).map_err(ConsoleError::terminal("write"))
    }

    fn handle(&mut self, message: Message) -> Result<Effect, ConsoleError> {
        let effect = match message {
            Message::Key(key) => Chord::from_event(key).map_or(Effect::None, |chord| self.app.on_key(chord)),
            Message::Resize(columns, rows) => {
                self.app.resize((columns, rows));
                Effect::Redraw
            }
            Message::Signal(SIGTSTP) if self.expect_stop > 0 => {
                self.expect_stop -= 1;
                Effect::None
            }
            Message::Signal(SIGTSTP) => {
                self.suspend(false)?;
                Effect::Redraw
            }
            Message::Signal(SIGCONT) => {
                self.resume()?;
                Effect::Redraw
            }
            Message::Signal(signal) => return Err(ConsoleError::Signal(signal)),
            Message::Lost(source) => {
                return Err(ConsoleError::Terminal { what: "read", source });
            }
        };
        match effect {
            Effect::Suspend => {
                self.suspend(true)?;
                self.screen.forget();
            }
            Effect::Redraw => self.screen.forget(),
            Effect::None | Effect::Quit => {}
        }
        Ok(effect)
    }

    /// Gives the terminal back, stops, and takes it again when continued. `whole_job`: the key was pressed, so nobody told the others.
    fn suspend(&mut self, whole_job: bool) -> Result<(), ConsoleError> {
        if !terminal::can_stop() {
            self.app.notice = Some("suspend: there is no shell to return to".to_owned());
            return Ok(());
        }
        terminal::give_back();
        if whole_job && terminal::stop_job().is_ok() {
            self.expect_stop += 1;
        }
        terminal::stop_here().map_err(ConsoleError::terminal("stop"))?;
        self.resume()
    }

    fn resume(&mut self) -> Result<(), ConsoleError> {
        self.guard.take().map_err(ConsoleError::terminal("switch to the alternate screen again"))?;
        self.app.resize(size()?);
        Ok(())
    }
}

fn gone() -> ConsoleError {
    ConsoleError::Terminal { what: "read", source: io::Error::other("input ended") }
}
