//! The action table: everything that can be done on the screen, its keys, and its words. Footer, help and keymap come from it.

use super::app::{App, Overlay, Page};

/// Something that can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// One row or line down.
    Down,
    /// One up.
    Up,
    /// Half a screen down.
    HalfDown,
    /// Half a screen up.
    HalfUp,
    /// A screen down.
    PageDown,
    /// A screen up.
    PageUp,
    /// To the first row or line.
    Top,
    /// To the last.
    Bottom,
    /// Opens the selected row.
    Open,
    /// Closes what lies on top, ends a filter, or goes back.
    Back,
    /// Asks for a filter.
    Filter,
    /// Worst first, or by name.
    Sort,
    /// To the next page.
    NextPage,
    /// To the fleet.
    Fleet,
    /// To the model.
    Model,
    /// Shows inputs that could not be read.
    Problems,
    /// Asks for a command.
    Command,
    /// Shows help.
    Help,
    /// Draws everything anew.
    Redraw,
    /// Gives the terminal back until the shell continues us.
    Suspend,
    /// Closes what lies on top, or ends the program.
    Quit,
    /// Ends the program from anywhere.
    QuitNow,
}

/// Where an action is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// On every page.
    Everywhere,
    /// On this page only.
    On(Page),
}

/// One row of the table.
#[derive(Debug)]
pub struct Entry {
    /// What it does.
    pub action: Action,
    /// Its name in commands and configuration.
    pub id: &'static str,
    /// Keys, the one to show first.
    pub keys: &'static [&'static str],
    /// One or two words for the footer.
    pub title: &'static str,
    /// A sentence for the help.
    pub help: &'static str,
    /// Where it is offered.
    pub on: Where,
    /// Whether the footer shows it.
    pub footer: bool,
}

macro_rules! table {
    ($($action:ident $id:literal [$($key:literal),+] $title:literal $on:expr, $footer:literal, $help:literal;)+) => {
        /// Every action.
        pub const TABLE: &[Entry] = &[$(Entry {
            action: Action::$action, id: $id, keys: &[$($key),+], title: $title, help: $help, on: $on, footer: $footer,
        }),+];
    };
}

table! {
    Open "open" ["enter"] "open" Where::On(Page::Fleet), true, "open the selected model service or engine";
    Back "back" ["esc", "backspace"] "back" Where::On(Page::Model), true, "close what lies on top, end the filter, or go back";
    Filter "filter" ["/"] "filter" Where::On(Page::Fleet), true, "show only rows that contain a text";
    Sort "sort" ["s"] "sort" Where::On(Page::Fleet), true, "worst first, or by name";
    Down "down" ["j", "down"] "down" Where::Everywhere, false, "one row or line down";
    Up "up" ["k", "up"] "up" Where::Everywhere, false, "one row or line up";
    HalfDown "half-down" ["ctrl-d"] "half down" Where::Everywhere, false, "half a screen down";
    HalfUp "half-up" ["ctrl-u"] "half up" Where::Everywhere, false, "half a screen up";
    PageDown "page-down" ["pgdn", "ctrl-f"] "page down" Where::Everywhere, false, "a screen down";
    PageUp "page-up" ["pgup", "ctrl-b"] "page up" Where::Everywhere, false, "a screen up";
    Top "top" ["g", "home"] "top" Where::Everywhere, false, "to the first row or line";
    Bottom "bottom" ["G", "end"] "bottom" Where::Everywhere, false, "to the last row or line";
    NextPage "next-page" ["tab", "shift-tab"] "page" Where::Everywhere, true, "to the other page";
    Fleet "fleet" ["1"] "fleet" Where::Everywhere, false, "the Fleet page: one line for each role";
    Model "model" ["2"] "model" Where::Everywhere, false, "the Model page of the selected row";
    Problems "problems" ["p"] "inputs" Where::Everywhere, false, "inputs that could not be read";
    Command "command" [":"] "command" Where::Everywhere, false, "a command by name: :q, :fleet, :model, :help …";
    Redraw "redraw" ["ctrl-l"] "redraw" Where::Everywhere, false, "draw everything anew";
    Suspend "suspend" ["ctrl-z"] "suspend" Where::Everywhere, false, "give the terminal back to the shell; fg returns";
    Help "help" ["?"] "help" Where::Everywhere, true, "this help";
    Quit "quit" ["q"] "quit" Where::Everywhere, true, "close what lies on top, else end the program";
    QuitNow "quit-now" ["ctrl-c"] "quit now" Where::Everywhere, false, "end the program from anywhere";
}

/// The entry of an action.
pub fn entry(action: Action) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.action == action)
}

impl Action {
    /// Whether it can be done now; if not, why.
    pub fn available(self, app: &App) -> Result<(), &'static str> {
        let overlaid = app.overlay.is_some();
        match self {
            Self::Open | Self::Filter | Self::Sort if overlaid => Err("close this first: esc"),
            Self::Filter | Self::Sort | Self::Open if app.page != Page::Fleet => Err("only on the Fleet page: 1"),
            Self::Open if app.fleet.selected.is_none() => Err("there is no row to open"),
            Self::Model | Self::NextPage if app.fleet.selected.is_none() && app.model.is_none() => Err("there is no row to open"),
            Self::Problems if app.scene.world.problems.is_empty() && !matches!(app.overlay, Some((Overlay::Problems, _))) => {
                Err("every input could be read")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_action_stands_in_the_table_once() {
        let ids: BTreeSet<_> = TABLE.iter().map(|entry| entry.id).collect();
        let actions: BTreeSet<_> = TABLE.iter().map(|entry| entry.action).collect();
        assert_eq!((ids.len(), actions.len()), (TABLE.len(), TABLE.len()));
        assert!(TABLE.iter().all(|entry| !entry.title.is_empty() && !entry.help.is_empty()));
        assert_eq!(entry(Action::QuitNow).map(|entry| entry.id), Some("quit-now"));
    }
}
