//! Exit codes.

use std::process::ExitCode;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked, whatever it found.
    Done,
    /// There are findings at least as bad as `--fail-on` says.
    Found,
    /// The command line is wrong.
    Usage,
    /// The input can not be read as a whole.
    Input,
    /// The model is not there, or its name fits several.
    Model,
    /// The output can not be written, or there is no terminal for the screen.
    Output,
    /// A signal ended the screen.
    Signal(u8),
}

/// The table of the help and the man page.
pub(super) const TABLE: &str = "Exit codes:
  0  done, whatever was found
  1  there are findings at least as bad as --fail-on says
  2  the command line is wrong
  3  the input can not be read as a whole
  4  no such model, or its name fits several
  5  the output can not be written, or there is no terminal for the screen
  128 and a signal's number  the screen was ended by that signal";

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Found => 1,
            Self::Usage => 2,
            Self::Input => 3,
            Self::Model => 4,
            Self::Output => 5,
            Self::Signal(number) => 128u8.saturating_add(number),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_and_the_docs_have_every_code() {
        let docs = include_str!("../../docs/exit-codes.md");
        for exit in [Exit::Done, Exit::Found, Exit::Usage, Exit::Input, Exit::Model, Exit::Output] {
            assert!(TABLE.contains(&format!("\n  {}  ", exit.code())), "{exit:?} is not in the help");
            assert!(docs.contains(&format!("| {} |", exit.code())), "{exit:?} is not in docs/exit-codes.md");
        }
        assert_eq!(Exit::Signal(15).code(), 143);
    }
}
