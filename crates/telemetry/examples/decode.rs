//! Both sides of the benchmark `decode`: raw events through a consumer into signals and what is newest, and a plain
//! INSERT … SELECT of the same decoded rows into a table of the same layout.
//!
//! `decode <folder> <extension folder> <events per snapshot> <snapshots> [<passes>]`; an event has five signals. Each snapshot
//! is landed, consumed and then copied, so that both sides see the same machine; the lake grows from line to line. After so
//! many passes files are merged and old snapshots go, as in a lake that is looked after; never when no number is given.
//! With `RUST_LOG=debug` each statement is shown with the time that it took.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pintail_core::id::LakeName;
use pintail_core::sql::Statement;
use pintail_engine::fault::Faults;
use pintail_engine::native::ExtensionFolders;
use pintail_engine::{Catalog, EngineError, InstanceOptions, LakeLocation};
use pintail_streams::consumer::{Consumer, Landed, Pass, PassError, Source, Spec};
use pintail_streams::{Decoder, Writer};
use pintail_telemetry::decode::{CloudEventsDefault, DecoderOptions};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_ansi(false)
        .init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, extensions, events, snapshots, passes @ ..] = arguments.as_slice() else {
        return Err("usage: decode <folder> <extension folder> <events per snapshot> <snapshots> [<passes>]".into());
    };
    let (events, snapshots): (u64, u64) = (events.parse()?, snapshots.parse()?);
    let passes: Option<u64> = passes.first().map(|passes| passes.parse()).transpose()?;
    let bench = Bench::open(PathBuf::from(folder), PathBuf::from(extensions))?;
    println!(
        "{:>8}{:>10}{:>8}{:>8}{:>8}{:>8}{:>9}{:>9}{:>7}",
        "snapshot", "signals", "read", "decode", "stage", "commit", "ours", "plain", "ratio"
    );
    let mut consumer = bench.consumer()?;
    for snapshot in 0..snapshots {
        bench.land(snapshot, events)?;
        let (ours, landed) = consume(&mut consumer)?;
        let plain = bench.copy(landed.snapshot)?;
        println!("{}", line(snapshot, ours, &landed, plain));
        if passes.is_some_and(|passes| (snapshot + 1) % passes == 0) {
            bench.look_after(landed.range.1)?;
        }
    }
    Ok(())
}

fn line(snapshot: u64, ours: Duration, landed: &Landed, plain: Duration) -> String {
    let seconds = |duration: Duration| format!("{:.3}", duration.as_secs_f64());
    let phases = landed.phases;
    let signals = landed.written.first().map_or(0, |(_, rows)| *rows);
    format!(
        "{snapshot:>8}{signals:>10}{:>8}{:>8}{:>8}{:>8}{:>9}{:>9}{:>7.2}",
        seconds(phases.read),
        seconds(phases.decode),
        seconds(phases.stage),
        seconds(phases.commit),
        seconds(ours),
        seconds(plain),
        plain.as_secs_f64() / ours.as_secs_f64()
    )
}

/// Makes one pass over all that has landed; what came of it, and how long it took.
fn consume(consumer: &mut Consumer<'_>) -> Result<(Duration, Landed), Failure> {
    let began = Instant::now();
    match consumer.pass()? {
        Pass::Landed(landed) => Ok((began.elapsed(), landed)),
        other => Err(format!("a snapshot had landed, and the pass was {other:?}").into()),
    }
}

struct Bench {
    writer: Writer,
    decoder: CloudEventsDefault,
}

impl Bench {
    fn open(folder: PathBuf, extensions: PathBuf) -> Result<Self, EngineError> {
        let lake = LakeLocation {
            name: LakeName("main".to_owned()),
            catalog: Catalog::Sqlite(folder.join("main.sqlite")),
            data: format!("{}/data/", folder.display()),
        };
        let options = InstanceOptions { extensions: ExtensionFolders(vec![extensions]), ..InstanceOptions::default() };
        let writer = Writer::open(&lake, options, Faults::default())?;
        let bench = Self { writer, decoder: CloudEventsDefault::new(DecoderOptions::default()) };
        bench.writer.session().use_database(bench.writer.alias())?;
        bench.send(
            "CREATE TABLE raw_events (subject VARCHAR, \"time\" TIMESTAMPTZ, type VARCHAR, id VARCHAR, source VARCHAR,
             producer VARCHAR, data_content_type VARCHAR, data_version VARCHAR, extras VARCHAR, data VARCHAR,
             data_base64 BLOB, data_index_key VARCHAR, voids_id VARCHAR)",
        )?;
        bench.make_plain_table()?;
        Ok(bench)
    }

    /// Makes the table of the plain side as the consumer makes its own.
    fn make_plain_table(&self) -> Result<(), EngineError> {
        let signals = self.decoder.targets().swap_remove(0);
        let columns: Vec<String> =
            signals.columns.iter().map(|column| format!("\"{}\" {}", column.name, column.data_type)).collect();
        self.send(&format!("CREATE TABLE plain ({})", columns.join(", ")))?;
        self.send(&format!("ALTER TABLE plain SET PARTITIONED BY ({})", signals.partitioned_by.join(", ")))?;
        self.send(&format!("ALTER TABLE plain SET SORTED BY ({})", signals.sorted_by.join(", ")))
    }

    fn send(&self, sql: &str) -> Result<(), EngineError> {
        self.writer.session().run(&Statement::new("benchmark", sql)).map(|_| ())
    }

    /// Lands a snapshot of status events: 1,000 vehicles, five signals each, a second apart from vehicle to vehicle.
    fn land(&self, snapshot: u64, events: u64) -> Result<(), EngineError> {
        let signal = |name: &str, value: &str| {
            format!(
                "{{\"name\": \"{name}\", \"timestamp\": \"' || strftime(taken, '%Y-%m-%dT%H:%M:%S.%fZ') || '\", \
                 \"value\": {value}}}"
            )
        };
        let signals = [
            signal("speed", "' || (i % 130) || '.5"),
            signal("powertrainCombustionEngineSpeed", "' || (i % 4000) || '"),
            signal("powertrainType", "\"HYBRID\""),
            signal(
                "currentLocationCoordinates",
                "{\"latitude\": 52.' || (i % 9973) || ', \"longitude\": 13.' || (i % 9967) || ', \"hdop\": 0.7}",
            ),
            signal("exteriorAirTemperature", "' || (i % 40) || '"),
        ];
        self.send(&format!(
            "INSERT INTO raw_events
             SELECT 'did:erc721:137:0xbA5738a18d83D41847dfFbDC6101d37C69c9B0cF:' || (i % 1000), taken, 'dimo.status',
               'event-{snapshot}-' || i, '0xF26421509Efe92861a587482100c6d728aBf1CD0',
               'did:erc721:137:0x325b45949C833986bC98e98a49F3CA5C5c4643B5:' || (i % 1000), 'application/json', 'v1', '{{}}',
               '{{\"vin\": \"WVWZZZ\", \"signals\": [{}]}}', NULL, NULL, NULL
             FROM (
               SELECT i, TIMESTAMPTZ '2026-01-01' + to_microseconds({snapshot} * 3600000000 + i * 10000) AS taken
               FROM range({events}) AS t(i)
             )",
            signals.join(", ")
        ))
    }

    /// Merges small files and lets go of the snapshots before `cursor`, where the consumer is, and of files that only they show.
    fn look_after(&self, cursor: i64) -> Result<(), EngineError> {
        let alias = self.writer.alias();
        self.send(&format!("CALL ducklake_merge_adjacent_files('{alias}')"))?;
        let old = format!(
            "SELECT coalesce(string_agg(snapshot_id, ', '), '') FROM ducklake_snapshots('{alias}') WHERE snapshot_id < {cursor}"
        );
        let old: String = self.writer.session().one("benchmark", &old, |row| row.get(0))?;
        self.send(&format!("CALL ducklake_expire_snapshots('{alias}', versions => [{old}])"))?;
        self.send(&format!("CALL ducklake_cleanup_old_files('{alias}', cleanup_all => true)"))
    }

    /// Takes the consumer over, as `pintail consume run --follow` does once.
    fn consumer(&self) -> Result<Consumer<'_>, Failure> {
        let spec = Spec::new("decode", Source { schema: "main".to_owned(), table: "raw_events".to_owned() });
        let opened: Result<_, PassError> = Consumer::open(&self.writer, spec, &self.decoder);
        Ok(opened?.map_err(|holder| format!("process {} has the consumer", holder.process))?)
    }

    /// Copies the rows that came with `snapshot`, out of memory and in the order in which they came; how long that took.
    fn copy(&self, snapshot: i64) -> Result<Duration, EngineError> {
        // Not by a condition on the table: finding the rows in a lake with many files is no part of this.
        self.send(&format!(
            "CREATE OR REPLACE TEMP TABLE decoded AS
             SELECT *
             FROM ducklake_table_insertions('{}', 'main', 'signals', {snapshot}, {snapshot})
             ORDER BY \"timestamp\", name",
            self.writer.alias()
        ))?;
        let began = Instant::now();
        for sql in ["BEGIN", "INSERT INTO plain SELECT * FROM decoded", "COMMIT"] {
            self.send(sql)?;
        }
        Ok(began.elapsed())
    }
}
