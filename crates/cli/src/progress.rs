//! Progress of a run: a line for each step that ended, below which a terminal shows what is running; JSON lines with
//! `--json`.
//!
//! The lines are what a run says of its steps: nothing repeats them at the end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use pintail_core::plan::Step;
use pintail_runner::pintail::BackfillEvent;
use pintail_runner::run::{RunEvent, RunSummary, StepState};
use serde_json::json;

use crate::render::plan::{step_json, step_name};
use crate::render::run::{EndedStep, ended_json, name_width, step_line, style_of, summary_json};
use crate::terminal::Terminal;

/// Shows a run while it goes on, and keeps what its steps say.
pub struct Progress<'t> {
    terminal: &'t Terminal,
    steps: Vec<Step>,
    /// Where the steps of the run that is going on begin; in a job those before it are of earlier windows.
    base: usize,
    /// In a job: its partitions, and how many of them have ended.
    job: Option<JobProgress>,
    /// The steps that have ended, in that order; of a job those that have something to say.
    pub ended: Vec<EndedStep>,
    /// The run's end.
    pub end: Option<(RunSummary, Duration)>,
    bars: Option<Bars>,
    /// Whether every step that went well has a line of its own.
    lines: Lines,
    name_width: usize,
}

/// Which steps get a line when they have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Every one.
    Each,
    /// Those that did not go well, and without bars now and then how many there were: there are thousands.
    Sparse,
}

/// How far a job is.
#[derive(Debug, Default)]
struct JobProgress {
    /// The script whose partitions count; empty before the job has begun.
    script: String,
    total: u64,
    ended: u64,
}

struct Bars {
    all: MultiProgress,
    total: ProgressBar,
    running: BTreeMap<usize, ProgressBar>,
    unit: &'static str,
    began: Instant,
    done: u64,
}

impl<'t> Progress<'t> {
    /// Returns the progress of a run of `steps`.
    pub fn new(terminal: &'t Terminal, steps: &[Step], lines: Lines) -> Self {
        let unit = if steps.iter().all(|step| step.partition.is_some()) { "partitions" } else { "steps" };
        let bars = (terminal.is_live && !terminal.is_json).then(|| Bars::new(steps.len() as u64, unit));
        let name_width = name_width(steps);
        let steps = steps.to_vec();
        Self { terminal, steps, base: 0, job: None, ended: Vec::new(), end: None, bars, lines, name_width }
    }

    /// Returns the progress of a backfill job, whose windows each are a run.
    pub fn of_job(terminal: &'t Terminal) -> Self {
        let mut progress = Self::new(terminal, &[], Lines::Sparse);
        progress.job = Some(JobProgress::default());
        progress
    }

    /// Returns the steps that [`Self::ended`] points into.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Takes note of an event of a job.
    pub fn see_job(&mut self, event: BackfillEvent) {
        match event {
            BackfillEvent::Started { id, script, total, ended } => {
                if self.terminal.is_json {
                    let line =
                        json!({"event": "backfill_started", "backfill": id.0, "partitions": total, "ended": ended});
                    self.terminal.json_line(&line);
                } else if 0 < ended {
                    self.terminal.talk(&format!("{ended} of {total} partitions have ended before"));
                }
                self.job = Some(JobProgress { script: script.to_string(), total, ended });
                self.lines = if total <= 20 { Lines::Each } else { Lines::Sparse };
                if let Some(bars) = &mut self.bars {
                    bars.total.set_length(total);
                    bars.total.set_position(ended);
                }
            }
            BackfillEvent::UpToDate { partitions } => self.count_ended(partitions),
            BackfillEvent::Run(RunEvent::Started { run, steps }) => {
                self.begin_window(&steps);
                self.see(RunEvent::Started { run, steps });
            }
            // The job ends, not the run of a window.
            BackfillEvent::Run(event @ RunEvent::Finished { .. }) if !self.terminal.is_json => drop(event),
            BackfillEvent::Run(event) => self.see(event),
        }
    }

    /// Takes what is drawn away.
    pub fn end_job(&mut self) {
        if let Some(bars) = self.bars.take() {
            bars.clear();
        }
    }

    /// Makes room for the steps of the next window: of those before it, what has something to say is kept.
    fn begin_window(&mut self, steps: &[Step]) {
        let mut kept = Vec::new();
        for ended in &mut self.ended {
            kept.push(self.steps[ended.index].clone());
            ended.index = kept.len() - 1;
        }
        self.base = kept.len();
        kept.extend_from_slice(steps);
        self.steps = kept;
        self.name_width = name_width(steps);
    }

    fn count_ended(&mut self, partitions: u64) {
        if let Some(job) = &mut self.job {
            job.ended += partitions;
        }
        if let Some(bars) = &self.bars {
            bars.total.inc(partitions);
        }
    }

    /// Returns what is drawn, so that others can speak without tearing it.
    pub fn drawing(&self) -> Option<MultiProgress> {
        self.bars.as_ref().map(|bars| bars.all.clone())
    }

    /// Takes note of an event.
    pub fn see(&mut self, event: RunEvent) {
        if self.terminal.is_json {
            self.print_json(&event);
        }
        match event {
            RunEvent::Started { .. } => {}
            RunEvent::StepStarted { index } => {
                if let Some(bars) = &mut self.bars {
                    bars.start(index, &self.steps[self.base + index]);
                }
            }
            RunEvent::StepPhase { index, phase } => {
                if let Some(bar) = self.bars.as_ref().and_then(|bars| bars.running.get(&index)) {
                    bar.set_message(phase);
                }
            }
            RunEvent::StepFinished { index, state, report } => {
                let counts = self.counts(self.base + index);
                if let Some(bars) = &mut self.bars {
                    bars.finish(index, counts);
                }
                self.finish_step(EndedStep { index: self.base + index, state, report });
            }
            RunEvent::Finished { summary, elapsed } => {
                if let Some(bars) = self.bars.take() {
                    bars.clear();
                }
                self.end = Some((summary, elapsed));
            }
        }
    }

    /// Returns whether a step counts: in a job only those of its own script do, not what is upstream.
    fn counts(&self, step: usize) -> bool {
        self.job.as_ref().is_none_or(|job| self.steps[step].name.as_str() == job.script)
    }

    fn finish_step(&mut self, ended: EndedStep) {
        let has_ended = ended.report.is_some() && ended.state != StepState::Cancelled && self.counts(ended.index);
        if let Some(job) = &mut self.job {
            job.ended += u64::from(has_ended);
        }
        if !self.terminal.is_json {
            self.say_end(&ended);
        }
        if self.job.is_none() || ended.has_findings() {
            self.ended.push(ended);
        }
    }

    fn say_end(&self, ended: &EndedStep) {
        // What never began is not progress.
        let begun = || self.ended.iter().chain([ended]).filter(|ended| ended.report.is_some()).count() as u64;
        let (number, total) = match &self.job {
            Some(job) => (job.ended, job.total),
            None => (begun(), self.steps.len() as u64),
        };
        let is_due = ended.report.is_some() && (number.is_multiple_of(50) || number == total);
        if self.lines == Lines::Each || ended.failure().is_some() {
            self.say(&step_line(&self.steps[ended.index], ended, self.name_width, |word| {
                self.terminal.paint_talk(style_of(ended.state), word)
            }));
        } else if is_due && self.bars.is_none() {
            self.say(&format!("{number} of {total} partitions"));
        }
    }

    /// Says a line above what is drawn.
    fn say(&self, line: &str) {
        match &self.bars {
            Some(bars) => bars.all.suspend(|| self.terminal.talk(line)),
            None => self.terminal.talk(line),
        }
    }

    fn print_json(&self, event: &RunEvent) {
        let line = match event {
            RunEvent::Started { run, steps } => json!({
                "event": "started",
                "run": run.as_str(),
                "steps": steps.iter().enumerate().map(|(index, step)| step_json(index, step)).collect::<Vec<_>>(),
            }),
            RunEvent::StepStarted { index } => json!({"event": "step_started", "step": index + 1}),
            RunEvent::StepPhase { index, phase } => json!({"event": "step_phase", "step": index + 1, "phase": phase}),
            RunEvent::StepFinished { index, state, report } => {
                let ended = EndedStep { index: *index, state: *state, report: report.clone() };
                let mut line = json!({"event": "step_finished"});
                let rest = ended_json(&self.steps[self.base + *index], &ended);
                if let (Some(line), serde_json::Value::Object(rest)) = (line.as_object_mut(), rest) {
                    line.extend(rest);
                }
                line
            }
            RunEvent::Finished { summary, elapsed } => {
                let mut line = json!({"event": "finished"});
                if let (Some(line), serde_json::Value::Object(rest)) =
                    (line.as_object_mut(), summary_json(summary, *elapsed))
                {
                    line.extend(rest);
                }
                line
            }
        };
        self.terminal.json_line(&line);
    }
}

impl Bars {
    fn new(length: u64, unit: &'static str) -> Self {
        let all = MultiProgress::new();
        let total = all.add(ProgressBar::new(length));
        total.set_style(style("{bar:30} {pos}/{len} {elapsed}{msg}"));
        total.enable_steady_tick(Duration::from_millis(200));
        Self { all, total, running: BTreeMap::new(), unit, began: Instant::now(), done: 0 }
    }

    fn start(&mut self, index: usize, step: &Step) {
        let bar = self.all.insert_before(&self.total, ProgressBar::new_spinner());
        bar.set_style(style("{spinner} {prefix} {msg:.dim} {elapsed:.dim}"));
        bar.set_prefix(step_name(step));
        bar.enable_steady_tick(Duration::from_millis(100));
        self.running.insert(index, bar);
    }

    fn finish(&mut self, index: usize, counts: bool) {
        if let Some(bar) = self.running.remove(&index) {
            bar.finish_and_clear();
        }
        if !counts {
            return;
        }
        self.done += 1;
        self.total.inc(1);
        let rate = self.done as f64 / self.began.elapsed().as_secs_f64().max(0.001);
        self.total.set_message(format!(", {rate:.1} {}/s", self.unit));
    }

    fn clear(self) {
        for bar in self.running.values() {
            bar.finish_and_clear();
        }
        self.total.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("our own templates are right")
}
