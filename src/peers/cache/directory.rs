//! The directory and its files: blocking, and whatever fails is told in words that say what helps.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Remembered;
use super::file::{decode, encode};
use crate::apimachinery::server_id::ServerId;

/// Largest file that is read or written: twice what a server may say in its lists, legacy documents included.
const MAX_BYTES: u64 = 64 << 20;

/// Most files that are read.
const MAX_SERVERS: usize = 100;

/// What a file's name ends in, after the server's ID.
const SUFFIX: &str = ".json";

/// Only peerfront reads its files: they tell what a cluster serves.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Where the files lie. Made when it is needed.
#[derive(Debug)]
pub(super) struct Directory(PathBuf);

impl Directory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Makes it, if it is not there, and tries whether it can be written to.
    pub(super) fn prepare(&self) -> Result<(), String> {
        let problem = |error: io::Error| {
            format!(
                "{} cannot be written to: {error}; name a directory with --cache-dir, or none with an empty text (until \
                 then a restart beside a peer that does not answer lists less than before)",
                self.0.display()
            )
        };
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(&self.0).map_err(problem)?;
        let probe = self.0.join(".probe");
        create(&probe).and_then(|_| fs::remove_file(&probe)).map_err(problem)
    }

    /// The servers of which there is a file, save for more than a control plane can have.
    pub(super) fn servers(&self) -> Vec<ServerId> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let id = |name: &str| ServerId::parse(name.strip_suffix(SUFFIX)?);
        entries.filter_map(|entry| id(entry.file_name().to_str()?)).take(MAX_SERVERS).collect()
    }

    /// What the file of a server says; `None` if there is none.
    pub(super) fn read(&self, id: &ServerId) -> Result<Option<Remembered>, String> {
        let path = self.path(id);
        let problem = |error: String| format!("{} is ignored: {error}", path.display());
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(problem(error.to_string())),
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| problem(error.to_string()))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(problem(format!("it has more than {MAX_BYTES} bytes")));
        }
        decode(id, &bytes).map(Some).map_err(|error| problem(crate::peers::chain(&error)))
    }

    /// Writes the file of a server: whole or not at all, whenever the power fails.
    pub(super) fn write(&self, id: &ServerId, remembered: &Remembered) -> Result<(), String> {
        let path = self.path(id);
        let problem = |error: String| format!("{} is not written: {error}", path.display());
        let bytes = encode(id, remembered).map_err(|error| problem(error.to_string()))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(problem(format!("it would have more than {MAX_BYTES} bytes")));
        }
        self.replace(&path, &bytes).map_err(|error| problem(error.to_string()))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = path.with_extension("new");
        let mut file = create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(&self.0)?.sync_all()
    }

    /// Removes the file of a server that has left. One that stays does no harm.
    pub(super) fn remove(&self, id: &ServerId) {
        let _ = fs::remove_file(self.path(id));
    }

    fn path(&self, id: &ServerId) -> PathBuf {
        self.0.join(format!("{id}{SUFFIX}"))
    }
}

/// Makes a file anew, so that neither the rights nor the target of what lay there count.
fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)
}
