//! Files that take the place of others only once they are complete.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const BUFFER_BYTES: usize = 1 << 18;
/// Links that are followed, as many as Linux follows.
const MAX_LINKS: usize = 40;
/// Names that are tried: those of a process that was killed may be taken.
const MAX_NAMES: usize = 1000;

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
    target: PathBuf,
    is_placed: bool,
}

impl PartialFile {
    /// Writes a file beside `path`, of a name that no other file has, by `write`. If `path` is a link,
    /// what it leads to is meant. Nothing is left of a file that could not be written to its end.
    /// `failed` makes an error of the caller's.
    pub(crate) fn write<E>(
        path: &Path,
        failed: impl Fn(ReplaceError) -> E,
        write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let (file, partial) = Self::create(path).map_err(|source| {
            failed(ReplaceError::Create {
                path: path.to_owned(),
                source,
            })
        })?;
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        write(&mut out)?;
        // On the disk before it takes the place of a file that is there.
        out.flush()
            .and_then(|()| out.get_ref().sync_all())
            .map_err(|error| failed(ReplaceError::Write(error)))?;
        Ok(partial)
    }

    fn create(path: &Path) -> io::Result<(File, Self)> {
        let target = target_of(path)?;
        let name = target.file_name().ok_or(ErrorKind::InvalidInput)?;
        if fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "it is not a regular file",
            ));
        }
        for _ in 0..MAX_NAMES {
            let partial = target.with_file_name(unique(name.to_owned()));
            match File::create_new(&partial) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                created => {
                    let file = created?;
                    let is_placed = false;
                    return Ok((
                        file,
                        Self {
                            partial,
                            target,
                            is_placed,
                        },
                    ));
                }
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Puts the file into its place, where it replaces one that is there.
    pub(crate) fn persist(mut self) -> Result<(), ReplaceError> {
        fs::rename(&self.partial, &self.target).map_err(ReplaceError::Write)?;
        self.is_placed = true;
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.is_placed {
            // The error that is reported is that of writing.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// `.NAME.<process>-<count>.partial`, another name for each call.
fn unique(name: OsString) -> OsString {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut unique = OsString::from(".");
    unique.push(name);
    unique.push(format!(".{}-{count}.partial", std::process::id()));
    unique
}

/// What `path` leads to, be it there or not.
fn target_of(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(to) => target = target.with_file_name(to),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        "too many links follow each other",
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn replace(
        path: &Path,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let failed = |error| match error {
            ReplaceError::Create { source, .. } => source,
            ReplaceError::Write(error) => error,
        };
        replace_file(path, failed, write)
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn of_two_writers_at_once_one_leaves_its_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let both_write = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for byte in [b'a', b'b'] {
                let (path, both_write) = (&path, &both_write);
                scope.spawn(move || {
                    replace(path, |out| {
                        out.write_all(&vec![byte; BUFFER_BYTES + 1])?;
                        both_write.wait();
                        out.write_all(&vec![byte; BUFFER_BYTES + 1])
                    })
                    .unwrap();
                });
            }
        });
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 2 * (BUFFER_BYTES + 1));
        assert!(bytes.iter().all(|byte| *byte == bytes[0]));
        assert_eq!(names(folder.path()), ["model"]);
    }

    #[test]
    fn files_beside_it_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let bystander = folder.path().join("model.partial");
        fs::write(&bystander, "mine").unwrap();
        replace(&path, |out| out.write_all(b"whole")).unwrap();
        let failed = replace(&path, |out| {
            out.write_all(b"half")?;
            Err(ErrorKind::Other.into())
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Other);
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read(&bystander).unwrap(), b"mine");
        assert_eq!(names(folder.path()), ["model", "model.partial"]);
    }

    #[test]
    fn a_folder_or_no_name_at_all_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path(), Path::new(""), Path::new("/")] {
            let error = replace(path, |out| out.write_all(b"x")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{}", path.display());
        }
        assert_eq!(names(folder.path()).len(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_what_it_leads_to_is_replaced() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("inner")).unwrap();
        fs::write(at("inner/model"), "old").unwrap();
        symlink("inner/model", at("link")).unwrap();
        symlink(at("link"), at("second")).unwrap();
        symlink("inner/missing", at("dangling")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for (link, target) in [
            ("link", "inner/model"),
            ("second", "inner/model"),
            ("dangling", "inner/missing"),
        ] {
            replace(&at(link), |out| out.write_all(link.as_bytes())).unwrap();
            assert_eq!(fs::read(at(target)).unwrap(), link.as_bytes());
            assert!(
                fs::read_link(at(link)).is_ok(),
                "{link} is no link any more"
            );
        }
        assert_eq!(names(&at("inner")), ["missing", "model"]);
        let error = replace(&at("loop"), |out| out.write_all(b"x")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}
