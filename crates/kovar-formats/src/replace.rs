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

/// Writes `path` + `.partial` by `write` and puts it in the place of `path`. Nothing is left of a
/// file that could not be written to its end. `failed` makes an error of the caller's.
pub(crate) fn replace_file<E>(
    path: &Path,
    failed: impl Fn(ReplaceError) -> E,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    let partial = path.with_added_extension("partial");
    let file = File::create(&partial).map_err(|source| {
        failed(ReplaceError::Create {
            path: partial.clone(),
            source,
        })
    })?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
    let written = write(&mut out).and_then(|()| {
        // On the disk before it takes the place of a file that is there.
        out.flush()
            .and_then(|()| out.get_ref().sync_all())
            .and_then(|()| std::fs::rename(&partial, path))
            .map_err(|error| failed(ReplaceError::Write(error)))
    });
    if written.is_err() {
        // The error that is reported is that of writing.
        let _ = std::fs::remove_file(&partial);
    }
    written
}
