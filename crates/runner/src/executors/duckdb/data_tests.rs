//! Data tests: on the stage where they mean the same there, else inside the transaction; an error takes the write back.

use std::time::Instant;

use chrono::TimeDelta;
use pintail_core::annotation::{TestCheck, TestDecl, TestScope, TestSeverity, WriteStrategy};
use pintail_core::asset::Asset;
use pintail_core::diagnostic::Code;
use pintail_core::schema::Schema;
use pintail_core::source::Span;
use pintail_core::sql::data_test::{Rows, TestBuildError, TestQuery, TestSubject, scope_of, test_query};
use pintail_core::sql::rewrite::Rewriter;
use pintail_core::sql::strategy::{IS_CURRENT, Projection, Slice};
use pintail_core::sql::{Ident, Literal, Relation};
use pintail_engine::Session;
use pintail_store::{MAX_SAMPLE_ROWS, TestResult, TestStatus};

use super::attempt::Attempt;
use super::shape::Shape;
use crate::executors::StepFailure;
use crate::executors::failure::Sample;
use crate::project::{CompiledProject, CompiledScript, CompiledTest, TestKind};

/// The relation that stands for the tested rows in a generic test.
const TESTED: &str = "_pt_tested";

/// Which rows of the new state a write is responsible for.
#[derive(Clone, Copy, Debug)]
pub enum TestRows<'a> {
    /// Those just written: a slice, or the whole.
    Written {
        /// The slice.
        slice: Option<&'a Slice>,
    },
}

/// One test ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyTest {
    /// Its query and the rest.
    pub query: TestQuery,
    /// Statements that must run before it.
    pub setup: Vec<String>,
    /// The line of the script that declares it; `None` for one that came with a test file.
    pub span: Option<Span>,
}

/// Where the tests of a script look.
pub struct TestPlace<'a> {
    /// The project.
    pub project: &'a CompiledProject,
    /// The script.
    pub script: &'a CompiledScript,
    /// The asset that is tested.
    pub asset: &'a Asset,
    /// The strategy.
    pub strategy: &'a WriteStrategy,
    /// The table that holds the tested state.
    pub table: &'a Relation,
    /// The table's columns, for the arguments of generic tests.
    pub schema: &'a Schema,
    /// The slice.
    pub slice: Option<&'a Slice>,
    /// The stage, with its projection; `None` where there is none.
    pub stage: Option<(&'a Relation, &'a Projection)>,
}

/// Returns the tests of a script, ready for the place where they look.
pub fn tests_of(place: &TestPlace<'_>) -> Result<Vec<ReadyTest>, StepFailure> {
    let mut ready = Vec::new();
    for column in &place.script.header.columns {
        if column.value.not_null {
            let check = TestCheck::NotNull(column.value.name.clone());
            let declared = TestDecl { check, severity: TestSeverity::Error, filter: None, scope: None };
            let test = build(place, &declared).map_err(|error| error.at(column.span))?;
            ready.push(ReadyTest { span: Some(column.span), ..test });
        }
    }
    for line in &place.script.header.tests {
        let test = build(place, &line.value).map_err(|error| error.at(line.span))?;
        ready.push(ReadyTest { span: Some(line.span), ..test });
    }
    for name in &place.script.singular_tests {
        if let Some(test) = place.project.test(name) {
            ready.push(singular(place, test));
        }
    }
    Ok(ready)
}

fn build(place: &TestPlace<'_>, declared: &TestDecl) -> Result<ReadyTest, StepFailure> {
    if let TestCheck::Named { name, arguments } = &declared.check {
        let test = place.project.test(name).ok_or_else(|| {
            StepFailure::user(Code::UNKNOWN_TEST, "build the tests", format!("there is no test `{name}`"))
        })?;
        return Ok(match test.kind {
            TestKind::Singular => {
                let ReadyTest { query, setup, span } = singular(place, test);
                ReadyTest { query: TestQuery { severity: declared.severity, ..query }, setup, span }
            }
            TestKind::Generic => generic(place, declared, test, arguments)?,
        });
    }
    let (table_rows, slice_rows, staged_rows) = rows(place);
    let resolve = |asset: &Asset| relation_of(place, asset);
    let subject = TestSubject {
        asset: place.asset,
        strategy: place.strategy,
        is_partitioned: place.slice.is_some(),
        slice_rows: &slice_rows,
        table_rows: &table_rows,
        staged_rows: &staged_rows,
        resolve: &resolve,
    };
    let mut query = test_query(declared, &subject).map_err(|error| match error {
        TestBuildError::Condition { .. } => {
            StepFailure::user(Code::BAD_SQL_FRAGMENT, "build the tests", crate::with_sources(&error))
        }
        other => StepFailure::user(Code::UNKNOWN_TEST, "build the tests", other.to_string()),
    })?;
    if place.stage.is_none() {
        query.on_stage = false;
    }
    Ok(ReadyTest { query, setup: Vec::new(), span: None })
}

fn rows(place: &TestPlace<'_>) -> (Rows, Rows, Rows) {
    let table = Rows::table(place.table);
    let slice = match (place.slice, place.strategy) {
        (Some(slice), _) => Rows::slice(place.table, slice),
        (None, WriteStrategy::History { .. }) => Rows::current(place.table),
        (None, _) => table.clone(),
    };
    // Without a stage every test looks at the table itself.
    let staged = match place.stage {
        Some((stage, projection)) => Rows::staged(stage, projection),
        None => slice.clone(),
    };
    (table, slice, staged)
}

/// Returns where `asset` is read: the tested state for the tested asset, the pinned lake for every other.
fn relation_of(place: &TestPlace<'_>, asset: &Asset) -> Option<Relation> {
    if asset == place.asset {
        return Some(place.table.clone());
    }
    match asset {
        _ if is_in_postgres(place) => match (asset, place.asset) {
            (Asset::Datatable { database, schema, table }, Asset::Datatable { database: own, .. })
                if database == own =>
            {
                Some(Relation { catalog: None, schema: Some(Ident::new(schema)), table: Ident::new(table) })
            }
            // A transaction of Postgres sees nothing else.
            _ => None,
        },
        // The view beside a history lies where the history does.
        Asset::Lake { schema, table, .. } if place.script.current_view().as_ref() == Some(asset) => {
            let schema = Some(Ident::new(schema));
            Some(Relation { catalog: place.table.catalog.clone(), schema, table: Ident::new(table) })
        }
        Asset::Lake { lake, schema, table } => Some(Relation::in_catalog(lake.sql_name(), schema, table)),
        Asset::Datatable { database, schema, table } => {
            Some(Relation::in_catalog(&crate::executors::datatable::read_alias(database), schema, table))
        }
        Asset::Object { .. } | Asset::Volume { .. } => None,
    }
}

/// Whether the tests run inside Postgres: there a table has a schema and no catalog.
fn is_in_postgres(place: &TestPlace<'_>) -> bool {
    place.table.catalog.is_none() && place.table.schema.is_some()
}

/// A singular test: the script's query with every asset's name put where it is read.
fn singular(place: &TestPlace<'_>, test: &CompiledTest) -> ReadyTest {
    let text = |span| {
        let mut rewriter = Rewriter::new(&test.text.blanked, span);
        for table in &test.text.lineage.table_refs {
            if let Some(relation) = relation_of(place, &table.asset) {
                rewriter.table(table.name.span, &relation);
            }
        }
        rewriter.finish().sql
    };
    let query = test.query.map(text).unwrap_or_default();
    ReadyTest {
        query: TestQuery {
            name: test.name.clone(),
            severity: TestSeverity::Error,
            failures_sql: query,
            ignored_sql: None,
            on_stage: false,
        },
        setup: test.setup.iter().copied().map(text).collect(),
        span: None,
    }
}

/// A generic test: `this` becomes the tested rows, `$1` and on the arguments.
fn generic(
    place: &TestPlace<'_>,
    declared: &TestDecl,
    test: &CompiledTest,
    arguments: &[String],
) -> Result<ReadyTest, StepFailure> {
    let Some(span) = test.query else {
        return Err(StepFailure::user(
            Code::SQL_TEST_NOT_QUERY,
            "build the tests",
            format!("{} holds no query", test.name),
        ));
    };
    let mut rewriter = Rewriter::new(&test.text.blanked, span);
    for parameter in test.text.body.parameters.iter() {
        let number: usize = parameter.name.parse().unwrap_or(0);
        let Some(argument) = number.checked_sub(1).and_then(|index| arguments.get(index)) else {
            return Err(StepFailure::user(
                Code::UNKNOWN_TEST,
                "build the tests",
                format!("the test `{}` needs an argument for ${}", test.name, parameter.name),
            )
            .with_help(format!("write it after the name: `test {} …`", test.name)));
        };
        rewriter.replace(parameter.span, argument_sql(place, argument));
    }
    for table in &test.text.lineage.table_refs {
        let relation = match crate::project::is_this(&table.asset) {
            true => Some(Relation::temp(TESTED)),
            false => relation_of(place, &table.asset),
        };
        if let Some(relation) = relation {
            rewriter.table(table.name.span, &relation);
        }
    }
    let is_history = matches!(place.strategy, WriteStrategy::History { .. });
    let predicate = match scope_of(declared, place.slice.is_some() || is_history) {
        TestScope::Slice if is_history => Some(Ident::new(IS_CURRENT).to_string()),
        TestScope::Slice => place.slice.map(|slice| slice.predicate(None)),
        TestScope::Table => None,
    };
    let condition = predicate.map_or_else(String::new, |predicate| format!("\nWHERE {predicate}"));
    let filter = match &declared.filter {
        None => String::new(),
        Some(filter) => {
            let fragment = pintail_core::sql::Fragment::new(filter).map_err(|error| {
                StepFailure::user(Code::BAD_SQL_FRAGMENT, "build the tests", format!("`where={filter}`: {error}"))
            })?;
            format!("{}({fragment})", if condition.is_empty() { "\nWHERE " } else { "\n  AND " })
        }
    };
    let query = rewriter.finish().sql;
    let failures_sql = format!(
        "WITH {} AS (\nSELECT *\nFROM {}{condition}{filter}\n)\nSELECT *\nFROM (\n{query}\n)",
        Ident::new(TESTED),
        place.table
    );
    let name = std::iter::once(test.name.as_str()).chain(arguments.iter().map(String::as_str)).collect::<Vec<_>>();
    Ok(ReadyTest {
        query: TestQuery {
            name: name.join(" "),
            severity: declared.severity,
            failures_sql,
            ignored_sql: None,
            on_stage: false,
        },
        setup: Vec::new(),
        span: None,
    })
}

/// An argument that is a column of the table stands for that column, anything else for its value.
fn argument_sql(place: &TestPlace<'_>, argument: &str) -> String {
    match place.schema.column(argument) {
        Some(column) => Ident::new(&column.name).to_string(),
        None if argument.parse::<f64>().is_ok() => argument.to_owned(),
        None => Literal::new(argument).to_string(),
    }
}

/// Runs one test and says what it found.
pub fn run_test(session: &Session, test: &ReadyTest) -> (TestStatus, TestOutcome) {
    let started = Instant::now();
    let outcome = ask(session, test);
    let duration = TimeDelta::from_std(started.elapsed()).unwrap_or_default();
    match outcome {
        Ok(Found { failures, ignored, sample, rows }) => {
            let status = match (failures, test.query.severity) {
                (0, _) => TestStatus::Passed,
                (_, TestSeverity::Error) => TestStatus::Failed,
                (_, TestSeverity::Warn) => TestStatus::Warned,
            };
            (status, TestOutcome { failures: Some(failures), ignored, sample, rows, error: None, duration })
        }
        Err(failure) => (
            TestStatus::Errored,
            TestOutcome {
                failures: None,
                ignored: None,
                sample: Sample::default(),
                rows: Vec::new(),
                error: Some(failure),
                duration,
            },
        ),
    }
}

/// What one test found.
#[derive(Clone, Debug)]
pub struct TestOutcome {
    /// Rows that failed.
    pub failures: Option<u64>,
    /// NULLs that it passed over.
    pub ignored: Option<u64>,
    /// Some of the rows, for people.
    pub sample: Sample,
    /// The same rows as JSON, for the store.
    pub rows: Vec<serde_json::Value>,
    /// Why it did not run.
    pub error: Option<StepFailure>,
    /// How long it took.
    pub duration: TimeDelta,
}

struct Found {
    failures: u64,
    ignored: Option<u64>,
    sample: Sample,
    rows: Vec<serde_json::Value>,
}

fn ask(session: &Session, test: &ReadyTest) -> Result<Found, StepFailure> {
    for statement in &test.setup {
        session.batch("prepare a test", statement)?;
    }
    let count = |purpose, sql: &str| -> Result<u64, StepFailure> {
        Ok(session.one(purpose, sql, |row| row.get::<_, i64>(0)).map(|count| u64::try_from(count).unwrap_or(0))?)
    };
    // The count is asked first: a huge failure never comes into memory.
    let failures =
        count("count what fails a test", &format!("SELECT count(*) FROM (\n{}\n)", test.query.failures_sql))?;
    let ignored = match &test.query.ignored_sql {
        Some(sql) => Some(count("count the ignored NULLs", sql)?),
        None => None,
    };
    let mut found = Found { failures, ignored, sample: Sample::default(), rows: Vec::new() };
    if 0 < failures {
        let sql = format!("SELECT * FROM (\n{}\n) LIMIT {MAX_SAMPLE_ROWS}", test.query.failures_sql);
        let result = session.query("read what fails a test", &sql)?;
        found.sample = Sample { columns: result.column_names(), rows: result.text_rows()? };
        found.rows = result.json_rows()?.into_iter().map(serde_json::Value::Object).collect();
    }
    Ok(found)
}

/// Runs the tests that mean the same on the stage, before any transaction.
pub fn on_stage(
    attempt: &mut Attempt<'_>,
    session: &Session,
    shape: &Shape,
    strategy: &WriteStrategy,
) -> Result<(), StepFailure> {
    // A stage that is written again was tested already.
    attempt.tests.clear();
    let tests = ready(attempt, &shape.target.write, &shape.schema, shape, strategy)?;
    run_all(attempt, session, tests.into_iter().filter(|test| test.query.on_stage))
}

/// Runs the tests that need the new state, inside the transaction.
pub fn in_transaction(
    attempt: &mut Attempt<'_>,
    session: &Session,
    shape: &Shape,
    strategy: &WriteStrategy,
    rows: TestRows<'_>,
) -> Result<(), StepFailure> {
    let TestRows::Written { slice } = rows;
    debug_assert_eq!(slice, shape.slice.as_ref(), "the tests look at what was written");
    let tests = ready(attempt, &shape.target.write, &shape.schema, shape, strategy)?;
    run_all(attempt, session, tests.into_iter().filter(|test| !test.query.on_stage))
}

fn ready(
    attempt: &Attempt<'_>,
    table: &Relation,
    schema: &Schema,
    shape: &Shape,
    strategy: &WriteStrategy,
) -> Result<Vec<ReadyTest>, StepFailure> {
    tests_of(&TestPlace {
        project: &attempt.ctx.project,
        script: attempt.script,
        asset: attempt.asset,
        strategy,
        table,
        schema,
        slice: shape.slice.as_ref(),
        stage: Some((&shape.target.stage, &shape.target.projection)),
    })
}

/// Runs the tests of a view or of a manual script's table, which have no stage.
pub fn in_transaction_of_view(
    attempt: &mut Attempt<'_>,
    session: &Session,
    table: &Relation,
    rows: TestRows<'_>,
) -> Result<(), StepFailure> {
    let TestRows::Written { slice } = rows;
    let schema = pintail_engine::lake::schema_of(session.describe(&table.to_string())?);
    let tests = tests_of(&TestPlace {
        project: &attempt.ctx.project,
        script: attempt.script,
        asset: attempt.asset,
        strategy: &attempt.strategy(),
        table,
        schema: &schema,
        slice,
        stage: None,
    })?;
    run_all(attempt, session, tests.into_iter())
}

fn run_all(
    attempt: &mut Attempt<'_>,
    session: &Session,
    tests: impl Iterator<Item = ReadyTest>,
) -> Result<(), StepFailure> {
    let mut worst: Option<StepFailure> = None;
    let mut failed = Vec::new();
    for test in tests {
        let (status, outcome) = run_test(session, &test);
        if let Some(error) = outcome.error.clone().filter(|error| error.class != pintail_core::write::ErrorClass::User)
        {
            return Err(error);
        }
        attempt.tests.push(TestResult {
            step: attempt.job.id.clone(),
            attempt: attempt.id.clone(),
            name: test.query.name.clone(),
            severity: store_severity(test.query.severity),
            status,
            failures: outcome.failures,
            nulls_ignored: outcome.ignored,
            sample_rows: outcome.rows.clone(),
            sql: session.redactor().redact(&test.query.failures_sql),
            duration: outcome.duration,
        });
        match status {
            // A warning is told by the result itself.
            TestStatus::Passed | TestStatus::Warned => {}
            TestStatus::Failed => {
                let message = format!("`{}`: {}", test.query.name, rows_text(outcome.failures.unwrap_or(0)));
                failed.push(message.clone());
                worst.get_or_insert_with(|| {
                    StepFailure::user(Code::TEST_FAILED, "test the new data", message)
                        .with_sample(outcome.sample)
                        .at(test.span)
                });
            }
            TestStatus::Errored => {
                let (error, help) = outcome.error.map(|error| (error.message, error.help)).unwrap_or_default();
                let message = format!("the test `{}` could not run: {error}", test.query.name);
                let failure = StepFailure::user(Code::TEST_FAILED, "test the new data", message).at(test.span);
                // One that could not run aborts a transaction, so the rest could not run either.
                return Err(StepFailure { help, ..failure });
            }
        }
    }
    match worst {
        None => Ok(()),
        Some(failure) => Err(StepFailure {
            message: match failed.as_slice() {
                [one] => format!("the test {one}"),
                several => format!("{} tests failed: {}", several.len(), several.join("; ")),
            },
            ..failure
        }
        .with_help(
            "the failing rows are kept with the run: `pintail show <run>`; mend the data or the test and run again",
        )),
    }
}

/// Says how many rows fail.
pub fn rows_text(rows: u64) -> String {
    match rows {
        1 => "1 row fails".to_owned(),
        rows => format!("{rows} rows fail"),
    }
}

/// Returns the severity as the store spells it.
pub fn store_severity(severity: TestSeverity) -> pintail_store::TestSeverity {
    match severity {
        TestSeverity::Warn => pintail_store::TestSeverity::Warn,
        TestSeverity::Error => pintail_store::TestSeverity::Error,
    }
}
