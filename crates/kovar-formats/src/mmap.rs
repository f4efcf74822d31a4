//! Read-only file mappings.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use kovar_core::{HostBytes, HostMemory};
use memmap2::Mmap;

/// Bytes of the largest page in use, a multiple of the smaller ones (4 and 16 KiB). Only whole
/// pages of this size are released, so that no page outside a released range is touched.
const PAGE: usize = 64 * 1024;

struct MappedFile {
    map: Mmap,
}

impl HostMemory for MappedFile {
    fn bytes(&self) -> &[u8] {
        &self.map
    }

    fn release(&self, range: Range<usize>) {
        let Some(pages) = whole_pages(range, self.map.len()) else {
            return;
        };
        #[cfg(unix)]
        {
            // SAFETY: `DontNeed` may discard changes made to the pages. The mapping is read-only
            // and never written, so there are no changes, and a later read loads the same bytes
            // from the file again. `pages` lies inside the mapping.
            let advised = unsafe {
                self.map.unchecked_advise_range(
                    memmap2::UncheckedAdvice::DontNeed,
                    pages.start,
                    pages.len(),
                )
            };
            // The call is advice: if the system refuses it, the pages stay in memory.
            let _ = advised;
        }
        #[cfg(not(unix))]
        let _ = pages;
    }
}

/// The whole pages inside `range` of a mapping of `len` bytes. The last page of the mapping counts
/// as whole if the range reaches the end of the mapping.
fn whole_pages(range: Range<usize>, len: usize) -> Option<Range<usize>> {
    let start = range.start.checked_next_multiple_of(PAGE)?;
    let end = if range.end == len {
        len
    } else {
        range.end.min(len) / PAGE * PAGE
    };
    (start < end).then_some(start..end)
}

/// Maps the file at `path` read-only.
///
/// The pages are read from disk when they are first touched. On Unix, [`HostBytes::release`] drops
/// the whole pages inside a window.
///
/// The file must not be shortened while it is mapped: a read beyond the new end makes the system
/// raise a signal.
///
/// # Errors
/// The file cannot be opened or mapped, or is a folder, a pipe or a device.
pub fn map_file(path: impl AsRef<Path>) -> io::Result<HostBytes> {
    let path = path.as_ref();
    // Opening a pipe would block until a writer opens it.
    let attributes = std::fs::metadata(path)?;
    if attributes.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder"));
    }
    if !attributes.is_file() {
        let error = "it is not a regular file";
        return Err(io::Error::new(ErrorKind::InvalidInput, error));
    }
    let file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(HostBytes::new(Arc::new(Vec::new())));
    }
    // SAFETY: the mapping is read-only, and this process only reads it through `&[u8]`. Another
    // process could write to the file. Every reader of this crate checks bytes where it decodes
    // them and copies what it keeps (names, numbers, text), so a change gives wrong values or an
    // error, not an out-of-bounds access.
    let map = unsafe { Mmap::map(&file)? };
    Ok(HostBytes::new(Arc::new(MappedFile { map })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pages_inside_the_range_are_released() {
        let s = PAGE;
        assert_eq!(whole_pages(0..s, 10 * s), Some(0..s));
        assert_eq!(whole_pages(1..s, 10 * s), None);
        assert_eq!(whole_pages(1..3 * s - 1, 10 * s), Some(s..2 * s));
        assert_eq!(
            whole_pages(s + 1..2 * s + 5, 2 * s + 5),
            Some(2 * s..2 * s + 5)
        );
        assert_eq!(whole_pages(s..s, 10 * s), None);
        assert_eq!(whole_pages(usize::MAX..usize::MAX, 10 * s), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri cannot map files")]
    fn a_released_mapping_stays_readable() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bytes");
        let bytes: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let mapped = map_file(&path).unwrap();
        assert_eq!(mapped.as_slice(), bytes);
        mapped.release();
        mapped.slice(1000..200_000).unwrap().release();
        assert_eq!(mapped.as_slice(), bytes);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no sockets")]
    fn what_is_no_regular_file_is_refused_and_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let error = map_file(dir.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        assert_eq!(error.to_string(), "it is a folder");
        #[cfg(unix)]
        {
            let path = dir.path().join("socket");
            let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
            let error = map_file(&path).unwrap_err();
            assert_eq!(error.to_string(), "it is not a regular file");
            let error = map_file("/dev/zero").unwrap_err();
            assert_eq!(error.to_string(), "it is not a regular file");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri cannot map files")]
    fn an_empty_file_maps_to_no_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("empty");
        std::fs::write(&path, []).unwrap();
        assert!(map_file(&path).unwrap().is_empty());
    }
}
