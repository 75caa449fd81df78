//! The directory of a bundle: the only place that opens files. Never leaves the directory, and never reads more than a cap.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;

use super::BundleError;

/// Most files of a directory that are looked at.
const MAX_FILES: usize = 20_000;

/// A directory, opened.
pub(super) struct Folder {
    root: PathBuf,
}

/// A file's bytes, and whether that is all of it.
pub(super) struct Content {
    /// The bytes, at most as many as were asked for.
    pub(super) bytes: Vec<u8>,
    /// Bytes that were left out.
    pub(super) left_out: u64,
}

impl Content {
    /// The text: bytes that are no UTF-8 become U+FFFD, a byte-order mark goes, line ends become `\n`.
    pub(super) fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        if text.contains('\r') { text.replace("\r\n", "\n") } else { text.to_owned() }
    }
}

impl Folder {
    /// Opens a directory.
    pub(super) fn open(dir: &Path) -> Result<Self, BundleError> {
        let failed = |source| BundleError::Unreadable { dir: dir.to_owned(), source };
        let root = fs::canonicalize(dir).map_err(failed)?;
        if !root.is_dir() {
            return Err(BundleError::NotADirectory { dir: dir.to_owned() });
        }
        fs::read_dir(&root).map_err(failed)?;
        Ok(Self { root })
    }

    /// Names of its entries in order, each with whether it is a folder. Hidden ones are left out.
    pub(super) fn names(&self) -> Vec<(String, bool)> {
        let mut names: Vec<_> = fs::read_dir(&self.root)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .take(MAX_FILES)
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path().is_dir()))
            .filter(|(name, _)| !name.starts_with('.'))
            .collect();
        names.sort();
        names
    }

    /// Whether there is an entry of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.root.join(name).symlink_metadata().is_ok()
    }

    /// When a file was last written.
    pub(super) fn written(&self, name: &str) -> Option<Timestamp> {
        Timestamp::try_from(fs::metadata(self.inside(name).ok()?).ok()?.modified().ok()?).ok()
    }

    /// When the newest file was written.
    pub(super) fn newest(&self) -> Option<Timestamp> {
        self.names().iter().filter(|(_, folder)| !folder).filter_map(|(name, _)| self.written(name)).max()
    }

    /// The first `most` bytes of a file.
    pub(super) fn head(&self, name: &str, most: u64) -> Result<Content, String> {
        let (file, length) = self.file(name)?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
        let left_out = length.saturating_sub(bytes.len() as u64);
        Ok(Content { bytes, left_out })
    }

    /// The last `most` bytes of a file.
    pub(super) fn tail(&self, name: &str, most: u64) -> Result<Content, String> {
        let (mut file, length) = self.file(name)?;
        let left_out = length.saturating_sub(most);
        file.seek(SeekFrom::Start(left_out)).map_err(|error| format!("cannot be read: {error}"))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
        Ok(Content { bytes, left_out })
    }

    fn file(&self, name: &str) -> Result<(File, u64), String> {
        let path = self.inside(name)?;
        // Before it is opened: opening a pipe would wait for its writer.
        let known = fs::metadata(&path).map_err(|error| format!("cannot be read: {error}"))?;
        if !known.is_file() {
            return Err("is not a file".into());
        }
        let file = File::open(&path).map_err(|error| format!("cannot be read: {error}"))?;
        Ok((file, known.len()))
    }

    /// The path of a file of the bundle; an error where it leads out of the directory.
    fn inside(&self, name: &str) -> Result<PathBuf, String> {
        let relative = Path::new(name);
        let plain = relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if name.is_empty() || name.contains('\0') || !plain {
            return Err("is not a path inside the bundle: left out".into());
        }
        let path = fs::canonicalize(self.root.join(relative)).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "is not there".to_owned(),
            _ => format!("cannot be read: {error}"),
        })?;
        match path.starts_with(&self.root) {
            true => Ok(path),
            false => Err("leads out of the bundle: left out".into()),
        }
    }
}
