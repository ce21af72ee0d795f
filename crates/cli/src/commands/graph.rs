//! `graph`: which script needs which, and why.

use std::collections::HashSet;

use clap::{Args, ValueEnum};
use pintail_core::graph::{Edge, EdgeReason, Graph, NodeId};
use pintail_core::source::LineIndex;
use pintail_runner::project::CompiledProject;
use serde_json::{Value, json};

use crate::app::App;
use crate::args::SelectArgs;
use crate::exit::Exit;
use crate::failure::Failure;

/// How to show it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail graph                                each script with what it reads, and where that is said
  pintail graph --select +revenue              a part of it
  pintail graph --format mermaid > graph.mmd   for Markdown")]
pub struct GraphArgs {
    /// The format
    #[arg(long, value_enum, default_value_t)]
    format: GraphFormat,
    /// Which scripts.
    #[command(flatten)]
    select: SelectArgs,
}

/// The formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum GraphFormat {
    /// For people
    #[default]
    Text,
    /// Mermaid
    Mermaid,
    /// JSON, as with --json
    Json,
}

/// Runs the command.
pub fn run(args: &GraphArgs, app: &App) -> Result<Exit, Failure> {
    let project = app.compile()?;
    let nodes = app.select(&project, &args.select)?;
    let part = Part { project: &project, graph: &project.graph, chosen: nodes.iter().copied().collect(), nodes };
    match args.format {
        GraphFormat::Text if !app.terminal.is_json => app.terminal.data(&part.text()),
        GraphFormat::Mermaid if !app.terminal.is_json => app.terminal.data(&part.mermaid()),
        _ => app.terminal.json(&part.json()),
    }
    Ok(Exit::Ok)
}

/// The selected part of the graph.
struct Part<'p> {
    project: &'p CompiledProject,
    graph: &'p Graph,
    nodes: Vec<NodeId>,
    chosen: HashSet<NodeId>,
}

impl Part<'_> {
    /// Returns each script in the order of dependencies with what it reads.
    fn text(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            let name = self.graph.name(*node);
            let writes: Vec<String> =
                self.graph.script(*node).writes.iter().map(|write| write.asset.to_string()).collect();
            let arrow = if writes.is_empty() { String::new() } else { format!(" → {}", writes.join(", ")) };
            text.push_str(&format!("{name}{arrow}\n"));
            for read in &self.graph.script(*node).reads {
                let writer = self.graph.writer(&read.asset).map(|writer| self.graph.name(writer));
                let from = match writer {
                    Some(writer) if writer == name => " (itself)".to_owned(),
                    Some(writer) => format!(" of {writer}"),
                    None => " (no script writes it)".to_owned(),
                };
                text.push_str(&format!("  reads {}{from}, {}\n", read.asset, self.place(*node, read.reason)));
            }
        }
        text
    }

    fn place(&self, node: NodeId, reason: EdgeReason) -> String {
        let script = self.graph.script(node);
        let line =
            self.project.source(&script.path).map(|text| LineIndex::new(text).line_column(reason.span().start).0);
        match line {
            Some(line) => format!("{} at {}:{line}", reason.words(), script.path),
            None => reason.words().to_owned(),
        }
    }

    fn edges(&self) -> impl Iterator<Item = &Edge> {
        let is_inside = |edge: &&Edge| self.chosen.contains(&edge.upstream) && self.chosen.contains(&edge.downstream);
        self.graph.edges().iter().filter(is_inside)
    }

    fn mermaid(&self) -> String {
        let mut text = String::from("graph LR\n");
        for node in &self.nodes {
            text.push_str(&format!("  n{}[\"{}\"]\n", node.index(), self.graph.name(*node)));
        }
        for edge in self.edges() {
            let assets: Vec<&str> = edge.reads.iter().map(|read| read.asset.short_name()).collect();
            let label = unique(assets).join(", ");
            text.push_str(&format!("  n{} -->|\"{label}\"| n{}\n", edge.upstream.index(), edge.downstream.index()));
        }
        text
    }

    fn json(&self) -> Value {
        let script = |node: &NodeId| {
            let script = self.graph.script(*node);
            json!({
                "script": script.name.as_str(),
                "path": script.path,
                "writes": script.writes.iter().map(|write| write.asset.to_string()).collect::<Vec<_>>(),
                "reads": script.reads.iter().map(|read| json!({
                    "asset": read.asset.to_string(),
                    "why": self.place(*node, read.reason),
                })).collect::<Vec<_>>(),
            })
        };
        let edge = |edge: &Edge| {
            json!({
                "from": self.graph.name(edge.upstream).as_str(),
                "to": self.graph.name(edge.downstream).as_str(),
                "reads": edge.reads.iter().map(|read| json!({
                    "asset": read.asset.to_string(),
                    "why": self.place(edge.downstream, read.reason),
                })).collect::<Vec<_>>(),
            })
        };
        json!({
            "scripts": self.nodes.iter().map(script).collect::<Vec<_>>(),
            "edges": self.edges().map(edge).collect::<Vec<_>>(),
        })
    }
}

fn unique(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names.dedup();
    names
}
