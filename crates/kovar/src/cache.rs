//! The cache folder.

use std::path::PathBuf;

use etcetera::BaseStrategy;

/// kovar's folder in the user's cache folder; `None` if the user has none.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    let base = etcetera::base_strategy::choose_native_strategy().ok()?;
    Some(base.cache_dir().join("kovar"))
}
