//! Where a file goes, and what is there now.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutPayload, WriteMultipart};
use pintail_core::asset::{Asset, PROJECT_VOLUME};
use pintail_core::diagnostic::Code;
use pintail_core::id::SnapshotId;
use pintail_core::partition::PartitionKey;
use pintail_core::sql::stamp::StampEntry;
use pintail_core::write::ErrorClass;
use pintail_engine::Redactor;
use secrecy::ExposeSecret;
use tokio::runtime::Handle;

use super::footer;
use crate::executors::StepFailure;
use crate::workspace::{Config, ObjectStore as StoreConfig, Project};

/// What stands for the partition in a name.
const PARTITION: &str = "{partition}";

/// The end of a file that is read at first: it holds the footer of most files.
const TAIL: u64 = 1 << 16;

/// Larger files are uploaded in parts of this size.
const PART: usize = 16 << 20;

/// One file of an asset.
pub enum Destination {
    /// Under a volume or the project.
    Local {
        /// The file.
        path: PathBuf,
    },
    /// In an object store.
    Store {
        /// The client.
        store: Arc<dyn ObjectStore>,
        /// The whole key in the bucket.
        key: Key,
        /// Runs the client.
        runtime: Handle,
        /// Passes every message.
        redactor: Redactor,
    },
}

/// A file that is there.
#[derive(Clone, Debug)]
pub struct Found {
    /// When it was written, which is also its version.
    pub changed: DateTime<Utc>,
    /// Its stamp; `None` when Pintail has not written it.
    pub stamp: Option<StampEntry>,
}

impl Found {
    /// Returns the version: files have no numbers, but they have times.
    pub fn version(&self) -> SnapshotId {
        SnapshotId(self.changed.timestamp_micros())
    }
}

impl Destination {
    /// Returns the file of `asset` for `partition`.
    pub fn of(
        project: &Project,
        asset: &Asset,
        partition: Option<&PartitionKey>,
        runtime: &Handle,
        redactor: &Redactor,
    ) -> Result<Self, StepFailure> {
        let unknown = |kind: &str, name: &str| {
            StepFailure::user(Code::UNKNOWN_PLACE, "find the target", format!("there is no {kind} `{name}`"))
        };
        match asset {
            Asset::Volume { volume, path } => {
                let folder = match volume.as_str() {
                    PROJECT_VOLUME => &project.root,
                    name => &project.config.volumes.get(name).ok_or_else(|| unknown("volume", name))?.path,
                };
                Ok(Self::Local { path: folder.join(filled(path, partition)) })
            }
            Asset::Object { store, key } => {
                let config = store_config(&project.config, store).ok_or_else(|| unknown("object store", store))?;
                let (bucket, prefix) = bucket_and_prefix(&config.url);
                let client =
                    client(config, bucket).map_err(|error| failure("reach the object store", &error, redactor))?;
                let key = [prefix, &filled(key, partition)].join("/");
                let key = Key::parse(key.trim_start_matches('/')).map_err(|error| {
                    StepFailure::user(Code::BAD_VALUE, "find the target", format!("{asset}: {error}"))
                })?;
                Ok(Self::Store { store: client, key, runtime: runtime.clone(), redactor: redactor.clone() })
            }
            other => Err(StepFailure::user(Code::ENGINE_ERROR, "find the target", format!("{other} is no file"))),
        }
    }

    /// Returns what is there now.
    pub fn found(&self) -> Result<Option<Found>, StepFailure> {
        match self {
            Self::Local { path } => local_found(path).map_err(|error| file_failure("read", path, &error)),
            Self::Store { store, key, runtime, redactor } => runtime
                .block_on(remote_found(store.as_ref(), key))
                .map_err(|error| failure("look at the object", &error, redactor)),
        }
    }

    /// Returns whether a file is there.
    pub fn exists(&self) -> Result<bool, StepFailure> {
        match self {
            Self::Local { path } => path.try_exists().map_err(|error| file_failure("look for", path, &error)),
            Self::Store { store, key, runtime, redactor } => match runtime.block_on(store.head(key)) {
                Ok(_) => Ok(true),
                Err(object_store::Error::NotFound { .. }) => Ok(false),
                Err(error) => Err(failure("look for the object", &error, redactor)),
            },
        }
    }

    /// Returns every file that the name stands for when its `{partition}` has not been filled in.
    pub fn all(&self) -> Result<Vec<Found>, StepFailure> {
        let name = match self {
            Self::Local { path } => path.display().to_string(),
            Self::Store { key, .. } => key.to_string(),
        };
        let Some((before, after)) = name.split_once(PARTITION) else { return Ok(self.found()?.into_iter().collect()) };
        let folder = before.rsplit_once('/').map_or("", |(folder, _)| folder);
        let matches = |found: &str| {
            let inside = found.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            inside.is_some_and(|inside| !inside.contains('/'))
        };
        let mut all = Vec::new();
        match self {
            Self::Local { .. } => {
                let files = ignore::WalkBuilder::new(folder).standard_filters(false).build().filter_map(Result::ok);
                for file in files.filter(|file| matches(&file.path().display().to_string())) {
                    all.extend(Self::Local { path: file.into_path() }.found()?);
                }
            }
            Self::Store { store, runtime, redactor, .. } => {
                let prefix = Key::parse(folder).ok().filter(|_| !folder.is_empty());
                let listed = runtime.block_on(store.list(prefix.as_ref()).try_collect::<Vec<_>>());
                let listed = listed.map_err(|error| failure("list the objects", &error, redactor))?;
                for object in listed.into_iter().filter(|object| matches(object.location.as_ref())) {
                    let found = runtime.block_on(remote_found(store.as_ref(), &object.location));
                    all.extend(found.map_err(|error| failure("look at the object", &error, redactor))?);
                }
            }
        }
        Ok(all)
    }

    /// Publishes the complete file `from` in one step.
    pub fn publish(&self, from: &Path) -> Result<(), StepFailure> {
        match self {
            Self::Local { path } => rename(from, path).map_err(|error| file_failure("publish", path, &error)),
            Self::Store { store, key, runtime, redactor } => {
                let uploaded = runtime.block_on(upload(store.as_ref(), key, from));
                uploaded.map_err(|error| failure("publish the object", &error, redactor))
            }
        }
    }

    /// Returns the name of the file without its folders.
    pub fn file_name(&self) -> String {
        match self {
            Self::Local { path } => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Store { key, .. } => key.filename().unwrap_or_default().to_owned(),
        }
    }
}

/// Returns the store `name`; the empty name means the only one.
pub fn store_config<'c>(config: &'c Config, name: &str) -> Option<&'c StoreConfig> {
    match (name, config.object_stores.len()) {
        ("", 1) => config.object_stores.values().next(),
        (name, _) => config.object_stores.get(name),
    }
}

/// Puts the partition into a path. Its text is encoded as in a URL, which is how readers of Hive keys decode it.
fn filled(path: &str, partition: Option<&PartitionKey>) -> String {
    let Some(partition) = partition else { return path.to_owned() };
    let encoded: String = partition
        .as_str()
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    path.replace(PARTITION, &encoded)
}

/// Returns a client of the object store that holds `url`, and the prefix of `url` in its bucket.
pub fn client_of(config: &Config, url: &str) -> Result<(Arc<dyn ObjectStore>, String), StepFailure> {
    let holds = |store: &&StoreConfig| {
        let own = store.url.trim_end_matches('/');
        url.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let Some(store) = config.object_stores.values().find(holds) else {
        let message = format!("{url} lies in no object store that pintail.toml configures");
        return Err(StepFailure::user(Code::UNKNOWN_PLACE, "find the object store", message));
    };
    let (bucket, prefix) = bucket_and_prefix(url);
    let redactor = Redactor::new(config.secrets.expose());
    let client = client(store, bucket).map_err(|error| failure("reach the object store", &error, &redactor))?;
    Ok((client, prefix.to_owned()))
}

fn bucket_and_prefix(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("s3://").unwrap_or(url).trim_end_matches('/');
    rest.split_once('/').unwrap_or((rest, ""))
}

fn client(config: &StoreConfig, bucket: &str) -> Result<Arc<dyn ObjectStore>, object_store::Error> {
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket);
    if let Some(endpoint) = &config.endpoint {
        let scheme = if config.use_ssl == Some(false) { "http" } else { "https" };
        let has_scheme = endpoint.contains("://");
        builder = builder
            .with_endpoint(if has_scheme { endpoint.clone() } else { format!("{scheme}://{endpoint}") })
            .with_allow_http(config.use_ssl == Some(false) || endpoint.starts_with("http://"));
    }
    builder = builder
        .with_region(config.region.as_deref().unwrap_or("us-east-1"))
        .with_virtual_hosted_style_request(config.url_style.as_deref() == Some("vhost"));
    if let (Some(key), Some(secret)) = (&config.key, &config.secret) {
        builder = builder.with_access_key_id(key.expose_secret()).with_secret_access_key(secret.expose_secret());
    }
    Ok(Arc::new(builder.build()?))
}

fn local_found(path: &Path) -> std::io::Result<Option<Found>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let facts = file.metadata()?;
    let mut tail = read_tail(&mut file, facts.len(), TAIL)?;
    if let Some(length) = footer::footer_length(&tail)
        && tail.len() < length
    {
        tail = read_tail(&mut file, facts.len(), length as u64)?;
    }
    Ok(Some(Found { changed: facts.modified()?.into(), stamp: footer::stamp(&tail) }))
}

fn read_tail(file: &mut File, size: u64, length: u64) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(size.saturating_sub(length)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    Ok(tail)
}

async fn remote_found(store: &dyn ObjectStore, key: &Key) -> Result<Option<Found>, object_store::Error> {
    let facts = match store.head(key).await {
        Ok(facts) => facts,
        Err(object_store::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let tail_of = async |length: u64| {
        let range = GetRange::Bounded(facts.size.saturating_sub(length)..facts.size);
        let options = GetOptions { range: Some(range), if_match: facts.e_tag.clone(), ..GetOptions::default() };
        store.get_opts(key, options).await?.bytes().await
    };
    if facts.size == 0 {
        return Ok(Some(Found { changed: facts.last_modified, stamp: None }));
    }
    let mut tail = tail_of(TAIL).await?;
    if let Some(length) = footer::footer_length(&tail)
        && tail.len() < length
    {
        tail = tail_of(length as u64).await?;
    }
    Ok(Some(Found { changed: facts.last_modified, stamp: footer::stamp(&tail) }))
}

/// A rename within one folder is one step; both the file and its name are on disk when this returns.
fn rename(from: &Path, to: &Path) -> std::io::Result<()> {
    File::open(from)?.sync_all()?;
    std::fs::rename(from, to)?;
    match to.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// An object is there when its upload has ended, and not before.
async fn upload(store: &dyn ObjectStore, key: &Key, from: &Path) -> Result<(), object_store::Error> {
    let broken = |source: std::io::Error| object_store::Error::Generic { store: "file", source: Box::new(source) };
    let mut file = File::open(from).map_err(broken)?;
    let size = file.metadata().map_err(broken)?.len();
    if size <= PART as u64 {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(broken)?;
        return store.put(key, PutPayload::from(bytes)).await.map(|_| ());
    }
    let mut parts = WriteMultipart::new_with_chunk_size(store.put_multipart(key).await?, PART);
    let mut buffer = vec![0; PART];
    loop {
        parts.wait_for_capacity(4).await?;
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => parts.write(&buffer[..read]),
            Err(error) => {
                parts.abort().await?;
                return Err(broken(error));
            }
        }
    }
    parts.finish().await.map(|_| ())
}

/// Returns the failure of an operation on a store.
pub fn failure(purpose: &str, error: &object_store::Error, redactor: &Redactor) -> StepFailure {
    use object_store::Error;
    let (class, help) = match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            (ErrorClass::User, "see that `key` and `secret` of the store in pintail.toml may write there")
        }
        Error::NotFound { .. } => (ErrorClass::User, "see that the bucket in `url` of the store exists"),
        _ => (ErrorClass::Transient, "see that the object store runs and that `url` and `endpoint` are right"),
    };
    let code = if class == ErrorClass::Transient { Code::PLACE_UNREACHABLE } else { Code::ENGINE_ERROR };
    let message = redactor.redact(&crate::with_sources(error));
    StepFailure { class, ..StepFailure::user(code, purpose, message).with_help(help) }
}

/// Returns the failure of an operation on a file.
pub fn file_failure(operation: &str, path: &Path, error: &std::io::Error) -> StepFailure {
    let message = format!("could not {operation} {}: {error}", path.display());
    StepFailure::user(Code::ENGINE_ERROR, "write the file", message)
        .with_help("see that the folder exists and may be written, and that the disk is not full")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_encoded_as_a_hive_key() {
        let key = |text: &str| PartitionKey(text.to_owned());
        assert_eq!(filled("a/day={partition}/p.parquet", Some(&key("2026-05-16"))), "a/day=2026-05-16/p.parquet");
        assert_eq!(filled("h={partition}", Some(&key("2026-05-16T09+02:00"))), "h=2026-05-16T09%2B02%3A00");
        assert_eq!(filled("h={partition}", Some(&key("a b/ü%"))), "h=a%20b%2F%C3%BC%25");
        assert_eq!(filled("p.parquet", None), "p.parquet");
    }

    #[test]
    fn a_url_is_a_bucket_and_a_prefix() {
        assert_eq!(bucket_and_prefix("s3://b"), ("b", ""));
        assert_eq!(bucket_and_prefix("s3://b/p/q/"), ("b", "p/q"));
    }
}
