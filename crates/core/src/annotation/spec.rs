//! What a header says, typed: the result of parsing, before anything outside the file is known.

use std::time::Duration;

use chrono_tz::Tz;

use crate::asset::Asset;
use crate::partition::PartitionSpec;
use crate::source::{Located, Span};
use crate::stream::GapPolicy;

/// Everything that one script's header declares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// The prose lines, and `description`.
    pub description: Option<String>,
    /// `owner`.
    pub owner: Option<Located<String>>,
    /// `on …`, in order.
    pub triggers: Vec<Located<Trigger>>,
    /// `mute …`.
    pub mutes: Vec<Located<Mute>>,
    /// `trigger any|all`.
    pub trigger_mode: TriggerMode,
    /// `debounce`.
    pub debounce: Option<Located<Duration>>,
    /// `freshness`.
    pub freshness: Option<Located<Duration>>,
    /// `retry`.
    pub retry: Option<Located<Retry>>,
    /// `timeout`.
    pub timeout: Option<Located<Duration>>,
    /// `tag`, each.
    pub tags: Vec<Located<String>>,
    /// `retention`; also in the time partitions that it is about.
    pub retention: Option<Located<Duration>>,
    /// `partitioned`.
    pub partitioned: Option<Located<PartitionSpec>>,
    /// `materialize`, with `unique_key` and `append` folded in.
    pub materialize: Option<Located<Materialize>>,
    /// `on_schema_change`.
    pub on_schema_change: SchemaPolicy,
    /// `column`, in order.
    pub columns: Vec<Located<ColumnDecl>>,
    /// `contract enforced`.
    pub contract_enforced: Option<Span>,
    /// `test`, in order.
    pub tests: Vec<Located<TestDecl>>,
    /// `pre_run`, `on_success`, `on_failure`.
    pub hooks: Vec<Located<Hook>>,
    /// `measure`.
    pub measures: Vec<Located<Measure>>,
    /// `dimension`.
    pub dimensions: Vec<Located<Dimension>>,
    /// `macros`: the file is a macro library.
    pub macros: Option<Span>,
    /// `use <path>`.
    pub uses: Vec<Located<String>>,
    /// `stream`.
    pub stream: Option<Located<Stream>>,
    /// `pipeline`: the optional marker.
    pub pipeline: Option<Span>,
}

/// What starts a run of the script.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// `on <uri> [debounce=] [map=]`.
    Asset {
        /// The upstream.
        asset: Asset,
        /// Its own debounce.
        debounce: Option<Duration>,
        /// The mapping between its partitions and ours; inferred when absent.
        map: Option<PartitionMap>,
    },
    /// `on schedule "<cron>" [tz=] [catchup=]`; cron is `None` in the bare form configured in `pintail.toml`.
    Schedule {
        /// The cron expression, validated.
        cron: Option<String>,
        /// The zone of the expression.
        tz: Option<Tz>,
        /// What happens to slots missed while down.
        catchup: Catchup,
        /// How far behind the logical time the processed partition lies.
        lag: Option<Duration>,
    },
    /// `on webhook|kafka|mqtt|nats|postgres|sqs|gcp|email …`.
    Event {
        /// Which kind.
        kind: EventKind,
        /// The options given, by name, validated against the kind.
        options: Vec<(String, String)>,
    },
}

/// The broker-like trigger kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// HTTP.
    Webhook,
    /// Kafka topic.
    Kafka,
    /// MQTT topic.
    Mqtt,
    /// NATS subject.
    Nats,
    /// Postgres table.
    Postgres,
    /// SQS queue.
    Sqs,
    /// Pub/Sub subscription.
    Gcp,
    /// Mailbox.
    Email,
}

/// `catchup=none|latest|all`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Catchup {
    /// Missed slots are skipped.
    #[default]
    None,
    /// Only the newest missed slot runs.
    Latest,
    /// Every missed slot runs.
    All,
}

/// `map=` on an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionMap {
    /// The same identity.
    Identity,
    /// Finer to coarser, when all parts are present.
    Coarsen,
    /// Finer to coarser, on each part.
    Partial,
    /// Coarser to finer, each part.
    FanOut,
    /// The partition and the N before it.
    Lookback(u32),
    /// Every partition.
    All,
    /// The newest partition.
    Latest,
}

/// `mute <uri>` or `mute all`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mute {
    /// No read cascades.
    All,
    /// This read does not cascade.
    Asset(Asset),
}

/// `trigger any|all`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TriggerMode {
    /// Any upstream starts a run.
    #[default]
    Any,
    /// Every upstream of the same partition is awaited.
    All,
}

/// `retry 3 [10s] [backoff=exponential]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts after the first.
    pub times: u32,
    /// The pause before the first retry.
    pub delay: Duration,
    /// Whether each pause doubles.
    pub exponential: bool,
}

/// `materialize …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Materialize {
    /// The target.
    pub target: Located<Asset>,
    /// How it is written.
    pub strategy: WriteStrategy,
    /// `if_changed`.
    pub if_changed: bool,
    /// `allow_empty`.
    pub allow_empty: bool,
    /// `on_delete=`: what a script with `stream` does about a key whose last change is a delete.
    pub on_delete: Option<OnDelete>,
    /// `format=` (Windmill), kept for the targets that know it.
    pub format: Option<String>,
    /// `column=` (Windmill) or the configured name of the identity column; `_partition` when absent.
    pub partition_column: Option<String>,
}

/// `on_delete=delete|ignore`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDelete {
    /// The row goes.
    Delete,
    /// The row stays as it was; the deletes are counted.
    Ignore,
}

/// The declared write strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteStrategy {
    /// Replace the table or the slice.
    Replace,
    /// Delete rows with the staged keys, insert the stage.
    Merge {
        /// The key columns, at least one.
        key: Vec<String>,
        /// `order_by=<col desc>`: which of several staged rows with one key is kept; an SQL ORDER BY list.
        order_by: Option<String>,
    },
    /// Insert only, once per run input and partition.
    Append,
    /// SCD2.
    History {
        /// The key columns.
        key: Vec<String>,
        /// Columns whose change makes a version; all when empty.
        track: Vec<String>,
        /// `updated_at=`: the column that says when a row changed.
        updated_at: Option<String>,
        /// `deletes=close`.
        close_deleted: bool,
        /// `order_by=<col desc>`: which of several staged rows of one key (with `updated_at=`, of one key and time) is
        /// kept; an SQL ORDER BY list.
        order_by: Option<String>,
    },
    /// A lake view over the query.
    View,
    /// The script writes with its own statements.
    Manual,
}

/// `on_schema_change`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaPolicy {
    /// Any difference fails the write.
    #[default]
    Fail,
    /// New columns are added; anything else fails.
    AppendNewColumns,
    /// The table takes the shape of the query.
    SyncAllColumns,
    /// Only columns that the table has are written.
    Ignore,
}

/// `column <name> [<type>] [not_null] ["description"] [<- <uri>.<col>, …]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDecl {
    /// The column's name.
    pub name: String,
    /// The declared type as written.
    pub data_type: Option<String>,
    /// `not_null`.
    pub not_null: bool,
    /// The description.
    pub description: Option<String>,
    /// Declared lineage: `(asset, column)`.
    pub sources: Vec<(Asset, String)>,
}

/// One `test` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestDecl {
    /// What must hold.
    pub check: TestCheck,
    /// `severity=`.
    pub severity: TestSeverity,
    /// `where="…"`: the rows it is about.
    pub filter: Option<String>,
    /// `scope=`; by default the slice when partitioned, else the table.
    pub scope: Option<TestScope>,
}

/// What a test checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestCheck {
    /// No two rows share these values; rows with a NULL in them are ignored and counted.
    Unique(Vec<String>),
    /// The column has no NULL.
    NotNull(String),
    /// The column's values are among these; a `NULL` in the list allows NULL.
    AcceptedValues {
        /// The column.
        column: String,
        /// The values as written, unquoted.
        values: Vec<String>,
    },
    /// Every non-NULL value exists in the parent's column.
    Relationships {
        /// The column.
        column: String,
        /// The parent.
        parent: Asset,
        /// The parent's column.
        parent_column: String,
    },
    /// The SQL condition holds (is not false) for every row.
    Expression(String),
    /// The number of rows is inside `min..max`; open ends are `None`.
    RowCount {
        /// At least.
        min: Option<u64>,
        /// At most.
        max: Option<u64>,
    },
    /// A test script or a package's generic test.
    Named {
        /// Its name.
        name: String,
        /// Its arguments.
        arguments: Vec<String>,
    },
}

/// `severity=warn|error`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TestSeverity {
    /// Recorded, does not block.
    Warn,
    /// Fails the write.
    #[default]
    Error,
}

/// `scope=slice|table`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestScope {
    /// The rows of the partition just written.
    Slice,
    /// The whole table.
    Table,
}

/// `pre_run|on_success|on_failure <script path>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// When.
    pub moment: HookMoment,
    /// The hook script's path.
    pub script: String,
}

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookMoment {
    /// Before the step.
    PreRun,
    /// After it succeeded.
    OnSuccess,
    /// After it failed.
    OnFailure,
}

/// `measure revenue = sum(amount) [where …]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The measure's name.
    pub name: String,
    /// The aggregate expression.
    pub expression: String,
    /// The filter.
    pub filter: Option<String>,
}

/// `dimension country = …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// The dimension's name.
    pub name: String,
    /// The expression.
    pub expression: String,
}

/// `stream <uri> [batch_rows=] [batch_bytes=] [start=] [changes=] [gap=]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The table whose change feed is consumed.
    pub asset: Asset,
    /// Rows per window at most.
    pub batch_rows: Option<u64>,
    /// Bytes per window at most.
    pub batch_bytes: Option<u64>,
    /// Where a new consumer starts.
    pub start: StreamStart,
    /// `changes=all`: updates and deletes too.
    pub all_changes: bool,
    /// `gap=stop|rescan|skip`: what is done when changes expired before they were taken.
    pub gap: GapPolicy,
}

/// `start=head|earliest|<snapshot>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamStart {
    /// With the next change.
    #[default]
    Head,
    /// With the oldest kept change.
    Earliest,
    /// After this snapshot.
    Snapshot(i64),
}
