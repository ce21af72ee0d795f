//! From a loaded project to a compiled one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use pintail_core::annotation::{ParsedHeader, TestCheck, TestDecl, Trigger, parse_header};
use pintail_core::asset::Asset;
use pintail_core::diagnostic::{Code, Diagnostic, Severity, nearest};
use pintail_core::graph::{AssetUse, EdgeReason, Graph, GraphScript, NodeId, build};
use pintail_core::id::{LakeName, ScriptHash};
use pintail_core::lineage::{LineageContext, of_body};
use pintail_core::source::{Language, Located, SourceFile, Span};
use pintail_core::sql::body::ParsedBody;
use pintail_core::sql::classify::{BodyMode, ClassifyContext, Need, SetupAction, managed, manual, test_script};
use pintail_core::sql::postgres::{PostgresContext, parse_script};
use pintail_engine::parse::BodyParser;
use pintail_engine::{EngineError, Instance, InstanceOptions};
use sha2::{Digest, Sha256};

use super::consumers;
use super::deferral::Deferral;
use super::objects;
use super::streams;
use super::tests_of_project::{THIS, is_this};
use super::{CompiledProject, CompiledScript, CompiledTest, ParsedText, TestKind};
use crate::workspace::{Project, ScriptFile, TestFile};

/// Compiling failed for a reason that is not in the project.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The engine could not be used as a parser.
    #[error("could not start the engine's parser")]
    Engine(#[from] EngineError),
}

/// Names of the project that bodies may refer to.
struct Names {
    default_lake: LakeName,
    lakes: Vec<LakeName>,
    datatables: Vec<String>,
    volumes: Vec<(String, String)>,
    vars: Vec<String>,
    /// The values of the variables.
    values: BTreeMap<String, String>,
}

impl Names {
    fn of(project: &Project) -> Self {
        let volume =
            |(name, volume): (&String, &crate::workspace::Volume)| (name.clone(), volume.path.display().to_string());
        Self {
            default_lake: LakeName("main".to_owned()),
            lakes: project.config.lakes.keys().cloned().collect(),
            datatables: project.config.datatables.keys().cloned().collect(),
            volumes: project.config.volumes.iter().map(volume).collect(),
            vars: project.config.vars.keys().cloned().collect(),
            values: project.config.vars.iter().map(|(name, value)| (name.clone(), value.text())).collect(),
        }
    }

    fn lineage(&self) -> LineageContext<'_> {
        LineageContext {
            default_lake: &self.default_lake,
            lakes: &self.lakes,
            datatables: &self.datatables,
            volumes: &self.volumes,
        }
    }
}

/// Compiles `project`; what is wrong with it is in the result's diagnostics.
pub fn compile(mut project: Project) -> Result<CompiledProject, CompileError> {
    let names = Names::of(&project);
    let mut diagnostics = std::mem::take(&mut project.diagnostics);
    let script_headers: Vec<ParsedHeader> =
        project.scripts.iter().map(|script| parse_header(&script.source, script.language)).collect();
    let test_headers: Vec<ParsedHeader> =
        project.tests.iter().map(|test| parse_header(&test.source, Language::DuckDbSql)).collect();
    let bodies = parse_bodies(&project, &script_headers, &test_headers)?;
    let (script_bodies, test_bodies) = bodies;

    let mut scripts: Vec<CompiledScript> = Vec::with_capacity(project.scripts.len());
    for ((file, header), body) in project.scripts.iter().zip(script_headers).zip(script_bodies) {
        scripts.push(compile_script(file, header, body, &names, &mut diagnostics));
    }
    let mut tests: Vec<CompiledTest> = Vec::with_capacity(project.tests.len());
    for ((file, header), body) in project.tests.iter().zip(test_headers).zip(test_bodies) {
        tests.push(compile_test(file, header, body, &names, &mut diagnostics));
    }
    let deferral = Deferral::of(&project.config, &scripts, &tests).map(Arc::new);
    if let Some(deferral) = &deferral {
        scripts.iter_mut().for_each(|script| deferral.rename_script(script));
        tests.iter_mut().for_each(|test| deferral.rename_test(test));
    }
    let texts = scripts.iter_mut().map(|script| &mut script.text).chain(tests.iter_mut().map(|test| &mut test.text));
    for text in texts {
        objects::resolve(text, &project, &mut diagnostics);
    }
    check_lakes(&scripts, &names, &mut diagnostics);
    check_places(&mut scripts, &project, &mut diagnostics);
    diagnostics.extend(consumers::check(&project.config, &scripts));
    check_named_tests(&scripts, &tests, &mut diagnostics);
    let (graph, found) = build(scripts.iter().map(graph_script));
    diagnostics.extend(found);
    attach_singular_tests(&mut scripts, &tests, &graph);
    check_tests_run(&scripts, &tests, &mut diagnostics);
    for script in &mut scripts {
        script.test_reads = test_reads(script, &tests);
    }
    let order = |diagnostic: &Diagnostic| (diagnostic.path.clone(), diagnostic.span);
    diagnostics.sort_by_key(order);
    let by_name: HashMap<_, _> =
        scripts.iter().enumerate().map(|(position, script)| (script.name().clone(), position)).collect();
    Ok(CompiledProject {
        project,
        scripts,
        tests,
        graph,
        diagnostics,
        default_lake: names.default_lake,
        deferral,
        by_name,
    })
}

/// Parses every DuckDB body of the project at once.
fn parse_bodies(
    project: &Project,
    scripts: &[ParsedHeader],
    tests: &[ParsedHeader],
) -> Result<(Vec<ParsedBody>, Vec<ParsedBody>), CompileError> {
    let is_duckdb = |position: usize| project.scripts[position].language == Language::DuckDbSql;
    let texts: Vec<&str> = scripts
        .iter()
        .enumerate()
        // A body in another language is not SQL to DuckDB.
        .map(|(position, header)| if is_duckdb(position) { header.blanked.as_str() } else { "" })
        .chain(tests.iter().map(|header| header.blanked.as_str()))
        .collect();
    if texts.iter().all(|text| text.trim().is_empty()) {
        return Ok((vec![ParsedBody::default(); scripts.len()], vec![ParsedBody::default(); tests.len()]));
    }
    let parser = BodyParser::new(Instance::open(InstanceOptions::default())?)?;
    let mut bodies = parser.parse(&texts)?;
    let tests = bodies.split_off(scripts.len());
    Ok((bodies, tests))
}

fn compile_script(
    file: &ScriptFile,
    parsed: ParsedHeader,
    body: ParsedBody,
    names: &Names,
    diagnostics: &mut Vec<Diagnostic>,
) -> CompiledScript {
    let ParsedHeader { header, diagnostics: found, blanked, .. } = parsed;
    let mut has_errors = found.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    diagnostics.extend(found);
    let source = SourceFile { path: file.source.path.clone(), text: blanked };
    let lineage = of_body(&body, &names.lineage(), &source);
    diagnostics.extend(lineage.diagnostics.iter().cloned());
    let ctx = ClassifyContext { file: &source, header: &header, vars: &names.vars };
    let mut compiled = CompiledScript {
        file: file.clone(),
        header: header.clone(),
        hash: hash_with(file, &body, names),
        text: ParsedText::default(),
        query: None,
        setup: Vec::new(),
        statements: Vec::new(),
        target: None,
        singular_tests: Vec::new(),
        test_reads: BTreeSet::new(),
        cannot_run: None,
    };
    let database = match header.materialize.as_ref().map(|line| &line.value.target.value) {
        Some(Asset::Datatable { database, .. }) => Some(database.as_str()),
        _ => None,
    };
    let (mut body, mut lineage) = (body, lineage);
    if file.language == Language::PostgresSql {
        let is_managed = BodyMode::of(&header) == BodyMode::Managed;
        let script = parse_script(&PostgresContext { file: &source, database, is_managed, vars: &names.vars });
        has_errors |= script.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        compiled.query = script.query;
        compiled.setup = script.setup;
        compiled.statements = script.statements.into_iter().map(|span| (span, Need::InTransaction)).collect();
        body.parameters = script.parameters;
        body.placeholders = script.placeholders;
        lineage = script.lineage;
        diagnostics.extend(script.diagnostics);
    }
    if file.language == Language::DuckDbSql && header.macros.is_none() {
        let found = match BodyMode::of(&header) {
            BodyMode::Managed => {
                let managed = managed(&body, &ctx);
                compiled.query = managed.query.map(|query| query.span);
                compiled.setup = sent(&managed.setup);
                managed.diagnostics
            }
            BodyMode::Manual => {
                let manual = manual(&body, &ctx);
                compiled.statements =
                    manual.statements.iter().map(|statement| (statement.statement.span, statement.need)).collect();
                manual.diagnostics
            }
        };
        has_errors |= found.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        diagnostics.extend(found);
    }
    compiled.target = match &header.materialize {
        Some(line) => Some(line.value.target.value.clone()),
        None => lineage.writes.iter().map(|write| &write.asset).find(|asset| asset.lake().is_some()).cloned(),
    };
    has_errors |= check_target(&compiled, diagnostics);
    compiled.cannot_run = cannot_run(file, &compiled, has_errors);
    if compiled.cannot_run.as_deref() == Some(WRITES_NOTHING) {
        diagnostics.push(nothing_written(&compiled));
    }
    let has_increments = compiled.increment_column().is_some();
    compiled.text =
        ParsedText { path: source.path, blanked: source.text, body, lineage, has_increments, ..ParsedText::default() };
    if let Some(found) = streams::resolve(&mut compiled) {
        diagnostics.push(found);
        compiled.cannot_run.get_or_insert_with(|| "it has errors".to_owned());
    }
    if let Some(unbounded) = unbounded_increment(&compiled) {
        diagnostics.push(unbounded);
        compiled.cannot_run.get_or_insert_with(|| "it has errors".to_owned());
    }
    compiled
}

/// Refuses increments of a query that does not ask for their bounds: it would write everything each time.
fn unbounded_increment(script: &CompiledScript) -> Option<Diagnostic> {
    let column = script.increment_column()?;
    let body = &script.text.body;
    let asks = |name: &str| body.parameters.iter().any(|parameter| parameter.name.eq_ignore_ascii_case(name));
    let is_bounded = body.functions.iter().any(|function| function == "in_partition" || function == "getvariable")
        || ["partition_start", "partition_end"].into_iter().any(asks);
    if is_bounded {
        return None;
    }
    let span = script.header.partitioned.as_ref()?.span;
    let message = format!("the query does not ask for what is new in `{column}`, so every run would write all of it");
    Some(
        Diagnostic::new(Code::INCREMENT_SOURCE, &script.text.path, span, message)
            .with_help(format!("filter what it reads: `WHERE in_partition({column})`")),
    )
}

/// Says when the language of a script cannot write its target; returns whether that is an error.
fn check_target(script: &CompiledScript, diagnostics: &mut Vec<Diagnostic>) -> bool {
    use pintail_core::annotation::WriteStrategy;
    let Some(line) = &script.header.materialize else { return false };
    let target = &line.value.target;
    let is_manual = script.strategy() == WriteStrategy::Manual;
    let (message, help) = match (script.language(), &target.value) {
        (Language::PostgresSql, asset) if !matches!(asset, Asset::Datatable { .. }) => (
            "a Postgres script writes only a table of its own datatable",
            "write `materialize datatable://<name>/<table>`, or the script in DuckDB SQL (`.sql`)",
        ),
        (Language::DuckDbSql, Asset::Datatable { .. }) if is_manual => (
            "statements of its own for a datatable are written in Postgres SQL",
            "name the file `….pg.sql`, or let Pintail write: end the script with a query and remove `manual`",
        ),
        _ => return false,
    };
    let path = script.file.source.path.as_str();
    diagnostics.push(Diagnostic::new(Code::TARGET_UNSUPPORTED, path, target.span, message).with_help(help));
    true
}

/// Returns the hash of a script with the values of the variables that it uses; that of the text when it uses none.
fn hash_with(file: &ScriptFile, body: &ParsedBody, names: &Names) -> ScriptHash {
    let used: BTreeMap<&str, &str> = body
        .parameters
        .iter()
        .filter_map(|parameter| names.values.get_key_value(&parameter.name))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    if used.is_empty() {
        return file.hash.clone();
    }
    let mut digest = Sha256::new();
    digest.update(file.hash.as_str());
    for (name, value) in used {
        digest.update(format!("\0{name}\0{value}"));
    }
    ScriptHash(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Why a script without a target does not run.
const WRITES_NOTHING: &str = "it writes no lake table";

fn nothing_written(script: &CompiledScript) -> Diagnostic {
    let table = script.name().as_str().rsplit('/').next().unwrap_or_default();
    Diagnostic::new(
        Code::NOTHING_WRITTEN,
        script.file.source.path.as_str(),
        None,
        format!("`{}` writes no table, so it is left out of every plan", script.name()),
    )
    .with_help(format!("say where its rows go: `-- materialize ducklake://main/{table}`"))
}

/// Returns why this version does not run the script.
fn cannot_run(file: &ScriptFile, script: &CompiledScript, has_errors: bool) -> Option<String> {
    use pintail_core::annotation::WriteStrategy;
    if has_errors {
        return Some("it has errors".to_owned());
    }
    if !matches!(file.language, Language::DuckDbSql | Language::PostgresSql) {
        return Some(format!("this version does not run {} yet", file.language));
    }
    if script.header.macros.is_some() {
        return Some("it is a macro library".to_owned());
    }
    if script.increment_column().is_some() && matches!(script.strategy(), WriteStrategy::View | WriteStrategy::Manual) {
        return Some("increments need a query whose rows are written: not a view, not a manual script".to_owned());
    }
    match &script.target {
        Some(Asset::Lake { .. }) if file.language == Language::PostgresSql => {
            Some("a Postgres script writes a datatable".to_owned())
        }
        Some(Asset::Object { .. } | Asset::Volume { .. }) if script.strategy() == WriteStrategy::Manual => {
            Some("a file is written from a query, not by statements of the script's own".to_owned())
        }
        Some(asset) if asset.lake().is_none() && script.increment_column().is_some() => {
            Some("increments by a column are for lake tables".to_owned())
        }
        Some(_) => None,
        None => Some(WRITES_NOTHING.to_owned()),
    }
}

fn sent(setup: &[pintail_core::sql::classify::Setup<'_>]) -> Vec<Span> {
    setup.iter().filter(|setup| setup.action == SetupAction::Sent).map(|setup| setup.statement.span).collect()
}

fn compile_test(
    file: &TestFile,
    parsed: ParsedHeader,
    body: ParsedBody,
    names: &Names,
    diagnostics: &mut Vec<Diagnostic>,
) -> CompiledTest {
    let ParsedHeader { header, diagnostics: found, blanked, .. } = parsed;
    diagnostics.extend(found);
    let source = SourceFile { path: file.source.path.clone(), text: blanked };
    let lineage = of_body(&body, &names.lineage(), &source);
    diagnostics.extend(lineage.diagnostics.iter().cloned());
    let is_generic = lineage.reads.iter().any(|read| is_this(&read.asset));
    let ctx = ClassifyContext { file: &source, header: &header, vars: &names.vars };
    let (query, setup) = {
        let classified = test_script(&body, &ctx);
        // The numbered parameters of a generic test are its arguments.
        let is_argument = |diagnostic: &Diagnostic| is_generic && diagnostic.code == Code::SQL_UNKNOWN_PARAMETER;
        diagnostics.extend(classified.diagnostics.into_iter().filter(|diagnostic| !is_argument(diagnostic)));
        (classified.query.map(|query| query.span), sent(&classified.setup))
    };
    CompiledTest {
        name: file.name.clone(),
        header,
        query,
        setup,
        kind: if is_generic { TestKind::Generic } else { TestKind::Singular },
        text: ParsedText { path: source.path, blanked: source.text, body, lineage, ..ParsedText::default() },
    }
}

/// Says which declared targets and reads lie in a lake that is not configured.
fn check_lakes(scripts: &[CompiledScript], names: &Names, diagnostics: &mut Vec<Diagnostic>) {
    let known: Vec<&str> = names.lakes.iter().map(LakeName::as_str).collect();
    for script in scripts {
        let declared = script.header.materialize.iter().map(|line| &line.value.target);
        let upstream = script.header.triggers.iter().filter_map(|trigger| match &trigger.value {
            Trigger::Asset { asset, .. } => Some((asset, trigger.span)),
            _ => None,
        });
        let uses = declared.map(|target| (&target.value, target.span)).chain(upstream);
        for (asset, span) in uses {
            let Some(lake) = asset.lake().filter(|lake| !names.lakes.contains(lake)) else { continue };
            let help = match nearest(lake.as_str(), known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("configure it in pintail.toml: `[lake.{lake}]`; there is {}", known.join(", ")),
            };
            let message = format!("there is no lake `{lake}`");
            diagnostics
                .push(Diagnostic::new(Code::UNKNOWN_LAKE, &script.file.source.path, span, message).with_help(help));
        }
    }
}

/// Says which declared targets lie in a datatable, object store or volume that is not configured; they cannot run.
fn check_places(scripts: &mut [CompiledScript], project: &Project, diagnostics: &mut Vec<Diagnostic>) {
    let config = &project.config;
    let default_store = String::new();
    for script in scripts {
        let Some(line) = &script.header.materialize else { continue };
        let target = &line.value.target;
        let (kind, section, name, known): (_, _, &String, Vec<&String>) = match &target.value {
            Asset::Datatable { database, .. } => {
                ("datatable", "datatable", database, config.datatables.keys().collect())
            }
            Asset::Object { store, .. } => {
                // One store alone is the default one.
                let only = (config.object_stores.len() == 1).then_some(&default_store);
                ("object store", "object_store", store, config.object_stores.keys().chain(only).collect())
            }
            Asset::Volume { volume, .. } if volume != pintail_core::asset::PROJECT_VOLUME => {
                ("volume", "volume", volume, config.volumes.keys().collect())
            }
            Asset::Volume { .. } | Asset::Lake { .. } => continue,
        };
        if known.contains(&name) {
            continue;
        }
        let help = match nearest(name, known.iter().map(|name| name.as_str())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("declare it in pintail.toml: `[{section}.{name}]`"),
        };
        let message = format!("there is no {kind} `{name}`");
        let path = script.file.source.path.as_str();
        let told = Diagnostic::new(Code::UNKNOWN_PLACE, path, target.span, message.clone());
        diagnostics.push(told.with_help(help));
        script.cannot_run.get_or_insert(message);
    }
}

/// Says which `test <name>` lines name no test.
fn check_named_tests(scripts: &[CompiledScript], tests: &[CompiledTest], diagnostics: &mut Vec<Diagnostic>) {
    let names = || tests.iter().map(|test| test.name.as_str());
    for script in scripts {
        for line in &script.header.tests {
            let TestCheck::Named { name, arguments } = &line.value.check else { continue };
            if let Some(test) = tests.iter().find(|test| test.name == *name) {
                check_arguments(script, test, line, arguments.len(), diagnostics);
                continue;
            }
            const BUILT_IN: [&str; 6] =
                ["unique", "not_null", "accepted_values", "relationships", "expression", "row_count"];
            let help = match nearest(name, names().chain(BUILT_IN)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write it as tests/{name}.sql, or use one of {}", BUILT_IN.join(", ")),
            };
            let message = format!("there is no test `{name}`");
            diagnostics.push(
                Diagnostic::new(Code::UNKNOWN_TEST, &script.file.source.path, line.span, message).with_help(help),
            );
        }
    }
}

/// Says when a `test` line gives a generic test fewer arguments than it uses.
fn check_arguments(
    script: &CompiledScript,
    test: &CompiledTest,
    line: &Located<TestDecl>,
    given: usize,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let needed = test.arguments();
    if needed <= given {
        return;
    }
    let message = format!("the test `{}` uses ${needed}, so it needs {needed} arguments; found {given}", test.name);
    let help = format!("write them after the name: `test {} …`; ${needed} is used in {}", test.name, test.text.path);
    diagnostics.push(Diagnostic::new(Code::UNKNOWN_TEST, &script.file.source.path, line.span, message).with_help(help));
}

fn graph_script(script: &CompiledScript) -> GraphScript {
    let mut reads: Vec<AssetUse> = Vec::new();
    for trigger in &script.header.triggers {
        if let Trigger::Asset { asset, .. } = &trigger.value {
            reads.push(AssetUse { asset: asset.clone(), reason: EdgeReason::Annotation(trigger.span) });
        }
    }
    reads.extend(
        script
            .text
            .lineage
            .reads
            .iter()
            .map(|read| AssetUse { asset: read.asset.clone(), reason: EdgeReason::Body(read.span) }),
    );
    for test in &script.header.tests {
        if let TestCheck::Relationships { parent, .. } = &test.value.check {
            reads.push(AssetUse { asset: parent.clone(), reason: EdgeReason::Test(test.span) });
        }
    }
    for column in &script.header.columns {
        let sources = column.value.sources.iter();
        reads.extend(
            sources.map(|(asset, _)| AssetUse { asset: asset.clone(), reason: EdgeReason::Column(column.span) }),
        );
    }
    let mut writes: Vec<AssetUse> = script
        .text
        .lineage
        .writes
        .iter()
        .map(|write| AssetUse { asset: write.asset.clone(), reason: EdgeReason::Body(write.span) })
        .collect();
    if let Some(line) = &script.header.materialize {
        let declared = &line.value.target;
        writes.retain(|write| write.asset != declared.value);
        let reason = EdgeReason::Annotation(declared.span);
        writes.push(AssetUse { asset: declared.value.clone(), reason });
        writes.extend(script.current_view().map(|asset| AssetUse { asset, reason }));
    }
    GraphScript { name: script.name().clone(), path: script.file.source.path.clone(), reads, writes }
}

/// Gives each singular test to the script that writes the last of the assets that it names.
fn attach_singular_tests(scripts: &mut [CompiledScript], tests: &[CompiledTest], graph: &Graph) {
    let place: BTreeMap<NodeId, usize> = graph.order().iter().enumerate().map(|(place, node)| (*node, place)).collect();
    let positions: HashMap<_, _> =
        scripts.iter().enumerate().map(|(position, script)| (script.name().clone(), position)).collect();
    for test in tests.iter().filter(|test| test.kind == TestKind::Singular) {
        let writers = test.assets().into_iter().filter_map(|asset| graph.writer(asset));
        let Some(last) = writers.max_by_key(|node| place.get(node).copied()) else { continue };
        if let Some(position) = positions.get(graph.name(last)) {
            scripts[*position].singular_tests.push(test.name.clone());
        }
    }
}

/// Says which singular tests belong to no script, and so would never run.
fn check_tests_run(scripts: &[CompiledScript], tests: &[CompiledTest], diagnostics: &mut Vec<Diagnostic>) {
    let is_named = |script: &CompiledScript, test: &CompiledTest| {
        let names_it = |check: &TestCheck| matches!(check, TestCheck::Named { name, .. } if *name == test.name);
        script.singular_tests.contains(&test.name) || script.header.tests.iter().any(|line| names_it(&line.value.check))
    };
    let singular = tests.iter().filter(|test| test.kind == TestKind::Singular && test.query.is_some());
    for test in singular.filter(|test| !scripts.iter().any(|script| is_named(script, test))) {
        let message = format!("the test `{}` reads nothing that a script writes, so it never runs", test.name);
        diagnostics.push(Diagnostic::new(Code::TEST_NEVER_RUNS, &test.text.path, test.query, message).with_help(
            format!("name the tested asset in it, or write `test {}` in the script that it belongs to", test.name),
        ));
    }
}

/// Returns what the tests of `script` read besides its target.
fn test_reads(script: &CompiledScript, tests: &[CompiledTest]) -> BTreeSet<Asset> {
    let mut reads = BTreeSet::new();
    for line in &script.header.tests {
        match &line.value.check {
            TestCheck::Relationships { parent, .. } => {
                reads.insert(parent.clone());
            }
            TestCheck::Named { name, .. } => {
                let named = tests.iter().filter(|test| test.name == *name);
                reads.extend(named.flat_map(CompiledTest::assets).cloned());
            }
            _ => {}
        }
    }
    let singular = tests.iter().filter(|test| script.singular_tests.contains(&test.name));
    reads.extend(singular.flat_map(CompiledTest::assets).cloned());
    reads.retain(|asset| Some(asset) != script.target.as_ref());
    debug_assert!(!reads.iter().any(|asset| matches!(asset, Asset::Lake { table, .. } if table == THIS)));
    reads
}
