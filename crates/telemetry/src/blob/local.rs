//! Objects as files: whole or not there, also after a power cut.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use super::BlobError;

/// Writes `content` to `path`: a temporary file, synced, renamed, and its folder synced.
pub(super) fn write(path: &Path, content: &[u8]) -> Result<(), BlobError> {
    let folder = path.parent().expect("an object lies in a folder");
    let failed = |operation, path: &Path| {
        let path = path.to_owned();
        move |source| BlobError::File { operation, path, source }
    };
    fs::create_dir_all(folder).map_err(failed("make the folder", folder))?;
    let temporary = path.with_extension(format!("{}.tmp", uuid::Uuid::now_v7()));
    let written = File::create_new(&temporary).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&temporary, path));
    if let Err(source) = renamed {
        // What is left of it has no name that anybody reads.
        let _ = fs::remove_file(&temporary);
        return Err(failed("write", path)(source));
    }
    // The folders above may be new as well.
    for folder in path.ancestors().skip(1).take(7) {
        sync_folder(folder).map_err(failed("sync the folder", folder))?;
    }
    Ok(())
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    match File::open(folder) {
        Ok(opened) => opened.sync_all(),
        // A folder above the store's own may belong to somebody else, and is not new.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

/// Reads the file at `path`, `None` when there is none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, BlobError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(BlobError::File { operation: "read", path: path.to_owned(), source }),
    }
}
