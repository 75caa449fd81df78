//! Looks: semantic roles to styles, states to marks. The only file of the house that names a colour.
//!
//! With [`Depth::None`] a style sets modifiers only and leaves both colours untouched, so that the drawing has no colour at all.
//! Must not know a page or read the environment: `surroundings` decides depth and charset once, at the start.

use ratatui::style::{Color, Modifier, Style};

/// What a piece of text is, as far as looks go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Plain text, in the terminal's own colours.
    Text,
    /// Labels, units, what is less important.
    Dim,
    /// Titles and keys: the one accent.
    Accent,
    /// As it should be.
    Good,
    /// Capacity or safety is lost.
    Warn,
    /// Requests are lost.
    Bad,
    /// On its way, or worth knowing.
    Info,
    /// The selected row.
    Selected,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 8] = [Self::Text, Self::Dim, Self::Accent, Self::Good, Self::Warn, Self::Bad, Self::Info, Self::Selected];
}

/// How many colours the terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// None: modifiers only.
    None,
    /// The 16 of ANSI.
    Sixteen,
    /// 256.
    Indexed,
    /// 24 bits.
    True,
}

/// Which characters may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// Marks and lines of Unicode.
    Unicode,
    /// ASCII only.
    Ascii,
}

/// A mark that stands before a word; the word carries the meaning too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// As it should be.
    Good,
    /// On its way.
    Progress,
    /// Waits for something.
    Waiting,
    /// Something is lost.
    Warn,
    /// Broken.
    Bad,
    /// Asleep.
    Asleep,
    /// Stopped on purpose.
    Paused,
    /// Leaving.
    Leaving,
    /// Wanted to be nothing.
    Off,
    /// Worth knowing.
    Info,
    /// Not known.
    Unknown,
}

/// Depth and charset: all that a view needs to look right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Colours.
    pub depth: Depth,
    /// Characters.
    pub charset: Charset,
}

impl Theme {
    /// The style of a role.
    pub fn style(self, role: Role) -> Style {
        let style = Style::new();
        match (self.depth, role) {
            (_, Role::Text) => style,
            (Depth::None, Role::Good | Role::Info) => style,
            (Depth::None, Role::Dim) => style.add_modifier(Modifier::DIM),
            (Depth::None, Role::Accent | Role::Warn) => style.add_modifier(Modifier::BOLD),
            (Depth::None, Role::Bad) => style.add_modifier(Modifier::BOLD.union(Modifier::UNDERLINED)),
            (Depth::None | Depth::Sixteen, Role::Selected) => style.add_modifier(Modifier::REVERSED),
            (_, Role::Accent | Role::Bad) => style.fg(self.colour(role)).add_modifier(Modifier::BOLD),
            (Depth::Indexed, Role::Selected) => style.fg(Color::Indexed(255)).bg(Color::Indexed(238)),
            (Depth::True, Role::Selected) => style.fg(Color::Rgb(238, 238, 238)).bg(Color::Rgb(60, 66, 78)),
            _ => style.fg(self.colour(role)),
        }
    }

    /// Foreground of a role that has one.
    fn colour(self, role: Role) -> Color {
        let (rgb, indexed, ansi) = match role {
            Role::Dim => ((138, 145, 153), 245, Color::DarkGray),
            Role::Accent => ((86, 156, 214), 74, Color::Cyan),
            Role::Good => ((87, 171, 90), 71, Color::Green),
            Role::Warn => ((198, 144, 38), 172, Color::Yellow),
            Role::Bad => ((229, 83, 75), 203, Color::Red),
            Role::Info => ((76, 160, 200), 68, Color::Blue),
            Role::Text | Role::Selected => return Color::Reset,
        };
        match self.depth {
            Depth::True => Color::Rgb(rgb.0, rgb.1, rgb.2),
            Depth::Indexed => Color::Indexed(indexed),
            Depth::Sixteen => ansi,
            Depth::None => Color::Reset,
        }
    }

    /// One of two texts by charset.
    pub fn pick(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        match self.charset {
            Charset::Unicode => unicode,
            Charset::Ascii => ascii,
        }
    }

    /// The character of a mark, one column wide.
    pub fn mark(self, mark: Mark) -> &'static str {
        match mark {
            Mark::Good => self.pick("●", "*"),
            Mark::Progress => self.pick("◐", "~"),
            Mark::Waiting => self.pick("○", "o"),
            Mark::Warn => self.pick("▲", "!"),
            Mark::Bad => self.pick("✖", "x"),
            Mark::Asleep => "z",
            Mark::Paused => self.pick("‖", "="),
            Mark::Leaving => self.pick("▽", "v"),
            Mark::Off => self.pick("◌", "."),
            Mark::Info => "i",
            Mark::Unknown => "?",
        }
    }

    /// What stands for a value that is not known.
    pub fn unknown(self) -> &'static str {
        self.pick("–", "-")
    }

    /// What stands where text was cut.
    pub fn ellipsis(self) -> &'static str {
        self.pick("…", "~")
    }

    /// A horizontal line.
    pub fn rule(self) -> &'static str {
        self.pick("─", "-")
    }

    /// A full piece of a bar, and an empty one.
    pub fn bar(self) -> (&'static str, &'static str) {
        (self.pick("█", "#"), self.pick("░", "."))
    }

    /// What points at the place where something is lost.
    pub fn points_left(self) -> &'static str {
        self.pick("◀", "<")
    }

    /// What separates items of a line.
    pub fn dot(self) -> &'static str {
        self.pick("·", "|")
    }
}

/// The parameter of "select graphic rendition" that sets a colour; none for the terminal's own.
pub(crate) fn sgr(colour: Color, ground: bool) -> Option<String> {
    let (base, bright, wide) = if ground { (40, 100, 48) } else { (30, 90, 38) };
    let basic = |n: u8| Some((base + n).to_string());
    let light = |n: u8| Some((bright + n).to_string());
    match colour {
        Color::Reset => None,
        Color::Rgb(r, g, b) => Some(format!("{wide};2;{r};{g};{b}")),
        Color::Indexed(n) => Some(format!("{wide};5;{n}")),
        Color::Black => basic(0),
        Color::Red => basic(1),
        Color::Green => basic(2),
        Color::Yellow => basic(3),
        Color::Blue => basic(4),
        Color::Magenta => basic(5),
        Color::Cyan => basic(6),
        Color::Gray => basic(7),
        Color::DarkGray => light(0),
        Color::LightRed => light(1),
        Color::LightGreen => light(2),
        Color::LightYellow => light(3),
        Color::LightBlue => light(4),
        Color::LightMagenta => light(5),
        Color::LightCyan => light(6),
        Color::White => light(7),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    const MARKS: [Mark; 11] = [
        Mark::Good,
        Mark::Progress,
        Mark::Waiting,
        Mark::Warn,
        Mark::Bad,
        Mark::Asleep,
        Mark::Paused,
        Mark::Leaving,
        Mark::Off,
        Mark::Info,
        Mark::Unknown,
    ];

    #[test]
    fn without_colour_a_style_sets_modifiers_only() {
        let theme = Theme { depth: Depth::None, charset: Charset::Unicode };
        for role in Role::ALL {
            let style = theme.style(role);
            assert_eq!((style.fg, style.bg, style.underline_color), (None, None, None), "{role:?}");
        }
        assert_ne!(theme.style(Role::Selected), Style::new());
        assert_ne!(theme.style(Role::Bad), theme.style(Role::Warn));
    }

    #[test]
    fn each_depth_uses_only_its_own_colours() {
        for role in [Role::Dim, Role::Accent, Role::Good, Role::Warn, Role::Bad, Role::Info] {
            let fg = |depth| Theme { depth, charset: Charset::Unicode }.style(role).fg;
            assert!(matches!(fg(Depth::True), Some(Color::Rgb(..))), "{role:?}");
            assert!(matches!(fg(Depth::Indexed), Some(Color::Indexed(_))), "{role:?}");
            assert!(!matches!(fg(Depth::Sixteen), None | Some(Color::Rgb(..) | Color::Indexed(_) | Color::Reset)), "{role:?}");
        }
    }

    #[test]
    fn marks_are_one_column_and_ascii_where_asked() {
        for charset in [Charset::Unicode, Charset::Ascii] {
            let theme = Theme { depth: Depth::None, charset };
            let texts = MARKS.map(|mark| theme.mark(mark)).into_iter().chain([
                theme.unknown(),
                theme.ellipsis(),
                theme.rule(),
                theme.bar().0,
                theme.bar().1,
                theme.points_left(),
                theme.dot(),
            ]);
            for text in texts {
                assert_eq!(text.width(), 1, "{text}");
                assert!(charset == Charset::Unicode || text.is_ascii(), "{text}");
            }
        }
    }
}
