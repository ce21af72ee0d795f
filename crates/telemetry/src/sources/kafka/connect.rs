//! The connection to Kafka: who we are, and what gathering asks of the brokers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rskafka::BackoffConfig;
use rskafka::client::error::{Error as KafkaError, ProtocolError};
use rskafka::client::partition::{OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder, Credentials, SaslConfig};
use rskafka::record::RecordAndOffset;
use secrecy::ExposeSecret as _;
use tokio::sync::watch;

use super::{KafkaOptions, Sasl, SaslMechanism, place};
use crate::sources::{SourceError, ask};

/// The most that one answer of a broker may hold, as Kafka's own consumers ask for.
const FETCH_BYTES: i32 = 1 << 20;

/// How long a broker waits for messages before it says that there are none.
const FETCH_WAIT_MS: i32 = 200;

/// How long the client tries again by itself before it says so.
const CLIENT_PATIENCE: Duration = Duration::from_secs(5);

/// What is asked of brokers; a test has brokers of its own.
pub(super) trait Brokers: Send + Sync + 'static {
    /// One partition.
    type Partition: Partition;

    /// Returns the topics with the numbers of their partitions.
    fn topics(&self) -> impl Future<Output = Result<Vec<(String, Vec<i32>)>, String>> + Send;

    /// Opens a partition.
    fn open(&self, topic: String, number: i32) -> impl Future<Output = Result<Self::Partition, String>> + Send;
}

/// What is asked of a partition.
pub(super) trait Partition: Send + Sync + 'static {
    /// Returns messages from `offset` on, none when there are none yet, `None` when the broker has nothing at `offset`.
    fn fetch(&self, offset: i64) -> impl Future<Output = Result<Option<Vec<RecordAndOffset>>, String>> + Send;

    /// Returns the offset of the first message that is there, and of the one that will come next.
    fn bounds(&self) -> impl Future<Output = Result<(i64, i64), String>> + Send;
}

impl Brokers for Client {
    type Partition = PartitionClient;

    async fn topics(&self) -> Result<Vec<(String, Vec<i32>)>, String> {
        let topics = self.list_topics().await.map_err(|error| error.to_string())?;
        Ok(topics.into_iter().map(|topic| (topic.name, topic.partitions.into_iter().collect())).collect())
    }

    async fn open(&self, topic: String, number: i32) -> Result<PartitionClient, String> {
        let opened = self.partition_client(topic, number, UnknownTopicHandling::Error).await;
        opened.map_err(|error| error.to_string())
    }
}

impl Partition for PartitionClient {
    async fn fetch(&self, offset: i64) -> Result<Option<Vec<RecordAndOffset>>, String> {
        match self.fetch_records(offset, 1..FETCH_BYTES, FETCH_WAIT_MS).await {
            Ok((records, _)) => Ok(Some(records)),
            Err(KafkaError::ServerError { protocol_error: ProtocolError::OffsetOutOfRange, .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn bounds(&self) -> Result<(i64, i64), String> {
        let ask = async |at| self.get_offset(at).await.map_err(|error| error.to_string());
        Ok((ask(OffsetAt::Earliest).await?, ask(OffsetAt::Latest).await?))
    }
}

/// Connects to the brokers.
pub(super) async fn connect(options: &KafkaOptions, stop: &mut watch::Receiver<bool>) -> Result<Client, SourceError> {
    let backoff = BackoffConfig { deadline: Some(CLIENT_PATIENCE), ..BackoffConfig::default() };
    let mut builder = ClientBuilder::new(options.brokers.clone()).client_id("pintail").backoff_config(backoff);
    if let Some(tls) = &options.tls {
        builder = builder.tls_config(Arc::new(tls.config()?));
    }
    if let Some(sasl) = &options.sasl {
        builder = builder.sasl_config(sasl_config(sasl));
    }
    let failed = |reason: String| SourceError::Broker { operation: "connect", place: place(options), reason };
    ask(stop, failed, builder.build()).await
}

fn sasl_config(sasl: &Sasl) -> SaslConfig {
    let credentials = Credentials::new(sasl.user.clone(), sasl.password.expose_secret().to_owned());
    match sasl.mechanism {
        SaslMechanism::Plain => SaslConfig::Plain(credentials),
        SaslMechanism::ScramSha256 => SaslConfig::ScramSha256(credentials),
        SaslMechanism::ScramSha512 => SaslConfig::ScramSha512(credentials),
    }
}
