//! Files that replace others only once they are complete.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::FileWriteError;

const BUFFER_BYTES: usize = 1 << 18;
/// The most links that are followed, the limit of Linux.
const MAX_LINKS: usize = 40;
/// The most names that are tried. A killed process may have left files under some of them.
const MAX_NAMES: usize = 1000;

/// A complete file that has not yet replaced its target. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct PartialFile {
    partial: PathBuf,
    target: PathBuf,
    is_persisted: bool,
}

impl PartialFile {
    /// Creates a file with a unique name in the folder of `path` and lets `write` fill it. If
    /// `path` is a link, the file that it leads to is meant. If writing fails, no file is left.
    pub(crate) fn write<E: From<FileWriteError>>(
        path: &Path,
        write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let (file, partial) = Self::create(path).map_err(|source| FileWriteError::Create {
            path: path.to_owned(),
            source,
        })?;
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        write(&mut out)?;
        // The bytes must be on the disk before the file replaces another.
        out.flush()
            .and_then(|()| out.get_ref().sync_all())
            .map_err(FileWriteError::Write)?;
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
                    let partial = Self {
                        partial,
                        target,
                        is_persisted: false,
                    };
                    return Ok((file, partial));
                }
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Renames the file to its target, replacing an existing one.
    pub(crate) fn persist(mut self) -> Result<(), FileWriteError> {
        fs::rename(&self.partial, &self.target)?;
        self.is_persisted = true;
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.is_persisted {
            // The error of writing is the one to report.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// `.NAME.<process>-<count>.partial`, a different name at each call.
fn unique(name: OsString) -> OsString {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut unique = OsString::from(".");
    unique.push(name);
    unique.push(format!(".{}-{count}.partial", std::process::id()));
    unique
}

/// The file that the links at `path` lead to, whether or not it exists.
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

/// Writes a file by `write` and puts it at `path`, replacing an existing one.
pub(crate) fn replace_file<E: From<FileWriteError>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    Ok(PartialFile::write(path, write)?.persist()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replace(
        path: &Path,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let written = replace_file(path, |out| write(out).map_err(FileWriteError::Write));
        written.map_err(|error| match error {
            FileWriteError::Create { source, .. } => source,
            FileWriteError::Write(error) => error,
            other => panic!("{other}"),
        })
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
