//! Files that take the place of others only once they are complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 1 << 18;

/// What may go wrong with the file itself.
pub(crate) enum ReplaceError {
    /// It could not be created.
    Create { path: PathBuf, source: io::Error },
    /// It could not be completed or put in its place.
    Write(io::Error),
}

/// A complete file that is not yet in its place; dropping it removes it.
#[derive(Debug)]
pub(crate) struct PartialFile {
    partial: PathBuf,
    path: PathBuf,
}

impl PartialFile {
    /// Writes `path` with `.partial` appended by `write`. Nothing is left of a file that could not
    /// be written to its end. `failed` makes an error of the caller's.
    pub(crate) fn write<E>(
        path: &Path,
        failed: impl Fn(ReplaceError) -> E,
        write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let partial = path.with_added_extension("partial");
        let file = File::create(&partial).map_err(|source| {
            failed(ReplaceError::Create {
                path: partial.clone(),
                source,
            })
        })?;
        let partial = Self {
            partial,
            path: path.to_owned(),
        };
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        write(&mut out)?;
        // On the disk before it takes the place of a file that is there.
        out.flush()
            .and_then(|()| out.get_ref().sync_all())
            .map_err(|error| failed(ReplaceError::Write(error)))?;
        Ok(partial)
    }

    /// Puts the file into its place, where it replaces one that is there.
    pub(crate) fn persist(self) -> Result<(), ReplaceError> {
        std::fs::rename(&self.partial, &self.path).map_err(ReplaceError::Write)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // Gone already where it is in its place; where it isn't, the error that is reported is that
        // of writing.
        let _ = std::fs::remove_file(&self.partial);
    }
}

/// Writes a file by `write` and puts it in the place of `path`.
pub(crate) fn replace_file<E>(
    path: &Path,
    failed: impl Fn(ReplaceError) -> E,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    let written = PartialFile::write(path, &failed, write)?;
    written.persist().map_err(failed)
}
