//! The one place that writes to stdout and stderr.

use std::io::{self, BufWriter, IsTerminal, Write};

use serde::Serialize;

use super::error::CliError;

/// Where a command writes.
pub(super) struct Out {
    answer: Box<dyn Write>,
    words: Box<dyn Write>,
    columns: Option<usize>,
}

impl Out {
    /// stdout and stderr.
    pub(super) fn standard() -> Self {
        let stdout = io::stdout();
        let columns = stdout.is_terminal().then(|| columns(&stdout)).flatten();
        Self { answer: Box::new(BufWriter::new(stdout)), words: Box::new(io::stderr()), columns }
    }

    /// Width of the terminal that the answer goes to; `None` where it goes to no terminal, and nothing may be cut.
    pub(super) fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// Writes a part of the answer.
    pub(super) fn text(&mut self, text: &str) -> Result<(), CliError> {
        Ok(self.answer.write_all(text.as_bytes())?)
    }

    /// Writes one line of the answer.
    pub(super) fn line(&mut self, line: &str) -> Result<(), CliError> {
        self.text(line)?;
        self.text("\n")
    }

    /// Writes bytes of the answer.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        Ok(self.answer.write_all(bytes)?)
    }

    /// Writes a document as JSON.
    pub(super) fn json(&mut self, document: &impl Serialize) -> Result<(), CliError> {
        serde_json::to_writer_pretty(&mut self.answer, document).map_err(|error| match error.io_error_kind() {
            Some(kind) => CliError::from(io::Error::from(kind)),
            None => CliError::Format { format: "json", why: error.to_string() },
        })?;
        self.text("\n")
    }

    /// Writes a document as YAML.
    pub(super) fn yaml(&mut self, document: &impl Serialize) -> Result<(), CliError> {
        let text = serde_saphyr::to_string(document).map_err(|error| CliError::Format { format: "yaml", why: error.to_string() })?;
        self.text(&text)?;
        if text.ends_with('\n') { Ok(()) } else { self.text("\n") }
    }

    /// Says something beside the answer. That nobody hears it is no failure.
    pub(super) fn say(&mut self, words: &str) {
        let _ = writeln!(self.words, "{words}");
    }

    /// Writes out what is still held back.
    pub(super) fn finish(&mut self) -> Result<(), CliError> {
        Ok(self.answer.flush()?)
    }
}

/// Width of a terminal.
fn columns(stdout: &io::Stdout) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stdout).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
