//! Keys as people name them (`j`, `ctrl-d`, `pgdn`), and which action each of them means.
//!
//! Matches the character that a key produces, never shift and a key. Knows crossterm's events, and no page.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::action::{Action, TABLE};

/// One key press.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chord {
    /// The key.
    pub key: Key,
    /// With control.
    pub ctrl: bool,
}

/// A key of which the console knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Esc,
    /// Backspace.
    Backspace,
    /// Tab.
    Tab,
    /// Shift-tab.
    BackTab,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
}

const NAMES: [(&str, Key); 11] = [
    ("enter", Key::Enter),
    ("esc", Key::Esc),
    ("backspace", Key::Backspace),
    ("tab", Key::Tab),
    ("shift-tab", Key::BackTab),
    ("up", Key::Up),
    ("down", Key::Down),
    ("pgup", Key::PageUp),
    ("pgdn", Key::PageDown),
    ("home", Key::Home),
    ("end", Key::End),
];

impl Chord {
    /// A character without control.
    pub fn of(c: char) -> Self {
        Self { key: Key::Char(c), ctrl: false }
    }

    /// A key without control.
    pub fn key(key: Key) -> Self {
        Self { key, ctrl: false }
    }

    /// Reads a name of the action table.
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(key) = NAMES.iter().find(|(known, _)| *known == name).map(|(_, key)| *key) {
            return Some(Self { key, ctrl: false });
        }
        let (name, ctrl) = name.strip_prefix("ctrl-").map_or((name, false), |rest| (rest, true));
        let mut chars = name.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => Some(Self { key: Key::Char(c), ctrl }),
            _ => None,
        }
    }

    /// The key press of a terminal event. Releases and unknown keys are none; alt and super are not ours.
    pub fn from_event(event: KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release || event.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SUPER | KeyModifiers::META) {
            return None;
        }
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let key = match event.code {
            KeyCode::Char(c) if ctrl => Key::Char(c.to_ascii_lowercase()),
            KeyCode::Char(c) => Key::Char(c),
            KeyCode::Enter => Key::Enter,
            KeyCode::Esc => Key::Esc,
            KeyCode::Backspace => Key::Backspace,
            KeyCode::Tab => Key::Tab,
            KeyCode::BackTab => Key::BackTab,
            KeyCode::Up => Key::Up,
            KeyCode::Down => Key::Down,
            KeyCode::PageUp => Key::PageUp,
            KeyCode::PageDown => Key::PageDown,
            KeyCode::Home => Key::Home,
            KeyCode::End => Key::End,
            _ => return None,
        };
        Some(Self { key, ctrl })
    }
}

/// The action of a key press, if it has one.
pub fn action_of(chord: Chord) -> Option<Action> {
    TABLE.iter().find(|entry| entry.keys.iter().any(|name| Chord::parse(name) == Some(chord))).map(|entry| entry.action)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::collections::BTreeMap;

    #[test]
    fn every_key_of_the_table_reads_and_none_means_two_things() {
        let mut seen: BTreeMap<Chord, Action> = BTreeMap::new();
        for entry in TABLE {
            assert!(!entry.keys.is_empty());
            for name in entry.keys {
                let chord = Chord::parse(name).unwrap_or_else(|| panic!("{name}"));
                assert_eq!(seen.insert(chord, entry.action), None, "{name}");
                assert_eq!(action_of(chord), Some(entry.action));
            }
        }
    }

    #[rstest]
    #[case(KeyCode::Char('G'), KeyModifiers::SHIFT, Some(Action::Bottom))]
    #[case(KeyCode::Char('g'), KeyModifiers::NONE, Some(Action::Top))]
    #[case(KeyCode::Char('d'), KeyModifiers::CONTROL, Some(Action::HalfDown))]
    #[case(KeyCode::Char('D'), KeyModifiers::CONTROL | KeyModifiers::SHIFT, Some(Action::HalfDown))]
    #[case(KeyCode::Char('?'), KeyModifiers::SHIFT, Some(Action::Help))]
    #[case(KeyCode::Char('q'), KeyModifiers::ALT, None)]
    #[case(KeyCode::F(5), KeyModifiers::NONE, None)]
    #[case(KeyCode::Char('ß'), KeyModifiers::NONE, None)]
    fn events(#[case] code: KeyCode, #[case] modifiers: KeyModifiers, #[case] action: Option<Action>) {
        assert_eq!(Chord::from_event(KeyEvent::new(code, modifiers)).and_then(action_of), action);
    }

    #[test]
    fn a_release_is_no_key() {
        let release = KeyEvent::new_with_kind(KeyCode::Char('q'), KeyModifiers::NONE, KeyEventKind::Release);
        assert_eq!(Chord::from_event(release), None);
    }
}
