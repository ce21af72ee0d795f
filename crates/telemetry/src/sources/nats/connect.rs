//! The connection to NATS: who we are, and the durable consumer, made when it is missing and refused when it is another.

use async_nats::jetstream::consumer::{self, AckPolicy, PullConsumer, pull};
use async_nats::{Client, ConnectOptions, jetstream};
use secrecy::ExposeSecret as _;
use std::time::Duration;
use tokio::sync::watch;

use super::{BATCH, NatsOptions, place};
use crate::sources::{SourceError, TlsError, ask};

/// A server that does not answer pings this often, twice in a row, is away.
const PING: Duration = Duration::from_secs(5);

/// What is known once the server has answered.
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) consumer: PullConsumer,
    /// When the stream was made, in seconds since 1970 UTC.
    pub(super) created: i64,
}

/// Connects, and makes the durable consumer when it is missing.
pub(super) async fn connect(
    options: &NatsOptions,
    stop: &mut watch::Receiver<bool>,
) -> Result<Connection, SourceError> {
    let failed = |operation: &'static str| {
        move |reason: String| SourceError::Broker { operation, place: place(options), reason }
    };
    let servers: Vec<&str> = options.url.expose_secret().split(',').map(str::trim).collect();
    let connecting = connect_options(options)?.connect(servers);
    let client = ask(stop, failed("connect"), connecting).await?;
    let context = jetstream::new(client.clone());
    let found = context.get_stream(&options.stream);
    let stream = ask(stop, failed("find the stream, which must be there"), found).await?;
    let made = stream.get_or_create_consumer(&options.consumer, wanted(options));
    let consumer: PullConsumer = ask(stop, failed("make the consumer"), made).await?;
    if let Some((what, found, expected)) = difference(&consumer.cached_info().config, options) {
        let name = &options.consumer;
        let reason = format!(
            "the server has a consumer `{name}` whose {what} is {found}, and {expected} was expected; put `[ingest.nats]` \
             right, or remove the consumer from the server if nothing else reads by it (`nats consumer rm {} {name}`): it is \
             made anew, and what has landed is known and does not land again unless `consumer` or `subject` has changed",
            options.stream
        );
        return Err(SourceError::Consumer { place: place(options), reason });
    }
    Ok(Connection { client, consumer, created: stream.cached_info().created.unix_timestamp() })
}

fn connect_options(options: &NatsOptions) -> Result<ConnectOptions, SourceError> {
    // The source itself connects anew, with a word about it.
    let mut connect = ConnectOptions::new().name("pintail").ping_interval(PING);
    if let Some(token) = &options.token {
        connect = connect.token(token.expose_secret().to_owned());
    }
    if let Some((user, password)) = &options.user {
        connect = connect.user_and_password(user.clone(), password.expose_secret().to_owned());
    }
    if let Some(path) = &options.credentials {
        let failed = |reason: String| TlsError::File { what: "the credentials", path: path.clone(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        // What the parser says may repeat a part of the file.
        let misread = |_| failed("it is no credentials file, as `nsc generate creds` writes it".to_owned());
        connect = connect.credentials(&text).map_err(misread)?;
    }
    if let Some(tls) = &options.tls {
        connect = connect.require_tls(true).tls_client_config(tls.config()?);
    }
    Ok(connect)
}

fn wanted(options: &NatsOptions) -> pull::Config {
    pull::Config {
        durable_name: Some(options.consumer.clone()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: options.ack_wait,
        max_ack_pending: i64::try_from(2 * BATCH).unwrap_or(i64::MAX),
        filter_subject: options.subject.clone().unwrap_or_default(),
        ..pull::Config::default()
    }
}

/// Returns what is different about a consumer that was there, what it is, and what it should be.
fn difference(found: &consumer::Config, options: &NatsOptions) -> Option<(&'static str, String, String)> {
    let subjects = |subjects: &[&str]| match subjects {
        [] => "all".to_owned(),
        some => format!("`{}`", some.join("`, `")),
    };
    let filters: Vec<&str> = std::iter::once(&found.filter_subject)
        .chain(&found.filter_subjects)
        .map(String::as_str)
        .filter(|subject| !subject.is_empty())
        .collect();
    let wanted: Vec<&str> = options.subject.as_deref().filter(|subject| !subject.is_empty()).into_iter().collect();
    if filters != wanted {
        return Some(("subject", subjects(&filters), subjects(&wanted)));
    }
    if found.ack_policy != AckPolicy::Explicit {
        return Some(("way of acknowledging", format!("{:?}", found.ack_policy), "Explicit".to_owned()));
    }
    if 0 < found.max_deliver {
        return Some(("largest number of deliveries", found.max_deliver.to_string(), "no bound".to_owned()));
    }
    if found.ack_wait != options.ack_wait {
        return Some(("`ack_wait`", format!("{:?}", found.ack_wait), format!("{:?}", options.ack_wait)));
    }
    None
}
