//! State of the screen, and how actions change it. Owns selection, scrolling, filter, prompts; draws nothing and waits for nothing.

use unicode_segmentation::UnicodeSegmentation;

use super::action::{Action, TABLE, entry};
use super::frame;
use super::keymap::{Chord, Key, action_of};
use super::pages::{self, fleet, model};
use super::scene::{RowKey, Scene, Target};
use super::theme::Theme;
use super::widgets::document::Document;

/// Characters that a prompt takes.
const MAX_PROMPT: usize = 120;

/// A page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Page {
    /// One line for each role.
    Fleet,
    /// One model service, or one engine.
    Model,
}

/// What lies on top of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlay {
    /// Keys and words.
    Help,
    /// Inputs that could not be read.
    Problems,
}

/// What the running program must do after an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Draw what changed.
    None,
    /// Draw everything anew.
    Redraw,
    /// Give the terminal back until continued.
    Suspend,
    /// End.
    Quit,
}

/// A line that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// A filter; what stood before it is kept for esc.
    Filter {
        /// The filter before.
        before: String,
    },
    /// A command.
    Command(String),
}

/// The Fleet page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetState {
    /// The selected row, by key: it stays selected when rows move.
    pub selected: Option<RowKey>,
    /// First row in sight, as a place in `shown`.
    pub offset: usize,
    /// Only rows that contain this.
    pub filter: String,
    /// By name instead of worst first.
    pub by_name: bool,
    /// Rows that pass the filter, in order, as places in the scene's rows.
    pub shown: Vec<usize>,
}

/// The Model page.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelState {
    /// What is shown.
    pub target: Target,
    /// First line in sight.
    pub top: usize,
    /// Its lines, laid out for the present width.
    pub(crate) document: Document,
}

/// All state of the screen.
#[derive(Debug, Clone)]
pub struct App {
    /// What is drawn from.
    pub scene: Scene,
    /// Looks.
    pub theme: Theme,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// The page on show.
    pub page: Page,
    /// The Fleet page.
    pub fleet: FleetState,
    /// The Model page, once one was opened.
    pub model: Option<ModelState>,
    /// What lies on top, with its first line in sight.
    pub overlay: Option<(Overlay, usize)>,
    /// What is being typed.
    pub prompt: Option<Prompt>,
    /// One sentence for the footer, until the next key.
    pub notice: Option<String>,
}

impl App {
    /// The Fleet page of a scene.
    pub fn new(scene: Scene, theme: Theme, size: (u16, u16)) -> Self {
        let mut app = Self {
            scene,
            theme,
            size,
            page: Page::Fleet,
            fleet: FleetState::default(),
            model: None,
            overlay: None,
            prompt: None,
            notice: None,
        };
        app.refilter();
        app.settle();
        app
    }

    /// Takes a new snapshot; selection and scrolling stay where they are as far as they still exist.
    pub fn replace_scene(&mut self, scene: Scene) {
        self.scene = scene;
        self.refilter();
        self.relayout();
        self.settle();
    }

    /// Takes a new size.
    pub fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        self.relayout();
        self.settle();
    }

    /// Handles a key press. A key that means nothing costs nothing.
    pub fn on_key(&mut self, chord: Chord) -> Effect {
        self.notice = None;
        if self.prompt.is_some() {
            return self.type_key(chord);
        }
        match action_of(chord) {
            Some(action) => self.update(action),
            None => Effect::None,
        }
    }

    /// Does an action, or says why it can't be done.
    pub fn update(&mut self, action: Action) -> Effect {
        if let Err(why) = action.available(self) {
            let title = entry(action).map_or("this", |entry| entry.title);
            self.notice = Some(format!("{title}: {why}"));
            return Effect::None;
        }
        match action {
            Action::QuitNow => return Effect::Quit,
            Action::Quit if self.overlay.take().is_none() => return Effect::Quit,
            Action::Quit => {}
            Action::Redraw => return Effect::Redraw,
            Action::Suspend => return Effect::Suspend,
            Action::Help => self.toggle(Overlay::Help),
            Action::Problems => self.toggle(Overlay::Problems),
            Action::Command => self.prompt = Some(Prompt::Command(String::new())),
            Action::Filter => self.prompt = Some(Prompt::Filter { before: self.fleet.filter.clone() }),
            Action::Sort => {
                self.fleet.by_name = !self.fleet.by_name;
                self.notice = Some(if self.fleet.by_name { "sorted by name" } else { "sorted worst first" }.to_owned());
                self.refilter();
            }
            Action::Open | Action::Model => self.open(),
            Action::Fleet => self.go(Page::Fleet),
            Action::NextPage if self.page == Page::Fleet => self.open(),
            Action::NextPage => self.go(Page::Fleet),
            Action::Back => self.back(),
            Action::Down => self.step(1),
            Action::Up => self.step(-1),
            Action::HalfDown => self.step(self.screenful() / 2),
            Action::HalfUp => self.step(-(self.screenful() / 2)),
            Action::PageDown => self.step(self.screenful()),
            Action::PageUp => self.step(-self.screenful()),
            Action::Top => self.step(isize::MIN),
            Action::Bottom => self.step(isize::MAX),
        }
        self.settle();
        Effect::None
    }

    fn go(&mut self, page: Page) {
        self.overlay = None;
        self.page = page;
    }

    fn toggle(&mut self, overlay: Overlay) {
        self.overlay = match self.overlay {
            Some((open, _)) if open == overlay => None,
            _ => Some((overlay, 0)),
        };
    }

    fn open(&mut self) {
        self.go(Page::Model);
        let Some(target) = self.fleet.selected.as_ref().map(|row| row.target.clone()) else {
            return;
        };
        if self.model.as_ref().is_none_or(|model| model.target != target) {
            self.model = Some(ModelState { target, top: 0, document: Document::default() });
        }
        self.relayout();
    }

    fn back(&mut self) {
        if self.overlay.take().is_some() {
        } else if self.page == Page::Model {
            self.page = Page::Fleet;
        } else if !self.fleet.filter.is_empty() {
            self.fleet.filter.clear();
            self.refilter();
        }
    }

    /// Lines of the part that scrolls.
    fn screenful(&self) -> isize {
        let body = frame::body(self, self.size);
        let lines = match (self.overlay, self.page) {
            (Some(_), _) => pages::overlay_height(body),
            (None, Page::Fleet) => fleet::rows_height(body),
            (None, Page::Model) => body.height,
        };
        isize::try_from(lines.max(1)).unwrap_or(1)
    }

    /// Moves what scrolls now. What overshoots is put right by `settle`.
    fn step(&mut self, by: isize) {
        if let Some((_, top)) = &mut self.overlay {
            *top = top.saturating_add_signed(by);
        } else if self.page == Page::Fleet {
            let at = self.place().unwrap_or(0).saturating_add_signed(by).min(self.fleet.shown.len().saturating_sub(1));
            self.select(at);
        } else if let Some(model) = &mut self.model {
            model.top = model.top.saturating_add_signed(by);
        }
    }

    /// Place of the selected row among those shown.
    pub(crate) fn place(&self) -> Option<usize> {
        let selected = self.fleet.selected.as_ref()?;
        self.fleet.shown.iter().position(|at| self.scene.rows().get(*at) == Some(selected))
    }

    fn select(&mut self, place: usize) {
        self.fleet.selected = self.fleet.shown.get(place).and_then(|at| self.scene.rows().get(*at)).cloned();
    }

    /// Finds out anew which rows are shown, and in which order.
    fn refilter(&mut self) {
        let before = self.place();
        let needle = self.fleet.filter.to_lowercase();
        let all: Vec<usize> = match self.fleet.by_name {
            true => (0..self.scene.rows().len()).collect(),
            false => self.scene.worst_first().to_vec(),
        };
        let scene = &self.scene;
        let passes =
            |at: &usize| needle.is_empty() || scene.rows().get(*at).is_some_and(|row| fleet::haystack(scene, row).contains(&needle));
        self.fleet.shown = all.into_iter().filter(passes).collect();
        if self.place().is_none() {
            self.select(before.unwrap_or(0).min(self.fleet.shown.len().saturating_sub(1)));
        }
    }

    /// Lays the Model page out anew for the present snapshot and width.
    fn relayout(&mut self) {
        let body = frame::body(self, self.size);
        if let Some(model) = &mut self.model {
            model.document = model::document(&self.scene, &model.target, usize::from(body.width), self.theme);
        }
    }

    /// Puts offsets right, so that the selection is in sight and no page ends above the screen's end.
    fn settle(&mut self) {
        let body = frame::body(self, self.size);
        let rows = usize::from(fleet::rows_height(body)).max(1);
        let place = self.place().unwrap_or(0);
        let most = self.fleet.shown.len().saturating_sub(rows);
        self.fleet.offset = self.fleet.offset.clamp(place.saturating_sub(rows - 1), place).min(most);
        if let Some(model) = &mut self.model {
            model.top = model.top.min(model.document.last_top(body.height));
        }
        if let Some((overlay, top)) = self.overlay {
            let last = pages::overlay_document(self, overlay, body).last_top(pages::overlay_height(body));
            self.overlay = Some((overlay, top.min(last)));
        }
    }

    fn type_key(&mut self, chord: Chord) -> Effect {
        let Some(prompt) = self.prompt.clone() else {
            return Effect::None;
        };
        match (chord.key, chord.ctrl) {
            (Key::Char('c'), true) => return Effect::Quit,
            (Key::Char('z'), true) => return Effect::Suspend,
            (Key::Char('l'), true) => return Effect::Redraw,
            (Key::Char('u'), true) => self.edit(|text| text.clear()),
            (Key::Char(c), false) if !c.is_control() => self.edit(|text| {
                if text.chars().count() < MAX_PROMPT {
                    text.push(c);
                }
            }),
            (Key::Backspace, _) => {
                if self.typed().is_empty() {
                    self.prompt = None;
                } else {
                    self.edit(|text| {
                        let keep = text.grapheme_indices(true).next_back().map_or(0, |(at, _)| at);
                        text.truncate(keep);
                    });
                }
            }
            (Key::Esc, _) => {
                self.prompt = None;
                if let Prompt::Filter { before } = prompt {
                    self.fleet.filter = before;
                    self.refilter();
                }
            }
            (Key::Enter, _) => {
                self.prompt = None;
                if let Prompt::Command(text) = prompt {
                    return self.command(text.trim());
                }
            }
            (Key::Up, _) if matches!(prompt, Prompt::Filter { .. }) => self.step(-1),
            (Key::Down, _) if matches!(prompt, Prompt::Filter { .. }) => self.step(1),
            _ => {}
        }
        self.settle();
        Effect::None
    }

    /// The text being typed.
    pub(crate) fn typed(&self) -> &str {
        match &self.prompt {
            Some(Prompt::Filter { .. }) => &self.fleet.filter,
            Some(Prompt::Command(text)) => text,
            None => "",
        }
    }

    fn edit(&mut self, change: impl FnOnce(&mut String)) {
        match &mut self.prompt {
            Some(Prompt::Command(text)) => change(text),
            Some(Prompt::Filter { .. }) => {
                change(&mut self.fleet.filter);
                self.refilter();
            }
            None => {}
        }
    }

    /// Does a command: the id of an action, or `q`.
    fn command(&mut self, text: &str) -> Effect {
        match text {
            "" => Effect::None,
            "q" | "q!" | "qa" | "quit" | "exit" => Effect::Quit,
            other => match TABLE.iter().find(|entry| entry.id == other) {
                Some(entry) => self.update(entry.action),
                None => {
                    self.notice = Some(format!("no such command: {other}"));
                    Effect::None
                }
            },
        }
    }
}
