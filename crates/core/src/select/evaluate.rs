//! Evaluation: which scripts a selection means. Linear in scripts and edges for each atom.

use std::collections::BTreeSet;

use globset::{GlobBuilder, GlobMatcher};

use super::universe::{ScriptSet, Universe, spellings};
use super::{Atom, Depth, Fact, KindFilter, Reach, ScriptLabels, SelectError, Selection, Subject};
use crate::asset::Asset;
use crate::diagnostic::{Code, nearest};
use crate::graph::{Direction, NodeId};
use crate::id::ScriptName;
use crate::source::{Language, Span};

/// The mistakes of a selection and of an exclusion, each with spans in its own text.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SelectFailure {
    /// In `--select`.
    pub select: Vec<SelectError>,
    /// In `--exclude`.
    pub exclude: Vec<SelectError>,
}

/// Returns the scripts of `selected` (all when `None`) without those of `excluded`, in the graph's order.
pub fn select(
    universe: &Universe<'_>,
    selected: Option<&Selection>,
    excluded: Option<&Selection>,
) -> Result<Vec<NodeId>, SelectFailure> {
    let everything = || Ok(ScriptSet::of(universe.graph.len(), universe.graph.nodes()));
    let nothing = || Ok(ScriptSet::of(universe.graph.len(), []));
    let chosen = selected.map_or_else(everything, |selection| evaluate(universe, selection));
    let removed = excluded.map_or_else(nothing, |selection| evaluate(universe, selection));
    match (chosen, removed) {
        (Ok(mut chosen), Ok(removed)) => {
            chosen.subtract(&removed);
            Ok(chosen.in_order(universe.graph))
        }
        (chosen, removed) => {
            Err(SelectFailure { select: chosen.err().unwrap_or_default(), exclude: removed.err().unwrap_or_default() })
        }
    }
}

/// Returns the scripts that `selection` means, or everything in it that means nothing.
pub fn evaluate(universe: &Universe<'_>, selection: &Selection) -> Result<ScriptSet, Vec<SelectError>> {
    let mut errors = Vec::new();
    let mut union = ScriptSet::of(universe.graph.len(), []);
    for term in &selection.terms {
        let mut meet: Option<ScriptSet> = None;
        for atom in &term.atoms {
            match evaluate_atom(universe, atom) {
                Ok(set) => match &mut meet {
                    Some(meet) => meet.intersect(&set),
                    None => meet = Some(set),
                },
                Err(error) => errors.push(error),
            }
        }
        if let Some(meet) = meet {
            union.unite(&meet);
        }
    }
    if errors.is_empty() { Ok(union) } else { Err(errors) }
}

fn evaluate_atom(universe: &Universe<'_>, atom: &Atom) -> Result<ScriptSet, SelectError> {
    let start = subject_set(universe, &atom.subject.value, atom.subject.span)?;
    match atom.reach {
        Reach::Family => {
            let downstream = universe.closure(&start, Direction::Downstream, None);
            Ok(universe.closure(&downstream, Direction::Upstream, None))
        }
        Reach::Steps { upstream, downstream } => {
            let mut reached = universe.closure(&start, Direction::Upstream, steps(upstream));
            reached.unite(&universe.closure(&start, Direction::Downstream, steps(downstream)));
            Ok(reached)
        }
    }
}

fn steps(depth: Depth) -> Option<u32> {
    match depth {
        Depth::Steps(steps) => Some(steps),
        Depth::All => None,
    }
}

fn subject_set(universe: &Universe<'_>, subject: &Subject, span: Span) -> Result<ScriptSet, SelectError> {
    match subject {
        Subject::Name(text) => named(universe, text, span),
        Subject::Tag(text) => {
            labelled(universe, "tag", text, span, |labels| labels.tags.iter().map(String::as_str).collect())
        }
        Subject::Owner(text) => {
            labelled(universe, "owner", text, span, |labels| labels.owner.as_deref().into_iter().collect())
        }
        Subject::Kind(filter) => Ok(with_labels(universe, |labels| is_of_kind(labels, *filter))),
        Subject::Source(text) => readers(universe, text, span),
        Subject::Fact(fact) => universe.facts.get(fact).cloned().ok_or_else(|| needs_facts(*fact, span)),
    }
}

fn with_labels(universe: &Universe<'_>, holds: impl Fn(&ScriptLabels) -> bool) -> ScriptSet {
    let nodes = universe.graph.nodes().filter(|node| universe.labels[node.index()].as_ref().is_some_and(&holds));
    ScriptSet::of(universe.graph.len(), nodes)
}

fn is_of_kind(labels: &ScriptLabels, filter: KindFilter) -> bool {
    match filter {
        KindFilter::Strategy(kind) => labels.kind == Some(kind),
        KindFilter::Language(language) => labels.language == language,
        KindFilter::AnySql => matches!(labels.language, Language::DuckDbSql | Language::PostgresSql),
    }
}

/// Scripts with a label that `text` names or, as a glob, covers.
fn labelled<'a>(
    universe: &'a Universe<'_>,
    what: &str,
    text: &str,
    span: Span,
    values: impl Fn(&'a ScriptLabels) -> Vec<&'a str>,
) -> Result<ScriptSet, SelectError> {
    let pattern = Pattern::new(text, span)?;
    let nodes = universe.graph.nodes().filter(|node| {
        let labels = universe.labels[node.index()].as_ref();
        labels.is_some_and(|labels| values(labels).into_iter().any(|value| pattern.matches(value)))
    });
    let set = ScriptSet::of(universe.graph.len(), nodes);
    if !set.is_empty() {
        return Ok(set);
    }
    let known: BTreeSet<&str> = universe.labels.iter().flatten().flat_map(values).collect();
    Err(SelectError::new(Code::SELECTION_MATCHES_NOTHING, span, format!("no script has the {what} `{text}`"))
        .with_near(nearest(text, known)))
}

/// Scripts that read an asset that `text` names or covers.
fn readers(universe: &Universe<'_>, text: &str, span: Span) -> Result<ScriptSet, SelectError> {
    let pattern = Pattern::new(text, span)?;
    let graph = universe.graph;
    let parsed = Asset::parse(text).ok();
    let called = |asset: &Asset| {
        spellings(asset).iter().any(|spelling| pattern.matches(spelling))
            || parsed.as_ref().is_some_and(|parsed| parsed.covers(asset) || asset.covers(parsed))
    };
    let reads = |node: &NodeId| graph.script(*node).reads.iter().any(|read| called(&read.asset));
    let set = ScriptSet::of(graph.len(), graph.nodes().filter(reads));
    if !set.is_empty() {
        return Ok(set);
    }
    let known: BTreeSet<String> =
        graph.nodes().flat_map(|node| &graph.script(node).reads).map(|read| read.asset.to_string()).collect();
    let near = nearest(text, known.iter().map(String::as_str));
    Err(SelectError::new(Code::SELECTION_MATCHES_NOTHING, span, format!("no script reads `{text}`")).with_near(near))
}

fn needs_facts(fact: Fact, span: Span) -> SelectError {
    let message = match fact {
        Fact::State(_) | Fact::New | Fact::Modified => "this command does not select by the recorded state",
        Fact::Result(_) => "this version does not select by the results of the last run",
    };
    SelectError::new(Code::SELECTION_NEEDS_FACTS, span, message)
}

/// Scripts by name, folder, file or glob, or the writers of an asset.
fn named(universe: &Universe<'_>, text: &str, span: Span) -> Result<ScriptSet, SelectError> {
    let graph = universe.graph;
    let text = text.strip_prefix("./").unwrap_or(text);
    if is_glob(text) || text.ends_with('/') {
        return covered(universe, text, span);
    }
    let by_name = graph
        .find(&ScriptName(text.to_owned()))
        .or_else(|| universe.paths.get(text).copied())
        .or_else(|| graph.writer(&Asset::parse(text).ok()?));
    if let Some(node) = by_name {
        return Ok(ScriptSet::of(graph.len(), [node]));
    }
    let writers = universe.tables.get(text).or_else(|| universe.tables.get(&text.to_ascii_lowercase()));
    match writers.map(Vec::as_slice) {
        Some([writer]) => Ok(ScriptSet::of(graph.len(), [*writer])),
        Some(writers) => {
            let names: Vec<String> = writers.iter().map(|node| format!("`{}`", graph.name(*node))).collect();
            let error = SelectError::new(
                Code::SELECTION_MATCHES_NOTHING,
                span,
                format!("`{text}` is written by {}", names.join(" and ")),
            );
            Err(error.with_help("name the script or the whole URI"))
        }
        None => Err(nothing_named(universe, text, span)),
    }
}

/// Scripts whose name, file or written table lies in a folder or under a glob.
fn covered(universe: &Universe<'_>, text: &str, span: Span) -> Result<ScriptSet, SelectError> {
    let graph = universe.graph;
    let set = if text.ends_with('/') && !is_glob(text) {
        let inside = |node: &NodeId| {
            let script = graph.script(*node);
            script.name.as_str().starts_with(text) || script.path.starts_with(text)
        };
        ScriptSet::of(graph.len(), graph.nodes().filter(inside))
    } else {
        let everything_below = if text.ends_with('/') { format!("{text}**") } else { text.to_owned() };
        let pattern = Pattern::new(&everything_below, span)?;
        let matches = |node: &NodeId| {
            let script = graph.script(*node);
            pattern.matches(script.name.as_str()) || pattern.matches(&script.path)
        };
        let by_table =
            universe.tables.iter().filter(|(table, _)| pattern.matches(table)).flat_map(|(_, nodes)| nodes.clone());
        ScriptSet::of(graph.len(), graph.nodes().filter(matches).chain(by_table))
    };
    if set.is_empty() { Err(nothing_named(universe, text, span)) } else { Ok(set) }
}

fn nothing_named(universe: &Universe<'_>, text: &str, span: Span) -> SelectError {
    let graph = universe.graph;
    if text.contains("://") {
        let error = SelectError::new(Code::SELECTION_MATCHES_NOTHING, span, format!("no script writes `{text}`"));
        let is_read = graph.external().iter().any(|external| external.asset.to_string() == text);
        if is_read {
            return error.with_help(format!("`source:{text}` selects the scripts that read it"));
        }
        return error.with_near(nearest(text, sorted_tables(universe)));
    }
    let error = SelectError::new(Code::SELECTION_MATCHES_NOTHING, span, format!("`{text}` matches no script"));
    if text.ends_with('/') {
        return error.with_near(nearest(text, folders(universe)));
    }
    error.with_near(near_script(universe, text))
}

/// Returns the name that `text` is nearest to: a script's by its last part or as a whole, or a written table's.
fn near_script<'a>(universe: &'a Universe<'_>, text: &str) -> Option<&'a str> {
    let names = || universe.graph.nodes().map(|node| universe.graph.name(node).as_str());
    let last_part = |name: &'a str| name.rsplit('/').next().unwrap_or(name);
    names()
        .find(|name| last_part(name).eq_ignore_ascii_case(text))
        .or_else(|| nearest(text, names().chain(sorted_tables(universe))))
        .or_else(|| {
            let near = nearest(text, names().map(last_part))?;
            names().find(|name| last_part(name) == near)
        })
}

fn sorted_tables<'a>(universe: &'a Universe<'_>) -> BTreeSet<&'a str> {
    universe.tables.keys().map(String::as_str).collect()
}

/// Every folder that holds a script, with its `/`, by name and by file.
fn folders<'a>(universe: &'a Universe<'_>) -> BTreeSet<&'a str> {
    let texts = universe.graph.nodes().flat_map(|node| {
        let script = universe.graph.script(node);
        [script.name.as_str(), script.path.as_str()]
    });
    texts.flat_map(|text| text.match_indices('/').map(|(at, _)| &text[..=at])).collect()
}

fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// A plain text or a glob; `*` stays inside a path part, `**` crosses parts.
enum Pattern {
    Plain(String),
    Glob(GlobMatcher),
}

impl Pattern {
    fn new(text: &str, span: Span) -> Result<Self, SelectError> {
        if !is_glob(text) {
            return Ok(Pattern::Plain(text.to_owned()));
        }
        match GlobBuilder::new(text).literal_separator(true).build() {
            Ok(glob) => Ok(Pattern::Glob(glob.compile_matcher())),
            Err(error) => Err(SelectError::new(
                Code::SELECTION_SYNTAX,
                span,
                format!("`{text}` is no valid glob: {}", error.kind()),
            )),
        }
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Pattern::Plain(plain) => plain == text,
            Pattern::Glob(glob) => glob.is_match(text),
        }
    }
}
